"""Each condition of the law of writing in place is needed: without it small programs go wrong, which checks show."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tenferro_runtime as tr
from runtime_rooms import by_steps
from tenferro_runtime.ir import _reuse
from tenferro_runtime.passes import optimise
from tenferro_tensor.checked import CHECKED_VARIABLE
from tiers import leaves

X = tr.asarray(np.random.default_rng(0).standard_normal((4, 4)))


def captured(a):
    v = a * 2.0 - a * 0.5
    return tr.fori_loop(0, 4, lambda i, c: c.at[i % 4].add(v[(i + 1) % 4] * 0.5), v)


def returned(a):
    v = a * 2.0 - a * 0.5
    return v.at[0].set(1.0), v


def viewed(a):
    v = a * 2.0 - a * 0.5
    return v.at[0].set(1.0), v.T


def by_its_transpose(a):
    v = a * 2.0 - a * 0.5
    return tr.dynamic_update_slice(v, v.T, (0, 0))


def argument(a):
    return a.at[0].set(1.0)


def law(*, owned: bool = True, dead: bool = True, alone: bool = True) -> Callable[..., bool]:
    """The law without some of its conditions."""

    def found(eq: Any, v: int, **facts: bool) -> bool:
        once = not facts["shared"] and (eq.op.primitive.elementwise or eq.operands.count(v) == 1)
        return (not owned or facts["owned"]) and (not dead or facts["dead"]) and (not alone or once)

    return found


PLANTED: dict[str, tuple[Callable[[Any], Any], Callable[..., bool]]] = {
    "a loop captures its initial value": (captured, law(alone=False)),
    "an update is read from a view of the same array": (by_its_transpose, law(alone=False)),
    "the old array is returned": (returned, law(dead=False)),
    "a view of the old array is returned": (viewed, law(dead=False)),
}


def steps(f: Callable[[Any], Any]) -> list[np.ndarray[Any, Any]]:
    return leaves(by_steps(optimise(tr.trace(f, X)))(np.array(X)))


@pytest.mark.parametrize("case", PLANTED)
@pytest.mark.parametrize("checked", [False, True])
def test_without_a_condition_results_are_wrong(case, checked, monkeypatch):
    f, planted = PLANTED[case]
    if checked:
        monkeypatch.setenv(CHECKED_VARIABLE, "1")
    want = leaves(f(X))
    for got, w in zip(steps(f), want, strict=True):
        np.testing.assert_allclose(got, w, atol=1e-12)
    monkeypatch.setattr(_reuse, "may_overwrite", planted)
    wrong = [got for got, w in zip(steps(f), want, strict=True) if not np.allclose(got, w)]
    # NumPy copies an update that overlaps the array it is assigned to, so that only the check shows it.
    assert wrong or (f is by_its_transpose and not checked)
    assert not checked or any(np.isnan(got).any() for got in wrong)


def test_an_argument_is_not_owned(monkeypatch):
    monkeypatch.setattr(_reuse, "may_overwrite", law(owned=False))
    before = np.array(X)
    program, raw = optimise(tr.trace(argument, X)), np.array(X)
    by_steps(program)(raw)
    assert not np.array_equal(raw, before)
    monkeypatch.undo()
    raw = np.array(X)
    by_steps(optimise(tr.trace(argument, X)))(raw)
    assert np.array_equal(raw, before)
