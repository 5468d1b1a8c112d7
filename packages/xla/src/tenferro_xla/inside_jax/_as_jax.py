"""`as_jax`: a function of tensors as a function of JAX arrays."""

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
    """A function traced for given shapes and dtypes, and the structure of its result."""

    guest: Guest
    tree: Any


def as_jax(f: Callable[..., Any]) -> Callable[..., Any]:
    """Convert a function of tensors to a function of JAX arrays, to which all JAX transformations apply.

    The function is traced once for each structure, shapes and dtypes of its arguments, as by `tenferro_runtime.trace`,
    and becomes part of the module that JAX compiles. ``jax.jit``, ``grad``, ``jvp``, ``vjp``, ``vmap``, ``linearize``,
    ``shard_map`` and others apply, at any order; tenferro computes the derivatives, with JAX's conventions for complex
    numbers. Outside ``jax.jit`` it runs as a compiled function.

    Arrays inside the function may have 64-bit dtypes whatever the settings of JAX. Its results have the dtypes that JAX
    allows: without ``jax_enable_x64``, 64-bit results are narrowed, like those of JAX's functions. If a step fails (a
    singular matrix), floating-point results are NaN, like those of JAX.

    Args:
        f: a function of arrays to arrays, both in any JAX pytrees. All arguments must be arrays; typed keys of JAX
            become keys of `tenferro_runtime.random`, with the same streams.

    Returns:
        The function of JAX arrays. It raises the errors of tracing `f`, and ``UnsupportedError`` if a primitive has no
        lowering.

    Raises:
        ArgumentError: `f` is not a function, or a shape is not fixed.

    See also:
        `from_jax`, the opposite direction.

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
                f"{name} is called inside JAX with sizes that are not fixed, {shape}; pass arrays of fixed sizes"
            )
    program = trace(flat, *[Spec(shape, dtype) for shape, dtype in kinds])
    return _Traced(Guest(program), out_tree)


def _as_jax_allows(x: Any) -> Any:
    """Convert a result to the dtype that JAX's settings allow."""
    value = asarray(x)
    allowed = jax.dtypes.canonicalize_dtype(value.dtype)
    return value if allowed == value.dtype else astype(value, allowed)
