"""Derivatives of contractions: both modes, first and second order, four dtypes, eager and compiled."""

from importlib.util import find_spec

import numpy as np
import pytest

import tenferro_runtime as tr
from einsum_oracles import intermediates
from tenferro_ad import check_grads, grad, jvp, value_and_grad, variable
from tenferro_einsum import einsum, plan, tensordot
from tenferro_einsum._contract import contract
from tenferro_einsum._contractions import contractions
from tenferro_einsum._derivatives import vjp as contract_vjp
from tenferro_einsum._slices import contract_slices, contract_slices_pull
from tenferro_runtime.extension import optimise
from tenferro_tensor import REGISTRY

EXTENT = dict(zip("abcdeijklxy", [2, 3, 2, 4, 2, 3, 4, 2, 3, 2, 3], strict=True))

PATTERNS = [
    "ij,jk->ik", "i,i->", "i,j->ij", "ij->ji", "ij->", "ii->i", "ii->", "i->ii", "i->iii", "iij,j->", "iij,jk->ikk",
    "bij,bjk->bik", "ij,ij->ij", "i,ij,j->", "ij,jk,kl->il", "ab,ac,ad->abcd", "a,a,a->a", "ab,bc,cd,de,ea->",
    "aab,bcc->ac", "...ij,...jk->...ik",
]  # fmt: skip


def operands(subscripts, dtype, seed=0):
    rng = np.random.default_rng(seed)
    arrays = []
    for term in subscripts.split("->")[0].split(","):
        x = rng.standard_normal([2] * ("..." in term) + [EXTENT[c] for c in term.replace("...", "")])
        if np.dtype(dtype).kind == "c":
            x = x + 1j * rng.standard_normal(x.shape)
        arrays.append(tr.asarray(x.astype(dtype)))
    return tuple(arrays)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("subscripts", PATTERNS)
def test_both_modes_against_differences(subscripts, dtype):
    order = 2 if dtype in ("float64", "complex128") else 1
    check_grads(lambda *xs: einsum(subscripts, *xs), operands(subscripts, dtype), order=order)


def test_a_stretched_extent_collects_the_gradient():
    x, y = operands("ij,jk->ik", "float64")
    check_grads(lambda x, y: einsum("ij,jk->ik", x, y), (x, y[:1]), order=2)


def test_operands_of_different_dtypes():
    x, y = tr.asarray(np.array([1.0, 2.0])), tr.asarray(np.array([1j, 2.0 - 1j]))
    gx, gy = grad(lambda x, y: tr.sum(tr.abs(einsum("i,i->i", x, y))), argnums=(0, 1))(x, y)
    assert (gx.dtype, gy.dtype) == (np.float64, np.complex128)  # type: ignore[comparison-overlap]
    np.testing.assert_allclose(np.asarray(gx), np.abs(np.asarray(y)))


def test_gradients_of_a_long_chain_equal_the_environments():
    rng = np.random.default_rng(1)
    chain = [tr.asarray(rng.standard_normal((3, 3)) / 2) for _ in range(12)]
    terms = [[i, i + 1] for i in range(12)]
    args = lambda ms: [v for m, t in zip(ms, terms, strict=True) for v in (m, t)]
    loss = lambda *ms: tr.sum(einsum(*args(ms), [0, 12]))
    value, grads = value_and_grad(loss, argnums=tuple(range(12)))(*chain)
    raw = [np.asarray(m) for m in chain]
    np.testing.assert_allclose(float(value), np.linalg.multi_dot(raw).sum())
    for k, g in enumerate(grads):
        left = np.linalg.multi_dot([np.ones((1, 3)), *raw[:k], np.eye(3)])
        right = np.linalg.multi_dot([np.eye(3), *raw[k + 1 :], np.ones((3, 1))])
        np.testing.assert_allclose(np.asarray(g), (right @ left).T, atol=1e-12)
    for way in (tr.compile(grad(loss)), grad(tr.compile(loss))):
        np.testing.assert_allclose(np.asarray(way(*chain)), np.asarray(grads[0]), atol=1e-12)


def test_backward_accumulates_into_every_operand():
    x, y = map(variable, operands("ij,jk->ik", "float64"))
    tr.sum(einsum("ij,jk->ik", x, y)).backward()
    tr.sum(tensordot(x, y, axes=1)).backward()
    ones = np.ones((3, 2))
    np.testing.assert_allclose(np.asarray(x.grad), 2 * ones @ np.asarray(y.detach()).T)
    np.testing.assert_allclose(np.asarray(y.grad), 2 * np.asarray(x.detach()).T @ ones)


def chain(count, bond=3, physical=2, seed=0):
    """The inner product of two matrix product states as einsum arguments, zipped from the left."""
    rng = np.random.default_rng(seed)
    arrays, terms, path = [], [], []
    for side in ("ket", "bra"):
        for i in range(count):
            left, right = (side, i), (side, i + 1)
            shape = ([] if i == 0 else [bond]) + [physical] + ([] if i == count - 1 else [bond])
            arrays.append(tr.asarray(rng.standard_normal(shape) / np.sqrt(bond)))
            terms.append(([] if i == 0 else [left]) + [i] + ([] if i == count - 1 else [right]))
    pairs = [(0, count)]
    for i in range(1, count):
        pairs += [(2 * count + 2 * i - 2, i), (2 * count + 2 * i - 1, count + i)]
    live = list(range(2 * count))
    for number, pair in enumerate(pairs):
        path.append(tuple(sorted(live.index(v) for v in pair)))
        live = [*[v for v in live if v not in pair], 2 * count + number]
    return arrays, terms, path


def arguments(arrays, terms):
    return [v for pair in zip(arrays, terms, strict=True) for v in pair]


def operations(program):
    """What all contractions of a program cost together."""
    specs, counted = program.specs, (contract, contractions, contract_slices, contract_slices_pull)
    return sum([REGISTRY.find("cost", eq.op.primitive)([specs[v] for v in eq.variables], (), **eq.op.params).flops
                for eq in program.equations if eq.op.primitive in counted])  # fmt: skip


@pytest.mark.parametrize("count", [10, 100, 1000])
@pytest.mark.parametrize("kept", [True, False])
def test_all_gradients_of_a_chain_cost_less_than_three_contractions(count, kept):
    arrays, terms, path = chain(count)
    prepared = plan(*arguments(arrays, terms), [], optimize=path)
    op = contract.op(
        inputs=prepared._labels,
        output=(),
        steps=prepared.steps,
        kept=intermediates(prepared._labels, prepared.steps) if kept else (),
    )

    def pulled(*xs):
        outs = op(*xs)
        outs = outs if isinstance(outs, tuple) else (outs,)
        g = tr.ones(())
        return contract_vjp(xs, outs, (g, *[None] * (len(outs) - 1)), **op.params)

    forward = prepared.report.flops
    whole = operations(tr.trace(pulled, *[x.spec for x in arrays]))
    assert forward <= whole - forward <= (2.01 if kept else 3.01) * forward
    if count == 10:
        value, grads = value_and_grad(lambda *xs: prepared(*xs), argnums=tuple(range(2 * count)))(*arrays)
        for x, g in zip(arrays, grads, strict=True):  # linear in each operand
            np.testing.assert_allclose(float(tr.sum(x * g)), float(value), rtol=1e-10)


@pytest.mark.parametrize("count", [10, 100, 1000])
def test_other_derivatives_of_a_chain_cost_as_much_for_each_site(count):
    """Traced: tangents, values and gradients, a Hessian times a vector; counted in contractions."""
    arrays, terms, path = chain(count)
    prepared = plan(*arguments(arrays, terms), [], optimize=path)
    forward, specs = prepared.report.flops, [x.spec for x in arrays]
    both = value_and_grad(lambda *xs: prepared(*xs), argnums=tuple(range(2 * count)))
    ways = (
        (4, lambda *xs: jvp(prepared, xs, xs)),  # the value, then small intermediates anew and two products for each
        (4, both),
        (15, lambda *xs: jvp(both, xs, xs)),  # each product of the gradient has two tangents
    )
    for times, f in ways:
        assert 2 * forward < operations(optimise(tr.trace(f, *specs))) <= times * forward


@pytest.mark.parametrize("dtype", ["float64", "complex64"])
def test_programs_give_the_bits_of_eager_gradients(dtype):
    """XLA agrees to rounding."""
    arrays, terms, path = chain(6, bond=24)
    arrays = [(x * (1 + 1j) if dtype[0] == "c" else x).astype(dtype) for x in arrays]
    prepared = plan(*arguments(arrays, terms), [], optimize=path)
    gradient = grad(lambda *xs: tr.abs(prepared(*xs)), argnums=tuple(range(12)))
    want = gradient(*arrays)
    for a, b in zip(tr.compile(gradient)(*arrays), want, strict=True):
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))
    if find_spec("jax") is not None:
        from tenferro_xla import XlaExecutor

        for a, b in zip(XlaExecutor().run(tr.trace(gradient, *[x.spec for x in arrays]), *arrays), want, strict=True):
            scale = np.abs(np.asarray(b)).max()
            np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-3, atol=1e-4 * scale)


@pytest.mark.parametrize("subscripts", ["ij,jk,kl->il", "ab,ac,ad->abcd", "aab,bcc,c->ac", "ij,kl,le->e", "i,i,i->"])
def test_forward_over_reverse_in_programs(subscripts):
    """Kept values carry derivatives of their own: the Hessian times a vector, four ways."""
    xs = operands(subscripts, "float64")
    loss = lambda *xs: tr.sum(einsum(subscripts, *xs) ** 2)
    number = tuple(range(len(xs)))
    gradient = grad(loss, argnums=number)
    along = tuple(tr.asarray(np.random.default_rng(5).standard_normal(x.shape)) for x in xs)
    want = jvp(gradient, xs, along)[1]
    slope = lambda *xs: sum(tr.sum(g * t) for g, t in zip(gradient(*xs), along, strict=True))
    ways = (
        grad(slope, argnums=number),
        tr.compile(grad(slope, argnums=number)),
        grad(tr.compile(slope), argnums=number),
        lambda *xs: jvp(tr.compile(gradient), xs, along)[1],
    )
    for way in ways:
        for a, b in zip(way(*xs), want, strict=True):
            np.testing.assert_allclose(np.asarray(a), np.asarray(b), atol=1e-11)


@pytest.mark.parametrize(("size", "kept"), [(4, ()), (60, (3,))])
def test_a_program_keeps_large_intermediates_only_for_its_derivative(size, kept):
    xs = [tr.asarray(np.ones((size, size))) for _ in range(3)]
    program = tr.trace(lambda *xs: einsum("ij,jk,kl->il", *xs), *[x.spec for x in xs])
    assert [eq.op.params["kept"] for eq in program.equations] == [kept]
    assert [eq.op.params["kept"] for eq in optimise(program).equations] == [()]


def test_contractions_with_open_sizes_are_traced_once():
    f = tr.compile(value_and_grad(lambda x, y: tr.sum(einsum("ij,jk,kl->il", x, y, x)), argnums=(0, 1)))
    for n, m in ((3, 4), (5, 2), (1, 6), (0, 3)):
        x, y = np.random.default_rng(n).standard_normal((2, n, n)) if n == m else (np.ones((n, m)), np.ones((m, n)))
        value, (gx, gy) = f(x, y)
        np.testing.assert_allclose(float(value), (x @ y @ x).sum())
        assert (gx.shape, gy.shape) == (x.shape, y.shape)
    assert f.cache_info().traces <= 3
