"""Values on `xla:cpu:0`: bit by bit what was put there, computed on there, and moved only when that is asked for."""

import numpy as np
import pytest

import tenferro_runtime as tr
from tenferro_ad import grad, jvp
from tenferro_runtime.extension import REGISTRY, Spec, primitive
from tenferro_tensor import get_backend
from tenferro_tensor_core import (
    AmbiguousPlacementError,
    BackendUnavailableError,
    PlacementError,
    TransferForbiddenError,
    UnsupportedError,
)

HOME = "xla:cpu:0"
DTYPES = ["bool", "int8", "int32", "int64", "uint16", "uint64", "float16", "bfloat16", "float32", "float64",
          "complex64", "complex128"]  # fmt: skip


@pytest.mark.parametrize("shape", [(), (3,), (0, 2), (2, 2)])
def test_bits_stay_what_they_are(shape):
    for name in DTYPES:
        x = tr.asarray(np.arange(np.prod(shape, dtype=int)).reshape(shape) % 5 / 3, dtype=getattr(tr, name))
        there = x.to_device(HOME)
        assert str(there.device) == HOME
        assert (there.dtype, there.shape, str(there.data.dtype)) == (x.dtype, x.shape, name)
        back = there.to_device("cpu:0")
        assert back.spec is x.spec
        assert back.numpy().tobytes() == x.numpy().tobytes()


def test_a_copy_is_a_copy():
    memory = np.zeros(64 * 8, np.uint8)
    aligned = memory[-memory.ctypes.data % 64 :][: 16 * 8].view(np.float64)
    aligned[:] = 1.0
    x = tr.asarray(aligned, copy=False).to_device(HOME)
    aligned[:] = 2.0
    assert x.tolist() == [1.0] * 16
    y, z = x[...], x.copy()
    y[0] = 7.0
    assert (x.tolist()[0], y.tolist()[0], z.tolist()[0], str(y.device)) == (7.0, 7.0, 1.0, HOME)


def test_what_leaves_the_library():
    x = tr.asarray([1.0, 2.0], device=HOME)
    assert repr(x) == "Tensor([1., 2.])"
    assert str(x.spec) == "float64[2] at xla:cpu:0"
    with pytest.raises(PlacementError, match=r"would copy it to main memory; nothing is transferred implicitly"):
        np.asarray(x)
    assert np.from_dlpack(x).tolist() == [1.0, 2.0]
    assert float(x[1]) == 2.0
    import jax

    assert isinstance(x.data, jax.Array)
    assert not jax.config.jax_enable_x64


def test_transfers_are_logged_and_can_be_forbidden():
    x = tr.asarray([1.0, 2.0])
    with tr.transfers() as log:
        (x.to_device(HOME) * 2).to_device("cpu:0")
    assert {(row.source, row.target, row.nbytes) for row in log.rows} == {("host", HOME, 16), (HOME, "host", 16)}
    with tr.no_transfers(), pytest.raises(TransferForbiddenError):
        x.to_device(HOME)


def test_places_are_not_mixed():
    x = tr.asarray([1.0, 2.0])
    text = r"operand 0: float64\[2\] in xla:cpu:0 memory[^$]*operand 1: float64\[2\] in host memory"
    for f in (lambda a, b: a + b, tr.compile(lambda a, b: a + b), tr.compile(lambda a, b: a + b, backend="xla")):
        with pytest.raises(AmbiguousPlacementError, match=text):
            f(x.to_device(HOME), x)


def test_devices_by_name():
    assert [str(d) for d in get_backend("xla:cpu").devices()][:1] == [HOME]
    assert HOME in map(str, tr.__array_namespace_info__().devices())
    assert "jax" in tr.show_config("dict")["backends"]["xla:cpu"]
    for name, text in (
        ("xla:cpu:99", "no device xla:cpu:99; JAX has"),
        ("xla:abacus:0", "JAX has no 'abacus' devices here"),
        ("xla:0", "the name of an XLA device includes its platform: use 'xla:cpu:0'"),
    ):
        with pytest.raises(BackendUnavailableError, match=text):
            tr.ones(2, device=name)


def eager(x, y):
    """A tour of operations that take different ways to their kernels."""
    z = x + y[:, None] * 2
    i = tr.astype(z > 0, tr.int32) + 1
    return [
        z, i, 2.0**x, tr.sum(z, axis=0), tr.argsort(y), x[0, ::-1], x[:, 1] @ y, tr.concat([x, x], axis=1), x * 1j,
        tr.arange(3, device=x.device), tr.full((2,), 7, device=x.device), tr.linalg.inv(x[:, :2]), x.at[0].set(3.0),
        tr.take(y, tr.asarray([1, 0], device=x.device)), tr.astype(x, tr.float32) * 1.5,
    ]  # fmt: skip


def test_operations_one_by_one():
    x, y = np.random.default_rng(0).standard_normal((2, 3)), np.asarray([0.5, -1.5])
    near = eager(tr.asarray(x), tr.asarray(y))
    far = eager(tr.asarray(x, device=HOME), tr.asarray(y, device=HOME))
    for here, there in zip(near, far, strict=True):
        assert str(there.device) == HOME
        assert there.dtype == here.dtype
        np.testing.assert_allclose(there.numpy(), here.numpy(), rtol=1e-13, atol=1e-13)


def test_derivatives_of_single_operations():
    def f(x):
        return tr.sum(tr.sin(x) * x[::-1])

    x = tr.asarray([0.5, 1.0, 2.0])
    there = x.to_device(HOME)
    g = grad(f)(there)
    assert str(g.device) == HOME
    np.testing.assert_allclose(g.numpy(), grad(f)(x).numpy())
    np.testing.assert_allclose(float(jvp(f, (there,), (there,))[1]), float(jvp(f, (x,), (x,))[1]))


@primitive(family="tests.unlowered.v1")
def unlowered(x: Spec) -> Spec:
    """Twice the operand."""
    return x


def test_an_operation_without_a_lowering_is_named():
    x = tr.asarray([[1.0, 2.0], [3.0, 4.0]], device=HOME)
    REGISTRY.kernel(unlowered, "cpu", lambda ins, outs: lambda x: 2 * x)
    with pytest.raises(UnsupportedError, match=r"unlowered .*has no StableHLO lowering"):
        unlowered(x)
    with tr.host_fallback(), tr.transfers() as log:
        twice = unlowered(x)
    np.testing.assert_allclose(twice.numpy(), [[2.0, 4.0], [6.0, 8.0]])
    assert (log.count, log.nbytes) == (2, 64)
    f = tr.compile(lambda x: unlowered(x + 1) * 2)
    with pytest.raises(UnsupportedError, match=r"unlowered .*has no StableHLO lowering"):
        f(x)
    with tr.host_fallback():
        assert f(x).tolist() == [[8.0, 12.0], [16.0, 20.0]]
    with pytest.raises(UnsupportedError, match=r"unlowered .*has no StableHLO lowering"):
        f(x)
    with pytest.raises(UnsupportedError, match="unlowered"), tr.host_fallback():
        tr.compile(lambda x: unlowered(x + 1) * 2, backend="xla")(x)
