"""LLVM text of products of stacks of small matrices, straight-line for one size.

A row of the result is one vector; it collects scalar times row of the right matrix. Complex numbers are pairs of
reals: the products with the real and with the imaginary part collect apart and meet once, at the end, so that no
element is moved inside of the loop.
"""

from dataclasses import dataclass
from typing import Final

from tenferro_cpu.native.products._product_text import over_stack

LARGEST: Final = 8
"""Rows, columns and inner size up to which the straight-line product is the fastest."""

TYPES: Final = {"f": "float", "d": "double", "F": "float", "D": "double"}
"""LLVM's name of the reals behind each dtype that products are rendered for."""


@dataclass(frozen=True, slots=True)
class SmallProduct:
    """One product: result (rows, columns) of left (rows, inner) and right (inner, columns), for a whole stack.

    Attributes:
        kind: NumPy's letter of the dtype.
        rows: rows of the left matrix.
        inner: columns of the left matrix and rows of the right one.
        columns: columns of the right matrix.
        swap_left: whether the left matrix is stored as its transpose.
        swap_right: whether the right matrix is.
        registers: vector registers of the processor.
        vector_bytes: bytes of one.
    """

    kind: str
    rows: int
    inner: int
    columns: int
    swap_left: bool
    swap_right: bool
    registers: int
    vector_bytes: int

    @property
    def parts(self) -> int:
        """Reals of one element."""
        return 2 if self.kind in "FD" else 1

    @property
    def width(self) -> int:
        """Reals of one row of the result."""
        return self.parts * self.columns

    @property
    def rows_at_once(self) -> int:
        """Rows whose sums fit into two thirds of the registers."""
        real_bytes = 4 if TYPES[self.kind] == "float" else 8
        per_row = self.parts * -(-self.width * real_bytes // self.vector_bytes)
        return max(1, min(self.rows, 2 * self.registers // 3 // per_row))


def render(product: SmallProduct, name: str = "product") -> str:
    """Text of ``void name(ptr left, ptr right, ptr out, i64 count, i64 left_step, i64 right_step)``.

    The steps are the distances in bytes from one matrix of a stack to the next; zero repeats one matrix.
    """
    p, t = product, TYPES[product.kind]
    vector = f"<{p.width} x {t}>"
    suffix = f"v{p.width}f{32 if t == 'float' else 64}"
    out_bytes = p.rows * p.width * (4 if t == "float" else 8)
    body = _Body(p, t, vector, suffix)
    for first in range(0, p.rows, p.rows_at_once):
        body.block(range(first, min(p.rows, first + p.rows_at_once)))
    lines = "\n".join(body.lines)
    return f"""
declare {vector} @llvm.fma.{suffix}({vector}, {vector}, {vector})
define void @{name}(ptr noalias %left, ptr noalias %right, ptr noalias %out, i64 %count, i64 %ls, i64 %rs) \
nounwind "prefer-vector-width"="{8 * p.vector_bytes}" {{
entry:
  br label %test
{over_stack(lines, ("%left", "%right", "%out"), ("%ls", "%rs", str(out_bytes)))}
}}
"""


class _Body:
    """The lines for one matrix of the stack."""

    def __init__(self, product: SmallProduct, real: str, vector: str, suffix: str) -> None:
        self.product, self.real, self.vector, self.suffix = product, real, vector, suffix
        self.align = 4 if real == "float" else 8
        self.lines: list[str] = []
        self._names = 0
        self._rows: dict[int, str] = {}

    def _let(self, text: str) -> str:
        self._names += 1
        self.lines.append(f"  %v{self._names} = {text}")
        return f"%v{self._names}"

    def block(self, rows: range) -> None:
        """Some rows of the result, their sums side by side so that none waits for another."""
        p = self.product
        sums: dict[tuple[int, int], str] = {}
        for k in range(p.inner):
            right = self._right(k)
            for i in rows:
                for part in range(p.parts):
                    sums[i, part] = self._added(sums.get((i, part)), self._left(i, k, part), right)
        for i in rows:
            self._store(i, [sums[i, part] for part in range(p.parts)])

    def _added(self, total: str | None, left: str, right: str) -> str:
        v = self.vector
        if total is None:
            return self._let(f"fmul {v} {left}, {right}")
        return self._let(f"call {v} @llvm.fma.{self.suffix}({v} {left}, {v} {right}, {v} {total})")

    def _left(self, i: int, k: int, part: int) -> str:
        """One element of the left matrix in all lanes."""
        p = self.product
        at = (k * p.rows + i if p.swap_left else i * p.inner + k) * p.parts + part
        return self._splat(self._load(self.real, "%l", at))

    def _splat(self, scalar: str) -> str:
        w, v = self.product.width, self.vector
        one = self._let(f"insertelement {v} poison, {self.real} {scalar}, i32 0")
        return self._let(f"shufflevector {v} {one}, {v} poison, <{w} x i32> zeroinitializer")

    def _right(self, k: int) -> str:
        """One row of the right matrix."""
        p = self.product
        if not p.swap_right:
            return self._load(self.vector, "%r", k * p.width)
        if k not in self._rows:  # a column in memory: gathered once for all blocks
            row = "poison"
            for j in range(p.columns):
                for part in range(p.parts):
                    x = self._load(self.real, "%r", (j * p.inner + k) * p.parts + part)
                    row = self._let(f"insertelement {self.vector} {row}, {self.real} {x}, i32 {p.parts * j + part}")
            self._rows[k] = row
        return self._rows[k]

    def _load(self, kind: str, base: str, at: int) -> str:
        pointer = self._let(f"getelementptr {self.real}, ptr {base}, i64 {at}")
        return self._let(f"load {kind}, ptr {pointer}, align {self.align}")

    def _store(self, i: int, sums: list[str]) -> None:
        p, v = self.product, self.vector
        result = sums[0]
        if p.parts == 2:  # (a + bi)(c + di): the sums of (ac, ad) and (bc, bd) make (ac - bd, ad + bc)
            order = ", ".join(f"i32 {j ^ 1}" for j in range(p.width))
            signs = ", ".join(f"{self.real} {'1.0' if j % 2 else '-1.0'}" for j in range(p.width))
            swapped = self._let(f"shufflevector {v} {sums[1]}, {v} poison, <{p.width} x i32> <{order}>")
            result = self._let(f"call {v} @llvm.fma.{self.suffix}({v} {swapped}, {v} <{signs}>, {v} {sums[0]})")
        pointer = self._let(f"getelementptr {self.real}, ptr %o, i64 {i * p.width}")
        self.lines.append(f"  store {v} {result}, ptr {pointer}, align {self.align}")
