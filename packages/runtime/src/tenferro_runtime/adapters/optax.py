"""optax's gradient transformations on trees of tensors.

optax computes with JAX on the CPU. The functions here hand it the memory of tensors, and hand its results back, with
64-bit numbers whatever JAX is set to::

    optimizer = on_tensors(optax.adam(0.1))
    state = optimizer.init(params)
    updates, state = optimizer.update(gradients, state, params)
    params = apply_updates(params, updates)
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

import numpy as np

from tenferro_runtime.trees._functions import tree_map
from tenferro_tensor import functions

__all__ = ["apply_updates", "on_tensors"]

_jax: Final[Any] = import_module("jax")
_optax: Final[Any] = import_module("optax")


def _to_jax(tree: Any) -> Any:
    return tree_map(np.asarray, tree)  # a compiled function takes these ten times as fast as arrays through DLPack


def _from_jax(tree: Any) -> Any:
    return tree_map(lambda x: functions.asarray(np.asarray(x)), tree)


def on_tensors(transformation: Any) -> Any:
    """A gradient transformation of optax that takes and returns trees of tensors.

    The state holds JAX's arrays. The update is compiled by JAX once for each structure and for each set of shapes.

    Args:
        transformation: an `optax.GradientTransformation`, such as ``optax.adam(0.1)``.

    Returns:
        The transformation, with the functions ``init(params)`` and ``update(updates, state, params)``.
    """
    update = _jax.jit(transformation.update)

    def init(params: Any) -> Any:
        with _jax.enable_x64(True):
            return transformation.init(_jax.tree.map(_jax.numpy.asarray, _to_jax(params)))

    def updated(updates: Any, state: Any, params: Any = None, **extra: Any) -> tuple[Any, Any]:
        with _jax.enable_x64(True):
            given = None if params is None else _to_jax(params)
            found, state = update(_to_jax(updates), state, given, **extra)
            return _from_jax(found), state

    return _optax.GradientTransformationExtraArgs(init, updated)


def apply_updates(params: Any, updates: Any) -> Any:
    """The parameters plus their updates, in the dtypes of the parameters.

    Args:
        params: tree of tensors.
        updates: tree of the same structure.

    Returns:
        Tree of tensors.
    """
    return tree_map(lambda p, u: functions.astype(functions.add(p, u), p.dtype, copy=False), params, updates)
