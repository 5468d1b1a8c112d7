"""What a compiled function keeps for its gradient: each value once, no views, nothing that is cheap to make again."""

from typing import Any

import numpy as np
import pytest

import tenferro_runtime as tr
from tenferro_ad import grad
from tenferro_ad._partition import split_reverse
from tenferro_linalg import svd
from tenferro_runtime.ir import concrete

RNG = np.random.default_rng(3)
W = tr.asarray(RNG.normal(size=(4, 4)))


def chain(x):
    for _ in range(20):
        x = tr.tanh(x @ W)
    return tr.sum(x)


def spectral(a, b):
    u, s, vh = svd(a @ b, full_matrices=False)
    return tr.sum(s) + tr.sum(u * u * u) + tr.sum(vh[0])


def views(x):
    return tr.sum(tr.sin(x).mT @ tr.sin(x)) + tr.sum(tr.reshape(tr.sin(x), (-1,)) ** 3)


CASES: dict[str, Any] = {
    # 20 states; not their slopes, and not the contractions before tanh
    "chain": (chain, [(4, 4)], 20, 20 * 16 * 8),
    # u, u * u, s, vh, and the operands themselves; not the projector u @ u.T, no transpose, nothing twice
    "svd": (spectral, [(6, 5), (5, 4)], 6, 8 * (24 + 24 + 4 + 16 + 30 + 20)),
    # sin(x), the square that its cube has for a slope, and the operand, of which the slope of sin is made
    "views": (views, [(3, 4)], 3, 8 * 36),
}


@pytest.mark.parametrize("name", CASES)
def test_residuals_are_few(name) -> None:
    f, shapes, count, size = CASES[name]
    args = [tr.asarray(RNG.normal(size=s)) for s in shapes]
    compiled = tr.compile(f)
    program = concrete(compiled.program(*args), tuple([a.spec for a in args]))
    split = split_reverse(program, tuple(range(len(args))))
    ids = split.first.output_ids[len(split.active) :]
    specs = split.first.outputs[len(split.active) :]
    assert len(set(ids)) == len(ids) <= count
    assert sum(s.size * s.dtype.itemsize for s in specs) <= size
    every = tuple(range(len(args)))
    for got, want in zip(grad(compiled, argnums=every)(*args), grad(f, argnums=every)(*args), strict=True):
        np.testing.assert_allclose(np.asarray(got.numpy()), np.asarray(want.numpy()), rtol=1e-9, atol=1e-12)


def test_a_tall_matrix_makes_no_square_of_its_rows() -> None:
    a = tr.asarray(RNG.normal(size=(200, 3)))
    program = tr.trace(grad(lambda a: tr.sum(svd(a, full_matrices=False)[0] ** 3)), a)
    sizes: list[Any] = [s.size for s in program.specs.values()]
    assert max(sizes) == 600
