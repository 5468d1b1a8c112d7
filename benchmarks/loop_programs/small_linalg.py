"""Small linear algebra: factorisations of matrices of 4, 8 and 16, a chain of bond 6, a Gaussian process."""

from typing import Any

import numpy as np

from loop_programs.record import Arguments, Namespace, programs

BOND, SITES = 6, 8
EXTENTS = {"tiny": 3, "4": 4, "small": 8, "medium": 16}


def singular_values(xp: Namespace, a: Any) -> Any:
    """The singular values of a matrix."""
    return xp.linalg.svdvals(a)


def singular_values_numpy(a: Any) -> Any:
    return np.linalg.svd(a, compute_uv=False)


def eigenpairs(xp: Namespace, a: Any) -> Any:
    """The eigenvalues of a symmetric matrix, and the squares of the elements of its vectors."""
    w, v = xp.linalg.eigh(0.5 * (a + a.T))
    return w, v * v


def eigenpairs_numpy(a: Any) -> Any:
    w, v = np.linalg.eigh(0.5 * (a + a.T))
    return w, v * v


def solution(xp: Namespace, a: Any, b: Any) -> Any:
    """The solution of a linear system."""
    return xp.linalg.solve(a, b)


def solution_numpy(a: Any, b: Any) -> Any:
    return np.linalg.solve(a, b)


def density(xp: Namespace, a: Any, x: Any) -> Any:
    """Minus twice the logarithm of a normal density, by a Cholesky factor and by a determinant."""
    a = 0.5 * (a + a.T)
    l = xp.linalg.cholesky(a)
    z = xp.triangular_solve(l, x, lower=True)
    return xp.sum(z * z) + 2.0 * xp.sum(xp.log(xp.linalg.diagonal(l))) + xp.linalg.slogdet(a)[1]


def density_numpy(a: Any, x: Any) -> Any:
    a = 0.5 * (a + a.T)
    l = np.linalg.cholesky(a)
    z = np.linalg.solve(l, x)
    return np.sum(z * z) + 2.0 * np.sum(np.log(np.diagonal(l))) + np.linalg.slogdet(a)[1]


def orthogonal(xp: Namespace, a: Any) -> Any:
    """The elements of both factors of a QR decomposition, multiplied."""
    q, r = xp.linalg.qr(a)
    return q * r


def orthogonal_numpy(a: Any) -> Any:
    q, r = np.linalg.qr(a)
    return q * r


def compressed_chain(xp: Namespace, sites: Any) -> Any:
    """A sweep of SVDs over a matrix product state, every bond cut in half: what is left of its norm."""
    carried, kept = sites[0, : BOND // 2], []
    for i in range(SITES - 1):
        _, s, vh = xp.linalg.svd(xp.reshape(carried, (-1, BOND)), full_matrices=False)
        kept.append(s[: BOND // 2])
        rest = kept[-1][:, None] * vh[: BOND // 2]
        carried = xp.einsum("ab,bic->aic", rest, sites[i + 1])
    return xp.stack(kept), xp.sum(carried * carried)


def compressed_chain_numpy(sites: Any) -> Any:
    carried, kept = sites[0, : BOND // 2], []
    for i in range(SITES - 1):
        _, s, vh = np.linalg.svd(carried.reshape(-1, BOND), full_matrices=False)
        kept.append(s[: BOND // 2])
        carried = np.tensordot(kept[-1][:, None] * vh[: BOND // 2], sites[i + 1], 1)
    return np.stack(kept), np.sum(carried * carried)


def gaussian_process(xp: Namespace, x: Any, y: Any, theta: Any) -> Any:
    """Minus the log-likelihood of points under a squared exponential kernel with noise."""
    apart = (x[:, None] - x[None, :]) / theta[0]
    k = theta[1] * xp.exp(-0.5 * apart * apart) + theta[2] * xp.eye(x.shape[0])
    l = xp.linalg.cholesky(k)
    z = xp.triangular_solve(l, y[:, None], lower=True)
    return 0.5 * xp.sum(z * z) + xp.sum(xp.log(xp.linalg.diagonal(l)))


def gaussian_process_numpy(x: Any, y: Any, theta: Any) -> Any:
    apart = (x[:, None] - x[None, :]) / theta[0]
    l = np.linalg.cholesky(theta[1] * np.exp(-0.5 * apart * apart) + theta[2] * np.eye(len(x)))
    z = np.linalg.solve(l, y)
    return 0.5 * np.sum(z * z) + np.sum(np.log(np.diagonal(l)))


def square(n: int, rng: np.random.Generator) -> Arguments:
    return (rng.normal(size=(n, n)),)


def system(n: int, rng: np.random.Generator) -> Arguments:
    return rng.normal(size=(n, n)) + n * np.eye(n), rng.normal(size=(n, 2))


def covariance(n: int, rng: np.random.Generator) -> Arguments:
    a = rng.normal(size=(n, n))
    return a @ a.T / n + np.eye(n), rng.normal(size=(n, 1))


def chain(n: int, rng: np.random.Generator) -> Arguments:
    return (rng.normal(size=(SITES, BOND, n, BOND)) / np.sqrt(BOND),)


def points(n: int, rng: np.random.Generator) -> Arguments:
    x = np.sort(rng.uniform(0.0, 5.0, n))
    return x, np.sin(x) + 0.1 * rng.normal(size=n), np.array([0.8, 1.2, 0.05])


PROGRAMS = programs(
    "small linear algebra",
    (singular_values, singular_values_numpy, square, EXTENTS, (0,)),
    (eigenpairs, eigenpairs_numpy, square, EXTENTS, (0,)),
    (solution, solution_numpy, system, EXTENTS, (0, 1)),
    (density, density_numpy, covariance, EXTENTS, (0, 1)),
    (orthogonal, orthogonal_numpy, square, EXTENTS, (0,)),
    (compressed_chain, compressed_chain_numpy, chain, (2, 3, 8), (0,)),
    (gaussian_process, gaussian_process_numpy, points, (6, 60, 120), (2,)),
)
