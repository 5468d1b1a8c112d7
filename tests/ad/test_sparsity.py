"""Patterns of structured functions: sound everywhere, and tight where the structure is known."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

import tenferro_runtime as tr
from tenferro_ad import Sparsity, checkpoint, custom_rule, grad, jacfwd, sparsity
from tenferro_ad.sparse import _patterns, program_sparsity
from tenferro_einsum import einsum
from tenferro_runtime.extension import REGISTRY, General, RegistryError, SparsityStep, index_map, primitive
from tenferro_tensor import Spec
from tenferro_tensor_core import ArgumentError, UnsupportedError

RNG = np.random.default_rng(5)
X = RNG.uniform(0.5, 1.5, 18)
U = RNG.uniform(0.5, 1.5, (17, 19))
S = RNG.uniform(0.5, 1.5, (3, 4, 4))
WELL = S + 4 * np.eye(4)
BAND = np.triu(np.tril(np.ones((18, 18)), 1), -1)
FULL = np.ones((3, 18))
BLOCKS = np.stack([np.eye(4), np.diag(np.ones(3), 1), np.zeros((4, 4))])
POSITIONS = np.array([3, 1, 1, 7, 0])


def heat(u: Any) -> Any:
    """One explicit step of the heat equation with fixed edges."""
    return u.at[1:-1, 1:-1].add(u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2])


def moved(u: Any) -> Any:
    """The first row and all rows of a matrix whose elements may have moved on by one, and then by two."""
    v = tr.roll(tr.cond(u[0, 0] > 0, lambda w: w * w, lambda w: tr.roll(w, 1, axis=1), u), 2)
    return v[0], v


def ring(x: Any) -> Any:
    return x * tr.roll(x, 1) * tr.roll(x, -1)


@custom_rule(jvp=lambda primals, tangents, outs: (primals[0] * tangents[0],), infer=lambda x: x)
def opaque(x: Any) -> Any:
    """A function of which only a rule is known."""
    return np.asarray(x.numpy()) ** 2 / 2


# The name, a function, its argument, and whether the pattern is exactly that of the dense Jacobian.
CASES: list[tuple[str, Callable[[Any], Any], np.ndarray[Any, Any], bool]] = [
    ("element-wise", lambda x: tr.sin(x) * x + 2, X, True),
    ("comparison", lambda x: tr.where(x > 1, x * x, 3 * x), X, True),
    ("rounding has no derivative", lambda x: tr.floor(x) + x, X, True),
    ("difference", lambda x: x[1:] - x[:-1], X, True),
    ("wide difference", lambda x: x[4:] * x[:-4], X, True),
    ("strides", lambda x: x[::3] * x[1::3], X, True),
    ("negative strides", lambda x: x[::-1] * x, X, True),
    ("ring", ring, X, True),
    ("ring twice", lambda x: ring(ring(x)), X, True),
    ("sum", tr.sum, X, True),
    ("sum of one axis", lambda u: tr.sum(u, axis=0), U, True),
    ("product of one axis", lambda u: tr.prod(u, axis=1), U, True),
    ("largest", lambda u: tr.max(u, axis=1), U, False),
    ("broadcast", lambda u: u + u[0], U, True),
    ("transposed", lambda u: u.T * 2, U, True),
    ("joined", lambda x: tr.concat([x[3:] * x[:-3], x]), X, True),
    ("stacked", lambda x: tr.stack([x[1:], x[:-1]], axis=1), X, True),
    ("reshaped", lambda u: u.reshape(19, 17) * 2, U, True),
    ("flat and back", lambda u: tr.sin(u.reshape(-1)).reshape(17, 19) * u, U, True),
    ("flat neighbors", lambda u: u.reshape(-1)[1:] * u.reshape(-1)[:-1], U, True),
    ("flat, padded and back", lambda u: tr.roll(u.reshape(-1), 1).reshape(17, 19), U, True),
    ("other groups of axes", lambda u: u[:16, :18].reshape(8, 36).T, U, True),
    ("cumulative sum", tr.cumulative_sum, X, True),
    ("cumulative sum of an axis", lambda u: tr.cumulative_sum(u, axis=1)[:, ::2], U, True),
    ("sum of a cumulative sum", lambda x: tr.sum(tr.cumulative_sum(x)), X, True),
    ("sort", lambda u: tr.sort(u, axis=1), U, False),
    ("known positions", lambda x: x[POSITIONS] ** 2, X, True),
    ("known rows", lambda u: u[POSITIONS], U, True),
    ("known columns", lambda u: u[:, POSITIONS], U, True),
    ("computed positions", lambda u: u[tr.argmax(u[:, 0])], U, False),
    ("computed positions of all", lambda x: tr.take(x, tr.argsort(x)), X, False),
    ("known updates", lambda x: x.at[np.unique(POSITIONS)].set(x[:4] ** 2), X, True),
    ("known updates of one element", lambda x: x.at[POSITIONS].set(x[:5] ** 2), X, False),
    ("known additions", lambda x: x.at[POSITIONS].add(x[5:10] ** 2), X, True),
    ("mask", lambda x: x * (np.arange(18) % 2), X, True),
    ("choice by a constant", lambda x: tr.where(np.arange(18) % 3 == 0, x, tr.roll(x, 1)), X, True),
    ("constant band", lambda x: BAND @ x, X, True),
    ("constant band on the right", lambda u: tr.sin(u[:, :18]) @ BAND, U, True),
    ("gradient through a constant band", grad(lambda x: tr.sum((BAND @ x) ** 4)), X, True),
    ("constant of many entries", lambda x: FULL @ x, X, True),
    ("batches of constants", lambda s: tr.matmul(BLOCKS, s), S, True),
    ("a mask in a loop", lambda x: tr.fori_loop(0, 30, lambda i, c: c + 0.1 * c * (np.arange(18) % 2), x), X, True),
    ("matrix product", lambda u: u.T @ u[:, :2], U, True),
    ("batched product", lambda s: s @ s, S, True),
    ("einsum", lambda s: einsum("bij,bjk->bi", s, s), S, True),
    ("solve in batches", lambda s: tr.linalg.solve(s, s[..., 0:1] ** 2), WELL, True),
    ("right sides", lambda s: tr.linalg.solve(WELL, s), S, True),
    ("inverse", tr.linalg.inv, WELL, True),
    ("determinants", tr.linalg.det, WELL, True),
    ("gradient of a determinant", grad(lambda s: tr.sum(tr.linalg.det(s) ** 2)), WELL, True),
    ("eigenvalues", lambda s: tr.linalg.eigvalsh(s + s.mT), WELL, True),
    ("decomposition", lambda s: tr.linalg.cholesky(s @ s.mT), WELL, False),
    ("singular values", tr.linalg.svdvals, S, True),
    ("gradient of singular values", grad(lambda s: tr.sum(tr.linalg.svdvals(s) ** 3)), S, True),
    ("norms", lambda u: tr.linalg.vector_norm(u, axis=1, ord=3), U, True),
    ("spectra", lambda u: tr.abs(tr.fft.fft(u, axis=1)) ** 2, U, True),
    ("half spectra", lambda u: tr.real(tr.fft.rfft(u, axis=0)), U, False),
    ("traces", lambda s: einsum("bii->b", s), S, True),
    ("diagonals", lambda s: einsum("bii->bi", s), S, True),
    ("gradient of a contraction", grad(lambda s: tr.sum(einsum("bij,bjk->bik", s, s) ** 2)), S, True),
    ("a network", lambda s: einsum("bij,bjk,bkl->bil", s, s, s), S, True),
    ("rows of an array", lambda u: tr.stack(list(u[:3])), U, True),
    ("heat", heat, U, True),
    ("heat twice", lambda u: heat(heat(u)), U, True),
    ("heat, a few steps", lambda u: tr.fori_loop(0, 3, lambda i, v: heat(v), u), U, True),
    ("heat, many steps", lambda u: tr.fori_loop(0, 24, lambda i, v: heat(v), u), U, False),
    ("element-wise loop", lambda u: tr.fori_loop(0, 40, lambda i, v: v + 0.01 * v * v, u), U, True),
    ("rows of a scan", lambda u: tr.scan(lambda c, r: (c, r * tr.sum(r)), 0.0, u)[1], U, True),
    ("the row before", lambda u: tr.scan(lambda c, r: (r, r * c), u[0], u)[1], U, True),
    ("the row after", lambda u: tr.scan(lambda c, r: (r, r * c), u[0], u, reverse=True)[1], U, True),
    ("a recurrence", lambda u: tr.scan(lambda c, r: (c * r, c * r), u[0], u)[1], U, True),
    ("a recurrence from the end", lambda u: tr.scan(lambda c, r: (c * r, c), 2 * u[0], u, reverse=True)[1], U, True),
    ("a recurrence with neighbors", lambda u: tr.scan(lambda c, r: (r * tr.roll(c, 1), c), u[0], u)[1], U, False),
    ("a constant of a recurrence", lambda x: tr.scan(lambda c, r: (c * x[0] + r, c), x[1], x)[1], X, False),
    ("a short recurrence", lambda u: tr.scan(lambda c, r: (c + r, c * r), u[0], u[:5])[1], U, False),
    ("a scan in a scan", lambda s: tr.scan(lambda c, m: (c, tr.scan(lambda d, r: (r, d * r), m[0], m)[1]), 0.0, s)[1],
     S, True),
    ("flat neighbors in a scan", lambda u: tr.scan(lambda c, r: (r, c * tr.sum(r)), *moved(u))[1].reshape(1, -1),
     U[:3, :4], False),
    ("while", lambda x: tr.while_loop(lambda c: tr.sum(c) < 100, lambda c: c * 2, x), X, True),
    ("while with neighbors", lambda x: tr.while_loop(lambda c: tr.sum(c) < 100, lambda c: c + tr.roll(c, 1), x), X,
     False),
    ("branches", lambda x: tr.cond(x[0] > 0, lambda y: y * 2, lambda y: tr.roll(y, 1), x), X, False),
    ("compiled inside", lambda x: tr.compile(ring)(x)[1:], X, True),
    ("checkpointed", checkpoint(ring), X, True),
    ("in batches", lambda u: tr.vmap(ring)(u), U, True),
    ("a rule of its own", opaque, X, False),
    ("gradient", grad(lambda x: tr.sum(ring(x))), X, True),
    ("gradient of a matrix function", grad(lambda u: tr.sum((u[1:] - u[:-1]) ** 4)), U, True),
]  # fmt: skip


@cache
def nonzeros(name: str) -> np.ndarray:
    """Where the dense Jacobian of a case is not zero."""
    ((f, x),) = [(f, x) for case, f, x, _ in CASES if case == name]
    return jacfwd(f)(x).numpy() != 0


@pytest.mark.parametrize("least_open", [2, 16, 1000])
@pytest.mark.parametrize(("name", "f", "x", "tight"), CASES, ids=[case[0] for case in CASES])
def test_pattern_of_a_structured_function(
    name: str, f: Any, x: Any, tight: bool, least_open: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pattern holds each nonzero derivative, and nothing else where it is said to be tight."""
    monkeypatch.setattr(_patterns, "SYMBOLIC_MIN", least_open)
    found = sparsity(f, x).matrix().toarray()
    nonzero = nonzeros(name).reshape(found.shape)
    assert not np.any(nonzero & ~found)
    if tight:
        assert found.sum() == nonzero.sum()


def test_open_sizes_are_read_once_for_all_numbers() -> None:
    n = tr.dim("n")
    found = sparsity(ring, Spec((n,), np.dtype("float64")))
    assert isinstance(found, Sparsity)
    for size in (1, 2, 3, 17, 1000):
        rows, columns = found.matrix(n=size).nonzero()
        assert {*zip(rows.tolist(), columns.tolist())} == {
            (i, j % size) for i in range(size) for j in (i - 1, i, i + 1)
        }


def test_printed_relation() -> None:
    found = sparsity(lambda u: u[1:, ::2].T, Spec((tr.dim("n"), 8), np.dtype("float64")))
    assert str(found) == "out[i, j] <- in[j + 1, 2*i] for 0 <= i < 4, 0 <= j < n - 1"
    assert repr(found) == "Sparsity((4, max(0, n - 1)) <- (n, 8))"
    assert str(sparsity(tr.floor, Spec((3,), np.dtype("float64")))) == "no dependence"


def test_inputs_of_an_element() -> None:
    found = sparsity(heat, U)
    assert found.inputs_of((1, 2)).tolist() == [[0, 2], [1, 1], [1, 2], [1, 3], [2, 2]]
    assert (found.shape, found.source) == ((17, 19), (17, 19))
    assert found.inputs_of((0, -1)).tolist() == [[0, 18]]
    with pytest.raises(ArgumentError, match="not an index into"):
        found.inputs_of((17, 0))
    assert sparsity(tr.sum, Spec((tr.dim("n"),), np.dtype("float64"))).inputs_of((), n=2).tolist() == [[0], [1]]


def test_many_steps_written_out() -> None:
    """Relations of many steps one after the other are products, as many as there are steps."""

    def f(u: Any) -> Any:
        for _ in range(100):
            u = u.at[1:-1].add(u[2:] * u[:-2])
        return u

    found = sparsity(f, Spec((tr.dim("n"),), np.dtype("float64"))).matrix(n=400)
    rows, columns = found.nonzero()
    assert abs(rows - columns).max() == 100
    assert found[[200]].nnz == 201


def test_missing_size_is_named() -> None:
    found = sparsity(ring, Spec((tr.dim("n"),), np.dtype("float64")))
    with pytest.raises(ArgumentError, match=r"\['n'\] have no value; pass them by name, as in matrix\(n=100\)"):
        found.matrix()


def test_containers_nest_as_those_of_jacfwd() -> None:
    found = sparsity(lambda p, y: {"a": p["w"] * y, "b": tr.sum(p["v"])}, {"w": X, "v": U}, X, argnums=(0, 1))
    assert found["a"][0]["w"].matrix().nnz == 18
    assert found["a"][0]["v"].matrix().nnz == 0
    assert found["a"][1].matrix().nnz == 18
    assert found["b"][0]["v"].matrix().shape == (1, U.size)


def test_sizes_that_depend_on_data_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="data-dependent sizes"):
        sparsity(lambda x: tr.sum(tr.compress(x, x > 1)), X).matrix()


def test_variables_of_a_program() -> None:
    """Values on the way to the outputs are asked about by variable."""
    program = tr.trace(lambda x, y: tr.sum(ring(x)) * y, Spec((tr.dim("n"),), np.dtype("float64")), 2.0)
    found = program_sparsity(program)
    v = next(eq.operands[0] for eq in program.equations if eq.op.primitive.name == "reduce_sum")
    assert isinstance(v, int)
    assert found[v][0].matrix(n=30).nnz == 90 and found[v][1].matrix(n=30).nnz == 0
    out = program.output_ids[0]
    assert found[out][0].matrix(n=30).nnz == 30 and found[out][1].matrix(n=30).nnz == 1
    assert program_sparsity(program, [1])[out][0].source == ()


def test_rule_of_a_stranger() -> None:
    """A primitive is dense until it has a rule; taking the rule back makes it dense again."""

    @primitive
    def mirrored(x: Spec) -> Spec:
        """Each row in reverse order."""
        return x

    REGISTRY.rule(mirrored, General(jvp=lambda primals, tangents, outs: (mirrored(tangents[0]),)))
    spec = Spec((2, 3), np.dtype("float64"))
    assert sparsity(mirrored, spec).matrix().nnz == 36
    found = sparsity(lambda x: mirrored(x) * 2, spec)
    assert found.matrix().nnz == 36

    def rule(step: SparsityStep) -> Any:
        (x,), (out,) = step.ins, step.outs
        assert step.op.primitive is mirrored
        return (((index_map("ij", "ik", out, x),),),)

    registered = REGISTRY.sparsity(mirrored, rule)
    assert found.matrix().nnz == 18
    with pytest.raises(RegistryError, match="registered already"):
        REGISTRY.sparsity(mirrored, lambda step: (((),),))
    registered.undo()
    assert found.matrix().nnz == 36


def test_rule_with_another_signature_is_refused() -> None:
    @primitive
    def bent(x: Spec) -> Spec:
        """Itself."""
        return x

    with pytest.raises(RegistryError, match=r"the sparsity of bent is called with \(step\)"):
        REGISTRY.sparsity(bent, lambda: ())


def test_expansion_of_a_stranger() -> None:
    @primitive(family="tests-sparsity.shifted.v1")
    def shifted(x: Spec) -> Spec:
        """Products of neighbors."""
        return x

    REGISTRY.expansion(shifted, lambda x: x * tr.roll(x, 1))
    found = sparsity(shifted, X).matrix().toarray()
    assert np.array_equal(found, jacfwd(shifted)(X).numpy() != 0)
