"""Quantum physics: self energies, time evolution of matrix product states, iterations for eigenvalues."""

from typing import Any

import numpy as np

from loop_programs.record import Arguments, Namespace, programs

STEPS = 30
KRYLOV = 10
SPINS = 8
BOND = 6


def self_energies(xp: Namespace, green: Any, phonon: Any, coupling: Any) -> Any:
    """Sigma(E) = sum over w of V G(E - w) V^H D(w), energy after energy and frequency after frequency."""
    count = green.shape[0]
    adjoint = xp.conj(xp.permute_dims(coupling, (0, 2, 1)))

    def term(e: Any, w: Any, sigma: Any) -> Any:
        shifted = green[xp.maximum(e - w, 0)]
        product = coupling @ shifted @ adjoint
        part = xp.einsum("a,aij->ij", phonon[w], product)
        return sigma.at[e, :, :].add(xp.where(e >= w, part, xp.zeros_like(part)))

    def energy(e: Any, sigma: Any) -> Any:
        return xp.fori_loop(0, phonon.shape[0], lambda w, sigma: term(e, w, sigma), sigma)

    return xp.fori_loop(0, count, energy, xp.zeros_like(green))


def self_energies_numpy(green: Any, phonon: Any, coupling: Any) -> Any:
    sigma, adjoint = np.zeros_like(green), np.conj(coupling.transpose(0, 2, 1))
    for e in range(len(green)):
        for w in range(min(e + 1, len(phonon))):
            sigma[e] += np.tensordot(phonon[w], coupling @ green[e - w] @ adjoint, 1)
    return sigma


def tebd_sweep(xp: Namespace, sites: Any, gate: Any) -> Any:
    """Two-site gates on every bond of a chain of matrix product tensors, cut back by an SVD; singular values."""
    bond, physical = sites.shape[1], sites.shape[2]

    def update(sites: Any, i: Any) -> Any:
        pair = xp.einsum("aib,bjc,ijkl->akcl", sites[i], sites[i + 1], gate)
        matrix = xp.reshape(xp.permute_dims(pair, (0, 1, 3, 2)), (bond * physical, physical * bond))
        u, s, vh = xp.linalg.svd(matrix, full_matrices=False)
        s, kept = s[:bond] / xp.sqrt(xp.sum(s[:bond] * s[:bond])), s[:bond]
        left = xp.reshape(u[:, :bond], (bond, physical, bond))
        right = xp.reshape(s[:, None] * vh[:bond], (bond, physical, bond))
        return sites.at[i, :, :, :].set(left).at[i + 1, :, :, :].set(right), kept

    return xp.scan(update, sites, xp.arange(sites.shape[0] - 1))[1]


def tebd_sweep_numpy(sites: Any, gate: Any) -> Any:
    sites, (count, bond, physical, _) = sites.copy(), sites.shape
    rows = np.empty((count - 1, bond))
    for i in range(count - 1):
        pair = np.tensordot(np.tensordot(sites[i], sites[i + 1], (2, 0)), gate, ((1, 2), (0, 1)))
        matrix = pair.transpose(0, 2, 3, 1).reshape(bond * physical, physical * bond)
        u, s, vh = np.linalg.svd(matrix, full_matrices=False)
        rows[i] = s[:bond]
        s = s[:bond] / np.sqrt(np.sum(s[:bond] * s[:bond]))
        sites[i] = u[:, :bond].reshape(bond, physical, bond)
        sites[i + 1] = (s[:, None] * vh[:bond]).reshape(bond, physical, bond)
    return rows


def overlap(xp: Namespace, bra: Any, ket: Any) -> Any:
    """The overlap of two matrix product states, one site after the other, its logarithm kept apart."""

    def site(state: Any, pair: Any) -> Any:
        left, total = state
        left = xp.einsum("ab,aic,bid->cd", left, pair[0], pair[1])
        norm = xp.sqrt(xp.sum(left * left))
        return (left / norm, total + xp.log(norm)), None

    return xp.scan(site, (xp.eye(bra.shape[1]), xp.zeros(())), (bra, ket))[0]


def overlap_numpy(bra: Any, ket: Any) -> Any:
    left, total = np.eye(bra.shape[1]), 0.0
    for a, b in zip(bra, ket):
        left = np.tensordot(np.tensordot(left, a, (0, 0)), b, ((0, 1), (0, 1)))
        norm = np.sqrt(np.sum(left * left))
        left, total = left / norm, total + np.log(norm)
    return left, total


def power_iteration(xp: Namespace, a: Any, start: Any) -> Any:
    """The largest eigenvalue of a symmetric matrix and its vector."""

    def step(_: Any, v: Any) -> Any:
        w = a @ v
        return w / xp.sqrt(xp.sum(w * w))

    v = xp.fori_loop(0, STEPS, step, start)
    return xp.sum(v * (a @ v)), v


def power_iteration_numpy(a: Any, start: Any) -> Any:
    v = start
    for _ in range(STEPS):
        w = a @ v
        v = w / np.sqrt(np.sum(w * w))
    return v @ a @ v, v


def lanczos(xp: Namespace, a: Any, start: Any) -> Any:
    """The diagonals of a symmetric matrix in its Krylov basis, orthogonalised against all vectors before."""

    def step(k: Any, state: Any) -> Any:
        basis, alphas, betas = state
        w = a @ basis[k]
        alpha = xp.sum(w * basis[k])
        w = w - basis.T @ (basis @ w)
        beta = xp.sqrt(xp.sum(w * w))
        return basis.at[k + 1, :].set(w / beta), alphas.at[k].set(alpha), betas.at[k].set(beta)

    basis = xp.zeros((KRYLOV + 1, a.shape[0])).at[0, :].set(start / xp.sqrt(xp.sum(start * start)))
    _, alphas, betas = xp.fori_loop(0, KRYLOV, step, (basis, xp.zeros((KRYLOV,)), xp.zeros((KRYLOV,))))
    return alphas, betas


def lanczos_numpy(a: Any, start: Any) -> Any:
    basis, alphas, betas = np.zeros((KRYLOV + 1, len(a))), np.empty(KRYLOV), np.empty(KRYLOV)
    basis[0] = start / np.sqrt(start @ start)
    for k in range(KRYLOV):
        w = a @ basis[k]
        alphas[k] = w @ basis[k]
        w -= basis[: k + 1].T @ (basis[: k + 1] @ w)
        betas[k] = np.sqrt(w @ w)
        basis[k + 1] = w / betas[k]
    return alphas, betas


def chebyshev(xp: Namespace, hamiltonian: Any, state: Any, coefficients: Any) -> Any:
    """Time evolution by an expansion in Chebyshev polynomials of the Hamiltonian, complex."""
    first = hamiltonian @ state

    def step(carry: Any, c: Any) -> Any:
        before, now, total = carry
        new = 2.0 * (hamiltonian @ now) - before
        return (now, new, total + c * new), None

    start = (state, first, coefficients[0] * state + coefficients[1] * first)
    return xp.scan(step, start, coefficients[2:])[0][2]


def chebyshev_numpy(hamiltonian: Any, state: Any, coefficients: Any) -> Any:
    before, now = state, hamiltonian @ state
    total = coefficients[0] * before + coefficients[1] * now
    for c in coefficients[2:]:
        before, now = now, 2.0 * (hamiltonian @ now) - before
        total = total + c * now
    return total


def spin_chain(xp: Namespace, state: Any, field: Any) -> Any:
    """Trotter steps of a transverse Ising chain on a state vector: rotations of each spin, phases of the bonds."""
    spins = [1.0 - 2.0 * ((np.arange(2**SPINS) >> k) & 1) for k in range(SPINS)]
    phases = np.exp(-0.1j * sum(spins[k] * spins[k + 1] for k in range(SPINS - 1)))

    def step(state: Any, h: Any) -> Any:
        c, s = xp.cos(0.1 * h), 1j * xp.sin(0.1 * h)
        state = state * phases
        for k in range(SPINS):
            split = xp.reshape(state, (2 ** (SPINS - 1 - k), 2, 2**k))
            state = xp.reshape(c * split - s * xp.flip(split, axis=1), (2**SPINS,))
        return state, xp.sum(xp.abs(state) ** 2 * spins[0])

    return xp.scan(step, state, field)[1]


def spin_chain_numpy(state: Any, field: Any) -> Any:
    spins = [1.0 - 2.0 * ((np.arange(2**SPINS) >> k) & 1) for k in range(SPINS)]
    phases, rows = np.exp(-0.1j * sum(spins[k] * spins[k + 1] for k in range(SPINS - 1))), np.empty_like(field)
    for n, h in enumerate(field):
        c, s = np.cos(0.1 * h), 1j * np.sin(0.1 * h)
        state = state * phases
        for k in range(SPINS):
            split = state.reshape(2 ** (SPINS - 1 - k), 2, 2**k)
            state = (c * split - s * split[:, ::-1]).reshape(-1)
        rows[n] = np.sum(np.abs(state) ** 2 * spins[0])
    return rows


def split_step(xp: Namespace, state: Any, potential: Any, momentum: Any) -> Any:
    """The Schroedinger equation with a cubic term: half a step in space, one in momentum by FFT, half a step again."""
    kinetic = xp.exp(-0.005j * momentum * momentum)

    def half(psi: Any) -> Any:
        return psi * xp.exp(-0.005j * (potential + xp.real(psi) ** 2 + xp.imag(psi) ** 2))

    psi = xp.fori_loop(0, STEPS, lambda _, psi: half(xp.fft.ifft(kinetic * xp.fft.fft(half(psi)))), state)
    return potential * psi


def split_step_numpy(psi: Any, potential: Any, momentum: Any) -> Any:
    kinetic = np.exp(-0.005j * momentum * momentum)
    for _ in range(STEPS):
        psi = psi * np.exp(-0.005j * (potential + psi.real**2 + psi.imag**2))
        psi = np.fft.ifft(kinetic * np.fft.fft(psi))
        psi = psi * np.exp(-0.005j * (potential + psi.real**2 + psi.imag**2))
    return potential * psi


def energies(n: int, rng: np.random.Generator) -> Arguments:
    green = rng.normal(size=(n, 6, 6)) + 1j * rng.normal(size=(n, 6, 6))
    coupling = rng.normal(size=(3, 6, 6)) + 1j * rng.normal(size=(3, 6, 6))
    return green, rng.normal(size=(n // 2 + 1, 3)) + 0j, coupling


def chain_and_gate(n: int, rng: np.random.Generator) -> Arguments:
    generator = rng.normal(size=(4, 4))
    gate = np.linalg.qr(generator)[0].reshape(2, 2, 2, 2)
    return rng.normal(size=(n, BOND, 2, BOND)) / np.sqrt(2.0 * BOND), gate


def states(n: int, rng: np.random.Generator) -> Arguments:
    shape = (n, 4 + n // 8, 2, 4 + n // 8)
    return rng.normal(size=shape), rng.normal(size=shape)


def symmetric(n: int, rng: np.random.Generator) -> Arguments:
    a = rng.normal(size=(n, n))
    return (a + a.T) / np.sqrt(n) + 2.0 * np.ones((n, n)) / np.sqrt(n), rng.normal(size=n)


def hermitian(n: int, rng: np.random.Generator) -> Arguments:
    a = rng.normal(size=(n, n)) + 1j * rng.normal(size=(n, n))
    start = rng.normal(size=n) + 1j * rng.normal(size=n)
    return (a + a.conj().T) / (6.0 * np.sqrt(n)), start, (-1j) ** np.arange(STEPS) / (1.0 + np.arange(STEPS))


def register(n: int, rng: np.random.Generator) -> Arguments:
    state = rng.normal(size=2**SPINS) + 1j * rng.normal(size=2**SPINS)
    return state / np.linalg.norm(state), rng.uniform(0.5, 1.5, n)


def packet(n: int, rng: np.random.Generator) -> Arguments:
    x = np.linspace(-8.0, 8.0, n, endpoint=False)
    return np.exp(-x * x + 2j * x), 0.5 * x * x, 2.0 * np.pi * np.fft.fftfreq(n, 16.0 / n)


PROGRAMS = programs(
    "quantum",
    (self_energies, self_energies_numpy, energies, (5, 16, 60), (0, 2)),
    (tebd_sweep, tebd_sweep_numpy, chain_and_gate, (4, 10, 80), (0, 1)),
    (overlap, overlap_numpy, states, (4, 16, 120), (0, 1)),
    (power_iteration, power_iteration_numpy, symmetric, (6, 40, 400), (0,)),
    (lanczos, lanczos_numpy, symmetric, (13, 60, 500), (0,)),
    (chebyshev, chebyshev_numpy, hermitian, (6, 30, 250), (0,)),
    (spin_chain, spin_chain_numpy, register, (3, 10, 200), (1,)),
    (split_step, split_step_numpy, packet, (8, 128, 8192), (0, 1)),
)
