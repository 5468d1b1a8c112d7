"""The Ising example against dense diagonalisation, and what it says to bad options."""

import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import example_programs
import tenferro_runtime as tr
from tenferro_ad import grad

ising = example_programs.load("ising_ground_state")


def dense(sites: int, field: float) -> np.ndarray[Any, Any]:
    """The whole Hamiltonian as a matrix, from Kronecker products."""
    x, z = np.array([[0.0, 1.0], [1.0, 0.0]]), np.diag([1.0, -1.0])

    def at(operators: dict[int, Any]) -> Any:
        out = np.eye(1)
        for i in range(sites):
            out = np.kron(out, operators.get(i, np.eye(2)))
        return out

    bonds = sum((at({i: z, i + 1: z}) for i in range(sites - 1)), np.zeros((2**sites, 2**sites)))
    return -bonds - field * sum(at({i: x}) for i in range(sites))


def random_state(sites: int, bond: int) -> list[Any]:
    rng = np.random.default_rng(sites)
    dims = ising.bonds(sites, bond)
    return [tr.asarray(rng.normal(size=(l, 2, r))) for l, r in pairwise(dims)]


def vector_of(state: list[Any]) -> np.ndarray[Any, Any]:
    vector = np.ones((1, 1))
    for site in state:
        vector = np.einsum("xl,lpr->xpr", vector, np.asarray(site)).reshape(-1, site.shape[2])
    return vector[:, 0]


def entropies_of(vector: np.ndarray[Any, Any], sites: int) -> list[float]:
    found = []
    for cut in range(1, sites):
        p = np.linalg.svd(vector.reshape(2**cut, -1), compute_uv=False) ** 2
        p = p[p > 1e-25 * p.sum()] / p.sum()
        found.append(float(-np.sum(p * np.log(p))))
    return found


@pytest.mark.parametrize("field", [-1.5, 0.0, 0.3, 1.0, 2.0])
@pytest.mark.parametrize("sites", [2, 3, 6, 8])
def test_exact_energy_is_the_lowest_eigenvalue(sites: int, field: float) -> None:
    assert ising.exact_energy(sites, field) == pytest.approx(np.linalg.eigvalsh(dense(sites, field))[0], rel=1e-12)


@pytest.mark.parametrize("field", [0.7, 1.0, 1.6])
def test_exact_entropies_are_those_of_the_lowest_eigenvector(field: float) -> None:
    ground = np.linalg.eigh(dense(8, field))[1][:, 0]
    np.testing.assert_allclose(ising.exact_entropies(8, field), entropies_of(ground, 8), atol=1e-9)


def test_energy_is_the_quotient_of_the_dense_expectation_values() -> None:
    state = random_state(6, 5)
    vector = vector_of(state)
    expected = vector @ dense(6, 0.8) @ vector / (vector @ vector)
    assert float(ising.energy_of(ising.hamiltonian(0.8))(state)) == pytest.approx(expected, rel=1e-12)


def test_gradient_is_that_of_the_dense_quotient() -> None:
    state = random_state(5, 3)
    gradient = grad(ising.energy_of(ising.hamiltonian(1.2)))(state)
    h = dense(5, 1.2)
    rng = np.random.default_rng(0)
    ways = [rng.normal(size=site.shape) for site in state]

    def at(step: float) -> float:
        v = vector_of([tr.asarray(np.asarray(x) + step * way) for x, way in zip(state, ways)])
        return float(v @ h @ v / (v @ v))

    along = sum(float(np.vdot(np.asarray(g), way)) for g, way in zip(gradient, ways))
    assert along == pytest.approx((at(1e-5) - at(-1e-5)) / 2e-5, rel=1e-6)


def test_entropies_of_a_state_are_those_of_its_vector() -> None:
    state = random_state(7, 6)
    np.testing.assert_allclose(ising.entropies(state), entropies_of(vector_of(state), 7), rtol=1e-9)


def test_flat_and_unflat_are_inverse() -> None:
    state = random_state(5, 4)
    back = ising.unflat(ising.flat(state), state)
    assert all(np.array_equal(np.asarray(a), np.asarray(b)) for a, b in zip(state, back))


@pytest.mark.parametrize("field", ["1", "0.4", "2.5"])
def test_quick_run_meets_the_exact_energy(field: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert ising.main(["--quick", "--field", field]) == 0
    text = capsys.readouterr().out
    error = re.search(r"relative error (\S+) of the exact energy (\S+), below 0.0001", text)
    assert error is not None
    assert abs(float(error[1])) < 1e-4
    assert float(error[2]) == pytest.approx(ising.exact_energy(12, float(field)), abs=1e-9)


def test_the_figure_is_drawn(tmp_path: Path) -> None:
    figure = tmp_path / "ising.svg"
    assert ising.main(["--quick", "--sites", "6", "--iterations", "100", "--out", str(figure)]) == 0
    assert "<svg" in figure.read_text()


def test_a_result_that_is_not_accurate_enough_is_a_failure(capsys: pytest.CaptureFixture[str]) -> None:
    assert ising.main(["--quick", "--bond", "1"]) == 1
    out, err = capsys.readouterr()
    assert "NOT below 0.0001" in out
    assert "ising_ground_state: give a larger --bond or more --iterations" in err


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--sites", "1"], "--sites is 1; give an integer from 2 to 1024"),
        (["--bond", "0"], "--bond is 0; give an integer from 1 to 1024"),
        (["--iterations", "0"], "--iterations is 0; give an integer from 1 to 100000"),
        (["--field", "nan"], "--field is nan; give a number between -1e6 and 1e6"),
        (["--field", "strong"], "argument --field: invalid float value: 'strong'"),
        (["--seed", "-2"], "--seed is -2; give an integer from 0 to 4294967295"),
        (["--threads", "0"], "--threads is 0; give an integer from 1 to 1024"),
        (["--out", "ising.doc"], "--out is 'ising.doc'; give a file that ends in .png, .pdf or .svg"),
    ],
)
def test_bad_options(options: list[str], text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        ising.main(options)
    assert stop.value.code == 2
    assert text in capsys.readouterr().err
