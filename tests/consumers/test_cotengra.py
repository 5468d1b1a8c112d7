"""cotengra on tensors: its contractions along searched and sliced paths, with gradients and compiled."""

from typing import Any

import cotengra as ctg
import numpy as np
import pytest

import tenferro_runtime as tr
from tenferro_ad import EagerTensor, grad, variable

RNG = np.random.default_rng(7)
INPUTS = [("a", "b"), ("b", "c", "d"), ("d", "e"), ("e", "a", "f")]
OUTPUT = ("c", "f")
SIZES = dict(zip("abcdef", (3, 4, 5, 2, 6, 3)))
ARRAYS = [RNG.normal(size=[SIZES[i] for i in term]) for term in INPUTS]
TENSORS = [tr.asarray(x) for x in ARRAYS]
SEARCH = ctg.HyperOptimizer(methods=["greedy"], max_repeats=4, parallel=False)
EXPECTED = np.einsum("ab,bcd,de,eaf->cf", *ARRAYS)


@pytest.mark.parametrize("optimize", ["greedy", "optimal", ((0, 1), (0, 1), (0, 1))])
def test_contractions_along_any_path(optimize: Any) -> None:
    out = ctg.array_contract(TENSORS, INPUTS, OUTPUT, optimize=optimize)
    assert type(out) is tr.Tensor
    np.testing.assert_allclose(np.asarray(out), EXPECTED)
    np.testing.assert_allclose(np.asarray(ctg.einsum("ab,bcd,de,eaf->cf", *TENSORS, optimize=optimize)), EXPECTED)


@pytest.mark.parametrize("strip", [False, True])
def test_expressions_differentiate_and_compile(strip: bool) -> None:
    shapes = [x.shape for x in ARRAYS]
    expression = ctg.array_contract_expression(INPUTS, (), shapes=shapes, optimize="greedy", strip_exponent=strip)

    def total(*arrays: Any) -> Any:
        if not strip:
            return expression(*arrays)
        mantissa, exponent = expression(*arrays)
        return mantissa * 10.0**exponent

    gradient = np.einsum("bcd,de,eaf->ab", *ARRAYS[1:])
    for of in (grad(total), tr.compile(grad(total))):
        np.testing.assert_allclose(np.asarray(of(*TENSORS)), gradient, rtol=1e-12)
    assert isinstance(total(variable(ARRAYS[0]), *TENSORS[1:]), EagerTensor)


def test_sliced_contractions_add_up_with_their_gradient() -> None:
    tree = ctg.array_contract_tree(INPUTS, OUTPUT, SIZES, optimize="greedy").slice(target_slices=4)
    assert tree.nslices >= 4
    np.testing.assert_allclose(np.asarray(tree.contract(TENSORS)), EXPECTED)
    loss = lambda x: tr.sum(tree.contract([x, *TENSORS[1:]]) ** 2)
    expected = 2 * np.einsum("cf,bcd,de,eaf->ab", EXPECTED, *ARRAYS[1:])
    for of in (grad(loss), tr.compile(grad(loss))):
        np.testing.assert_allclose(np.asarray(of(TENSORS[0])), expected, rtol=1e-11)


def test_lattices_with_hyper_indices() -> None:
    inputs, output, _, sizes = ctg.utils.lattice_equation([3, 3], d_min=2, d_max=2, seed=0)
    arrays = [RNG.normal(size=[sizes[i] for i in term]) for term in inputs]
    tree = ctg.array_contract_tree(inputs, output, sizes, optimize=SEARCH)
    assert tree.contract([tr.asarray(x) for x in arrays]).item() == pytest.approx(float(tree.contract(arrays)))
    hyper = [("x", "a"), ("x", "b"), ("x", "c"), ("a", "b", "c")]
    arrays = [RNG.normal(size=(2,) * len(term)) for term in hyper]
    found = ctg.array_contract([tr.asarray(x) for x in arrays], hyper, (), optimize="greedy")
    assert found.item() == pytest.approx(np.einsum("xa,xb,xc,abc->", *arrays))
