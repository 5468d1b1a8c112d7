"""Transpositions become axis numbers of contractions, and sums of products become contractions."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tenferro_runtime as tr
from random_programs import same
from tenferro_runtime.extension import check_program, interpret
from tenferro_runtime.passes import Rounding, fold_into_contractions, remove_dead_code
from tenferro_tensor import Spec, catalog, tensor

F8, C16 = np.dtype("float64"), np.dtype("complex128")
N, M, K = (tr.dim(name) for name in "nmk")
EXAMPLES = {"n": 4, "m": 6, "k": 5}


def after(f, *shapes, dtype=F8):
    specs = [Spec(s, dtype) for s in shapes]
    program = check_program(tr.trace(f, *specs, examples={k: v for k, v in EXAMPLES.items() if k in str(shapes)}))
    return program, check_program(remove_dead_code(fold_into_contractions(program)))


def names(program):
    return [eq.op.primitive.name for eq in program.equations]


def agree(program, less, *arrays):
    for got, want in zip(less.run(*arrays), program.run(*arrays), strict=True):
        same(got, want, rtol=1e-12)


CASES: dict[str, Any] = {
    "x @ y.T": (lambda x, y: x @ y.mT, [(N, K), (M, K)], ["dot_general"]),
    "x.T @ y": (lambda x, y: x.mT @ y, [(K, N), (K, M)], ["dot_general"]),
    "(x @ y).T": (lambda x, y: (x @ y).mT, [(N, K), (K, M)], ["dot_general"]),
    "(x.T @ y.T).T": (lambda x, y: (x.mT @ y.mT).mT, [(K, N), (M, K)], ["dot_general"]),
    "batched": (lambda x, y: x @ y.mT, [(2, N, K), (2, M, K)], ["dot_general"]),
    "(batched).T": (lambda x, y: (x @ y).mT, [(2, N, K), (2, K, M)], ["dot_general"]),
    "tanh(x.T) @ y": (lambda x, y: (tr.tanh(x.mT) * 2) @ y, [(K, N), (K, M)], ["tanh", "mul", "dot_general"]),
    "x.T + y.T summed": (lambda x, y: tr.sum(x.mT + y.mT), [(N, M), (N, M)], ["add", "reduce_sum"]),
    "sum of a sum": (lambda x: tr.sum(tr.sum(x, axis=1)), [(N, M, K)], ["reduce_sum"]),
    "sum of products": (lambda x, y: tr.sum(x[:, :, None] * y, axis=1), [(N, K), (K, M)], ["dot_general"]),
    "sum of products, turned": (
        lambda x, y: tr.sum(x[None, :, :] * y[:, None, :], axis=2),
        [(N, K), (M, K)],
        ["dot_general"],
    ),
    "matrix and vector": (lambda x, y: tr.sum(x * y, axis=1), [(N, K), (K,)], ["dot_general"]),
    "inner product": (lambda x, y: tr.sum(x * y), [(N, K), (N, K)], ["dot_general"]),
}


@pytest.mark.parametrize("dtype", [F8, C16])
@pytest.mark.parametrize("name", CASES)
def test_it_becomes_one_contraction(name, dtype) -> None:
    f, shapes, expected = CASES[name]
    program, less = after(f, *shapes, dtype=dtype)
    assert [n for n in names(less) if n != "reshape"] == expected
    rng = np.random.default_rng(1)
    for sizes in (EXAMPLES, {"n": 2, "m": 3, "k": 1}, {"n": 0, "m": 2, "k": 3}, {"n": 2, "m": 3, "k": 0}):
        arrays = []
        for shape in shapes:
            shape = tuple([sizes.get(str(d), d) for d in shape])
            values = rng.normal(size=shape) + (1j * rng.normal(size=shape) if dtype is C16 else 0)
            arrays.append(tensor(values))
        agree(program, less, *arrays)


def test_conjugations_of_both_operands_are_one() -> None:
    program, less = after(lambda x, y: tr.conj(x) @ tr.conj(y), (N, K), (K, M), dtype=C16)
    assert names(less) == ["dot_general", "conj"]
    rng = np.random.default_rng(2)
    agree(program, less, *[tensor(rng.normal(size=s) * (1 + 2j)) for s in ((2, 3), (3, 4))])


LEFT_ALONE: dict[str, Any] = {
    "a batch of small products": (lambda x, y: tr.sum(x * y, axis=1), [(N, K), (N, K)], F8),
    "a product that somebody else reads": (lambda x, y: (lambda p: (tr.sum(p), p))(x * y), [(N,), (N,)], F8),
    "integers": (lambda x, y: tr.sum(x * y), [(N,), (N,)], np.dtype("int64")),
    "numbers as factors": (lambda x: tr.sum(x * 2.0), [(N,)], F8),
    "a contraction that somebody else reads": (lambda x, y: (lambda p: (p, p.mT))(x @ y), [(N, K), (K, M)], F8),
    "an inner product of element-wise results": (lambda x, y: tr.sum(tr.tanh(x) * y), [(N,), (N,)], F8),
    "an inner product with an element-wise result": (lambda x, y: tr.sum(x * tr.tanh(y)), [(N,), (N,)], F8),
    "one axis of a factor alone": (lambda x, y: tr.sum(x[:, None] * y[None, :]), [(N,), (M,)], F8),
}


@pytest.mark.parametrize("name", LEFT_ALONE)
def test_it_is_left_alone(name) -> None:
    f, shapes, dtype = LEFT_ALONE[name]
    program, _ = after(f, *shapes, dtype=dtype)
    assert fold_into_contractions(program) is program


def t(x, *permutation):
    return catalog.transpose(x, permutation=permutation)


def test_the_right_operand_is_read_directly_even_where_the_left_one_is_not() -> None:
    def f(x, y):
        return catalog.dot_general(t(x, 1, 0, 2), t(y, 1, 0), contract=((2,), (0,)), batch=((), ()))

    program, less = after(f, (2, 3, 4), (5, 4))
    assert names(less) == ["transpose", "dot_general"]
    assert less.equations[1].op.params["contract"] == ((2,), (1,))
    agree(program, less, np.arange(24.0).reshape(2, 3, 4), np.arange(20.0).reshape(5, 4))


def test_batch_axes_at_different_positions_change_sides() -> None:
    def product(x, y):
        return catalog.dot_general(x, y, contract=((3,), (0,)), batch=((0, 1), (3, 1)))

    x, y = np.arange(120.0).reshape(2, 3, 4, 5), np.arange(210.0).reshape(5, 3, 7, 2)
    for permutation, expected in {
        (0, 1, 3, 2): ["dot_general"],
        (1, 0, 2, 3): ["dot_general"],
        (1, 0, 3, 2): ["dot_general"],
        (2, 0, 1, 3): ["dot_general", "transpose"],
        (0, 2, 1, 3): ["dot_general", "transpose"],
    }.items():
        program, less = after(lambda x, y: t(product(x, y), *permutation), x.shape, y.shape)  # noqa: B023 - traced at once
        assert names(less) == expected
        agree(program, less, x, y)


SUMS: dict[str, Any] = {
    "over rows of a transposed array": (lambda x: tr.sum(t(x, 2, 0, 1), axis=0), ["reduce_sum"]),
    "whose kept axes change places": (lambda x: tr.sum(t(x, 2, 0, 1), axis=1), ["transpose", "reduce_sum"]),
    "of a sum over the first axis": (lambda x: tr.sum(tr.sum(x, axis=0), axis=1), ["reduce_sum"]),
    "of a sum that somebody else reads": (
        lambda x: (lambda s: (tr.sum(s, axis=1), s))(tr.sum(x, axis=0)),
        ["reduce_sum", "reduce_sum"],
    ),
}


@pytest.mark.parametrize("name", SUMS)
def test_sums(name) -> None:
    f, expected = SUMS[name]
    program, less = after(f, (2, 3, 4))
    assert names(less) == expected
    agree(program, less, np.arange(24.0).reshape(2, 3, 4))


def test_conjugations_stay_where_they_save_nothing() -> None:
    for f in (
        lambda x, y: tr.conj(x) @ y,
        lambda x, y: x @ tr.conj(y),
        lambda x, y: (lambda z: (z @ tr.conj(y), z))(tr.conj(x)),
        lambda x, y: (lambda z: (tr.conj(x) @ z, z))(tr.conj(y)),
    ):
        program, _ = after(f, (2, 3), (3, 4), dtype=C16)
        assert fold_into_contractions(program) is program


@given(st.permutations(range(3)), st.permutations(range(3)), st.permutations(range(3)), st.booleans())
def test_any_transpositions_around_any_contraction(p, q, r, batched) -> None:
    rng = np.random.default_rng(4)
    contract, batch = (((2,), (1,)), ((0,), (0,))) if batched else (((1, 2), (2, 0)), ((), ()))

    def f(x, y):
        x, y = (catalog.transpose(v, permutation=tuple(w)) for v, w in ((x, p), (y, q)))
        z = catalog.dot_general(x, y, contract=contract, batch=batch)
        return catalog.transpose(z, permutation=tuple(r) if batched else (1, 0))

    x, y = tensor(rng.normal(size=(3, 3, 3))), tensor(rng.normal(size=(3, 3, 3)))
    program = tr.trace(f, x, y)
    less = check_program(remove_dead_code(fold_into_contractions(program)))
    assert len(less.equations) <= len(program.equations)
    for got, want in zip(interpret(less, [x, y]), interpret(program, [x, y]), strict=True):
        same(got, want, rtol=1e-12)


def test_it_is_told_as_a_pass_that_rounds() -> None:
    assert isinstance(fold_into_contractions, Rounding)
    exact = tr.Runtime(deterministic=True)
    program = tr.trace(lambda x, y: tr.sum(x * y), *[Spec((3,), F8)] * 2)
    assert names(exact.optimise(program)) == ["mul", "reduce_sum"]
    assert names(tr.Runtime().optimise(program)) == ["dot_general"]
