"""What an application is, and the two libraries that run it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np

Library = Any
"""Arrays, transforms and loops of one library, under the same names."""


@dataclass(frozen=True)
class Application:
    """A derivative that an application needs.

    Attributes:
        name: what it is.
        task: ``task(library)`` gives the function of the arguments, transforms included.
        make: ``make(n, random)``, the arguments for a size, NumPy arrays in tuples.
        sizes: a tiny size for tests, and one to measure.
    """

    name: str
    task: Callable[[Library], Callable[..., Any]]
    make: Callable[[int, np.random.Generator], tuple[Any, ...]]
    sizes: tuple[int, int]


def for_tenferro() -> Library:
    """tenferro's functions."""
    import tenferro_ad as ad
    import tenferro_runtime as tr

    both = _library("tenferro", {name: getattr(tr, name) for name in tr.__all__})
    for name in ("grad", "hessian", "hvp", "jacfwd", "jacrev", "jvp", "value_and_grad", "vjp"):
        setattr(both, name, getattr(ad, name))
    return both


def for_jax() -> Library:
    """JAX's functions."""
    import jax
    import jax.numpy as jnp
    from jax.scipy.special import logsumexp

    def hvp(f: Any, primals: Any, tangents: Any) -> Any:
        return jax.jvp(jax.grad(f), primals, tangents)[1]

    extra = {"hvp": hvp, "logsumexp": logsumexp, "lgamma": jax.lax.lgamma}
    transforms = {
        n: getattr(jax, n) for n in ("grad", "hessian", "jacfwd", "jacrev", "jvp", "value_and_grad", "vjp", "vmap")
    }
    loops = {n: getattr(jax.lax, n) for n in ("cond", "fori_loop", "map", "scan", "while_loop", "stop_gradient")}
    return _library("jax", {**vars(jnp), **extra, **transforms, **loops})


def _library(name: str, functions: dict[str, Any]) -> Library:
    """A module: a compiled function looks at other objects that it reads in every call."""
    made = ModuleType(f"ad_applications.{name}")
    vars(made).update(functions)
    return made
