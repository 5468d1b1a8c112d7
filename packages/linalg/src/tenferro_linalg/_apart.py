"""Perturbations that separate equal values: where a derivative is undetermined at a matrix, it is computed nearby.

Derivatives of a smooth function of a matrix are smooth. Where vectors of equal values leave a rule undetermined, the
derivative is therefore the limit of the derivatives at ``H + t K``, for any K that lifts the degeneracy. The
perturbations here commute with the matrix and separate the members of each multiplet by irregular amounts (equal ones
would make levels collide again further down), small compared with their size. There are two, in different bases: the
derivatives of a loss with a kink have a limit along each, but the limits differ. General matrices, which may lack a
basis of eigenvectors, are perturbed in generic directions.
"""

from typing import Any

import numpy as np

from tenferro_linalg import _multiplets as multiplets
from tenferro_linalg._bases import hermitian, unitary
from tenferro_runtime.extension import Inactive, Registry, Spec, primitive

NEARLY_DEPENDENT = 1e-4
"""Unit eigenvectors are nearly dependent if a combination with coefficients of norm 1 is shorter than this."""

SMALLEST_SCALE = 0.03
"""Values below this multiple of the largest one are moved as if they had this size."""


@primitive(family="tenferro-linalg.eigh_apart.v1", extension="linalg")
def eigh_apart_(x: Spec, *, side: int) -> Spec:
    """A Hermitian K of the shape of x: eigenvalues that are close in ``x`` are separated in ``x + K``."""
    return x


@primitive(family="tenferro-linalg.svd_apart.v1", extension="linalg")
def svd_apart_(x: Spec, *, side: int) -> Spec:
    """K of the shape of x: singular values that are close, or close to zero, in ``x`` are separated in ``x + K``."""
    return x


@primitive(family="tenferro-linalg.eig_apart.v1", extension="linalg")
def eig_apart_(x: Spec, *, side: int) -> Spec:
    """K of the shape of x: close eigenvalues, or nearly dependent vectors, are separated in ``x + K``."""
    return x


def step(dtype: Any) -> float:
    """Distance of neighbours relative to their size; balances rounding over the gap against the error of the limit."""
    return float(1.3 * np.finfo(dtype).eps ** 0.2)


def moves(number: int, side: int, dtype: Any) -> Any:
    """Irregular distances from their centre, about one step apart; closer for many members, so that all stay near."""
    rng = np.random.default_rng([11, number, side])
    places = np.arange(number) - (number - 1) / 2 + rng.uniform(-0.3, 0.3, number)
    return step(dtype) * min(1.0, 3 / max(number - 1, 1)) * rng.permutation(places)


def close_runs(values: Any) -> list[tuple[int, int]]:
    """Ranges of values (sorted, on the host) too close for quotients of higher derivatives."""
    limit = 2 * float(np.cbrt(np.finfo(values.dtype).eps)) * np.abs(values).max(initial=0)
    return multiplets.runs(np.cumsum(np.concatenate([[0], np.abs(np.diff(values)) > limit])), len(values))


def _scale(value: Any, largest: Any) -> float:
    return float(max(abs(value), SMALLEST_SCALE * largest)) or 1.0


def _eigh_kernel(la: Any, ins: Any, outs: Any, *, side: int) -> Any:
    def run(x: Any) -> Any:
        w, v = la.eigh(hermitian(x))
        k = la.xp.zeros(x.shape, x.dtype)
        for index in np.ndindex(w.shape[:-1]):
            values = la.local(w[index])
            for a, b in close_runs(values):
                d = moves(b - a, side, values.dtype) * _scale(values[a:b].mean(), np.abs(values).max())
                basis = v[index][:, a:b] @ unitary(la, b - a, v.dtype, 3 + side)
                k[index] += (basis * la.xp.asarray(d)) @ basis.conj().T
        return k

    return run


def _svd_kernel(la: Any, ins: Any, outs: Any, *, side: int) -> Any:
    def run(x: Any) -> Any:
        u, s, vh = la.svd(x, True)
        k = la.xp.zeros(x.shape, x.dtype)
        for index in np.ndindex(s.shape[:-1]):
            values = la.local(s[index])
            largest = values.max(initial=0)
            count = len(values)
            rank = int((values > 2 * float(np.cbrt(np.finfo(values.dtype).eps)) * largest).sum())
            left, right = u[index], vh[index].conj().T
            for a, b in close_runs(values[:rank]):
                turn = unitary(la, b - a, u.dtype, 3 + side)
                d = moves(b - a, side, values.dtype) * _scale(values[a:b].mean(), largest)
                k[index] += (left[:, a:b] @ turn * la.xp.asarray(d)) @ (right[:, a:b] @ turn).conj().T
            if rank < count:
                p, q = (left[:, rank:], right[:, rank:])
                p = p @ unitary(la, p.shape[-1], u.dtype, 5 + side)
                q = q @ unitary(la, q.shape[-1], u.dtype, 7 + side)
                d = moves(count - rank, side, values.dtype)
                d = (d - d.min() + step(values.dtype) / 2) * _scale(0.0, largest)
                k[index] += (p[:, : count - rank] * la.xp.asarray(d)) @ q[:, : count - rank].conj().T
        return k

    return run


def _eig_kernel(la: Any, ins: Any, outs: Any, *, side: int) -> Any:
    """A generic K: it separates equal eigenvalues in every direction, those of a Jordan block by roots of the step."""

    def run(x: Any) -> Any:
        w, v = la.eig(x)
        k = la.xp.zeros(x.shape, x.dtype)
        for index in np.ndindex(w.shape[:-1]):
            values, n = la.local(w[index]), x.shape[-1]
            if n > 1 and (_any_close(values) or float(la.svdvals(v[index])[-1]) < NEARLY_DEPENDENT):
                rng = np.random.default_rng([13, n, side])
                g = rng.standard_normal((n, n)) + (1j * rng.standard_normal((n, n)) if x.dtype.kind == "c" else 0)
                scale = float(la.xp.abs(x[index]).max()) or 1.0
                k[index] = la.xp.asarray((scale * step(values.real.dtype) * n**-0.5 * g).astype(x.dtype))
        return k

    return run


def _any_close(values: Any) -> bool:
    """Whether any two complex values are too close for quotients of higher derivatives."""
    gaps = np.abs(values[:, None] - values) + np.where(np.eye(len(values), dtype=bool), np.inf, 0)
    return bool(gaps.min() <= 2 * float(np.cbrt(np.finfo(values.dtype).eps)) * np.abs(values).max())


def register(registry: Registry) -> None:
    """Kernels and rules of the primitives of this module."""
    from tenferro_linalg._providers import kernels

    kernels(registry, eigh_apart_, _eigh_kernel)
    kernels(registry, svd_apart_, _svd_kernel)
    kernels(registry, eig_apart_, _eig_kernel)
    registry.rule(eigh_apart_, Inactive())
    registry.rule(svd_apart_, Inactive())
    registry.rule(eig_apart_, Inactive())
