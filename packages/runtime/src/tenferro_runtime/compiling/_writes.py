"""Assignments of a compiled function to elements of its arguments: its program returns them, and the call writes them.

So the caller's arrays change as the eager call changes them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tenferro_runtime.trees._containers import register_node
from tenferro_tensor import SCALARS, Array
from tenferro_tensor.calls import kin


class Written:
    """The result of a function, and the new values of the arguments that it wrote to.

    Args:
        result: the result.
        values: the new values.
        places: positions of these arguments among the leaves.
    """

    __slots__ = ("places", "result", "values")

    def __init__(self, result: Any, values: Sequence[Any], places: tuple[int, ...]) -> None:
        self.result, self.values, self.places = result, values, places

    def handed_over(self, leaves: Sequence[Any]) -> Any:
        """Write the values to the caller's arrays.

        Args:
            leaves: the arguments.

        Returns:
            The result.
        """
        for i, value in zip(self.places, self.values, strict=True):
            leaf = leaves[i]
            if isinstance(leaf, Array):
                leaf[...] = value
            else:
                np.copyto(leaf, value.numpy())
        return self.result


register_node(
    Written, lambda w: ((w.result, *w.values), w.places), lambda places, parts: Written(parts[0], parts[1:], places)
)


def with_writes(values: Sequence[Any], kinds: Sequence[Any], call: Any) -> Any:
    """The result of a traced function, with the arguments that it wrote to.

    Args:
        values: the arguments.
        kinds: classes of those that are Python numbers; their new values are the function's own.
        call: calls the function.

    Returns:
        The result, in a `Written` if the function wrote to an argument.
    """
    before = [(x.home, x.id) for x in values]
    result = call(values)
    places = tuple(
        [
            i
            for i, (x, kind, old) in enumerate(zip(values, kinds, before, strict=True))
            if kind not in SCALARS and (x._inside, x._link) != old
        ]
    )
    return Written(result, [values[i] for i in places], places) if places else result


def overlap(leaves: Sequence[Any]) -> bool:
    """Whether two arguments are one array or views of one, so that a write to one of them is a write to both.

    Args:
        leaves: the arguments.

    Returns:
        True if they are.
    """
    seen: set[int] = set()
    for x in leaves:
        if isinstance(x, Array):
            members = {id(v) for v in kin(x)}
        elif isinstance(x, np.ndarray):
            owner = x
            while isinstance(owner.base, np.ndarray):
                owner = owner.base
            members = {id(owner)}
        else:
            continue
        if seen & members:
            return True
        seen |= members
    return False
