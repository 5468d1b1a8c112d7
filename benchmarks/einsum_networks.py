"""Generated networks of many tensors: tenferro beside NumPy, PyTorch and JAX, along the same paths.

    python3 dev run benchmarks/einsum_networks.py [--quick] [--dtype D] [--rounds N] [--threads N] [--only TEXT]

Kinds that libraries of paths are tested with: random equations with hyper-edges, lattices, random regular graphs and
trees of cotengra's generators, open circuits of gates on pairs, and rings with a batch. ``--seed`` makes others. Paths
are those of opt_einsum's ``auto``; networks that cost much less or more than a millisecond to a second are not taken.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from contestants import Instance, Table, parser, prepare

LEAST, MOST = 1e5, 2e9
"""Operations of a network that is taken."""


def instance(name: str, terms: list[str], output: str, sizes: dict[str, int]) -> Instance | None:
    """With its path, if it is neither too small nor too large."""
    import opt_einsum

    subscripts = f"{','.join(terms)}->{output}"
    shapes = tuple(tuple(sizes[x] for x in term) for term in terms)
    path, info = opt_einsum.contract_path(subscripts, *shapes, shapes=True, optimize="auto")
    fits = LEAST <= info.opt_cost <= MOST and info.largest_intermediate < 1 << 24
    return Instance(name, subscripts, shapes, tuple(map(tuple, path))) if fits else None


def equations(seed: int) -> Iterator[tuple[str, list[str], str, dict[str, int]]]:
    """Random equations, with axes that stay and axes on several tensors."""
    import cotengra

    for number in range(8):
        n, outer, hyper = 6 + 3 * number, number % 4, 2 * (number % 3)
        inputs, output, _, sizes = cotengra.utils.rand_equation(
            n, 3, n_out=outer, n_hyper_in=hyper, d_min=2, d_max=7, seed=seed + number
        )
        yield f"equation of {n}, {hyper} hyper-edges", ["".join(term) for term in inputs], "".join(output), sizes


def graphs(seed: int) -> Iterator[tuple[str, list[str], str, dict[str, int]]]:
    """Lattices, regular graphs and trees of cotengra's generators."""
    import cotengra

    made = [(f"lattice {dims} of {d}", cotengra.utils.lattice_equation(dims, d_min=d, d_max=d, seed=seed))
            for dims, d in (((4, 4), 6), ((6, 6), 3), ((8, 8), 2), ((3, 3, 3), 2), ((12, 3), 5))]  # fmt: skip
    made += [(f"regular graph of {n}, {d}", cotengra.utils.randreg_equation(n, 3, d_min=d, d_max=d, seed=seed + n))
             for n, d in ((20, 3), (30, 3), (40, 2))]  # fmt: skip
    made += [(f"tree of {n}", cotengra.utils.tree_equation(n, d_min=8, d_max=40, n_outer=3, seed=seed + n))
             for n in (20, 60)]  # fmt: skip
    for name, (inputs, output, _, sizes) in made:
        yield name, ["".join(term) for term in inputs], "".join(output), sizes


def circuits(seed: int) -> Iterator[tuple[str, list[str], str, dict[str, int]]]:
    """Gates on random pairs of lines; some lines stay open, the others are closed with vectors."""
    import opt_einsum

    for lines, gates, open_lines in ((10, 40, 4), (14, 40, 8), (16, 60, 2)):
        rng = random.Random(seed + lines)
        labels = (opt_einsum.get_symbol(k) for k in range(10_000))
        now = [next(labels) for _ in range(lines)]
        terms = list(now)
        for _ in range(gates):
            i, j = rng.sample(range(lines), 2)
            made = [next(labels), next(labels)]
            terms.append("".join([*made, now[i], now[j]]))
            now[i], now[j] = made
        terms += now[open_lines:]
        yield f"circuit of {lines} lines", terms, "".join(now[:open_lines]), dict.fromkeys("".join(terms), 2)


def chains(seed: int) -> Iterator[tuple[str, list[str], str, dict[str, int]]]:
    """Rings of matrices with a shared batch, in any order of axes."""
    rng = random.Random(seed)
    for count, extent, batch in ((6, 24, 32), (20, 12, 64), (10, 60, 3)):
        labels = "abcdefghijklmnopqrstuvwxyz"[:count]
        terms = ["".join(rng.sample([labels[k], labels[(k + 1) % count], "B"], 3)) for k in range(count)]
        yield f"ring of {count}, batch {batch}", terms, "B", dict.fromkeys(labels, extent) | {"B": batch}


if __name__ == "__main__":
    options = parser(__doc__)
    options.add_argument("--seed", type=int, default=0)
    chosen = options.parse_args()
    prepare(chosen)
    found = [instance(*one) for kind in (equations, graphs, circuits, chains) for one in kind(chosen.seed)]
    Table(chosen).run([one for one in found if one is not None and chosen.only in one.name])
