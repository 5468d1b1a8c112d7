"""`Kind`: the properties of arguments that decide whether calls may share a program."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from tenferro_runtime.trees._tree import TreeDef
from tenferro_tensor import ComputeDevice, Spec


class Cause(NamedTuple):
    """Why a function is traced.

    Attributes:
        text: how the arguments are new.
        group: the same without their values, so that causes of one kind count together.
        remedy: the next step if it happens often; completes "To avoid traces, ".
    """

    text: str
    group: str
    remedy: str


FIRST: Final = Cause("first call", "first call", "")

DROPPED: Final = Cause(
    "its program was dropped",
    "its program was dropped",
    "compile one function for each kind of arguments: a function keeps a bounded number of programs",
)


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
        static: Sequence[tuple[str, Any]],
        static0: Sequence[tuple[str, Any]],
    ) -> Cause:
        """The first difference from another kind.

        Args:
            before: the other kind.
            specs: specs of this kind's arguments.
            specs0: specs of the other kind's arguments.
            label: returns the name of an argument with a given path.
            read: names of the data that the function reads from closures and globals.
            static: static arguments of this kind.
            static0: static arguments of the other kind.
        """
        if self.tree is not before.tree:
            return Cause(
                f"structure {self.tree.show()} instead of {before.tree.show()}",
                "another structure of the arguments",
                "pass containers of one structure, with arrays in place of sequences of varying length, and the same "
                "constants (strings and other objects) in every call",
            )
        for path, now, then, spec, spec0 in zip(
            self.tree.paths(), self.leaves, before.leaves, specs, specs0, strict=True
        ):
            if now != then:
                shown = [k.__name__ if isinstance(k, type) else repr(s) for k, s in ((now, spec), (then, spec0))]
                return Cause(
                    f"{label(path)}: {shown[0]} instead of {shown[1]}",
                    f"another rank, dtype or device of {label(path)}",
                    f"convert {label(path)} to one rank, dtype and device before the call, or compile one function for "
                    "each",
                )
        for k, ((name, now), (_, then)) in enumerate(zip(self.static, before.static)):
            if now != then:
                return Cause(
                    f"static {name} is {static[k][1]!r:.60} instead of {static0[k][1]!r:.60}",
                    f"another value of the static argument {name}",
                    f"pass {name} as an ordinary argument if it is a number or an array and no branch or shape depends "
                    "on it; every value of a static argument has a program of its own",
                )
        if self.static != before.static:
            text = "other static arguments"
            return Cause(text, text, "pass the same static arguments in every call")
        if self.device is not before.device:
            text = f"runs on {self.device} instead of {before.device}"
            return Cause(text, "another device of the scope", "call the function in the scope of one device")
        if self.data != before.data:
            text = f"data outside the arguments has changed: {', '.join(read)}"
            return Cause(text, text, "pass data that changes as an argument")
        if self.exact != before.exact:
            text = f"called by a function that is {'' if self.exact else 'not '}deterministic"
            return Cause(text, "called by functions of both kinds", "compile one function for each kind of caller")
        return DROPPED
