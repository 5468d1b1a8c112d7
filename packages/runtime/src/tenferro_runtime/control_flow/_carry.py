"""`Carry`: the carry of a loop that runs in Python, under the same law as a recorded one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tenferro_runtime.control_flow._agreement import in_kind, next_kind, require_tree, same_carry
from tenferro_runtime.control_flow._blocks import keep_written_out
from tenferro_runtime.control_flow._values import kind_of, leaf_values, weak_class
from tenferro_runtime.tracing._traced import is_traced
from tenferro_runtime.tracing.effects._recording import Attempt
from tenferro_runtime.trees._tree import flatten, unflatten
from tenferro_tensor import SCALARS, Tensor, catalog
from tenferro_tensor.functions import asarray


class Carry:
    """The carry of a loop that runs in Python.

    Attributes:
        leaves: its present leaves; Python numbers stay numbers while the body returns numbers.
    """

    def __init__(self, what: str, init: Any, f: Any) -> None:
        leaves, self.tree = flatten(init)
        self.leaves = leaf_values(leaves, self.tree, f"the carry of {what}")
        self.what, self.f = what, f

    @property
    def tree_of_leaves(self) -> Any:
        """The carry as an argument of the body."""
        return unflatten(self.tree, self.leaves)

    @property
    def traced(self) -> bool:
        """Whether some leaf is traced."""
        return any(map(is_traced, self.leaves))

    def arrays(self) -> Any:
        """The carry with numbers converted to arrays."""
        return unflatten(self.tree, [asarray(leaf) for leaf in self.leaves])

    def step(self, body: Callable[[Any], tuple[Any, Any]], *, unroll: bool = False) -> tuple[Any, ...] | None:
        """Run the body once, store the new carry, and return the other results in a tuple.

        If the body returns an array for a number, the number becomes an array and the step is repeated. If the carry
        turns out to be traced, the old carry is kept and the result is ``None``, unless the loop is unrolled.
        """
        if any(leaf.__class__ is not Tensor and weak_class(leaf) is not None for leaf in self.leaves):
            with Attempt() as attempt:
                made = self._step(body, unroll)
                if made is None or not made:
                    attempt.give_up()
        else:
            made = self._step(body, unroll)
        return self.step(body, unroll=unroll) if made == () else made

    def _step(self, body: Callable[[Any], tuple[Any, Any]], unroll: bool) -> tuple[Any, ...] | None:
        """As `step`, but returns an empty tuple if the step must be repeated."""
        carry, beside = body(self.tree_of_leaves)
        leaves, tree = flatten(carry)
        if unroll:
            keep_written_out(leaves)
        if tree is self.tree:  # the fast path of concrete steps
            for before, after in zip(self.leaves, leaves):
                if not before.__class__ is Tensor is after.__class__ or before.spec is not after.spec:
                    break
            else:
                self.leaves = leaves
                return (beside,)
        require_tree(self.what, self.tree, "the carry", tree, self.f)
        outs = leaf_values(leaves, tree, f"the carry of {self.what}")
        if not unroll and any(map(is_traced, outs)):
            return None
        entry = [kind_of(leaf) for leaf in self.leaves]
        kinds = [next_kind(kind, out) for kind, out in zip(entry, outs, strict=True)]
        arrays = [i for i, kind in enumerate(kinds) if kind.weak is None and entry[i].weak is not None]
        if arrays:
            for i in arrays:
                x = in_kind(self.leaves[i], kinds[i])
                # A traced value that represents a number stays weak unless it is converted to an array.
                self.leaves[i] = x if weak_class(x) is None else catalog.convert(x, dtype=kinds[i].spec.dtype)
            return ()
        brought = same_carry(self.what, list(self.tree.paths()), kinds, outs, self.f)
        self.leaves = [
            kind.weak(out) if kind.weak is not None and out.__class__ in SCALARS else array
            for kind, out, array in zip(kinds, outs, brought, strict=True)
        ]
        return (beside,)
