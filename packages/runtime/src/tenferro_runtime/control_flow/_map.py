"""`map`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tenferro_runtime.control_flow._carry import Carry
from tenferro_runtime.control_flow._scan import length_of, recorded, slice_kinds
from tenferro_runtime.control_flow._values import leaf_values, require_functions
from tenferro_runtime.trees._tree import flatten
from tenferro_tensor.functions import asarray


def map(f: Callable[[Any], Any], xs: Any) -> Any:
    """Apply a function to each slice of arrays along their leading axis, one after the other; the results are stacked.

    The function is traced once, whatever the length and whether the arrays are concrete or not. Only one slice at a
    time is in work, so that it takes the memory of one.

    Args:
        f: a function of a slice to arrays and numbers in any containers, of the same shapes for every slice.
        xs: arrays of one leading extent, in any containers.

    Raises:
        ArgumentError: `f` is no function, or `xs` holds no array.
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
