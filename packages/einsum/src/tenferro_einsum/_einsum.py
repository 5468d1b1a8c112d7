"""The public functions: `einsum`, `plan`, `contract_path`, `tensordot`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tenferro_einsum._notation import Contraction, build, interleaved, parse
from tenferro_einsum._plan import ContractionPlan
from tenferro_runtime.extension import BoundedCache
from tenferro_tensor import SCALARS, Array, Spec, tensor
from tenferro_tensor_core import ArgumentError, AxisError

PLANS: BoundedCache[Any, ContractionPlan] = BoundedCache("tenferro_einsum: plans", 1024, recency=False)
"""Plans by subscripts, operand specs and strategy."""


def einsum(*args: Any, optimize: Any = "auto") -> Any:
    """Sum of products over labelled axes.

    Every label names an axis; axes of one label run together, labels that the output lacks are summed. A label may
    repeat in an operand (its diagonal), in the output (the result is spread on that diagonal), and over any number of
    operands. Axes under an ellipsis broadcast, and so does an extent of 1.

    Args:
        args: a subscripts string and operands, ``einsum("ij,jk->ik", x, y)``; or operands each followed by a list of
            hashable labels and, last, the output's labels, ``einsum(x, ["a", "b"], y, ["b", "c"], ["a", "c"])``.
            Without an output, the result has the labels that occur once, sorted.
        optimize: how the order of pairwise contractions is found: a strategy of opt_einsum, ``False`` for left to
            right, or an explicit path ``[(i, j), ...]``.

    Returns:
        Array with one axis per output label, of the promoted dtype of the operands.

    Raises:
        ArgumentError: malformed subscripts or path.
        ShapeError: the operands do not fit the subscripts or each other.

    >>> import numpy as np
    >>> einsum("ij,jk->ik", np.eye(2), np.array([[1.0, 2.0], [3.0, 4.0]]))
    Tensor([[1., 2.],
            [3., 4.]])
    >>> einsum("ii->", np.array([[1.0, 2.0], [3.0, 4.0]]))
    Tensor(5.)
    """
    subscripts, operands = _split(args)
    values = [_value(x) for x in operands]
    return _prepared(subscripts, tuple([x.spec for x in values]), optimize)(*values)


def plan(*args: Any, optimize: Any = "auto") -> ContractionPlan:
    """Prepare a contraction once, to run it many times with new data of the same specs.

    Args:
        args: as for `einsum`; in place of an operand a `Spec` will do.
        optimize: as for `einsum`.

    >>> import numpy as np
    >>> chain = plan("ij,jk,kl->il", np.eye(2), np.eye(2), np.eye(2))
    >>> chain.path
    ((0, 1), (0, 1))
    """
    subscripts, operands = _split(args)
    specs = tuple([x if isinstance(x, Spec) else _value(x).spec for x in operands])
    return _prepared(subscripts, specs, optimize)


def contract_path(*args: Any, optimize: Any = "auto") -> tuple[list[tuple[int, ...]], Any]:
    """The order of pairwise contractions that `einsum` would use, and the report on its cost.

    Args:
        args: as for `einsum`; in place of an operand a `Spec` will do.
        optimize: as for `einsum`.

    Returns:
        The path, in the convention of NumPy and opt_einsum, and opt_einsum's report with flops and sizes of
        intermediates (``None`` where there was nothing to search: up to two operands, or an explicit path).
    """
    prepared = plan(*args, optimize=optimize)
    return list(prepared.path), prepared.report


def tensordot(x: Any, y: Any, /, *, axes: int | tuple[Sequence[int], Sequence[int]] = 2) -> Any:
    """Sum of products over pairs of axes; the result has the other axes of `x`, then those of `y`.

    Args:
        x: first operand.
        y: second operand.
        axes: the number of last axes of `x` to contract with as many first ones of `y`, or two sequences of axes.

    Raises:
        AxisError: an axis does not exist or is named twice.
        ShapeError: the extents of a pair differ.
    """
    x, y = _value(x), _value(y)
    if isinstance(axes, int):
        if not 0 <= axes <= min(x.ndim, y.ndim):
            raise AxisError(
                f"tensordot: cannot contract {axes} axes of operands with {x.ndim} and {y.ndim} axes", axes=axes
            )
        pairs: list[Any] = [range(x.ndim - axes, x.ndim), range(axes)]
    else:
        if not isinstance(axes, (tuple, list)) or len(axes) != 2:
            raise ArgumentError(f"tensordot takes axes as an integer or as two sequences of axes, got {axes!r}")
        pairs = [list(a) if isinstance(a, (tuple, list)) else [a] for a in axes]
    left, right = pairs
    if len(left) != len(right):
        raise AxisError(f"tensordot: {len(left)} axes of x are paired with {len(right)} of y; give as many of each")
    lx: list[Any] = [("x", a) for a in range(x.ndim)]
    ly: list[Any] = [("y", a) for a in range(y.ndim)]
    for n, (a, b) in enumerate(zip(_axes("x", left, x.ndim), _axes("y", right, y.ndim), strict=True)):
        lx[a] = ly[b] = ("pair", n)
    output = [z for z in lx + ly if z[0] != "pair"]
    return einsum(x, lx, y, ly, output)


def _axes(name: str, axes: Sequence[int], ndim: int) -> list[int]:
    if any(a.__class__ is not int or not -ndim <= a < ndim for a in axes) or len({a % ndim for a in axes}) < len(axes):
        raise AxisError(
            f"tensordot: axes of {name} must be distinct and within {ndim} axes, got {list(axes)}", axes=list(axes)
        )
    return [a % ndim for a in axes]


def _split(args: tuple[Any, ...]) -> tuple[Any, Sequence[Any]]:
    """A hashable form of the subscripts, and the operands."""
    if not args:
        raise ArgumentError('einsum needs subscripts and operands, as in einsum("ij,jk->ik", x, y)')
    if isinstance(args[0], str):
        return args[0], args[1:]
    operands, terms, output = interleaved(args)
    return (tuple(map(tuple, terms)), None if output is None else tuple(output)), operands


def _prepared(subscripts: Any, specs: tuple[Spec, ...], optimize: Any) -> ContractionPlan:
    if not isinstance(optimize, (bool, str)):
        if not isinstance(optimize, (tuple, list)):
            raise ArgumentError(f"einsum takes optimize as a bool, a name or a list of steps, got {optimize!r}")
        optimize = tuple(step if isinstance(step, str) else tuple(step) for step in optimize)
    if any(s.symbolic for s in specs):  # not remembered: its questions about sizes belong to the trace
        return ContractionPlan(_contraction(subscripts, [s.ndim for s in specs]), specs, optimize)
    key = (subscripts, specs, optimize)
    found = PLANS.table.get(key)
    if found is not None:
        return found
    return PLANS.get_or_make(
        key, lambda: ContractionPlan(_contraction(subscripts, [s.ndim for s in specs]), specs, optimize)
    )


def _contraction(subscripts: Any, ndims: list[int]) -> Contraction:
    if isinstance(subscripts, str):
        return parse(subscripts, ndims)
    terms, output = subscripts
    return build(terms, output, ndims)


def _value(x: Any) -> Any:
    if isinstance(x, Array):
        return x
    if isinstance(x, (np.ndarray, np.generic)) or x.__class__ in SCALARS:
        return tensor(x)
    raise ArgumentError(f"einsum: an operand is a {type(x).__name__}, not a tensor; make it one with asarray()")
