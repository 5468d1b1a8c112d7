"""Patterns and values of sparse Jacobians on random programs, against dense ones."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

import tenferro_runtime as tr
from random_programs import Random, random_functions
from random_structures import applied, random_structures
from tenferro_ad import hessian, jacfwd, sparse_hessian, sparse_jacobian, sparsity
from tenferro_ad.sparse import _patterns
from tenferro_tensor_core import GradientError, UnsupportedError
from thorough import tries


def _differentiable(f: Random) -> list[int]:
    return [i for i, x in enumerate(f.inputs) if x.spec.inexact]


def _chosen(f: Random, outputs: list[int]) -> Any:
    return lambda *xs: tuple(f(*xs)[k] for k in outputs)


@pytest.mark.parametrize("least_open", [2, 16])
@settings(max_examples=tries(50, 150))
@given(f=random_functions())
def test_pattern_holds_every_nonzero(least_open: int, f: Random) -> None:
    """Each nonzero entry of a dense Jacobian is in the pattern, read for numbers and for sizes that are left open."""
    argnums = _differentiable(f)
    outs = f(*f.inputs)
    outputs = [k for k, out in enumerate(outs) if out.spec.inexact]
    if not argnums or not outputs:
        return
    g = _chosen(f, outputs)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_patterns, "SYMBOLIC_MIN", least_open)
        found = sparsity(g, *f.inputs, argnums=tuple(argnums))
        for j, n in enumerate(argnums):
            kinds = {(outs[k].spec.cplx, f.inputs[n].spec.cplx) for k in outputs}
            if (True, True) in kinds:
                continue
            with np.errstate(all="ignore"):
                dense = jacfwd(g, n)(*f.inputs)
            for k, block in enumerate(dense):
                pattern = found[k][j].matrix().toarray()
                nonzero = block.numpy().reshape(pattern.shape) != 0
                assert not np.any(nonzero & ~pattern), (f, j, k)


@pytest.mark.parametrize("mode", ["auto", "columns", "rows", "both"])
@settings(max_examples=tries(12, 60))
@given(f=random_functions())
def test_values_are_those_of_a_dense_jacobian(mode: str, f: Random) -> None:
    argnums = tuple(_differentiable(f))
    outputs = [k for k, out in enumerate(f(*f.inputs)) if out.spec.inexact]
    if not argnums or not outputs:
        return
    g = _chosen(f, outputs)
    try:
        with np.errstate(all="ignore"):
            dense = jacfwd(g, argnums)(*f.inputs)
    except (GradientError, UnsupportedError):
        with pytest.raises((GradientError, UnsupportedError)):
            sparse_jacobian(g, argnums, mode=mode)(*f.inputs)
        return
    with np.errstate(all="ignore"):
        found = sparse_jacobian(g, argnums, mode=mode)(*f.inputs)
    for row, expected in zip(found, dense, strict=True):
        for block, entries in zip(row, expected, strict=True):
            np.testing.assert_allclose(
                block.toarray(), entries.numpy().reshape(block.shape), rtol=1e-5, atol=1e-7, equal_nan=True
            )


@pytest.mark.parametrize("least_open", [2, 3, 16])
@settings(max_examples=tries(16, 120))
@given(case=random_structures())
def test_pattern_of_moved_elements(least_open: int, case: tuple[tuple[str, ...], np.ndarray[Any, Any]]) -> None:
    """Slices, positions, joins, loops and branches in any order, for numbers and for open sizes."""
    names, x = case
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_patterns, "SYMBOLIC_MIN", least_open)
        pattern = sparsity(lambda u: applied(names, u), x).matrix().toarray()
        nonzero = jacfwd(lambda u: applied(names, u))(x).numpy().reshape(pattern.shape) != 0
        assert not np.any(nonzero & ~pattern), names


@settings(max_examples=tries(20, 60))
@given(case=random_structures())
def test_hessian_of_moved_elements(case: tuple[tuple[str, ...], np.ndarray[Any, Any]]) -> None:
    names, x = case

    def f(u: Any) -> Any:
        return tr.sum(tr.sin(applied(names, u)))

    found, expected = sparse_hessian(f)(x), hessian(f)(x).numpy()
    np.testing.assert_allclose(found.toarray(), expected.reshape(found.shape), rtol=1e-9, atol=1e-12)
