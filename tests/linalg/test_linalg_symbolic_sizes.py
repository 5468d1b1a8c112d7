"""Decompositions and their derivatives with symbolic sizes: one program for tall, square and wide matrices."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import tenferro_runtime as tr
from tenferro_ad import jvp, value_and_grad, vjp
from tenferro_einsum import einsum
from tenferro_runtime.extension import check_program
from tenferro_tensor import Spec, tensor

F8 = np.dtype("float64")
C16 = np.dtype("complex128")
N, M = tr.dim("n"), tr.dim("m")


class Open(NamedTuple):
    """A real function of a matrix, that does not depend on phases of vectors."""

    name: str
    f: Callable[..., Any]
    square: bool = False
    tall: bool = False


def gram(v: Any, w: Any = None) -> Any:
    """Vectors in columns, with weights, free of their phases."""
    return v @ v.H if w is None else (v * w) @ v.H


def weights(v: Any) -> Any:
    return tr.arange(v.shape[-1], dtype=tr.float64) + 1.0


def svd_loss(x: Any, full: bool = False) -> Any:
    u, s, vh = tr.linalg.svd(x, full_matrices=full)
    if full:
        k = s.shape[-1]
        return tr.sum(s**3) + tr.sum(tr.sin(tr.real(gram(u[:, :k]) @ x)))
    return tr.sum(tr.sin(tr.real((u * (s**2)) @ vh))) + tr.sum(tr.cos(tr.real(gram(u, weights(u)))))


def truncated(x: Any) -> Any:
    u, s, vh = tr.linalg.svd_trunc(x, 1)
    return tr.sum(tr.sin(tr.real((u * s) @ vh)))


def qr_loss(x: Any, mode: str = "reduced") -> Any:
    q, r = tr.linalg.qr(x, mode=mode)
    k = tr.linalg.svdvals(x).shape[-1]
    return tr.sum(tr.sin(abs(r))) + tr.sum(tr.cos(tr.real(gram(q[:, :k]))))


def hermitian(x: Any) -> Any:
    return x @ x.H + tr.eye(x.shape[0]) * weights(x.mT)


def eigh_loss(x: Any) -> Any:
    w, v = tr.linalg.eigh(hermitian(x))
    return tr.sum(tr.sin(w)) + tr.sum(tr.cos(tr.real(gram(v, weights(v)))))


def lu_loss(x: Any) -> Any:
    return tr.sum(tr.sin(tr.real(tr.linalg.solve(hermitian(x), x))))


OPEN = [
    Open("svd", svd_loss),
    Open("svd full", lambda x: svd_loss(x, True)),
    Open("svdvals", lambda x: tr.sum(tr.sin(tr.linalg.svdvals(x)))),
    Open("svd_trunc", truncated),
    Open("qr", qr_loss),
    Open("qr complete", lambda x: qr_loss(x, "complete")),
    Open("eigh", eigh_loss),
    Open("eigvalsh", lambda x: tr.sum(tr.sin(tr.linalg.eigvalsh(hermitian(x))))),
    Open("cholesky", lambda x: tr.sum(tr.sin(tr.real(tr.linalg.cholesky(hermitian(x)))))),
    Open("solve", lu_loss),
    Open("inv", lambda x: tr.sum(tr.sin(tr.real(tr.linalg.inv(hermitian(x)))))),
    Open("det", lambda x: tr.real(tr.linalg.det(hermitian(x) * 0.1))),
    Open("slogdet", lambda x: tr.linalg.slogdet(hermitian(x)).logabsdet),
    Open("pinv", lambda x: tr.sum(tr.sin(tr.real(tr.linalg.pinv(x))))),
    Open("norm fro", lambda x: tr.linalg.matrix_norm(x)),
    Open("norm nuc", lambda x: tr.linalg.matrix_norm(x, ord="nuc")),
    Open("norm 2", lambda x: tr.linalg.matrix_norm(x, ord=2)),
    Open("norm -2", lambda x: tr.linalg.matrix_norm(x, ord=-2)),
    Open("norm 1", lambda x: tr.linalg.matrix_norm(x, ord=1)),
    Open("vector norm", lambda x: tr.sum(tr.linalg.vector_norm(x, axis=0, ord=3))),
    Open("matrix_power", lambda x: tr.sum(tr.real(tr.linalg.matrix_power(hermitian(x), 3)))),
    Open("spectral_function", lambda x: tr.sum(tr.real(tr.linalg.spectral_function(hermitian(x), tr.log)))),
    Open("matrix_rank", lambda x: tr.sum(tr.sin(tr.real(x))) * tr.linalg.matrix_rank(x)),
    Open("lu", lambda x: sum(tr.sum(tr.sin(tr.real(f))) for f in tr.linalg.lu(x)[1:])),
    Open("lu_solve", lambda x: tr.sum(tr.sin(tr.real(tr.linalg.lu_solve(tr.linalg.lu_factor(hermitian(x)), x, 2))))),
    Open("ldl", lambda x: sum(tr.sum(tr.sin(tr.real(f))) for f in tr.linalg.ldl(hermitian(x))[:2])),
    Open("lstsq", lambda x: tr.sum(tr.sin(tr.real(tr.linalg.lstsq(x, x[:, :1] ** 2).x)))),
    Open("cond", lambda x: tr.linalg.cond(x) + tr.linalg.cond(hermitian(x), 1)),
    Open("rank_revealing_qr", lambda x: tr.sum(tr.sin(abs(tr.linalg.rank_revealing_qr(x).R)))),
    Open("multi_dot", lambda x: tr.sum(tr.sin(tr.real(tr.linalg.multi_dot([x, x.mT, x]))))),
    Open("einsum", lambda x: tr.real(einsum("ij,kj,kl->", x, tr.conj(x), x))),
    Open("einsum trace", lambda x: tr.sum(tr.real(tr.sin(einsum("ii->i", hermitian(x)))))),
    Open("einsum broadcast", lambda x: tr.sum(tr.real(einsum("ij,ij->i", x, x[:1])))),
    Open("fft", lambda x: tr.sum(abs(tr.fft.fft(x, axis=0)) ** 3)),
    Open("fft ortho", lambda x: tr.sum(abs(tr.fft.ifftn(x, norm="ortho")) ** 3)),
    Open("rfft", lambda x: tr.sum(abs(tr.fft.rfft(tr.real(x))) ** 3)),
    Open("irfft", lambda x: tr.sum(tr.sin(tr.fft.irfft(x, axis=0)))),
    Open("irfft n", lambda x: tr.sum(tr.sin(tr.fft.irfft(x, n=x.shape[0], axis=0)))),
    Open("hfft", lambda x: tr.sum(tr.sin(tr.fft.hfft(x, axis=0)))),
    Open("shift", lambda x: tr.sum(tr.real(tr.fft.fftshift(x) * tr.fft.fftfreq(x.shape[1], d=0.5)))),
]

EXAMPLES = {"tall": (5, 3), "square": (4, 4), "wide": (3, 6)}


RUNS = {"f": [(5, 3), (4, 4), (1, 2)], "c": [(3, 6), (4, 4), (2, 1)]}
"""Sizes with which programs run, by kind of dtype; square functions have only the second ones."""


def matrix(shape: tuple[int, int], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    rng = np.random.default_rng(shape[0] * 10 + shape[1])
    x = rng.normal(size=shape)
    return x if dtype is F8 else x + 1j * rng.normal(size=shape)


def questions(program: Any) -> set[str]:
    return {f"{g.lhs} {g.op} {g.rhs}" for g in program.guards}


@pytest.mark.parametrize("dtype", [F8, C16], ids=["real", "complex"])
@pytest.mark.parametrize("call", OPEN, ids=lambda call: call.name)
def test_rules_ask_no_more_than_the_call(call: Open, dtype: Any) -> None:
    spec = Spec((N, M), dtype)
    made = {}
    for kind, (n, m) in EXAMPLES.items():
        sizes = {"n": n, "m": m}
        primal = tr.trace(lambda x: [call.f(x)], spec, examples=sizes)
        pulled = tr.trace(lambda x: list(vjp(call.f, x)[1](tr.ones(()))), spec, examples=sizes)
        pushed = tr.trace(lambda x, t: jvp(call.f, (x,), (t,))[1], spec, spec, examples=sizes)
        for program in (pulled, pushed):
            check_program(program)
            assert questions(program) <= questions(primal), kind
        made[kind] = questions(primal), pulled, pushed
    assert len({frozenset(asked) for asked, _, _ in made.values()}) == 1
    _, pulled, pushed = made["tall"]
    for n, m in RUNS[dtype.kind]:
        if not all(g.holds({"n": n, "m": m}) for g in (*pulled.guards, *pushed.guards)):
            continue
        x, t = tensor(matrix((n, m), dtype)), tensor(matrix((m, n), dtype).T.copy())
        (got,), (want,) = pulled.run(x), vjp(call.f, x)[1](tr.ones(()))
        np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-9, atol=1e-9)
        (got,), want = pushed.run(x, t), jvp(call.f, (x,), (t,))[1]
        np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-9, atol=1e-9)


def test_one_trace_for_the_gradient_of_an_svd_at_many_shapes() -> None:
    """Sizes 1 need no trace of their own either."""

    def loss(a: Any, b: Any) -> Any:
        u, s, vh = tr.linalg.svd(a @ b, full_matrices=False)
        return tr.sum(tr.sin((u * s**2) @ vh)) / a.shape[0]

    eager, compiled = value_and_grad(loss), tr.compile(value_and_grad(loss))
    rng = np.random.default_rng(0)
    shapes = {tuple(rng.integers(2, 12, 3).tolist()) for _ in range(40)} | {(1, 1, 1), (1, 4, 1), (3, 1, 3), (2, 3, 1)}
    assert len(shapes) > 30
    for n, k, m in sorted(shapes):
        a, b = tensor(rng.normal(size=(n, k))), tensor(rng.normal(size=(k, m)))
        for got, want in zip(compiled(a, b), eager(a, b), strict=True):
            np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-6, atol=1e-8)
    assert compiled.cache_info().traces == 1
