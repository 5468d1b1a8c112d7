"""Why one program takes longer than another one: what is said does not depend on how long anything took."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tenferro_einsum as te
import tenferro_runtime as tr
from markup_pages import alone
from tenferro_tensor_core import ArgumentError

X = np.linspace(0.1, 1.0, 2000)
M = np.eye(30)


def compared(old: Any, new: Any, *args: Any) -> dict[str, str]:
    """What the second one does beyond the first, by kind; comparing the other way round, it is what is saved."""
    found = tr.compare(old, new, *args, repeat=1)
    alone(found._repr_html_())
    assert {d.kind for d in tr.compare(new, old, *args, repeat=1).savings} == {d.kind for d in found.costs}
    return {d.kind: d.text for d in found.costs}


def loop(x: Any) -> Any:
    return tr.scan(lambda c, y: (tr.exp(-c) * y, None), 0.0, x)[0]


def chain(x: Any) -> Any:
    return tr.sum(tr.exp(-x) * x + 1)


def here(text: str) -> str:
    """The file and line of this module with a text."""
    lines = Path(__file__).read_text("utf-8").splitlines()
    return f"{Path(__file__).name}:{1 + next(i for i, line in enumerate(lines) if text in line)}"


def test_equal_functions_differ_in_nothing() -> None:
    f, g = tr.compile(chain), tr.compile(lambda x: tr.sum(tr.exp(-x) * x + 1))
    found = tr.compare(f, g, X, repeat=1)
    assert found.costs == found.savings == () and "does nothing that explains it" in found.sentence
    assert all(a is not None and b is not None and a.cost.primitive == b.cost.primitive for a, b in found.steps)


def test_a_lost_fusion_in_a_native_function() -> None:
    found = compared(tr.compile(chain), tr.compile(lambda x: tr.sum(tr.cumsum(tr.exp(-x)) * x + 1)), X)
    assert found["fusion"] == "passes over memory in 2 loop nests instead of 1: fewer steps are fused"
    assert set(found) <= {"fusion", "step", "operations"}


def test_a_lost_fusion_of_steps() -> None:
    with tr.Runtime(fusion=False, deterministic=True):
        single = tr.compile(chain)
    found = compared(tr.compile(chain, deterministic=True), single, X)
    assert list(found) == ["fusion"]
    line = here("return tr.sum(tr.exp(-x) * x + 1)")
    assert found["fusion"] == f"runs mul, add at {line} as steps of their own, which the other has fused"


def test_a_loop_that_left_the_native_path() -> None:
    found = compared(tr.compile(loop), tr.compile(loop, deterministic=True), X)
    assert found["native"].startswith("does not run as one native function: it runs step by step: ")


def test_a_function_that_is_not_compiled() -> None:
    found = compared(tr.compile(chain), chain, X)
    assert found == {"native": "does not run as one native function: it is not compiled as a whole"}


def test_a_changed_dtype() -> None:
    ones = np.ones(X.size)
    new = tr.compile(lambda x: tr.sum(tr.exp(-x) * ones + 1))
    found = compared(tr.compile(lambda x: tr.sum(tr.exp(-x) * ones.astype("f4") + 1)), new, X.astype("f4"))
    line = here("new = tr.compile(lambda x: tr.sum(tr.exp(-x) * ones + 1))")
    text = (
        f"computes with float64 instead of float32 from mul at {line} on, in 3 steps, which move 2 times as many bytes"
    )
    assert found["dtype"] == text and "convert at" in found["copy"]


def test_an_added_copy() -> None:
    found = compared(tr.compile(chain), tr.compile(lambda x: chain(tr.roll(x, 1))), X)
    assert found["copy"].startswith("copies 1 time more, 32 kB in all: concatenate at test_comparisons.py:")


def test_a_view_that_became_a_copy() -> None:
    old = tr.compile(lambda x: tr.reshape(x, (30, 10, 3)) * 2)
    found = compared(old, tr.compile(lambda x: tr.reshape(x.T, (30, 10, 3)) * 2), M)
    assert found["copy"].startswith("copies 1 time more, 14.4 kB in all: reshape at")


def test_a_bad_contraction_order() -> None:
    good = lambda a, b, x: te.einsum("ij,jk,k->i", a, b, x)
    bad = lambda a, b, x: te.einsum("ij,jk,k->i", a, b, x, optimize=[(0, 1), (0, 1)])
    for wrap in (lambda f: f, tr.compile):
        found = compared(wrap(good), wrap(bad), M, M, M[0])
        line = here("optimize=[(0, 1), (0, 1)])")
        assert found["contraction"].startswith("computes 15.5 times as much in its contractions, 55.8 kflop instead of")
        assert f"at {line}; another order of the operands is cheaper" in found["contraction"]


def test_a_retrace_for_each_call() -> None:
    def anew(x: Any) -> Any:
        return tr.compile(lambda x: x * 2 + 1)(x)

    found = compared(lambda x: x * 2 + 1, anew, X)
    assert found == {"retrace": "compiles a function anew in each call; keep the compiled function"}
    assert tr.compare(anew, anew, X, repeat=2).new.traces == 1


def test_calls_back_into_python() -> None:
    def chatty(x: Any) -> Any:
        def step(c: Any, y: Any) -> Any:
            tr.debug_callback(lambda c: None, c)
            return tr.exp(-c) * y, None

        return tr.scan(step, 0.0, x)[0]

    found = compared(tr.compile(loop), tr.compile(chatty), X[:20])
    line = here("tr.debug_callback(lambda c: None, c)")
    assert found == {"callback": f"calls back into Python 20 times more: debug_callback at {line}"}


def test_programs_are_compared_too_and_passes_that_did_less_are_named() -> None:
    old, new = (tr.trace(f, X) for f in (tr.sin, lambda x: tr.sin(tr.sin(x))))
    found = tr.compare(old, new, X, repeat=1)
    assert [d.kind for d in found.costs] == ["step", "operations"] or {d.kind for d in found.costs} == {
        "step",
        "operations",
    }
    twice = tr.compile(lambda x: tr.exp(x) * tr.exp(x))
    shown = str(tr.compare(tr.compile(lambda x: tr.exp(x) * x), twice, X, repeat=1))
    assert "pass share_common_subexpressions" in shown and "3 to 2 steps" in shown


def test_the_arguments_are_checked() -> None:
    with pytest.raises(ArgumentError, match="compare measures at least one call, got repeat=0"):
        tr.compare(chain, chain, X, repeat=0)
