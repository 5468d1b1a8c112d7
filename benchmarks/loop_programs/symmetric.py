"""Products with triangular and symmetric matrices, row by row, of which one triangle is read or written."""

from typing import Any

import numpy as np

from loop_programs.record import Arguments, Namespace, programs

ALPHA, BETA = 1.5, 0.75


def rank_k_update(xp: Namespace, c: Any, a: Any) -> Any:
    """The lower triangle of beta C + alpha A A^T, row by row."""
    columns = xp.arange(c.shape[0])

    def row(i: Any, c: Any) -> Any:
        new = BETA * c[i] + ALPHA * (a @ a[i])
        return c.at[i, :].set(xp.where(columns <= i, new, c[i]))

    return xp.fori_loop(0, c.shape[0], row, c)


def rank_k_update_numpy(c: Any, a: Any) -> Any:
    c = c.copy()
    for i in range(len(c)):
        c[i, : i + 1] = BETA * c[i, : i + 1] + ALPHA * (a[: i + 1] @ a[i])
    return c


def rank_2k_update(xp: Namespace, c: Any, a: Any, b: Any) -> Any:
    """The lower triangle of beta C + alpha (A B^T + B A^T), one column of A and B at a time."""
    rows = xp.arange(c.shape[0])
    lower = rows[:, None] >= rows[None, :]
    start = xp.where(lower, BETA * c, c)

    def column(k: Any, c: Any) -> Any:
        product = a[:, k][:, None] * b[:, k][None, :]
        return c + xp.where(lower, ALPHA * (product + product.T), 0.0)

    return xp.fori_loop(0, a.shape[1], column, start)


def rank_2k_update_numpy(c: Any, a: Any, b: Any) -> Any:
    c = c.copy()
    for i in range(len(c)):
        c[i, : i + 1] = BETA * c[i, : i + 1] + ALPHA * (b[: i + 1] @ a[i] + a[: i + 1] @ b[i])
    return c


def symmetric_product(xp: Namespace, a: Any, b: Any, c: Any) -> Any:
    """beta C + alpha A B, where only the lower triangle of the symmetric A is read."""
    columns = xp.arange(a.shape[0])

    def row(i: Any, c: Any) -> Any:
        below = xp.where(columns < i, a[i], 0.0)
        c = c + ALPHA * below[:, None] * b[i][None, :]
        return c.at[i, :].add(ALPHA * (below @ b + a[i, i] * b[i]))

    return xp.fori_loop(0, a.shape[0], row, BETA * c)


def symmetric_product_numpy(a: Any, b: Any, c: Any) -> Any:
    c = BETA * c
    for i in range(len(a)):
        c[:i] += ALPHA * np.outer(a[i, :i], b[i])
        c[i] += ALPHA * (a[i, :i] @ b[:i] + a[i, i] * b[i])
    return c


def triangular_product(xp: Namespace, l: Any, b: Any) -> Any:
    """B becomes alpha L^T B in place, where L is unit lower triangular: a row needs those below it, unchanged."""
    rows = xp.arange(l.shape[0])

    def row(i: Any, b: Any) -> Any:
        below = xp.where(rows > i, l[:, i], 0.0)
        return b.at[i, :].set(ALPHA * (b[i] + below @ b))

    return xp.fori_loop(0, l.shape[0], row, b)


def triangular_product_numpy(l: Any, b: Any) -> Any:
    b = b.copy()
    for i in range(len(b)):
        b[i] = ALPHA * (b[i] + l[i + 1 :, i] @ b[i + 1 :])
    return b


def packed_product(xp: Namespace, packed: Any, x: Any) -> Any:
    """A symmetric matrix times a vector, the lower triangle packed row after row, element by element."""
    n = x.shape[0]

    def element(i: Any, j: Any, y: Any) -> Any:
        a = packed[i * (i + 1) // 2 + j]
        return y.at[i].add(a * x[j]).at[j].add(xp.where(j < i, a * x[i], 0.0))

    def row(i: Any, y: Any) -> Any:
        return xp.fori_loop(0, i + 1, lambda j, y: element(i, j, y), y)

    return xp.fori_loop(0, n, row, xp.zeros_like(x))


def packed_product_numpy(packed: Any, x: Any) -> Any:
    y = np.zeros_like(x)
    for i in range(len(x)):
        a = packed[i * (i + 1) // 2 :][: i + 1]
        y[i] += a @ x[: i + 1]
        y[:i] += a[:-1] * x[i]
    return y


def update(n: int, rng: np.random.Generator) -> Arguments:
    return rng.normal(size=(n, n)), rng.normal(size=(n, n // 2 + 1))


def update_of_two(n: int, rng: np.random.Generator) -> Arguments:
    return rng.normal(size=(n, n)), rng.normal(size=(n, n // 2 + 1)), rng.normal(size=(n, n // 2 + 1))


def three(n: int, rng: np.random.Generator) -> Arguments:
    return rng.normal(size=(n, n)), rng.normal(size=(n, n + 3)), rng.normal(size=(n, n + 3))


def lower_and_right(n: int, rng: np.random.Generator) -> Arguments:
    return np.tril(rng.normal(size=(n, n))) / n, rng.normal(size=(n, n + 3))


def packed(n: int, rng: np.random.Generator) -> Arguments:
    return rng.normal(size=n * (n + 1) // 2), rng.normal(size=n)


PROGRAMS = programs(
    "symmetric",
    (rank_k_update, rank_k_update_numpy, update, (5, 40, 180), (0, 1)),
    (rank_2k_update, rank_2k_update_numpy, update_of_two, (5, 40, 160), (1, 2)),
    (symmetric_product, symmetric_product_numpy, three, (5, 40, 160), (0, 1)),
    (triangular_product, triangular_product_numpy, lower_and_right, (5, 40, 180), (0, 1)),
    (packed_product, packed_product_numpy, packed, (5, 30, 120), (0, 1)),
)
