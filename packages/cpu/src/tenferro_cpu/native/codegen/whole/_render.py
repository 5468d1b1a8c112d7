"""`render`: a `LoopFunction` as LLVM text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tenferro_cpu.native._host import Host
from tenferro_cpu.native.codegen.builder import Module, Pointer, ScalarBlock
from tenferro_cpu.native.codegen.whole._arena import place_temporaries
from tenferro_cpu.native.codegen.whole._checks import Checks
from tenferro_cpu.native.codegen.whole._fortran import PREFIX
from tenferro_cpu.native.codegen.whole._frame import EntryBlock
from tenferro_cpu.native.codegen.whole._nests import Main, Nests
from tenferro_cpu.native.codegen.whole._sizes import Sizes
from tenferro_tensor.loop_ir import Call, LoopFunction

NAME: Final = "whole"
"""Name of the function that rendered text defines."""


@dataclass(frozen=True, slots=True)
class RenderedFunction:
    """A whole program as LLVM text.

    The text defines ``i64 whole(ptr pointers, ptr sizes, ptr context)``: `pointers` are the inputs, the constants, the
    outputs and the arena (`arena_bytes`, aligned to 64 bytes), `sizes` the values of the symbolic sizes, and `context`
    a ``struct tenferro_whole``: `countdown` is the work until the next `poll`, `call` runs a `Call` statement by its
    number, and `parallel_for` serves large nests if `threads` exceeds 1. It returns 0, or the first nonzero status of a
    poll or a call.

    Attributes:
        text: the module.
        calls: the `Call` statements, by number.
        level: required optimiser level.
        foreign: names of BLAS and LAPACK subroutines; `fortran_symbols` returns their addresses.
    """

    text: str
    calls: tuple[Call, ...]
    level: int
    foreign: tuple[str, ...] = ()


def render(
    function: LoopFunction,
    host: Host,
    *,
    name: str = NAME,
    alone: bool = False,
    checked: bool = False,
    small: bool = False,
) -> RenderedFunction:
    """LLVM text of a function for a processor.

    Args:
        function: the function.
        host: the processor.
        name: name of the function that the text defines.
        alone: whether it runs without Python: at a `Call` it ends with `FIRST_REPORT` plus the number of the call, and
            subroutines have the names and integers of Fortran compilers.
        checked: compare every access with the extent of its buffer.
        small: leave out what only nests above `TEAM_MIN_WORK` use, which is half of the code: chunks and stores past
            the caches. Results have equal bits.

    Returns:
        The rendered function.

    Raises:
        UnsupportedError: an op has no native form on this processor.
    """
    module = Module(optimised=True)
    fused = host.level != "generic"
    entry, block = EntryBlock(module), ScalarBlock(module, fused, host.tables)
    entry.begin("entry")
    block.begin("body")
    given = Pointer(entry, "%sizes")
    variables = {name: given.element("i64", k).load_int() for k, name in enumerate(function.sizes)}
    sizes = Sizes(entry, variables)
    buffers = [*function.inputs, *[b for b, _ in function.constants], *function.outputs]
    table = Pointer(entry, "%pointers")
    pointers = {b.number: table.element("ptr", k).load_pointer() for k, b in enumerate(buffers)}
    if function.temporaries:
        arena = table.element("ptr", len(buffers)).load_pointer()
        pointers |= place_temporaries(function, arena, sizes)
    placed = {number: Pointer(block, p.name) for number, p in pointers.items()}
    calls: list[Call] = []
    main = Main(entry, block, sizes, placed, calls)
    main.nests, main.alone = Nests(module, host, small), alone
    if checked:
        main.checks = Checks(function, module)
        main.checks.start(block)
    main.write(function.body)
    if main.checks is not None:
        main.checks.end(block)
    block.do("ret i64 0")
    entry.jump("body")
    head = f"define i64 @{name}(ptr %pointers, ptr %sizes, ptr %context) {host.attributes} {{"
    text = module.text(head, *entry.lines, *block.lines, "}")
    foreign = tuple([name for name in module.definitions if name.startswith(PREFIX) or (alone and name[-1] == "_")])
    return RenderedFunction(text, tuple(calls), 1, foreign)
