"""Named networks against exact values or brute force: states, renormalisation, lattices, circuits."""

import itertools
from typing import Any

import numpy as np
import pytest

import tenferro_runtime as tr
from tenferro_ad import grad
from tenferro_einsum import einsum, plan


def interleave(arrays, terms, output):
    return [*itertools.chain.from_iterable(zip(arrays, terms, strict=True)), output]


def states(count, bond, seed, dtype="complex128"):
    """Tensors (left, physical, right) of a matrix product state, and its labels."""
    rng = np.random.default_rng(seed)
    shapes = [(1 if i == 0 else bond, 2, 1 if i == count - 1 else bond) for i in range(count)]
    draw = lambda s: rng.standard_normal(s) + (1j * rng.standard_normal(s) if dtype == "complex128" else 0)
    return [draw(s) / np.sqrt(2 * bond) for s in shapes]


def test_the_inner_product_of_matrix_product_states():
    count = 10
    a, b = states(count, 4, 0), states(count, 3, 1)
    terms = [[(side, i), i, (side, i + 1)] for side in "ab" for i in range(count)]
    got = einsum(*interleave([*map(np.conj, a), *b], terms, []))

    def vector(tensors):
        v = tensors[0]
        for t in tensors[1:]:
            v = np.tensordot(v, t, 1)
        return v.ravel()

    np.testing.assert_allclose(complex(got), np.vdot(vector(a), vector(b)), rtol=1e-10)


def test_a_ghz_state_of_a_thousand_sites_has_norm_one():
    """A hyper-edge: one label on every tensor of both layers."""
    count = 1000
    site = np.eye(2)
    terms = [[i, "ghz"] for i in range(count)] * 2
    got = einsum(*interleave([site] * (2 * count), terms, []))
    assert float(got) == 2.0  # unnormalised: |00..0> and |11..1>


def isometry(rows, columns, seed):
    rng = np.random.default_rng(seed)
    return np.linalg.qr(rng.standard_normal((rows, rows)))[0][:, :columns]


def test_the_expectation_value_in_a_binary_mera():
    """One layer of disentanglers u and isometries w over four sites, against the state vector."""
    u = isometry(4, 4, 0).reshape(2, 2, 2, 2)
    w = [isometry(4, 3, s).reshape(2, 2, 3) for s in (1, 2)]
    top = np.random.default_rng(3).standard_normal((3, 3))
    h = np.random.default_rng(4).standard_normal((2, 2, 2, 2))
    # sites a b c d; u mixes b and c; w join (a, b') and (c', d)
    state = einsum("apx,qdy,bcpq,xy->abcd", w[0], w[1], u, top)
    dense = np.einsum("apx,qdy,bcpq,xy->abcd", w[0], w[1], u, top)
    np.testing.assert_allclose(np.asarray(state), dense, atol=1e-12)
    network = "apx,qdy,bcpq,xy,BCbc,aPX,QdY,BCPQ,XY->"
    got = einsum(network, w[0], w[1], u, top, h, w[0], w[1], u, top)
    np.testing.assert_allclose(float(got), np.einsum("abcd,BCbc,aBCd->", dense, h, dense), rtol=1e-10)
    norm = einsum("apx,qdy,bcpq,xy,aPX,QdY,bcPQ,XY->", w[0], w[1], u, top, w[0], w[1], u, top)
    np.testing.assert_allclose(float(norm), (top**2).sum(), rtol=1e-10)  # isometries and disentanglers drop out


@pytest.mark.parametrize("temperature", [1.5, 2.269, 4.0])
def test_the_partition_function_of_a_torus_of_ising_spins(temperature):
    """A 3 by 3 torus, spins as hyper-edges, bonds as matrices, against the sum over all 512 states."""
    n = 3
    bond = np.exp(np.array([[1.0, -1.0], [-1.0, 1.0]]) / temperature)
    sites = list(itertools.product(range(n), repeat=2))
    pairs = [((i, j), ((i + di) % n, (j + dj) % n)) for i, j in sites for di, dj in ((0, 1), (1, 0))]
    got = einsum(*interleave([bond] * len(pairs), [list(p) for p in pairs], []))
    total = 0.0
    for values in itertools.product((1, -1), repeat=n * n):
        s = dict(zip(sites, values, strict=True))
        total += np.exp(sum(s[a] * s[b] for a, b in pairs) / temperature)
    np.testing.assert_allclose(float(got), total, rtol=1e-12)


def test_a_row_of_a_pair_entangled_lattice():
    """A boundary state times a row of double tensors, bond by bond against the dense matrix of the row."""
    width, bond, boundary = 4, 2, 3
    rng = np.random.default_rng(5)
    peps = [rng.standard_normal((1 if i == 0 else bond, bond, 1 if i == width - 1 else bond, bond, 2))
            for i in range(width)]  # fmt: skip
    mps = [rng.standard_normal((1 if i == 0 else boundary, bond, bond, 1 if i == width - 1 else boundary))
           for i in range(width)]  # fmt: skip
    arrays, terms = [], []
    for i in range(width):
        arrays += [mps[i], peps[i], peps[i]]
        terms += [
            [("m", i), ("u", i), ("U", i), ("m", i + 1)],
            [("k", i), ("u", i), ("k", i + 1), ("d", i), ("p", i)],
            [("b", i), ("U", i), ("b", i + 1), ("D", i), ("p", i)],
        ]
    out = [x for i in range(width) for x in (("d", i), ("D", i))]
    whole = plan(*interleave(arrays, terms, out))
    got = np.asarray(whole(*map(tr.asarray, arrays)))
    state = None
    for i in range(width):
        double = np.einsum("kuvdp,bUwDp->kbuUvwdD", peps[i], peps[i])
        site = np.einsum("muUn,kbuUvwdD->mkbnvwdD", mps[i], double)
        state = site[0, 0, 0] if state is None else np.einsum("mkb...,mkbnvwdD->nvw...dD", state, site)
    np.testing.assert_allclose(got, state[0, 0, 0], rtol=1e-9, atol=1e-9)
    cut = plan(*interleave(arrays, terms, out), memory_budget=whole.peak_bytes)
    np.testing.assert_allclose(np.asarray(cut(*map(tr.asarray, arrays))), got, rtol=1e-10)


def test_the_amplitude_of_a_circuit_and_its_derivative():
    """Rotations and controlled phases on six qubits, against the state vector; the gradient by parameter shift."""
    qubits, depth = 6, 4
    rng = np.random.default_rng(6)
    angles = rng.uniform(0, 2 * np.pi, (depth, qubits))
    bits = rng.integers(0, 2, qubits)

    def rotation(t):
        c, s = tr.cos(t / 2), tr.sin(t / 2)
        return tr.stack([tr.stack([c, -s]), tr.stack([s, c])])

    def amplitude(angles):
        arrays, terms, at = [], [], [("q", i, 0) for i in range(qubits)]
        for i in range(qubits):
            arrays.append(tr.asarray([1.0, 0.0]))
            terms.append([at[i]])
        for layer in range(depth):
            for i in range(qubits):
                new = ("q", i, layer + 1)
                arrays.append(rotation(angles[layer, i]))
                terms.append([new, at[i]])
                at[i] = new
            for i in range(layer % 2, qubits - 1, 2):  # diagonal gates are matrices on hyper-edges
                arrays.append(tr.asarray([[1.0, 1.0], [1.0, -1.0]]))
                terms.append([at[i], at[i + 1]])
        for i in range(qubits):
            arrays.append(tr.asarray(np.eye(2)[bits[i]]))
            terms.append([at[i]])
        return einsum(*interleave(arrays, terms, []))

    def by_state_vector(angles):
        v = np.zeros((2,) * qubits)
        v[(0,) * qubits] = 1
        for layer in range(depth):
            for i in range(qubits):
                c, s = np.cos(angles[layer, i] / 2), np.sin(angles[layer, i] / 2)
                v = np.moveaxis(np.tensordot(np.array([[c, -s], [s, c]]), v, ([1], [i])), 0, i)
            for i in range(layer % 2, qubits - 1, 2):
                index: list[Any] = [slice(None)] * qubits
                index[i] = index[i + 1] = 1
                v[tuple(index)] *= -1
        return v[tuple(bits)]

    np.testing.assert_allclose(float(amplitude(tr.asarray(angles))), by_state_vector(angles), atol=1e-13)
    got = np.asarray(grad(amplitude)(tr.asarray(angles)))
    for k in [(0, 0), (1, 3), (depth - 1, qubits - 1)]:
        shifted = angles.copy()
        shifted[k] += np.pi  # d/dt of cos(t/2) and sin(t/2) is half of the value half a turn later
        np.testing.assert_allclose(got[k], by_state_vector(shifted) / 2, atol=1e-13)
