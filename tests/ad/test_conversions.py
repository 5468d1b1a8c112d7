"""No derivative is lost in silence: every way out of a differentiated value, under every transform, for every dtype."""

import cmath
import copy
import math
import pickle
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tenferro_runtime as tr
from tenferro_ad import (
    check_grads,
    grad,
    hessian,
    hvp,
    jacfwd,
    jacrev,
    jvp,
    laplacian,
    linearize,
    no_grad,
    taylor,
    value_and_grad,
    variable,
    vjp,
)
from tenferro_tensor_core import GradientError, TracingError

Convert = Callable[[Any], Any]

LOSING: dict[str, Convert] = {
    "float": lambda y: float(y[0]),
    "int": lambda y: int(y[0]),
    "item": lambda y: y[0].item(),
    "tolist": lambda y: y.tolist(),
    "tolist of a number": lambda y: y[0].tolist(),
    "math.sin": lambda y: math.sin(y[0]),
    "np.float64": lambda y: np.float64(y[0]),
    "np.complex128": lambda y: np.complex128(y[0]),
    "np.asarray": np.asarray,
    "np.array": np.array,
    "np.array of elements": lambda y: np.array([y[0], y[1]]),
    "numpy": lambda y: y.numpy(),
    "from_dlpack": np.from_dlpack,
    "deepcopy": copy.deepcopy,
    "pickle": pickle.dumps,
    "percent": lambda y: "%f" % y[0],  # noqa: UP031 - the operator is what is tested
    "sum of floats": lambda y: sum(float(v) for v in y),
    "arange": lambda y: tr.arange(y[0], 4.0),
}
"""Ways to floats and integers, and to what is made of them."""

OF_REAL = {"float", "int", "math.sin", "np.float64", "percent", "arange", "sum of floats"}

KEEPING: dict[str, Convert] = {
    "branch": lambda y: 1 if tr.real(y[0]) > 0 else 2,
    "truth": lambda y: bool(y[0]),
    "assertion": lambda y: None if tr.real(y[0]) < tr.real(y[1]) and not y[0] == y[1] else 1,
    "complex": lambda y: complex(y[0]),
    "complex of a real number": lambda y: complex(tr.real(y[0])),
    "cmath.sin": lambda y: cmath.sin(y[0]),
    "int of a rounded number": lambda y: int(tr.floor(tr.real(y[0]))),
    "integer of a constant": lambda y: int(tr.stop_gradient(tr.real(y[0]))),
    "index": lambda y: tr.arange(9)[tr.cast(y[0], tr.int64)],
    "range": lambda y: list(range(tr.cast(y[0], tr.int64))),
    "item of integers": lambda y: tr.cast(y, tr.int64).tolist() + [tr.argmax(tr.real(y)).item()],
    "item of booleans": lambda y: tr.isfinite(y).tolist(),
    "float of an integer": lambda y: float(tr.sum(tr.isfinite(y))),
    "membership": lambda y: 1.0 in y,
    "text": lambda y: f"{y} {y[0]!r} {y[0]:.3f}",
    "format": lambda y: format(y[0], ".3e"),
    "detached": lambda y: float(tr.real(y[0]).detach()),
    "stopped": lambda y: math.sin(tr.stop_gradient(tr.real(y[0]))),
    "shape": lambda y: (len(y), y.shape, y.ndim, float(y.size)),
}
"""Ways to truth values, to text, to complex numbers to look at, and to what is meant to be a constant."""

X = {"float64": [1.5, 2.5], "float32": [1.5, 2.5], "complex128": [1.5 + 1j, 2.5], "complex64": [1.5 + 0.5j, 2.5]}


def _loss(convert: Convert, met: list[Any]) -> Callable[[Any], Any]:
    def loss(x: Any) -> Any:
        met.append(convert(x * 1.0))
        return tr.sum(tr.real(x) * 3.0)

    return loss


def _ones(x: Any) -> Any:
    return tr.ones_like(x)


TRANSFORMS: dict[str, Callable[[Callable[[Any], Any], Any], Any]] = {
    "grad": lambda f, x: grad(f)(x),
    "value_and_grad": lambda f, x: value_and_grad(f)(x),
    "vjp": lambda f, x: vjp(f, x),
    "jvp": lambda f, x: jvp(f, (x,), (_ones(x),)),
    "linearize": lambda f, x: linearize(f, x),
    "jacrev": lambda f, x: jacrev(f)(x),
    "jacfwd": lambda f, x: jacfwd(f)(x),
    "hvp": lambda f, x: hvp(f, (x,), (_ones(x),)),
    "grad of grad": lambda f, x: grad(lambda a: tr.sum(tr.real(grad(f)(a))))(x),
    "jvp of grad": lambda f, x: jvp(grad(f), (x,), (_ones(x),)),
    "grad of jvp": lambda f, x: grad(lambda a: tr.real(jvp(f, (a,), (_ones(x),))[1]))(x),
    "hessian": lambda f, x: hessian(f)(x),
    "taylor": lambda f, x: taylor(f, (x,), ([_ones(x), _ones(x)],)),
    "laplacian": lambda f, x: laplacian(f)(x),
    "grad from outside": lambda f, x: grad(lambda a: f(x * tr.sum(tr.real(a))))(tr.asarray([1.0])),
    "grad of a variable": lambda f, x: grad(f)(variable(x)),
}
REAL_ONLY = {"hessian", "hvp", "jvp of grad", "grad of jvp", "grad of grad", "taylor", "laplacian"}


def _operand(transform: str, dtype: str) -> Any:
    dtype = dtype.replace("complex128", "float64").replace("complex64", "float32") if transform in REAL_ONLY else dtype
    return tr.asarray(X[dtype], dtype=dtype)


@pytest.mark.parametrize("conversion", LOSING)
@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("dtype", X)
def test_a_conversion_that_would_cut_a_derivative_is_refused(conversion: str, transform: str, dtype: str) -> None:
    x = _operand(transform, dtype)
    convert = LOSING[conversion]
    if x.spec.dtype.kind == "c" and conversion in OF_REAL:
        convert = lambda y: LOSING[conversion](tr.real(y))
    with pytest.raises(GradientError, match=r"silently cut off its derivative; .*\.detach\(\) first") as caught:
        TRANSFORMS[transform](_loss(convert, []), x)
    if conversion not in ("deepcopy", "pickle"):
        assert re.search(r"test_conversions\.py:\d+", str(caught.value)), caught.value


@pytest.mark.parametrize("conversion", KEEPING)
@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("dtype", X)
def test_what_cuts_no_derivative_by_itself_stays_allowed(conversion: str, transform: str, dtype: str) -> None:
    x = _operand(transform, dtype)
    met: list[Any] = []
    convert = KEEPING[conversion]
    if transform in REAL_ONLY and conversion == "detached":
        convert = lambda y: float(tr.stop_gradient(y[0]))
    TRANSFORMS[transform](_loss(convert, met), x)
    plain = convert(x * 1.0)
    if conversion == "text":
        assert met[0].endswith(plain.split()[-1])
    elif hasattr(plain, "spec"):
        assert np.asarray(met[0]) == np.asarray(plain)
    else:
        assert met[0] == plain


@pytest.mark.parametrize("conversion", LOSING)
def test_a_compiled_function_names_tracing_first(conversion: str) -> None:
    """What has no elements has no numbers, whether a derivative would be lost or not."""
    with pytest.raises((TracingError, GradientError)):
        tr.compile(grad(_loss(LOSING[conversion], [])))(tr.asarray([1.5, 2.5]))
    with pytest.raises((TracingError, GradientError)):
        grad(tr.compile(_loss(LOSING[conversion], [])))(tr.asarray([1.5, 2.5]))


def test_variables_are_read_to_be_looked_at() -> None:
    """As in a training loop: no function is being differentiated, and `backward` comes of tensors alone."""
    w = variable([1.0, 2.0])
    loss = tr.sum(w * w)
    assert (float(loss), loss.item(), (w * 2).tolist(), f"{loss:.2f}") == (5.0, 5.0, [2.0, 4.0], "5.00")
    assert (int(loss), math.floor(loss), complex(loss)) == (5, 5, 5 + 0j)
    loss.backward()
    assert float(loss) == 5.0 and math.sqrt(loss) == math.sqrt(5.0)
    with pytest.raises(GradientError):
        np.asarray(loss)


def test_values_are_free_when_the_function_has_ended() -> None:
    kept: list[Any] = []

    def loss(x: Any) -> Any:
        kept.append(tr.sum(x * x))
        return kept[-1]

    for run in (lambda: grad(loss)(tr.ones(3)), lambda: jvp(loss, (tr.ones(3),), (tr.ones(3),))):
        run()
        assert float(kept[-1]) == 3.0 and kept[-1].tolist() == 3.0


def test_a_function_that_fails_has_ended_too() -> None:
    kept: list[Any] = []

    def broken(x: Any) -> Any:
        kept.append(x[0])
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        grad(broken)(tr.ones(3))
    assert float(kept[0]) == 1.0


def test_no_grad_allows_numbers() -> None:
    def loss(x: Any) -> Any:
        with no_grad():
            scale = float(tr.max(x)) + x[0].item() + x.tolist()[1]
        return tr.sum(x) * scale

    x = tr.asarray([1.0, 2.0])
    np.testing.assert_array_equal(np.asarray(grad(loss)(x)), [5.0, 5.0])
    np.testing.assert_array_equal(np.asarray(jvp(loss, (x,), (tr.ones(2),))[1]), 10.0)


def test_numbers_of_what_is_not_differentiated_stay_allowed() -> None:
    w, other = tr.asarray(3.0), variable(4.0)
    found = grad(lambda x: tr.sum(x) * float(w) * float(other) * math.sin(other))(tr.ones(2))
    np.testing.assert_allclose(np.asarray(found), 12.0 * math.sin(4.0))


def test_a_checked_function_is_refused_as_well() -> None:
    with pytest.raises(GradientError, match=r"float\(\) of an EagerTensor|float\(\) of a Dual"):
        check_grads(lambda x: tr.sum(x) * float(x[0]), (tr.ones(2),))


def test_only_the_inner_derivative_is_cut_by_an_inner_detach() -> None:
    def inner(y: Any, x: Any) -> Any:
        return y * float(y.detach())

    with pytest.raises(GradientError):  # the outer derivative passes through the value that was detached
        grad(lambda x: grad(inner)(x * 2.0, x))(tr.asarray(1.0))
    assert float(grad(inner)(tr.asarray(2.0), 1.0)) == 2.0
