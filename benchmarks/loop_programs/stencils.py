"""Stencils in one, two and three dimensions: relaxation, the heat and wave equations, implicit sweeps."""

from typing import Any

import numpy as np

from loop_programs.record import Arguments, Namespace, programs

STEPS = 40
SWEEPS = 4


def jacobi_1d(xp: Namespace, a: Any) -> Any:
    """The mean of three neighbours, two half steps between two arrays."""

    def step(_: Any, pair: Any) -> Any:
        a, b = pair
        b = b.at[1:-1].set((a[:-2] + a[1:-1] + a[2:]) / 3.0)
        a = a.at[1:-1].set((b[:-2] + b[1:-1] + b[2:]) / 3.0)
        return a, b

    return xp.fori_loop(0, STEPS, step, (a, a * 1.0))[0]


def jacobi_1d_numpy(a: Any) -> Any:
    a, b = a.copy(), a.copy()
    for _ in range(STEPS):
        b[1:-1] = (a[:-2] + a[1:-1] + a[2:]) / 3.0
        a[1:-1] = (b[:-2] + b[1:-1] + b[2:]) / 3.0
    return a


def jacobi_2d(xp: Namespace, a: Any, source: Any) -> Any:
    """Relaxation of Poisson's equation by the five-point stencil."""

    def step(_: Any, a: Any) -> Any:
        around = a[:-2, 1:-1] + a[2:, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:]
        return a.at[1:-1, 1:-1].set(0.25 * (around - source[1:-1, 1:-1]))

    return xp.fori_loop(0, STEPS, step, a)


def jacobi_2d_numpy(a: Any, source: Any) -> Any:
    a = a.copy()
    for _ in range(STEPS):
        around = a[:-2, 1:-1] + a[2:, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:]
        a[1:-1, 1:-1] = 0.25 * (around - source[1:-1, 1:-1])
    return a


def gauss_seidel(xp: Namespace, a: Any) -> Any:
    """Sweeps that use every new value at once, point by point."""
    rows, columns = a.shape

    def point(i: Any, j: Any, a: Any) -> Any:
        return a.at[i, j].set(0.25 * (a[i - 1, j] + a[i, j - 1] + a[i, j + 1] + a[i + 1, j]))

    def row(i: Any, a: Any) -> Any:
        return xp.fori_loop(1, columns - 1, lambda j, a: point(i, j, a), a)

    return xp.fori_loop(0, SWEEPS, lambda _, a: xp.fori_loop(1, rows - 1, row, a), a)


def gauss_seidel_numpy(a: Any) -> Any:
    a = a.copy()
    for _ in range(SWEEPS):
        for i in range(1, a.shape[0] - 1):
            known = a[i - 1] + a[i + 1]
            known[:-1] += a[i, 1:]
            row = a[i]
            for j in range(1, a.shape[1] - 1):
                row[j] = 0.25 * (known[j] + row[j - 1])
    return a


def red_black(xp: Namespace, a: Any) -> Any:
    """Gauss-Seidel in two colours, each updated as a whole by strided slices."""

    def colour(a: Any, i: int, j: int) -> Any:
        around = a[i - 1 : -2 : 2, j:-1:2] + a[i + 1 :: 2, j:-1:2] + a[i:-1:2, j - 1 : -2 : 2] + a[i:-1:2, j + 1 :: 2]
        return a.at[i:-1:2, j:-1:2].set(0.25 * around)

    def step(_: Any, a: Any) -> Any:
        for i, j in ((1, 1), (2, 2), (1, 2), (2, 1)):
            a = colour(a, i, j)
        return a

    return xp.fori_loop(0, STEPS, step, a)


def red_black_numpy(a: Any) -> Any:
    a = a.copy()
    for _ in range(STEPS):
        for i, j in ((1, 1), (2, 2), (1, 2), (2, 1)):
            around = a[i - 1 : -2 : 2, j:-1:2] + a[i + 1 :: 2, j:-1:2]
            around = around + a[i:-1:2, j - 1 : -2 : 2] + a[i:-1:2, j + 1 :: 2]
            a[i:-1:2, j:-1:2] = 0.25 * around
    return a


def heat_2d(xp: Namespace, u: Any, conductivity: Any) -> Any:
    """Explicit heat equation with a conductivity that varies in space, held at the boundary."""
    kx = 0.5 * (conductivity[1:, 1:-1] + conductivity[:-1, 1:-1])
    ky = 0.5 * (conductivity[1:-1, 1:] + conductivity[1:-1, :-1])

    def step(u: Any, _: Any) -> Any:
        fx, fy = kx * (u[1:, 1:-1] - u[:-1, 1:-1]), ky * (u[1:-1, 1:] - u[1:-1, :-1])
        return u.at[1:-1, 1:-1].add(0.2 * (fx[1:] - fx[:-1] + fy[:, 1:] - fy[:, :-1])), None

    return xp.scan(step, u, None, length=STEPS)[0]


def heat_2d_numpy(u: Any, conductivity: Any) -> Any:
    u = u.copy()
    kx = 0.5 * (conductivity[1:, 1:-1] + conductivity[:-1, 1:-1])
    ky = 0.5 * (conductivity[1:-1, 1:] + conductivity[1:-1, :-1])
    for _ in range(STEPS):
        fx, fy = kx * (u[1:, 1:-1] - u[:-1, 1:-1]), ky * (u[1:-1, 1:] - u[1:-1, :-1])
        u[1:-1, 1:-1] += 0.2 * (fx[1:] - fx[:-1] + fy[:, 1:] - fy[:, :-1])
    return u


def heat_3d(xp: Namespace, u: Any) -> Any:
    """Explicit heat equation by the seven-point stencil."""

    def laplacian(u: Any) -> Any:
        c = u[1:-1, 1:-1, 1:-1]
        return (
            (u[2:, 1:-1, 1:-1] - 2.0 * c + u[:-2, 1:-1, 1:-1])
            + (u[1:-1, 2:, 1:-1] - 2.0 * c + u[1:-1, :-2, 1:-1])
            + (u[1:-1, 1:-1, 2:] - 2.0 * c + u[1:-1, 1:-1, :-2])
        )

    return xp.fori_loop(0, STEPS, lambda _, u: u.at[1:-1, 1:-1, 1:-1].add(0.125 * laplacian(u)), u)


def heat_3d_numpy(u: Any) -> Any:
    u = u.copy()
    for _ in range(STEPS):
        c = u[1:-1, 1:-1, 1:-1]
        u[1:-1, 1:-1, 1:-1] = c + 0.125 * (
            (u[2:, 1:-1, 1:-1] - 2.0 * c + u[:-2, 1:-1, 1:-1])
            + (u[1:-1, 2:, 1:-1] - 2.0 * c + u[1:-1, :-2, 1:-1])
            + (u[1:-1, 1:-1, 2:] - 2.0 * c + u[1:-1, 1:-1, :-2])
        )
    return u


def fdtd_2d(xp: Namespace, ex: Any, ey: Any, hz: Any, pulse: Any) -> Any:
    """Maxwell's equations on a staggered grid, driven at one edge; one detector value a step."""

    def step(fields: Any, drive: Any) -> Any:
        ex, ey, hz = fields
        ey = ey.at[0, :].set(drive)
        ey = ey.at[1:, :].subtract(0.5 * (hz[1:, :] - hz[:-1, :]))
        ex = ex.at[:, 1:].subtract(0.5 * (hz[:, 1:] - hz[:, :-1]))
        hz = hz.at[:-1, :-1].subtract(0.7 * (ex[:-1, 1:] - ex[:-1, :-1] + ey[1:, :-1] - ey[:-1, :-1]))
        return (ex, ey, hz), hz[2, 2]

    (ex, ey, hz), seen = xp.scan(step, (ex, ey, hz), pulse)
    return ex, ey, hz, seen


def fdtd_2d_numpy(ex: Any, ey: Any, hz: Any, pulse: Any) -> Any:
    ex, ey, hz, seen = ex.copy(), ey.copy(), hz.copy(), np.empty(len(pulse))
    for t, drive in enumerate(pulse):
        ey[0, :] = drive
        ey[1:, :] -= 0.5 * (hz[1:, :] - hz[:-1, :])
        ex[:, 1:] -= 0.5 * (hz[:, 1:] - hz[:, :-1])
        hz[:-1, :-1] -= 0.7 * (ex[:-1, 1:] - ex[:-1, :-1] + ey[1:, :-1] - ey[:-1, :-1])
        seen[t] = hz[2, 2]
    return ex, ey, hz, seen


def wave_1d(xp: Namespace, speed: Any, start: Any) -> Any:
    """Wave equation by leapfrog; the rows of all steps are kept."""
    factor = (speed * speed * 0.4)[1:-1]

    def step(pair: Any, _: Any) -> Any:
        old, now = pair
        moved = 2.0 * now[1:-1] - old[1:-1] + factor * (now[2:] - 2.0 * now[1:-1] + now[:-2])
        return (now, now.at[1:-1].set(moved)), now

    return xp.scan(step, (start, start), None, length=STEPS)[1]


def wave_1d_numpy(speed: Any, start: Any) -> Any:
    factor, rows = (speed * speed * 0.4)[1:-1], np.empty((STEPS, len(start)))
    old, now = start, start
    for t in range(STEPS):
        rows[t], new = now, now.copy()
        new[1:-1] = 2.0 * now[1:-1] - old[1:-1] + factor * (now[2:] - 2.0 * now[1:-1] + now[:-2])
        old, now = now, new
    return rows


def wave_2d(xp: Namespace, before: Any, now: Any) -> Any:
    """Wave equation by leapfrog in two arrays: the older one is overwritten, then they change places."""

    def step(_: Any, pair: Any) -> Any:
        old, now = pair
        around = now[:-2, 1:-1] + now[2:, 1:-1] + now[1:-1, :-2] + now[1:-1, 2:]
        moved = now[1:-1, 1:-1] + 0.4 * around - old[1:-1, 1:-1] - 0.6 * now[1:-1, 1:-1]
        return now, old.at[1:-1, 1:-1].set(moved)

    return xp.fori_loop(0, STEPS, step, (before, now))


def wave_2d_numpy(before: Any, now: Any) -> Any:
    old, now = before.copy(), now.copy()
    for _ in range(STEPS):
        around = now[:-2, 1:-1] + now[2:, 1:-1] + now[1:-1, :-2] + now[1:-1, 2:]
        old[1:-1, 1:-1] = now[1:-1, 1:-1] + 0.4 * around - old[1:-1, 1:-1] - 0.6 * now[1:-1, 1:-1]
        old, now = now, old
    return old, now


def life(xp: Namespace, cells: Any) -> Any:
    """Conway's game on a torus, in 32-bit integers."""

    def step(_: Any, c: Any) -> Any:
        rows = xp.roll(c, 1, axis=0) + c + xp.roll(c, -1, axis=0)
        around = xp.roll(rows, 1, axis=1) + rows + xp.roll(rows, -1, axis=1) - c
        return xp.where((around == 3) | ((around == 2) & (c == 1)), xp.ones_like(c), xp.zeros_like(c))

    return xp.fori_loop(0, STEPS, step, cells)


def life_numpy(c: Any) -> Any:
    for _ in range(STEPS):
        rows = np.roll(c, 1, axis=0) + c + np.roll(c, -1, axis=0)
        around = np.roll(rows, 1, axis=1) + rows + np.roll(rows, -1, axis=1) - c
        c = ((around == 3) | ((around == 2) & (c == 1))).astype(c.dtype)
    return c


def line(n: int, rng: np.random.Generator) -> Arguments:
    return (rng.normal(size=n),)


def square(n: int, rng: np.random.Generator) -> Arguments:
    return (rng.normal(size=(n, n)),)


def cube(n: int, rng: np.random.Generator) -> Arguments:
    return (rng.normal(size=(n, n, n)),)


def medium(n: int, rng: np.random.Generator) -> Arguments:
    return rng.normal(size=(n, n)), rng.uniform(0.5, 1.0, (n, n))


def fields(n: int, rng: np.random.Generator) -> Arguments:
    return *(rng.normal(size=(n, n)) for _ in range(3)), rng.normal(size=STEPS)


def string(n: int, rng: np.random.Generator) -> Arguments:
    return rng.uniform(0.5, 1.0, n), np.exp(-0.01 * (np.arange(n) - n / 2) ** 2)


def cells(n: int, rng: np.random.Generator) -> Arguments:
    return (rng.integers(0, 2, (n, n), dtype="int32"),)


PROGRAMS = programs(
    "stencils",
    (jacobi_1d, jacobi_1d_numpy, line, (9, 400, 40_000), (0,)),
    (jacobi_2d, jacobi_2d_numpy, medium, (7, 40, 250), (0, 1)),
    (gauss_seidel, gauss_seidel_numpy, square, (7, 24, 120), (0,)),
    (red_black, red_black_numpy, square, (8, 40, 250), (0,)),
    (heat_2d, heat_2d_numpy, medium, (7, 40, 250), (0, 1)),
    (heat_3d, heat_3d_numpy, cube, (5, 12, 40), (0,)),
    (fdtd_2d, fdtd_2d_numpy, fields, (6, 40, 200), (0, 3)),
    (wave_1d, wave_1d_numpy, string, (9, 300, 20_000), (0,)),
    (wave_2d, wave_2d_numpy, medium, (7, 40, 250), (0, 1)),
    (life, life_numpy, cells, (6, 40, 200)),
)
