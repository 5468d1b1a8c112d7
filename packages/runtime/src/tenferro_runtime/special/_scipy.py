"""Element-wise primitives whose values SciPy computes; every special function that is no composition is made so.

A page of functions defines primitives, public functions, and ``register(registry)``, which `_extension` calls::

    @primitive(elementwise=True, domain="floating", family=family("gamma"), extension="special")
    def gamma_(x: Spec) -> Spec:
        '''Gamma function.'''
        return x

    def gamma(x: Any, /) -> Array:
        '''...'''
        return gamma_(x)

    def register(registry: Registry) -> None:
        register_scipy(registry, gamma_, Slopes(singular=True, x=lambda x, out: out * psi(x)))

- Element-wise primitives promote and broadcast their operands themselves, integers become float64 (domain
  ``"floating"`` for real numbers, ``"inexact"`` where SciPy also takes complex ones), and they need no batching rule.
- `register_scipy` registers the kernels of SciPy and CuPy, and the rule. `register_host` registers a kernel written
  with NumPy in float64, for what SciPy lacks: derivatives by a parameter, of an order that is metadata.
- Rules are written with primitives of the module and functions of the core, so that every order exists. Functions with
  removable singularities have a primitive for all of their derivatives (metadata ``order``) rather than a quotient.
- `register_composed` registers what core operations compute exactly, but with derivatives that they lack.
- ``expansion=`` writes the primitive with core operations, for backends without a kernel, and for XLA;
  `register_jax` names JAX's function where that is not possible.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from tenferro_runtime.extension import (
    BackendUnavailableError,
    Inactive,
    Primitive,
    Registry,
    Slopes,
    UnsupportedError,
    family_id,
    get_backend,
)
from tenferro_tensor import HostKernel, falling_back

__all__ = [
    "ACCELERATORS",
    "family",
    "host_special",
    "lent",
    "make_scipy",
    "register_composed",
    "register_host",
    "register_jax",
    "register_scipy",
]

ACCELERATORS = ("cuda", "rocm")
"""Backends whose library may have a function of `scipy.special`."""


def family(name: str) -> str:
    """The family id of a special function.

    >>> family("gammainc")
    'tenferro-runtime.gammainc.v1'
    """
    return family_id("tenferro-runtime", name, 1)


def register_scipy(
    registry: Registry,
    primitive: Primitive,
    rule: Slopes | Inactive,
    name: str | None = None,
    *,
    pick: int | None = None,
    expansion: Callable[..., Any] | None = None,
) -> None:
    """Register an element-wise primitive that is a function of `scipy.special`.

    Args:
        registry: where to.
        primitive: a primitive of one output, whose metadata are passed to SciPy before the operands.
        rule: its derivatives.
        name: the function's name, by default that of the primitive.
        pick: which result is taken of a function that returns several.
        expansion: the primitive in terms of core operations.
    """
    function = name or primitive.name
    registry.kernel(primitive, "cpu", _any_size(partial(make_scipy, "cpu", function, pick)))
    for backend in ACCELERATORS:
        registry.kernel(primitive, backend, _any_size(partial(make_scipy, backend, function, pick)))
    registry.rule(primitive, rule)
    if expansion is not None:
        registry.expansion(primitive, expansion, keep=True)


def register_host(
    registry: Registry,
    primitive: Primitive,
    rule: Slopes | Inactive,
    compute: Callable[..., Any],
    *,
    value: str | None = None,
    expansion: Callable[..., Any] | None = None,
) -> None:
    """Register an element-wise primitive that NumPy computes, for which accelerators have no kernel.

    Args:
        registry: where to.
        primitive: a primitive of one output.
        rule: its derivatives.
        compute: ``compute(*operands, **metadata)`` of arrays of one dimension in double precision, at least one
            element long; returns an array of that length.
        value: the function of `scipy.special` that the primitive is where all metadata are 0, orders of derivatives.
        expansion: the primitive in terms of core operations.
    """

    def make(ins: Any, outs: Any, **metadata: Any) -> Callable[..., Any]:
        if value is not None and not any(metadata.values()):
            return make_scipy("cpu", value, None, ins, outs)
        dtype = outs[0].dtype
        wide = np.dtype(np.complex128 if outs[0].cplx else np.float64)

        def run(*operands: Any) -> Any:
            same = [np.asarray(x, wide) for x in operands]
            if len(same) > 1:
                same = list(np.broadcast_arrays(*same))
            shape = same[0].shape
            flat = [x.reshape(-1) for x in same]
            if not flat[0].size:
                return np.empty(shape, dtype)
            with np.errstate(all="ignore"):
                return np.asarray(compute(*flat, **metadata)).astype(dtype, copy=False).reshape(shape)

        return run

    registry.kernel(primitive, "cpu", _any_size(make))
    if value is not None:
        for backend in ACCELERATORS:
            registry.kernel(primitive, backend, _any_size(partial(_make_value, backend, value, make)))
    registry.rule(primitive, rule)
    if expansion is not None:
        registry.expansion(primitive, expansion, keep=True)


def _make_value(
    backend: str, name: str, on_host: Callable[..., Any], ins: Any, outs: Any, **metadata: Any
) -> Callable[..., Any]:
    if any(metadata.values()):
        return lent(f"this derivative of {name} has no kernel", backend, on_host, ins, outs, metadata)
    return make_scipy(backend, name, None, ins, outs)


def lent(
    lack: str, backend: str, on_host: Callable[..., Any], ins: Any, outs: Any, metadata: Mapping[str, Any]
) -> HostKernel:
    """The kernel of the CPU in the place of one that an accelerator lacks, where `host_fallback` allows it.

    Args:
        lack: what is missing, for the error.
        backend: of the accelerator.
        on_host: makes the kernel of the CPU.
        ins, outs, metadata: of the op.

    Raises:
        UnsupportedError: it is not allowed.
    """
    device = outs[0].place.device

    def refusal() -> UnsupportedError:
        return UnsupportedError(
            f"{lack} for {device}; move the operands with to_device, or let the CPU compute it in "
            "`with host_fallback():`",
            device=str(device),
        )

    if not falling_back():
        raise refusal()
    return HostKernel(get_backend(backend), device, on_host, ins, outs, metadata, refusal)


def register_composed(
    registry: Registry, primitive: Primitive, rule: Slopes | Inactive, expansion: Callable[..., Any]
) -> None:
    """Register an element-wise primitive that is a composition of core operations, with derivatives of its own.

    Args:
        registry: where to.
        primitive: a primitive of one output.
        rule: its derivatives, where those of the composition are not the right ones.
        expansion: the composition, which is the kernel of every backend and is fused in programs.
    """
    registry.expansion(primitive, expansion)
    registry.rule(primitive, rule)


def register_jax(
    registry: Registry,
    primitive: Primitive,
    name: str | None = None,
    *,
    by: tuple[str, ...] = (),
    most: int | None = None,
    pick: int | None = None,
) -> None:
    """Register that a primitive is a function of `jax.scipy.special` in StableHLO.

    Args:
        registry: where to.
        primitive: a primitive of one output.
        name: the function's name there, by default that of the primitive.
        by: the metadata that are orders of derivatives by the first operands.
        most: the highest of these for which JAX's derivatives keep their digits.
        pick: which result is taken of a function that returns several.
    """

    def lower(e: Any, xs: Any, outs: Any, **metadata: Any) -> Any:
        orders = tuple(metadata[key] for key in by)
        if most is not None and sum(orders) > most:
            raise UnsupportedError(
                f"the derivative of order {sum(orders)} of {primitive.name} has no StableHLO lowering; run the program "
                "on the CPU backend",
                function=primitive.name,
            )
        return e.jax_function(name or primitive.name, xs, outs[0], orders, pick)

    registry.lowering(primitive, lower)


def host_special() -> Any:
    """The module `scipy.special`, imported on first use.

    Raises:
        BackendUnavailableError: SciPy is not installed.
    """
    try:
        return get_backend("cpu").library("scipy.special")
    except ModuleNotFoundError as error:
        raise BackendUnavailableError(
            "special functions are computed by SciPy, which is not installed; pip install 'tenferro-runtime[special]'"
        ) from error


def _any_size(make: Callable[..., Any]) -> Callable[..., Any]:
    make.any_size = True  # type: ignore[attr-defined]
    return make


def make_scipy(backend: str, name: str, pick: int | None, ins: Any, outs: Any, **metadata: Any) -> Callable[..., Any]:
    """The kernel of a function of the backend's `scipy.special`."""
    special = host_special() if backend == "cpu" else get_backend(backend).library("scipy.special")
    function = getattr(special, name, None)
    if function is None:
        if backend == "cpu":
            raise UnsupportedError(f"{special.__name__} of this version has no {name}; install a newer one")
        lack = f"{special.__name__} has no {name}, which therefore has no kernel"
        return lent(lack, backend, partial(make_scipy, "cpu", name, pick), ins, outs, metadata)
    dtype, first = outs[0].dtype, tuple(metadata.values())

    def run(*operands: Any) -> Any:
        out = function(*first, *operands)
        if pick is not None:
            out = out[pick]
        # Some functions have double precision only.
        return out if out.dtype == dtype else out.astype(dtype)

    if first or pick is not None or any(s.dtype not in ("float64", "complex128") for s in ins):
        return run
    return function  # type: ignore[no-any-return]
