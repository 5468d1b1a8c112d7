"""NumPy under the names of the library: the oracle of a text is the same text over these namespaces.

Most functions have one name in both. Those below have another one, or are written here from their definition.
"""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


class Numpy:
    """A NumPy module, some functions of it replaced."""

    def __init__(self, module: Any, **own: Any) -> None:
        self._module = module
        self.__dict__.update(own)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._module, name)


def _special(name: str) -> Callable[..., Any]:
    def call(*args: Any) -> Any:
        import scipy.special

        return getattr(scipy.special, name)(*args)

    return call


def _real(x: Any) -> Any:
    return np.asarray(x).real


def _softmax(x: Any, axis: int = -1) -> Any:
    e = np.exp(x - np.max(x, axis=axis, keepdims=True))
    return e / np.sum(e, axis=axis, keepdims=True)


def _logsumexp(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    m = np.max(x, axis=axis, keepdims=True)
    total = np.log(np.sum(np.exp(x - m), axis=axis, keepdims=True)) + m
    return total if keepdims else np.squeeze(total, axis=axis)


def _floor_divide(x: Any, y: Any) -> Any:
    """With the quotient where a number is infinite, as the Array API standard has it; NumPy has NaN, or -1."""
    out = np.floor_divide(x, y)
    if out.dtype.kind == "f":
        with np.errstate(all="ignore"):
            out = np.where(np.isinf(x) | np.isinf(y), np.true_divide(x, y, dtype=out.dtype), out)
    return np.asarray(out)


def _sort(x: Any, axis: int = -1, descending: bool = False, stable: bool = True) -> Any:
    return np.take_along_axis(x, _argsort(x, axis, descending), axis)


def _argsort(x: Any, axis: int = -1, descending: bool = False, stable: bool = True) -> Any:
    if not descending:
        return np.argsort(x, axis=axis, stable=True)
    order = np.argsort(np.flip(x, axis), axis=axis, stable=True)
    order = x.shape[axis] - 1 - np.flip(order, axis)
    nan = np.take_along_axis(x != x, order, axis)  # last in either order
    return np.take_along_axis(order, np.argsort(nan, axis=axis, stable=True), axis)


def _statistic(f: Any) -> Callable[..., Any]:
    return lambda x, axis=None, correction=0.0, keepdims=False: f(x, axis=axis, ddof=correction, keepdims=keepdims)


class _Update:
    """Functional assignment, by assignment to a copy."""

    def __init__(self, x: Any, index: Any) -> None:
        self.x, self.index = np.array(x), index

    def set(self, value: Any) -> Array:
        self.x[self.index] = value
        return self.x

    def __getattr__(self, name: str) -> Callable[[Any], Array]:
        ufuncs = {"add": np.add, "subtract": np.subtract, "multiply": np.multiply, "min": np.minimum, "max": np.maximum}
        ufunc = ufuncs[name]

        def apply(value: Any) -> Array:
            ufunc.at(self.x, self.index, np.asarray(value).astype(self.x.dtype))
            return self.x

        return apply


def at(x: Any, index: Any) -> Any:
    """What texts write for ``x.at[index]``, so that NumPy's arrays have it too."""
    return x.at[index] if hasattr(x, "at") else _Update(x, index)


def _cond(pred: Any, true_fun: Any, false_fun: Any, *operands: Any) -> Any:
    return true_fun(*operands) if pred else false_fun(*operands)


def _scan(f: Any, init: Any, xs: Any) -> Any:
    rows, carry = [], init
    for x in xs:
        carry, y = f(carry, x)
        rows.append(y)
    return carry, np.stack(rows)


TR = Numpy(
    np,
    abs2=lambda x: _real(x) ** 2 + np.asarray(x).imag ** 2,
    argsort=_argsort,
    cond=_cond,
    scan=_scan,
    cast=lambda x, dtype: np.asarray(x).astype(dtype),
    digamma=_special("digamma"),
    diagonal=lambda x, offset=0, axis1=-2, axis2=-1: np.diagonal(x, offset, axis1, axis2),
    floor_divide=_floor_divide,
    erf=_special("erf"),
    erfc=_special("erfc"),
    erfinv=_special("erfinv"),
    lgamma=_special("gammaln"),
    polygamma=lambda n, x: _special("polygamma")(n, x).astype(x.dtype),
    log_softmax=lambda x, axis=-1: x - _logsumexp(x, axis, True),
    logsumexp=_logsumexp,
    matrix_trace=lambda x, offset=0: np.trace(x, offset, -2, -1),
    rsqrt=lambda x: 1 / np.sqrt(x),
    reciprocal=lambda x: np.asarray(1, x.dtype) / x,
    softmax=_softmax,
    unique_values=np.unique,  # NumPy's own does not sort
    unique_counts=lambda x: tuple(np.unique(x, return_counts=True)),
    sort=_sort,
    std=_statistic(np.std),
    var=_statistic(np.var),
    stop_gradient=lambda x: x,
)
LINALG = Numpy(np.linalg, outer=np.outer)
SCOPE = {"tr": TR, "linalg": LINALG, "fft": np.fft, "np": np, "at": at}
"""The names of texts, as NumPy has them."""


def library() -> dict[str, Any]:
    """The names of texts, as the library has them."""
    import tenferro_fft
    import tenferro_linalg
    import tenferro_runtime

    return {"tr": tenferro_runtime, "linalg": tenferro_linalg, "fft": tenferro_fft, "np": np, "at": at}


def expected(f: Callable[..., Any], *args: Any) -> Any:
    """What NumPy computes, without its warnings; an exception as a result of its own."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return f(*args)
        except Exception as error:
            return error
