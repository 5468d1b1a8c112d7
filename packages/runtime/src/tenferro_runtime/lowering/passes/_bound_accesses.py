"""`bound_accesses`: every access is certain to be inside its buffer, by a proof, a requirement or a clamp.

Accesses that are proved inside for all sizes cost nothing. Where the position depends on sizes only, the bound becomes
a `Requirement`, which a call checks once: a window of one element requires an extent of at least 1. Where it depends on
data and no condition bounds it, as for the permutations that LAPACK returns, the position is clamped.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from tenferro_runtime.lowering.passes._contents import all_registers, with_blocks
from tenferro_tensor import catalog
from tenferro_tensor.loop_ir import (
    INDEX,
    Affine,
    For,
    Let,
    Load,
    LoopFunction,
    Position,
    Reg,
    Requirement,
    Statement,
    Store,
    Unproved,
    While,
    blocks,
    everything,
    unproved,
)
from tenferro_tensor_core import Dim, DimLike, UnsupportedError


def bound_accesses(function: LoopFunction) -> LoopFunction:
    """Bound the accesses that are not certain to be inside their buffers.

    Args:
        function: the function.

    Returns:
        The function; `unproved` finds nothing in it.

    Raises:
        UnsupportedError: a view that a call takes, or a bound, depends on data.
    """
    requires = dict.fromkeys(function.requires)
    unbounded: dict[int, Unproved] = {}
    for u in unproved(function):
        if u.clamped:
            if not isinstance(u.touch.statement, Load | Store):
                raise UnsupportedError(f"the program is not lowered to loops: {u}")
            unbounded[id(u.touch.statement)] = u
        requires |= dict.fromkeys([Requirement(d, u.running) for d in u.needs])
    for r in requires:
        named = frozenset[str]().union(*[d.variables for d in (r.holds, *r.when) if isinstance(d, Dim)])
        if not named.issubset(function.sizes):
            raise UnsupportedError(f"the program is not lowered to loops: a bound depends on data; the program {r}")
    function = replace(function, requires=tuple(requires))
    return _Clamping(function, unbounded).done() if unbounded else function


@dataclass(frozen=True, slots=True)
class _Clamp:
    """``data``, kept between two sizes."""

    data: Affine
    low: DimLike
    high: DimLike


class _Clamping:
    """Clamps positions, outside of the loops in which they do not change.

    Args:
        function: the function.
        unbounded: the accesses, by identity of the statement.

    Attributes:
        made: register of each clamp.
    """

    def __init__(self, function: LoopFunction, unbounded: dict[int, Unproved]) -> None:
        self.function, self.unbounded = function, unbounded
        self.made: dict[_Clamp, Reg] = {}
        self.next = 1 + max(_numbers(function.body))

    def done(self) -> LoopFunction:
        body, left = self.block(self.function.body, None, set())
        assert not left
        return replace(self.function, body=body, clamps=frozenset([reg.number for reg in self.made.values()]))

    def block(
        self, statements: Sequence[Statement], inside: set[int] | None, placed: set[_Clamp]
    ) -> tuple[tuple[Statement, ...], dict[_Clamp, Reg]]:
        """The statements with clamps, and the clamps that belong before all of them.

        Args:
            statements: the block.
            inside: registers set in it; None for the whole function.
            placed: the clamps that its statements may read.
        """
        body: list[Statement] = []
        outside: dict[_Clamp, Reg] = {}
        for s in statements:
            new, clamps = self.one(s)
            for clamp, reg in clamps.items():
                if inside is not None and inside.isdisjoint([r.number for r, _ in clamp.data.terms]):
                    outside[clamp] = reg
                elif clamp not in placed:
                    placed.add(clamp)
                    body += self.written(clamp, reg)
            body.append(new)
        return tuple(body), outside

    def one(self, s: Statement) -> tuple[Statement, dict[_Clamp, Reg]]:
        u = self.unbounded.get(id(s))
        if u is not None:
            assert isinstance(s, Load | Store)
            clamp = _Clamp(u.data, 0 - u.low, u.room)
            reg = self.made.setdefault(clamp, self.reg())
            return replace(s, at=u.touch.at - u.data + reg), {clamp: reg}
        found: dict[_Clamp, Reg] = {}
        inner = []
        own, placed = set(), set[_Clamp]()
        if isinstance(s, For | While):
            own = {s.index.number, *[c.inside.number for c in s.carries]}
        for block in blocks(s):
            own |= _numbers(block)  # the body of `While` reads registers of its test
            new, outside = self.block(block, own, placed if isinstance(s, While) else set())
            inner.append(new)
            found |= outside
        return with_blocks(s, inner), found

    def written(self, clamp: _Clamp, reg: Reg) -> Iterator[Statement]:
        bounds = [(self.reg(), Affine(d)) for d in (clamp.low, clamp.high)]
        data = self.reg()
        yield Position(data, clamp.data)
        yield from [Position(bound, d) for bound, d in bounds]
        yield Let(reg, catalog.clamp.op(), (data, *[bound for bound, _ in bounds]))

    def reg(self) -> Reg:
        self.next += 1
        return Reg(self.next - 1, INDEX)


def _numbers(statements: Iterable[Statement]) -> set[int]:
    """Numbers of the registers that statements set."""
    return {reg.number for s in everything(tuple(statements)) for reg in all_registers(s)}
