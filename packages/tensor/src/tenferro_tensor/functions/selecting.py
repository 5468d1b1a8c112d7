"""Selection of elements by conditions or indices, from one or several arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tenferro_tensor import catalog
from tenferro_tensor.direct import direct
from tenferro_tensor.functions import _numpy_forms
from tenferro_tensor.functions._listed import listed
from tenferro_tensor.functions.flat_indices import first_true
from tenferro_tensor.functions.manipulation import broadcast_arrays, ravel
from tenferro_tensor.functions.reading import take
from tenferro_tensor.functions.truncation import compress
from tenferro_tensor.operands import alike, converted, host_elements, truth
from tenferro_tensor.promotion import broadcast_shapes, brought
from tenferro_tensor_core import ArgumentError, AxisError, ShapeError, ask, bool_, int64

if TYPE_CHECKING:
    from tenferro_tensor._array import Array

__all__ = ["choose", "extract", "piecewise", "select"]


def __dir__() -> list[str]:
    return __all__.copy()


def select(condlist: Sequence[Any], choicelist: Sequence[Any], default: Any = 0) -> Array:
    """Select each element from the first choice whose condition is true.

    No derivative passes to elements that are not selected.

    Args:
        condlist: sequence of boolean arrays.
        choicelist: one array or number for each condition; all broadcast.
        default: value where no condition is true.

    Returns:
        Array of the broadcast shape, in the promoted dtype.

    Raises:
        ArgumentError: there is not one choice for each condition, or a condition is not boolean.
        ShapeError: the shapes do not broadcast.

    See also:
        `where`, for one condition; `piecewise`.

    >>> x = tr.arange(5)
    >>> tr.select([x < 2, x > 3], [x, x * 10], -1)
    Tensor([ 0,  1, -1, -1, 40])
    """
    if len(condlist) != len(choicelist) or not len(condlist):
        raise ArgumentError(
            f"select needs one choice for each condition, at least one, got {len(condlist)} conditions and "
            f"{len(choicelist)} choices"
        )
    conditions = [listed(c) for c in condlist]
    for i, c in enumerate(conditions):
        if c.spec.dtype is not bool_:
            raise ArgumentError(f"select takes booleans as conditions, but condition {i} is {c.spec!r}; compare first")
    *choices, out = alike(
        *[x if x.__class__ in (int, float, complex, bool) else listed(x) for x in choicelist], default
    )
    shape = broadcast_shapes(*[v.spec.shape for v in (*conditions, *choices, out)])
    for c, choice in zip(conditions[::-1], choices[::-1], strict=True):
        out = catalog.select(c, choice, out)
    return brought(out, out.spec.with_(shape=shape))


def piecewise(x: Any, condlist: Any, funclist: Sequence[Any], *args: Any, **kwargs: Any) -> Array:
    """Piecewise defined function: the last true condition counts; 0 where none is true.

    Unlike NumPy's, it calls every function with all of `x`, so that it can be traced, and the result has the promoted
    dtype of the pieces, so that nothing is rounded.

    Args:
        x: the array.
        condlist: boolean arrays of the shape of `x`, or one of them.
        funclist: one function or number for each condition, and optionally one more where none is true.
        args: passed to every function after `x`.
        kwargs: passed to every function.

    Returns:
        Array of the shape of `x`, in the promoted dtype.

    Raises:
        ArgumentError: the number of functions does not match.

    >>> x = tr.asarray([-2.0, 0.5, 3.0])
    >>> tr.piecewise(x, [x < 0, x > 1], [lambda x: -x, lambda x: x * x, 0.0])
    Tensor([2., 0., 9.])
    """
    x = listed(x)
    several = isinstance(condlist, (list, tuple)) and len(condlist) and not isinstance(condlist[0], (bool, int))
    if not several:
        condition = listed(condlist)
        rows = condition.spec.ndim > x.spec.ndim
        several, condlist = True, list(condition) if rows else [condition]
    conditions = [truth(listed(c)) for c in condlist]
    if len(funclist) not in (len(conditions), len(conditions) + 1):
        raise ArgumentError(
            f"piecewise needs a function for each of the {len(conditions)} conditions, and may have one more, got "
            f"{len(funclist)}"
        )
    found = [f(x, *args, **kwargs) if callable(f) else f for f in funclist]
    zero = catalog.convert(catalog.ne(x, x), dtype=x.spec.dtype) if x.spec.dtype.kind in "fc" else catalog.sub(x, x)
    otherwise = found.pop() if len(found) > len(conditions) else catalog.select(catalog.eq(zero, zero), 0, zero)
    *pieces, out, _ = alike(*[f if f.__class__ in (int, float, complex) else listed(f) for f in found], otherwise, x)
    out = brought(out, out.spec.with_(shape=broadcast_shapes(out.spec.shape, x.spec.shape)))
    for c, piece in zip(conditions, pieces, strict=True):
        out = catalog.select(c, piece, out)
    return out


@direct(_numpy_forms.choose)
def choose(x: Any, /, choices: Any, mode: str = "raise") -> Array:
    """Select each element from the array with a given number.

    Args:
        x: integer array of numbers of the choices.
        choices: sequence of arrays, or an array whose first axis enumerates them; they broadcast with `x`.
        mode: treatment of numbers out of range: ``"raise"`` an error if they are known (unknown ones are clamped),
            ``"wrap"`` around, or ``"clip"``.

    Returns:
        Array of the broadcast shape, in the promoted dtype.

    Raises:
        AxisError: a known number is out of range.
        ArgumentError: `x` is not an integer array, or the mode is unknown.
        ShapeError: the shapes do not broadcast.

    >>> tr.choose(tr.asarray([1, 0, 1]), [tr.asarray([1, 2, 3]), tr.asarray([10, 20, 30])])
    Tensor([10,  2, 30])
    """
    x = listed(x)
    if x.spec.dtype.kind not in "iu":
        raise ArgumentError(f"choose takes the numbers of choices as integers, got {x.spec!r}")
    if mode not in ("raise", "wrap", "clip"):
        raise ArgumentError(f"choose takes mode 'raise', 'wrap' or 'clip', got {mode!r}", mode=mode)
    values = alike(*[listed(c) for c in choices])
    n = len(values)
    x = converted(x, int64)
    known = host_elements(x)
    if mode == "raise" and known is not None and known.size and (known.min() < 0 or known.max() >= n):
        raise AxisError(f"choose: a number is outside of the {n} choices, which count from 0", choices=n)
    x = catalog.remainder(x, n) if mode == "wrap" else catalog.clamp(x, 0, n - 1)
    x, *values = broadcast_arrays(x, *values)
    out = values[0]
    for i in range(1, n):
        out = catalog.select(catalog.eq(x, i), values[i], out)
    return out if n > 1 else catalog.reshape(out, shape=out.spec.shape)


@direct(_numpy_forms.extract)
def extract(condition: Any, x: Any, /, *, size: Any = None, fill_value: Any = 0) -> Array:
    """Elements where a condition is true, in row-major order.

    Args:
        condition: array with as many elements as `x`; nonzero counts as true.
        x: the array.
        size: number of results; by default all, which while tracing makes a data-dependent extent.
        fill_value: fills missing results.

    Returns:
        Vector of the dtype of `x`.

    Raises:
        ShapeError: the numbers of elements differ.

    See also:
        `compress`, along an axis.

    >>> x = tr.arange(6)
    >>> tr.extract(x % 3 == 0, x)
    Tensor([0, 3])
    """
    mask, flat = ravel(truth(listed(condition))), ravel(listed(x))
    if not ask(mask.spec.shape[0], "==", flat.spec.shape[0]):
        raise ShapeError(f"extract needs a condition for each element, got {mask.spec!r} for {flat.spec!r}")
    if size is None:
        return compress(flat, mask)
    at = first_true(mask, size, -1)
    missing = catalog.lt(at, 0)
    if flat.spec.shape[0] == 0:
        return catalog.select(missing, *alike(fill_value, catalog.convert(at, dtype=flat.spec.dtype)))
    return catalog.select(missing, *alike(fill_value, take(flat, catalog.select(missing, 0, at))))
