"""Programs without loops: normalisations, shifted stencils, products of scaled matrices, distances."""

from itertools import pairwise
from typing import Any

import numpy as np

from loop_programs.record import Arguments, Namespace, programs


def softmax(xp: Namespace, x: Any) -> Any:
    """Softmax over the last of four axes."""
    e = xp.exp(x - xp.max(x, axis=-1, keepdims=True))
    return e / xp.sum(e, axis=-1, keepdims=True)


def softmax_numpy(x: Any) -> Any:
    return softmax(np, x)


def normalised_rows(xp: Namespace, x: Any, scale: Any, shift: Any) -> Any:
    """Layer normalisation of rows, with a scale and a shift for each column."""
    apart = x - xp.mean(x, axis=1, keepdims=True)
    return apart / xp.sqrt(xp.mean(apart * apart, axis=1, keepdims=True) + 1e-5) * scale + shift


def normalised_rows_numpy(x: Any, scale: Any, shift: Any) -> Any:
    return normalised_rows(np, x, scale, shift)


def scaled_products(xp: Namespace, a: Any, b: Any, x: Any) -> Any:
    """(alpha A + beta B) x as the sum of two products of scaled matrices."""
    return (1.5 * a) @ x + (0.75 * b) @ x


def scaled_products_numpy(a: Any, b: Any, x: Any) -> Any:
    return scaled_products(np, a, b, x)


def rank_two(xp: Namespace, a: Any, u: Any, v: Any, x: Any) -> Any:
    """A matrix with an update of rank two, times a vector from both sides, one product after the other."""
    a = a + u[0][:, None] * v[0][None, :] + u[1][:, None] * v[1][None, :]
    y = x + 0.75 * (a.T @ x)
    return a, a @ y


def rank_two_numpy(a: Any, u: Any, v: Any, x: Any) -> Any:
    a = a + np.outer(u[0], v[0]) + np.outer(u[1], v[1])
    return a, a @ (x + 0.75 * (a.T @ x))


def normal_product(xp: Namespace, a: Any, x: Any, y: Any) -> Any:
    """A^T (A x) and A y, two products that share a matrix."""
    return a.T @ (a @ x), a @ y


def normal_product_numpy(a: Any, x: Any, y: Any) -> Any:
    return a.T @ (a @ x), a @ y


def horizontal_diffusion(xp: Namespace, x: Any, strength: Any) -> Any:
    """Diffusion of fourth order in every level, with fluxes that never add to a gradient."""
    smooth = 4.0 * x[1:-1, 1:-1] - (x[2:, 1:-1] + x[:-2, 1:-1] + x[1:-1, 2:] + x[1:-1, :-2])
    fx, fy = smooth[1:, 1:-1] - smooth[:-1, 1:-1], smooth[1:-1, 1:] - smooth[1:-1, :-1]
    dx, dy = x[2:-1, 2:-2] - x[1:-2, 2:-2], x[2:-2, 2:-1] - x[2:-2, 1:-2]
    fx, fy = xp.where(fx * dx > 0.0, 0.0, fx), xp.where(fy * dy > 0.0, 0.0, fy)
    return x[2:-2, 2:-2] - strength * (fx[1:] - fx[:-1] + fy[:, 1:] - fy[:, :-1])


def horizontal_diffusion_numpy(x: Any, strength: Any) -> Any:
    return horizontal_diffusion(np, x, strength)


def shifted_stencil(xp: Namespace, x: Any) -> Any:
    """A filter of 25 taps on a torus, by products of shifts along both axes."""
    rows = sum(c * xp.roll(x, k, axis=0) for k, c in zip(range(-2, 3), TAPS))
    return sum(c * xp.roll(rows, k, axis=1) for k, c in zip(range(-2, 3), TAPS))


TAPS = (0.1, 0.2, 0.4, 0.2, 0.1)


def shifted_stencil_numpy(x: Any) -> Any:
    return shifted_stencil(np, x)


def correlation(xp: Namespace, x: Any) -> Any:
    """The matrix of correlations of columns."""
    apart = x - xp.mean(x, axis=0)
    unit = apart / xp.sqrt(xp.sum(apart * apart, axis=0))
    return unit.T @ unit


def correlation_numpy(x: Any) -> Any:
    return correlation(np, x)


def great_circles(xp: Namespace, a: Any, b: Any) -> Any:
    """Distances between pairs of places on a sphere, given by latitude and longitude."""
    dx, dy = xp.sin(0.5 * (b[0] - a[0])), xp.sin(0.5 * (b[1] - a[1]))
    h = dx * dx + xp.cos(a[0]) * xp.cos(b[0]) * dy * dy
    return 2.0 * xp.atan2(xp.sqrt(h), xp.sqrt(1.0 - h))


def great_circles_numpy(a: Any, b: Any) -> Any:
    return great_circles(np, a, b)


def radial_means(xp: Namespace, radius: Any, values: Any, edges: Any) -> Any:
    """The mean of values within rings, by a mask for every ring."""
    inside = (radius[None, :] >= edges[:-1, None]) & (radius[None, :] < edges[1:, None])
    return xp.sum(xp.where(inside, values, 0.0), axis=1) / xp.maximum(
        xp.sum(xp.astype(inside, xp.float64), axis=1), 1.0
    )


def radial_means_numpy(radius: Any, values: Any, edges: Any) -> Any:
    rings = [values[(radius >= low) & (radius < high)] for low, high in pairwise(edges)]
    return np.array([ring.sum() / max(1, len(ring)) for ring in rings])


def heads(n: int, rng: np.random.Generator) -> Arguments:
    return (rng.normal(size=(2, 4, n, n)),)


def rows(n: int, rng: np.random.Generator) -> Arguments:
    return rng.normal(size=(2 * n, n)), rng.normal(size=n), rng.normal(size=n)


def two_matrices(n: int, rng: np.random.Generator) -> Arguments:
    return rng.normal(size=(n, n)), rng.normal(size=(n, n)), rng.normal(size=n)


def updated(n: int, rng: np.random.Generator) -> Arguments:
    return rng.normal(size=(n, n)), rng.normal(size=(2, n)), rng.normal(size=(2, n)), rng.normal(size=n)


def tall(n: int, rng: np.random.Generator) -> Arguments:
    return rng.normal(size=(n + n // 5, n)), rng.normal(size=n), rng.normal(size=n)


def levels(n: int, rng: np.random.Generator) -> Arguments:
    return rng.normal(size=(n, n, 16)), rng.uniform(0.0, 0.2, (n - 4, n - 4, 16))


def square(n: int, rng: np.random.Generator) -> Arguments:
    return (rng.normal(size=(n, n)),)


def places(n: int, rng: np.random.Generator) -> Arguments:
    return rng.uniform(-1.5, 1.5, (2, n)), rng.uniform(-1.5, 1.5, (2, n))


def rings(n: int, rng: np.random.Generator) -> Arguments:
    return rng.uniform(0.0, 1.0, n), rng.normal(size=n), np.linspace(0.0, 1.0, 21)


PROGRAMS = programs(
    "straight",
    (softmax, softmax_numpy, heads, (4, 64, 256), (0,)),
    (normalised_rows, normalised_rows_numpy, rows, (4, 120, 600), (0, 1)),
    (scaled_products, scaled_products_numpy, two_matrices, (4, 300, 1000), (0, 2)),
    (rank_two, rank_two_numpy, updated, (4, 240, 1000), (0, 1)),
    (normal_product, normal_product_numpy, tall, (4, 300, 1200), (0, 1)),
    (horizontal_diffusion, horizontal_diffusion_numpy, levels, (7, 32, 128), (0,)),
    (shifted_stencil, shifted_stencil_numpy, square, (6, 64, 600), (0,)),
    (correlation, correlation_numpy, square, (6, 120, 400), (0,)),
    (great_circles, great_circles_numpy, places, (5, 2000, 200_000), (0,)),
    (radial_means, radial_means_numpy, rings, (50, 2000, 100_000), (1,)),
)
