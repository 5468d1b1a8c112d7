"""One list of programs, and every way to run them: concrete, recorded, traced, compiled, differentiated, by XLA."""

from typing import Any

import numpy as np
import pytest

import tenferro_runtime as tr
from tenferro_ad import grad, jvp, variable
from tenferro_einsum import einsum
from tenferro_fft import fft, irfft, rfft
from tenferro_linalg import cholesky, eigh, inv, matrix_norm, slogdet, solve, svd
from tenferro_runtime.extension import interpret, optimise, render
from tenferro_xla import XlaExecutor

pytestmark = pytest.mark.optimised

RNG = np.random.default_rng(7)
V = RNG.standard_normal(6)
M = RNG.standard_normal((3, 4))
S = RNG.standard_normal((4, 4)) + 4 * np.eye(4)
Z = RNG.standard_normal((3, 3)) + 1j * RNG.standard_normal((3, 3))
F32 = M.astype(np.float32)
BATCH = RNG.standard_normal((2, 3, 4))


def spd(x):
    return x @ x.mT + 1.0 * tr.eye(x.shape[-1])


# Each program with its operands, those that can be differentiated first.
PROGRAMS: dict[str, Any] = {
    "chain of element-wise steps": (lambda x, y: tr.tanh(x * y + 0.5) * tr.exp(-x) / (1 + y * y), V, V[::-1].copy()),
    "broadcast and promote": (lambda x, y: x * y + 1.0 - 2j * x, M, V[:4].astype(np.complex64)),
    "narrow floats stay narrow": (lambda x: tr.sin(x) * 2.0 + tr.sqrt(tr.abs(x)), F32),
    "integers": (lambda x, n: x * n // 2 + n % 3 + x * n, V, np.arange(6)),
    "softmax": (lambda x: tr.exp(x - tr.max(x, axis=-1, keepdims=True)) / tr.sum(tr.exp(x), axis=-1, keepdims=True), M),
    "statistics": (lambda x: tr.mean(x, axis=0) / (1.0 + tr.var(x, axis=0)) + tr.prod(x, axis=0), M),
    "where and clip": (lambda x: tr.where(x > 0, tr.sqrt(tr.clip(x, 1e-3, None)), x * x), V),
    "slices and shifts": (lambda x: x[1:-1] * 2 - x[:-2] - x[2:] + tr.flip(x)[::2][0] * tr.roll(x, 1)[1:-1], V),
    "indexed": (lambda x: x[np.array([2, 0, 2]), 1:] * x.at[0, 1:].set(x[1, :-1])[0, 1:], M),
    "joined": (lambda x: tr.concat([x, tr.stack([x[0], x[1], x[2]]) * x], axis=1), M),
    "sorted and summed up": (lambda x: tr.cumulative_sum(tr.sort(x * x, axis=1), axis=1), M),
    "layers": (lambda x, w: tr.sum(tr.tanh(tr.tanh(x @ w) @ w), axis=1), M, S),
    "batched matmul": (lambda x, y: tr.matmul(x, y.mT) * 0.5, BATCH, BATCH),
    "complex parts": (lambda z: tr.real(z @ z) * tr.abs(z) + tr.imag(tr.conj(z) * tr.exp(z)), Z),
    "branches": (lambda x: tr.cond(tr.sum(x) > 0, tr.sin, lambda v: v * v, x) + tr.switch(9, [tr.cos, tr.exp], x), V),
    "scan": (lambda w, x: tr.scan(lambda h, v: (tr.tanh(w @ h) + v, h * v), x[0], x, reverse=True)[1], S, M),
    "complex scan": (lambda z: tr.scan(lambda c, v: (c * v + 1j, c), tr.ones_like(z[0]), z)[1], Z),
    "bounded loop": (
        lambda x: tr.while_loop(
            lambda c: tr.sum(c[1]) < 5.0, lambda c: (c[0] + 1, c[1] * 1.5 + x * x), (0, tr.abs(x)), max_steps=4
        )[1],
        V,
    ),
    "einsum of four": (lambda a, b: einsum("ij,jk,lk,li->", a, b, a, tr.tanh(a)), S, S),
    "einsum with diagonals": (lambda a: einsum("ii,ij->ij", a, a) + einsum("i->ii", einsum("ii->i", a)), S),
    "fourier": (lambda x: irfft(rfft(x) * 2.0, n=6) + tr.real(fft(x * (1 + 0j))), V),
    "solve and determinant": (lambda a: solve(spd(a), a) * slogdet(spd(a))[1] + inv(a), S),
    "spectra": (lambda a: eigh(spd(a))[0] * svd(a)[1] + matrix_norm(cholesky(spd(a))), S),
}


def scalar(f):
    """A real number from whatever `f` gives, so that it has a gradient."""

    def loss(*args):
        y = f(*args)
        return tr.sum(tr.real(y * (0.5 + 0.25j))) if y.dtype.kind == "c" else tr.sum(y * tr.cos(y))

    return loss


def close(got, want, dtype):
    got, want = np.asarray(got), np.asarray(want)
    assert got.shape == want.shape
    assert got.dtype == want.dtype
    loose = 2e-4 if np.dtype(dtype).itemsize // (2 if np.dtype(dtype).kind == "c" else 1) < 8 else 1e-10
    np.testing.assert_allclose(got, want, rtol=loose, atol=loose)


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_way_to_run_gives_one_result(name):
    f, *raw = PROGRAMS[name]
    args = [tr.asarray(a) for a in raw]
    want = f(*args)
    narrow = min((a.dtype for a in args if a.dtype.kind in "fc"), key=lambda d: d.itemsize)

    recorded = f(*[variable(a) if a.dtype.kind in "fc" else a for a in args])
    close(recorded.detach(), want, narrow)
    whole = [a for a in args if a.dtype.kind not in "fc"]
    moving = tuple(a for a in args if a.dtype.kind in "fc")
    pushed, _ = jvp(lambda *xs: f(*xs, *whole), moving, tuple(map(tr.zeros_like, moving)))
    close(pushed, want, narrow)

    program = tr.trace(f, *args)
    for run in (
        program.run,
        lambda *xs: interpret(program, xs),
        lambda *xs: interpret(optimise(program), xs),
        lambda *xs: render(program, "value")(*xs),
    ):
        close(run(*args)[0], want, narrow)
    compiled = tr.compile(f)
    close(compiled(*args), want, narrow)
    close(compiled(*args), want, narrow)


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_way_to_differentiate_gives_one_gradient(name):
    f, *raw = PROGRAMS[name]
    args = [tr.asarray(a) for a in raw]
    loss = scalar(f)
    want = grad(loss)(*args)
    narrow = min((a.dtype for a in args if a.dtype.kind in "fc"), key=lambda d: d.itemsize)

    leaf = variable(args[0])
    loss(leaf, *args[1:]).backward()
    close(leaf.grad, want, narrow)
    close(tr.compile(grad(loss))(*args), want, narrow)
    close(grad(tr.compile(loss))(*args), want, narrow)
    direction = tr.asarray(RNG.standard_normal(raw[0].shape).astype(raw[0].dtype))
    _, slope = jvp(lambda x: loss(x, *args[1:]), (args[0],), (direction,))
    close(slope, tr.sum(tr.real(tr.conj(want) * direction)), narrow)


def lanes(a):
    """Two lanes like an array."""
    return np.stack([a, a + 1 if a.dtype.kind in "iu" else a * a.dtype.type(0.75)])


def per_lane(f):
    """`vmap` by hand."""
    return lambda *args: tr.stack([f(*[x[k] for x in args]) for k in (0, 1)])


XLA_FORMS = {
    "values": (lambda f: f, lambda f: f, lambda a: a),
    "gradients": (lambda f: grad(scalar(f)), lambda f: grad(scalar(f)), lambda a: a),
    "lanes": (tr.vmap, per_lane, lanes),
    "gradients of lanes": (lambda f: tr.vmap(grad(scalar(f))), lambda f: per_lane(grad(scalar(f))), lanes),
}
"""How XLA runs a function, what that must equal, and the arrays that it takes."""


@pytest.mark.parametrize("form", XLA_FORMS)
def test_xla_runs_all_programs(form):
    """All of them as one module, which compiles in less time than each by itself."""
    run, plain, made = XLA_FORMS[form]
    operands = {name: [tr.asarray(made(a)) for a in raw] for name, (_, *raw) in PROGRAMS.items()}

    def whole(operands):
        return [run(f)(*operands[name]) for name, (f, *_) in PROGRAMS.items()]

    found = XlaExecutor().run(tr.trace(whole, operands), *tr.tree_leaves(operands))
    for got, (name, (f, *_)) in zip(found, PROGRAMS.items(), strict=True):
        args = operands[name]
        narrow = min((a.dtype for a in args if a.dtype.kind in "fc"), key=lambda d: d.itemsize)
        close(got, plain(f)(*args), narrow)
