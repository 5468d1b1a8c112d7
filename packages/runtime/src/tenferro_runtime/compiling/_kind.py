"""`Kind`: what arguments have in common that may share a program, and what is new about those that may not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from tenferro_runtime.trees._tree import TreeDef
from tenferro_tensor import ComputeDevice, Spec

DROPPED: Final = "its program had been dropped"


class Kind(NamedTuple):
    """A class of arguments; programs of one kind differ in their answers to questions about sizes.

    Attributes:
        tree: structure of the arguments.
        leaves: for each of them its rank, dtype and place, or the class of a Python number.
        static: static arguments by name.
        device: the device that a scope names.
        data: what the function reads besides its arguments.
        exact: whether programs keep every bit.
    """

    tree: TreeDef
    leaves: tuple[Any, ...]
    static: tuple[Any, ...]
    device: ComputeDevice | None
    data: Any
    exact: bool

    def news(
        self,
        before: Kind,
        specs: Sequence[Spec],
        specs0: Sequence[Spec],
        label: Callable[[str], str],
        read: Sequence[str],
    ) -> str:
        """The first difference from another kind.

        Args:
            before: the other one.
            specs: the arguments of this one.
            specs0: those of the other one.
            label: names an argument by its path.
            read: names of what the function reads besides its arguments.
        """
        if self.tree is not before.tree:
            return f"structure {self.tree.show()} instead of {before.tree.show()}"
        for path, now, then, spec, spec0 in zip(
            self.tree.paths(), self.leaves, before.leaves, specs, specs0, strict=True
        ):
            if now != then:
                shown = [k.__name__ if isinstance(k, type) else repr(s) for k, s in ((now, spec), (then, spec0))]
                return f"{label(path)}: {shown[0]} instead of {shown[1]}"
        for (name, now), (_, then) in zip(self.static, before.static, strict=False):
            if now != then:
                return f"static {name} has changed"
        if self.static != before.static:
            return "other static arguments"
        if self.device is not before.device:
            return f"runs on {self.device} instead of {before.device}"
        if self.data != before.data:
            return f"data outside the arguments has changed: {', '.join(read)}"
        if self.exact != before.exact:
            return f"called by a function that is {'' if self.exact else 'not '}deterministic"
        return DROPPED
