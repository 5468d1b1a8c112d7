"""`Emitter`: lines, names and basic blocks of one function; `Module`: the definitions that the function refers to."""

from __future__ import annotations

from collections.abc import Callable


class Module:
    """Definitions next to the kernel: private functions, and declarations of external ones.

    Methods take:
        name: name of the definition.
        text: its LLVM text.
        functions: LLVM text of functions.

    Methods return:
        LLVM text.

    Args:
        optimised: whether LLVM's optimiser runs on the text.
    """

    def __init__(self, optimised: bool = False) -> None:
        self.optimised = optimised
        self.definitions: dict[str, str] = {}

    def require(self, name: str, text: Callable[[], str]) -> None:
        """Define `name` once."""
        if name not in self.definitions:
            self.definitions[name] = text()

    def text(self, *functions: str) -> str:
        """The module with the given functions."""
        return "\n".join([*self.definitions.values(), *functions])


class Emitter:
    """The instructions of one function in order, and the label of the current basic block.

    Args:
        module: the definitions that the function refers to.
        lanes: elements of a vector.
        interleave: vectors that undergo every instruction, one after the other.
        fused: whether the processor has fused multiply-add.
        tables: whether it has lookups in registers and scaling by powers of two (AVX-512).
    """

    def __init__(
        self, module: Module, lanes: int, interleave: int = 1, fused: bool = True, tables: bool = False
    ) -> None:
        self.module: Module = module
        self.lanes: int = lanes
        self.interleave: int = interleave
        self.fused: bool = fused
        self.tables: bool = tables
        self.lines: list[str] = []
        self.label: str = "entry"
        self._count = 0

    def take_over(self, other: Emitter) -> None:
        """Continue where another emitter stopped; that one writes no more until it takes over in turn."""
        self.lines, self.label, self._count = other.lines, other.label, other._count

    def fresh(self) -> str:
        """An unused name for a value."""
        self._count += 1
        return f"%t{self._count}"

    def new_label(self, what: str) -> str:
        """An unused label for a basic block."""
        self._count += 1
        return f"{what}{self._count}"

    def raw(self, text: str) -> str:
        """Write one instruction with a result and return its name."""
        name = self.fresh()
        self.lines.append(f"  {name} = {text}")
        return name

    def do(self, text: str) -> None:
        """Write one instruction without a result."""
        self.lines.append(f"  {text}")

    def begin(self, label: str) -> None:
        """Open a basic block."""
        self.lines.append(f"{label}:")
        self.label = label

    def jump(self, label: str) -> None:
        """End the basic block with a jump to another."""
        self.do(f"br label %{label}")

    def branch(self, flag: str, yes: str, no: str, *, rarely: bool = False) -> None:
        """End the basic block with a conditional branch; `rarely` marks the first target as cold."""
        if rarely:
            self.module.require("!prof", lambda: '!0 = !{!"branch_weights", i32 1, i32 100000}')
        self.do(f"br i1 {flag}, label %{yes}, label %{no}{', !prof !0' if rarely else ''}")

    def repeat(self, flag: str, head: str, after: str) -> None:
        """End the basic block and the vector loop that begins at `head`, which the optimiser must not unroll."""
        hint = ""
        if self.module.optimised:
            self.module.require("!loop", lambda: '!2 = distinct !{!2, !3}\n!3 = !{!"llvm.loop.unroll.disable"}')
            hint = ", !llvm.loop !2"
        self.do(f"br i1 {flag}, label %{head}, label %{after}{hint}")

    def reserve(self, count: int) -> int:
        """Reserve lines for `fill` to write later; returns the index of the first."""
        self.lines += [""] * count
        return len(self.lines) - count

    def fill(self, line: int, text: str) -> None:
        """Write a reserved line."""
        self.lines[line] = f"  {text}"
