"""Primitives of strangers under `vmap`, with a batching rule and without, and what `explain` says of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tenferro_ad as ad
import tenferro_runtime as tr
from tenferro_runtime.batching import how_batched, on_stacks
from tenferro_runtime.extension import REGISTRY, Linear, RegistryError, Spec, primitive

X = np.arange(12.0).reshape(3, 4)


@primitive(family="tenferro-tests.mirrored.v1")
def mirrored(x: Spec, *, twice: bool) -> Spec:
    """A vector backwards, or twice backwards."""
    return x


@primitive
def last_entries(x: Spec, size: Spec) -> tuple[Spec, Spec]:
    """The last entry of a vector and a number, for a primitive with several outputs."""
    return x.with_(shape=()), size


@pytest.fixture(autouse=True, scope="module")
def registered() -> Iterator[None]:
    made = [
        REGISTRY.kernel(mirrored, "*", lambda ins, outs, *, twice: lambda x: (x if twice else x[..., ::-1]).copy()),
        REGISTRY.rule(mirrored, Linear(x=lambda g, twice: mirrored(g, twice=twice))),
        REGISTRY.kernel(last_entries, "*", lambda ins, outs: lambda x, n: (x[-1].copy(), n.copy())),
    ]
    yield
    for entry in made:
        entry.undo()


def f(x: Any) -> Any:
    return mirrored(x, twice=False)


def lines(explanation: Any) -> list[str]:
    """Names of the steps that take one lane after the other."""
    return [step.primitive for step in explanation.steps if step.where.endswith("lane by lane")]


def test_without_a_rule_it_takes_one_lane_after_the_other() -> None:
    assert how_batched(mirrored) == "lane by lane"
    np.testing.assert_array_equal(np.asarray(tr.vmap(f)(X)), X[:, ::-1])
    g = tr.compile(tr.vmap(f))
    np.testing.assert_array_equal(np.asarray(g(X)), X[:, ::-1])
    assert lines(g.explain(X)) == ["scan"]
    assert "test_lane_by_lane.py" in str(g.explain(X))


def test_derivatives_say_so_too() -> None:
    g = tr.compile(ad.grad(lambda x: tr.sum(tr.vmap(lambda x: tr.sin(f(x)))(x))))
    np.testing.assert_allclose(np.asarray(g(X)), np.cos(X))
    assert set(lines(g.explain(X))) == {"scan"}


def test_nested_batches_say_so_once() -> None:
    x = np.stack([X, 2 * X])
    g = tr.compile(tr.vmap(tr.vmap(f)))
    np.testing.assert_array_equal(np.asarray(g(x)), x[..., ::-1])
    explanation = g.explain(x)
    assert "scan" in lines(explanation)
    assert "lane by lane, lane by lane" not in str(explanation)


def test_what_was_asked_to_be_a_loop_does_not() -> None:
    g = tr.compile(lambda x: tr.map(f, x))
    g(X)
    assert lines(g.explain(X)) == []


def test_saved_programs_say_so(tmp_path: Path) -> None:
    g = tr.compile(tr.vmap(f))
    g(X)
    g.save(tmp_path / "mirrored.tfp", X)
    loaded = tr.load(tmp_path / "mirrored.tfp")
    np.testing.assert_array_equal(np.asarray(loaded(X)), X[:, ::-1])
    assert "lane by lane" in loaded.program.equations[0].where


def test_several_outputs_and_a_shared_operand() -> None:
    last, sizes = tr.vmap(last_entries, (0, None))(X, tr.asarray(2.0))
    np.testing.assert_array_equal(np.asarray(last), X[:, -1])
    np.testing.assert_array_equal(np.asarray(sizes), [2.0, 2.0, 2.0])


def test_a_rule_is_used_as_soon_as_it_is_registered() -> None:
    seen = []

    def rule(size: Any, values: Any, batched: Any, /, *, twice: bool) -> Any:
        seen.append((size, batched))
        return mirrored(*values, twice=twice)

    before = tr.compile(tr.vmap(f))
    before(X)
    made = REGISTRY.batching(mirrored, rule)
    try:
        assert how_batched(mirrored) == "rule"
        np.testing.assert_array_equal(np.asarray(tr.vmap(f)(X)), X[:, ::-1])
        assert seen == [(3, (True,))]
        g = tr.compile(tr.vmap(f))
        np.testing.assert_array_equal(np.asarray(g(X)), X[:, ::-1])
        assert lines(g.explain(X)) == []
        np.testing.assert_array_equal(np.asarray(before(X)), X[:, ::-1])
    finally:
        made.undo()
    assert how_batched(mirrored) == "lane by lane"


def test_a_rule_of_another_form_is_refused() -> None:
    with pytest.raises(
        RegistryError, match=r"the batching of mirrored is called with \(size, values, batched, twice\)"
    ):
        REGISTRY.batching(mirrored, lambda size, values: values)


def test_rules_of_common_kinds_take_metadata_of_any_name() -> None:
    @primitive
    def scaled(x: Spec, *, size: int, values: int, batched: bool) -> Spec:
        return x

    REGISTRY.kernel(scaled, "*", lambda ins, outs, **names: lambda x: x * names["size"])
    REGISTRY.batching(scaled, on_stacks(scaled))
    found = tr.vmap(lambda x: scaled(x, size=2, values=0, batched=True))(X)
    np.testing.assert_array_equal(np.asarray(found), 2 * X)
