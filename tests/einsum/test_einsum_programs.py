"""Contractions in programs: lowered to XLA, saved to files, with the bits of concrete calls."""

from importlib.util import find_spec

import numpy as np
import pytest

import tenferro_runtime as tr
from einsum_oracles import intermediates
from tenferro_ad import grad
from tenferro_einsum import einsum, plan
from tenferro_einsum._contract import contract


def operands(shapes):
    return [tr.asarray(np.random.default_rng(i).standard_normal(s)) for i, s in enumerate(shapes)]


@pytest.mark.parametrize("budget", [None, 20_000])
def test_xla_and_files_compute_the_same(budget, tmp_path):
    xs = operands([(6, 6, 3)] * 3)
    loss = lambda *v: tr.sum(einsum("abi,bcj,cak->ijk", *v, memory_budget=budget) ** 2)
    gradient = grad(loss, argnums=(0, 1, 2))
    program = tr.trace(gradient, *[x.spec for x in xs])
    assert {eq.op.primitive.name for eq in program.equations} >= (
        {"contract"} if budget is None else {"contract_slices"}
    )
    want = gradient(*xs)
    program.save(tmp_path / "gradient.tfp")
    loaded = tr.load(tmp_path / "gradient.tfp")
    ways = [lambda: loaded.run(*xs)]
    if find_spec("jax") is not None:
        from tenferro_xla import XlaExecutor

        ways.append(lambda: XlaExecutor().run(program, *xs))
    for way in ways:
        for a, b in zip(way(), want, strict=True):
            np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-10)


@pytest.mark.parametrize(
    ("subscripts", "shapes"),
    [
        ("ab,bc,cd->ad", [(30, 40), (40, 50), (50, 20)]),
        ("aib,bjc,ckd,dla->ijkl", [(9, 4, 9)] * 4),
        ("abc,cde,eaf,fb->d", [(5, 6, 7), (7, 8, 9), (9, 5, 4), (4, 6)]),
    ],
)
def test_keeping_intermediates_keeps_the_bits(subscripts, shapes):
    """A deterministic program drops what it need not keep, and still has the bits of a concrete call."""
    xs = operands(shapes)
    p = plan(subscripts, *xs)
    params = {"inputs": p._labels, "output": p._output, "steps": p.steps}
    kept = contract(*xs, **params, kept=intermediates(p._labels, p.steps))[0]
    np.testing.assert_array_equal(np.asarray(contract(*xs, **params)), np.asarray(kept))


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
@pytest.mark.parametrize(
    "subscripts",
    [
        "h,->", ",h->", ",hh->", "ij,->j", "gc,->c", "ij,jk->", "ij,jk->k", "ijk,k->", "ijk,jl->l", "iij,j->",
        "abc,cd->ad", "ab,ab->", "ij,kj->", "ii,jj->", "abc,dce->e", "i,j->", "ij,i->i",
    ],
)  # fmt: skip
def test_deterministic_programs_contract_pairs_in_the_steps_of_concrete_calls(subscripts, dtype):
    """Labels of one operand alone are summed first, or last, but in both alike."""
    rng = np.random.default_rng(3)
    terms = subscripts.partition("->")[0].split(",")
    for extent in (1, 4, 9):
        shapes = [tuple(extent + (ord(x) - 97) % 3 for x in t) for t in terms]
        xs = [
            tr.asarray(np.asarray(rng.standard_normal(s) * (1 + (0.7j if dtype[0] == "c" else 0))).astype(dtype))
            for s in shapes
        ]
        f = lambda *v: einsum(subscripts, *v)
        wanted = np.asarray(f(*xs))
        fixed = tr.Runtime(deterministic=True).optimise(tr.trace(f, *[x.spec for x in xs]))
        for g in (tr.compile(f, deterministic=True), fixed.run):
            found = g(*xs)
            assert np.asarray(found[0] if isinstance(found, tuple) else found).tobytes() == wanted.tobytes()


def test_element_wise_products_stay_so_in_programs():
    """Other passes fuse them; outside of programs the gradient of an outer product is two matrix-vector products."""
    specs = [tr.Spec((5,), tr.float64), tr.Spec((7,), tr.float64)]
    loss = lambda x, y: tr.sum(einsum("i,j->ij", x, y) ** 2)
    for f in (loss, grad(loss, argnums=(0, 1))):
        program = tr.trace(f, *specs)
        assert not {eq.op.primitive.name for eq in program.equations} & {"contract", "contractions"}
    x, y = operands([(5,), (7,)])
    for a, b in zip(tr.compile(grad(loss, argnums=(0, 1)))(x, y), grad(loss, argnums=(0, 1))(x, y), strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-12)
