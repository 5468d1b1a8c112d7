"""What somebody writes through an export of a value changes that value and its views alone, whatever made it."""

import ctypes
import gc
import pickle
import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tenferro_runtime as tr
from array_cases import CASES, matrix
from tenferro_ad import (
    checkpoint,
    custom_rule,
    grad,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    linearize,
    value_and_grad,
    variable,
    vjp,
)
from tenferro_einsum import einsum, plan
from tenferro_runtime.extension import flatten
from tenferro_tensor import REGISTRY, Tensor, primitive, tensor
from tenferro_tensor.calls import kin
from tenferro_tensor_core import HostAdapterError
from thorough import tries
from windows import EXPORTS, Old, break_in

pytestmark = pytest.mark.filterwarnings("ignore:Numpy has detected that you", "ignore::numpy.exceptions.ComplexWarning")

X = matrix().copy()
X.flags.writeable = False  # what a NumPy array lends is as writable as that array


def leaves(tree: Any) -> list[Tensor]:
    return [x for x in flatten(tree)[0] if isinstance(x, Tensor)]


COPIES = {"array", "__array__ with a copy", "DLPack with a copy", "array of another dtype"}


def harmless(make: Any) -> None:
    """Writing through exports of what `make` returns changes neither the other results nor what it returns again."""
    first = leaves(make())
    assert first
    kept = [np.array(x) for x in first]
    for x in first:
        linked = kin(x)
        others = [(y, np.array(y)) for y in first if not any(y is v for v in linked)]
        assert not COPIES & {name.partition(",")[0] for name in break_in(x)}
        for y, was in others:
            np.testing.assert_array_equal(np.array(y), was)
    if any(len(kin(x)) > 1 for x in first):  # views of an operand, which was written to
        return
    for x, want in zip(leaves(make()), kept, strict=True):
        np.testing.assert_array_equal(np.array(x), want)


@pytest.mark.parametrize("way", ["eager", "compiled", "traced", "on a tensor"])
@pytest.mark.parametrize("name", sorted(CASES))
def test_results_of_array_functions(name: str, way: str) -> None:
    f, x = CASES[name].f, tr.asarray(X)
    if way == "eager":
        return harmless(lambda: f(tr.asarray(X)))
    if way == "on a tensor":
        return harmless(lambda: f(x))
    if way == "compiled":
        g = tr.compile(f)
        return harmless(lambda: g(x))
    program = tr.trace(f, x)
    return harmless(lambda: program.run(x))


@tr.compile
def constants(v: Any) -> Any:
    return v, tr.ones(3), tr.asarray(HOST), HOST_TENSOR, tr.zeros((2, 2))[0], tr.asarray(2.0), v + tr.arange(4.0)


HOST = np.arange(3.0)
HOST_TENSOR = tr.asarray(np.arange(5.0))
PROGRAM = tr.trace(lambda v: (v, tr.ones(3), tr.eye(2).T), tr.Spec((4,), tr.float64))
PLAN = plan("ij,jk->ik", X, X.T)
OUT = np.zeros((3, 3))
LEAF = variable(X)
_, PULL = vjp(lambda v: v * 2.0 + tr.ones((3, 4)), X)
_, PUSH = linearize(lambda v: v * tr.ones((3, 4)), X)
STEP = tr.compile(lambda s, g: s - 0.1 * g, donate=0)


@custom_rule(jvp=lambda primals, tangents, outs: (tangents[0],), infer=lambda x: x)
def passed(x: Any) -> Any:
    return x.numpy()


def leaf_gradient() -> Any:
    LEAF.grad = None
    tr.sum(LEAF * LEAF).backward()
    return LEAF.grad, LEAF.detach()


MAKERS = {
    "asarray": lambda: tr.asarray(X.copy()),
    "asarray of a copy": lambda: tr.asarray(X, copy=True),
    "asarray of a list": lambda: tr.asarray([1.0, 2.0]),
    "asarray of a strided array": lambda: tr.asarray(X.copy()[::2, ::-1]),
    "asarray of a read-only array": lambda: tr.asarray(np.broadcast_to(X.copy(), (2, 3, 4))),
    "from_dlpack": lambda: tr.from_dlpack(X.copy()),
    "a number": lambda: tr.asarray(1.5),
    "a sum": lambda: tr.sum(tr.asarray(X)),
    "a long broadcast": lambda: tr.broadcast_to(tr.arange(100.0), (100, 100)),
    "a large result": lambda: tr.ones((300, 300)) * 2.0,
    "a view of a large result": lambda: (tr.ones((300, 300)) * 2.0)[1:, ::2],
    "booleans": lambda: tr.asarray(X > 1),
    "complex numbers": lambda: tr.asarray(X + 1j).imag,
    "no elements": lambda: tr.zeros((0, 3)),
    "a copy": lambda: tr.asarray(X).copy(),
    "pickled": lambda: pickle.loads(pickle.dumps(tr.asarray(X))),
    "constants of a compiled function": lambda: constants(tr.ones(4)),
    "constants of a program": lambda: (PROGRAM.run(tr.ones(4)), list(PROGRAM.constants.values())),
    "an argument": lambda: tr.compile(lambda v: v)(HOST_TENSOR),
    "a NumPy argument": lambda: tr.compile(lambda v: (v, v))(np.arange(4.0)),
    "a view of a NumPy argument": lambda: tr.compile(lambda v: v[1:])(np.arange(4.0)),
    "twice the same": lambda: (lambda v: (v, v))(tr.ones(3)),
    "cond": lambda: tr.cond(True, lambda v: (v, HOST_TENSOR), lambda v: (v, HOST_TENSOR * 2.0), tr.ones(3)),
    "switch": lambda: tr.switch(1, [lambda v: tr.ones(3), lambda v: HOST_TENSOR[:3]], tr.ones(3)),
    "scan": lambda: tr.scan(lambda c, x: (c, (x, HOST_TENSOR)), tr.ones(2), tr.asarray(X)),
    "while_loop": lambda: tr.while_loop(lambda c: c[0] < 0, lambda c: c, (tr.asarray(1), HOST_TENSOR)),
    "checkpoint": lambda: checkpoint(lambda v: (v, tr.ones(2)))(tr.asarray(X.copy())),
    "grad": lambda: grad(lambda v: tr.sum(v))(X),
    "value_and_grad": lambda: value_and_grad(lambda v: tr.sum(v * v))(X),
    "backward": leaf_gradient,
    "vjp": lambda: PULL(X),
    "vjp of a tensor": lambda: PULL(HOST_TENSOR[:4] * tr.ones((3, 1))),
    "jvp": lambda: jvp(lambda v: v, (X.copy(),), (X.copy(),)),
    "linearize": lambda: PUSH(X),
    "jacobians": lambda: (jacfwd(lambda v: v * v)(X[0]), jacrev(lambda v: v * v)(X[0])),
    "hessian": lambda: hessian(lambda v: tr.sum(v**3))(X[0]),
    "einsum": lambda: (einsum("ij,ij->ij", X, X), einsum("ij->ji", X), einsum("ii->i", X[:, :3])),
    "a plan": lambda: PLAN(X, X.T),
    "linalg": lambda: (tr.linalg.svd(X), tr.linalg.qr(X), tr.linalg.inv(X[:, :3] + 9 * np.eye(3))),
    "fft": lambda: (tr.fft.fft(X), tr.fft.irfft(tr.fft.rfft(X))),
    "custom_rule": lambda: passed(tr.asarray(X)),
    "a donated argument": lambda: STEP(tr.asarray(X) * 1.0, tr.asarray(X)),
}


@pytest.mark.parametrize("name", MAKERS)
def test_whatever_makes_a_value(name: str) -> None:
    harmless(MAKERS[name])


@pytest.mark.slow
@settings(max_examples=tries(50, 150), deadline=None)
@given(names=st.lists(st.sampled_from(sorted(CASES)), min_size=1, max_size=4), data=st.data())
def test_chains_of_array_functions(names: list[str], data: Any) -> None:
    x: Any = tr.asarray(X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in names:
            try:
                x = CASES[name].f(x)
            except (TypeError, ValueError, IndexError):
                break
            if not isinstance(x, Tensor):
                break
            before = np.array(+x)
            held = +x
            break_in(x)
            np.testing.assert_array_equal(np.array(held), before)


def test_the_check_finds_a_window() -> None:
    open_array = X.copy()
    leaking = Tensor.wrap(open_array, tensor(X).spec)
    EXPORTS["leak"] = lambda t: open_array
    try:
        assert break_in(leaking) == ["leak"]
    finally:
        del EXPORTS["leak"]


def test_constants_that_were_written_to_through_an_export() -> None:
    f = tr.compile(lambda v: (v, tr.ones(3)))
    for _ in range(3):
        np.asarray(f(tr.ones(2))[1])[:] = 77
        assert f(tr.ones(2))[1].tolist() == [1.0, 1.0, 1.0]


def test_an_export_that_outlives_its_tensor() -> None:
    x = tr.ones((400, 400)) * 3.0
    seen = np.asarray(x)[1:]
    del x
    gc.collect()
    other = tr.ones((400, 400)) * 5.0
    assert (seen == 3.0).all() and float(other[0, 0]) == 5.0
    seen[...] = 7.0
    assert (np.asarray(other) == 5.0).all()


def test_dlpack_of_consumers_that_know_read_only_memory_and_of_others() -> None:
    x = tr.ones(3)
    for shared in (np.from_dlpack(x), np.from_dlpack(x, copy=False)):
        assert np.shares_memory(shared, x.data) and shared.flags.writeable
    assert np.shares_memory(np.from_dlpack(Old(x)), x.data)  # NumPy takes old capsules for read-only
    x = tr.ones(3)
    held = +x
    new = np.from_dlpack(x, copy=False)
    assert np.shares_memory(new, x.data) and not new.flags.writeable
    old = np.from_dlpack(Old(x))
    assert not np.shares_memory(old, x.data) and held.tolist() == [1.0, 1.0, 1.0]
    with pytest.raises(HostAdapterError, match=r"read-only memory, which .*; pass copy=None, or max_version=\(1, 0\)"):
        x.__dlpack__(copy=False)
    with pytest.raises(HostAdapterError, match="it has reversed axes; pass copy=None$"):
        x[::-1].__dlpack__(copy=False, max_version=(1, 0))
    assert np.from_dlpack(x, copy=True).flags.writeable


def test_np_array_is_the_callers_own() -> None:
    for x in (tr.ones(3), tr.sum(tr.ones(3)), tr.asarray(X), tr.ones((3, 4)).T):
        own = np.array(x)
        own[...] = 5
        assert own.flags.writeable and not np.shares_memory(own, x.data) and not (np.asarray(x) == 5).any()


# ---------------------------------------------------------------------------------------------- code of guests


@primitive
def scribbled(x: tr.Spec) -> tr.Spec:
    """A guest's primitive whose kernel writes to its operand."""
    return x


@primitive
def kept(x: tr.Spec) -> tr.Spec:
    """A guest's primitive whose kernel keeps its operand."""
    return x


def _scribble(x: Any) -> Any:
    x *= 2.0
    return x


KEPT: list[Any] = []


def _keep(x: Any) -> Any:
    KEPT.append(x)
    return x + 1.0


REGISTRY.kernel(scribbled, "cpu", lambda ins, outs: _scribble)
REGISTRY.kernel(kept, "cpu", lambda ins, outs: _keep)


@pytest.mark.parametrize("mode", [lambda f: f, tr.compile], ids=["eager", "compiled"])
def test_a_guests_kernel_cannot_write_to_its_operand(mode: Any) -> None:
    x = tr.asarray(X)
    with pytest.raises(ValueError, match="read-only"):
        mode(lambda v: scribbled(v + 1.0) * 2.0)(x)
    with pytest.raises(ValueError, match="read-only"):
        mode(scribbled)(x)
    np.testing.assert_array_equal(np.asarray(x), X)


def test_what_a_guests_kernel_keeps_is_not_written_over() -> None:
    f = tr.compile(lambda v: tr.exp((v + 1.0) * 0.5 + kept(v + 1.0) * 0.0 - 1.0))
    looped = tr.compile(lambda v: tr.scan(lambda c, _: (tr.tanh(c + kept(c)), None), v, None, length=3)[0])
    for g in (f, looped):
        KEPT.clear()
        want = np.array(g(tr.asarray(X)))
        first = [np.array(x) for x in KEPT]
        for _ in range(5):
            np.testing.assert_array_equal(np.asarray(g(tr.asarray(X))), want)
        for x, was in zip(KEPT, first, strict=False):
            np.testing.assert_array_equal(x, was)


def test_a_function_with_a_rule_may_reuse_its_buffer() -> None:
    buffer = np.zeros(3)

    @custom_rule(jvp=lambda primals, tangents, outs: (2.0 * primals[0] * tangents[0],), infer=lambda x: x)
    def squared(x: Any) -> Any:
        np.multiply(x.numpy(), x.numpy(), out=buffer)
        return buffer

    first, second = squared(np.ones(3)), squared(2 * np.ones(3))
    assert first.tolist() == [1.0] * 3 and second.tolist() == [4.0] * 3
    buffer[:] = 9
    assert first.tolist() == [1.0] * 3


def test_addresses_are_no_windows_of_ours() -> None:
    """Whoever goes by addresses has left Python's law: nothing is promised, and nothing is claimed."""
    x = tr.ones(2)
    ctypes.c_double.from_address(x.data.ctypes.data).value = 3.0
    assert x.tolist() == [3.0, 1.0]
