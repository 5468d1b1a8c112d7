"""Random functions as source text, right for every extent of their axes: what fails can be read, copied and run.

A line is kept if it runs for two pairs of extents, with values that stay moderate. Comparisons are off by odd
constants, so that rounding does not decide them, and matrices are pulled apart before they are decomposed.
"""

from __future__ import annotations

import functools
import itertools
import linecache
import re
from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st

import tenferro_einsum as te
import tenferro_fft as fft
import tenferro_linalg as la
import tenferro_runtime as tr
from tenferro_ad import checkpoint, custom_rule

INPUTS = {
    "x": ("float64", ("n", "m")), "y": ("float64", ("n", "m")), "v": ("float64", ("m",)), "t": ("float64", ()),
    "z": ("complex128", ("n", "m")), "w": ("float32", ("m",)), "k": ("int64", ("m",)), "b": ("bool", ("n", "m")),
}  # fmt: skip


def apart(x: Any) -> Any:
    """A matrix with distinct singular values."""
    m = x.shape[-1]
    return 0.1 * tr.tanh(x) + tr.eye(x.shape[-2], m) * (1.0 + tr.arange(m))


def positive(x: Any) -> Any:
    """A positive matrix with distinct eigenvalues."""
    a = apart(x)
    return a @ tr.conj(a).mT + tr.eye(x.shape[-2]) * (1.0 + tr.arange(x.shape[-2]))


def recomposed(x: Any, cut: Any = None) -> Any:
    """Of a matrix's singular values the square roots; the small ones cut off, as the data say."""
    u, s, vh = la.svd(apart(x), full_matrices=False)
    if cut is not None:
        rank = tr.count_nonzero(s > cut * tr.max(s))
        u, s, vh = tr.truncate(u, rank, axis=-1), tr.truncate(s, rank), tr.truncate(vh, rank, axis=-2)
    return (u * tr.sqrt(s)) @ vh


def eigenpart(x: Any) -> Any:
    e, q = la.eigh(positive(x))
    return (q * tr.cos(e)) @ tr.conj(q).mT


def orthogonal(x: Any) -> Any:
    q, r = la.qr(apart(x))
    return q @ tr.tanh(r)


def loop(x: Any, y: Any) -> Any:
    return tr.while_loop(
        lambda c: (c[0] < 3) & (tr.sum(tr.real(c[1])) < 3.713),
        lambda c: (c[0] + 1, c[1] * 0.5 + y),
        (0, x * 0.5 + y),
        max_steps=4,
    )[1]


def rows(x: Any, y: Any) -> Any:
    return tr.scan(lambda c, p: (tr.tanh(c * 0.5 + p[0]), c * p[1]), tr.zeros_like(0.5 * (x[0] + y[0])), (x, y))[1]


def fold(x: Any) -> Any:
    return tr.scan(lambda c, p: (tr.cos(c) * p + 0.25, None), tr.zeros_like(0.5 * tr.sum(x, axis=0)), x, reverse=True)[
        0
    ]


@functools.partial(custom_rule, jvp=lambda p, t, outs: (t[0] * (0.5 - 2 * outs[0] * outs[0]),), family="tests.soft.v1")
def soft(x: Any) -> Any:
    return tr.tanh(x) * 0.5


wave = tr.compile(lambda x, y: tr.sin(x) * y + tr.cos(y))
weighted = tr.compile(lambda x: x * (1.0 + tr.arange(x.shape[-1])) / (x.shape[-1] + 1))

NAMES: dict[str, Any] = {
    "tr": tr, "la": la, "fft": fft, "einsum": te.einsum, "apart": apart, "positive": positive, "recomposed": recomposed,
    "eigenpart": eigenpart, "orthogonal": orthogonal, "loop": loop, "rows": rows, "fold": fold, "soft": soft,
    "wave": wave, "weighted": weighted, "checkpoint": checkpoint,
}  # fmt: skip

MANY_OPERANDS = "einsum('ij,kj,kl->il',"
GROUPS: dict[str, tuple[str, ...]] = {
    "element-wise": (
        "tr.tanh({0})", "tr.sin({0})", "-{0}", "tr.square(tr.tanh({0}))", "tr.cos({0}) * 2", "0.5 - {0}", "{0} / 3",
        "tr.abs({0})", "tr.sqrt(tr.abs({0}) + 0.2)", "tr.exp(-tr.abs({0}))", "tr.log1p(tr.abs({0}))",
        "2 ** tr.tanh({0})", "tr.clip({0}, -0.9, 1.1)", "tr.where({0} > 0.37, {0}, 0.5 * {0})", "tr.erf({0})",
        "tr.sign({0} + 0.01)", "tr.maximum({0}, 0.21)", "{0} ** 2 * 0.1", "tr.astype({0}, 'float32')", "soft({0})",
        "1 / (2 + tr.abs({0}))", "tr.where(tr.isfinite({0}), {0}, 0)", "{0} * {0}", "{0} - {0}",
        "tr.stop_gradient({0}) * {0}",
    ),
    "complex": (
        "tr.exp(1j * tr.real({0}))", "tr.real({0})", "tr.imag({0} * 1j)", "tr.conj({0})", "{0} * (1 - 0.5j)",
        "tr.astype({0}, 'complex128')", "tr.abs2({0})", "{0} / (2.0 + 1j)",
    ),
    "whole numbers and truth": (
        "{0} // 2", "{0} % 3 - 1", "{0} & 3", "{0} > 1", "tr.astype({0}, 'float64')", "tr.astype({0}, 'int64')", "~{0}",
        "tr.where({0}, 1.5, -0.5)", "tr.astype(tr.floor(3 * tr.tanh({0}) + 0.123), 'int64')", "{0} == {1}",
        "tr.bitwise_xor({0}, {1})", "{0} | {1}",
    ),
    "two": (
        "{0} + {1}", "{0} * {1}", "{0} - {1}", "{0} / (1.5 + tr.abs({1}))", "wave({0}, {1})", "tr.tanh({0}) * {1}",
        "tr.maximum({0}, {1})", "tr.minimum({0}, {1})", "{0} < {1} + 0.137", "tr.hypot({0}, {1} + 0.1)",
        "tr.where({1} > 0.211, {0}, {1})", "checkpoint(lambda p, q: tr.tanh(p) * tr.cos(q))({0}, {1})",
    ),
    "reductions": (
        "tr.sum({0})", "tr.sum({0}, axis=-1)", "tr.sum({0}, axis=0, keepdims=True)", "tr.mean({0}, axis=0)",
        "tr.max({0} * 1.0, axis=-1)", "tr.min({0}, axis=0)", "tr.prod(tr.cos({0}), axis=-1)", "tr.any({0} > 0.31)",
        "tr.all({0} < 0.97, axis=0)", "tr.var({0}, axis=-1, keepdims=True)", "tr.logsumexp(tr.tanh({0}), axis=-1)",
        "tr.softmax({0}, axis=-1)", "tr.count_nonzero({0} > 0.1)", "tr.cumulative_sum({0} * 0.5, axis=0)",
        "tr.sum({0} * {1}, axis=-1)", "tr.tanh(tr.sum({0} * 2 + {1}, axis=0))",
    ),
    "layout": (
        "{0}.mT", "tr.reshape({0}, (-1,))", "tr.reshape({0}, (-1, 1))",
        "tr.reshape({0}, ({0}.shape[-1], {0}.shape[0]))", "tr.expand_dims({0}, axis=0)", "tr.flip({0}, axis=0)",
        "tr.roll({0}, 1, axis=-1)", "tr.concat([{0}, {0} * 2], axis=0)", "tr.stack([{0}, {1}])",
        "tr.broadcast_to({0}, (2, *{0}.shape))", "tr.swapaxes({0}, 0, -1)", "tr.repeat({0}, 2, axis=-1)",
        "tr.tril({0})", "tr.tile({0}, (2,))", "tr.squeeze(tr.expand_dims({0}, axis=0), axis=0)",
    ),
    "parts": (
        "{0}[1:]", "{0}[:-1] * {0}[1:]", "{0}[::2]", "{0}[::-1]", "{0}[..., {0}.shape[-1] // 2 :]", "{0}[0]",
        "{0}.at[..., 1:].set(0.5)", "{0}.at[0].add({0}[-1])", "tr.take({0}, tr.arange({0}.shape[0]) // 2, axis=0)",
        "tr.sort({0}, axis=-1)", "tr.sum(tr.square(tr.truncate({0}, tr.count_nonzero(tr.real({0}) > 0.177))), axis=0)",
        "tr.sum(tr.tanh(tr.compress({0}, tr.real({0}) > 0.123)))",
        "tr.sum(tr.sin(tr.compress({0}, {0}[:, 0] > -1.3, axis=0)), axis=0)", "tr.diff({0}, axis=-1)",
        "tr.zeros_like({0}) + tr.arange({0}.shape[-1])", "{0} * {0}.shape[0] / 4",
    ),
    "products": (
        "tr.tanh({0} @ {1})", "tr.tanh({0} @ {1}.mT) * 0.5", "einsum('ij,ij->i', {0}, {1})", "weighted({0})",
        "einsum('ij,kj->ik', {0}, {1}) / (1 + {1}.shape[-1])", "einsum('ij->ji', {0})", "tr.outer({0}, {1})",
        MANY_OPERANDS + " {0}, {1}, {0}) / 8", "einsum('(ij,kj),kl->il', {1}, {0}, {1}) / 8", "tr.vecdot({0}, {1})",
    ),
    "linear algebra": (
        "la.svdvals(apart({0}))", "recomposed({0})", "recomposed({0}, 0.4137)", "eigenpart({0})",
        "la.eigvalsh(positive({0}))", "la.solve(positive({0}), {0})", "orthogonal({0})", "la.inv(positive({0}))",
        "la.slogdet(positive({0}))[1]", "tr.tanh(la.cholesky(positive({0})))", "la.matrix_norm({0} + 0.1)",
    ),
    "Fourier": (
        "tr.real(fft.ifft(fft.fft({0}) * 0.5))", "tr.abs(fft.rfft({0}) + 0.3)", "fft.fft({0}, norm='ortho')",
        "fft.irfft(fft.rfft({0}), n={0}.shape[-1])",
    ),
    "control": (
        "tr.cond(tr.sum(tr.real({0})) > 0.113, lambda p: p * ({1} * 0.5), lambda p: p + {1} * 0.5, {0})",
        "loop({0}, {1})",
        "tr.switch(tr.count_nonzero({0} > 0.1), [tr.sin, lambda p: p * p, lambda p: 0.3 * p + tr.sum(p)], 0.5 * {0})",
        "rows({0}, {1})", "fold({0})", "tr.cond({1} > 0.2, tr.tanh, lambda p: p * 0.5, {0})",
    ),
}  # fmt: skip

_names = itertools.count()


class Written:
    """A random function.

    Args:
        inputs: names of its parameters, which say what they are.
        lines: one statement each.
        outputs: names of what it returns.
    """

    def __init__(self, inputs: tuple[str, ...], lines: tuple[str, ...], outputs: tuple[str, ...]) -> None:
        self.inputs, self.lines, self.outputs = inputs, lines, outputs
        body = "".join(f"    {line}\n" for line in lines)
        self.text = f"def written({', '.join(inputs)}):\n{body}    return ({', '.join(outputs)},)\n"
        self._file = f"<written {next(_names)}>"
        linecache.cache[self._file] = (len(self.text), None, self.text.splitlines(keepends=True), self._file)
        self.function = self._made(NAMES)

    def _made(self, names: dict[str, Any]) -> Callable[..., tuple[Any, ...]]:
        scope: dict[str, Any] = {**names, "__name__": "written_function"}
        exec(compile(self.text, self._file, "exec"), scope)
        made: Callable[..., tuple[Any, ...]] = scope["written"]
        return made

    @property
    def single(self) -> Callable[..., tuple[Any, ...]]:
        """The function with what compiled functions do in their place, so that all of it is single operations."""
        return self._made(NAMES | {"wave": wave.__wrapped__, "weighted": weighted.__wrapped__})

    @property
    def used(self) -> Written:
        """The function without the lines whose values no result depends on, which programs do not run either."""
        kept, needed = [], set(self.outputs)
        for line in reversed(self.lines):
            name, _, value = line.partition(" = ")
            if name in needed:
                kept.append(line)
                needed = needed - {name} | set(re.findall(r"\w+", value))
        return Written(self.inputs, tuple(reversed(kept)), self.outputs)

    def __call__(self, *args: Any) -> tuple[Any, ...]:
        return self.function(*args)

    def __repr__(self) -> str:
        return self.text


def arguments(inputs: tuple[str, ...], n: int, m: int, seed: int = 0, strided: bool = False) -> list[Any]:
    """Values for parameters of these names; views with other strides if so wanted."""
    rng = np.random.default_rng(seed + 17 * n + m)
    made = []
    for name in inputs:
        dtype, axes = INPUTS[name]
        shape = tuple({"n": n, "m": m}[a] for a in axes)
        raw = rng.normal(size=shape) + (1j * rng.normal(size=shape) if dtype == "complex128" else 0.0)
        raw = np.asarray(raw > 0.2 if dtype == "bool" else raw * 2 if dtype == "int64" else raw).astype(dtype)
        if strided and raw.ndim:
            wide = np.zeros((*raw.shape[::-1], 2), raw.dtype)
            wide[..., 0] = raw.T
            raw = wide[..., 0].T
        made.append(tr.asarray(raw))
    return made


def narrow(f: Written) -> float:
    """How much looser results are compared where single precision may be hidden in the middle of a function."""
    return 2e5 if "w" in f.inputs or "float32" in f.text else 1.0


def _moderate(value: Any) -> bool:
    raw = np.asarray(value.numpy())
    return raw.size <= 2000 and raw.ndim <= 4 and bool(np.all(np.abs(raw.astype(complex)) < 60))


@st.composite
def written_functions(draw: Any, max_lines: int = 9, groups: tuple[str, ...] = tuple(GROUPS)) -> Written:
    """Functions of one to four of the inputs, with up to `max_lines` lines."""
    inputs = tuple(draw(st.permutations(sorted(INPUTS))))[: draw(st.integers(1, 4))]
    if not any(INPUTS[i][0] in ("float64", "complex128") for i in inputs):
        inputs = (*inputs, "x")
    pools = [dict(zip(inputs, arguments(inputs, *e), strict=True)) for e in ((5, 7), (4, 3))]
    lines: list[str] = []
    for _ in range(draw(st.integers(1, max_lines))):
        template = draw(st.sampled_from(GROUPS[draw(st.sampled_from(groups))]))
        names = sorted(pools[0], key=lambda name: (len(name), name))
        a, b = draw(st.sampled_from(names)), draw(st.sampled_from(names))
        name, expression = f"v{len(lines)}", template.format(a, b)
        try:
            with np.errstate(all="ignore"):
                made = [eval(expression, {**NAMES, **pool}) for pool in pools]
        except (TypeError, ValueError, IndexError, ArithmeticError):
            continue
        if not all(map(_moderate, made)):
            continue
        for pool, value in zip(pools, made, strict=True):
            pool[name] = value
        lines.append(f"{name} = {expression}")
    names = sorted(pools[0], key=lambda name: (len(name), name))
    outputs = draw(st.lists(st.sampled_from(names), min_size=0, max_size=2, unique=True))
    last = names[-1]
    return Written(inputs, tuple(lines), tuple(dict.fromkeys([*outputs, last])))
