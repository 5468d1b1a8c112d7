"""Particles, maps and chance: N-body, Verlet chains, the Mandelbrot set, Metropolis sampling, sparse rows."""

from typing import Any

import numpy as np

from loop_programs.record import Arguments, Namespace, programs

STEPS = 20
ITERATIONS = 40


def pulls(xp: Any, x: Any, mass: Any) -> Any:
    """Softened gravitational accelerations, all pairs at once."""
    apart = x[None, :, :] - x[:, None, :]
    inverse = (xp.sum(apart * apart, axis=2) + 0.01) ** -1.5
    return xp.sum(apart * (inverse * mass[None, :])[:, :, None], axis=1)


def n_body(xp: Namespace, x: Any, v: Any, mass: Any) -> Any:
    """Leapfrog steps under gravitation, and the kinetic energy after each."""

    def step(state: Any, _: Any) -> Any:
        x, v, a = state
        v = v + 0.005 * a
        x = x + 0.01 * v
        a = pulls(xp, x, mass)
        v = v + 0.005 * a
        return (x, v, a), 0.5 * xp.sum(mass[:, None] * v * v)

    (x, v, _), energies = xp.scan(step, (x, v, pulls(xp, x, mass)), None, length=STEPS)
    return x, v, energies


def n_body_numpy(x: Any, v: Any, mass: Any) -> Any:
    x, v, a, energies = x.copy(), v.copy(), pulls(np, x, mass), np.empty(STEPS)
    for n in range(STEPS):
        v += 0.005 * a
        x += 0.01 * v
        a = pulls(np, x, mass)
        v += 0.005 * a
        energies[n] = 0.5 * np.sum(mass[:, None] * v * v)
    return x, v, energies


def pair_energy(xp: Namespace, x: Any) -> Any:
    """The Lennard-Jones energy within a cutoff, one particle against all later ones in each step."""
    places = xp.arange(x.shape[0])

    def row(total: Any, i: Any) -> Any:
        apart = x - x[i]
        square = xp.where(places > i, xp.sum(apart * apart, axis=1), 100.0)
        sixth = 1.0 / (square * square * square)
        return total + xp.sum(xp.where(square < 9.0, 4.0 * (sixth * sixth - sixth), 0.0)), None

    return xp.scan(row, xp.zeros(()), places)[0]


def pair_energy_numpy(x: Any) -> Any:
    total = 0.0
    for i in range(len(x) - 1):
        square = ((x[i + 1 :] - x[i]) ** 2).sum(axis=1)
        sixth = 1.0 / square[square < 9.0] ** 3
        total += np.sum(4.0 * (sixth * sixth - sixth))
    return total


def nonlinear_chain(xp: Namespace, x: Any, v: Any) -> Any:
    """Fermi, Pasta, Ulam and Tsingou's chain by velocity Verlet; the positions of every step."""

    def force(x: Any) -> Any:
        stretch = xp.diff(xp.pad(x, ((1, 1),)))
        pull = stretch + 0.25 * stretch * stretch
        return pull[1:] - pull[:-1]

    def step(state: Any, _: Any) -> Any:
        x, v = state
        v = v + 0.05 * force(x)
        x = x + 0.1 * v
        return (x, v + 0.05 * force(x)), x

    return xp.scan(step, (x, v), None, length=ITERATIONS)[1]


def nonlinear_chain_numpy(x: Any, v: Any) -> Any:
    def force(x: Any) -> Any:
        stretch = np.diff(np.pad(x, 1))
        pull = stretch + 0.25 * stretch * stretch
        return pull[1:] - pull[:-1]

    rows = np.empty((ITERATIONS, len(x)))
    for n in range(ITERATIONS):
        v = v + 0.05 * force(x)
        rows[n] = x = x + 0.1 * v
        v = v + 0.05 * force(x)
    return rows


def mandelbrot(xp: Namespace, c: Any) -> Any:
    """Steps that points take to leave the disk of radius two, all points in every step."""

    def step(_: Any, state: Any) -> Any:
        z, count = state
        inside = xp.real(z) ** 2 + xp.imag(z) ** 2 <= 4.0
        return xp.where(inside, z * z + c, z), count + xp.where(inside, 1, 0)

    return xp.fori_loop(0, ITERATIONS, step, (xp.zeros_like(c), xp.zeros(c.shape, dtype=xp.int64)))[1]


def mandelbrot_numpy(c: Any) -> Any:
    z, count = np.zeros_like(c), np.zeros(c.shape, dtype="int64")
    for _ in range(ITERATIONS):
        inside = z.real**2 + z.imag**2 <= 4.0
        z[inside] = z[inside] ** 2 + c[inside]
        count += inside
    return count


def escape_times(xp: Namespace, x: Any, y: Any) -> Any:
    """The same point by point, in real numbers, each point with a `while_loop` of its own."""

    def point(_: Any, c: Any) -> Any:
        def body(state: Any) -> Any:
            a, b, count = state
            return a * a - b * b + c[0], 2.0 * a * b + c[1], count + 1

        def inside(state: Any) -> Any:
            return (state[0] * state[0] + state[1] * state[1] <= 4.0) & (state[2] < ITERATIONS)

        zero = xp.zeros(())
        return None, xp.while_loop(inside, body, (zero, zero, xp.asarray(0)))[2]

    return xp.scan(point, None, (x, y))[1]


def escape_times_numpy(x: Any, y: Any) -> Any:
    c = x + 1j * y
    z, count, alive = np.zeros_like(c), np.zeros(c.shape, dtype="int64"), np.arange(len(c))
    for _ in range(ITERATIONS):
        alive = alive[z[alive].real ** 2 + z[alive].imag ** 2 <= 4.0]
        z[alive] = z[alive] ** 2 + c[alive]
        count[alive] += 1
    return count


def metropolis(xp: Namespace, spins: Any, sites: Any, chances: Any) -> Any:
    """Single flips of an Ising model on a torus, at places and with random numbers drawn before."""
    n = spins.shape[0]

    def flip(state: Any, draw: Any) -> Any:
        spins, energy = state
        i, j, chance = draw[0][0], draw[0][1], draw[1]
        around = spins[(i + 1) % n, j] + spins[(i - 1) % n, j] + spins[i, (j + 1) % n] + spins[i, (j - 1) % n]
        cost = 2.0 * spins[i, j] * around
        taken = chance < xp.exp(-0.44 * cost)
        spins = spins.at[i, j].set(xp.where(taken, -spins[i, j], spins[i, j]))
        return (spins, energy + xp.where(taken, cost, 0.0)), energy

    (spins, _), energies = xp.scan(flip, (spins, xp.zeros(())), (sites, chances))
    return spins, energies


def metropolis_numpy(spins: Any, sites: Any, chances: Any) -> Any:
    spins, energy, energies, n = spins.copy(), 0.0, np.empty(len(chances)), len(spins)
    limits = np.exp(-0.44 * 2.0 * np.arange(-4, 5))
    for step, ((i, j), chance) in enumerate(zip(sites.tolist(), chances.tolist())):
        energies[step] = energy
        around = spins[(i + 1) % n, j] + spins[i - 1, j] + spins[i, (j + 1) % n] + spins[i, j - 1]
        product = int(spins[i, j] * around)
        if chance < limits[product + 4]:
            spins[i, j] = -spins[i, j]
            energy += 2.0 * product
    return spins, energies


def sparse_product(xp: Namespace, starts: Any, columns: Any, values: Any, x: Any) -> Any:
    """A matrix in compressed rows times a vector, each row a loop over its own elements."""

    def row(i: Any, y: Any) -> Any:
        total = xp.fori_loop(starts[i], starts[i + 1], lambda k, total: total + values[k] * x[columns[k]], xp.zeros(()))
        return y.at[i].set(total)

    return xp.fori_loop(0, x.shape[0], row, xp.zeros_like(x))


def sparse_product_numpy(starts: Any, columns: Any, values: Any, x: Any) -> Any:
    y = np.empty(len(x))
    for i in range(len(y)):
        row = slice(starts[i], starts[i + 1])
        y[i] = values[row] @ x[columns[row]]
    return y


def cloud(n: int, rng: np.random.Generator) -> Arguments:
    return rng.normal(size=(n, 3)), 0.1 * rng.normal(size=(n, 3)), rng.uniform(0.5, 1.5, n)


def crystal(n: int, rng: np.random.Generator) -> Arguments:
    grid = np.stack(np.meshgrid(*(np.arange(n),) * 3), axis=-1).reshape(-1, 3)
    return (1.1 * grid + 0.05 * rng.normal(size=grid.shape),)


def chain(n: int, rng: np.random.Generator) -> Arguments:
    return np.sin(np.pi * np.arange(1, n + 1) / (n + 1)), 0.1 * rng.normal(size=n)


def plane(n: int, rng: np.random.Generator) -> Arguments:
    return (np.linspace(-2.0, 0.6, n)[None, :] + 1j * np.linspace(-1.1, 1.1, n)[:, None],)


def points(n: int, rng: np.random.Generator) -> Arguments:
    return rng.uniform(-2.0, 0.6, n), rng.uniform(-1.1, 1.1, n)


def lattice(n: int, rng: np.random.Generator) -> Arguments:
    return rng.choice([-1.0, 1.0], (n, n)), rng.integers(0, n, (n * n, 2)), rng.uniform(size=n * n)


def sparse(n: int, rng: np.random.Generator) -> Arguments:
    starts = np.concatenate([[0], np.cumsum(rng.integers(1, 12, n))])
    return starts, rng.integers(0, n, starts[-1]), rng.normal(size=starts[-1]), rng.normal(size=n)


PROGRAMS = programs(
    "particles",
    (n_body, n_body_numpy, cloud, (4, 12, 80), (0, 1)),
    (pair_energy, pair_energy_numpy, crystal, (2, 4, 9), (0,)),
    (nonlinear_chain, nonlinear_chain_numpy, chain, (6, 100, 10_000), (0, 1)),
    (mandelbrot, mandelbrot_numpy, plane, (6, 40, 200)),
    (escape_times, escape_times_numpy, points, (9, 200, 10_000)),
    (metropolis, metropolis_numpy, lattice, (5, 20, 120)),
    (sparse_product, sparse_product_numpy, sparse, (6, 100, 3000)),
)
