"""`while_loop`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tenferro_runtime.control_flow import primitives
from tenferro_runtime.control_flow._agreement import in_kind, require_tree, same_carry
from tenferro_runtime.control_flow._bodies import Run, closed, settled
from tenferro_runtime.control_flow._carry import Carry
from tenferro_runtime.control_flow._values import kind_of, name_of, require_functions
from tenferro_runtime.ir._source import here
from tenferro_runtime.tracing._traced import innermost, is_traced
from tenferro_runtime.trees._tree import unflatten
from tenferro_tensor import catalog
from tenferro_tensor.functions import asarray
from tenferro_tensor_core import ArgumentError


def while_loop(
    cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], Any], init: Any, *, max_steps: int | None = None
) -> Any:
    """Apply `body_fun` to a carry as long as `cond_fun` holds; the last carry.

    On concrete values, differentiated ones included, this is Python's own loop. On traced values it is recorded: both
    functions are traced once, and may use values from outside.

    Args:
        cond_fun: a function of the carry to one boolean.
        body_fun: a function of the carry to a carry of the same containers, shapes and dtypes. A Python number in
            `init` takes the dtype that the body gives it.
        init: the first carry: arrays and numbers in any containers.
        max_steps: stop after that many steps, whatever the condition says. A recorded loop with this bound can be
            differentiated in reverse mode: it keeps room for as many steps. One without has forward mode only.

    Raises:
        ArgumentError: the condition is not a single element, `max_steps` is no integer of at least 0, or what is to
            be called is no function.
        StructureError: the carry changes its structure, shape or dtype.

    >>> tr.compile(lambda n: tr.while_loop(lambda c: c < n, lambda c: 2 * c, 1))(100)
    Tensor(128)
    """
    if max_steps is not None and (max_steps.__class__ is not int or max_steps < 0):
        raise ArgumentError(f"while_loop takes an integer of at least 0 as max_steps{here()}, got {max_steps!r}")
    require_functions("while_loop", cond_fun, body_fun)
    carry = Carry("while_loop", init, body_fun)
    left = max_steps
    while left != 0:
        pred = None if carry.traced else _single(cond_fun(carry.tree_of_leaves), cond_fun)
        if pred is None or is_traced(pred):
            return _recorded(cond_fun, body_fun, carry, left)
        if not bool(innermost(pred)):
            break
        if carry.step(lambda value: (body_fun(value), None)) is None:
            return _recorded(cond_fun, body_fun, carry, left)
        left = None if left is None else left - 1
    return carry.arrays()


def _single(x: Any, f: Any) -> Any:
    if hasattr(x, "spec") and x.spec.shape != ():
        raise ArgumentError(
            f"the condition {name_of(f)} of while_loop gives a single element{here()}, not {x.spec!r}; reduce it with "
            "any() or all()",
            spec=repr(x.spec),
        )
    return x if hasattr(x, "spec") else asarray(x)


def _recorded(
    cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], Any], carry: Carry, max_steps: int | None
) -> Any:
    tree, leaves = carry.tree, carry.leaves
    body, kinds = settled("while_loop", lambda xs: body_fun(unflatten(tree, xs)), [kind_of(v) for v in leaves], ())
    require_tree("while_loop", tree, "the carry", body.tree, body_fun)
    outs = same_carry("while_loop", list(tree.paths()), kinds, body.leaves, body_fun)
    condition = Run("while_loop", lambda xs: _truth(cond_fun(unflatten(tree, xs)), cond_fun), kinds)
    programs, captured = closed((condition, body), (condition.leaves, outs))
    arrays = [in_kind(v, kind) for v, kind in zip(leaves, kinds, strict=True)]
    found = primitives.while_loop(
        *captured, *arrays, cond=programs[0], body=programs[1], consts=len(captured), max_steps=max_steps
    )
    return unflatten(tree, found)


def _truth(x: Any, f: Any) -> Any:
    pred = _single(x, f)
    return pred if pred.spec.dtype.kind == "b" else catalog.ne(pred, 0)
