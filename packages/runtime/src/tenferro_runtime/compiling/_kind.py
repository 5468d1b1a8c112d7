"""`Kind`: the properties of arguments that decide whether calls may share a program."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from tenferro_runtime.trees._tree import TreeDef
from tenferro_tensor import ComputeDevice, Spec

DROPPED: Final = "its program was dropped"


class Kind(NamedTuple):
    """The kind of a call's arguments; programs of one kind differ only in their guards on sizes.

    Attributes:
        tree: structure of the arguments.
        leaves: rank, dtype and place of each leaf, or the class of a Python number.
        static: static arguments by name.
        device: the device of the enclosing scope.
        data: the data that the function reads from closures and globals.
        exact: whether the program is deterministic.
    """

    tree: TreeDef
    leaves: tuple[Any, ...]
    static: tuple[Any, ...]
    device: ComputeDevice | None
    data: Any
    exact: bool

    def difference(
        self,
        before: Kind,
        specs: Sequence[Spec],
        specs0: Sequence[Spec],
        label: Callable[[str], str],
        read: Sequence[str],
    ) -> str:
        """The first difference from another kind, in words.

        Args:
            before: the other kind.
            specs: specs of this kind's arguments.
            specs0: specs of the other kind's arguments.
            label: returns the name of an argument with a given path.
            read: names of the data that the function reads from closures and globals.
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
