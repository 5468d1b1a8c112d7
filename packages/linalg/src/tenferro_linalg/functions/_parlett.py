"""Terms of a function of triangular matrices from its values on circles around clusters of eigenvalues.

The block matrix of a term (see `tenferro_linalg.functions._chains`) is upper triangular in the Schur basis, with the
eigenvalues of A in each diagonal block. They are reordered by clusters; f of the block of one cluster is a power
series around its mean, whose coefficients are Fourier coefficients of f on a circle, and blocks between clusters solve
Sylvester equations, as f of a matrix commutes with it (Davies and Higham, SIAM J. Matrix Anal. Appl. 25, 2003).

Each cluster has circles of several radii. On a large one, digits are lost where f grows, or a singularity is met; on a
small one, by division by powers of the radius. The circle with the smallest sum of both errors is used.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tenferro_runtime.extension import NumericalError

RADII, POINTS = 8, 32
"""Number of circles around each cluster, and of points on each."""

CLUSTER_RTOL, CLUSTER_ATOL = 0.1, 1e-4
"""Eigenvalues share a cluster if closer than these multiples of their moduli, or of the largest modulus."""

EPS = float(np.finfo(np.float64).eps)

SERIES_MAX_ERROR = 1e-4
"""Relative error of the series above which a function counts as not analytic."""


def points_of(la: Any, x: Any) -> tuple[Any, ...]:
    """Schur factors, cluster indices, radii and points of stacks of matrices."""
    t, z = la.schur(la.finite("funm", x).astype(np.complex128), "funm")
    shape = x.shape[:-1]
    label = np.zeros(shape)
    radius = np.ones((*shape, RADII))
    points = np.zeros((*shape, 1 + RADII * POINTS), np.complex128)
    turn = np.exp(2j * np.pi * np.arange(POINTS) / POINTS)
    for index in np.ndindex(shape[:-1]) if x.size else ():
        values = np.diagonal(t[index])
        number = _clusters(values)
        label[index] = number
        largest = float(np.abs(values).max()) or 1.0
        for k in range(int(number.max()) + 1):
            members = number == k
            centre = values[members].mean()
            radii = _radii(values[members] - centre, abs(centre), largest)
            radius[index][members] = radii
            points[index][members] = [centre, *(centre + radii[:, None] * turn).ravel()]
    return t, z, label, radius, points


def _clusters(values: Any) -> Any:
    """Cluster index of each value; a value near any member belongs to the cluster."""
    moduli = np.abs(values)
    limit = np.maximum(CLUSTER_RTOL * np.minimum(moduli[:, None], moduli), CLUSTER_ATOL * moduli.max(initial=0))
    near = np.abs(values[:, None] - values) <= limit
    number = np.full(len(values), -1)
    count = 0
    for start in range(len(values)):
        if number[start] >= 0:
            continue
        stack = [start]
        number[start] = count
        while stack:
            for k in np.flatnonzero(near[stack.pop()] & (number < 0)):
                number[k] = count
                stack.append(int(k))
        count += 1
    return number


def _radii(offsets: Any, centre: float, largest: float) -> Any:
    """Radii of circles well outside a cluster."""
    spread = float(np.abs(offsets).max())
    wanted = [largest * s for s in (1.0, 0.25, 1 / 16, 1 / 64)] + [centre / 2, centre / 8, 1.0, 8 * spread]
    least = max(3 * spread, EPS**0.5 * largest)
    return np.array([max(r, least) for r in wanted])


def term_of(
    la: Any, t: Any, z: Any, label: Any, radius: Any, points: Any, values: Any, factors: Any, dtype: Any
) -> Any:
    """The term of given factors, of stacks of matrices."""
    n, order = t.shape[-1], len(factors)
    zh = z.conj().swapaxes(-1, -2)
    inner, scale = [zh @ e @ z for e in factors], 1.0
    for k, e in enumerate(inner):
        size = _sizes(e)
        inner[k], scale = e * (_sizes(t) / size), scale * (size / _sizes(t))
    out, seen = np.zeros_like(t), np.zeros(t.shape[:-2])
    for index in np.ndindex(t.shape[:-2]) if t.size else ():
        whole = np.zeros(((order + 1) * n,) * 2, np.complex128, order="F")
        for k in range(order + 1):
            whole[k * n : k * n + n, k * n : k * n + n] = t[index]
        for k, e in enumerate(inner):
            whole[k * n : k * n + n, k * n + n : k * n + 2 * n] = e[index]
        one = _ClusterSeries(la, label[index], radius[index], points[index], values[index], index)
        out[index] = one.of(whole, np.tile(label[index].astype(int), order + 1))[:n, order * n :]
        seen[index] = one.largest
    found = z @ (out * scale) @ zh
    good = np.isfinite(found)
    if not good.all():
        index = tuple(int(k) for k in np.argwhere(~good)[0][: t.ndim - 2])
        raise NumericalError(f"funm: the result for {_where(index)} overflows; rescale the matrix", index=index)
    if dtype.kind == "c":
        return found.astype(dtype, copy=False)
    if factors:  # the value has passed the test; derivatives may vanish up to rounding
        return found.real.astype(dtype)
    size = EPS**0.5 * np.abs(found).max(axis=(-2, -1), initial=0) + 64 * n * EPS * seen
    bad = np.abs(found.imag).max(axis=(-2, -1), initial=0) > size
    if bad.any():
        index = tuple(int(k) for k in np.argwhere(bad)[0]) if found.ndim > 2 else ()
        raise NumericalError(
            f"funm: the function of {_where(index)}, which is real, is complex; convert the matrix first, "
            "x.astype(complex128)",
            index=index,
        )
    return found.real.astype(dtype)


def _sizes(x: Any) -> Any:
    """Largest moduli of stacks of matrices; 1 for zero matrices."""
    size = np.abs(x).max(axis=(-2, -1), initial=0)[..., None, None]
    return np.where(size > 0, size, 1.0)


def _where(index: tuple[int, ...]) -> str:
    return f"matrix {index} of the stack" if index else "the matrix"


class _ClusterSeries:
    """One function, as a series around each cluster of the eigenvalues of one matrix."""

    def __init__(self, la: Any, label: Any, radius: Any, points: Any, values: Any, index: tuple[int, ...]) -> None:
        self.la, self.label, self.radius, self.points, self.values = la, label, radius, points, values
        self.index, self.largest = index, 0.0
        self.trsyl = la.lapack("trsyl", np.dtype(np.complex128))

    def of(self, whole: Any, label: Any) -> Any:
        """The function of a triangular matrix with given cluster indices of its eigenvalues."""
        whole, turn, label = self._by_clusters(whole, label)
        starts = [0, *(np.flatnonzero(np.diff(label)) + 1).tolist(), len(label)]
        found = np.zeros_like(whole)
        self._fill(whole, found, starts, label)
        return found if turn is None else turn @ found @ turn.conj().T

    def _by_clusters(self, whole: Any, label: Any) -> tuple[Any, Any, Any]:
        """The matrix reordered so that the eigenvalues of each cluster are adjacent, and the rotation."""
        turn = None
        trsen = self.la.lapack("trsen", whole.dtype)
        placed = np.zeros(len(label), bool)
        for k in dict.fromkeys(label.tolist()):
            mine = label == k
            placed = placed | mine
            count = int(placed.sum())
            if placed[:count].all():
                continue
            before = np.eye(len(label), dtype=whole.dtype, order="F") if turn is None else turn
            whole, turn, *_ = trsen(placed.astype(np.int32), whole, before, job="N")
            label = np.concatenate([label[placed], label[~placed]])
            placed = np.arange(len(label)) < count
        return np.triu(whole), turn, label

    def _fill(self, whole: Any, found: Any, starts: list[int], label: Any) -> None:
        """Compute the blocks between ``starts[0]`` and ``starts[-1]``."""
        a, c = starts[0], starts[-1]
        if len(starts) == 2:
            found[a:c, a:c] = self._series(whole[a:c, a:c], int(label[a]))
            return
        half = len(starts) // 2
        b = starts[half]
        self._fill(whole, found, starts[: half + 1], label)
        self._fill(whole, found, starts[half:], label)
        corner = whole[a:b, b:c]
        right = found[a:b, a:b] @ corner - corner @ found[b:c, b:c]
        y, scale, _ = self.trsyl(whole[a:b, a:b], whole[b:c, b:c], right, isgn=-1)
        found[a:b, b:c] = y / scale

    def _series(self, block: Any, cluster: int) -> Any:
        """The function of the block of one cluster, a power series around its mean."""
        member = int(np.flatnonzero(self.label == cluster)[0])
        values, centre = self.values[member], self.points[member, 0]
        size = len(block)
        if size == 1:
            self.largest = max(self.largest, float(np.abs(values[0])))
            return self._finite(values[:1].reshape(1, 1), centre)
        shifted = block - centre * np.eye(size)
        circles = values[1:].reshape(RADII, POINTS)
        with np.errstate(all="ignore"):
            coefficients = np.fft.fft(circles, axis=-1) / POINTS
            largest = np.abs(circles).max(axis=-1)
            tail = np.abs(coefficients[:, -POINTS // 4 :]).max(axis=-1)
            noise = tail + EPS * largest
            # Entries next to the diagonal are multiplied by derivatives, computed by division by powers of the radius.
            power = min(size - 1, 2)
            error = np.where(np.isfinite(largest), noise * self.radius[member] ** -power, np.inf)
        best = int(np.argmin(error))
        if not noise[best] <= SERIES_MAX_ERROR * largest[best] and largest[best]:
            raise self._not_analytic(centre)
        self.largest = max(self.largest, float(largest[best]))
        scaled, c = shifted / self.radius[member, best], coefficients[best]
        used = int(np.flatnonzero(np.abs(c) > 0.1 * EPS * np.abs(c).max(initial=0)).max(initial=0)) + 1
        used = min(max(used, size), 3 * POINTS // 4)
        out = np.zeros_like(block)
        for k in reversed(range(used)):
            out = out @ scaled
            out[np.diag_indices(size)] += c[k]
        return self._finite(out, centre)

    def _finite(self, out: Any, centre: complex) -> Any:
        if not np.isfinite(out).all():
            raise self._not_analytic(centre)
        return out

    def _not_analytic(self, centre: complex) -> NumericalError:
        return NumericalError(
            f"funm: the function is not analytic around the eigenvalue {centre:.6g} of {_where(self.index)}; it must "
            "be so in a disc that holds all eigenvalues that are close to each other",
            index=self.index,
        )
