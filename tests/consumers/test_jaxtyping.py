"""Shapes and dtypes in annotations, checked by jaxtyping and beartype."""

from typing import Any

import pytest
from beartype import beartype
from jaxtyping import Bool, Float, Int, TypeCheckError, jaxtyped

import tenferro_runtime as tr
from tenferro_ad import grad, variable
from tenferro_tensor import Array


@jaxtyped(typechecker=beartype)
def scaled(x: Float[Array, " n"], w: Float[Array, "n m"], mask: Bool[Array, " m"]) -> Float[Array, " m"]:
    return tr.where(mask, x @ w, 0.0)


X, W, MASK = tr.ones(3), tr.ones((3, 2)), tr.asarray([True, False])


def test_annotations_hold_for_every_kind_of_value():
    assert scaled(X, W, MASK).tolist() == tr.compile(scaled)(X, W, MASK).tolist() == [3.0, 0.0]
    assert grad(lambda x: scaled(x, W, MASK).sum())(X).tolist() == [1.0, 1.0, 1.0]
    assert tr.vmap(scaled, (0, None, None))(tr.ones((4, 3)), W, MASK).shape == (4, 2)
    kinds: Any = (Float[Array, "3"], Int[tr.Tensor, " n"], Float[Array, "n n"])
    assert isinstance(variable(X), kinds[0]) and isinstance(tr.arange(3), kinds[1])
    assert not isinstance(X, kinds[1]) and not isinstance(W, kinds[2])


@pytest.mark.parametrize("args", [(X, tr.ones((2, 2)), MASK), (X, W, X), (tr.arange(3), W, MASK)])
def test_what_does_not_fit_is_refused(args):
    with pytest.raises(TypeCheckError):
        scaled(*args)
