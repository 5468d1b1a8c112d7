"""Kernels on operands of any strides, 0 and negative ones among them, and of empty extents.

The result must be that for contiguous copies. Under sanitizers, an access outside of an operand ends the process.
"""

import math
import random
from collections.abc import Iterator
from typing import Any

import numpy as np

from fuzzing.area import ALWAYS, WITH, WITHOUT, Area, Case, Mismatch
from fuzzing.comparing import Array, leaves, raw
from fuzzing.reference import library
from fuzzing.values import pool

EXTENTS = (0, 1, 1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 33, 70)
STEPS = (1, 1, 1, -1, 2, -2, 3, 0)
"""Strides in elements of the axis; 0 repeats one element."""

DTYPES = ("float64",) * 4 + ("float32",) * 3 + ("complex128", "complex64", "int64", "int32", "uint8", "int8", "bool")

MOST = 300_000
"""Elements of an operand."""

RTOL = {"float32": 1e-4, "complex64": 1e-4, "float64": 1e-11, "complex128": 1e-11}

ONE = (
    "a + a", "tr.exp(a)", "tr.tanh(a) * a + 1", "-a", "tr.abs(a)", "tr.where(a > 0, a, 2 * a)",
    "tr.astype(a, tr.float32)", "tr.astype(a, tr.complex128)", "a > 0", "tr.isfinite(a)",
    "tr.square(a)", "tr.maximum(a, 1)", "a // 2", "a % 3",
    "tr.copy(a)", "tr.ravel(a)", "tr.flip(a)", "tr.flip(a) + a", "a[::-1]", "a[..., ::-2]", "a[1:] * 2", "a[..., :-1]",
    "tr.concat([a, a], axis=-1)", "tr.stack([a, a], axis=1)", "tr.tile(a, 2)", "tr.repeat(a, 3, axis=0)",
    "tr.roll(a, 2, axis=-1)", "tr.pad(a, ((1, 2),) * a.ndim)", "tr.permute_dims(a, tuple(range(a.ndim))[::-1])",
    "tr.copy(tr.permute_dims(a, tuple(range(a.ndim))[::-1]))", "tr.broadcast_to(a, (3, *a.shape)) + 0",
    "tr.sum(a)", "tr.sum(a, axis=0)", "tr.sum(a, axis=-1)", "tr.sum(a, axis=0, keepdims=True)", "tr.prod(a, axis=-1)",
    "tr.mean(a, axis=-1)", "tr.max(a, axis=0)", "tr.min(a, axis=-1)", "tr.argmax(a, axis=-1)", "tr.argmin(a, axis=0)",
    "tr.any(a > 1, axis=0)", "tr.all(a > 1, axis=-1)", "tr.count_nonzero(a)", "tr.var(a, axis=0)",
    "tr.cumulative_sum(a, axis=0)", "tr.cumulative_sum(a, axis=-1)", "tr.cumulative_prod(a, axis=-1)",
    "tr.logsumexp(a, axis=-1)", "tr.softmax(a, axis=0)", "tr.sort(a, axis=-1)", "tr.sort(a, axis=0)",
    "tr.argsort(a, axis=-1)", "tr.argsort(a, axis=0, descending=True)", "tr.sort(a, axis=-1, descending=True)",
    "tr.unique_values(a)", "tr.median(a, axis=-1)", "tr.quantile(a, 0.3, axis=0)", "tr.diff(a, axis=-1)",
    "tr.take(a, tr.asarray([0, 0]), axis=-1)", "tr.nonzero(a > 0)", "a[a > 0]", "a.at[0].set(1)", "a.at[..., 0].add(1)",
    "tr.take_along_axis(a, tr.argsort(a, axis=0), axis=0)", "tr.tril(a)", "tr.diagonal(a)",
    "tr.searchsorted(tr.sort(tr.ravel(a)), tr.ravel(a))", "tr.random.permutation(tr.random.key(3), a)",
    "tr.random.permutation(tr.random.key(3), a, axis=-1)", "tr.random.bernoulli(tr.random.key(1), a > 0)",
)  # fmt: skip
"""Of one operand."""

SHAPED = tuple([
    f"tr.random.{name}(tr.random.key(7), {more}a.shape)"
    for name, more in (("normal", ""), ("uniform", ""), ("exponential", ""), ("bits", ""), ("gumbel", ""),
                       ("cauchy", ""), ("rademacher", ""), ("laplace", ""), ("gamma", "2.5, "), ("poisson", "3.0, "))
] + [
    "tr.random.normal(tr.random.key(2), a.shape, tr.float32)",
    "tr.random.uniform(tr.random.key(2), a.shape, tr.float32)",
    "tr.random.split(tr.random.key(4), a.shape[0])", "tr.zeros_like(a)", "tr.full_like(a, 3)",
])  # fmt: skip
"""Whose shape is that of the operand."""

TWO = (
    "a + b", "a * b - a", "tr.maximum(a, b)", "tr.where(a > b, a, b)", "a < b", "tr.hypot(a, b)", "tr.atan2(a, b)",
    "tr.sum(a * b)", "tr.sum(a * b, axis=0)", "tr.concat([a, b], axis=0)", "tr.sum(tr.exp(-a * a) + b, axis=-1)",
    "tr.stack([a, b])", "a.at[::2].set(b[::2])", "tr.vecdot(a, b)", "tr.logaddexp(a, b)",
)  # fmt: skip
"""Of two operands of one shape."""

PRODUCTS = (
    ("a @ b", ((5, 3), (3, 4))), ("a @ b", ((0, 3), (3, 4))), ("a @ b", ((5, 0), (0, 4))), ("a @ b", ((5, 3), (3,))),
    ("a @ b", ((3,), (3, 4))), ("a @ b", ((7,), (7,))), ("a @ b", ((2, 5, 3), (2, 3, 4))),
    ("a @ b", ((2, 5, 3), (3, 4))),
    ("a @ b", ((70, 65), (65, 33))), ("a @ b", ((1, 130), (130, 1))), ("tr.outer(a, b)", ((5,), (4,))),
    ("a @ b", ((0,), (0,))), ("a @ b", ((3, 0, 2), (3, 2, 4))), ("a @ b", ((40, 2, 2), (40, 2, 2))),
    ("a @ b", ((40, 3, 3), (40, 3))), ("einsum('ij,jk->ki', a, b)", ((5, 3), (3, 4))),
    ("einsum('ij,ij->', a, b)", ((5, 3), (5, 3))), ("einsum('iij->j', a) + b", ((4, 4, 3), (3,))),
    ("einsum('abc,bcd->ad', a, b)", ((4, 5, 3), (5, 3, 2))), ("einsum('abc,cbd->da', a, b)", ((9, 8, 3), (3, 8, 17))),
    ("einsum('bij,bjk->bik', a, b)", ((0, 3, 4), (0, 4, 2))), ("einsum('bij,bkj->bki', a, b)", ((3, 3, 0), (3, 2, 0))),
    ("einsum('abcd,cdef->abef', a, b)", ((3, 4, 2, 5), (2, 5, 3, 2))),
    ("einsum('ab,cb->ac', a, b)", ((64, 70), (33, 70))),
    ("einsum('i,j->ij', a, b)", ((0,), (4,))), ("einsum('abc,abc->b', a, b)", ((3, 17, 5), (3, 17, 5))),
    ("tr.tensordot(a, b, axes=2)", ((3, 4, 5), (4, 5, 2))),
)  # fmt: skip
"""With the shapes of their operands."""

GOOD = "(a @ tr.matrix_transpose(tr.conj(a)) + 4 * tr.eye(a.shape[-1], dtype=a.dtype))"

SQUARE = tuple([text.format(GOOD) for text in (
    "linalg.det({})", "linalg.inv({})", "linalg.solve({}, b)", "linalg.cholesky({})", "linalg.eigvalsh({})",
    "linalg.svdvals(a)", "linalg.slogdet({})", "tr.trace(a)", "linalg.matrix_power(a, 3)", "tr.linalg.expm(a / 8)",
    "(lambda q: q.Q @ q.R)(linalg.qr(a))", "linalg.solve({}, b[..., 0])", "linalg.inv(4 * tr.eye(a.shape[-1]) + 0 * a)",
)])  # fmt: skip
"""Of one or two stacks of square matrices."""


def strided(x: dict[str, Any]) -> Array:
    """The array that an operand stands for."""
    size, order = [], x["order"]
    for n, step in zip(x["shape"], x["steps"], strict=True):
        size.append(1 if step == 0 else max(0, (n - 1) * abs(step) + 1) if n else 0)
    style = "unit" if x["dtype"] != "bool" else "plain"
    numbers = pool(x["dtype"], style)
    count = math.prod(size)
    base = numbers[(x["seed"] + np.arange(count) * 13) % len(numbers)]
    wide = np.empty([size[k] for k in order], x["dtype"])
    wide[...] = base.reshape(wide.shape)
    wide = wide.transpose([order.index(k) for k in range(len(order))])
    key = tuple([slice(None, None, step or 1) for step in x["steps"]])
    return np.broadcast_to(wide[key], x["shape"])


class Layouts(Area):
    """One call on strided operands, and on contiguous copies of them."""

    name = "layouts"
    machines = (WITHOUT, WITH, WITHOUT, ALWAYS)
    share = 2.0

    def draw(self, rng: random.Random) -> Case:
        kind = rng.choices(("one", "shaped", "two", "product", "square"), (40, 8, 20, 20, 12))[0]
        dtype = rng.choice(DTYPES)
        if kind in ("one", "shaped", "two"):
            shape = [rng.choice(EXTENTS) for _ in range(rng.choice((1, 1, 2, 2, 2, 3, 4)))]
            while math.prod([max(1, n) for n in shape]) > 20_000:
                shape.pop()
            text = rng.choice({"one": ONE, "shaped": SHAPED, "two": TWO}[kind])
            shapes = [shape] * (2 if kind == "two" else 1)
        elif kind == "product":
            text, given = rng.choice(PRODUCTS)
            shapes = [list(s) for s in given]
        else:
            n, text, dtype = rng.choice((0, 1, 2, 2, 3, 3, 4, 4, 5, 9)), rng.choice(SQUARE), rng.choice(DTYPES[:9])
            stack = rng.choice(([], [0], [1], [3], [8], [33], [2, 3], [4, 0]))
            shapes = [[*stack, n, n]] * 2
        return {"text": text, "operands": [_operand(rng, dtype, shape) for shape in shapes]}

    def run(self, case: Case) -> None:
        import tenferro_einsum
        import tenferro_runtime as tr

        arrays = [strided(x) for x in case["operands"]]
        before = [x.tobytes() for x in arrays]
        function = eval(f"lambda a, b=None: {case['text']}", library() | {"einsum": tenferro_einsum.einsum})
        got = _outcome(function, [tr.asarray(x) for x in arrays])
        want = _outcome(function, [tr.asarray(np.ascontiguousarray(x).reshape(x.shape)) for x in arrays])
        if [x.tobytes() for x in arrays] != before:
            raise Mismatch(f"`{case['text']}` changed an operand")
        if isinstance(got, str) or isinstance(want, str):
            if got is not want and got != want:
                raise Mismatch(f"`{case['text']}`: expected {want!s:.80}, seen {got!s:.80}")
            return
        for x, y in zip(leaves(got), leaves(want), strict=True):
            _agree(raw(x), raw(y), case["text"])

    def subject(self, case: Case) -> str:
        return str(case["text"])

    def shrink(self, case: Case) -> Iterator[Case]:
        operands = case["operands"]
        for k, x in enumerate(operands):
            for axis, step in enumerate(x["steps"]):
                if step != 1:
                    steps = [1 if a == axis else s for a, s in enumerate(x["steps"])]
                    yield case | {"operands": [*operands[:k], x | {"steps": steps}, *operands[k + 1 :]]}
            if x["order"] != sorted(x["order"]):
                yield case | {"operands": [*operands[:k], x | {"order": sorted(x["order"])}, *operands[k + 1 :]]}
        for n in {n for x in operands for n in x["shape"]}:
            for less in sorted({1, n // 2, n - 1}):
                if 0 < less < n:
                    cut = [x | {"shape": [less if d == n else d for d in x["shape"]]} for x in operands]
                    yield case | {"operands": cut}

    def code(self, case: Case) -> str:
        lines = ["import numpy as np", "import tenferro_fft as fft", "import tenferro_linalg as linalg"]
        lines += ["import tenferro_runtime as tr", "from tenferro_einsum import einsum", ""]
        lines += ["from fuzzing.layouts import strided", "", f"f = lambda a, b=None: {case['text']}"]
        lines += [f"arrays = [strided(x) for x in {case['operands']}]"]
        lines += ["print('expected', f(*[tr.asarray(x.copy()) for x in arrays]))"]
        lines += ["print('seen', f(*[tr.asarray(x) for x in arrays]))"]
        return "\n".join(lines)


def _operand(rng: random.Random, dtype: str, shape: list[int]) -> dict[str, Any]:
    order = list(range(len(shape)))
    if rng.random() < 0.5:
        rng.shuffle(order)
    steps = [rng.choice(STEPS) for _ in shape]
    if math.prod([max(1, n * abs(s)) for n, s in zip(shape, steps, strict=True)]) > MOST:
        steps = [max(-1, min(1, s)) for s in steps]
    return {"dtype": dtype, "shape": list(shape), "steps": steps, "order": order, "seed": rng.randrange(1 << 16)}


def _outcome(f: Any, args: list[Any]) -> Any:
    """The result, or the name of the library's error."""
    from tenferro_tensor_core import TenferroError

    try:
        return f(*args)
    except TenferroError as error:
        return type(error).__name__


def _agree(x: Array, y: Array, text: str) -> None:
    if x.shape != y.shape or x.dtype != y.dtype:
        raise Mismatch(f"`{text}`: expected {y.dtype}{list(y.shape)}, seen {x.dtype}{list(x.shape)}")
    with np.errstate(all="ignore"):
        good = (x == y) | ((x != x) & (y != y))
        if x.dtype.kind in "fc":
            finite = np.where(np.isfinite(y), np.abs(y), 0)
            good |= np.abs(x - y) <= RTOL[x.dtype.name] * np.max(finite, initial=1)
    if not np.all(good):
        at = tuple(map(int, np.argwhere(~good)[0])) if good.ndim else ()
        raise Mismatch(f"`{text}`: {int(np.sum(~good))} of {good.size} elements, first at {at}: expected {y[at]!r}, "
                       f"seen {x[at]!r}")  # fmt: skip
