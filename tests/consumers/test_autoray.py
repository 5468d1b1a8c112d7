"""autoray on tensors: ``do`` finds the functions of the namespace for every kind of value, without registration."""

from collections.abc import Callable
from typing import Any

import autoray
import numpy as np
import pytest
from autoray import do

import tenferro_runtime as tr
from tenferro_ad import EagerTensor, grad, variable
from tenferro_tensor_core import GradientError

RNG = np.random.default_rng(2)
A = RNG.normal(size=(4, 4))

CALLS: dict[str, Callable[[Any], Any]] = {
    "sin": lambda x: do("sin", x),
    "sum": lambda x: do("sum", x, axis=0),
    "transpose": lambda x: do("transpose", x, (1, 0)),
    "reshape": lambda x: do("reshape", x, (2, -1)),
    "tensordot": lambda x: do("tensordot", x, x, ((1,), (0,))),
    "einsum": lambda x: do("einsum", "ij,kj->ik", x, x),
    "stack": lambda x: do("stack", (x, x)),
    "concatenate": lambda x: do("concatenate", (x, x), axis=1),
    "where": lambda x: do("where", x > 0, x, 0.0),
    "take": lambda x: do("take", x, np.array([0, 2]), axis=1),
    "clip": lambda x: do("clip", x, -0.5, 0.5),
    "squeeze": lambda x: do("squeeze", x[None]),
    "cumsum": lambda x: do("cumsum", x, axis=-1),
    "diag": lambda x: do("diag", x),
    "trace": lambda x: do("trace", x),
    "kron": lambda x: do("kron", x, x),
    "complex": lambda x: do("complex", x, x),
    "dag": autoray.dag,
    "astype": lambda x: autoray.astype(x, "complex128"),
    "eye": lambda x: x + do("eye", 4, like=x),
    "array": lambda x: x * do("array", [1.0, 2.0, 3.0, 4.0], like=x),
    "zeros": lambda x: x[0] + do("zeros", (3, 1), like=x),
    "norm": lambda x: do("linalg.norm", x),
    "norm of vectors": lambda x: do("linalg.norm", x, axis=0),
    "svd": lambda x: abs(do("linalg.svd", x[:, :2])[0]),  # signs are arbitrary
    "svd, wide": lambda x: abs(do("linalg.svd", x[:2])[2]),
    "qr": lambda x: do("linalg.qr", x[:, :2])[1],
    "eigh": lambda x: do("linalg.eigh", x + do("transpose", x))[0],
    "inv": lambda x: do("linalg.inv", x),
    "solve": lambda x: do("linalg.solve", x, x[0]),
    "allclose": lambda x: do("allclose", x, x + 1e-12),
}


@pytest.mark.parametrize("name", CALLS)
def test_functions_are_those_of_the_namespace_on_every_kind_of_value(name: str) -> None:
    call = CALLS[name]
    expected = call(A)
    concrete = call(tr.asarray(A))
    assert type(concrete) is tr.Tensor
    np.testing.assert_allclose(np.asarray(concrete), expected, atol=1e-12)
    np.testing.assert_allclose(np.asarray(tr.compile(call)(tr.asarray(A))), expected, atol=1e-12)
    recorded = call(variable(A))
    if np.asarray(expected).dtype.kind in "fc":
        assert isinstance(recorded, EagerTensor) and recorded.requires_grad
    np.testing.assert_allclose(np.asarray(recorded.detach()), expected, atol=1e-12)


def test_traced_values_alone_get_autoray_s_conventions() -> None:
    """In a process of its own this would be the first call; here the registration has to survive a repeated one."""
    shapes = [part.shape for part in tr.compile(lambda x: do("linalg.svd", x))(tr.ones((5, 2)))]
    assert shapes == [(5, 2), (2,), (2, 2)]
    assert tr.linalg.svd(tr.ones((5, 2)))[0].shape == (5, 5)


def test_arrays_of_different_kinds_go_together() -> None:
    x = variable(A)
    for pair in ((x, tr.asarray(A)), (tr.asarray(A), x), (A, x)):
        backend = autoray.infer_backend_multi(*pair)
        assert isinstance(do("multiply", *pair, like=backend), EagerTensor)


def test_namespaces_and_composed_functions_differentiate() -> None:
    @autoray.compose
    def spread(x: Any) -> Any:
        xp = autoray.get_namespace(x)
        return xp.sum(xp.exp(x - xp.max(x)))

    expected = np.exp(A - A.max())
    expected[np.unravel_index(A.argmax(), A.shape)] -= expected.sum()
    for of in (grad(spread), tr.compile(grad(spread))):
        np.testing.assert_allclose(np.asarray(of(tr.asarray(A))), expected, atol=1e-13)


def test_autojit_unravels_calls_on_tensors() -> None:
    f = autoray.autojit(lambda x, y: do("sum", do("tanh", x @ y)))
    x, y = tr.asarray(A), tr.asarray(A.T.copy())
    assert f(x, y).item() == pytest.approx(np.tanh(A @ A.T).sum())
    assert isinstance(grad(f)(x, y), tr.Tensor)


def test_gradients_stop_and_elements_are_refused_where_they_would_cut() -> None:
    x = tr.asarray(A)
    np.testing.assert_array_equal(np.asarray(grad(lambda x: do("sum", x * do("stop_gradient", x)))(x)), A)
    np.testing.assert_array_equal(do("to_numpy", x), A)
    with pytest.raises(GradientError, match="detach"):
        do("to_numpy", variable(A))


def test_packages_of_classes_answer_functions_and_no_modules_of_the_namespace() -> None:
    import tenferro_ad
    import tenferro_runtime.adapters.autoray
    import tenferro_tensor

    for package in (tenferro_tensor, tenferro_ad):
        assert package.sin is tr.sin and package.linalg is tr.linalg and package.einsum is tr.einsum
        with pytest.raises(AttributeError, match=f"module '{package.__name__}' has no attribute 'no_such_name'"):
            package.no_such_name
        with pytest.raises(AttributeError):
            package.tracing  # a module of tenferro_runtime
    assert getattr(tenferro_ad, "adapters", None) is not tenferro_runtime.adapters
