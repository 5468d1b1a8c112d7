"""`cond` and `switch`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from tenferro_runtime.control_flow import primitives
from tenferro_runtime.control_flow._agreement import in_kind, joined_kinds, require_tree
from tenferro_runtime.control_flow._bodies import Run, closed
from tenferro_runtime.control_flow._values import kind_of, leaf_values, require_functions
from tenferro_runtime.ir._source import here
from tenferro_runtime.tracing._traced import innermost, is_traced
from tenferro_runtime.trees._tree import flatten, map_tree, unflatten
from tenferro_tensor import catalog, tensor
from tenferro_tensor.functions import asarray
from tenferro_tensor.identity import handed
from tenferro_tensor_core import ArgumentError, conditional
from tenferro_tensor_core.tracebacks import boundary

if TYPE_CHECKING:
    from tenferro_runtime._signatures import R


@boundary
def cond(pred: Any, true_fun: Callable[..., R], false_fun: Callable[..., R], *operands: Any) -> R:
    """Return ``true_fun(*operands)`` if `pred` holds, else ``false_fun(*operands)``.

    With a concrete predicate, only the chosen function is called, as with ``if``. With a traced predicate, both
    functions are traced and must return equal structures; the program computes only the chosen one. Both may use values
    from outside.

    Args:
        pred: one boolean, or one number, which is true unless it is 0.
        true_fun: a function of the operands that returns arrays in any containers.
        false_fun: a function that returns the same containers, shapes and dtypes.
        operands: arrays and numbers in any containers.

    Returns:
        The result of the chosen function.

    Raises:
        ArgumentError: `pred` is not a single element, or a branch is not a function.
        StructureError: the functions, both traced, return different structures, shapes or dtypes.

    >>> f = tr.compile(lambda x: tr.cond(tr.sum(x) > 0, tr.sqrt, tr.zeros_like, x))
    >>> f(tr.asarray([1.0, 4.0])), f(tr.asarray([1.0, -4.0]))
    (Tensor([1., 2.]), Tensor([0., 0.]))
    """
    require_functions("cond", true_fun, false_fun)
    p = _single(pred, "cond")
    if not is_traced(p):
        return _taken("cond", true_fun if bool(innermost(p)) else false_fun, operands)
    if p.spec.dtype.kind != "b":
        p = catalog.ne(p, 0)
    return _recorded("cond", p, (false_fun, true_fun), operands)


@boundary
def switch(index: Any, branches: Sequence[Callable[..., R]], *operands: Any) -> R:
    """Return ``branches[index](*operands)``; an index out of range chooses the nearest branch.

    The extension of `cond` to any number of functions.

    Args:
        index: one integer.
        branches: functions of the operands; all return the same containers, shapes and dtypes.
        operands: arrays and numbers in any containers.

    Returns:
        The result of the chosen function.

    Raises:
        ArgumentError: `index` is not a single integer, there are no branches, or one is not a function.
        StructureError: the functions return different structures, shapes or dtypes.

    >>> tr.switch(1, [lambda x: x, lambda x: -x, lambda x: x * x], tr.asarray(3.0))
    Tensor(-3.)
    """
    functions = tuple(branches)
    i = _single(index, "switch")
    if not functions:
        raise ArgumentError(f"switch needs at least one branch{here()}, got none")
    require_functions("switch", *functions)
    if i.spec.dtype.kind not in "iu":
        raise ArgumentError(f"switch takes one integer as index{here()}, got {i.spec!r}; convert it with astype")
    if len(functions) == 1 or not is_traced(i):
        chosen = 0 if len(functions) == 1 else min(max(int(innermost(i)), 0), len(functions) - 1)
        return _taken("switch", functions[chosen], operands)
    return _recorded("switch", i, functions, operands)


def _single(x: Any, name: str) -> Any:
    value = asarray(x)
    if value.spec.shape != ():
        raise ArgumentError(
            f"{name} decides by a single element{here()}, got {value.spec!r}; reduce it with any() or all(), or choose "
            "element by element with where()",
            spec=repr(value.spec),
        )
    return value


def _taken(name: str, branch: Callable[..., Any], operands: tuple[Any, ...]) -> Any:
    """The result of the branch that a concrete predicate chooses."""
    leaves, tree = flatten(branch(*map_tree(handed, operands)))
    return unflatten(tree, [asarray(x) for x in leaf_values(leaves, tree, f"the result of a function given to {name}")])


def _recorded(name: str, index: Any, functions: Sequence[Callable[..., Any]], operands: tuple[Any, ...]) -> Any:
    leaves, tree = flatten(operands)
    values = leaf_values(leaves, tree, f"an operand of {name}")
    kinds = [kind_of(v) for v in values]
    runs: list[Run] = []
    for f in functions:
        with conditional():
            runs.append(Run(name, lambda xs, f=f: f(*unflatten(tree, [handed(x) for x in xs])), kinds))  # type: ignore[misc]
        require_tree(name, runs[0].tree, "another branch", runs[-1].tree, f)
    goals = joined_kinds(name, list(runs[0].tree.paths()), [run.leaves for run in runs], functions)
    outputs = [[in_kind(leaf, goal) for leaf, goal in zip(run.leaves, goals, strict=True)] for run in runs]
    if not goals:  # branches without results, for their effects
        outputs = [[tensor(False)] for _ in runs]
    programs, captured = closed(runs, outputs)
    arrays = [in_kind(v, kind) for v, kind in zip(values, kinds, strict=True)]
    found = primitives.cond(index, *captured, *arrays, branches=tuple(programs))
    return unflatten(runs[0].tree, found[: len(goals)])
