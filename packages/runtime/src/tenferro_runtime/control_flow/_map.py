"""`map`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tenferro_runtime.control_flow._carry import Carry
from tenferro_runtime.control_flow._scan import length_of, recorded, slice_kinds
from tenferro_runtime.control_flow._values import leaf_values, require_functions
from tenferro_runtime.trees._tree import flatten
from tenferro_tensor.functions import asarray
from tenferro_tensor_core.tracebacks import boundary

if TYPE_CHECKING:
    from tenferro_runtime._signatures import R


@boundary
def map(f: Callable[[Any], R], xs: Any) -> R:
    """Apply a function to each slice of arrays along their leading axis, one after the other, and stack the results.

    The function is traced once, for concrete and traced arrays alike. Slices are processed one at a time, so that the
    memory is that of one slice; `vmap` processes all of them at once.

    Args:
        f: a function of a slice that returns arrays and numbers in any containers, of equal shapes for all slices.
        xs: arrays of equal leading extent, in any containers.

    Returns:
        The results, stacked along a new leading axis.

    Raises:
        ArgumentError: `f` is not a function, or `xs` holds no array.
        ShapeError: the leading extents differ.

    >>> tr.map(lambda x: tr.sum(x * x), tr.asarray([[1.0, 2.0], [3.0, 4.0]]))
    Tensor([ 5., 25.])
    """
    require_functions("map", f)
    leaves, slices = flatten(xs)
    over = [asarray(x) for x in leaf_values(leaves, slices, "xs of map")]
    n = length_of("map", over, list(slices.paths()), None)
    step = lambda c, x: (c, f(x))
    return recorded("map", step, Carry("map", (), f), over, slices, slice_kinds(over), n, False)[1]
