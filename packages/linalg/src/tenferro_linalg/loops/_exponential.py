"""The exponential and the first term of its derivative, by scaling, Padé approximants and squaring.

Matrices with their derivatives are chains of order 1, as in `tenferro_linalg.functions._chains`: every function of one
chain commutes with every other, so that ``D^-1 N`` is ``N D^-1``, which LAPACK computes in place as it reads rows as
columns. Squarings beyond `SQUARINGS_MAX` are left to the kernel, which tries to save some of them.

Written in array operations, derivatives take 1.1 times as long at n = 32, and stacks of such matrices 1.2 times.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tenferro_linalg.functions._exponential import DERIVATIVES, VALUES, coefficients
from tenferro_linalg.loops._lapack import BOOL, INT32, PREFIX, Batch, Lapack, counted, matrix
from tenferro_runtime.lowering import Lowered, Step, Stored, call, write
from tenferro_tensor import catalog
from tenferro_tensor.loop_ir import INDEX, Affine, Case, Foreign, Literal, Order, Switch, Value
from tenferro_tensor_core import DimLike

SQUARINGS_MAX: Final = 3
"""Largest number of squarings; overestimating it by so few does not harm accuracy."""

Chain = tuple[Stored, ...]
"""A matrix, and its derivative if there is a direction."""


def exponential(step: Step) -> list[Lowered]:
    """Exponentials, or their derivatives in one direction each."""
    order, dtype = step.params["order"], step.outs[0].dtype
    if step.params["function"] != "exp" or order > 1 or any(x.dtype != dtype for x in step.operands):
        return call(step)
    la = Lapack(step)
    (out,), x = la.results, la.operands[0]
    table = (DERIVATIVES if order else VALUES)["f" if dtype.char in "fF" else "d"]

    def one(batch: Batch) -> Value:
        given = [matrix(v, batch) for v in la.operands]
        return la.of_finite(x, batch, lambda: of_finite(given, batch))

    def of_finite(given: Sequence[Stored], batch: Batch) -> Value:
        norm = _row_norm(la, given[0])

        def beyond(limit: float) -> Value:
            return counted(la.w, la.w.let(catalog.gt.op(), BOOL, norm, Literal(limit, la.real)))

        degrees = [beyond(limit) for _, limit in table[:-1]]
        *squarings, too_large = [beyond(table[-1][1] * 2.0**k) for k in range(SQUARINGS_MAX + 1)]

        def computed() -> Value:
            _write_exponential(la, given, table, degrees, squarings, matrix(out, batch))
            return la.finite(out, batch)

        return la.unless(too_large, computed)

    routine, operands = ("exp_term", (0, 1)) if order else ("exp", (0,))
    return la.lower(x.shape[:-2], one, routine, 0, operands)


def _write_exponential(
    la: Lapack,
    given: Sequence[Stored],
    table: Sequence[tuple[int, float]],
    degrees: Sequence[Value],
    squarings: Sequence[Value],
    to: Stored,
) -> None:
    w, n = la.w, to.shape[-1]
    x, x2, odd, even, y = (_chain(la, n, len(given)) for _ in range(5))
    scale: Value = Literal(1.0, la.real)
    for k, hit in enumerate(squarings):
        condition = w.let(catalog.convert.op(dtype=BOOL), BOOL, hit)
        scale = w.let(catalog.select.op(), la.real, condition, Literal(0.5 ** (k + 1), la.real), scale)
    by = w.let(catalog.convert.op(dtype=la.dtype), la.dtype, scale)
    for source, part in zip(given, x, strict=True):
        _combine(la, part, [source], [by])
    _product(la, x, x, x2)
    cases = []
    for m, _ in table:
        with w.block() as body:
            _halves(la, m, x2, odd, even)
        cases.append(Case(tuple(body)))
    degree: Value = Literal(0, INDEX)
    for hit in degrees:
        degree = w.let(catalog.add.op(), INDEX, degree, hit)
    w.statements.append(Switch(degree, tuple(cases)))
    w.written(*[part.buffer for part in (*odd, *even)])
    _product(la, x, odd, x2)
    for up, down, u, v in zip(y, odd, x2, even, strict=True):
        one = Literal(la.dtype.type(1).item(), la.dtype)
        _combine(la, up, [u, v], [one, one])
        _combine(la, down, [u, v], [Literal(la.dtype.type(-1).item(), la.dtype), one])
    _divide(la, y, odd)
    for hit in squarings:
        with w.block() as body:
            _product(la, y, y, x)
            for part, squared in zip(y, x, strict=True):
                write(w, squared, part)
        w.statements.append(Switch(hit, (Case(()), Case(tuple(body)))))
        w.written(*[part.buffer for part in (*x, *y)])
    write(w, y[-1], to)


def _chain(la: Lapack, n: DimLike, parts: int) -> Chain:
    return tuple([la.scratch(la.dtype, n, n) for _ in range(parts)])


def _row_norm(la: Lapack, x: Stored) -> Value:
    """The largest sum of moduli of a row."""
    w, (m, n) = la.w, x.shape
    with w.loop(m, [Literal(0.0, la.real)]) as rows:
        with w.loop(n, [Literal(0.0, la.real)], Order.GROUPED) as columns:
            size = w.let(catalog.abs.op(), la.real, x.at(w, (Affine.of(rows.index), Affine.of(columns.index))))
            columns.following = (w.let(catalog.add.op(), la.real, columns.inside[0], size),)
        rows.following = (w.let(catalog.maximum.op(), la.real, rows.inside[0], columns.results[0]),)
    return rows.results[0]


def _halves(la: Lapack, m: int, x2: Chain, odd: Chain, even: Chain) -> None:
    """The odd terms, divided by the matrix, and the even terms of the Padé approximant of degree m."""
    b = [Literal(la.dtype.type(v).item(), la.dtype) for v in coefficients(m)]
    n, parts = x2[0].shape[0], len(x2)
    powers = [x2]
    for k in range(2, min(m // 2, 4 if m <= 9 else 3) + 1):
        powers.append(_chain(la, n, parts))
        _product(la, powers[(k - 1) // 2], powers[k // 2 - 1], powers[-1])
    for start, half in ((1, odd), (0, even)):
        if m > 9:
            top = _chain(la, n, parts)
            _terms(la, top, powers, b[8 + start :: 2])
            _product(la, powers[-1], top, half)
            _terms(la, half, powers, b[2 + start : 8 : 2], more=True)
        else:
            _terms(la, half, powers, b[2 + start :: 2])
        _add_to_diagonal(la, half[0], b[start])


def _terms(la: Lapack, to: Chain, powers: Sequence[Chain], factors: Sequence[Literal], more: bool = False) -> None:
    """Multiples of powers, added to what is there if there is `more`."""
    one = [Literal(la.dtype.type(1).item(), la.dtype)] * more
    for k, part in enumerate(to):
        _combine(la, part, [*[p[k] for p in powers], *[part] * more], [*factors, *one])


def _combine(la: Lapack, to: Stored, terms: Sequence[Stored], factors: Sequence[Value]) -> None:
    w = la.w

    def entry(i: Batch) -> None:
        products = [w.let(catalog.mul.op(), la.dtype, x.at(w, i), f) for x, f in zip(terms, factors, strict=True)]
        total = products[0]
        for each in products[1:]:
            total = w.let(catalog.add.op(), la.dtype, total, each)
        w.store(to.buffer, to.place(i), total)

    w.nest(to.shape, entry)


def _add_to_diagonal(la: Lapack, x: Stored, number: Value) -> None:
    w = la.w
    with w.loop(x.shape[0], order=Order.ANY) as loop:
        at = (Affine.of(loop.index),) * 2
        w.store(x.buffer, x.place(at), w.let(catalog.add.op(), la.dtype, x.at(w, at), number))


def _product(la: Lapack, x: Chain, y: Chain, to: Chain) -> None:
    """The product of two chains."""
    _gemm(la, x[0], y[0], to[0])
    for slope in to[1:]:
        _gemm(la, x[0], y[1], slope)
        _gemm(la, x[1], y[0], slope, 1, 1)


def _gemm(la: Lapack, x: Stored, y: Stored, to: Stored, factor: float = 1, keep: float = 0) -> None:
    """``to = factor x y + keep to``; BLAS reads the transposes of all three."""
    n, across = la.number(to.shape[0]), la.extent(to.shape[0])
    alpha, beta = (Literal(la.dtype.type(v).item(), la.dtype) for v in (factor, keep))
    arguments = ("N", "N", n, n, n, alpha, y.view(), across, x.view(), across, beta, to.view(), across)
    la.w.statements.append(Foreign(PREFIX[la.dtype.char] + "gemm", arguments, (11,)))
    la.w.written(to.buffer)


def _divide(la: Lapack, y: Chain, down: Chain) -> None:
    """``y = y down^-1``, in place; to LAPACK, which reads transposes, a division from the left."""
    n = y[0].shape[0]
    size, across, pivots = la.number(n), la.extent(n), la.scratch(INT32, n)
    la.call("getrf", size, size, down[0].view(), across, pivots.view(), written=(2, 4))
    for k, part in enumerate(y):
        if k:
            _gemm(la, y[0], down[1], part, -1, 1)
        la.call("getrs", "N", size, size, down[0].view(), across, pivots.view(), part.view(), across, written=(6,))
