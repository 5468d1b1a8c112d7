"""Batched products of a Jacobian with seeds, and the extraction of a pattern's entries from them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tenferro_ad._forward import jvp
from tenferro_ad._reverse import vjp
from tenferro_ad.sparse._plan import Chunk, Group
from tenferro_runtime import compile as compiled
from tenferro_runtime import vmap
from tenferro_tensor import Spec, catalog, tensor

Leaves = Sequence[Any]


class Products:
    """Compiled products of the Jacobian of a function of leaves.

    Each maps a batch of color numbers, the colors of the seeded arrays, and the leaves to the products with one seed
    for each color.

    Attributes:
        push: products with tangents, with real and with imaginary seeds.
        pull: products with cotangents, with real and with imaginary seeds.
    """

    def __init__(self, f: Callable[..., tuple[Any, ...]], count: int) -> None:
        self.push = compiled(_push(f, count, False)), compiled(_push(f, count, True))
        self.pull = compiled(_pull(f, count, False)), compiled(_pull(f, count, True))

    def fill(self, data: np.ndarray[Any, Any], group: SeededGroup, leaves: Leaves, imaginary: bool = False) -> None:
        """Write the entries of one group of products into an array of all entries.

        Args:
            data: the entries.
            group: the products.
            leaves: the arguments.
            imaginary: use seeds of the imaginary unit, and of zero for real arrays, instead of 1.
        """
        run = (self.push if group.forward else self.pull)[imaginary]
        for which, chunk in group.chunks:
            found = run(which, group.colors, leaves)
            products = [p.numpy().reshape(chunk.last - chunk.first, -1) for p in found]
            joined = products[0] if len(products) == 1 else np.concatenate(products, axis=1)
            if chunk.entries is not None:
                data[chunk.entries] = joined.reshape(-1).take(chunk.offsets)
            elif joined.dtype == data.dtype:
                # All offsets are in range; with its default mode, NumPy would buffer the output.
                joined.reshape(-1).take(chunk.offsets, out=data, mode="clip")
            else:
                data[:] = joined.reshape(-1).take(chunk.offsets)


# Functions, not methods: `compile` looks for captured values in closures.


def _push(f: Callable[..., tuple[Any, ...]], count: int, imaginary: bool) -> Callable[..., Any]:
    def push(which: Any, colors: tuple[Any, ...], leaves: tuple[Any, ...]) -> Any:
        chosen, rest = leaves[:count], leaves[count:]
        specs = [x.spec for x in chosen]

        def lane(color: Any) -> Any:
            return jvp(lambda *xs: f(*xs, *rest), chosen, _seeds(color, colors, imaginary, specs))[1]

        return vmap(lane)(which)

    return push


def _pull(f: Callable[..., tuple[Any, ...]], count: int, imaginary: bool) -> Callable[..., Any]:
    def pull(which: Any, colors: tuple[Any, ...], leaves: tuple[Any, ...]) -> Any:
        chosen, rest = leaves[:count], leaves[count:]
        outs, back = vjp(lambda *xs: f(*xs, *rest), *chosen)
        specs = [y.spec for y in outs]
        return vmap(lambda color: back(_seeds(color, colors, imaginary, specs)))(which)

    return pull


class SeededGroup(NamedTuple):
    """A group of products with its seeds.

    Attributes:
        forward: whether the seeds are tangents, rather than cotangents.
        colors: colors of the elements of each seeded array.
        chunks: the colors of each batch, and the entries to extract.
        cplx: whether a seeded array is complex.
    """

    forward: bool
    colors: tuple[Any, ...]
    chunks: tuple[tuple[Any, Chunk], ...]
    cplx: bool


def seeded(group: Group, specs: Sequence[Spec]) -> SeededGroup:
    """A group of products with seeds for arrays of given specs."""
    sizes = [int(s.size) for s in specs]  # type: ignore[arg-type]
    bounds = np.cumsum([0, *sizes])
    of_all = group.coloring.colors
    colors = tuple([
        tensor(of_all[a:b].reshape(s.shape), device=s.place.device)
        for a, b, s in zip(bounds, bounds[1:], specs, strict=False)
    ])  # fmt: skip
    device = specs[0].place.device
    chunks = tuple([(tensor(np.arange(c.first, c.last, dtype=np.int32), device=device), c) for c in group.chunks])
    return SeededGroup(group.forward, colors, chunks, any(s.cplx for s in specs))


def _seeds(color: Any, colors: Sequence[Any], imaginary: bool, specs: Sequence[Spec]) -> tuple[Any, ...]:
    """The seed that is nonzero at the elements of one color."""
    found = []
    for each, spec in zip(colors, specs, strict=True):
        # The reshape declares the extents equal to the value's, so that they may stay symbolic.
        seed = catalog.convert(catalog.reshape(each, shape=spec.shape) == color, dtype=spec.dtype)
        if imaginary:
            seed = seed * 1j if spec.cplx else seed * 0
        found.append(seed)
    return tuple(found)
