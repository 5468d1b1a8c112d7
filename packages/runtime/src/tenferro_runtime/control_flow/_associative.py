"""`associative_scan`: all prefix results of an associative function in a logarithmic number of rounds.

Neighbours are combined in pairs, the results of the pairs are scanned recursively, and the other prefixes are computed
from them: G. E. Blelloch, Prefix sums and their applications, CMU-CS-90-190 (1990).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, overload

from tenferro_runtime.control_flow._agreement import require_tree
from tenferro_runtime.control_flow._scan import length_of
from tenferro_runtime.control_flow._values import leaf_values, require_functions
from tenferro_runtime.trees._tree import flatten, unflatten
from tenferro_tensor.functions import asarray, concat, flip, moveaxis, reshape, stack
from tenferro_tensor_core.tracebacks import boundary

if TYPE_CHECKING:
    from tenferro_runtime._signatures import Leaf, R
    from tenferro_tensor import Array

Leaves = list[Any]
Combine = Callable[[Leaves, Leaves], Leaves]


@overload
def associative_scan(
    f: Callable[[Any, Any], Any], xs: Leaf, *, reverse: bool = ..., axis: int = ...
) -> Array: ...  # fmt: skip
@overload
def associative_scan(
    f: Callable[[Any, Any], R], xs: Any, *, reverse: bool = ..., axis: int = ...
) -> R: ...  # fmt: skip
@boundary
def associative_scan(f: Callable[[Any, Any], Any], xs: Any, *, reverse: bool = False, axis: int = 0) -> Any:
    """Prefix results ``x[0]``, ``f(x[0], x[1])``, ``f(f(x[0], x[1]), x[2])``, ... along an axis, computed in parallel.

    `f` is called about twice the binary logarithm of the extent, each time on many entries. The grouping of operands
    differs from that of a loop, so results may be rounded differently.

    Args:
        f: an associative function of two stacks of entries, applied entry by entry: ``f(f(a, b), c) == f(a, f(b, c))``.
        xs: arrays of equal extent along the axis, in any containers.
        reverse: start from the last entry; the first argument of `f` is then the result of the later entries.
        axis: the axis of every array to scan along.

    Returns:
        Arrays of the shapes of `xs`, in the same containers.

    Raises:
        ArgumentError: `f` is no function, or `xs` holds no array.
        ShapeError: the extents differ.
        StructureError: `f` returns other containers than those of `xs`.

    >>> tr.associative_scan(tr.multiply, tr.asarray([1, 2, 3, 4]))
    Tensor([ 1,  2,  6, 24])
    """
    require_functions("associative_scan", f)
    leaves, tree = flatten(xs)
    arrays = [asarray(x) for x in leaf_values(leaves, tree, "xs of associative_scan")]
    front = [moveaxis(x, axis, 0) if x.ndim else x for x in arrays]
    length_of("associative_scan", front, list(tree.paths()), None)

    def combine(a: Leaves, b: Leaves) -> Leaves:
        found, made = flatten(f(unflatten(tree, a), unflatten(tree, b)))
        require_tree("associative_scan", tree, "xs", made, f)
        return [asarray(x) for x in leaf_values(found, made, "the result of a function given to associative_scan")]

    turned = [flip(x, axis=0) for x in front] if reverse else front
    done = _scanned(combine, turned)
    back = [flip(x, axis=0) for x in done] if reverse else done
    return unflatten(tree, [moveaxis(x, 0, axis) for x in back])


def _scanned(combine: Combine, xs: Leaves) -> Leaves:
    n = int(xs[0].shape[0])
    if n < 2:
        return xs
    odd = _scanned(combine, combine([x[: n - 1 : 2] for x in xs], [x[1::2] for x in xs]))
    if n == 2:
        return [concat([x[:1], o]) for x, o in zip(xs, odd, strict=True)]
    between = combine([o[: (n - 1) // 2] for o in odd], [x[2::2] for x in xs])
    return [_interleaved(concat([x[:1], e]), o) for x, e, o in zip(xs, between, odd, strict=True)]


def _interleaved(even: Any, odd: Any) -> Any:
    """Entries at even places, of which there may be one more, and at odd ones."""
    k = int(odd.shape[0])
    pairs = reshape(stack([even[:k], odd], axis=1), (2 * k, *odd.shape[1:]))
    return pairs if even.shape[0] == k else concat([pairs, even[k:]])
