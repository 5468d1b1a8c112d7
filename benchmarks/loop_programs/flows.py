"""Fluids and the atmosphere: cavity and channel flow, shallow water, lattice Boltzmann, transport through levels."""

from typing import Any

import numpy as np

from loop_programs.record import Arguments, Namespace, programs

STEPS, SWEEPS = 12, 6
HALF_STEPS = 6
MOST = 30
"""Steps that the channel takes at most."""

DIRECTIONS = ((0, 0), (1, 0), (0, 1), (-1, 0), (0, -1), (1, 1), (-1, 1), (-1, -1), (1, -1))
WEIGHTS = np.array([4 / 9] + [1 / 9] * 4 + [1 / 36] * 4)


def cavity_flow(xp: Namespace, vorticity: Any, lid: Any) -> Any:
    """A lid-driven cavity by vorticity and stream function; the stream function from some sweeps of Jacobi's."""
    h = 1.0 / vorticity.shape[0]
    dt = 0.1 * h * h / 0.05

    def sweep(psi: Any, w: Any) -> Any:
        around = psi[2:, 1:-1] + psi[:-2, 1:-1] + psi[1:-1, 2:] + psi[1:-1, :-2]
        return psi.at[1:-1, 1:-1].set(0.25 * (around + h * h * w[1:-1, 1:-1]))

    def step(_: Any, state: Any) -> Any:
        w, psi = state
        psi = xp.fori_loop(0, SWEEPS, lambda _, psi: sweep(psi, w), psi)
        w = w.at[0, :].set(-2.0 * psi[1, :] / h**2).at[-1, :].set(-2.0 * (psi[-2, :] + h * lid) / h**2)
        w = w.at[:, 0].set(-2.0 * psi[:, 1] / h**2).at[:, -1].set(-2.0 * psi[:, -2] / h**2)
        u, v = (psi[2:, 1:-1] - psi[:-2, 1:-1]) / (2 * h), (psi[1:-1, :-2] - psi[1:-1, 2:]) / (2 * h)
        c = w[1:-1, 1:-1]
        moved = u * (w[1:-1, 2:] - w[1:-1, :-2]) / (2 * h) + v * (w[2:, 1:-1] - w[:-2, 1:-1]) / (2 * h)
        spread = (w[2:, 1:-1] + w[:-2, 1:-1] + w[1:-1, 2:] + w[1:-1, :-2] - 4.0 * c) / h**2
        return w.at[1:-1, 1:-1].set(c + dt * (0.05 * spread - moved)), psi

    return xp.fori_loop(0, STEPS, step, (vorticity, xp.zeros_like(vorticity)))


def cavity_flow_numpy(vorticity: Any, lid: Any) -> Any:
    w, psi, h = vorticity.copy(), np.zeros_like(vorticity), 1.0 / len(vorticity)
    dt = 0.1 * h * h / 0.05
    for _ in range(STEPS):
        for _ in range(SWEEPS):
            around = psi[2:, 1:-1] + psi[:-2, 1:-1] + psi[1:-1, 2:] + psi[1:-1, :-2]
            psi[1:-1, 1:-1] = 0.25 * (around + h * h * w[1:-1, 1:-1])
        w[0], w[-1] = -2.0 * psi[1] / h**2, -2.0 * (psi[-2] + h * lid) / h**2
        w[:, 0], w[:, -1] = -2.0 * psi[:, 1] / h**2, -2.0 * psi[:, -2] / h**2
        u, v = (psi[2:, 1:-1] - psi[:-2, 1:-1]) / (2 * h), (psi[1:-1, :-2] - psi[1:-1, 2:]) / (2 * h)
        c = w[1:-1, 1:-1]
        moved = u * (w[1:-1, 2:] - w[1:-1, :-2]) / (2 * h) + v * (w[2:, 1:-1] - w[:-2, 1:-1]) / (2 * h)
        spread = (w[2:, 1:-1] + w[:-2, 1:-1] + w[1:-1, 2:] + w[1:-1, :-2] - 4.0 * c) / h**2
        w[1:-1, 1:-1] = c + dt * (0.05 * spread - moved)
    return w, psi


def along_channel(xp: Any, u: Any, v: Any, p: Any) -> tuple[Any, Any, Any]:
    """New interior velocities and pressure of a channel that is periodic along its length; `xp` has `roll` alone."""
    east, west = lambda a: xp.roll(a, -1, axis=1), lambda a: xp.roll(a, 1, axis=1)

    def moved(a: Any) -> Any:
        c = a[1:-1]
        spread = east(c) + west(c) + a[2:] + a[:-2] - 4.0 * c
        return c + 0.1 * (0.5 * spread - u[1:-1] * (c - west(c)) - v[1:-1] * (c - a[:-2]))

    divergence = 0.5 * ((east(u) - west(u))[1:-1] + v[2:] - v[:-2])
    pressure = 0.25 * ((east(p) + west(p))[1:-1] + p[2:] + p[:-2] - divergence)
    new_u = moved(u) + 0.1 - 0.05 * (east(p) - west(p))[1:-1]
    return new_u, moved(v) - 0.05 * (p[2:] - p[:-2]), pressure


def channel_flow(xp: Namespace, u: Any, v: Any) -> Any:
    """A driven channel between walls, in steps until the flow hardly changes."""

    def body(state: Any) -> Any:
        u, v, p, _, count = state
        new_u, new_v, pressure = along_channel(xp, u, v, p)
        change = xp.sum(xp.abs(new_u - u[1:-1])) / xp.sum(xp.abs(new_u))
        p = p.at[1:-1, :].set(pressure).at[0, :].set(pressure[0]).at[-1, :].set(pressure[-1])
        return u.at[1:-1, :].set(new_u), v.at[1:-1, :].set(new_v), p, change, count + 1

    start = (u, v, xp.zeros_like(u), xp.ones_like(u[0, 0]), xp.asarray(0))
    return xp.while_loop(lambda state: (state[3] > 1e-3) & (state[4] < MOST), body, start)


def channel_flow_numpy(u: Any, v: Any) -> Any:
    u, v, p, change, count = u.copy(), v.copy(), np.zeros_like(u), 1.0, 0
    while change > 1e-3 and count < MOST:
        new_u, new_v, pressure = along_channel(np, u, v, p)
        change = np.abs(new_u - u[1:-1]).sum() / np.abs(new_u).sum()
        u[1:-1], v[1:-1], p[1:-1], p[0], p[-1] = new_u, new_v, pressure, pressure[0], pressure[-1]
        count += 1
    return u, v, p, change, count


def waves(xp: Any, h: Any, u: Any, v: Any) -> tuple[Any, Any, Any]:
    """One Lax-Friedrichs step of the shallow water equations on a torus; `xp` has `roll` alone."""

    def mean(a: Any) -> Any:
        return 0.25 * (xp.roll(a, 1, axis=0) + xp.roll(a, -1, axis=0) + xp.roll(a, 1, axis=1) + xp.roll(a, -1, axis=1))

    def slope(a: Any, axis: int) -> Any:
        return 0.5 * (xp.roll(a, -1, axis=axis) - xp.roll(a, 1, axis=axis))

    square = 0.5 * h * h
    return (
        mean(h) - 0.1 * (slope(u, 0) + slope(v, 1)),
        mean(u) - 0.1 * (slope(u * u / h + square, 0) + slope(u * v / h, 1)),
        mean(v) - 0.1 * (slope(u * v / h, 0) + slope(v * v / h + square, 1)),
    )


def shallow_water(xp: Namespace, h: Any, u: Any, v: Any) -> Any:
    """Heights and momenta of shallow water after some steps."""
    return xp.fori_loop(0, STEPS, lambda _, state: waves(xp, *state), (h, u, v))


def shallow_water_numpy(h: Any, u: Any, v: Any) -> Any:
    for _ in range(STEPS):
        h, u, v = waves(np, h, u, v)
    return h, u, v


def collided(xp: Any, f: list[Any]) -> list[Any]:
    """Relaxation of nine populations towards their equilibrium."""
    density = sum(f[1:], f[0])
    ux = (f[1] + f[5] + f[8] - f[3] - f[6] - f[7]) / density
    uy = (f[2] + f[5] + f[6] - f[4] - f[7] - f[8]) / density
    rest = 1.0 - 1.5 * (ux * ux + uy * uy)
    after = []
    for (cx, cy), weight, population in zip(DIRECTIONS, WEIGHTS, f):
        along = 3.0 * (cx * ux + cy * uy)
        after.append(population + 0.8 * (weight * density * (rest + along + 0.5 * along * along) - population))
    return after


def lattice_boltzmann(xp: Namespace, f: Any) -> Any:
    """Nine populations on a torus: collide, then move along their directions."""

    def step(_: Any, f: Any) -> Any:
        after = collided(xp, [f[k] for k in range(9)])
        return xp.stack([xp.roll(xp.roll(a, cx, axis=1), cy, axis=0) for a, (cx, cy) in zip(after, DIRECTIONS)])

    return xp.fori_loop(0, STEPS, step, f)


def lattice_boltzmann_numpy(f: Any) -> Any:
    for _ in range(STEPS):
        f = np.stack([np.roll(a, (cy, cx), (0, 1)) for a, (cx, cy) in zip(collided(np, list(f)), DIRECTIONS)])
    return f


def implicit_heat(xp: Namespace, u: Any) -> Any:
    """The alternating direction implicit method: a half step solves along one direction, the next along the other."""
    r = 0.7

    def eliminated(rows: Any) -> Any:
        def down(carry: Any, row: Any) -> Any:
            c, d = carry
            w = 1.0 / (1.0 + 2.0 * r + r * c)
            after = (-r * w, (row + r * d) * w)
            return after, after

        def up(x: Any, row: Any) -> Any:
            x = row[1] - row[0] * x
            return x, x

        zero = xp.zeros_like(rows[0])
        _, kept = xp.scan(down, (xp.zeros(()), zero), rows)
        return xp.scan(up, zero, kept, reverse=True)[1]

    def half(_: Any, u: Any) -> Any:
        right = u[1:-1, 1:-1] + r * (u[1:-1, 2:] - 2.0 * u[1:-1, 1:-1] + u[1:-1, :-2])
        return u.at[1:-1, 1:-1].set(eliminated(right)).T

    return xp.fori_loop(0, HALF_STEPS, half, u)


def implicit_heat_numpy(u: Any) -> Any:
    u, r = u.copy(), 0.7
    for _ in range(HALF_STEPS):
        right = u[1:-1, 1:-1] + r * (u[1:-1, 2:] - 2.0 * u[1:-1, 1:-1] + u[1:-1, :-2])
        c, d = np.zeros(len(right) + 1), np.zeros((len(right) + 1, right.shape[1]))
        for i, row in enumerate(right):
            w = 1.0 / (1.0 + 2.0 * r + r * c[i])
            c[i + 1], d[i + 1] = -r * w, (row + r * d[i]) * w
        x = np.zeros_like(d[0])
        for i in range(len(right) - 1, -1, -1):
            u[i + 1, 1:-1] = x = d[i + 1] - c[i + 1] * x
        u = np.ascontiguousarray(u.T)
    return u


def vertical_advection(xp: Namespace, u: Any, w: Any) -> Any:
    """Crank-Nicolson transport through levels: a tridiagonal system in each column; `w` at the faces between levels."""
    below, above = -0.25 * w[:-1], 0.25 * w[1:]
    flux = xp.concat([xp.zeros_like(u[:1]), w[1:-1] * (u[1:] - u[:-1]), xp.zeros_like(u[:1])])
    right = u - 0.25 * (flux[1:] + flux[:-1])

    def down(carry: Any, level: Any) -> Any:
        c, d = carry
        lower, upper, r = level
        scale = 1.0 / (1.0 - lower - upper - lower * c)
        after = (upper * scale, (r - lower * d) * scale)
        return after, after

    def up(x: Any, level: Any) -> Any:
        x = level[1] - level[0] * x
        return x, x

    zero = xp.zeros_like(u[0])
    _, kept = xp.scan(down, (zero, zero), (below, above, right))
    return xp.scan(up, zero, kept, reverse=True)[1]


def vertical_advection_numpy(u: Any, w: Any) -> Any:
    below, above = -0.25 * w[:-1], 0.25 * w[1:]
    flux = np.zeros_like(w)
    flux[1:-1] = w[1:-1] * (u[1:] - u[:-1])
    right = u - 0.25 * (flux[1:] + flux[:-1])
    c, d, x = np.empty_like(u), np.empty_like(u), np.zeros_like(u[0])
    last_c, last_d = np.zeros_like(u[0]), np.zeros_like(u[0])
    for k in range(len(u)):
        scale = 1.0 / (1.0 - below[k] - above[k] - below[k] * last_c)
        last_c, last_d = c[k], d[k] = above[k] * scale, (right[k] - below[k] * last_d) * scale
    for k in range(len(u) - 1, -1, -1):
        d[k] = x = d[k] - c[k] * x
    return d


def square(n: int, rng: np.random.Generator) -> Arguments:
    return 0.1 * rng.normal(size=(n, n)), np.ones(n)


def channel(n: int, rng: np.random.Generator) -> Arguments:
    inside = np.pad(0.1 * rng.normal(size=(2, n - 2, n)), ((0, 0), (1, 1), (0, 0)))
    return inside[0], inside[1]


def water(n: int, rng: np.random.Generator) -> Arguments:
    return 1.0 + 0.1 * rng.uniform(size=(n, n)), 0.1 * rng.normal(size=(n, n)), 0.1 * rng.normal(size=(n, n))


def populations(n: int, rng: np.random.Generator) -> Arguments:
    return (WEIGHTS[:, None, None] * (1.0 + 0.1 * rng.uniform(size=(9, n, n))),)


def plate(n: int, rng: np.random.Generator) -> Arguments:
    return (rng.normal(size=(n, n)),)


def levels(n: int, rng: np.random.Generator) -> Arguments:
    w = rng.normal(size=(n + 1, n, n))
    w[0] = w[-1] = 0.0
    return rng.normal(size=(n, n, n)), 0.3 * w


PROGRAMS = programs(
    "flows",
    (cavity_flow, cavity_flow_numpy, square, (7, 32, 120), (1,)),
    (channel_flow, channel_flow_numpy, channel, (7, 32, 160)),
    (shallow_water, shallow_water_numpy, water, (6, 32, 160), (0,)),
    (lattice_boltzmann, lattice_boltzmann_numpy, populations, (5, 24, 100), (0,)),
    (implicit_heat, implicit_heat_numpy, plate, (7, 32, 200), (0,)),
    (vertical_advection, vertical_advection_numpy, levels, (5, 12, 48), (0, 1)),
)
