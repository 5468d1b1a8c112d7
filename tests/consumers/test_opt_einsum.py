"""opt_einsum on tensors: by its default backend, which is what it finds in the package of the tensors' class."""

from functools import partial
from typing import Any

import numpy as np
import opt_einsum as oe
import pytest

import tenferro_runtime as tr
from tenferro_ad import EagerTensor, grad, hessian, value_and_grad, variable

RNG = np.random.default_rng(5)
TRIANGLE = [RNG.normal(size=shape) for shape in ((3, 4), (4, 5), (5, 3))]
TENSORS = [tr.asarray(x) for x in TRIANGLE]


@pytest.mark.parametrize(
    ("subscripts", "shapes"),
    [
        ("ij,jk->ik", [(3, 4), (4, 5)]),
        ("ij,jk->ki", [(3, 4), (4, 5)]),
        ("ij,jk,kl,lm->im", [(3, 4), (4, 5), (5, 2), (2, 6)]),
        ("bij,bjk->bik", [(2, 3, 4), (2, 4, 5)]),
        ("ii->i", [(4, 4)]),
        ("ij,i->", [(3, 4), (3,)]),
        ("i,i,i->i", [(3,), (3,), (3,)]),
        ("...ij,...j->...i", [(2, 3, 4), (2, 4)]),
        (",ij->ij", [(), (2, 2)]),
    ],
)
def test_contractions_return_tensors(subscripts: str, shapes: list[tuple[int, ...]]) -> None:
    arrays = [RNG.normal(size=shape) for shape in shapes]
    out = oe.contract(subscripts, *map(tr.asarray, arrays))
    assert type(out) is tr.Tensor
    np.testing.assert_allclose(np.asarray(out), oe.contract(subscripts, *arrays), atol=1e-13)


def cycle(*matrices: Any) -> Any:
    return oe.contract("ij,jk,ki->", *matrices)


def test_gradients_pass_in_every_mode() -> None:
    x, y, z = TRIANGLE
    expected = [(y @ z).T, (z @ x).T, (x @ y).T]
    for of in (grad(cycle, (0, 1, 2)), tr.compile(grad(cycle, (0, 1, 2)))):
        for g, e in zip(of(*TENSORS), expected, strict=True):
            np.testing.assert_allclose(np.asarray(g), e, atol=1e-13)
    recorded = [variable(t) for t in TRIANGLE]
    out = cycle(*recorded)
    assert isinstance(out, EagerTensor)
    out.backward()
    np.testing.assert_allclose(np.asarray(recorded[1].grad), expected[1], atol=1e-13)
    assert hessian(lambda v: oe.contract("i,ij,j->", v, tr.ones((3, 3)), v))(tr.ones(3)).shape == (3, 3)


def test_one_differentiated_operand_suffices_wherever_it_stands() -> None:
    x, y, z = TRIANGLE
    for k, expected in enumerate([(y @ z).T, (z @ x).T, (x @ y).T]):
        others: list[Any] = [x, TENSORS[1], z]  # arrays of NumPy beside tensors

        def loss(t: Any, k: int = k, others: list[Any] = others) -> Any:
            return cycle(*others[:k], t, *others[k + 1 :])

        np.testing.assert_allclose(np.asarray(grad(loss)(TENSORS[k])), expected, atol=1e-13)


def test_expressions_with_constants_keep_gradients() -> None:
    x, y, z = TRIANGLE
    closed = oe.contract_expression("ij,jk,ki->", x.shape, TENSORS[1], z.shape, constants=[1])
    value, (gx, gz) = value_and_grad(closed, (0, 1))(TENSORS[0], TENSORS[2])
    assert value.item() == pytest.approx(np.trace(x @ y @ z))
    np.testing.assert_allclose(np.asarray(gx), (y @ z).T, atol=1e-13)
    np.testing.assert_allclose(np.asarray(gz), (x @ y).T, atol=1e-13)
    opened = oe.contract_expression("ij,jk,ki->", x.shape, y.shape, z.shape, optimize="optimal")
    np.testing.assert_allclose(np.asarray(tr.compile(grad(opened))(*TENSORS)), (y @ z).T, atol=1e-13)


def test_shared_intermediates_are_computed_once_and_differentiated() -> None:
    x, y, z = TENSORS

    def loss(x: Any) -> Any:
        with oe.shared_intermediates() as cache:
            parts = [oe.contract("ij,jk,kl->il", x, y, z)[0, 0], oe.contract("ij,jk,kl->l", x, y, z)[0]]
            assert cache
        return parts[0] + parts[1]

    plain = lambda x: (x @ y @ z)[0, 0] + tr.sum(x @ y @ z, axis=0)[0]
    np.testing.assert_allclose(np.asarray(grad(loss)(x)), np.asarray(grad(plain)(x)), atol=1e-13)


def test_paths_and_batches() -> None:
    path, info = oe.contract_path("ij,jk,ki->", *TENSORS)
    assert len(path) == 2 and info.largest_intermediate > 1
    stacks = [tr.stack([t, 2 * t]) for t in TENSORS[:1]]
    lanes = tr.vmap(partial(lambda y, z, x: cycle(x, y, z), TENSORS[1], TENSORS[2]))(*stacks)
    one = cycle(*TENSORS).item()
    np.testing.assert_allclose(np.asarray(lanes), [one, 2 * one])
