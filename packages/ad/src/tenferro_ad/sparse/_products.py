"""Products of a Jacobian with many seeds at a time, and the entries of a pattern read off them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from tenferro_ad._forward import jvp
from tenferro_ad._reverse import vjp
from tenferro_ad.sparse._plan import Group
from tenferro_runtime import compile as compiled
from tenferro_runtime import vmap
from tenferro_tensor import Spec, tensor

CHUNK_BYTES: Final = 1 << 26
"""Bytes of the seeds that are run at a time."""

Leaves = Sequence[Any]


class Products:
    """Compiled products of the Jacobian of a function of leaves.

    Attributes:
        count: number of leaves, the first ones, that are differentiated.
    """

    def __init__(self, f: Callable[..., tuple[Any, ...]], count: int) -> None:
        self.f, self.count = f, count
        self.push = compiled(self._push)
        self.pull = compiled(self._pull)

    def _split(self, leaves: Leaves) -> tuple[tuple[Any, ...], Callable[..., tuple[Any, ...]]]:
        chosen, rest = tuple(leaves[: self.count]), tuple(leaves[self.count :])
        return chosen, lambda *xs: self.f(*xs, *rest)

    def _push(self, seeds: tuple[Any, ...], *leaves: Any) -> tuple[Any, ...]:
        chosen, f = self._split(leaves)
        found: tuple[Any, ...] = vmap(lambda ts: jvp(f, chosen, ts)[1])(seeds)
        return found

    def _pull(self, seeds: tuple[Any, ...], *leaves: Any) -> tuple[Any, ...]:
        chosen, f = self._split(leaves)
        back = vjp(f, *chosen)[1]
        found: tuple[Any, ...] = vmap(back)(seeds)
        return found

    def fill(
        self, data: np.ndarray[Any, Any], group: Group, leaves: Leaves, seeded: Sequence[Spec], unit: complex = 1
    ) -> None:
        """Add the entries of one group of products to an array of all entries.

        Args:
            data: the entries.
            group: the products.
            leaves: the arguments.
            seeded: specs of the leaves or the outputs that the seeds are for.
            unit: the number that a seed has at the elements of its color; none where it is imaginary and these are
                real.
        """
        sizes = [int(s.size) for s in seeded]  # type: ignore[arg-type]
        bounds = np.concatenate([[0], np.cumsum(sizes)])
        width = int(bounds[-1]) * max(s.dtype.itemsize for s in seeded)
        for first, last in group.chunks(max(CHUNK_BYTES // max(width, 1), 1)):
            chosen = group.seeds(first, last)
            seeds = tuple([
                tensor(_times(chosen[:, a:b], unit, s).reshape(last - first, *s.shape))
                for a, b, s in zip(bounds, bounds[1:], seeded)
            ])  # fmt: skip
            products = (self.push if group.forward else self.pull)(seeds, *leaves)
            flat = [p.numpy().reshape(last - first, -1) for p in products]
            self._read(data, group, flat, first, last)

    def _read(self, data: np.ndarray[Any, Any], group: Group, flat: list[Any], first: int, last: int) -> None:
        joined = flat[0] if len(flat) == 1 else np.concatenate(flat, axis=1)
        for color in range(first, last):
            a, b = group.starts[color], group.starts[color + 1]
            data[group.entries[a:b]] = joined[color - first].take(group.positions[a:b])


def _times(chosen: np.ndarray[Any, Any], unit: complex, spec: Spec) -> np.ndarray[Any, Any]:
    if unit == 1:
        return chosen.astype(spec.dtype)
    return chosen.astype(spec.dtype) * spec.dtype.type(unit) if spec.cplx else np.zeros(chosen.shape, spec.dtype)
