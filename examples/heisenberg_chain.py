"""The ground state of a Heisenberg spin chain by Lanczos, and the gradient of its energy by every coupling.

The chain of n spins one half, open or closed to a ring, with a coupling for each bond,

    H = sum J[i] S[i] . S[i+1],        S[i] . S[j] = (exchange of i and j) / 2 - 1/4,

acts on 2^n amplitudes. No matrix is made: an exchange of two spins is an exchange of two axes, so that the product of H
with a state is a sum of transposed arrays, and `eigsh` needs nothing else. The derivative of the energy by J[i] is the
correlation <S[i] . S[i+1]> of the ground state (Hellmann and Feynman), which is computed beside it; second derivatives,
how a correlation answers to a change of another coupling, follow from the same differentiation.

The default couplings are those of a chain of 16 sites with a weak bond in the middle.

Run it with `python3 dev run examples/heisenberg_chain.py --sites 16 --plot chain.png`.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import tenferro_runtime as tr
from tenferro_ad import value_and_grad
from tenferro_linalg import eigsh


def exchanged(state: Any, i: int, j: int, sites: int) -> Any:
    """The state with spins i and j, where i < j, in each other's place."""
    parts = (2**i, 2, 2 ** (j - i - 1), 2, 2 ** (sites - j - 1))
    return tr.reshape(tr.permute_dims(tr.reshape(state, parts), (0, 3, 2, 1, 4)), (-1,))


def bonds(sites: int, ring: bool) -> list[tuple[int, int]]:
    """The pairs of neighbours."""
    return [(i, i + 1) for i in range(sites - 1)] + ([(0, sites - 1)] if ring else [])


def hamiltonian(couplings: Any, sites: int, ring: bool) -> Any:
    """The function that multiplies a state with H."""

    def apply(state: Any) -> Any:
        found = -0.25 * tr.sum(couplings) * state
        for k, (i, j) in enumerate(bonds(sites, ring)):
            found = found + 0.5 * couplings[k] * exchanged(state, i, j, sites)
        return found

    return apply


def start(sites: int) -> np.ndarray[Any, Any]:
    """A state without symmetries but the total spin along z, which is 0 or 1/2."""
    up = np.array([bin(k).count("1") for k in range(2**sites)])
    return np.where(up == sites // 2, np.sin(1.0 + np.arange(2.0**sites)), 0.0)


def ground_energy(couplings: Any, sites: int, ring: bool = False) -> Any:
    """The lowest eigenvalue of H."""
    apply = hamiltonian(couplings, sites, ring)
    return eigsh(apply, 1, which="SA", v0=start(sites), return_eigenvectors=False)[0]


def correlations(couplings: Any, sites: int, ring: bool = False) -> np.ndarray[Any, Any]:
    """<S[i] . S[j]> of the ground state for all neighbours, without a derivative."""
    _, v = eigsh(hamiltonian(couplings, sites, ring), 1, which="SA", v0=start(sites))
    state = v[:, 0]
    return np.array(
        [(tr.vecdot(state, exchanged(state, i, j, sites)) / 2 - 0.25).item() for i, j in bonds(sites, ring)]
    )


def weak_in_the_middle(sites: int, ring: bool, weak: float) -> np.ndarray[Any, Any]:
    """Couplings of 1, and another one for the bond in the middle."""
    found = np.ones(len(bonds(sites, ring)))
    found[(sites - 1) // 2] = weak
    return found


def draw(path: Path, couplings: Any, gradient: Any, energy: float) -> None:
    """Couplings and correlations along the chain."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    places = np.arange(len(couplings)) + 0.5
    axes.bar(places, gradient, width=0.7, color="tab:blue", label="dE / dJ[i] = <S[i] . S[i+1]>")
    axes.plot(places, -np.asarray(couplings), "o--", color="tab:orange", label="- J[i]")
    axes.axhline(-0.75, color="gray", linewidth=0.8)
    axes.text(places[-1], -0.74, "singlet", ha="right", va="bottom", color="gray")
    axes.set(xlabel="bond", title=f"Heisenberg chain of {len(couplings) + 1} sites, E = {energy:.10f}")
    axes.legend(loc="upper right")
    figure.savefig(path)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the example; 0 if the gradient is that of Hellmann and Feynman."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sites", type=int, default=16, help="number of spins, from 2 to 20")
    parser.add_argument("--weak", type=float, default=0.5, help="coupling of the bond in the middle")
    parser.add_argument("--ring", action="store_true", help="close the chain")
    parser.add_argument("--plot", type=Path, help="draw a figure: .png, .pdf or .svg")
    options = parser.parse_args(arguments)
    if not 2 <= options.sites <= 20:
        parser.error("--sites takes an integer from 2 to 20")
    couplings = tr.asarray(weak_in_the_middle(options.sites, options.ring, options.weak))
    begin = time.perf_counter()
    energy, gradient = value_and_grad(ground_energy)(couplings, options.sites, options.ring)
    spent = time.perf_counter() - begin
    expected = correlations(couplings, options.sites, options.ring)
    error = float(np.abs(gradient.numpy() - expected).max())
    print(
        f"{options.sites} sites, {2**options.sites} amplitudes: E = {energy.item():.12f}  ({spent:.2f} s with gradient)"
    )
    for k, value in enumerate(gradient.numpy()):
        print(f"  bond {k:2d}: J = {couplings[k].item():.3f}  dE/dJ = {value:.12f}")
    print(f"largest difference from <S[i] . S[i+1]>: {error:.1e}")
    if options.plot is not None:
        draw(options.plot, couplings.numpy(), gradient.numpy(), energy.item())
        print(f"figure: {options.plot}")
    return 0 if error < 1e-8 else 1


if __name__ == "__main__":
    sys.exit(main())
