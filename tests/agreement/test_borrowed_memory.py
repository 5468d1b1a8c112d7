"""Memory that a caller shares: what it writes there later reaches no derivative and no program."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import tenferro_runtime as tr
from tenferro_ad import checkpoint, grad, jacfwd, jacrev, jvp, linearize, value_and_grad, variable, vjp
from tenferro_einsum import einsum, plan
from tenferro_runtime.running import fusion
from tenferro_tensor import tensor
from tenferro_tensor_core import ArgumentError
from thorough import tries

pytestmark = pytest.mark.optimised

DTYPES = ("bool", "int8", "uint16", "int32", "int64", "float32", "float64", "complex64", "complex128")
LAYOUTS: dict[str, Callable[[np.ndarray[Any, Any]], np.ndarray[Any, Any]]] = {
    "as it is": lambda a: a,
    "fortran": np.asfortranarray,
    "reversed": lambda a: a[::-1] if a.ndim else a,
    "strided": lambda a: np.repeat(a, 2, axis=-1)[..., ::2] if a.ndim else a,
    "transposed": lambda a: a.T,
    "broadcast": lambda a: np.broadcast_to(a[:1], a.shape) if a.ndim and a.shape[0] else a,
    "view of a matrix": lambda a: np.stack([a, a], -1)[..., 1],
    "read-only": lambda a: _locked(a.copy()),
    "byte-swapped": lambda a: a.astype(a.dtype.newbyteorder()),
    "subclass": lambda a: a.copy().view(np.recarray),
    "unaligned": lambda a: np.frombuffer(bytearray(b"x" + a.tobytes()), a.dtype, a.size, offset=1).reshape(a.shape),
}  # fmt: skip


def _locked(a: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    a.flags.writeable = False
    return a


def scribble(a: np.ndarray[Any, Any]) -> None:
    """Change the elements of an array, wherever they lie, and what it says of itself."""
    target: Any = a
    while isinstance(target.base, np.ndarray):
        target = target.base
    target.flags.writeable = True
    if isinstance(target.base, bytearray):
        target = np.frombuffer(target.base, np.uint8)
    target[...] = target + 1 if target.dtype != bool else ~target
    for attribute, value in (("shape", (a.size,)), ("strides", (0,) * a.ndim), ("dtype", np.uint8)):
        try:
            setattr(a, attribute, value)
        except (AttributeError, ValueError, TypeError, DeprecationWarning):
            continue


arrays = st.sampled_from(DTYPES).flatmap(
    lambda dtype: hnp.arrays(
        dtype, hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4), elements={"allow_nan": False}
    )
)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@settings(max_examples=tries(100, 400), deadline=None)
@given(a=arrays, layout=st.sampled_from(sorted(LAYOUTS)), copy=st.sampled_from([None, True]))
def test_a_shared_array_that_changes_leaves_spec_and_data_agreeing(a: Any, layout: str, copy: bool | None) -> None:
    a = LAYOUTS[layout](a)
    before = np.array(a, dtype=a.dtype.newbyteorder("="))
    x = tr.asarray(a, copy=copy)
    view, total = x[...], tr.sum(x) if x.dtype != np.bool_ else x
    np.testing.assert_array_equal(np.array(x), before)
    scribble(a)
    for y in (x, view, total):
        assert np.asarray(y).shape == y.shape == y.spec.shape and np.asarray(y).dtype == y.dtype
        assert np.array(y).tobytes() == np.array(y.data).tobytes()
    if copy:
        np.testing.assert_array_equal(np.array(x), before)


# ------------------------------------------------------------------------------------- derivatives


BOTH: dict[str, Callable[[Any, Any], Any]] = {
    "mul": lambda v, c: v * c,
    "mul from the left": lambda v, c: c * v,
    "div": lambda v, c: v / c,
    "div by": lambda v, c: c / v,
    "pow": lambda v, c: v**c,
    "pow of": lambda v, c: c**v,
    "add": lambda v, c: (v + c) ** 2,
    "matmul": lambda v, c: v @ c.T,
    "matmul from the left": lambda v, c: c.T @ v,
    "maximum": lambda v, c: tr.maximum(v, c) * v,
    "where": lambda v, c: tr.where(c > 1, v * v, v),
    "where of": lambda v, c: tr.where(v > 1.5, c * v, c),
    "clip": lambda v, c: tr.clip(v, c - 0.1, c + 0.1) * v,
    "einsum": lambda v, c: einsum("ij,kj,ik->", v, c, v @ v.T),
    "einsum of itself": lambda v, c: einsum("ij,ij,ij->i", c, v, v),
    "tensordot": lambda v, c: tr.tensordot(c, v, axes=1 if c.shape == (2, 2) else ((1,), (1,))),
    "concat": lambda v, c: tr.concat([c, v, c]) ** 3,
    "stack": lambda v, c: tr.stack([v, c]) * tr.stack([c, v]),
    "pad": lambda v, c: tr.pad(v, ((1, 1), (0, 0)), constant_values=2.0)[1:-1] * c,
    "view of a constant": lambda v, c: v[0] * c[1] + v[:, 0] @ c[:, 1],
    "reshaped constant": lambda v, c: tr.reshape(v, (-1,)) * tr.reshape(c, (-1,)),
    "broadcast constant": lambda v, c: v * tr.broadcast_to(c[:1], v.shape),
    "transposed constant": lambda v, c: v.T * c.T,
    "indices": lambda v, c: v[tr.astype(c[:, 0] * 0, tr.int64)] ** 2,
    "update": lambda v, c: v.at[0].multiply(c[0]) * v,
    "update of a constant": lambda v, c: tr.asarray(c).at[0].set(v[0]) * v,
    "solve": lambda v, c: tr.linalg.solve(c @ c.T + 5 * tr.eye(c.shape[0]), v),
    "scan": lambda v, c: tr.scan(lambda s, row: (s * row, s), v[0], tr.asarray(c))[0] * 1.0,
    "scan over a constant": lambda v, c: tr.scan(lambda s, row: (s * c[0] * row, s), v[0], v)[1],
    "cond": lambda v, c: tr.cond(True, lambda a: a * c, lambda a: a, v),
    "while_loop": lambda v, c: tr.scan(lambda s, _: (s * tr.asarray(c), None), v, None, length=3)[0],
    "compiled": lambda v, c: tr.compile(lambda a, b: tr.exp(a * b) * b)(v, c),
    "compiled over a constant": lambda v, c: tr.compile(lambda a: tr.exp(a * c) * c)(v),
    "checkpoint": lambda v, c: checkpoint(lambda a, b: tr.sin(a * b) * b)(v, c),
    "checkpoint over a constant": lambda v, c: checkpoint(lambda a: tr.sin(a * c) * c)(v),
    "sum of products": lambda v, c: tr.sum(v * c) ** 2,
    "real part": lambda v, c: v * tr.real(c) * tr.conj(c),
    "same value": lambda v, c: v * tr.astype(c, c.dtype, copy=False) * tr.asarray(c),
    "fft": lambda v, c: tr.abs(tr.fft.fft(v * c)) ** 2,
}  # fmt: skip
"""Functions of a differentiated matrix and of one that is shared."""

GIVEN: dict[str, Callable[[Any], Any]] = {
    "an array": lambda a: a,
    "a tensor": tr.asarray,
    "a view": lambda a: tr.asarray(a)[...],
    "DLPack": tr.from_dlpack,
    "a buffer": lambda a: tr.asarray(memoryview(a)),
    "a strided array": lambda a: np.repeat(a, 2, axis=1)[:, ::2],
    "a column": lambda a: tr.asarray(np.asfortranarray(a)),
}


def _backward(f: Any, v: Any, c: Any, change: Any) -> Any:
    x = variable(v)
    y = f(x, c)
    y = tr.sum(y * y)
    change()
    y.backward()
    return x.grad


def _vjp(f: Any, v: Any, c: Any, change: Any) -> Any:
    y, pull = vjp(lambda a: f(a, c), v)
    one = tr.ones(y.shape, dtype=y.dtype)
    change()
    return pull(2.0 * y * one)[0]


def _linearize(f: Any, v: Any, c: Any, change: Any) -> Any:
    _, push = linearize(lambda a: tr.sum(f(a, c) ** 2), v)
    change()
    rows = [push(np.eye(v.size)[i].reshape(v.shape)) for i in range(v.size)]
    return tr.reshape(tr.stack(rows), v.shape)


_compiled = cache(tr.compile)


def _compiled_vjp(f: Any, v: Any, c: Any, change: Any) -> Any:
    return _vjp(_compiled(f), v, c, change)


def _compiled_backward(f: Any, v: Any, c: Any, change: Any) -> Any:
    return _backward(_compiled(f), v, c, change)


SWEEPS = {
    "backward": _backward,
    "vjp": _vjp,
    "linearize": _linearize,
    "vjp of compiled": _compiled_vjp,
    "backward of compiled": _compiled_backward,
}
V = np.array([[1.2, 0.7, 1.9], [2.1, 1.6, 0.9]])
C = np.array([[0.8, 1.4, 1.1], [1.3, 0.6, 2.2]])


@pytest.mark.parametrize("sweep", SWEEPS)
@pytest.mark.parametrize("name", BOTH)
@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
def test_arrays_that_change_between_the_two_runs(name: str, sweep: str) -> None:
    f, differentiated = BOTH[name], SWEEPS[sweep]
    want = np.array(differentiated(f, V.copy(), C.copy(), lambda: None))
    for how, given_as in GIVEN.items():
        for _ in range(2):  # fast paths know the operation the second time
            v, a = V.copy(), C.copy()
            c = given_as(a)
            shared = c if isinstance(c, np.ndarray) else a

            def change(v: Any = v, a: Any = a, shared: Any = shared) -> None:
                v -= 0.5
                a[...] = 17.0
                shared[...] = -3.0

            try:
                got = np.array(differentiated(f, v, c, change))
            except TypeError:
                break  # NumPy's arrays have not all the methods that the function calls
            np.testing.assert_allclose(got, want, rtol=1e-12, err_msg=how)


def test_parameters_updated_in_place_between_forward_and_backward() -> None:
    p = np.array([1.0, 2.0])
    x = variable(p)
    y = tr.sum(x * x)
    p -= 0.5
    y.backward()
    assert x.grad.tolist() == [2.0, 4.0] and x.detach().tolist() == [1.0, 2.0]


def test_cotangents_are_not_gradients() -> None:
    cotangent, x = np.ones(2), variable(np.ones(2))
    _, pull = vjp(lambda v: v + 1.0, np.ones(2))
    y = x + 1.0
    first = pull(cotangent)[0]
    y.backward(cotangent, retain_graph=True)
    y.backward(tr.asarray(cotangent))
    cotangent[:] = 7
    assert first.tolist() == [1.0, 1.0] and x.grad.tolist() == [2.0, 2.0]


def test_a_gradient_that_is_set_is_not_the_array_it_was_set_to() -> None:
    a, x = np.ones(2), variable(np.ones(2))
    x.grad = tr.asarray(a)
    a[:] = 5
    assert x.grad.tolist() == [1.0, 1.0]


def test_a_tensor_that_is_kept_copies_once() -> None:
    a = np.array([1.0, 2.0])
    c = tr.asarray(a)
    assert np.shares_memory(c.data, a)
    y = variable(np.ones(2)) * c
    mine = c.data
    assert not np.shares_memory(mine, a)
    variable(np.ones(2)) * c
    assert np.shares_memory(c.data, mine)
    tr.sum(y).backward()
    d = tr.asarray(a)
    variable(np.ones(2)) + d
    assert np.shares_memory(d.data, a)  # a sum needs no operand for its derivative


def test_views_and_results_own_their_memory() -> None:
    x = tr.ones((3, 4)) * 2.0
    for y in (x, x[1:], x.T, tr.broadcast_to(x, (200, 3, 4)), tr.reshape(x, (4, 3)), tr.sum(x)):
        raw = y._data
        variable(np.ones(y.shape)) * y
        assert y._data is raw


@pytest.mark.parametrize("run", ["grad", "value_and_grad", "jvp", "jacrev", "jacfwd"])
def test_transforms_of_functions_that_write_to_their_surroundings(run: str) -> None:
    """The array is changed inside of the function, between the value and the derivative."""
    p = np.array([1.0, 2.0, 3.0])

    def f(v: Any) -> Any:
        y = v * v * tr.asarray([1.0, 1.0, 1.0])
        p[:] = 0.0
        return tr.sum(y)

    got = {
        "grad": lambda: grad(f)(p),
        "value_and_grad": lambda: value_and_grad(f)(p)[1],
        "jvp": lambda: jvp(f, (p,), (np.ones(3),))[1],
        "jacrev": lambda: jacrev(f)(p),
        "jacfwd": lambda: jacfwd(f)(p),
    }[run]()
    want = 12.0 if run == "jvp" else [2.0, 4.0, 6.0]
    assert got.tolist() == want


# --------------------------------------------------------------------------------------- programs


@pytest.mark.parametrize("given_as", GIVEN)
def test_constants_of_programs_are_what_they_were_when_it_was_traced(given_as: str) -> None:
    a = C.copy()
    c = GIVEN[given_as](a)
    shared = c if isinstance(c, np.ndarray) else a
    compiled, program = tr.compile(lambda v: (v * c, c[0] + v[0])), tr.trace(lambda v: v * c, V)
    in_loop = tr.compile(lambda v: tr.scan(lambda s, row: (s + row * c[0], s), v[0], v))
    want = [np.array(x) for x in (*compiled(V), program.run(V)[0], in_loop(V)[1])]
    a[...], shared[...] = 9.0, 9.0
    for _ in range(3):
        for got, w in zip((*compiled(V), program.run(V)[0], in_loop(V)[1]), want, strict=True):
            np.testing.assert_array_equal(np.array(got), w)
        fusion.wait()


def test_a_donated_tensor_whose_exports_are_gone_is_written_over() -> None:
    step = tr.compile(lambda x, g: x - 0.1 * g, donate=0)
    x, g = tr.ones((40, 40)) * 1.0, tr.ones((40, 40))
    for _ in range(6):
        assert np.asarray(x).flags.writeable
        x = step(x, g)
        fusion.wait()
    at = x.data.ctypes.data
    x = step(x, g)
    assert x.data.ctypes.data == at
    held = np.asarray(x)
    was = held.copy()
    y = step(x, g)
    np.testing.assert_array_equal(held, was)
    np.testing.assert_array_equal(np.array(y), was - 0.1)


def test_donating_a_tensor_that_borrows_leaves_the_array_alone() -> None:
    step = tr.compile(lambda x, g: x - 0.1 * g, donate=0)
    a, g = np.ones((4, 4)), tr.ones((4, 4))
    for _ in range(4):
        step(tr.asarray(a), g)
        fusion.wait()
    assert (a == 1.0).all()


def test_results_into_an_array_of_the_callers() -> None:
    out = np.zeros((2, 2))
    y = plan("ij,kj->ik", V, C)(V, C, out=out)
    z = variable(np.ones((2, 2))) * y
    want = np.array(y)
    out[...] = 0
    tr.sum(z).backward()
    np.testing.assert_array_equal(np.array(y), want)


# ----------------------------------------------------------------------------------------- copies


COPIES: dict[str, Callable[[Any], Any]] = {
    "astype": lambda x: tr.astype(x, x.dtype),
    "astype with a copy": lambda x: tr.astype(x, x.dtype, copy=True),
    "method astype": lambda x: x.astype(x.dtype, copy=True),
    "reshape": lambda x: tr.reshape(x, (-1,), copy=True),
    "reshape to its shape": lambda x: tr.reshape(x, x.shape, copy=True),
    "asarray": lambda x: tr.asarray(x, copy=True),
    "asarray of its dtype": lambda x: tr.asarray(x, dtype=x.dtype, copy=True),
    "from_dlpack": lambda x: tr.from_dlpack(x, copy=True),
    "tensor": lambda x: tensor(x, copy=True),
    "copy": lambda x: x.copy(),
    "on a device": lambda x: tr.asarray(x, device="cpu:0", copy=True),
}


@settings(max_examples=tries(40, 120), deadline=None)
@given(a=arrays, name=st.sampled_from(sorted(COPIES)), layout=st.sampled_from(["as it is", "transposed", "strided"]))
def test_copies_have_memory_of_their_own(a: Any, name: str, layout: str) -> None:
    x = tr.asarray(LAYOUTS[layout](a))
    y = COPIES[name](x)
    assert y is not x and not np.shares_memory(np.asarray(y), np.asarray(x))
    np.testing.assert_array_equal(np.ravel(np.asarray(y)), np.ravel(np.asarray(x)))


@pytest.mark.parametrize("name", sorted(COPIES.keys() - {"tensor"}))
def test_copies_of_recorded_values(name: str) -> None:
    x = variable(V)
    y = COPIES[name](x)
    assert not np.shares_memory(y.detach().data, x.detach().data)
    tr.sum(y * y).backward()
    np.testing.assert_allclose(x.grad.numpy(), 2 * V)
    pushed = jvp(lambda v: COPIES[name](v), (V,), (C,))[1]
    np.testing.assert_array_equal(np.ravel(pushed.numpy()), np.ravel(C))
    compiled = tr.compile(lambda v: COPIES[name](v) * 2.0)
    np.testing.assert_array_equal(np.ravel(compiled(V).numpy()), np.ravel(2 * V))


def test_copies_that_are_forbidden() -> None:
    x = tr.asarray(V)
    assert np.shares_memory(tr.reshape(x, (3, 2), copy=False).data, V) and tr.asarray(x, copy=False) is x
    assert tr.astype(x, x.dtype, copy=False) is x
    with pytest.raises(ArgumentError, match=r"float64\[3, 2\] cannot be reshaped to \(6,\) without a copy, which"):
        tr.reshape(x.T, (6,), copy=False)
    with pytest.raises(ArgumentError, match=r"float64\[2, 3\] cannot become float32\[2, 3\] without a copy, which"):
        tr.asarray(x, dtype=tr.float32, copy=False)
