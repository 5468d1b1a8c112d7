"""Arrays that a loop computes from themselves: in place where no element is read after it is overwritten."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tenferro_runtime as tr
from tenferro_ad import grad
from tenferro_runtime.lowering import lower
from tenferro_runtime.lowering.passes import fuse_nests, update_in_place
from tenferro_runtime.passes import optimise
from tenferro_tensor import catalog
from tenferro_tensor.loop_interpreter import interpret
from tenferro_tensor.loop_ir import For, LoopFunction, While, everything, verify
from tenferro_tensor_core import dim
from whole_functions import Writing

STEPS = 5


def sums(a: Any, v: Any) -> Any:
    return tr.fori_loop(0, STEPS, lambda i, s: s + v[:, None] * v[None, :], a)


def sums_while(a: Any, v: Any) -> Any:
    body = lambda s: (s[0] * 0.5 + v, s[1] + 1)
    return tr.while_loop(lambda s: s[1] < STEPS, body, (a, tr.asarray(0)))[0]


def of_columns(a: Any, v: Any) -> Any:
    return tr.fori_loop(0, STEPS, lambda i, s: s + tr.sum(s, axis=1, keepdims=True) * v, a)


def reversed_rows(a: Any, v: Any) -> Any:
    return tr.fori_loop(0, STEPS, lambda i, s: s + tr.flip(s, axis=0) * v, a)


def transposed(a: Any, v: Any) -> Any:
    return tr.fori_loop(0, STEPS, lambda i, s: s + s.mT * v, a)


def exchanged(a: Any, v: Any) -> Any:
    return tr.fori_loop(0, STEPS, lambda i, p: (p[1] + v, p[0] * 0.5), (a, a + 1.0))


def read_again(a: Any, v: Any) -> Any:
    """The old value is used after the new one is there."""
    step = lambda i, p: (p[0] * 0.5 + v, p[1] + p[0] @ (p[0] * 0.5 + v))
    return tr.fori_loop(0, STEPS, step, (a, a * 0.0))


CASES: dict[str, tuple[Callable[..., Any], bool]] = {
    "sums": (sums, False),
    "in a while loop": (sums_while, False),
    "sums of rows": (of_columns, False),
    "reversed rows": (reversed_rows, True),
    "transposed": (transposed, True),
    "exchanged": (exchanged, True),
    "read again": (read_again, True),
}
"""Functions, and whether a loop has to swap buffers."""


def swaps(function: LoopFunction) -> int:
    return sum(len(s.swaps) for s in everything(function.body) if isinstance(s, For | While))


def lowered(f: Callable[..., Any], n: Any) -> LoopFunction:
    spec = lambda *shape: tr.Spec(shape, tr.float64)
    return verify(lower(optimise(tr.trace(f, spec(n, n), spec(n)))))


@pytest.mark.parametrize("case", CASES)
def test_two_buffers_only_where_one_is_not_enough(case: str) -> None:
    f, two = CASES[case]
    function = lowered(f, dim("n"))
    assert bool(swaps(function)) == two
    compiled = tr.compile(f)
    rng = np.random.default_rng(0)
    for n in (0, 1, 2, 7, 33, 1):
        a, v = rng.standard_normal((n, n)), rng.standard_normal(n)
        results = f(tr.asarray(a), tr.asarray(v))
        expected = results if isinstance(results, tuple) else (results,)
        for found in (interpret(function, [a, v], (n,)), compiled(a, v)):
            found = found if isinstance(found, tuple | list) else (found,)
            for got, want in zip(found, expected, strict=True):
                np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=1e-12, atol=1e-12)


def test_the_gradient_of_products_in_a_loop_needs_one_matrix() -> None:
    """The sum of outer products has the memory of the result."""

    def loss(a: Any, v: Any) -> Any:
        return tr.sum(tr.fori_loop(0, STEPS, lambda i, w: tr.sin(a @ w), v))

    n = dim("n")
    assert (n, n) not in [b.shape for b in lowered(lambda a, v: grad(loss)(a, v), n).temporaries]


def test_a_loop_is_fused_with_an_earlier_one_through_a_later_one() -> None:
    """The sum reads two arrays: it is fused with the loop of the second one, and both with the loop of the first."""
    w, n = Writing("n"), dim("n")
    sources = [w.input("float64", n) for _ in range(2)]
    parts = [w.temporary("float64", n) for _ in range(2)]
    y = w.output("float64", n)
    for source, part in zip(sources, parts, strict=True):
        with w.loop(n) as i:
            w.store(part, i, w.let(catalog.neg, w.load(source, i)))
    with w.loop(n) as i:
        w.store(y, i, w.let(catalog.add, *[w.load(part, i) for part in parts]))
    assert len(fuse_nests(w.function().body)) == 1


def test_needed_buffers_stay() -> None:
    """A second pass changes nothing, here where both buffers are needed."""
    function = lowered(reversed_rows, 4)
    assert update_in_place(function) is function
