"""`while_loop`."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, Final, overload

from tenferro_runtime.control_flow import primitives
from tenferro_runtime.control_flow._agreement import in_kind, require_tree, same_carry
from tenferro_runtime.control_flow._bodies import Run, closed, settled
from tenferro_runtime.control_flow._budget import budget_of, within_budget
from tenferro_runtime.control_flow._carry import Carry
from tenferro_runtime.control_flow._values import kind_of, name_of, require_functions
from tenferro_runtime.ir._source import here
from tenferro_runtime.tracing._traced import innermost, is_traced
from tenferro_runtime.tracing.effects._recording import Attempt, ambient
from tenferro_runtime.trees._tree import unflatten
from tenferro_tensor import Interval, catalog
from tenferro_tensor.functions import asarray
from tenferro_tensor_core import ArgumentError, Dim, DimLike, as_size, conditional
from tenferro_tensor_core.tracebacks import boundary

if TYPE_CHECKING:
    from tenferro_runtime._signatures import Leaf, R
    from tenferro_tensor import Array

_SURE: Final = nullcontext()


@overload
def while_loop(
    cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], Any], init: Leaf, *, max_steps: Any = ...,
    memory_budget: int | None = ...,
) -> Array: ...  # fmt: skip
@overload
def while_loop(
    cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], R], init: Any, *, max_steps: Any = ...,
    memory_budget: int | None = ...,
) -> R: ...  # fmt: skip
@boundary
def while_loop(
    cond_fun: Callable[[Any], Any],
    body_fun: Callable[[Any], Any],
    init: Any,
    *,
    max_steps: Any = None,
    memory_budget: int | None = None,
) -> Any:
    """Apply `body_fun` to a carry while `cond_fun` holds, and return the last carry.

    On concrete values, including differentiated ones, this is a Python loop. On traced values it is recorded: both
    functions are traced once, and may use values from outside.

    Args:
        cond_fun: a function of the carry that returns one boolean.
        body_fun: a function of the carry that returns a carry of the same containers, shapes and dtypes. A Python
            number in `init` takes the dtype of the body's result.
        init: initial carry: arrays and numbers in any containers.
        max_steps: largest number of steps: an integer or a size. Without a `memory_budget`, the reverse mode of a
            recorded loop then reserves memory for that many steps.
        memory_budget: bytes that reverse mode may store: the carries before some steps, between which it recomputes.
            The loop is then recorded also on concrete values. Without `max_steps`, the default budget of a recorded
            loop is 64 MiB.

    Returns:
        The last carry.

    Raises:
        ArgumentError: the condition is not a single element, `max_steps` is not an integer of at least 0,
            `memory_budget` is not a positive integer, or an argument that must be a function is not.
        StructureError: the carry changes its structure, shape or dtype.

    >>> tr.compile(lambda n: tr.while_loop(lambda c: c < n, lambda c: 2 * c, 1))(100)
    Tensor(128)
    """
    require_functions("while_loop", cond_fun, body_fun)
    left = most_steps("while_loop", max_steps)
    budget = budget_of("while_loop", memory_budget)
    carry = Carry("while_loop", init, body_fun)
    if isinstance(left, Dim) or budget is not None or (left != 0 and carry.traced):
        return recorded_while("while_loop", cond_fun, body_fun, carry, left, budget=budget)
    unsure = True  # whether a step may turn out to be traced: any step inside a trace, else only the first
    while left != 0:
        with Attempt() if unsure else _SURE as attempt:
            goes_on = _step(cond_fun, body_fun, carry)
            if goes_on is None and attempt is not None:
                attempt.give_up()
            unsure = unsure and ambient() is not None
        if goes_on is None:
            return recorded_while("while_loop", cond_fun, body_fun, carry, left)
        if not goes_on:
            break
        left = None if left is None else left - 1
    return carry.arrays()


def _step(cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], Any], carry: Carry) -> bool | None:
    """Run a step in Python; return whether the condition held, or ``None`` if the loop must be recorded."""
    pred = _single(cond_fun(carry.tree_of_leaves), cond_fun)
    if is_traced(pred):
        return None
    if not bool(innermost(pred)):
        return False
    return None if carry.step(lambda value: (body_fun(value), None)) is None else True


def most_steps(what: str, n: Any) -> DimLike | None:
    """Check the argument `max_steps` of a loop.

    Raises:
        ArgumentError: it is neither ``None`` nor an integer or a size of at least 0.
    """
    if n is None:
        return None
    n = as_size(n)
    if not isinstance(n, Dim) and (n.__class__ is not int or n < 0):
        raise ArgumentError(f"{what} takes an integer of at least 0 as max_steps{here()}, got {n!r}")
    return n


def _single(x: Any, f: Any) -> Any:
    if hasattr(x, "spec") and x.spec.shape != ():
        raise ArgumentError(
            f"the condition {name_of(f)} of while_loop must return a single element{here()}, not {x.spec!r}; reduce it "
            "with any() or all()",
            spec=repr(x.spec),
        )
    return x if hasattr(x, "spec") else asarray(x)


def recorded_while(
    what: str,
    cond_fun: Callable[[Any], Any],
    body_fun: Callable[[Any], Any],
    carry: Carry,
    max_steps: DimLike | None,
    first: Interval | None = None,
    budget: int | None = None,
) -> Any:
    """The loop as one operation, on concrete or traced operands.

    Args:
        what: the function that the user called.
        cond_fun: the condition.
        body_fun: the body.
        carry: initial carry.
        max_steps: largest number of steps.
        first: bounds of the first leaf of the carry, an integer, while the condition holds.
        budget: bytes that reverse mode may store.
    """
    tree, leaves = carry.tree, carry.leaves
    entry = [kind_of(v) for v in leaves]
    if first is not None:
        entry[0] = entry[0]._replace(interval=first)
    with conditional():
        body, kinds = settled(what, lambda xs: body_fun(unflatten(tree, xs)), entry, ())
    require_tree(what, tree, "the carry", body.tree, body_fun)
    outs = same_carry(what, list(tree.paths()), kinds, body.leaves, body_fun)
    kinds = [kind._replace(interval=None) for kind in kinds]
    condition = Run(what, lambda xs: _truth(cond_fun(unflatten(tree, xs)), cond_fun), kinds)
    programs, captured = closed((condition, body), (condition.leaves, outs))
    arrays = [in_kind(v, kind) for v, kind in zip(leaves, kinds, strict=True)]
    op = primitives.while_loop.op(cond=programs[0], body=programs[1], consts=len(captured), max_steps=max_steps)
    return unflatten(tree, within_budget(op, [*captured, *arrays], budget))


def _truth(x: Any, f: Any) -> Any:
    pred = _single(x, f)
    return pred if pred.spec.dtype.kind == "b" else catalog.ne(pred, 0)
