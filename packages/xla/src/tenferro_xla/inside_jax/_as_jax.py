"""`as_jax`: a function of tensors as a function of arrays of JAX."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np

from tenferro_runtime import asarray, astype, random, trace
from tenferro_runtime.extension import ArgumentError, BoundedCache, Spec
from tenferro_xla.inside_jax._primitive import Guest, bind


class _Traced(NamedTuple):
    """A function traced for some shapes and dtypes, and the containers of its result."""

    guest: Guest
    tree: Any


def as_jax(f: Callable[..., Any]) -> Callable[..., Any]:
    """A function of tensors as a function of JAX: it takes and returns arrays of JAX, and all of JAX transforms it.

    The function is traced once for each structure, shapes and dtypes of its arguments, as by `tenferro_runtime.trace`,
    and becomes part of the module that JAX compiles. ``jax.jit``, ``grad``, ``jvp``, ``vjp``, ``vmap``, ``linearize``,
    ``shard_map`` and others apply, at any order; derivatives are those of tenferro, with JAX's conventions for complex
    numbers. Outside of ``jax.jit`` it runs as a compiled function.

    Arrays inside of the function may have 64 bits whatever the settings of JAX. Its results have the dtypes that JAX
    allows: without ``jax_enable_x64``, numbers of 64 bits are narrowed, as those of JAX's functions are. Where a step
    fails (a singular matrix), floating-point results are NaN, as those of JAX are.

    Args:
        f: a function of arrays, in any containers that JAX knows, to arrays in such containers. Its arguments are all
            arrays; typed keys of JAX arrive as keys of `tenferro_runtime.random`, with the same streams.

    Returns:
        The function of JAX. It raises what tracing `f` raises, and ``UnsupportedError`` for a step without lowering.

    Raises:
        ArgumentError: `f` is no function; a shape is not fixed.

    >>> import jax
    >>> import tenferro_runtime as tr
    >>> from tenferro_ad.adapters.jax import as_jax
    >>> f = as_jax(lambda x: tr.sum(tr.sin(x) * x))
    >>> jax.jit(jax.grad(f))(jax.numpy.zeros(2) + 1)
    Array([1.3817732, 1.3817732], dtype=float32)
    """
    if not callable(f):
        raise ArgumentError(f"as_jax takes a function, got {f!r:.80}")
    name = getattr(f, "__qualname__", type(f).__name__)
    programs: BoundedCache[Any, _Traced] = BoundedCache(f"tenferro_xla: programs of {name} inside of JAX", 256)

    @functools.wraps(f)
    def inside_jax(*args: Any, **kwargs: Any) -> Any:
        leaves, tree = jax.tree.flatten((args, kwargs))
        keys = tuple([_is_key(x) for x in leaves])
        arrays = [jax.random.key_data(x) if key else jax.numpy.asarray(x) for x, key in zip(leaves, keys, strict=True)]
        kinds = tuple([(x.shape, np.dtype(x.dtype)) for x in arrays])
        wide = jax.dtypes.canonicalize_dtype(np.float64) == np.float64
        found = programs.get_or_make((tree, kinds, keys, wide), lambda: _traced(f, name, tree, kinds, keys))
        return jax.tree.unflatten(found.tree, bind(found.guest, arrays))

    return inside_jax


def _is_key(x: Any) -> bool:
    return hasattr(x, "dtype") and jax.dtypes.issubdtype(x.dtype, jax.dtypes.prng_key)


def _traced(f: Callable[..., Any], name: str, tree: Any, kinds: Any, keys: tuple[bool, ...]) -> _Traced:
    out_tree: Any = None

    def flat(*values: Any) -> tuple[Any, ...]:
        nonlocal out_tree
        given = [random.wrap_key_data(x) if key else x for x, key in zip(values, keys, strict=True)]
        args, kwargs = jax.tree.unflatten(tree, given)
        outs, out_tree = jax.tree.flatten(f(*args, **kwargs))
        return tuple([_as_jax_allows(x) for x in outs])

    for shape, _ in kinds:
        if not all(isinstance(n, int) for n in shape):
            raise ArgumentError(
                f"{name} is called under JAX with sizes that are not fixed, {shape}; give it fixed ones"
            )
    program = trace(flat, *[Spec(shape, dtype) for shape, dtype in kinds])
    return _Traced(Guest(program), out_tree)


def _as_jax_allows(x: Any) -> Any:
    """A result with the dtype that JAX gives it under its settings."""
    value = asarray(x)
    allowed = jax.dtypes.canonicalize_dtype(value.dtype)
    return value if allowed == value.dtype else astype(value, allowed)
