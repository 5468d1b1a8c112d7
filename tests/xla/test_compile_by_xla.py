"""`compile(f, backend="xla")` and compiled functions of values on XLA's devices: all that tenferro has, by XLA."""

import re
from typing import Any

import hypothesis
import numpy as np
import pytest

import tenferro_einsum as te
import tenferro_fft as tf
import tenferro_linalg as tl
import tenferro_runtime as tr
import tenferro_xla
from random_programs import random_functions, same
from simulated.installed import simulated
from tenferro_ad import grad, hessian, jvp
from tenferro_runtime.compilers import ProgramCompiler
from tenferro_runtime.extension import REGISTRY, Spec, primitive
from tenferro_tensor_core import (
    AxisError,
    BackendUnavailableError,
    NumericalError,
    PlacementError,
    RegistryError,
    ShapeError,
    UnsupportedError,
)
from tenferro_xla import XlaCompiler, lower_to_stablehlo
from tenferro_xla._at_host import at_host
from tenferro_xla._constants import passed

HOME = "xla:cpu:0"
RNG = np.random.default_rng(0)
A = RNG.standard_normal((3, 3)) + 3 * np.eye(3)
V = RNG.standard_normal(6)


def many(a, v):
    """One program of every kind of operation: a compilation costs more than they do."""
    key = tr.random.key(7)
    return [
        tl.solve(a, v[:3]), tl.svdvals(a), tl.eigh(a + a.mT).eigenvalues, tl.slogdet(a).logabsdet,
        tr.abs(tf.fft(v)), tf.irfft(tf.rfft(v) * 2.0, n=6), te.einsum("ij,jk,k->i", a, a, v[3:]),
        tr.scan(lambda c, t: (c * 0.5 + t, c), v[0], v)[1],
        tr.while_loop(lambda c: tr.sum(c) < 100.0, lambda c: c * 2.0, tr.abs(v)),
        tr.cond(v[0] > 0, lambda x: x * 2.0, lambda x: x - 1.0, v),
        tr.fori_loop(0, 5, lambda i, c: c * 1.1 + v, v),
        tr.special.gammaln(tr.abs(v) + 0.5), tr.erf(v), tr.sort(v), tr.argsort(v), v[::-1], tr.where(v > 0, v, 0.0),
        tr.random.uniform(key, (4,)), tr.random.normal(key, (4,)), tr.cumulative_sum(v), (v * 1j + 1).imag,
    ]  # fmt: skip


def test_everything_in_one_program():
    a, v = tr.asarray(A), tr.asarray(V)
    want = tr.compile(many)(a, v)
    for got, w in zip(tr.compile(many, backend="xla")(a, v), want, strict=True):
        assert got.spec is w.spec
        np.testing.assert_allclose(got.numpy(), w.numpy(), rtol=1e-10, atol=1e-12)


def loss(a, v):
    return tr.sum((a @ tr.sin(v)) ** 2) + tr.sum(tr.cumulative_sum(v * tr.exp(-v)))


def test_gradients_in_both_orders_of_composition():
    a, v = tr.asarray(A), tr.asarray(V[:3])
    want = grad(loss, argnums=(0, 1))(a, v)
    f = tr.compile(loss, backend="xla")
    placed = tr.compile(grad(loss, argnums=(0, 1)))
    ways: dict[str, Any] = {
        "grad(compile)": lambda a, v: grad(f, argnums=(0, 1))(a, v),
        "compile(grad)": tr.compile(grad(loss, argnums=(0, 1)), backend="xla"),
        "compile on the place": lambda a, v: placed(a.to_device(HOME), v.to_device(HOME)),
    }
    for name, way in ways.items():
        for got, w in zip(way(a, v), want, strict=True):
            assert str(got.device) == (HOME if name.endswith("place") else "cpu:0")
            np.testing.assert_allclose(got.numpy(), w.numpy(), rtol=1e-9, atol=1e-12)
    push = jvp(f, (a, v), (a, v))[1]
    np.testing.assert_allclose(float(push), float(jvp(loss, (a, v), (a, v))[1]), rtol=1e-9)


def test_second_derivatives_and_batches():
    def f(v):
        return tr.sum(tr.sin(v) * v[::-1] ** 2)

    g, v = tr.compile(f, backend="xla"), tr.asarray(V[:3])
    np.testing.assert_allclose(hessian(g)(v).numpy(), hessian(f)(v).numpy(), rtol=1e-10, atol=1e-12)
    rows = tr.asarray(V.reshape(2, 3))
    np.testing.assert_allclose(tr.vmap(g)(rows).numpy(), tr.vmap(f)(rows).numpy(), rtol=1e-12)
    np.testing.assert_allclose(tr.vmap(grad(g))(rows).numpy(), tr.vmap(grad(f))(rows).numpy(), rtol=1e-12)


def test_results_stay_on_the_device_and_new_sizes_are_no_new_traces():
    f = tr.compile(lambda x: tr.sum(x * x, axis=0))
    for n in (2, 3, 2):
        x = tr.ones((n, 2), device=HOME)
        with tr.no_transfers():
            y = f(x)
        assert (str(y.device), y.tolist()) == (HOME, [float(n)] * 2)
    assert f.cache_info().traces == 1
    form = f.explain(x).form
    assert "runs as one executable of xla:cpu:0" in form
    assert "compiled for 2 of at most 32 sizes: n0 = 3, n1 = 2; n0 = 2, n1 = 2" in form
    near = f(tr.ones((2, 2)))
    assert (str(near.device), f.cache_info().traces) == ("cpu:0", 2)


def test_pytrees_numbers_and_static_arguments():
    @tr.compile(backend="xla", static_argnames="power")
    def f(state, k, power=2):
        return {"x": state["x"] ** power * k, "n": state["n"] + 1, "seven": 7}

    state = {"x": tr.asarray([1.0, 2.0]), "n": tr.asarray(3)}
    out = f(state, 0.5)
    assert (out["x"].tolist(), int(out["n"]), out["seven"]) == ([0.5, 2.0], 4, 7)
    assert f(state, 2.0, power=3)["x"].tolist() == [2.0, 16.0]
    assert f.cache_info().traces == 2
    assert f(state, 3.0)["x"].tolist() == [3.0, 12.0]
    assert f.cache_info().traces == 2


@pytest.mark.parametrize("device", ["sim:1", HOME])
def test_numbers_follow_the_arrays_beside_them(device):
    with simulated():
        f = tr.compile(lambda x, k, c=1: {"y": x["x"] * k + c * x["n"]})
        x = {"x": tr.ones(2, device=device), "n": 2}
        with tr.no_transfers():
            got = [f(x, k)["y"] for k in (3.0, 4.0)]
        assert [(y.tolist(), str(y.device)) for y in got] == [([5.0, 5.0], device), ([6.0, 6.0], device)]
        assert f.cache_info().traces == 1
        half = tr.astype(x["x"], tr.float32)
        assert f({"x": half, "n": 2}, 3.0)["y"].dtype == tr.float32
        assert str(grad(lambda v: tr.sum(f({"x": v, "n": 2}, 3.0)["y"]))(x["x"]).device) == device


def test_large_constants_are_passed_and_not_written_into_modules():
    table = tr.asarray(np.arange(4096.0))

    @tr.compile(backend="xla")
    def f(x):
        return tl.solve(x, tr.sum(table * x[0, 0]) * tr.ones(2)) + table[:2]

    program = f.program(tr.eye(2))
    lowered, large = passed(at_host(program))
    assert [c.nbytes for c in large] == [8 * 4096]
    assert len(lower_to_stablehlo(lowered).text) < len(lower_to_stablehlo(program).text) - 50_000
    np.testing.assert_allclose(f(tr.eye(2)).numpy(), [8386560.0, 8386561.0])
    with pytest.raises(NumericalError, match="solve"):
        f(tr.ones((2, 2)))
    far = tr.asarray(np.arange(4096.0), device=HOME)
    assert float(tr.compile(lambda x: tr.sum(far) + x)(tr.asarray(1.0, device=HOME))) == 8386561.0


def test_donated_memory_reaches_xla():
    def step(x, g):
        return x - 0.5 * g

    f = tr.compile(step, donate=0)
    x, g = tr.ones(1000, device=HOME), tr.ones(1000, device=HOME)
    raw = x._data
    where = raw.unsafe_buffer_pointer()
    del raw
    y = f(x, g)
    assert y.data.unsafe_buffer_pointer() == where
    with pytest.raises(tr.DonatedError, match="step"):
        x + 1
    held = tr.ones(1000, device=HOME)
    alias = held[...]
    assert f(held, g).tolist()[:2] == [0.5, 0.5]
    assert alias.tolist()[:2] == [1.0, 1.0]
    assert tr.compile(lambda x: tr.sum(x), donate=0)(tr.ones(3, device=HOME)).tolist() == 3.0  # nothing fits into it
    near = tr.asarray(np.ones(3)) * 2.0
    assert tr.compile(step, donate=0, backend="xla")(near, tr.ones(3)).tolist() == [1.5] * 3
    with pytest.raises(tr.DonatedError):
        near + 1


def test_a_scope_compiles_what_is_called_in_it():
    f = tr.compile(lambda x: tr.exp(x) * 2)
    x = tr.asarray([0.0, 1.0])
    want = f(x)
    with tenferro_xla.compiled() as compiler:
        assert isinstance(compiler, ProgramCompiler)
        np.testing.assert_allclose(f(x).numpy(), want.numpy(), rtol=1e-15)
        assert "executable of xla;" in f.explain(x).form
        np.testing.assert_allclose(grad(lambda x: tr.sum(f(x)))(x).numpy(), want.numpy(), rtol=1e-15)
    with tenferro_xla.compiled("cpu:0"):
        assert "executable of xla:cpu:0;" in f.explain(x).form
    assert "xla" not in f.explain(x).form


def test_a_failure_is_that_of_the_cpu():
    singular = tr.ones((2, 2))
    with pytest.raises(NumericalError) as here:
        tl.inv(singular)
    said = str(here.value).partition(":")[0]
    inv = lambda a: tl.inv(a)
    for call in (
        lambda: tr.compile(inv, backend="xla")(singular),
        lambda: tr.compile(inv)(singular.to_device(HOME)),
        lambda: tl.inv(singular.to_device(HOME)),
    ):
        with pytest.raises(NumericalError, match=said):
            call()


def test_mistakes_are_named():
    x = tr.ones(3)
    sized = tr.compile(lambda x: tr.compress(x, x > 0), backend="xla")
    with pytest.raises(UnsupportedError, match=r"test_compile_by_xla.py:\d+\) depends on data"):
        sized(x)
    moved = tr.compile(lambda x: (x * 2).to_device(HOME), backend="xla")
    with pytest.raises(PlacementError, match=r"XLA runs a program on one device, but argument 0 is .*; result 0 is"):
        moved(x)
    around = tr.compile(lambda x: (x.to_device(HOME) * 2).to_device("cpu:0"), backend="xla")
    with pytest.raises(PlacementError, match=r"transfer .*test_compile_by_xla.py:\d+\) moves float64"):
        around(x)
    assert tr.compile(lambda x: (x.to_device(HOME) * 2).to_device("cpu:0"))(x).tolist() == [2.0] * 3  # by steps
    with pytest.raises(BackendUnavailableError, match="JAX has no 'tpu' devices here"):
        tr.compile(lambda x: x, backend="xla:tpu:0")
    far = XlaCompiler("cpu:0")
    far.device, far.name = tr.ComputeDevice("xla:cuda:0"), "xla:cuda:0"
    text = re.escape("xla:cuda:0 computes on its own memory, but argument 0 is float64[3]")
    with pytest.raises(PlacementError, match=text):
        tr.compile(lambda x: x * 2, backend=far)(x)
    with pytest.raises(PlacementError, match=re.escape("place the arguments with .to_device('xla:cuda:0')")):
        tr.compile(lambda x: x * 2, backend=far)(x.to_device(HOME))


EMPTY = {
    "element": (lambda x, i: x[i] * 2.0, AxisError),
    "update": (lambda x, i: x.at[i].set(7.0), AxisError),
    "window": (lambda x, i: tr.dynamic_slice(x, (i,), (1,)), ShapeError),
    "written window": (lambda x, i: tr.dynamic_update_slice(x, tr.ones((1,)), (i,)), ShapeError),
    "take": (lambda x, i: tr.take(x, tr.asarray([0, 1]) + i), AxisError),
    "lanes": (lambda x, i: tr.vmap(lambda row: row[i])(tr.outer(tr.ones(3), x)), AxisError),
    "loop": (lambda x, i: tr.fori_loop(0, 3, lambda k, c: c + x[k + i], tr.asarray(0.0)), AxisError),
    "gradient": (grad(lambda x, i: tr.sum(x[i] ** 2)), AxisError),
}


@pytest.mark.parametrize(
    ("name", "device"),
    [*[(n, "cpu:0") for n in EMPTY], *[(n, HOME) for n in ("element", "update", "window", "gradient")]],
)
def test_elements_of_empty_arrays_are_refused_as_eagerly(name, device):
    """After a trace at another size, too; XLA refused the module with a text of its own."""
    f, kind = EMPTY[name]
    compiled = tr.compile(f, backend="xla")
    i = tr.asarray(1, device=device)
    np.testing.assert_array_equal(compiled(tr.ones(4, device=device), i).numpy(), f(tr.ones(4), 1).numpy())
    for _ in range(2):
        for run in (f, compiled):
            with pytest.raises(kind):
                run(tr.ones(0, device=device), i)


def test_a_lowering_that_emits_nonsense_is_named():
    @primitive(family="tests.nonsense.v1")
    def nonsense(x: Spec) -> Spec:
        """Nothing that StableHLO has."""
        return x

    REGISTRY.lowering(nonsense, lambda e, xs, outs: e.op("no_such_operation", xs, outs[0]))
    with pytest.raises(RegistryError, match=r"(?s)a lowering emitted .*no_such_operation.*; look at lower_to"):
        tr.compile(lambda x: nonsense(x) + 1, backend="xla")(tr.ones(3))


@hypothesis.settings(max_examples=12, deadline=None)
@hypothesis.given(random_functions())
def test_random_functions_agree_with_the_cpu(f):
    with np.errstate(all="ignore"):
        want = f(*f.inputs)
        near = tr.compile(f, backend="xla")(*f.inputs)
    for got, w in zip(near, want, strict=True):
        same(got, w, rtol=2e-5)
