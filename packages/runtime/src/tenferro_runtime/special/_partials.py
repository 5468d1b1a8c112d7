"""Functions of real numbers whose partial derivatives of every order have a kernel.

The primitive of such a function has the metadata `orders`: how often it is differentiated by each operand. Its slope
by an operand is the primitive itself with that order raised by one, so that every derivative exists in both modes, and
none is a difference or a quotient of others that would cancel::

    jv_ = partials("jv", "v x", "Bessel function of the first kind.")

    def register(registry: Registry) -> None:
        register_partials(registry, jv_, compute)  # compute(orders, v, x)
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, Signature
from typing import Any

import numpy as np

from tenferro_runtime.extension import DTypeError, Primitive, Registry, Slopes, Spec, UnsupportedError, primitive
from tenferro_runtime.special._scipy import ACCELERATORS, family, lent, make_scipy
from tenferro_tensor.functions import asarray
from tenferro_tensor_core import kind_of

__all__ = ["degree", "partials", "register_jax_partials", "register_partials"]


def partials(name: str, operands: str, doc: str) -> Primitive:
    """The element-wise primitive of a real function and of its partial derivatives.

    Args:
        name: the function's name.
        operands: the names of its operands, separated by blanks.
        doc: its documentation.
    """
    names = operands.split()

    def infer(*specs: Spec, orders: tuple[int, ...]) -> Spec:
        return specs[0]

    zeros = (0,) * len(names)
    places = [Parameter(n, Parameter.POSITIONAL_OR_KEYWORD) for n in names]
    infer.__name__, infer.__doc__ = name, doc
    infer.__signature__ = Signature([*places, Parameter("orders", Parameter.KEYWORD_ONLY, default=zeros)])  # type: ignore[attr-defined]
    made = primitive(elementwise=True, domain="floating", family=family(name), extension="special")(infer)
    made.bare = made.op(orders=zeros)  # calls of the function itself look up no metadata
    return made


def register_partials(
    registry: Registry,
    of: Primitive,
    compute: Callable[..., Any],
    constant: str = "",
    *,
    own: bool = False,
    **slopes: Any,
) -> None:
    """Register the kernel and the rule of a primitive that `partials` made.

    Args:
        registry: where to.
        of: the primitive.
        compute: ``compute(orders, *operands)`` of arrays of one shape in double precision.
        constant: the operands, separated by blanks, that are integers by definition.
        own: whether `compute` is used for the function itself too, and not only for its derivatives, although SciPy
            and CuPy may have a function of that name.
        slopes: derivatives by some operands that are written with other primitives.
    """
    free = [n for n in of.operands if n not in constant.split()]
    rule = {n: slopes.get(n) or _slope(of, n) for n in free}
    name = None if own or constant else of.name
    on_host = _on_host(of, name, compute)
    registry.kernel(of, "cpu", on_host)
    if name:
        for backend in ACCELERATORS:
            registry.kernel(of, backend, _lent(backend, of, name, on_host))
    registry.rule(of, Slopes(singular=True, **rule))


def register_jax_partials(registry: Registry, of: Primitive, most: int) -> None:
    """Register that a primitive is the function of `jax.scipy.special` of its name in StableHLO, with its derivatives.

    Args:
        registry: where to.
        of: a primitive that `partials` made.
        most: the highest order for which JAX's derivatives keep their digits.
    """

    def lower(e: Any, xs: Any, outs: Any, *, orders: tuple[int, ...]) -> Any:
        if sum(orders) > most:
            raise UnsupportedError(
                f"the derivative of order {sum(orders)} of {of.name} has no StableHLO lowering; run the program on the "
                "CPU backend",
                function=of.name,
            )
        return e.jax_function(of.name, xs, outs[0], orders)

    registry.lowering(of, lower)


def _slope(of: Primitive, name: str) -> Callable[..., Any]:
    place = of.operands.index(name)

    def slope(*given: Any) -> Any:
        *operands, orders = given
        raised = (*orders[:place], orders[place] + 1, *orders[place + 1 :])
        return of(*operands, orders=raised)

    parameters = [Parameter(n, Parameter.POSITIONAL_OR_KEYWORD) for n in (*of.operands, "orders")]
    slope.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    return slope


def _lent(backend: str, of: Primitive, name: str, on_host: Callable[..., Any]) -> Callable[..., Any]:
    def make(ins: Any, outs: Any, *, orders: tuple[int, ...]) -> Callable[..., Any]:
        if not any(orders):
            return make_scipy(backend, name, None, ins, outs)
        return lent(f"the derivative of {of.name} has no kernel", backend, on_host, ins, outs, {"orders": orders})

    make.any_size = True  # type: ignore[attr-defined]
    return make


def _on_host(of: Primitive, name: str | None, compute: Callable[..., Any]) -> Callable[..., Any]:
    def make(ins: Any, outs: Any, *, orders: tuple[int, ...]) -> Callable[..., Any]:
        if name and not any(orders):
            return make_scipy("cpu", name, None, ins, outs)
        return _computed(compute, orders, outs[0].dtype)

    make.any_size = True  # type: ignore[attr-defined]
    return make


def _computed(compute: Callable[..., Any], orders: tuple[int, ...], dtype: Any) -> Callable[..., Any]:
    def run(*operands: Any) -> Any:
        wide = [np.asarray(x, np.float64) for x in operands]
        shape = wide[0].shape
        if any(x.shape != shape for x in wide):
            wide = list(np.broadcast_arrays(*wide))
            shape = wide[0].shape
        if not shape:  # NumPy makes numbers of arrays without axes
            wide = [x.reshape(1) for x in wide]
        elif not wide[0].size:
            return np.empty(shape, dtype)
        with np.errstate(all="ignore"):
            return np.asarray(compute(orders, *wide)).astype(dtype, copy=False).reshape(shape)

    return run


def degree(function: str, name: str, n: Any, x: Any) -> Any:
    """An integer operand in the dtype of `x`, which has no derivative.

    Raises:
        DTypeError: it is not an integer.
    """
    if isinstance(n, int):
        return n
    n = asarray(n)
    if n.dtype.kind not in "iu":
        raise DTypeError(
            f"{function} is defined for integers {name} only, and has no derivative by it; got {n.dtype}; "
            "convert it with astype(int)",
            dtype=str(n.dtype),
            operand=name,
        )
    dtype = getattr(x, "dtype", None)
    return n.astype(dtype) if dtype is not None and kind_of(dtype) == "f" else n
