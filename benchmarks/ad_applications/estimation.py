"""Fitting models to data: a Gaussian mixture, clusters, least squares, a soft maximum."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ad_applications.record import Application, Library


def gaussian_mixture(xp: Library) -> Callable[..., Any]:
    """Gradient of the log-likelihood of a mixture with a Wishart prior, by weights, means and inverse factors."""

    def factor(logs: Any, below: Any) -> Any:
        """The lower triangular factor of an inverse covariance, its diagonal given by logarithms."""
        d = logs.shape[0]
        rows, columns = np.tril_indices(d, -1)
        return xp.zeros((d, d)).at[rows, columns].set(below) + xp.exp(logs)[:, None] * np.eye(d)

    def likelihood(alphas: Any, means: Any, logs: Any, below: Any, x: Any) -> Any:
        factors = xp.vmap(factor)(logs, below)
        seen = xp.vmap(lambda m, q: xp.sum(((x - m) @ xp.moveaxis(q, 0, 1)) ** 2, axis=1), out_axes=1)(means, factors)
        terms = alphas + xp.sum(logs, axis=1) - 0.5 * seen
        prior = 0.5 * (xp.sum(xp.exp(2 * logs)) + xp.sum(below**2)) - xp.sum(logs)
        n, d = x.shape
        constant = -0.5 * n * d * math.log(2 * math.pi)
        return constant + xp.sum(xp.logsumexp(terms, axis=1)) - n * xp.logsumexp(alphas) - prior

    return xp.grad(likelihood, argnums=(0, 1, 2, 3))


def _mixture_data(n: int, random: np.random.Generator) -> tuple[Any, ...]:
    d, k = 4, 5
    below = random.normal(size=(k, d * (d - 1) // 2))
    return (
        random.normal(size=k),
        random.normal(size=(k, d)),
        random.normal(size=(k, d)),
        below,
        random.normal(size=(n, d)),
    )


def clusters(xp: Library) -> Callable[..., Any]:
    """Gradient and diagonal of the Hessian of the k-means objective, for a step of Newton's method."""

    def cost(centres: Any, points: Any) -> Any:
        distances = xp.sum((points[:, None, :] - centres[None, :, :]) ** 2, axis=2)
        return xp.sum(xp.min(distances, axis=1))

    def task(centres: Any, points: Any) -> Any:
        f = lambda c: cost(c, points)
        return xp.grad(f)(centres), xp.hvp(f, (centres,), (xp.ones_like(centres),))

    return task


def least_squares(xp: Library) -> Callable[..., Any]:
    """Gradient of the error of a polynomial at given places."""

    def cost(x: Any) -> Any:
        places = xp.linspace(-1.0, 1.0, 201)
        powers = xp.vmap(lambda t: xp.sum(x * t ** xp.arange(x.shape[0])))(places)
        return 0.5 * xp.sum((xp.sign(places) - powers) ** 2)

    return xp.grad(cost)


def soft_maximum(xp: Library) -> Callable[..., Any]:
    """Gradient of the logarithm of a sum of exponentials."""
    return xp.grad(lambda x: xp.logsumexp(x))


APPLICATIONS = [
    Application("Gaussian mixture", gaussian_mixture, _mixture_data, (7, 1000)),
    Application(
        "clusters", clusters, lambda n, random: (random.normal(size=(5, 3)), random.normal(size=(n, 3))), (20, 2000)
    ),
    Application("least squares", least_squares, lambda n, random: (random.normal(size=n),), (4, 64)),
    Application("soft maximum", soft_maximum, lambda n, random: (random.normal(size=n),), (5, 10000)),
]
