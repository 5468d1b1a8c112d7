"""The example of a spin chain: energies of small chains, and the gradient by their couplings."""

from pathlib import Path

import numpy as np
import pytest

import example_programs
import tenferro_runtime as tr
from tenferro_ad import grad

chain = example_programs.load("heisenberg_chain")


def dense(couplings, sites, ring):
    """H as a matrix."""
    parts = [np.array([[0, 1], [1, 0]]) / 2, np.array([[0, -1j], [1j, 0]]) / 2, np.diag([1.0, -1.0]) / 2]
    found = np.zeros((2**sites, 2**sites))
    for k, (i, j) in enumerate(chain.bonds(sites, ring)):
        for s in parts:
            factors = [s if site in (i, j) else np.eye(2) for site in range(sites)]
            product = factors[0]
            for f in factors[1:]:
                product = np.kron(product, f)
            found += couplings[k] * product.real
    return found


@pytest.mark.parametrize("ring", [False, True])
def test_energy_and_gradient(ring: bool) -> None:
    couplings = np.linspace(0.7, 1.3, len(chain.bonds(6, ring)))
    energy = np.linalg.eigvalsh(dense(couplings, 6, ring))[0]
    assert np.isclose(chain.ground_energy(tr.asarray(couplings), 6, ring).item(), energy, atol=1e-11)
    slope = grad(chain.ground_energy)(tr.asarray(couplings), 6, ring).numpy()
    np.testing.assert_allclose(slope, chain.correlations(tr.asarray(couplings), 6, ring), atol=1e-9)


def test_two_spins_form_a_singlet() -> None:
    assert np.isclose(chain.ground_energy(tr.asarray([2.0]), 2).item(), -1.5)


def test_a_figure_is_drawn(tmp_path: Path) -> None:
    assert chain.main(["--sites", "6", "--plot", str(tmp_path / "chain.png")]) == 0
    assert (tmp_path / "chain.png").stat().st_size > 1000
