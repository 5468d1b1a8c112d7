"""quimb on tensors: states and operators of tenferro's tensors, contracted, split, evolved, optimised and compiled."""

import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tenferro_runtime as tr
from tenferro_ad import EagerTensor, grad, value_and_grad

pytestmark = pytest.mark.filterwarnings("ignore:Couldn.t import `kahypar`")

numba = pytest.importorskip("numba")
compiles, numba.config.DISABLE_JIT = numba.config.DISABLE_JIT, True  # quimb compiles longer than it runs
qu = pytest.importorskip("quimb")
qtn = pytest.importorskip("quimb.tensor")
numba.config.DISABLE_JIT = compiles

SITES, BOND = 8, 6
BONDS_OF_CHAIN = {(i, i + 1): qu.ham_heis(2) for i in range(SITES - 1)}


def state(dtype: str = "float64") -> Any:
    return qtn.MPS_rand_state(SITES, BOND, seed=3, dtype=dtype)


def hamiltonian() -> Any:
    return qtn.MPO_ham_heis(SITES)


def sandwich(psi: Any, operator: Any) -> Any:
    bra, middle, ket = psi.H, operator.copy(), psi
    ket.align_(middle, bra)
    return bra & middle & ket


def with_tensors(network: Any) -> Any:
    network = network.copy()
    network.apply_to_arrays(lambda x: tr.asarray(np.array(x)))
    return network


def norm(psi: Any) -> Any:
    return (psi.H & psi).contract(all, optimize="greedy")


def energy(psi: Any) -> Any:
    return sandwich(psi, hamiltonian()).contract(all, optimize="greedy") / norm(psi)


def compressed(psi: Any) -> Any:
    psi = psi.copy()
    psi.compress(max_bond=4, cutoff=0.0)
    return norm(psi)


def evolved(psi: Any) -> Any:
    psi, gate = psi.copy(), qu.expm(-0.1 * qu.ham_heis(2))
    for i in range(SITES - 1):
        psi.gate_split_(gate, (i, i + 1), max_bond=5, cutoff=0.0)
    return norm(psi)


LOSSES: dict[str, Callable[[Any], Any]] = {
    "norm": norm,
    "energy": energy,
    "overlap": lambda psi: abs(psi.H @ qtn.MPS_rand_state(SITES, 3, seed=1, dtype=psi.dtype)) ** 2,
    "normalised": lambda psi: norm(psi / (psi.H @ psi) ** 0.25),
    "local terms": lambda psi: psi.compute_local_expectation(BONDS_OF_CHAIN, normalized=True, method="envs"),
    "reduced states": lambda psi: sum(psi.local_expectation_exact(BONDS_OF_CHAIN[0, 1], (i, i + 1)) for i in (0, 3)),
    "operator applied": lambda psi: (psi.H & hamiltonian().apply(psi)).contract(all, optimize="greedy"),
    "compressed": compressed,
    "evolved": evolved,
    "dense": lambda psi: (psi.to_dense() ** 2).sum(),
}


def packed(loss: Callable[[Any], Any], network: Any) -> tuple[Callable[[Any], Any], dict[Any, Any]]:
    """The loss as a function of the arrays of a network, and these."""
    parameters, skeleton = qtn.pack(network)
    return (lambda p: loss(qtn.unpack(p, skeleton))), {k: np.asarray(v) for k, v in parameters.items()}


def nudged(parameters: dict[Any, Any], direction: dict[Any, Any], step: float) -> dict[Any, Any]:
    return {k: v + step * direction[k] for k, v in parameters.items()}


@pytest.mark.parametrize("name", LOSSES)
def test_losses_and_their_gradients_are_numpys_eager_and_compiled(name: str) -> None:
    loss, arrays = packed(LOSSES[name], state())
    expected = loss(arrays)
    rng, step = np.random.default_rng(0), 1e-6
    direction = {k: rng.normal(size=v.shape) for k, v in arrays.items()}
    slope = (loss(nudged(arrays, direction, step)) - loss(nudged(arrays, direction, -step))) / (2 * step)
    tensors = {k: tr.asarray(v) for k, v in arrays.items()}
    assert loss(tensors).item() == pytest.approx(expected)
    for of in (value_and_grad(loss), tr.compile(value_and_grad(loss))):
        value, gradient = of(tensors)
        assert value.item() == pytest.approx(expected)
        found = sum(np.vdot(np.asarray(gradient[k]), direction[k]) for k in gradient)
        assert found == pytest.approx(slope, rel=1e-6, abs=1e-7)


def test_complex_states_differentiate() -> None:
    loss, arrays = packed(lambda psi: tr.real(energy(psi)), state("complex128"))
    tensors = {k: tr.asarray(v) for k, v in arrays.items()}
    gradient = tr.compile(grad(loss))(tensors)
    direction = {k: 1j * v.conj() for k, v in arrays.items()}
    step = 1e-6
    ends = [loss({k: tr.asarray(v) for k, v in nudged(arrays, direction, s * step).items()}).item() for s in (1, -1)]
    found = sum(np.vdot(np.asarray(gradient[k]), direction[k]).real for k in gradient)
    assert found == pytest.approx((ends[0] - ends[1]) / (2 * step), rel=1e-5, abs=1e-7)


@pytest.mark.parametrize("optimize", ["auto-hq", "greedy", "random-greedy"])
def test_cotengras_searches_see_open_sizes_as_numbers(optimize: str) -> None:
    """Its searches run in pools of threads or processes, which a trace does not reach."""
    loss, arrays = packed(lambda psi: (psi.H & psi).contract(all, optimize=optimize), qtn.MPS_rand_state(14, 4, seed=2))
    assert tr.compile(loss)({k: tr.asarray(v) for k, v in arrays.items()}).item() == pytest.approx(1.0)


@pytest.mark.parametrize("method", ["svd", "qr", "svd:eig", "cholesky", "lq", "polar_right"])
def test_tensors_split_by_every_method_that_has_no_driver_of_its_own(method: str) -> None:
    x = np.random.default_rng(4).normal(size=(3, 4, 5))
    if method == "cholesky":
        half = x.reshape(12, 5)
        x = (half @ half.T + 12 * np.eye(12)).reshape(3, 4, 3, 4)
    t = qtn.Tensor(tr.asarray(x), inds=("a", "b", "c", "d")[: x.ndim])
    options: dict[str, Any] = {} if method in ("qr", "lq", "cholesky", "polar_right") else {"cutoff": 1e-12}
    parts = t.split(("a", "b"), method=method, **options)
    assert all(type(part.data) is tr.Tensor for part in parts)
    np.testing.assert_allclose(np.asarray((parts @ 1 if x.ndim == 0 else parts.contract()).transpose(*t.inds).data), x)


def test_truncation_by_a_threshold_keeps_the_gradient() -> None:
    x = np.random.default_rng(5).normal(size=(6, 6))

    def kept(x: Any) -> Any:
        _, right = qtn.Tensor(x, inds=("a", "b")).split("a", cutoff=0.3, cutoff_mode="rel", absorb="right")
        assert isinstance(right.data, EagerTensor) and right.shape[0] < 6
        return tr.sum(right.data**2)

    u, s, vh = np.linalg.svd(x)
    s = np.where(s > 0.3 * s[0], s, 0)
    np.testing.assert_allclose(np.asarray(grad(kept)(tr.asarray(x))), 2 * (u * s) @ vh, atol=1e-10)


def test_canonical_forms_entropies_and_measurements() -> None:
    plain, psi = state(), with_tensors(state())
    assert psi.entropy(4) == pytest.approx(plain.entropy(4))
    psi.canonicalize_(3)
    assert psi.calc_current_orthog_center() == (3, 3) and type(psi[0].data) is tr.Tensor
    assert psi.magnetization(2).item() == pytest.approx(plain.magnetization(2))
    assert psi.correlation(qu.pauli("Z"), 2, 5).item() == pytest.approx(plain.correlation(qu.pauli("Z"), 2, 5))


def test_dmrg_finds_the_ground_state() -> None:
    exact = qu.groundenergy(qu.ham_heis(SITES, sparse=True))
    dmrg = qtn.DMRG2(with_tensors(hamiltonian()), bond_dims=[8, 16], cutoffs=1e-10)
    dmrg.opts["local_eig_ham_dense"] = False  # SciPy's eigensolver takes operators, but no matrices of other libraries
    dmrg.solve(tol=1e-6, max_sweeps=4, verbosity=0)
    assert float(dmrg.energy) == pytest.approx(exact, abs=1e-5)


def test_tebd_cools_to_the_ground_state() -> None:
    start = with_tensors(qtn.MPS_neel_state(6))
    tebd = qtn.TEBD(start, qtn.ham_1d_heis(6), dt=0.05, imag=True, progbar=False)
    tebd.split_opts["cutoff"] = 1e-10
    tebd.update_to(8.0, order=2)
    assert type(tebd.pt[0].data) is tr.Tensor
    exact = qu.groundenergy(qu.ham_heis(6, sparse=True))
    psi = tebd.pt
    found = sandwich(psi, qtn.MPO_ham_heis(6)).contract(all) / norm(psi)
    assert float(tr.real(found)) == pytest.approx(exact, abs=1e-2)


def test_circuits_with_parameters_are_differentiated() -> None:
    def expectation(angles: Any) -> Any:
        circuit = qtn.Circuit(3, to_backend=None)
        for i in range(3):
            circuit.apply_gate("RY", angles[i], i, parametrize=True)
        circuit.apply_gate("CZ", 0, 1)
        circuit.apply_gate("RX", angles[3], 1, parametrize=True)
        return tr.real(circuit.local_expectation(qu.pauli("Z"), 1, simplify_sequence="", optimize="greedy"))

    angles = np.array([0.3, 0.7, -0.4, 1.1])
    expected = np.cos(angles[1]) * np.cos(angles[3])
    for of in (value_and_grad(expectation), tr.compile(value_and_grad(expectation))):
        value, slope = of(tr.asarray(angles))
        assert value.item() == pytest.approx(expected)
        by_hand = [0, -np.sin(angles[1]) * np.cos(angles[3]), 0, -np.cos(angles[1]) * np.sin(angles[3])]
        np.testing.assert_allclose(np.asarray(slope), by_hand, atol=1e-12)


def test_lattices_contract_by_their_boundary() -> None:
    peps = qtn.PEPS.rand(3, 3, bond_dim=2, seed=1)
    expected = peps.make_norm().contract(all)
    loss, arrays = packed(lambda p: p.make_norm().contract_boundary(max_bond=8, cutoff=0.0), peps)
    value, gradient = tr.compile(value_and_grad(loss))({k: tr.asarray(v) for k, v in arrays.items()})
    assert value.item() == pytest.approx(expected)
    # The norm is of degree 2 in each tensor.
    found = [np.vdot(np.asarray(gradient[k]), arrays[k]) for k in arrays]
    np.testing.assert_allclose(found, 2 * expected)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_networks_are_optimized_with_derivatives_of_tenferro(dtype: str) -> None:
    from tenferro_ad.adapters.quimb import TNOptimizer

    def real_energy(psi: Any, operator: Any) -> Any:
        return tr.real(sandwich(psi, operator).contract(all, optimize="greedy") / norm(psi))

    exact = qu.groundenergy(qu.ham_heis(6, sparse=True))
    start, operator = qtn.MPS_rand_state(6, 8, seed=1, dtype=dtype), qtn.MPO_ham_heis(6)
    optimizer = TNOptimizer(start, real_energy, loss_constants={"operator": operator}, progbar=False)
    found = optimizer.optimize(80)
    assert optimizer.loss == pytest.approx(exact, abs=1e-3)
    assert real_energy(with_tensors(found), operator).item() == pytest.approx(optimizer.loss, abs=1e-3)


def test_optimizers_of_quimb_take_terms_and_products_with_the_hessian() -> None:
    from tenferro_ad.adapters.quimb import TNOptimizer

    target = qtn.MPS_rand_state(4, 2, seed=5)
    terms = [norm, lambda psi: -2 * (psi.H & target).contract(all, optimize="greedy")]
    of_terms = TNOptimizer(qtn.MPS_rand_state(4, 2, seed=6), terms, progbar=False, jit_fn=False)
    of_terms.optimize(100)
    assert of_terms.loss == pytest.approx(-1.0, abs=1e-4)
    squared = lambda psi: norm(psi) - 2 * (psi.H & target).contract(all, optimize="greedy")
    by_hessian = TNOptimizer(qtn.MPS_rand_state(4, 2, seed=6), squared, optimizer="trust-ncg", progbar=False)
    by_hessian.optimize(60, hessp=True)
    assert by_hessian.loss == pytest.approx(-1.0, abs=1e-4)


def test_quimb_s_own_class_takes_the_name() -> None:
    def squared(psi: Any, shift: float) -> Any:
        return (psi.H & psi).contract(all, optimize="greedy").real ** 2 + shift

    optimizer = qtn.TNOptimizer(
        qtn.MPS_rand_state(4, 2, seed=6), squared, lambda psi: psi, {"shift": 1.0}, autodiff_backend="tenferro",
        progbar=False, device="cpu",
    )  # fmt: skip
    optimizer.optimize(3)
    assert optimizer.loss < 2.0


@pytest.mark.parametrize("package", ["tenferro_runtime", "tenferro_ad"])
def test_quimb_may_be_imported_first(package: str) -> None:
    code = f"import quimb.tensor.optimize as optimize, {package}; print('tenferro' in optimize._BACKEND_HANDLERS)"
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert done.stdout == "True\n"
