"""Loops with many steps, and branches inside branches: memory, interrupts and Python's stack."""

import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tenferro_runtime as tr
from interrupts import interrupt_after
from tenferro_ad import grad, hessian, jvp
from tenferro_runtime.control_flow import _fori
from tenferro_tensor_core import UnsupportedError

V = tr.asarray(np.random.default_rng(0).standard_normal(7))
BODIES: dict[str, Callable[[Any], Any]] = {
    "indexing": lambda x: tr.fori_loop(-3, 70, lambda i, c: c * 0.9 + V[(i + 3) % 7] * tr.sin(c), x),
    "weak index": lambda x: tr.fori_loop(0, 73, lambda i, c: c + i, x),
    "updates": lambda x: tr.sum(tr.fori_loop(0, 80, lambda i, c: c.at[i].set(x * i), tr.zeros(80))),
    "no rest": lambda x: tr.fori_loop(0, 64, lambda i, c: (c[0] * 0.5 + i, c[1] - c[0]), (x, x))[1],
}


def _found(f: Callable[[Any], Any]) -> list[Any]:
    x = tr.asarray(0.3)
    single = tr.asarray(0.3, dtype="float32") if f is not BODIES["indexing"] and f is not BODIES["updates"] else x
    ways = (f, tr.compile(f), tr.compile(f, deterministic=True), grad(f), tr.compile(grad(f)), grad(tr.compile(f)))
    return [
        *[np.asarray(way(x)) for way in (*ways, hessian(f))],
        np.asarray(jvp(f, (x,), (x,))[1]),
        np.asarray(f(single)),
    ]


@pytest.mark.parametrize("name", BODIES)
def test_blocks_of_steps_keep_bits_and_dtypes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = _found(BODIES[name])
    monkeypatch.setattr(_fori, "LISTED_STEPS_MAX", 16)
    monkeypatch.setattr(_fori, "BLOCK_STEPS", 8)
    for one, other in zip(whole, _found(BODIES[name]), strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)


def _counting(x: Any) -> Any:
    return tr.fori_loop(0, _fori.LISTED_STEPS_MAX + 5, lambda i, c: c + 1.0, x)


def test_the_memory_of_a_loop_does_not_grow_with_its_steps() -> None:
    tr.fori_loop(0, 10, lambda i, c: c + 1.0, tr.ones(()))
    tracemalloc.start()
    try:
        assert float(_counting(tr.ones(()))) == _fori.LISTED_STEPS_MAX + 6
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 4 * _fori.LISTED_STEPS_MAX  # half of an array of all indices


def test_no_program_lists_the_indices_of_a_long_loop() -> None:
    program = tr.trace(_counting, tr.ones(()))
    assert str(_fori.LISTED_STEPS_MAX + 5) not in str(program)
    assert max([np.asarray(c).size for c in program.constants.values()], default=0) <= _fori.BLOCK_STEPS


def test_an_interrupt_ends_a_long_loop() -> None:
    with pytest.raises(KeyboardInterrupt), interrupt_after(0.3):
        tr.fori_loop(0, 10**12, lambda i, c: c + 1.0, tr.ones(()))
    assert float(tr.fori_loop(0, 3, lambda i, c: c + 1.0, tr.ones(()))) == 4.0


def test_errors_name_the_body_of_a_long_loop() -> None:
    def body(i: Any, c: Any) -> Any:
        return tr.astype(c, "float64")

    with pytest.raises(TypeError, match=r"body \(.*test_long_loops.py"):
        tr.fori_loop(0, 10**9, body, tr.asarray(1.0, dtype="float32"))


def nested(depth: int) -> Callable[[Any], Any]:
    if not depth:
        return lambda x: x + 1.0
    inner = nested(depth - 1)
    return lambda x: tr.cond(tr.sum(x) > depth, inner, lambda x: x * 2.0, x)


def test_branches_inside_branches_beyond_the_stack_are_refused() -> None:
    assert tr.compile(nested(40))(tr.ones(2)).tolist() == [2.0, 2.0]
    for _ in range(2):  # and the failed trace leaves nothing behind
        with pytest.raises(UnsupportedError, match=r"cond is inside of \d+ other branches or loops .*; write them as"):
            tr.compile(nested(300))(tr.ones(2))
    with pytest.raises(RecursionError):
        tr.compile(nested(300))(tr.ones(2))
