"""Policies of `checkpoint`: what is kept, what is computed again, and that no value changes."""

from collections import Counter
from typing import Any

import numpy as np
import pytest

import tenferro_runtime as tr
from tenferro_ad import checkpoint, checkpoint_name, checkpoint_policies, grad, hvp, jvp, variable, vjp
from tenferro_einsum import einsum
from tenferro_runtime.ir import inner_programs
from tenferro_tensor_core import ArgumentError

RNG = np.random.default_rng(3)
W = tr.asarray(RNG.random((4, 4)))
X = tr.asarray(RNG.random((4, 4)))
POLICIES: dict[str, Any] = {
    "none": None,
    "nothing": checkpoint_policies.save_nothing,
    "everything": checkpoint_policies.save_everything,
    "dots": checkpoint_policies.save_dots,
    "dots without batch": checkpoint_policies.save_dots_without_batch,
    "names": checkpoint_policies.save_names("hidden"),
    "other names": checkpoint_policies.save_all_names_but("hidden"),
    "dots and names": checkpoint_policies.save_any(
        checkpoint_policies.save_dots, checkpoint_policies.save_names("hidden")
    ),
    "own": lambda op: op.primitive.name == "exp",
}
AGAIN = {
    "none": "dot_general tanh exp sin",
    "nothing": "dot_general tanh exp sin",
    "everything": "",
    "dots": "tanh exp sin",
    "dots without batch": "tanh exp sin",
    "names": "dot_general exp sin",
    "other names": "tanh dot_general sin",
    "dots and names": "exp sin",
    "own": "dot_general tanh sin",
}
"""The operations that the backward pass computes again, of those that a policy may keep."""


def f(w, x):
    hidden = checkpoint_name(tr.tanh(w @ x), "hidden")
    other = checkpoint_name(tr.exp(tr.sin(hidden) @ w), "other")
    return tr.sum(tr.cos(other * hidden))


def steps(f, w):
    """A loop whose body is checkpointed."""
    return tr.scan(lambda c, x: (f(c * w, x) * w, None), w, tr.stack([X, W]))[0][0, 0]


def counted(program: Any) -> Counter[str]:
    found = Counter([eq.op.primitive.name for eq in program.equations])
    for eq in program.equations:
        for inner in inner_programs(eq.op.params):
            found += counted(inner)
    return found


@pytest.mark.parametrize("name", POLICIES)
def test_a_policy_changes_no_value(name) -> None:
    held = checkpoint(f, policy=POLICIES[name])
    transforms = {
        "grad": lambda f: grad(f, argnums=(0, 1))(W, X),
        "compiled": lambda f: tr.compile(grad(f, argnums=(0, 1)))(W, X),
        "of compiled": lambda f: grad(tr.compile(f), argnums=(0, 1))(W, X),
        "jvp": lambda f: jvp(f, (W, X), (X, W)),
        "hvp": lambda f: (hvp(lambda w: f(w, X), (W,), (X,)),),
        "twice": lambda f: (grad(lambda w, x: tr.sum(grad(f)(w, x) ** 2))(W, X),),
        "lanes": lambda f: (tr.vmap(grad(f))(tr.stack([W, X]), tr.stack([X, W])),),
        "in a scan": lambda f: (grad(lambda w: steps(f, w))(W),),
    }
    for label, transform in transforms.items():
        for got, wanted in zip(transform(held), transform(f), strict=True):
            np.testing.assert_allclose(np.asarray(got), np.asarray(wanted), rtol=1e-10, atol=1e-12, err_msg=label)


@pytest.mark.parametrize("name", POLICIES)
def test_what_is_kept_is_not_computed_again(name) -> None:
    def both(f):
        def run(w, x):
            value, pull = vjp(f, w, x)
            return value, *pull(tr.ones_like(value))

        return counted(tr.Runtime().optimise(tr.trace(run, W, X)))

    again = both(checkpoint(f, policy=POLICIES[name])) - both(f)
    watched = {"dot_general", "tanh", "exp", "sin"}
    assert watched & set(again) == set(AGAIN[name].split())


def test_kept_values_are_in_the_graph() -> None:
    for name, count in (("none", 2), ("names", 3), ("dots", 4), ("dots and names", 5)):
        y = checkpoint(f, policy=POLICIES[name])(W, variable(X))
        (node,) = y.node.parents
        assert len(node.saved) == count


def test_contractions_are_dots() -> None:
    g = lambda w, x: tr.sum(tr.exp(einsum("ij,jk,kl->il", w, x, w)))
    held = checkpoint(g, policy=checkpoint_policies.save_dots)
    np.testing.assert_allclose(grad(held)(W, X).numpy(), grad(g)(W, X).numpy(), rtol=1e-12)
    (node,) = held(W, variable(X)).node.parents  # type: ignore[attr-defined]
    assert len(node.saved) == 3


def test_sizes_that_depend_on_data() -> None:
    g = lambda x: tr.sum(checkpoint_name(tr.compress(x, x > 0), "positive") ** 2)
    held = checkpoint(g, policy=checkpoint_policies.save_names("positive"))
    x = tr.asarray([1.0, -2.0, 3.0])
    for derivative in (grad(held), tr.compile(grad(held))):
        np.testing.assert_array_equal(derivative(x).numpy(), [2.0, 0.0, 6.0])


def test_a_policy_is_a_function_and_a_name_a_text() -> None:
    wrong: Any = "dots"
    with pytest.raises(ArgumentError, match="takes a function of an operation as its policy, got 'dots'"):
        checkpoint(f, policy=wrong)
    wrong = 3
    with pytest.raises(ArgumentError, match="takes a string as its name, got 3"):
        checkpoint_name(X, wrong)
