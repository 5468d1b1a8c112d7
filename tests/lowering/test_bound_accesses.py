"""Accesses of lowered programs are bounded: by proofs for all sizes, requirements on sizes, and clamps."""

from typing import Any

import numpy as np
import pytest

import tenferro_runtime as tr
from tenferro_runtime.lowering import lower
from tenferro_runtime.lowering.passes import bound_accesses
from tenferro_tensor import catalog
from tenferro_tensor.loop_interpreter import interpret
from tenferro_tensor.loop_ir import (
    INDEX,
    Affine,
    Buffer,
    Call,
    Case,
    For,
    Load,
    LoopFunction,
    Reg,
    Role,
    Store,
    Switch,
    View,
    everything,
    verify,
)
from tenferro_tensor_core import UnsupportedError

F8 = np.dtype("float64")
N, M = tr.dim("n"), tr.dim("m")
I, J, K, V = Reg(0, INDEX), Reg(1, INDEX), Reg(2, INDEX), Reg(3, F8)
X, KEYS = Buffer(0, F8, (N,), Role.INPUT), Buffer(1, INDEX, (M,), Role.INPUT)
OUT = Buffer(2, F8, (M, 2), Role.OUTPUT)


def picked(x: Any, at: Any) -> Any:
    return x[at] * 2.0


def lowered(f: Any, *shapes: Any) -> LoopFunction:
    """A function of floating-point arrays and one last index."""
    specs = [tr.Spec(shape, F8) for shape in shapes]
    return verify(lower(tr.trace(f, *specs, tr.Spec((), INDEX))))


def test_a_proof_costs_nothing() -> None:
    f = lowered(lambda x, i: tr.sum(x[1:] * x[:-1]) + tr.sum(tr.cumsum(x @ x, axis=0)), (N, N))
    assert not f.requires and not f.clamps


def test_an_element_requires_that_there_is_one() -> None:
    f = lowered(picked, (N,))
    assert f.accepts({"n": 1}) and not f.accepts({"n": 0}) and not f.clamps


def test_an_element_of_each_row_requires_one_only_where_there_are_rows() -> None:
    f = lowered(lambda x, i: tr.vmap(lambda row: row[i])(x) * 2.0, (N, M))
    assert f.accepts({"n": 0, "m": 1}) and f.accepts({"n": 1, "m": 1}) and not f.accepts({"n": 1, "m": 0})


def test_a_loop_requires_elements_only_where_it_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    def f(x: Any, y: Any, i: Any) -> Any:
        return tr.scan(lambda c, r: (c + y[i] * r, None), tr.asarray(0.0), x)[0]

    with monkeypatch.context() as m:
        m.setattr("tenferro_runtime.lowering._lower.relied_on", lambda program: ())
        nests = lowered(f, (N,), (M,))
    assert nests.accepts({"n": 0, "m": 0}) and nests.accepts({"n": 2, "m": 1}) and not nests.accepts({"n": 2, "m": 0})


def permuted(order: Any = None) -> LoopFunction:
    """Copy pairs of elements of X, at given positions, into pairs of OUT."""
    pair = For(
        J,
        2,
        (Load(V, X, Affine.of(K) + J), Store(OUT, Affine.of(I) * 2 + J, Reg(3, F8))),
        order=order or For(J, 2, ()).order,
    )
    body = For(I, M, (Load(K, KEYS, Affine.of(I)), pair))
    return LoopFunction(("n", "m"), (X, KEYS), (OUT,), (), (), (body,))


def test_positions_from_memory_are_clamped_outside_of_the_inner_loop() -> None:
    f = verify(bound_accesses(permuted()))
    (outer,) = f.body
    assert len(f.clamps) == 1
    clamping = [s for s in outer.body if not isinstance(s, For)]
    assert f.clamps <= {s.result.number for s in clamping if hasattr(s, "result")}
    assert [s.__class__.__name__ for s in everything(f.body) if isinstance(s, For)] == ["For", "For"]


def test_clamps_change_nothing_inside_and_never_leave_the_buffer() -> None:
    f, x = bound_accesses(permuted()), np.arange(5.0)
    inside = interpret(f, [x, np.array([3, 0, 1])], (5, 3))[0]
    np.testing.assert_array_equal(inside, [[3, 4], [0, 1], [1, 2]])
    outside = interpret(f, [x, np.array([-7, 4, 2**62])], (5, 3))[0]
    np.testing.assert_array_equal(outside, [[0, 1], [3, 4], [3, 4]])
    assert f.accepts({"n": 2, "m": 1}) and f.accepts({"n": 0, "m": 0}) and not f.accepts({"n": 1, "m": 1})


def test_a_position_is_clamped_as_a_whole_where_its_parts_vary_together() -> None:
    """A neighbour on the side that memory names, as of the pairs of complex eigenvalues: no part alone has a bound."""
    body = For(I, M, (Load(K, KEYS, Affine.of(I)), Load(V, X, Affine.of(K) + I), Store(OUT, Affine.of(I) * 2, V)))
    f = verify(bound_accesses(LoopFunction(("n", "m"), (X, KEYS), (OUT,), (), (), (body,))))
    found = interpret(f, [np.arange(4.0), np.array([1, -1, 1, -1])], (4, 4))[0]
    np.testing.assert_array_equal(found[:, 0], [1, 0, 3, 2])
    inner = For(J, 2, (Load(V, X, Affine.of(K) + J), Store(OUT, Affine.of(I) * 2 + J, V)))
    either = Switch(J, (Case(()), Case((Load(V, X, Affine.of(K) - J), Store(OUT, Affine.of(I) * 2 + J, V)))))
    for s in (inner, For(J, 2, (either,))):
        body = For(I, M, (Load(K, KEYS, Affine.of(I)), s))
        f = LoopFunction(("n", "m"), (X, KEYS), (OUT,), (), (), (body,))
        given = [np.arange(4.0), np.array([1, 2, 1])]
        for got, want in zip(
            interpret(verify(bound_accesses(f)), given, (4, 3)), interpret(f, given, (4, 3)), strict=True
        ):
            np.testing.assert_array_equal(got, want)


def test_a_view_at_a_position_from_memory_is_refused() -> None:
    result = Buffer(2, F8, (2,), Role.OUTPUT)
    call = Call(
        catalog.neg.op(),
        (View(X, Affine.of(K), (2,), (1,)),),
        (View(result, Affine(), (2,), (1,)),),
        (tr.Spec((2,), F8),),
    )
    f = LoopFunction(("n", "m"), (X, KEYS), (result,), (), (), (Load(K, KEYS, Affine()), call))
    with pytest.raises(UnsupportedError, match="is not lowered to loops: .* may leave"):
        bound_accesses(f)


def test_a_window_fits_the_slice_that_it_is_read_from() -> None:
    """In a branch, which asks nothing of the sizes when it is traced: the memory around the slice is no part of it."""

    def f(x: Any, i: Any) -> Any:
        return tr.cond(i > 1, lambda rest: 0.0, lambda rest: rest[i] * 2.0, x[1:])

    nests = lowered(f, (N,))
    assert nests.accepts({"n": 2}) and not nests.accepts({"n": 1}) and not nests.accepts({"n": 0})
