"""Programs of tensor networks and quantum physics beside jax.jit on one core: values and gradients, first and settled.

Each program is written once, in the functions that both libraries have, at two sizes. The two take turns in one run;
the columns are milliseconds of the first call, of a settled one (the median of rounds), and JAX's over ours. Results
are compared before anything is timed.

    python benchmarks/networks.py [--only TEXT] [--rounds N] [--quick]
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import contestants

options = contestants.parser(__doc__)
chosen = options.parse_args()
contestants.prepare(chosen)

import numpy as np  # noqa: E402 - the number of threads is set before
from turns import medians  # noqa: E402

import tenferro_ad as ad  # noqa: E402
import tenferro_linalg as tl  # noqa: E402
import tenferro_runtime as tr  # noqa: E402
from tenferro_runtime.running.fusion import wait  # noqa: E402

jax = contestants.optional("jax")

Loss = Callable[[Any], Any]
X, Z = np.array([[0.0, 1.0], [1.0, 0.0]]), np.diag([1.0, -1.0])


class Library(NamedTuple):
    """What the programs use besides the array functions `xp`."""

    xp: Any
    svd: Callable[[Any], Any]
    eigh: Callable[[Any], Any]
    expm: Callable[[Any], Any]
    scan: Callable[[Callable[[Any, Any], Any], Any, int], Any]
    transpose: Callable[[Any, tuple[int, ...]], Any]


OURS = Library(
    tr,
    lambda m: tuple(tl.svd(m, full_matrices=False)),
    lambda m: tuple(tl.eigh(m)),
    tl.expm,
    lambda f, carry, count: tr.scan(f, carry, None, length=count),
    tr.permute_dims,
)


def theirs() -> Library | None:
    """JAX's functions."""
    if jax is None or "jax" in chosen.without:
        return None
    jax.config.update("jax_enable_x64", True)
    jnp = jax.numpy
    return Library(
        jnp,
        lambda m: jnp.linalg.svd(m, full_matrices=False),
        jnp.linalg.eigh,
        jax.scipy.linalg.expm,
        lambda f, carry, count: jax.lax.scan(f, carry, None, length=count),
        jnp.transpose,
    )


def ising_gate(lib: Library, field: Any, step: complex) -> Any:
    """exp(-step h) of two sites of the transverse-field Ising chain."""
    xp = lib.xp
    zz, x = (xp.asarray(np.asarray(m, complex)) for m in (np.kron(Z, Z), np.kron(X, np.eye(2)) + np.kron(np.eye(2), X)))
    return xp.reshape(lib.expm(step * (zz + field * x / 2)), (2, 2, 2, 2))


def tebd(sites: int, bond: int, steps: int, imaginary: bool) -> Callable[[Library], Loss]:
    """A quench from a product state, or cooling: the entropy in the middle, summed over the steps."""

    def of(lib: Library) -> Loss:
        xp = lib.xp

        def inverse(values: Any) -> Any:
            there = values > 1e-10
            return xp.where(there, 1 / xp.where(there, values, 1.0), 0.0)

        def two(gate: Any, left: Any, a: Any, middle: Any, b: Any, right: Any) -> Any:
            theta = xp.einsum("a,aib,b,bjc,c->aijc", left, a, middle, b, right)
            theta = xp.einsum("aijc,ijkl->aklc", theta, gate)
            u, s, vh = lib.svd(xp.reshape(theta, (2 * bond, 2 * bond)))
            s = s[:bond] / xp.sqrt(xp.sum(s[:bond] ** 2))
            a = xp.reshape(u[:, :bond], (bond, 2, bond)) * inverse(left)[:, None, None]
            return a, s, xp.reshape(vh[:bond], (bond, 2, bond)) * inverse(right)[None, None, :]

        def run(field: Any) -> Any:
            gate = ising_gate(lib, field, 0.05 * (1 if imaginary else 1j))
            gammas, lambdas = np.zeros((sites, bond, 2, bond), complex), np.zeros((sites + 1, bond))
            gammas[:, 0, :, 0], lambdas[:, 0] = (math.sqrt(0.8), math.sqrt(0.2)) if imaginary else (1, 0), 1

            def step(state: Any, _: Any) -> Any:
                g, w = [state[0][i] for i in range(sites)], [state[1][i] for i in range(sites + 1)]
                for first in (0, 1):
                    for i in range(first, sites - 1, 2):
                        g[i], w[i + 1], g[i + 1] = two(gate, w[i], g[i], w[i + 1], g[i + 1], w[i + 2])
                p = w[sites // 2] ** 2
                there = p > 1e-24
                entropy = -xp.sum(xp.where(there, p * xp.log(xp.where(there, p, 1.0)), 0.0))
                return (xp.stack(g), xp.stack(w)), entropy

            return xp.sum(lib.scan(step, (xp.asarray(gammas), xp.asarray(lambdas)), steps)[1])

        return run

    return of


def ctmrg(physical: int, bond: int, steps: int, by_svd: bool) -> Callable[[Library], Loss]:
    """Corner transfer matrices of the classical Ising model, of 1 or 2x2 sites a tensor: the free energy."""

    def of(lib: Library) -> Loss:
        xp, rng = lib.xp, np.random.default_rng(0)
        corner, edge = rng.random((bond, bond)), rng.random((bond, physical, bond))
        start = corner + corner.T, edge + edge.transpose(2, 1, 0)
        one = np.zeros((2, 2, 2, 2))
        one[0, 0, 0, 0] = one[1, 1, 1, 1] = 1

        def unit(x: Any) -> Any:
            return x / xp.sqrt(xp.sum(x**2))

        def run(beta: Any) -> Any:
            c, s = xp.sqrt(xp.cosh(beta)), xp.sqrt(xp.sinh(beta))
            m = xp.stack([xp.stack([c, s]), xp.stack([c, -s])])
            a = xp.einsum("abcd,ai,bj,ck,dl->ijkl", xp.asarray(one), m, m, m, m)
            if physical == 4:
                a = xp.reshape(xp.einsum("ijkl,mnop->imjnkolp", a, a), (4, 4, 4, 4))

            def step(state: Any, _: Any) -> Any:
                c, t = state
                grown = xp.einsum("ab,aic,bjd,ijkl->ckdl", c, t, t, a)
                grown = xp.reshape(grown, (bond * physical, bond * physical))
                grown = (grown + grown.T) / 2
                p = lib.svd(grown)[0][:, :bond] if by_svd else lib.eigh(grown)[1][:, -bond:]
                c = p.T @ grown @ p
                p = xp.reshape(p, (bond, physical, bond))
                t = xp.einsum("aib,aku,blv,ikjl->ujv", t, p, p, a)
                return (unit(c + c.T), unit(t + lib.transpose(t, (2, 1, 0)))), None

            c, t = lib.scan(step, tuple(map(xp.asarray, start)), steps)[0]
            site = xp.einsum("ab,bic,cd,dje,ef,fkg,gh,hla,ijkl->", c, t, c, t, c, t, c, t, a)
            corners = xp.einsum("ab,bc,cd,da->", c, c, c, c)
            return xp.log(site * corners / xp.einsum("ab,bic,cd,de,eif,fa->", c, t, c, c, t, c) ** 2)

        return run

    return of


def circuit(qubits: int, layers: int) -> Callable[[Library], Loss]:
    """The energy of a state that layers of rotations and controlled phases prepare."""

    def of(lib: Library) -> Loss:
        xp, rng = lib.xp, np.random.default_rng(1)
        scale = rng.standard_normal((layers, qubits, 2))
        phases = np.where(np.arange(4) == 3, -1.0, 1.0).reshape(2, 2)

        def apply(gate: Any, state: Any, k: int) -> Any:
            state = xp.reshape(state, (2**k, 2, 2 ** (qubits - 1 - k)))
            return xp.einsum("ij,ajb->aib", gate, state)

        def run(angle: Any) -> Any:
            angles = angle * xp.asarray(scale)
            state = np.zeros(2**qubits, complex)
            state[0] = 1
            state = xp.asarray(state)
            for layer in range(layers):
                for k in range(qubits):
                    y, z = angles[layer, k, 0], angles[layer, k, 1]
                    turn = xp.stack([xp.stack([xp.cos(y), -xp.sin(y)]), xp.stack([xp.sin(y), xp.cos(y)])])
                    state = apply(turn * xp.exp(1j * xp.stack([z, -z]))[:, None], state, k)
                for k in range(layer % 2, qubits - 1, 2):
                    state = xp.reshape(state, (2**k, 2, 2, -1)) * xp.asarray(phases)[None, :, :, None]
            state = xp.reshape(state, (-1,))
            energy = 0.0
            for k in range(qubits - 1):
                parts = xp.reshape(xp.real(state * xp.conj(state)), (2**k, 2, 2, -1))
                energy = energy + xp.sum(parts * xp.asarray(np.outer([1.0, -1], [1.0, -1]))[None, :, :, None])
            for k in range(qubits):
                energy = energy + xp.sum(
                    xp.real(xp.conj(xp.reshape(apply(xp.asarray(X + 0j), state, k), (-1,))) * state)
                )
            return energy

        return run

    return of


def lindblad(qubits: int, steps: int) -> Callable[[Library], Loss]:
    """Decay and dephasing of a chain by Runge-Kutta steps: the purity at the end."""

    def of(lib: Library) -> Loss:
        xp, size = lib.xp, 2**qubits

        def at(op: np.ndarray, k: int) -> np.ndarray:
            return np.kron(np.kron(np.eye(2**k), op), np.eye(2 ** (qubits - 1 - k)))

        coupling = sum(at(Z, k) @ at(Z, k + 1) for k in range(qubits - 1)) + 0j
        drive = sum(at(X, k) for k in range(qubits)) + 0j
        jumps = np.stack([at(np.array([[0, 1], [0, 0]]), k) for k in range(qubits)]) + 0j
        decay = np.einsum("kji,kjl->il", jumps.conj(), jumps)

        def run(field: Any) -> Any:
            hamiltonian = xp.asarray(coupling) + field * xp.asarray(drive)
            there, loss = xp.asarray(jumps), xp.asarray(decay)

            def change(rho: Any) -> Any:
                left = (-1j * hamiltonian - 0.05 * loss) @ rho
                return left + xp.conj(left.T) + 0.1 * xp.einsum("kij,jl,kml->im", there, rho, xp.conj(there))

            def step(rho: Any, _: Any) -> Any:
                a = change(rho)
                b = change(rho + 0.01 * a)
                c = change(rho + 0.01 * b)
                d = change(rho + 0.02 * c)
                return rho + 0.02 / 6 * (a + 2 * b + 2 * c + d), None

            rho = np.zeros((size, size), complex)
            rho[0, 0] = 1
            rho = lib.scan(step, xp.asarray(rho), steps)[0]
            return xp.sum(xp.real(rho * xp.conj(rho)))

        return run

    return of


def ring(sites: int, bond: int, local: int) -> Callable[[Library], Loss]:
    """The logarithm of the norm of a periodic matrix product state, whose tensors depend on one number."""

    def of(lib: Library) -> Loss:
        xp, rng = lib.xp, np.random.default_rng(2)
        tensors, slopes = (rng.standard_normal((sites, bond, local, bond)) / math.sqrt(bond * local) for _ in range(2))

        def run(x: Any) -> Any:
            a = xp.asarray(tensors) + x * xp.asarray(slopes)
            around = xp.reshape(xp.eye(bond * bond), (bond, bond, bond, bond))
            for k in range(sites):
                around = xp.einsum("xyab,aic,bid->xycd", around, a[k], a[k])
            return xp.log(xp.einsum("xyxy->", around))

        return run

    return of


def mera(levels: int, bond: int) -> Callable[[Library], Loss]:
    """A binary tree of isometries with disentanglers, made by decompositions: the energy of two sites at the bottom."""

    def of(lib: Library) -> Loss:
        xp, rng = lib.xp, np.random.default_rng(3)
        tops = rng.standard_normal((levels, 2, bond * bond, bond * bond))
        h = rng.standard_normal((bond * bond, bond * bond))

        def run(x: Any) -> Any:
            energy = xp.reshape(xp.asarray(h + h.T), (bond, bond, bond, bond))
            for level in range(levels):
                u, _, v = lib.svd(xp.asarray(tops[level, 0]) + x * xp.asarray(np.eye(bond * bond)))
                w, _, y = lib.svd(xp.asarray(tops[level, 1, :, :bond]) + x)
                u, w = xp.reshape(u @ v, (bond,) * 4), xp.reshape(w @ y, (bond,) * 3)
                energy = xp.einsum("abcd,abij,cdkl->ijkl", energy, u, u)
                energy = xp.einsum("ijkl,pia,qjb,pkc,qld->abcd", energy, w, w, w, w)
            return xp.einsum("abab->", energy)

        return run

    return of


PROGRAMS: dict[str, tuple[Callable[[Library], Loss], float]] = {
    "TEBD, quench, 10 sites, bond 16": (tebd(10, 16, 10, False), 1.0),
    "TEBD, quench, 16 sites, bond 32": (tebd(16, 32, 10, False), 1.0),
    "TEBD, cooling, 10 sites, bond 16": (tebd(10, 16, 10, True), 1.0),
    "CTMRG, 1 site, bond 16, svd": (ctmrg(2, 16, 20, True), 0.3),
    "CTMRG, 2x2 sites, bond 24, eigh": (ctmrg(4, 24, 20, False), 0.3),
    "circuit, 8 qubits, 4 layers": (circuit(8, 4), 0.7),
    "circuit, 12 qubits, 6 layers": (circuit(12, 6), 0.7),
    "Lindblad, 3 qubits": (lindblad(3, 100), 0.7),
    "Lindblad, 6 qubits": (lindblad(6, 30), 0.7),
    "ring, 12 sites, bond 8": (ring(12, 8, 2), 0.1),
    "ring, 8 sites, bond 16": (ring(8, 16, 4), 0.1),
    "MERA, 3 levels, bond 4": (mera(3, 4), 0.2),
    "MERA, 3 levels, bond 6": (mera(3, 6), 0.2),
}

GRADIENTS_WITHOUT = ("TEBD",)
"""Rows without a gradient: that of a product state's multiplets does not exist, and JAX gives NaN."""


class Contest(NamedTuple):
    """Two functions of one number."""

    name: str
    ours: Loss
    jax: Loss | None
    at: float


def contests() -> Iterator[Contest]:
    """Values and gradients of the programs that were asked for."""
    other = theirs()
    for name, (program, at) in PROGRAMS.items():
        for kind in ("value", "gradient"):
            label = f"{name}: {kind}"
            if chosen.only not in label or any(text in label for text in chosen.skip):
                continue
            if kind == "gradient" and name.startswith(GRADIENTS_WITHOUT):
                continue
            mine, rival = program(OURS), program(other) if other else None
            if kind == "gradient":
                mine, rival = ad.value_and_grad(mine), rival and jax.value_and_grad(rival)
            yield Contest(label, tr.compile(mine), rival and jax.jit(rival), at)


def first(call: Callable[[], Any]) -> tuple[float, np.ndarray]:
    start = time.perf_counter()
    found = call()
    found = np.asarray([float(x) for x in (found if isinstance(found, tuple) else (found,))])
    return time.perf_counter() - start, found


def main() -> None:
    print(f"{'':42}{'first call':>10}{'jax':>10}{'settled':>10}{'jax':>10}   milliseconds{'settled':>9}")
    ratios = []
    for name, ours, rival, at in contests():
        calls: dict[str, Callable[[], Any]] = {"ours": lambda f=ours, x=at: f(x)}  # type: ignore[misc]
        if rival:
            calls["jax"] = lambda f=rival, x=at: jax.block_until_ready(f(x))  # type: ignore[misc]
        begun = {who: first(call) for who, call in calls.items()}
        np.testing.assert_allclose(*[found for _, found in begun.values()] * (2 // len(begun)), rtol=1e-6, err_msg=name)
        for _ in range(4):
            calls["ours"]()
            wait()
        settled = medians(calls, 3 if chosen.quick else chosen.rounds)
        shown = "".join(
            f"{times[who] * 1e3:10.3f}" if who in times else f"{'-':>10}"
            for times in ({who: seconds for who, (seconds, _) in begun.items()}, settled)
            for who in ("ours", "jax")
        )
        ratio = settled.get("jax", math.nan) / settled["ours"]
        ratios.append(ratio)
        print(f"{name:42}{shown}{'':15}{ratio:9.2f}", flush=True)
    if ratios and not math.isnan(ratios[0]):
        print(f"geometric mean {statistics.geometric_mean(ratios):.2f}, least {min(ratios):.2f}")


if __name__ == "__main__":
    main()
