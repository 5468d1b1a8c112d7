"""Extents that depend on data, defined before a recorded branch or loop and used in it."""

from typing import Any

import numpy as np
import pytest

import tenferro_runtime as tr
from tenferro_ad import grad, jvp
from tenferro_runtime.extension import check_program, optimise
from tenferro_tensor import Spec, tensor

F8, I8 = np.dtype("float64"), np.dtype("int64")
n = tr.dim("n")


def carried(x, k):
    y = tr.truncate(x, k)
    c, rows = tr.scan(lambda c, _: (tr.sin(c) * y + tr.zeros(y.shape) + y.shape[0], tr.sum(c)), y, None, 3)
    return tr.sum(c) + tr.sum(rows)


def gone_over(x, k):
    c, rows = tr.scan(lambda c, v: (c * tr.cos(v) + 1.0, c), x[0], tr.truncate(x, k))
    return c + tr.sum(rows**2)


def counted(x, k):
    c, rows = tr.scan(lambda c, v: (c * 0.5 + tr.sin(x), tr.sum(c)), x, None, tr.truncate(x, k).shape[0])
    return tr.sum(c) + tr.sum(rows**2)


def branch(x, k):
    y = tr.truncate(x, k)
    twice, small = (lambda y: y * 2.0 + tr.zeros(y.shape)), (lambda y: tr.sin(y) / (y.shape[0] + 1))
    return tr.sum(tr.cond(tr.sum(x) > 2.0, twice, small, y))


def made_of_an_outer_count(x, k):
    return tr.cond(tr.sum(x) > 2.0, lambda x: tr.sum(tr.truncate(x, k) ** 2), lambda x: tr.sum(x * x * x), x)


def only_as_a_number(x, k):
    rank = tr.truncate(x, k).shape[0]
    return tr.scan(lambda c, v: (c * v + rank, None), x[0], x)[0]


def repeated(x, k):
    y = tr.truncate(x, k)
    return tr.sum(tr.while_loop(lambda c: tr.sum(c * c) < 50.0, lambda c: c * 1.5 + y + 1 + y.shape[0], y + 1.0))


FUNCTIONS: list[Any] = [carried, gone_over, counted, branch, made_of_an_outer_count, only_as_a_number, repeated]


@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_a_body_uses_a_size_that_is_defined_before_it(f):
    program = check_program(optimise(check_program(tr.trace(f, Spec((n,), F8), Spec((), I8), examples={"n": 4}))))
    compiled = tr.compile(f)

    def pushed(f):
        return lambda x, k: jvp(lambda x: f(x, k), (x,), (tr.cos(x),))[1]

    pushes = [pushed(compiled), tr.compile(pushed(f)), tr.compile(pushed(compiled))]
    pulls: list[Any] = [] if f is repeated else [grad(compiled), tr.compile(grad(f)), tr.compile(grad(compiled))]
    for extent, count in [(4, 2), (5, 5), (3, 1), (4, 3)]:
        x, k = tensor(np.linspace(0.1, 1.3, extent)), tensor(count)
        want = f(x, k).numpy()
        np.testing.assert_allclose(compiled(x, k).numpy(), want, rtol=1e-12)
        np.testing.assert_allclose(program.run(x, k)[0].numpy(), want, rtol=1e-12)
        for push in pushes:
            np.testing.assert_allclose(push(x, k).numpy(), pushed(f)(x, k).numpy(), rtol=1e-10)
        for pull in pulls:
            np.testing.assert_allclose(pull(x, k).numpy(), grad(f)(x, k).numpy(), rtol=1e-10)
    assert compiled.cache_info().traces == 1
