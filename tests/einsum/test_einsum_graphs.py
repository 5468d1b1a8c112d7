"""Graphs of contractions as a primitive: against NumPy, all derivatives, pruning, programs, with and without engine."""

from importlib.util import find_spec

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tenferro_runtime as tr
from random_contractions import random_graph
from tenferro_ad import check_grads, grad, jvp, vjp
from tenferro_einsum import _contractions as module
from tenferro_einsum import einsum
from tenferro_einsum._contractions import contractions
from tenferro_runtime.extension import optimise
from tenferro_tensor import REGISTRY
from tenferro_tensor_core import ArgumentError
from thorough import tries

SEEDS = st.integers(0, 1 << 40)
TINY = (1, 2, 3)


def op_of(graph, conjugated=0):
    return contractions.op(inputs=graph.operands, steps=graph.steps, outputs=graph.outputs, conjugated=conjugated)


@given(SEEDS)
@settings(max_examples=tries(24, 60))
def test_ops_and_the_engine_compute_the_same(seed):
    """What is done without an engine, and what the engine does, on any strides."""
    case = random_graph(seed)
    first = seed % (1 + len(case.arrays)) if case.graph.dtype.kind == "c" else 0
    op = op_of(case.graph, first)
    xs = [tr.asarray(x.conj() if n < first else x) for n, x in enumerate(case.arrays)]
    for results in (op(*xs), module.by_ops(xs, **op.params)):
        case.require([np.conj(z) if first else np.asarray(z) for z in map(np.asarray, results)])
    for n, x in enumerate(case.arrays[:first]):
        np.testing.assert_array_equal(np.asarray(xs[n]), x.conj())  # conjugated in a copy


@given(SEEDS)
@settings(max_examples=25)
def test_derivatives_of_graphs_are_right(seed):
    """Both modes against each other and against differences, to second order."""
    case = random_graph(seed, TINY)
    dtype = np.dtype("complex128" if case.graph.dtype.kind == "c" else "float64")
    xs = tuple([tr.asarray(x.astype(dtype)) for x in case.arrays])
    weights = [np.random.default_rng(n).standard_normal(z.shape) for n, z in enumerate(case.results)]
    op = op_of(case.graph)
    check_grads(lambda *xs: sum(tr.sum(z * w) for z, w in zip(op(*xs), weights, strict=True)), xs, order=2)


def test_conjugation_is_part_of_the_primitive():
    """Cotangents come in conjugated, and go out so; derivatives see it."""
    rng = np.random.default_rng(0)
    g, x, y = (tr.asarray(rng.standard_normal(4) + 1j * rng.standard_normal(4)) for _ in range(3))
    op = contractions.op(
        inputs=((0,), (0,), (0,)), steps=(((0,), ((0, 1),)), ((), ((3, 2),))), outputs=(4, 3), conjugated=1
    )
    total, product = op(g, x, y)
    want = np.conj(np.conj(np.asarray(g)) * np.asarray(x))
    np.testing.assert_allclose(np.asarray(product), want)
    np.testing.assert_allclose(complex(total), np.conj((np.conj(want) * np.asarray(y)).sum()))
    check_grads(lambda *xs: tr.abs(op(*xs)[0]) + tr.sum(tr.abs(op(*xs)[1])), (g, x, y), order=2)
    by_ops = module.by_ops([g, x, y], **op.params)
    np.testing.assert_allclose(complex(by_ops[0]), complex(total))


def test_labels_are_those_of_operands():
    x = tr.ones((3,))
    with pytest.raises(ArgumentError, match=r"values have labels of the operands, \[0\]; got \(\(\(1,\), "):
        contractions(x, inputs=((0,),), steps=(((1,), ((0,),)),), outputs=(1,))


def gradient_of(f, number):
    return lambda *xs: vjp(f, *xs)[1](tr.ones(f(*xs).shape))[number]


def test_unused_cotangents_are_not_computed():
    """A program for one gradient has the steps for this one only."""
    specs = [tr.Spec((5, 5), tr.float64)] * 4
    f = lambda *xs: einsum("ab,bc,cd,de->ae", *xs, optimize=[(0, 1), (0, 2), (0, 1)])
    program = optimise(tr.trace(gradient_of(f, 0), *specs))
    (eq,) = [eq for eq in program.equations if eq.op.primitive is contractions]
    assert len(eq.op.params["outputs"]) == 1
    whole = tr.trace(lambda *xs: vjp(f, *xs)[1](tr.ones((5, 5))), *specs)
    (all_of_them,) = [eq for eq in whole.equations if eq.op.primitive is contractions]
    assert len(all_of_them.op.params["outputs"]) == 4
    assert len(eq.op.params["steps"]) < len(all_of_them.op.params["steps"])
    cost = lambda eq, p: REGISTRY.find("cost", contractions)([p.specs[v] for v in eq.variables], (), **eq.op.params)
    assert cost(eq, program).flops < cost(all_of_them, whole).flops


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_gradients_in_programs_files_and_xla(dtype, tmp_path):
    """Diagonals, hyper-edges and sums; first and second order."""
    rng = np.random.default_rng(1)
    draw = lambda s: tr.asarray(rng.standard_normal(s).astype(dtype) * np.asarray(1 + 2j if dtype[0] == "c" else 1))  # type: ignore[attr-defined]  # of arrays
    xs = [draw((3, 3, 2)), draw((3, 4)), draw((4, 3, 5))]
    loss = lambda *xs: tr.sum(tr.abs(einsum("aab,ac,cad->db", *xs)) ** 2)
    first = grad(loss, argnums=(0, 1, 2))
    along = tuple(xs)
    second = lambda *xs: jvp(first, tuple(xs), along)[1]
    for f in (first, second):
        program = tr.trace(f, *[x.spec for x in xs])
        assert any(eq.op.primitive is contractions for eq in program.equations)
        program.save(tmp_path / "f.tfp")
        loaded = tr.load(tmp_path / "f.tfp")
        ways = [lambda loaded=loaded: loaded.run(*xs), lambda f=f: tr.compile(f)(*xs)]
        if find_spec("jax") is not None:
            from tenferro_xla import XlaExecutor

            ways.append(lambda program=program: XlaExecutor().run(program, *xs))
        for way in ways:
            for a, b in zip(way(), f(*xs), strict=True):
                np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-10, atol=1e-10)


def test_gradients_without_an_engine(monkeypatch):
    """Op by op, with the same results."""
    xs = [tr.asarray(np.random.default_rng(i).standard_normal((3, 3))) for i in range(4)]
    f = lambda *xs: tr.sum(einsum("ab,bc,cc,dc->ad", *xs) ** 2)
    want = grad(f, argnums=(0, 1, 2, 3))(*xs)
    monkeypatch.setattr(module, "graph_engine", lambda *args: None)
    found = tr.compile(grad(lambda *xs: f(*xs) + 0.0, argnums=(0, 1, 2, 3)))(*xs)
    for a, b in zip(found, want, strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-12, atol=1e-12)
