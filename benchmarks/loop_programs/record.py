"""`LoopProgram`, the record of a program that `loops.py` measures, and the namespaces for which programs are written.

tenferro and JAX name the same functions, arguments in the same order, so a program is written once for both: it takes
a `Namespace` and its arguments. The NumPy twin is written apart, vectorised where a NumPy user would do so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from inspect import signature
from types import ModuleType
from typing import Any

import numpy as np

Arguments = tuple[Any, ...]


class Namespace(ModuleType):
    """An array namespace with the control flow, `einsum` and `triangular_solve` of its library.

    A module, because a compiled function looks at other objects that it reads in every call.
    """

    def __init__(self, arrays: Any, **functions: Any) -> None:
        super().__init__(f"{arrays.__name__}.programs")
        self._arrays = arrays
        self.__dict__.update(functions)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._arrays, name)


@dataclass(frozen=True)
class LoopProgram:
    """A program in two ways of writing, its arguments at each size, and what it is differentiated by.

    `traced(xp, *arguments)` is the program for tenferro and JAX, `numpy(*arguments)` its twin; both return an array or
    a tuple of arrays. `make(size, rng)` gives the arguments as NumPy arrays. `gradient` holds positions of arguments.
    """

    name: str
    family: str
    make: Callable[[int, np.random.Generator], Arguments]
    traced: Callable[..., Any]
    numpy: Callable[..., Any]
    sizes: Mapping[str, int]
    gradient: tuple[int, ...] = ()
    tolerance: float = 1e-9

    def arguments(self, size: str) -> Arguments:
        """The arguments at a size, the same ones in every process."""
        return self.make(self.sizes[size], np.random.default_rng(len(self.name)))


def programs(family: str, *rows: Any) -> list[LoopProgram]:
    """The records of a family, one row each: traced, numpy, make, extents as tiny, small and medium, gradient.

    A program is named after its traced function. Extents given as a dictionary replace those three names.
    """
    found = []
    for traced, twin, make, extents, *rest in rows:
        sizes = extents if isinstance(extents, dict) else dict(zip(("tiny", "small", "medium"), extents))
        found.append(LoopProgram(traced.__name__, family, make, traced, twin, sizes, *rest))
    return found


def loss_of(xp: Namespace, f: Callable[..., Any]) -> Callable[..., Any]:
    """The sum of the squares of all results of a program: the scalar that is differentiated."""

    def loss(*args: Any) -> Any:
        results = f(xp, *args)
        results = results if isinstance(results, tuple) else (results,)
        return sum(xp.sum(xp.real(xp.conj(r) * r)) if "complex" in str(r.dtype) else xp.sum(r * r) for r in results)

    loss.__signature__ = signature(partial(f, xp))  # *args has no fast calls
    return loss


def for_tenferro() -> Namespace:
    """Programs of tenferro."""
    import tenferro_runtime as tr
    from tenferro_einsum import einsum

    return Namespace(
        tr,
        einsum=einsum,
        dynamic_slice=getattr(tr, "dynamic_slice", _window(tr)),
        triangular_solve=tr.linalg.solve_triangular,
    )


def _window(tr: Any) -> Callable[..., Any]:
    """`dynamic_slice` by `take` along every axis that is not taken whole."""

    def window(x: Any, starts: Any, sizes: Any) -> Any:
        for axis, (start, size) in enumerate(zip(starts, sizes)):
            if not isinstance(start, int):
                x = tr.take(x, start + tr.arange(size), axis=axis)
        return x

    return window


def for_jax() -> Namespace:
    """Programs of JAX, with float64."""
    import jax
    from jax import lax
    from jax.scipy.linalg import solve_triangular

    jax.config.update("jax_enable_x64", True)
    return Namespace(
        jax.numpy,
        fori_loop=lax.fori_loop,
        dynamic_slice=lax.dynamic_slice,
        scan=lax.scan,
        while_loop=lambda test, body, init, max_steps=None: lax.while_loop(test, body, init),
        cond=lax.cond,
        switch=lax.switch,
        softmax=jax.nn.softmax,
        logsumexp=jax.nn.logsumexp,
        triangular_solve=lambda a, b, *, lower=True: solve_triangular(a, b, lower=lower),
    )
