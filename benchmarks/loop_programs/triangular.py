"""Factorisations and triangular systems written out by rows and columns."""

from typing import Any

import numpy as np

from loop_programs.record import Arguments, Namespace, programs


def cholesky_rows(xp: Namespace, a: Any) -> Any:
    """The lower factor, row after row, each element from one inner product of the rows before it."""
    columns = xp.arange(a.shape[0])

    def element(i: Any, j: Any, a: Any) -> Any:
        known = xp.where(columns < j, a[j], 0.0)
        return a.at[i, j].set((a[i, j] - xp.sum(a[i] * known)) / a[j, j])

    def row(i: Any, a: Any) -> Any:
        a = xp.fori_loop(0, i, lambda j, a: element(i, j, a), a)
        left = xp.where(columns < i, a[i], 0.0)
        return a.at[i, i].set(xp.sqrt(a[i, i] - xp.sum(left * left)))

    return xp.tril(xp.fori_loop(0, a.shape[0], row, a))


def cholesky_rows_numpy(a: Any) -> Any:
    a = a.copy()
    for i in range(len(a)):
        for j in range(i):
            a[i, j] = (a[i, j] - a[i, :j] @ a[j, :j]) / a[j, j]
        a[i, i] = np.sqrt(a[i, i] - a[i, :i] @ a[i, :i])
    return np.tril(a)


def cholesky_columns(xp: Namespace, a: Any) -> Any:
    """The lower factor by outer products: a column is scaled and its square taken from all that remains."""
    rows = xp.arange(a.shape[0])

    def column(a: Any, k: Any) -> Any:
        l = xp.where(rows >= k, a[:, k] / xp.sqrt(a[k, k]), 0.0)
        return a - l[:, None] * l[None, :], l

    return xp.matrix_transpose(xp.scan(column, a, rows)[1])


def cholesky_columns_numpy(a: Any) -> Any:
    a, l = a.copy(), np.zeros_like(a)
    for k in range(len(a)):
        l[k:, k] = a[k:, k] / np.sqrt(a[k, k])
        a[k:, k:] -= np.outer(l[k:, k], l[k:, k])
    return l


def lu_rows(xp: Namespace, a: Any) -> Any:
    """Both factors in one matrix, without pivoting, row after row."""
    columns = xp.arange(a.shape[0])

    def eliminate(i: Any, k: Any, a: Any) -> Any:
        factor = a[i, k] / a[k, k]
        row = a[i] - xp.where(columns > k, factor * a[k], 0.0)
        return a.at[i, :].set(xp.where(columns == k, factor, row))

    def row(i: Any, a: Any) -> Any:
        return xp.fori_loop(0, i, lambda k, a: eliminate(i, k, a), a)

    return xp.fori_loop(1, a.shape[0], row, a)


def lu_rows_numpy(a: Any) -> Any:
    a = a.copy()
    for i in range(1, len(a)):
        for k in range(i):
            a[i, k] /= a[k, k]
            a[i, k + 1 :] -= a[i, k] * a[k, k + 1 :]
    return a


def lu_solve(xp: Namespace, a: Any, b: Any) -> Any:
    """A linear system by elimination with partial pivoting, and substitution backward."""
    n = a.shape[0]
    rows = xp.arange(n)

    def column(k: Any, both: Any) -> Any:
        a, b = both
        pivot = xp.argmax(xp.where(rows >= k, xp.abs(a[:, k]), -1.0))
        top, first, x, y = a[pivot], a[k], b[pivot], b[k]
        a = a.at[pivot, :].set(first).at[k, :].set(top)
        b = b.at[pivot].set(y).at[k].set(x)
        factors = xp.where(rows > k, a[:, k] / top[k], 0.0)
        return a - factors[:, None] * top[None, :], b - factors * x

    def back(k: Any, state: Any) -> Any:
        a, b, x = state
        i = n - 1 - k
        return a, b, x.at[i].set((b[i] - xp.sum(a[i] * x)) / a[i, i])

    a, b = xp.fori_loop(0, n, column, (a, b))
    return xp.fori_loop(0, n, back, (a, b, xp.zeros_like(b)))[2]


def lu_solve_numpy(a: Any, b: Any) -> Any:
    n, a, b = len(b), a.copy(), b.copy()
    for k in range(n):
        pivot = k + np.argmax(np.abs(a[k:, k]))
        a[[k, pivot]], b[[k, pivot]] = a[[pivot, k]], b[[pivot, k]]
        factors = a[k + 1 :, k] / a[k, k]
        a[k + 1 :] -= np.outer(factors, a[k])
        b[k + 1 :] -= factors * b[k]
    x = np.zeros(n)
    for i in range(n - 1, -1, -1):
        x[i] = (b[i] - a[i, i + 1 :] @ x[i + 1 :]) / a[i, i]
    return x


def durbin(xp: Namespace, r: Any) -> Any:
    """The Yule-Walker equations of a Toeplitz matrix by Durbin's recursion."""
    n = r.shape[0]
    places = xp.arange(n)

    def step(k: Any, state: Any) -> Any:
        y, alpha, beta = state
        beta = (1.0 - alpha * alpha) * beta
        turned = xp.where(places < k, xp.take(y, xp.maximum(k - 1 - places, 0)), 0.0)
        alpha = -(r[k] + xp.sum(xp.where(places < k, xp.take(r, xp.maximum(k - 1 - places, 0)) * y, 0.0))) / beta
        return (y + alpha * turned).at[k].set(alpha), alpha, beta

    start = (xp.zeros_like(r).at[0].set(-r[0]), -r[0], xp.ones_like(r[0]))
    return xp.fori_loop(1, n, step, start)[0]


def durbin_numpy(r: Any) -> Any:
    y, alpha, beta = np.zeros_like(r), -r[0], 1.0
    y[0] = alpha
    for k in range(1, len(r)):
        beta *= 1.0 - alpha * alpha
        alpha = -(r[k] + r[:k][::-1] @ y[:k]) / beta
        y[:k] += alpha * y[:k][::-1]
        y[k] = alpha
    return y


def gram_schmidt(xp: Namespace, a: Any) -> Any:
    """Orthonormal columns and the triangular factor by the modified Gram-Schmidt process."""
    columns = xp.arange(a.shape[1])

    def column(k: Any, both: Any) -> Any:
        q, r = both
        norm = xp.sqrt(xp.sum(q[:, k] * q[:, k]))
        unit = q[:, k] / norm
        products = xp.where(columns > k, unit @ q, 0.0)
        q = (q - unit[:, None] * products[None, :]).at[:, k].set(unit)
        return q, r.at[k, :].set(xp.where(columns == k, norm, products))

    return xp.fori_loop(0, a.shape[1], column, (a, xp.zeros((a.shape[1], a.shape[1]))))


def gram_schmidt_numpy(a: Any) -> Any:
    q, n = a.copy(), a.shape[1]
    r = np.zeros((n, n))
    for k in range(n):
        r[k, k] = np.sqrt(np.sum(q[:, k] ** 2))
        q[:, k] /= r[k, k]
        r[k, k + 1 :] = q[:, k] @ q[:, k + 1 :]
        q[:, k + 1 :] -= np.outer(q[:, k], r[k, k + 1 :])
    return q, r


def forward_substitution(xp: Namespace, l: Any, b: Any) -> Any:
    """A lower triangular system, row after row."""

    def row(i: Any, x: Any) -> Any:
        return x.at[i].set((b[i] - xp.sum(l[i] * x)) / l[i, i])

    return xp.fori_loop(0, b.shape[0], row, xp.zeros_like(b))


def forward_substitution_numpy(l: Any, b: Any) -> Any:
    x = np.zeros_like(b)
    for i in range(len(b)):
        x[i] = (b[i] - l[i, :i] @ x[:i]) / l[i, i]
    return x


def thomas(xp: Namespace, lower: Any, diagonal: Any, upper: Any, b: Any) -> Any:
    """Many tridiagonal systems at once, one in each column: elimination down, substitution up."""

    def down(carry: Any, row: Any) -> Any:
        c, d = carry
        l, m, u, r = row
        w = 1.0 / (m - l * c)
        return (u * w, (r - l * d) * w), (u * w, (r - l * d) * w)

    def up(x: Any, row: Any) -> Any:
        x = row[1] - row[0] * x
        return x, x

    zero = xp.zeros_like(b[0])
    _, rows = xp.scan(down, (zero, zero), (lower, diagonal, upper, b))
    return xp.scan(up, zero, rows, reverse=True)[1]


def thomas_numpy(lower: Any, diagonal: Any, upper: Any, b: Any) -> Any:
    c, d = np.empty_like(b), np.empty_like(b)
    last_c, last_d = np.zeros_like(b[0]), np.zeros_like(b[0])
    for i in range(len(b)):
        w = 1.0 / (diagonal[i] - lower[i] * last_c)
        last_c, last_d = c[i], d[i] = upper[i] * w, (b[i] - lower[i] * last_d) * w
    x = np.zeros_like(b[0])
    for i in range(len(b) - 1, -1, -1):
        d[i] = x = d[i] - c[i] * x
    return d


def positive(n: int, rng: np.random.Generator) -> Arguments:
    a = rng.normal(size=(n, n))
    return (a @ a.T / n + 2.0 * np.eye(n),)


def dominant(n: int, rng: np.random.Generator) -> Arguments:
    return (rng.normal(size=(n, n)) + n * np.eye(n),)


def system(n: int, rng: np.random.Generator) -> Arguments:
    return rng.normal(size=(n, n)), rng.normal(size=n)


def lower_system(n: int, rng: np.random.Generator) -> Arguments:
    return np.tril(rng.normal(size=(n, n))) / np.sqrt(n) + 2.0 * np.eye(n), rng.normal(size=n)


def correlations(n: int, rng: np.random.Generator) -> Arguments:
    return (0.6 ** np.arange(1, n + 1) * (1.0 + 0.01 * rng.normal(size=n)),)


def tall(n: int, rng: np.random.Generator) -> Arguments:
    return (rng.normal(size=(n + n // 4, n)),)


def tridiagonal(n: int, rng: np.random.Generator) -> Arguments:
    shape = (n, n)
    return rng.uniform(-1, 0, shape), rng.uniform(2.5, 3, shape), rng.uniform(-1, 0, shape), rng.normal(size=shape)


PROGRAMS = programs(
    "triangular",
    (cholesky_rows, cholesky_rows_numpy, positive, (5, 20, 100), (0,)),
    (cholesky_columns, cholesky_columns_numpy, positive, (5, 30, 150), (0,)),
    (lu_rows, lu_rows_numpy, dominant, (5, 20, 100), (0,)),
    (lu_solve, lu_solve_numpy, system, (5, 24, 120), (0, 1)),
    (durbin, durbin_numpy, correlations, (6, 60, 800), (0,)),
    (gram_schmidt, gram_schmidt_numpy, tall, (5, 24, 120), (0,)),
    (forward_substitution, forward_substitution_numpy, lower_system, (5, 50, 600), (0, 1)),
    (thomas, thomas_numpy, tridiagonal, (6, 32, 256), (0, 1, 2, 3)),
)
