"""Cholesky and LU factors, and solutions of linear equations."""

from __future__ import annotations

from tenferro_linalg._host import INVERSE_BLOCK, without_factors
from tenferro_linalg._small import ADJOINT, LOWER, UNIT
from tenferro_linalg.loops._lapack import BOOL, INT32, PREFIX, Batch, Lapack, gapless, matrix
from tenferro_runtime.lowering import Formula, Lowered, Step, Stored, call, write
from tenferro_tensor import catalog
from tenferro_tensor.loop_ir import INDEX, Affine, Foreign, Literal, Value


def cholesky(step: Step) -> list[Lowered]:
    """Lower factors of Hermitian parts; to LAPACK, upper factors of the transposes, i.e. the conjugates."""
    la = Lapack(step)
    (x,), (out,), w = la.operands, la.results, la.w
    n, half = x.shape[-1], Literal(0.5, la.dtype)
    zero = Literal(la.dtype.type(0).item(), la.dtype)

    def one(batch: Batch) -> Value:
        source, to = matrix(x, batch), matrix(out, batch)

        def entry(i: Batch) -> None:
            here, there = (w.let(catalog.mul.op(), la.dtype, source.at(w, k), half) for k in (i, (i[1], i[0])))
            if la.dtype.kind == "c":
                there = w.let(catalog.conj.op(), la.dtype, there)
            value = w.let(catalog.add.op(), la.dtype, here, there)
            below = w.let(catalog.le.op(), BOOL, w.position(i[1]), w.position(i[0]))
            w.store(to.buffer, to.place(i), w.let(catalog.select.op(), la.dtype, below, value, zero))

        w.nest(to.shape, entry)
        return la.both(la.finite(x, batch), la.call("potrf", "U", la.number(n), to.view(), la.extent(n), written=(2,)))

    return la.lower(x.shape[:-2], one, "cholesky")


def solve(step: Step) -> list[Lowered]:
    """Solutions by LU factors."""
    la = Lapack(step)
    (a, b), (out,) = la.operands, la.results
    return la.lower(a.shape[:-2], lambda batch: _solved(la, a, b, out, batch, adjoint=False), "solve", 0, (0, 1))


def _solved(la: Lapack, a: Stored, b: Stored, out: Stored, batch: Batch, *, adjoint: bool) -> Value:
    lu, pivots = la.scratch(a.dtype, *a.shape[-2:]), la.scratch(INT32, a.shape[-1])
    info = _factored(la, a, batch, lu, pivots)
    _solve_by(la, lu, pivots, b, out, batch, adjoint=adjoint)
    return la.both(la.finite(a, batch), info)


def _factored(la: Lapack, a: Stored, batch: Batch, lu: Stored, pivots: Stored) -> Value:
    """Write the factors of a row-major matrix; to LAPACK, those of the transpose."""
    write(la.w, matrix(a, batch), lu)
    n = la.number(a.shape[-1])
    return la.call("getrf", n, n, lu.view(), la.extent(a.shape[-1]), pivots.view(), written=(2, 4))


def _solve_by(la: Lapack, lu: Stored, pivots: Stored, b: Stored, out: Stored, batch: Batch, *, adjoint: bool) -> Value:
    """Solve from factors of the transpose, whose conjugate is the adjoint."""
    w, (n, k), turned = la.w, b.shape[-2:], adjoint and la.dtype.kind == "c"
    right, source, to = la.scratch(la.dtype, k, n), matrix(b, batch), matrix(out, batch)

    def entry(x: Stored, i: Batch) -> Value:
        value = x.at(w, (i[1], i[0]))
        return w.let(catalog.conj.op(), la.dtype, value) if turned else value

    w.nest((k, n), lambda i: w.store(right.buffer, right.place(i), entry(source, i)))
    info = la.call(
        "getrs", "N" if adjoint else "T", la.number(n), la.number(k), lu.view(), la.extent(n), pivots.view(),
        right.view(), la.extent(n), written=(6,),
    )  # fmt: skip
    w.nest((n, k), lambda i: w.store(to.buffer, to.place(i), entry(right, i)))
    return info


def factors(step: Step) -> list[Lowered]:
    """LU factors of one matrix; stacks and small matrices are solved without factors, as by the ordinary kernels."""
    (x,) = step.operands
    if isinstance(x.shape[-1], int) and without_factors(len(x.shape), x.shape[-1]):
        return [x, Formula(step.outs[1].shape, INDEX, lambda w, i: Literal(0, INDEX))]
    if len(x.shape) > 2:
        return call(step)
    la = Lapack(step)
    (x,), (out, swaps), w = la.operands, la.results, la.w
    n = x.shape[-1]

    def one(batch: Batch) -> Value:
        pivots = la.scratch(INT32, n)
        info = _factored(la, x, batch, out, pivots)

        def pivot(i: Batch) -> None:
            here = w.let(catalog.convert.op(dtype=INDEX), INDEX, pivots.at(w, i))
            w.store(swaps.buffer, swaps.place(i), w.let(catalog.sub.op(), INDEX, here, Literal(1, INDEX)))

        w.nest((n,), pivot)
        return la.both(la.finite(x, batch), info)

    return la.lower((), one)


def solve_by_factors(step: Step) -> list[Lowered]:
    """Solutions from LU factors; for stacks, from the matrices."""
    la = Lapack(step)
    (a, lu, swaps, b), (out,), w = la.operands, la.results, la.w
    adjoint = step.params["adjoint"]
    if len(a.shape) > 2 or (isinstance(a.shape[-1], int) and without_factors(2, a.shape[-1])):
        return la.lower(
            a.shape[:-2],
            lambda batch: _solved(la, a, b, out, batch, adjoint=adjoint),
            "solve",
            ADJOINT * adjoint,
            (0, 3),
        )
    n = b.shape[0]

    def one(batch: Batch) -> Value:
        pivots = la.scratch(INT32, n)
        with w.loop(n, [Literal(0, INDEX)]) as loop:
            i, swap = Affine.of(loop.index), swaps.at(w, (Affine.of(loop.index),))
            here = w.let(catalog.add.op(), INDEX, swap, Literal(1, INDEX))
            w.store(pivots.buffer, pivots.place((i,)), w.let(catalog.convert.op(dtype=INT32), INT32, here))
            loop.following = (w.let(catalog.sub.op(), INDEX, swap, w.position(i)),)
        # The last row is never exchanged. Any other last pivot means that the previous step, which may have run in the
        # ordinary kernel, returned a small matrix unfactored.
        return la.both(*loop.results, _solve_by(la, lu, pivots, b, out, batch, adjoint=adjoint))

    return la.lower((), one)


def solve_triangular(step: Step) -> list[Lowered]:
    """``a Y = B`` is ``Y' a' = B'`` for transposes, which is how LAPACK reads row-major matrices: no copy is needed."""
    la = Lapack(step)
    (a, b), (out,), w = la.operands, la.results, la.w
    lower, unit, adjoint = (step.params[name] for name in ("lower", "unit", "adjoint"))
    n, k = b.shape[-2:]
    a = la.operands[0] = gapless(la, a)
    one_ = Literal(la.dtype.type(1).item(), la.dtype)

    def one(batch: Batch) -> Value:
        factor, to = matrix(a, batch), matrix(out, batch)
        write(w, matrix(b, batch), to)
        w.statements.append(
            Foreign(
                PREFIX[la.dtype.char] + "trsm",
                ("R", "U" if lower else "L", "C" if adjoint else "N", "U" if unit else "N", la.number(k), la.number(n),
                 one_, factor.view(), la.extent(n), to.view(), la.extent(k)),
                (9,),
            )
        )  # fmt: skip
        w.written(to.buffer)
        return Literal(0, INDEX) if unit else _zero_on_diagonal(la, factor)

    flags = adjoint * ADJOINT | lower * LOWER | unit * UNIT
    return la.lower(a.shape[:-2], one, "solve_triangular", flags, (0, 1))


def _zero_on_diagonal(la: Lapack, x: Stored) -> Value:
    w = la.w
    with w.loop(x.shape[-1], [Literal(0, INDEX)]) as loop:
        i = Affine.of(loop.index)
        zero = Literal(la.dtype.type(0).item(), la.dtype)
        hit = w.let(catalog.eq.op(), BOOL, x.at(w, (i, i)), zero)
        number = w.let(catalog.convert.op(dtype=INDEX), INDEX, hit)
        loop.following = (w.let(catalog.bitwise_or.op(), INDEX, loop.inside[0], number),)
    return loop.results[0]


def inverse(step: Step) -> list[Lowered]:
    """Inverses, from LU factors of the transpose, in place: its inverse is the transpose of the result."""
    la = Lapack(step)
    (x,), (out,), w = la.operands, la.results, la.w
    n = x.shape[-1]

    def one(batch: Batch) -> Value:
        to, pivots, work = matrix(out, batch), la.scratch(INT32, n), la.scratch(la.dtype, INVERSE_BLOCK, n)
        write(w, matrix(x, batch), to)
        factored = la.call("getrf", la.number(n), la.number(n), to.view(), la.extent(n), pivots.view(), written=(2, 4))
        inverted = la.call(
            "getri", la.number(n), to.view(), la.extent(n), pivots.view(), work.view(), la.number(INVERSE_BLOCK * n),
            written=(1, 4),
        )  # fmt: skip
        return la.both(la.finite(x, batch), factored, inverted)

    return la.lower(x.shape[:-2], one, "inv")
