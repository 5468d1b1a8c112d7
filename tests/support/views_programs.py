"""Programs that write to views, as one writes them with NumPy: ``program(xp, *arrays)`` for any namespace `xp`.

Every one starts from arrays of its own, so that it leaves its arguments alone.
"""

from __future__ import annotations

import cmath
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np


class Program(NamedTuple):
    """A program and its arguments, all of which may be differentiated."""

    run: Callable[..., Any]
    arguments: tuple[Any, ...]


def gauss_seidel(xp: Any, a: Any, b: Any) -> Any:
    """Sweeps that use each component as soon as it is known."""
    x = xp.zeros_like(b)
    for _ in range(3):
        for i in range(b.shape[0]):
            x[i] = (b[i] - a[i, :i] @ x[:i] - a[i, i + 1 :] @ x[i + 1 :]) / a[i, i]
    return x


def red_black(xp: Any, u: Any, f: Any) -> Any:
    """Gauss-Seidel on a grid by colours, each of which is two strided views."""
    u = u.copy()
    inner, up, down, left, right = u[1:-1, 1:-1], u[:-2, 1:-1], u[2:, 1:-1], u[1:-1, :-2], u[1:-1, 2:]
    for _ in range(2):
        for first, second in ((0, 0), (1, 1), (0, 1), (1, 0)):
            s = slice(first, None, 2), slice(second, None, 2)
            cells = inner[s]
            cells[...] = 0.25 * (up[s] + down[s] + left[s] + right[s] - f[1:-1, 1:-1][s])
    return u


def lu(xp: Any, a: Any) -> Any:
    """Elimination in place, with an exchange of rows and the multipliers below the diagonal."""
    a = a.copy()
    a[[0, 2]] = a[[2, 0]]
    for k in range(a.shape[0] - 1):
        column, rest = a[k + 1 :, k], a[k + 1 :, k + 1 :]
        column /= a[k, k]
        rest -= column[:, None] * a[k, k + 1 :]
    return a


def cholesky(xp: Any, a: Any) -> Any:
    """The lower factor in place of the matrix, column by column."""
    a = a.copy()
    for j in range(a.shape[0]):
        a[j:, j] -= a[j:, :j] @ a[j, :j]
        a[j:, j] /= xp.sqrt(a[j, j])
        a[j, j + 1 :] = 0.0
    return a


def householder(xp: Any, a: Any) -> Any:
    """The factor R of QR by reflections of trailing views."""
    r = a.copy()
    for k in range(a.shape[1]):
        part = r[k:, k:]
        v = part[:, 0].copy()
        v[0] += xp.sqrt(v @ v)
        v /= xp.sqrt(v @ v)
        part -= 2.0 * v[:, None] * (v @ part)
    return r


def thomas(xp: Any, lower: Any, diagonal: Any, upper: Any, b: Any) -> Any:
    """A tridiagonal system, forwards and backwards in place."""
    d, x = diagonal.copy(), b.copy()
    for i in range(1, b.shape[0]):
        factor = lower[i - 1] / d[i - 1]
        d[i] -= factor * upper[i - 1]
        x[i] -= factor * x[i - 1]
    x[-1] /= d[-1]
    for i in range(b.shape[0] - 2, -1, -1):
        x[i] = (x[i] - upper[i] * x[i + 1]) / d[i]
    return x


def fdtd(xp: Any, source: Any, speed: Any) -> Any:
    """Maxwell's equations on a line: both fields are named rows of one array."""
    fields = xp.zeros((2, 12))
    e, h = fields
    for t in range(source.shape[0]):
        h[:-1] += speed[:-1] * (e[1:] - e[:-1])
        e[1:] += speed[1:] * (h[1:] - h[:-1])
        e[3] += source[t]
    return fields


def wave_buffers(xp: Any, u: Any) -> Any:
    """Leapfrog with two buffers that exchange their names."""
    old, new = u.copy(), u.copy()
    for _ in range(4):
        new[1:-1] *= -1.0
        new[1:-1] += 2.0 * old[1:-1] + 0.3 * (old[2:] - 2.0 * old[1:-1] + old[:-2])
        old, new = new, old
    return xp.stack([old, new])


def doubled_rows(xp: Any, a: Any) -> Any:
    rows = a.copy()
    for k, r in enumerate(rows):
        r *= 2
        r[k:] += 1.0
    return rows


def training(xp: Any, w: Any, bias: Any, x: Any) -> Any:
    """Steps of gradient descent that update parameters by their names in a list."""
    params = [w.copy(), bias.copy()]
    for _ in range(3):
        error = x @ params[0] + params[1]
        gradients = [x.T @ error, xp.sum(error, axis=0)]
        for p, g in zip(params, gradients):
            p -= 0.05 * g
    return xp.concat([xp.reshape(p, (-1,)) for p in params])


def momentum(xp: Any, w: Any, g: Any) -> Any:
    """An optimizer whose state is slices of one vector."""
    state = xp.zeros((2 * w.shape[0],))
    velocity, square = state[: w.shape[0]], state[w.shape[0] :]
    w = w.copy()
    for _ in range(3):
        velocity *= 0.9
        velocity += g * w
        square *= 0.99
        square += 0.01 * g**2
        w -= 0.1 * velocity / (xp.sqrt(square) + 0.1)
    return xp.concat([w, state])


def blocks(xp: Any, data: Any, values: Any) -> Any:
    """Blocks of a symmetric tensor are slices of one vector, in shapes of their own."""
    data = data.copy()
    shapes = {(0, 0): (0, (2, 3)), (1, 1): (6, (3, 3)), (2, 1): (15, (1, 3))}
    block = {t: xp.reshape(data[start : start + d[0] * d[1]], d) for t, (start, d) in shapes.items()}
    for i in range(3):
        block[1, 1][i, i] = 1.0
    block[0, 0][()][1] = values
    block[2, 1][0] *= values
    block[1, 1].T[0, 1:] -= values[:2]
    return data


def masked_blocks(xp: Any, data: Any) -> Any:
    """A mask of all elements, whose slices are cleared by their own positions."""
    mask = xp.ones(data.shape, dtype=xp.bool)
    for sl, inds in ((slice(0, 6), [0, 2]), (slice(6, 12), [5])):
        mask[sl][xp.asarray(inds)] = False
    return xp.where(mask, data, 0.0)


def overlap_add(xp: Any, x: Any, kernel: Any) -> Any:
    """Convolution by segments, which are added where they overlap."""
    n, m, step = x.shape[0], kernel.shape[0], 4
    out = xp.zeros((n + m - 1,))
    for start in range(0, n, step):
        segment = x[start : start + step]
        target = out[start : start + segment.shape[0] + m - 1]
        for k in range(m):
            target[k : k + segment.shape[0]] += kernel[k] * segment
    return out


def butterflies(xp: Any, z: Any) -> Any:
    """The fast Fourier transform in place: halves of reshaped views."""
    z = z.copy()
    n, half = z.shape[0], 1
    pairs = z.reshape((2,) * 3)
    pairs[...] = pairs.transpose(2, 1, 0).copy()
    while half < n:
        parts = z.reshape(-1, 2, half)
        even, odd = parts[:, 0], parts[:, 1]
        odd *= xp.asarray([cmath.exp(-1j * cmath.pi * k / half) for k in range(half)])
        even += odd
        odd *= -2.0
        odd += even
        half *= 2
    return z


def jacobi_rotation(xp: Any, a: Any, angle: Any) -> Any:
    """A rotation of two rows and two columns."""
    a = a.copy()
    c, s = xp.cos(angle), xp.sin(angle)
    for m in (a, a.T):
        p, q = m[0], m[2]
        kept = p.copy()
        p *= c
        p -= s * q
        q *= c
        q += s * kept
    return a


def running_sum(xp: Any, x: Any) -> Any:
    x = x.copy()
    for i in range(1, x.shape[0]):
        x[i] += x[i - 1]
    backwards = x[::-1]
    backwards[1:] -= 0.5 * backwards[:-1]
    return x


def reflected(xp: Any, u: Any) -> Any:
    """Ghost cells are filled from the inside through flipped and transposed names."""
    wide = xp.zeros((u.shape[0] + 2, u.shape[1] + 2))
    wide[1:-1, 1:-1] = u
    for side in (wide, xp.flip(wide, axis=0), wide.T, xp.flip(wide, axis=1).T):
        side[0] = side[2]
    return wide


def diagonals(xp: Any, a: Any) -> Any:
    """NumPy's own functions that write, also to views."""
    a = a.copy()
    np.fill_diagonal(a, 2.0)
    np.copyto(a[0], a[1])
    np.multiply(a[1:], 0.5, out=a[1:])
    np.add(a[:, 0], a[:, 1], out=a[:, 2])
    np.put(a, [1, -1], 7.0)
    np.add.at(a, np.asarray([0, 0]), np.ones((2, 1)))
    np.subtract(a, 1.0, out=a, where=np.eye(a.shape[0], a.shape[1], dtype=bool))
    np.put_along_axis(a, np.asarray([[1], [0], [2]]), 0.25, 1)
    return a


def minima(xp: Any, x: Any) -> Any:
    """Minima from behind, as SciPy's control of discovery rates takes them."""
    x = x.copy()
    np.minimum.accumulate(x[::-1], out=x[::-1])
    np.clip(x, -0.8, 0.9, out=x)
    return x


def parts_of_complex(xp: Any, z: Any) -> Any:
    z = z.copy()
    re, im = z.real, z.imag
    re *= 2.0
    im[1:] += re[:-1]
    re[::2], im[::2] = im[::2].copy(), re[::2].copy()
    return z


_rng = np.random.default_rng(3)


def _normal(*shape: int) -> Any:
    return _rng.normal(size=shape)


_A = _normal(4, 4)
_SPD = _A @ _A.T + 4.0 * np.eye(4)
_Z = _normal(8) + 1j * _normal(8)

PROGRAMS: dict[str, Program] = {
    "Gauss-Seidel": Program(gauss_seidel, (_A + 5.0 * np.eye(4), _normal(4))),
    "Gauss-Seidel by colours": Program(red_black, (_normal(6, 7), _normal(6, 7))),
    "LU": Program(lu, (_A + np.flip(np.eye(4), axis=0)[[1, 0, 3, 2]] * 2.0 + 0.5,)),
    "Cholesky": Program(cholesky, (_SPD,)),
    "Householder": Program(householder, (_normal(4, 3),)),
    "tridiagonal": Program(thomas, (_normal(4), _normal(5) + 5.0, _normal(4), _normal(5))),
    "FDTD": Program(fdtd, (_normal(6), np.abs(_normal(12)) * 0.3)),
    "leapfrog": Program(wave_buffers, (_normal(7),)),
    "rows": Program(doubled_rows, (_normal(3, 4),)),
    "parameters": Program(training, (_normal(3, 2), _normal(2), _normal(5, 3) * 0.5)),
    "optimizer": Program(momentum, (_normal(4), _normal(4))),
    "blocks": Program(blocks, (_normal(18), _normal(3))),
    "masked blocks": Program(masked_blocks, (_normal(12),)),
    "overlap and add": Program(overlap_add, (_normal(11), _normal(3))),
    "butterflies": Program(butterflies, (_Z,)),
    "rotation": Program(jacobi_rotation, (_normal(3, 3), np.asarray(0.4))),
    "running sum": Program(running_sum, (_normal(6),)),
    "ghost cells": Program(reflected, (_normal(3, 4),)),
    "NumPy's functions": Program(diagonals, (_normal(3, 4),)),
    "minima": Program(minima, (_normal(7),)),
    "complex parts": Program(parts_of_complex, (_Z[:5],)),
}
