"""How linear algebra, Fourier transforms and contractions are batched, and what their errors say of a lane."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tenferro_ad as ad
import tenferro_einsum as te
import tenferro_fft as tf
import tenferro_linalg as tl
import tenferro_runtime as tr
from open_cases import CASES
from tenferro_einsum._batching import labelled_graph
from tenferro_einsum._contract import contract
from tenferro_einsum._contractions import contractions
from tenferro_runtime.batching import how_batched, inner_array
from tenferro_runtime.extension import NumericalError

LANES = 5


def numbers(seed: int, *shape: int) -> Any:
    return np.random.default_rng(seed).normal(size=shape)


def by_loop(f: Any, *xs: Any) -> Any:
    return np.stack([np.asarray(f(*[x[k] for x in xs])) for k in range(len(xs[0]))])


def steps(f: Any, *xs: Any) -> dict[str, Any]:
    """Names of the steps of a program, and the shapes of their first operand."""
    program: Any = tr.trace(f, *map(tr.asarray, xs))
    return {eq.op.primitive.name: program.specs[eq.operands[0]].shape for eq in program.equations}


def test_primitives_of_families_have_rules() -> None:
    found = {case.primitive: how_batched(case.primitive) for case in CASES if case.primitive.family is not None}
    assert found
    assert {p.name for p, how in found.items() if how != "rule"} == set()


def test_contractions_have_rules_but_those_in_slices() -> None:
    assert how_batched(contract) == how_batched(contractions) == "rule"


@pytest.mark.parametrize("solver", [tl.solve, tl.solve_triangular], ids=lambda f: f.__name__)
@pytest.mark.parametrize("shape", [(4,), (4, 2), (3, 4, 2)], ids=str)
def test_right_sides_of_a_shared_matrix_are_columns(solver: Any, shape: tuple[int, ...]) -> None:
    a, b = numbers(0, 4, 4), numbers(1, LANES, *shape)
    f = tr.vmap(solver, (None, 0))
    np.testing.assert_allclose(np.asarray(f(tr.asarray(a), b)), by_loop(lambda b: solver(a, b), b), rtol=1e-12)
    batch = shape[:-2]
    for name, seen in steps(f, a, b).items():
        if "solve" in name or "factor" in name:
            assert seen == (*batch, 4, 4), name  # the matrix is not repeated for the lanes


def test_a_shared_matrix_is_factored_once_also_in_a_gradient() -> None:
    a, b = numbers(0, 4, 4), numbers(1, LANES, 4)
    f = tr.vmap(ad.grad(lambda b: tr.sum(tl.solve(a, b) ** 2)))
    np.testing.assert_allclose(np.asarray(f(b)), by_loop(ad.grad(lambda b: tr.sum(tl.solve(a, b) ** 2)), b), rtol=1e-12)


def test_errors_name_the_lane() -> None:
    a = np.stack([np.eye(3), np.eye(3), np.diag([1.0, 0.0, 2.0])])
    with pytest.raises(NumericalError, match=r"matrix \(2,\) of the stack is singular"):
        tr.vmap(tl.inv)(a)
    with pytest.raises(NumericalError, match=r"matrix \(2,\) of the stack is not positive definite"):
        tr.vmap(tl.cholesky)(a)
    a[1, 0, 2] = np.nan
    with pytest.raises(NumericalError, match=r"contains nan at index \(1, 0, 2\)"):
        tr.vmap(tl.svdvals)(a)


def test_decompositions_of_plain_lanes_have_the_bits_of_the_loop() -> None:
    """A batch of concrete matrices gets the plain basis of equal values, as each of them alone."""
    a = np.stack([np.eye(3), 2 * np.eye(3)])
    for f in (lambda x: tl.eigh(x)[1], lambda x: tl.svd(x)[0]):
        np.testing.assert_array_equal(np.asarray(tr.vmap(f)(a)), by_loop(f, a))


def test_each_lane_has_the_basis_that_follows_its_tangent() -> None:
    x = np.eye(3)
    tangents = np.stack([np.diag([1.0, 2.0, 3.0]), np.diag([3.0, 1.0, 2.0])])

    def push(t: Any) -> Any:
        return ad.jvp(tl.eigvalsh, (x,), (t,))[1]

    np.testing.assert_allclose(np.asarray(tr.vmap(push)(tangents)), by_loop(push, tangents), atol=1e-13)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_fourier_transforms_are_one_call(axis: int) -> None:
    x = numbers(0, LANES, 4, 6)
    transforms: list[Any] = [
        lambda x: tf.rfft(x, axis=axis),
        lambda x: tf.fft(x + 0j, axis=axis),
        lambda x: tf.hfft(x, axis=axis),
    ]
    for f in transforms:
        np.testing.assert_allclose(np.asarray(tr.vmap(f)(x)), by_loop(f, x), rtol=1e-12, atol=1e-12)
    assert steps(tr.vmap(transforms[0]), x) == {"r2c": (LANES, 4, 6)}


def test_what_all_lanes_share_is_contracted_once() -> None:
    """Shared operands keep their labels, and so does the product of two of them."""
    x, y, z = numbers(0, 3, 4), numbers(1, 4, 5), numbers(2, LANES, 5, 6)

    def f(x: Any, y: Any, z: Any) -> Any:
        return te.einsum("ij,jk,kl->il", x, y, z, optimize=[(0, 1), (0, 1)])

    mapped = tr.vmap(f, (None, None, 0))
    found = mapped(tr.asarray(x), tr.asarray(y), z)
    np.testing.assert_allclose(np.asarray(found), np.einsum("ij,jk,nkl->nil", x, y, z), rtol=1e-12)
    (op,) = [eq.op for eq in tr.trace(mapped, x, y, z).equations if eq.op.primitive is contract]
    assert op.params["inputs"] == ((0, 1), (1, 2), (4, 2, 3))
    assert op.params["output"] == (4, 0, 3)


@pytest.mark.parametrize("axes", [(0, 0, 0), (0, None, None), (None, 0, None), (None, None, 0), (0, None, 0)], ids=str)
def test_derivatives_of_networks(axes: Any) -> None:
    """Kept intermediates and sums of terms some of which are the same in all lanes."""
    whole = [numbers(k, LANES, 3, 3) for k in range(3)]
    xs = [tr.asarray(x if axis == 0 else x[0]) for x, axis in zip(whole, axes)]
    lanes = [np.asarray(x) if axis == 0 else np.stack([np.asarray(x)] * LANES) for x, axis in zip(xs, axes)]

    def loss(*xs: Any) -> Any:
        return tr.sum(te.einsum("ij,jk,ki->k", *xs) ** 3)

    gradient = ad.grad(loss, argnums=(0, 1, 2))
    second = ad.grad(lambda *xs: sum([tr.sum(g * g) for g in gradient(*xs)]), argnums=(0, 1, 2))
    for f in (gradient, second):
        found = tr.vmap(f, axes)(*xs)
        compiled = tr.compile(tr.vmap(f, axes))(*xs)
        for i in range(3):
            wanted = by_loop(lambda *xs, f=f, i=i: f(*xs)[i], *lanes)
            np.testing.assert_allclose(np.asarray(found[i]), wanted, rtol=1e-9, atol=1e-11)
            np.testing.assert_allclose(np.asarray(compiled[i]), wanted, rtol=1e-9, atol=1e-11)


def test_a_product_that_lanes_share_is_made_before_it_is_repeated() -> None:
    # v3 = x0 x1 + x2: the first term is the same for all lanes.
    inputs, steps, number, flags = labelled_graph(
        ((0, 1), (1, 2), (0, 2)), (((0, 2), ((0, 1), (2,))),), (False, False, True), 3
    )
    assert inputs == ((0, 1), (1, 2), (3, 0, 2))
    assert steps == (((0, 2), ((0, 1),)), ((3, 0, 2), ((3,), (2,))))
    assert number == [0, 1, 2, 4]
    assert flags == [False, False, True, True]


def test_a_memory_budget_holds_for_each_lane() -> None:
    xs = [numbers(0, 3, 8, 8), numbers(1, 3, 8, 8), numbers(2, 3, 8, 8, 2), numbers(3, 3, 8, 2)]
    how: Any = {"memory_budget": 7000, "optimize": [(0, 1), (0, 2), (0, 1)]}

    def f(*xs: Any) -> Any:
        return te.einsum("ia,ja,kab,ib->jk", *xs, **how)

    assert te.plan("ia,ja,kab,ib->jk", *[x[0] for x in xs], **how).slicing is not None
    np.testing.assert_allclose(np.asarray(tr.vmap(f)(*xs)), by_loop(f, *xs), rtol=1e-12)
    names = [eq.op.primitive.name for eq in tr.trace(tr.vmap(f), *xs).equations]
    assert names == ["scan"]


def test_what_lies_inside_of_all_batches() -> None:
    seen = []

    def f(x: Any) -> Any:
        seen.append(inner_array(x))
        return x

    tr.vmap(tr.vmap(f))(np.ones((2, 3, 4)))
    assert seen[0].shape == (2, 3, 4)
    assert inner_array(seen[0]) is seen[0]
