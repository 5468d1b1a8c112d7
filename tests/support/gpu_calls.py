"""Calls of functions that take no arrays of a chosen dtype: random numbers, special functions, sparse and Krylov ones.

The calls of all others are in `vmap_calls`. Each is a function of arrays, to be computed on two devices.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

import tenferro_runtime as tr
from special_cases import CASES
from tenferro_linalg import krylov, sparse

_THIRD = np.array([0.2, 0.45, 0.7])
_ABOVE = np.array([1.2, 1.7, 2.6])


class GpuCall(NamedTuple):
    """A function of arrays, with its operands."""

    f: Callable[..., Any]
    operands: tuple[np.ndarray, ...]


def _random() -> dict[str, GpuCall]:
    key = np.array(7, np.uint64)
    shape = (3, 4)
    found: dict[str, Callable[..., Any]] = {
        name: lambda k, name=name: getattr(tr.random, name)(k, shape)
        for name in ("bits cauchy exponential gumbel laplace logistic maxwell normal rademacher split uniform".split())
    }
    given: dict[str, tuple[Any, ...]] = {
        "bernoulli": (0.3,), "beta": (1.5, 2.5), "binomial": (20, 0.3), "chisquare": (3.0,), "f": (3.0, 8.0),
        "gamma": (1.5,), "geometric": (0.3,), "loggamma": (1.5,), "lognormal": (0.5,),
        "logseries": (0.4,), "pareto": (2.5,),
        "poisson": (4.0,), "rayleigh": (1.5,), "t": (4.0,), "triangular": (-1.0, 0.5, 2.0),
        "truncated_normal": (-1.0, 2.0), "wald": (1.5,), "weibull": (1.0, 2.0),
    }  # fmt: skip
    for name, parameters in given.items():
        found[name] = lambda k, name=name, p=parameters: getattr(tr.random, name)(k, *p, shape=shape)
    found |= {
        "ball": lambda k: tr.random.ball(k, 3, (4,)),
        "categorical": lambda k: tr.random.categorical(k, tr.asarray([0.1, 0.7, 0.2], device=k.device), shape=(5,)),
        "choice": lambda k: tr.random.choice(k, 9, (4,), replace=False),
        "dirichlet": lambda k: tr.random.dirichlet(k, tr.asarray([0.5, 1.5, 2.0], device=k.device), shape=(2,)),
        "fold_in": lambda k: tr.random.fold_in(k, 3),
        "key_data": tr.random.key_data,
        "multivariate_normal": lambda k: tr.random.multivariate_normal(
            k, tr.zeros(2, device=k.device), tr.eye(2, device=k.device)
        ),
        "orthogonal": lambda k: tr.random.orthogonal(k, 3),
        "permutation": lambda k: tr.random.permutation(k, 6),
        "randint": lambda k: tr.random.randint(k, shape, 0, 9),
        "unit_sphere": lambda k: tr.random.unit_sphere(k, 3, (4,)),
        "wrap_key_data": lambda k: tr.random.wrap_key_data(tr.random.key_data(k)),
    }
    return {f"random.{name}": GpuCall(f, (key,)) for name, f in found.items()}


_OPERANDS: dict[str, tuple[Any, ...]] = {
    "bdtrc": (2.0, 5.0, _THIRD), "bdtri": (2.0, 5.0, _THIRD), "nbdtrc": (2.0, 5.0, _THIRD),
    "nbdtri": (2.0, 5.0, _THIRD), "betainccinv": (1.5, 2.5, _THIRD), "gdtrc": (1.5, 2.5, _THIRD),
    "hyp1f1": (0.5, 1.5, _THIRD), "hyp2f1": (0.5, 1.5, 2.5, _THIRD), "hyperu": (0.5, 1.5, _ABOVE),
    "eval_gegenbauer": (3, 0.5, _THIRD), "eval_genlaguerre": (3, 0.5, _THIRD),
    "eval_jacobi": (3, 0.5, 1.5, _THIRD), "elliprd": (_THIRD, 1.5, 2.5), "elliprf": (_THIRD, 1.5, 2.5),
    "elliprg": (_THIRD, 1.5, 2.5), "elliprj": (_THIRD, 1.5, 2.5, 3.5), "lpmv": (1, 2, _THIRD),
    "sph_harm_y": (3, 1, _THIRD, 0.4), "sph_legendre_p": (3, 1, _THIRD), "comb": (_ABOVE + 5, 3.0),
}  # fmt: skip
"""Operands of special functions of more than two; numbers that are no arrays go as they are."""

_ONE = """
    airy airye bei beip ber berp cbrt ellipe ellipk ellipkm1 exp2 expm1 fresnel gammasgn i0 i0e i1 i1e j0 j1 k0 k0e k1
    k1e kei keip ker kerp lambertw log1p log_softmax logsumexp psi shichi sici sinc softmax softplus wofz wrightomega y0
    y1
""".split()
_TWO = """
    chdtri ellipeinc ellipkinc ellipj elliprc eval_chebyc eval_chebys eval_chebyt eval_chebyu eval_hermite
    eval_hermitenorm eval_laguerre eval_legendre eval_sh_chebyt eval_sh_chebyu eval_sh_legendre h1vp h2vp hankel1
    hankel2 huber hyp0f1 iv ive ivp jn jv jvp kn kv kve kvp logaddexp modstruve owens_t pdtrc spherical_in
    spherical_jn spherical_kn spherical_yn struve yn yv yvp polygamma
""".split()


def _special() -> dict[str, GpuCall]:
    found = {}
    for name, case in CASES.items():
        columns = tuple([np.array(column) for column in zip(*case.points)])
        found[name] = GpuCall(getattr(tr.special, name), columns)
    for name in _ONE:
        found[name] = GpuCall(getattr(tr.special, name), (_THIRD,))
    for name in _TWO:
        found[name] = GpuCall(partial(getattr(tr.special, name), 2), (_THIRD,))
    for name, operands in _OPERANDS.items():
        arrays = [k for k, x in enumerate(operands) if isinstance(x, np.ndarray)]
        found[name] = GpuCall(_filled(getattr(tr.special, name), operands, arrays), tuple(operands[k] for k in arrays))
    found["bessel_jn"] = GpuCall(lambda z: tr.special.bessel_jn(z, v=3), (_THIRD,))
    found["multigammaln"] = GpuCall(lambda a: tr.special.multigammaln(a, 2), (_ABOVE,))
    return {f"special.{name}": call for name, call in found.items()}


def _filled(f: Callable[..., Any], operands: Sequence[Any], arrays: Sequence[int]) -> Callable[..., Any]:
    def run(*xs: Any) -> Any:
        given = dict(zip(arrays, xs, strict=True))
        return f(*[given.get(k, x) for k, x in enumerate(operands)])

    return run


def _matrices() -> dict[str, GpuCall]:
    rng = np.random.default_rng(5)
    a = rng.standard_normal((6, 6))
    spd, b = a @ a.T + 6 * np.eye(6), rng.standard_normal(6)
    places = (np.array([0, 1, 2, 2, 3, 4, 5]), np.array([0, 1, 2, 3, 3, 4, 5]))

    def held(data: Any) -> Any:
        return sparse.coo_array((data, places), (6, 6))

    return {
        "sparse.product": GpuCall(lambda d, x: held(d) @ x, (np.arange(1.0, 8.0), b)),
        "sparse.dense": GpuCall(lambda d: held(d).todense(), (np.arange(1.0, 8.0),)),
        "sparse.solve": GpuCall(lambda d, x: sparse.spsolve(held(d), x), (np.arange(1.0, 8.0), b)),
        "krylov.cg": GpuCall(lambda a, b: krylov.cg(a, b)[0], (spd, b)),
        "krylov.lsqr": GpuCall(lambda a, b: krylov.lsqr(a, b)[0], (spd, b)),
        "krylov.expm_multiply": GpuCall(lambda a, b: krylov.expm_multiply(a / 20.0, b), (spd, b)),
    }


def calls() -> dict[str, GpuCall]:
    """All of them by name."""
    return {**_random(), **_special(), **_matrices()}
