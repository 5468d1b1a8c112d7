"""Block upper triangular matrices with equal diagonal blocks; functions of them contain derivatives.

For an analytic f, take the block bidiagonal matrix with A on the diagonal and E_1, ..., E_p above it. The corner block
of f of this matrix is the term ``T(E_1, ..., E_p)`` of the p-th derivative of f at A (Mathias 1996). Any algorithm made
of sums, products and quotients computes it when it runs on such matrices, at defective A too; the diagonal block, which
is the same in every row, is computed once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

Above = dict[tuple[int, int], Any]


class Chain:
    """One block upper triangular matrix, or a stack of them.

    Attributes:
        diagonal: the block on the diagonal (..., n, n).
        above: the blocks above it by row and column; absent ones are zero.
        order: number of blocks in the first row besides the diagonal.
    """

    __slots__ = ("above", "diagonal", "order")

    def __init__(self, diagonal: Any, above: Above, order: int) -> None:
        self.diagonal, self.above, self.order = diagonal, above, order

    @classmethod
    def bidiagonal(cls, x: Any, factors: Sequence[Any]) -> Chain:
        """`x` on the diagonal, the factors directly above it."""
        return cls(x, {(k, k + 1): e for k, e in enumerate(factors)}, len(factors))

    @property
    def corner(self) -> Any:
        """The last block of the first row."""
        return self.above[0, self.order] if self.order else self.diagonal

    def map(self, f: Callable[[Any], Any]) -> Chain:
        """Apply a linear map to every block."""
        return Chain(f(self.diagonal), {place: f(block) for place, block in self.above.items()}, self.order)

    def __add__(self, other: Chain) -> Chain:
        above = dict(self.above)
        for place, block in other.above.items():
            above[place] = above[place] + block if place in above else block
        return Chain(self.diagonal + other.diagonal, above, self.order)

    def __sub__(self, other: Chain) -> Chain:
        return self + other * -1.0

    def __mul__(self, number: Any) -> Chain:
        return self.map(lambda block: block * number)

    def plus(self, x: Any) -> Chain:
        """Sum with a block diagonal matrix of equal blocks."""
        return Chain(self.diagonal + x, self.above, self.order)

    def __matmul__(self, other: Chain) -> Chain:
        above: Above = {}
        for i, j in self.places():
            terms = [a @ b for a, b in ((self.block(i, k), other.block(k, j)) for k in range(i, j + 1)) if _both(a, b)]
            if terms:
                above[i, j] = sum(terms[1:], start=terms[0])
        return Chain(self.diagonal @ other.diagonal, above, self.order)

    def solved(self, right: Chain, solve: Callable[[Any], Any]) -> Chain:
        """X with ``self @ X = right``, where `solve` solves with the diagonal block."""
        out = Chain(solve(right.diagonal), {}, self.order)
        for i, j in self.places():
            known = right.above.get((i, j))
            for k in range(i + 1, j + 1):
                a, b = self.block(i, k), out.block(k, j)
                if _both(a, b):
                    known = -(a @ b) if known is None else known - a @ b
            if known is not None:
                out.above[i, j] = solve(known)
        return out

    def places(self) -> list[tuple[int, int]]:
        """Rows and columns of the blocks above the diagonal, nearest first."""
        p = self.order
        return [(i, i + d) for d in range(1, p + 1) for i in range(p + 1 - d)]

    def block(self, i: int, j: int) -> Any:
        """The block at a row and column; None if it is zero."""
        return self.diagonal if i == j else self.above.get((i, j))


def _both(a: Any, b: Any) -> bool:
    return a is not None and b is not None
