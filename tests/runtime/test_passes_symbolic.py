"""Every pass, alone and in any order, on programs whose sizes are open: one program, right for all sizes."""

import itertools
import random
from typing import Any

import numpy as np
import pytest

import tenferro_runtime as tr
from random_programs import same
from tenferro_ad import value_and_grad
from tenferro_linalg import svd
from tenferro_runtime.extension import check_program
from tenferro_runtime.passes import PASSES
from tenferro_tensor import Spec, tensor
from tenferro_tensor_core import ShapeError

F8 = np.dtype("float64")
N, M = tr.dim("n"), tr.dim("m")
EXAMPLES = {"n": 4, "m": 6}


def softmax(x):
    e = tr.exp(x - tr.max(x, axis=-1, keepdims=True))
    return e / tr.sum(e, axis=-1, keepdims=True)


FUNCTIONS: dict[str, Any] = {
    "element-wise": (lambda x, y: (x * 1 + y) * 2.0 / 4 - -(x * -1), [(N, M), (M,)]),
    "views": (lambda x: tr.reshape(tr.reshape(x.mT, (-1,)), x.shape) + tr.flip(tr.flip(x)), [(N, M)]),
    "slices": (lambda x: x[1:][1:] * 2 - x[:-1][:-1], [(N, M)]),
    "contractions": (
        lambda x, y: tr.tanh(x.mT).mT @ y + tr.sum(x[:, :, None] * y[None, :, :], axis=1),
        [(N, M), (M, N)],
    ),
    "softmax": (softmax, [(N, M)]),
    "joined": (lambda x, y: tr.sum(tr.concat([x, y, x]) * tr.ones((2 * x.shape[0] + y.shape[0],))), [(N,), (M,)]),
    "layers": (value_and_grad(lambda x, w: tr.sum(tr.tanh(tr.tanh(x @ w) @ w.mT) ** 2)), [(N, M), (M, M)]),
    "spectra": (value_and_grad(lambda x: tr.sum(svd(x, full_matrices=False)[1] ** 3)), [(N, M)]),
    "a call": (lambda x: tr.compile(lambda v: (tr.sin(v), tr.cos(v), v * 1))(x)[2] + x, [(N, M)]),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_open_sizes_stay_open_and_values_stay_the_same(name: str) -> None:
    f, shapes = FUNCTIONS[name]
    examples = {k: v for k, v in EXAMPLES.items() if k in str(shapes)}
    start = check_program(tr.trace(f, *[Spec(s, F8) for s in shapes], examples=examples))
    chooser = random.Random(name)
    orders = [(run,) for run in PASSES] + [tuple(chooser.sample(PASSES, len(PASSES))) for _ in range(4)] + [PASSES]
    ends = []
    for order in orders:
        program = start
        for run in order:
            program = check_program(run(program))
        assert program.inputs == start.inputs and program.outputs == start.outputs
        ends.append(program)
    for n, m in itertools.product((2, 3, 7), (2, 5)):
        arrays = [tensor(np.random.default_rng(n).normal(size=[{"n": n, "m": m}[str(d)] for d in s])) for s in shapes]
        try:
            expected = start.run(*arrays)
        except ShapeError:  # a guard of the trace: this size needs a program of its own
            continue
        for program in {id(p): p for p in ends}.values():
            for got, want in zip(program.run(*arrays), expected, strict=True):
                same(got, want, rtol=1e-9)
