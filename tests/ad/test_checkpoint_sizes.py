"""`checkpoint` over operations whose results have sizes that depend on data, under every transform."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tenferro_runtime as tr
from tenferro_ad import (
    check_grads,
    checkpoint,
    grad,
    hessian,
    hvp,
    jacfwd,
    jacrev,
    jvp,
    linearize,
    no_grad,
    value_and_grad,
    variable,
    vjp,
)


def _count(mask: Any) -> Any:
    return tr.sum(tr.astype(mask, tr.int64))


def _again(y: Any) -> Any:
    return tr.compress(tr.exp(y), y > 0)


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "compress": lambda x: tr.sum(tr.compress(x, x > 0) ** 3),
    "compress rows": lambda x: tr.sum(tr.sin(tr.compress(tr.reshape(x, (-1, 1)) * x, x > 0, axis=0))),
    "compress twice": lambda x: tr.sum(_again(tr.compress(x, x > -1)) ** 2),
    "truncate": lambda x: tr.sum(tr.truncate(tr.exp(x), _count(x > 0)) * x[0]),
    "two outputs": lambda x: tr.sum(tr.compress(x, x > 0) ** 2) * tr.sum(tr.truncate(x, _count(x > 1)) ** 2),
    "padded again": lambda x: tr.sum((tr.zeros(x.shape[0]) + tr.sum(tr.compress(x, x > 0))) * x),
    "norm": lambda x: tr.linalg.vector_norm(tr.compress(x, x > 0)) + tr.sum(tr.compress(tr.cos(x), x > 0)),
    "product": lambda x: (lambda y: y @ tr.exp(y))(tr.compress(x, x > 0)),
    "inside of scan": lambda x: tr.scan(lambda c, v: (c * v + v, None), x[0] * 1.0, tr.compress(x, x > 0))[0],
}
X = np.array([1.5, -2.0, 3.0, 0.5, -0.25, 2.5])
T = np.array([0.5, 1.0, -1.0, 2.0, 0.25, -0.5])


def _out(x: Any) -> list[Any]:
    return [np.asarray(v) for v in (x if isinstance(x, (tuple, list)) else [x])]


def _pulled(f: Any, x: Any) -> Any:
    value, pull = vjp(f, x)
    return value, *pull(tr.ones_like(value)), *pull(tr.ones_like(value) * 2)


def _pushed(f: Any, x: Any) -> Any:
    value, push = linearize(f, x)
    return value, push(tr.asarray(T)), push(tr.asarray(X))


def _swept(f: Any, x: Any) -> Any:
    w = variable(x)
    f(w * 1.0).backward()
    return w.grad


def _quiet(f: Any, x: Any) -> Any:
    def loss(y: Any) -> Any:
        with no_grad():
            weight = f(y)
        return tr.sum(y * weight)

    return grad(loss)(x)


TRANSFORMS: dict[str, Callable[[Any, Any], Any]] = {
    "value": lambda f, x: f(x),
    "grad": lambda f, x: grad(f)(x),
    "value_and_grad": lambda f, x: value_and_grad(f)(x),
    "vjp": _pulled,
    "backward": _swept,
    "jvp": lambda f, x: jvp(f, (x,), (tr.asarray(T),)),
    "linearize": _pushed,
    "jacrev": lambda f, x: jacrev(f)(x),
    "jacfwd": lambda f, x: jacfwd(f)(x),
    "hvp": lambda f, x: hvp(f, (x,), (tr.asarray(T),)),
    "hessian": lambda f, x: hessian(f)(x),
    "grad of grad": lambda f, x: grad(lambda y: tr.sum(grad(f)(y) ** 2))(x),
    "grad of jvp": lambda f, x: grad(lambda y: jvp(f, (y,), (tr.asarray(T),))[1])(x),
    "jvp of grad": lambda f, x: jvp(grad(f), (x,), (tr.asarray(T),)),
    "no_grad": _quiet,
    "compiled": lambda f, x: tr.compile(f)(x),
    "compiled grad": lambda f, x: tr.compile(grad(f))(x),
    "grad of compiled": lambda f, x: grad(tr.compile(f))(x),
    "compiled grad of grad": lambda f, x: tr.compile(grad(lambda y: tr.sum(grad(f)(y) ** 2)))(x),
    "twice checkpointed": lambda f, x: grad(checkpoint(lambda y: checkpoint(f)(y * 1.0) * 2.0))(x),
    "of an outer value": lambda f, x: grad(lambda a: checkpoint(lambda b: f(x * a * b))(a * 1.0))(tr.asarray(1.25)),
}


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_checkpoint_changes_no_result(name: str, transform: str) -> None:
    f, run = FUNCTIONS[name], TRANSFORMS[transform]
    held = checkpoint(f)
    turn = [*TRANSFORMS].index(transform) % 2
    for x in (X, -X, X[::-1].copy(), np.abs(X))[turn::2]:  # other sizes, one trace
        if name in ("norm", "truncate", "two outputs") and not (x > 1).any():
            continue
        want, got = run(f, tr.asarray(x)), run(held, tr.asarray(x))
        for a, b in zip(_out(got), _out(want), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_checkpoints_agree_with_differences(name: str) -> None:
    check_grads(checkpoint(FUNCTIONS[name]), (tr.asarray(X),), order=2)


def test_values_inside_are_not_kept() -> None:
    """The graph of a checkpoint holds its arguments, whatever their sizes become inside."""
    x = variable(X)
    y = checkpoint(lambda v: tr.sum(tr.exp(tr.compress(tr.sin(v), v > 0))))(x)
    nodes, kept = [y.node], []  # type: ignore[attr-defined]
    while nodes:
        node = nodes.pop()
        nodes += node.parents
        kept += [v for v in (node.saved or ()) if hasattr(v, "spec")]
    assert [v.spec for v in kept] == [x.spec]


def test_outputs_without_derivative_stay_constants() -> None:
    def parts(x: Any) -> Any:
        found = tr.compress(x, x > 0)
        return tr.sum(found**2), tr.sum(tr.astype(found > 1, tr.float64))

    def loss(x: Any) -> Any:
        a, b = checkpoint(parts)(x)
        assert not b.requires_grad
        return a * b

    np.testing.assert_allclose(np.asarray(grad(loss)(tr.asarray(X))), np.where(X > 0, 2 * X, 0) * (X > 1).sum())
