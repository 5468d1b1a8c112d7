"""Special functions, each declared once: primitive, documentation, kernels, derivatives and lowering.

A module of functions declares those that are no composition of others::

    gamma_ = from_scipy("gamma", "x", "Gamma function.", domain="inexact", x=lambda x, out: out * psi(x))

    def gamma(x: Any, /) -> Array:
        '''...'''
        return gamma_(x)

- `from_scipy`, `from_host`, `partials` and `composed` make element-wise primitives, which promote and broadcast their
  operands themselves and need no batching rule; `several` makes one with several results. Integers become float64; the
  domain ``"floating"`` takes real numbers, ``"inexact"`` complex ones as well.
- Derivatives by operands are keyword arguments, written with primitives and functions of the core, so that every order
  exists. Functions with removable singularities have a primitive for all of their derivatives rather than a quotient:
  `orders` names, for operands, metadata that the derivative raises by one.
- ``expansion=`` writes the primitive with core operations, for backends without a kernel, and for XLA; ``jax=`` names
  JAX's function where that is not possible, and ``most=`` the highest order for which its derivatives are accurate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from inspect import Parameter, Signature
from typing import Any, Final

import numpy as np

from tenferro_runtime.batching import on_stacks
from tenferro_runtime.extension import (
    REGISTRY,
    ArgumentError,
    General,
    Primitive,
    Registry,
    Slopes,
    Spec,
    UnsupportedError,
    family_id,
    get_backend,
    primitive,
)
from tenferro_runtime.special._scipy import (
    ACCELERATORS,
    Library,
    Makers,
    host_kernels,
    host_special,
    orders_of,
    scipy_kernels,
)

__all__ = ["DECLARED", "composed", "from_host", "from_scipy", "in_jax", "partials", "several"]

Function = Callable[..., Any]

DECLARED: Final[list[Callable[[Registry], object]]] = []
"""Registrations of the modules that were imported, which `_extension` makes."""


def from_scipy(
    name: str,
    operands: str,
    doc: str,
    function: str | None = None,
    *,
    domain: str = "floating",
    pick: int | None = None,
    jax: str | None = None,
    lowering: Function | None = None,
    expansion: Function | None = None,
    singular: bool = True,
    **slopes: Any,
) -> Primitive:
    """Declare a primitive that is a function of `scipy.special`, by default that of its name.

    Args:
        name: the primitive's name.
        operands: the names of its operands, separated by blanks.
        doc: its documentation.
        function: the function.
        domain: the domain of a primitive.
        pick: which result is taken of a function that returns several.
        jax: the function of `jax.scipy.special`.
        lowering: the lowering, where that is no function of JAX.
        expansion: the primitive in terms of core operations.
        singular: as in `Slopes`.
        slopes: derivatives by the operands.
    """
    of = _elementwise(name, operands, doc, domain)
    instead = None if expansion is None else partial(_from_expansion, of)
    kernels, rule = scipy_kernels(function or name, pick, instead), Slopes(singular=singular, **slopes)
    return _declare(of, kernels, rule, expansion, in_jax(name, jax, pick=pick) if jax else lowering)


def from_host(
    name: str,
    operands: str,
    doc: str,
    compute: Function,
    orders: Mapping[str, str] | None = None,
    *,
    domain: str = "floating",
    metadata: Iterable[str] = (),
    refusal: str = "",
    value: str | None = None,
    jax: str | None = None,
    most: int | None = None,
    lowering: Function | None = None,
    expansion: Function | None = None,
    **slopes: Any,
) -> Primitive:
    """Declare a primitive that NumPy computes, for which accelerators have no kernel; the rest as in `from_scipy`.

    Args:
        name, operands, doc, domain, lowering, expansion, slopes: as in `from_scipy`.
        compute: as in `host_kernels`.
        orders: for operands, the metadata that derivatives by them raise.
        metadata: names of other metadata.
        refusal: the error of negative orders, if there is one.
        value: the function of `scipy.special` that the primitive is where all orders are 0.
        jax: the function of `jax.scipy.special`.
        most: the highest order of its derivatives.
    """
    orders = orders or {}
    of = _elementwise(name, operands, doc, domain, dict.fromkeys((*orders.values(), *metadata), 0), refusal)
    kernels, rule = host_kernels(compute, value, f"this derivative of {value}"), _raising(of, orders, slopes)
    return _declare(of, kernels, rule, expansion, in_jax(name, jax, most) if jax else lowering)


def composed(
    name: str,
    operands: str,
    doc: str,
    expansion: Function,
    orders: Mapping[str, str] | None = None,
    *,
    domain: str = "floating",
    **slopes: Any,
) -> Primitive:
    """Declare a primitive that core operations compute exactly, but with derivatives that they lack.

    The composition is the kernel of every backend and is fused in programs.

    Args:
        name, operands, doc, orders, domain: as in `from_host`.
        expansion: the composition.
        slopes: its derivatives; without any, they are those of the composition.
    """
    orders = orders or {}
    of = _elementwise(name, operands, doc, domain, dict.fromkeys(orders.values(), 0))
    return _declare(of, {}, _raising(of, orders, slopes) if orders or slopes else None, expansion)


def partials(
    name: str,
    operands: str,
    doc: str,
    compute: Function,
    constant: str = "",
    *,
    own: bool = False,
    jax: str | None = None,
    most: int | None = None,
    library: Library | None = None,
    **slopes: Any,
) -> Primitive:
    """Declare a real function whose partial derivatives of every order have a kernel.

    The metadata `orders` tell how often it is differentiated by each operand. The derivative by an operand is the
    primitive itself with that order raised by one, so that none is a difference or a quotient of others that would
    cancel.

    Args:
        name, operands, doc, jax, most: as in `from_host`.
        compute: ``compute(orders, *operands)`` of arrays of one dimension in double precision.
        constant: the operands, separated by blanks, that are integers by definition.
        own: whether `compute` is used for the function itself too, and not only for its derivatives, although SciPy
            and CuPy may have a function of that name.
        library: the kernel of accelerators for the function itself, which have none by default.
        slopes: derivatives by some operands that are written with other primitives.
    """
    names = operands.split()
    of = _elementwise(name, operands, doc, "floating", {"orders": (0,) * len(names)})
    rule = {n: slopes.get(n) or _raised(of, "orders", i) for i, n in enumerate(names) if n not in constant.split()}
    value = None if own or constant else name
    kernels = host_kernels(lambda *xs, orders: compute(orders, *xs), value, f"the derivative of {name}", library)
    return _declare(of, kernels, Slopes(singular=True, **rule), None, in_jax(name, jax, most) if jax else None)


def several(
    name: str, operands: str, doc: str, results: int, jvp: Function, on_accelerators: bool = False
) -> Primitive:
    """Declare a function of `scipy.special` that returns several arrays; its operands have one shape and type.

    Args:
        name, operands, doc: as in `from_scipy`.
        results: how many it returns.
        jvp: as in `General`.
        on_accelerators: whether their libraries have the function.
    """

    def make(ins: Any, outs: Any) -> Function:
        function, dtype = getattr(host_special(), name), outs[0].dtype
        return lambda *xs: tuple([np.asarray(value, dtype) for value in function(*xs)])

    def elsewhere(backend: str, ins: Any, outs: Any) -> Function:
        function, dtype = getattr(get_backend(backend).library("scipy.special"), name), outs[0].dtype
        return lambda *xs: tuple([value.astype(dtype, copy=False) for value in function(*xs)])

    infer = _inference(name, operands, doc, {}, lambda specs, metadata: (specs[0],) * results)
    of = primitive(family=_family(name), extension="special", widens=True)(infer)
    DECLARED.append(lambda registry: registry.batching(of, on_stacks(of)))
    makers: Makers = {"cpu": make}
    if on_accelerators:
        makers |= {backend: partial(elsewhere, backend) for backend in ACCELERATORS}
    return _declare(of, makers, General(jvp=jvp))


def _from_expansion(of: Primitive, ins: Any, outs: Any) -> Function:
    expansion = REGISTRY.find("expansion", of)
    assert expansion is not None
    return expansion(ins, outs)  # type: ignore[no-any-return]


def in_jax(name: str, function: str, most: int | None = None, pick: int | None = None) -> Function:
    """The StableHLO lowering of a primitive that is a function of `jax.scipy.special`."""

    def lower(e: Any, xs: Any, outs: Any, **metadata: Any) -> Any:
        orders = orders_of(metadata)
        if most is not None and sum(orders) > most:
            raise UnsupportedError(
                f"the derivative of order {sum(orders)} of {name} has no StableHLO lowering; run the program on the "
                "CPU backend",
                function=name,
            )
        return e.jax_function(function, xs, outs[0], orders, pick)

    return lower


def _declare(
    of: Primitive,
    kernels: Makers,
    rule: Slopes | General | None,
    expansion: Function | None = None,
    lowering: Function | None = None,
) -> Primitive:
    def register(registry: Registry) -> None:
        for backend, make in kernels.items():
            make.any_size = True  # type: ignore[attr-defined]
            registry.kernel(of, backend, make)
        if rule is not None:
            registry.rule(of, rule)
        if expansion is not None:
            registry.expansion(of, expansion, keep=bool(kernels))
        if lowering is not None:
            registry.lowering(of, lowering)

    DECLARED.append(register)
    return of


def _family(name: str) -> str:
    return family_id("tenferro-runtime", name, 1)


def _elementwise(
    name: str, operands: str, doc: str, domain: str, metadata: Mapping[str, Any] | None = None, refusal: str = ""
) -> Primitive:
    def infer(specs: tuple[Spec, ...], given: Mapping[str, Any]) -> Spec:
        if refusal and given["order"] < 0:
            raise ArgumentError(f"{refusal}, got {given['order']}", order=given["order"])
        return specs[0]

    metadata = metadata or {}
    made = primitive(elementwise=True, domain=domain, family=_family(name), extension="special")(
        _inference(name, operands, doc, metadata, infer)
    )
    made.bare = made.op(**metadata)  # calls of the function itself look up no metadata
    return made


def _inference(name: str, operands: str, doc: str, metadata: Mapping[str, Any], infer: Function) -> Function:
    def inference(*specs: Spec, **given: Any) -> Any:
        return infer(specs, given)

    places = [Parameter(n, Parameter.POSITIONAL_OR_KEYWORD) for n in operands.split()]
    keywords = [Parameter(n, Parameter.KEYWORD_ONLY, default=default) for n, default in metadata.items()]
    inference.__name__, inference.__doc__ = name, doc
    inference.__signature__ = Signature([*places, *keywords])  # type: ignore[attr-defined]
    return inference


def _raising(of: Primitive, orders: Mapping[str, str], slopes: Mapping[str, Any]) -> Slopes:
    return Slopes(singular=True, **{operand: _raised(of, key) for operand, key in orders.items()}, **slopes)


def _raised(of: Primitive, key: str, index: int | None = None) -> Function:
    """The derivative that is the primitive itself, with an order, or one of a tuple of orders, raised by one."""
    count = len(of.operands)

    def slope(*given: Any) -> Any:
        metadata = dict(zip(of.metadata, given[count:], strict=True))
        order = metadata[key]
        metadata[key] = order + 1 if index is None else (*order[:index], order[index] + 1, *order[index + 1 :])
        return of(*given[:count], **metadata)

    parameters = [Parameter(n, Parameter.POSITIONAL_OR_KEYWORD) for n in (*of.operands, *of.metadata)]
    slope.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    return slope
