"""Values, dtypes and shapes of functions of the standard, for every kind of tensor: NumPy's, which follows it there.

A row is an expression of the namespace ``xp`` and of operands that a letter names. What the standard lets depend on
the elements a program cannot have: it says so.
"""

from functools import partial
from typing import Any

import numpy as np
import pytest

import tenferro_runtime as tr
from array_kinds import KINDS, plain
from tenferro_tensor_core import TracingError

Array = np.ndarray[Any, Any]
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def numbers(*shape: int, dtype: str = "float64", seed: int = 0) -> Array:
    """Numbers between -3 and 3, with ties where they are whole."""
    x = np.random.default_rng([seed, *shape]).uniform(-3, 3, (2, *shape))
    return np.asarray(x[0] + 1j * x[1] if dtype[0] == "c" else np.abs(x[0]) if dtype[0] == "u" else x[0]).astype(dtype)


OPERANDS = {
    "a": numbers(3, 3) + 4 * np.eye(3), "b": numbers(3, 4) > 0, "c": numbers(3, 3, dtype="complex128") + 4 * np.eye(3),
    "e": numbers(0, 4), "f": numbers(3, 0), "g": numbers(2, 3, 3) + 4 * np.eye(3), "h": numbers(4, dtype="float32"),
    "i": numbers(4, dtype="int64"), "j": np.array([[1, 0, 3], [2, -1, 0], [0, 0, -4]]), "k": numbers(3, dtype="int8"),
    "m": numbers(3, 4), "n": numbers(3, 4, seed=1), "o": numbers(0), "q": np.sort(numbers(5)), "s": numbers(),
    "t": numbers(2, 3, 4), "u": numbers(2, 3, dtype="uint16"), "v": numbers(4), "w": numbers(3), "y": numbers(1, 4),
    "z": numbers(3, 4, dtype="complex128"), "r": numbers(4, dtype="complex64"), "l": numbers(4) > 0,
}  # fmt: skip

TABLE = """
creation: xp.zeros_like(m); xp.ones_like(u); xp.full_like(m, 2); xp.full_like(k, 3, dtype=xp.float32)
creation: xp.empty_like(e); xp.tril(t); xp.triu(m, k=1); xp.tril(m, k=-5); xp.meshgrid(v, w)
creation: xp.meshgrid(v, w, indexing="ij"); xp.meshgrid(v, w, v); xp.meshgrid(v); xp.asarray(m, copy=True)
creation: xp.asarray(h, dtype=xp.float64); xp.zeros((2, 0)) + y[:, :1]; xp.eye(3, 4, k=1) * m; xp.arange(4) * v
creation: xp.linspace(0, 1, 4, endpoint=False) + v; xp.full((3, 4), 2.5, dtype=xp.float32) * xp.full(4, True)
creation: xp.arange(7, 0, -2) + i; xp.tril(f); xp.triu(e)
dtypes: xp.astype(m, xp.int32); xp.astype(i, xp.complex64); xp.astype(b, xp.int8); xp.astype(e, xp.float32)
manipulation: xp.broadcast_to(y, (3, 4)); xp.broadcast_to(s, (2, 0)); xp.broadcast_arrays(y, m, s); xp.concat([m, n])
manipulation: xp.concat((m, n), axis=1); xp.concat([m, e]); xp.concat([m, v[:, None] * y], axis=None)
manipulation: xp.concat([k, i]); xp.concat([h, v]); xp.expand_dims(m, axis=1); xp.expand_dims(m, axis=(0, -1))
manipulation: xp.expand_dims(s, axis=0); xp.flip(t); xp.flip(t, axis=(0, -1)); xp.flip(e, axis=0)
manipulation: xp.moveaxis(t, 0, -1); xp.moveaxis(t, (0, 2), (1, 0)); xp.permute_dims(t, (2, 0, 1))
manipulation: xp.permute_dims(t, (-1, 0, -2)); xp.permute_dims(s, ()); xp.roll(t, 2); xp.repeat(m, 2)
manipulation: xp.repeat(m, 0, axis=1); xp.repeat(t, 3, axis=-2); xp.reshape(m, (2, 6)); xp.reshape(m, (-1,))
manipulation: xp.reshape(e, (2, 0)); xp.reshape(s, (1, 1)); xp.reshape(m, (4, -1), copy=True)
manipulation: xp.roll(m, (1, -2), axis=(0, 1)); xp.roll(m, 5, axis=1); xp.roll(o, 3); xp.squeeze(y, axis=0)
manipulation: xp.squeeze(t[:1, :, :1], axis=(0, 2)); xp.stack([m, n]); xp.stack((m, n), axis=-1); xp.stack([s, s])
manipulation: xp.tile(m, (2,)); xp.tile(m, (2, 1, 3)); xp.tile(s, (2,)); xp.tile(m, (0, 2)); xp.unstack(t)
manipulation: xp.unstack(t, axis=-1); xp.unstack(e); xp.matrix_transpose(t)
searching: xp.argmax(m); xp.argmax(m, axis=0); xp.argmin(t, axis=-1, keepdims=True); xp.argmin(k)
searching: xp.argmax(m, keepdims=True); xp.count_nonzero(j); xp.count_nonzero(b, axis=0); xp.count_nonzero(e, axis=1)
searching: xp.count_nonzero(z, axis=(0, 1)); xp.searchsorted(q, v); xp.searchsorted(q, m, side="right")
searching: xp.searchsorted(q, 0.5); xp.searchsorted(q, o); xp.searchsorted(w, v, sorter=xp.argsort(w))
searching: xp.where(b, m, n); xp.where(b, m, 0); xp.where(b, 1.5, y); xp.where(l, i, 2); xp.where(l, h, 2.5)
searching: xp.where(b, s, m); xp.isin(i, i[:2]); xp.isin(i, 2); xp.isin(k, i); xp.isin(j, i, invert=True)
sorting: xp.sort(m); xp.sort(m, axis=0); xp.sort(j, axis=1); xp.argsort(m, axis=-1); xp.argsort(j, stable=True)
sorting: xp.sort(e)
statistics: xp.sum(m); xp.sum(t, axis=(0, 2)); xp.sum(m, axis=1, keepdims=True); xp.sum(k); xp.sum(u, axis=0)
statistics: xp.sum(h); xp.sum(b); xp.sum(h, dtype=xp.float64); xp.sum(e); xp.sum(e, axis=0); xp.sum(f, axis=1)
statistics: xp.sum(m, axis=()); xp.prod(m, axis=1); xp.prod(k); xp.prod(e, axis=0); xp.prod(u, dtype=xp.float32)
statistics: xp.max(t, axis=(0, 1)); xp.min(m, axis=-1, keepdims=True); xp.max(e, axis=1); xp.mean(m, axis=0)
statistics: xp.mean(h); xp.mean(e); xp.mean(f, axis=0); xp.mean(z); xp.std(m); xp.std(m, axis=0, correction=1)
statistics: xp.var(t, axis=(0, 2), correction=0.5, keepdims=True); xp.var(h); xp.cumulative_sum(v)
statistics: xp.cumulative_sum(m, axis=0); xp.cumulative_sum(k); xp.cumulative_sum(o)
statistics: xp.cumulative_sum(u, axis=1, include_initial=True); xp.cumulative_prod(v); xp.cumulative_prod(m, axis=-1)
statistics: xp.cumulative_prod(i, dtype=xp.float64, include_initial=True)
statistics: xp.cumulative_sum(e, axis=0, include_initial=True); xp.diff(v); xp.diff(m, axis=0, n=2)
statistics: xp.diff(j, prepend=j, append=j); xp.diff(o); xp.diff(v, n=0)
utility: xp.all(b); xp.all(m, axis=1); xp.any(b, axis=(0, 1)); xp.any(e, axis=1); xp.all(e, axis=0); xp.all(o)
utility: xp.any(o); xp.any(j, axis=0, keepdims=True)
indexing: m[b[:0]]; m[b[:, :0]]; t[:, l[:0]]
indexing: xp.take(m, i[:2] * 0, axis=1); xp.take(v, i * 0 - 1); xp.take(t, xp.asarray([1, 0]), axis=0)
indexing: xp.take_along_axis(m, xp.argsort(m, axis=0), axis=0); xp.take_along_axis(v, xp.argsort(v)); t[1]; t[..., 0]
indexing: t[:, None, 1:, ::-2]; t[-1, 1, 2]; t[0, ..., -1]; m[5:]; m[::-1, :0]; s[...]; s[None]; e[:, 1]
indexing: t[xp.asarray([1, 0])]; t[xp.asarray([[1], [0]]), xp.asarray([0, 2])]; t[0, xp.asarray([0, -1]), 1:]
indexing: t[xp.asarray([0, 1]), :, xp.asarray([0, 1])]; v[i * 0]; t[:, xp.asarray([2, 0], dtype=xp.uint8), 0]; m[()]
linear: m @ n.T; xp.matmul(t, v); xp.matmul(v, v); xp.matmul(w, m); xp.matmul(g, a); xp.matmul(e, n.T)
linear: xp.matmul(f, f.T); xp.matmul(z, r); xp.matmul(k, k); xp.tensordot(m, n, axes=((0, 1), (0, 1)))
linear: xp.tensordot(m, n, axes=2); xp.tensordot(v, w, axes=0); xp.tensordot(t, m, axes=((-1, 1), (1, 0)))
linear: xp.tensordot(e, e, axes=((0,), (0,))); xp.vecdot(m, n); xp.vecdot(m, n, axis=0); xp.vecdot(z, r)
linear: xp.vecdot(t, v); xp.vecdot(f, f); xp.vecdot(z, v + 0j)
linalg: xp.linalg.det(a); xp.linalg.det(g); xp.linalg.inv(g); xp.linalg.inv(c); xp.linalg.slogdet(c)
linalg: xp.linalg.solve(a, w); xp.linalg.solve(g, xp.ones((3, 2))); xp.linalg.cholesky(a @ a.T)
linalg: xp.linalg.cholesky(c @ xp.conj(c).T, upper=True); xp.linalg.eigvalsh(a + a.T); xp.linalg.svdvals(t)
linalg: xp.linalg.pinv(m); xp.linalg.pinv(t, rtol=xp.asarray([0.1, 0.4])); xp.linalg.matrix_rank(t)
linalg: xp.linalg.matrix_rank(m, rtol=0.4); xp.linalg.matrix_power(g, 3); xp.linalg.matrix_power(a, -2)
linalg: xp.linalg.matrix_power(a, 0); xp.linalg.cross(w, a[0]); xp.linalg.cross(a, w[None], axis=-1)
linalg: xp.linalg.outer(v, w); xp.linalg.outer(z[0], v); xp.linalg.trace(t); xp.linalg.trace(m, offset=1)
linalg: xp.linalg.trace(j, dtype=xp.float32); xp.linalg.diagonal(t); xp.linalg.diagonal(m, offset=-1)
linalg: xp.linalg.diagonal(m, offset=9); xp.linalg.matrix_norm(t); xp.linalg.matrix_norm(m, ord="nuc")
linalg: xp.linalg.matrix_norm(m, ord=2, keepdims=True); xp.linalg.matrix_norm(z, ord=1)
linalg: xp.linalg.matrix_norm(m, ord=xp.inf); xp.linalg.vector_norm(v); xp.linalg.vector_norm(m)
linalg: xp.linalg.vector_norm(z, axis=0); xp.linalg.vector_norm(t, axis=(0, 2), ord=3, keepdims=True)
linalg: xp.linalg.vector_norm(v, ord=0); xp.linalg.vector_norm(o); xp.linalg.vector_norm(v, ord=-xp.inf)
linalg: xp.linalg.matrix_transpose(t); xp.linalg.vecdot(m, n); xp.linalg.matmul(m, n.T); xp.linalg.tensordot(m, n)
linalg: xp.linalg.det(e[:, :0]); xp.abs(xp.linalg.qr(m)[1]); xp.linalg.qr(g)[0] ** 2
linalg: xp.linalg.eigh(c + xp.conj(c).T)[0]; xp.linalg.svd(m, full_matrices=False)[1]; xp.abs(xp.linalg.svd(m)[0])
linalg: xp.linalg.eigvals(a); xp.linalg.eig(c)[0]; xp.abs(xp.linalg.eig(a)[1]); xp.linalg.slogdet(a)
fft: xp.fft.fft(v); xp.fft.fft(m, axis=0, norm="ortho"); xp.fft.ifft(z, n=6); xp.fft.fftn(t)
fft: xp.fft.ifftn(z, axes=(0,)); xp.fft.rfft(h); xp.fft.irfft(z); xp.fft.irfft(z, n=5)
fft: xp.fft.rfftn(t, s=(2, 4), axes=(0, 2)); xp.fft.irfftn(z); xp.fft.hfft(z); xp.fft.ihfft(v, norm="forward")
fft: xp.fft.fftshift(m); xp.fft.ifftshift(v, axes=0); xp.fft.fftfreq(4) * v
elementwise: xp.clip(m, -1, 1); xp.clip(m, y, None); xp.clip(i, max=2)
elementwise: xp.clip(h, xp.asarray(-1, dtype=xp.float32), 2.0); xp.add(m, 1); 2 - m; m / 3; m // 0.7; m % 0.7; 2**m
elementwise: i // 2; i % 3; 7 // (i * i + 1); xp.pow(i, 2); m**2; -k; +u; abs(z); ~b; ~i; i << 2; i >> 1; 5 & i; i | 8
elementwise: i ^ 3; b & True; b ^ b; m < n; m >= 0.5; z == z; z != 1j; xp.logical_and(b, True); xp.logical_or(b, b)
elementwise: xp.logical_not(b); xp.logical_xor(b, False); xp.real(z); xp.imag(r); xp.conj(z); xp.conj(m)
elementwise: xp.hypot(m, n); xp.atan2(m, 1.0); xp.copysign(2.0, m); xp.nextafter(h, 0.0); xp.logaddexp(m, n)
elementwise: xp.maximum(m, 0); xp.minimum(u, 2); xp.sign(z); xp.sign(j); xp.square(j); xp.reciprocal(m); xp.round(m)
elementwise: xp.trunc(m); xp.floor(j); xp.signbit(m); xp.isfinite(z); xp.isnan(m); xp.expm1(z); xp.log1p(z); m + 1j
elementwise: h * 1j; h + 2; h + 2.5; r * 2.0; k + 1; u + y[:, :3]; e + y; f * xp.ones((3, 1)); o + s
elementwise: xp.remainder(k, 2); xp.bitwise_left_shift(i, 1); xp.bitwise_invert(k); xp.multiply(m, n); xp.divide(z, n)
elementwise: xp.subtract(1, z)
"""

BY_ELEMENTS = """
elements: xp.sort(xp.unique_values(j)); xp.unique_counts(j); xp.unique_inverse(j); xp.unique_all(j); xp.unique_all(h)
elements: xp.unique_values(o); xp.nonzero(j); xp.nonzero(b); xp.nonzero(o); m[b]; t[:, b]; m[l[:3]]; v[l]
elements: xp.repeat(v, i * i)
"""


def expressions(table: str) -> dict[str, list[str]]:
    """The expressions of each group."""
    found: dict[str, list[str]] = {}
    for line in table.strip().split("\n"):
        group, _, rest = line.partition(": ")
        found.setdefault(group, []).extend(e.strip() for e in rest.split("; "))
    return found


GROUPS = expressions(TABLE)


def called(expression: str) -> tuple[Any, list[Array]]:
    """The expression as a function of its operands, in a namespace; and the operands."""
    code = compile(expression, expression, "eval")
    names = [n for n in code.co_names if n in OPERANDS]

    def function(xp: Any, *values: Any) -> Any:
        return eval(code, {"xp": xp, **dict(zip(names, values, strict=True))})

    return function, [OPERANDS[n] for n in names]


def same(got: Any, want: Any, expression: str) -> None:
    if isinstance(want, (tuple, list)):
        assert isinstance(got, (tuple, list)) and len(got) == len(want), expression
        for g, w in zip(got, want, strict=True):
            same(g, w, expression)
        return
    want = np.asarray(want)
    assert (got.dtype, got.shape) == (want.dtype, want.shape), expression
    slack = 1e-5 if want.dtype.name in ("float32", "complex64") else 1e-11
    np.testing.assert_allclose(got, want, rtol=slack, atol=slack, err_msg=expression)


def reference(expression: str) -> Any:
    function, operands = called(expression)
    renamed = {"xp.linalg.pinv(t, rtol=xp.asarray([0.1, 0.4]))": lambda xp, t: xp.linalg.pinv(t, rcond=[0.1, 0.4])}
    return renamed.get(expression, function)(np, *operands)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("group", GROUPS)
def test_values_dtypes_and_shapes(group: str, kind: str) -> None:
    for expression in GROUPS[group]:
        function, operands = called(expression)
        got, want = plain(KINDS[kind](partial(function, tr), *operands)), reference(expression)
        if expression.startswith("xp.empty"):
            got, want = np.zeros_like(got), np.zeros_like(want)
        same(got, want, expression)


@pytest.mark.parametrize("kind", KINDS)
def test_shapes_that_depend_on_elements(kind: str) -> None:
    for expression in expressions(BY_ELEMENTS)["elements"]:
        function, operands = called(expression)
        if kind == "traced":
            with pytest.raises(TracingError):
                KINDS[kind](partial(function, tr), *operands)
            continue
        same(plain(KINDS[kind](partial(function, tr), *operands)), reference(expression), expression)


ASSIGNED = """
m[0] = v; m[:, 1] = 2; m[1, 2] = s; m[...] = y; m[::2, ::-1] = n[1:]; m[b] = 0; m[l[:3]] = v; m[b[:0]] = 1.5; s[()] = 3
v[l] = 7; v[-1] = 2.5; i[1:3] = 9; k[:] = 4; b[0] = True; b[b] = False; z[0] = v; z[:, :1] = 1j; h[::2] = 3; e[:, 1] = 2
t[0, ..., -1] = 5; t[:, b] = 1; t[None, 0] = m; o[:] = 1; u[u > 1] = 0; v[l] = v[l] * 2; m[1:] = m[:-1]; r[0] = 2
"""

NEED_ELEMENTS = ("t[:, b] = 1", "v[l] = v[l] * 2")
"""A program selects by masks of the leading axes, for one value of all selected places."""


@pytest.mark.parametrize("kind", KINDS)
def test_assignment(kind: str) -> None:
    for statement in ASSIGNED.replace("\n", "; ").strip("; ").split("; "):
        code = compile(statement, statement, "exec")
        names = [n for n in dict.fromkeys(code.co_names) if n in OPERANDS]
        target = statement[0]

        def assigned(xp: Any, *values: Any, code: Any = code, names: Any = names, target: str = target) -> Any:
            given = dict(zip(names, values, strict=True))
            given[target] = xp.asarray(given[target], copy=True)
            exec(code, {}, given)
            return given[target]

        operands = [OPERANDS[n] for n in names]
        if kind == "traced" and statement in NEED_ELEMENTS:
            with pytest.raises(TracingError):
                KINDS[kind](partial(assigned, tr), *operands)
            continue
        same(plain(KINDS[kind](partial(assigned, tr), *operands)), assigned(np, *operands), statement)
