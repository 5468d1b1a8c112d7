"""Chains of scalings: factors are multiplied where they are small, with the same results."""

import random
from typing import Any

import numpy as np
import pytest

from native_rooms import compiled
from random_contractions import random_case, step_by_step
from tenferro_cpu.native.contraction import _chains, _kernel, tuning
from tenferro_tensor import ComputeDevice, get_backend
from tenferro_tensor.device_model import ContractionGraph, ContractionIR

pytestmark = pytest.mark.skipif(compiled is None, reason="there is no C extension")

F8 = np.dtype("float64")
CPU = ComputeDevice("cpu:0")


def folded_and_run(operands, extents, steps, output):
    """What the engine makes of a contraction, the steps that it takes, and the plain sum."""
    ir = ContractionIR(F8, operands, extents, output, steps)
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=[extents[x] for x in labels]) for labels in operands]
    found = get_backend("cpu").contraction(ir, CPU)(*arrays)
    arguments: list[Any] = [part for x, labels in zip(arrays, operands, strict=True) for part in (x, list(labels))]
    expected = np.einsum(*arguments, list(output), optimize=True)
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10 * np.abs(expected).max())
    return _chains.folded(ir.graph).steps


def test_a_chain_of_scalings_is_one_pass():
    """Vectors, a number and a small matrix are multiplied first; what is large is read once."""
    steps = folded_and_run(
        ((0, 1, 2), (0,), (1,), (), (0, 1)), (20, 30, 700), ((0, 1), (5, 2), (6, 3), (7, 4)), (0, 1, 2)
    )
    assert [len(labels) for labels, _ in steps] == [1, 2, 2, 3]
    assert steps[-1][0] == (0, 1, 2)
    assert 0 in steps[-1][1][0]


def test_factors_go_into_the_neighbour():
    """Those of an operand into the small matrix that it meets, those of a product into its small operand."""
    steps = folded_and_run(((0, 1), (1,), (1, 2)), (4000, 30, 5), ((0, 1), (3, 2)), (0, 2))
    assert steps == (((1, 2), ((1, 2),)), ((0, 2), ((0, 3),)))
    steps = folded_and_run(((0, 1), (1, 2), (2,)), (900, 7, 200), ((0, 1), (3, 2)), (2, 0))
    assert steps == (((1, 2), ((1, 2),)), ((2, 0), ((0, 3),)))


def test_sums_come_after_their_factors():
    """The last factor ends the axis along which the first ones scale."""
    steps = folded_and_run(((0, 1), (1,), (1,)), (300, 60), ((0, 1), (3, 2)), (0,))
    assert steps == (((1,), ((1, 2),)), ((0,), ((0, 3),)))


def test_a_tree_of_products_multiplies_one_value():
    """Eight matrices along pairs of axes, joined in twos: what is as large as the result is made once, then scaled."""
    pairs = ((0, 1), (2, 3), (1, 2), (3, 4), (0, 4), (1, 3), (0, 2), (2, 4))
    tree = ((0, 1), (2, 3), (4, 5), (6, 7), (8, 9), (10, 11), (12, 13))
    steps = folded_and_run(pairs, (8, 9, 10, 11, 12), tree, (3, 1, 0, 4, 2))
    whole = [n for n, (labels, _) in enumerate(steps, len(pairs)) if len(labels) == 5]
    assert whole[-1] == len(pairs) + len(tree) - 1
    assert steps[-1][0] == (3, 1, 0, 4, 2)
    for _, (pair,) in steps:
        assert len({*pair}.intersection(whole)) < 2  # two values of all axes never meet
    assert sorted(u for _, (pair,) in steps for u in pair) == [*range(len(pairs) + len(tree) - 1)]


def test_products_of_parts_stay_a_tree():
    """Vectors side by side: a chain would make more."""
    graph = ContractionIR(F8, ((0,), (1,), (2,), (3,)), (20,) * 4, (0, 1, 2, 3), ((0, 1), (2, 3), (4, 5))).graph
    assert _chains.folded(graph) is graph


@pytest.mark.parametrize(
    ("operands", "extents", "steps", "kept"),
    [
        (((0, 1), (1,), (0,)), (300, 300), ((0, 1), (3, 2)), (3,)),  # the scaled value is wanted
        (((0, 1), (1,), (0,)), (40, 40), ((0, 1), (3, 2)), ()),  # nothing is large
        (((0, 1), (0, 1), (0,)), (300, 300), ((0, 1), (3, 2)), ()),  # no factor is small
        (((0, 1), (1,), (0,), ()), (300, 3), ((0, 1), (2, 3), (4, 5)), ()),  # the other factor comes later
    ],
)
def test_what_stays_as_it_is(operands, extents, steps, kept):
    """Graphs without a gain are the same objects."""
    graph = ContractionIR(F8, operands, extents, (0, 1), steps, kept).graph
    assert _chains.folded(graph) is graph


@pytest.fixture
def everywhere(monkeypatch):
    """The rules without a look at sizes; a list of the graphs that they have changed."""
    monkeypatch.setattr(tuning, "CHAIN_MIN_ELEMENTS", 0)
    monkeypatch.setattr(tuning, "CHAIN_SIZE_FACTOR", 0)
    changed: list[ContractionGraph] = []
    rules = _chains.folded

    def noted(graph: ContractionGraph) -> ContractionGraph:
        found = rules(graph)
        if found is not graph:
            changed.append(found)
        return found

    monkeypatch.setattr(_kernel, "folded", noted)
    return changed


def test_random_contractions_wherever_the_rules_fit(everywhere):
    """Hyper-edges, diagonals, kept values and zero extents among them."""
    for seed in range(300):
        case = random_case(seed)
        found = get_backend("cpu").contraction(case.ir, CPU)(*case.arrays)
        if case.ir.kept:
            found, *kept = found
            assert [x.shape for x in kept] == [case.ir.shape(v) for v in case.ir.kept]
        case.require(found)
    assert len(everywhere) > 20


def chain(seed):
    """A graph whose steps take the value before and another one, with any labels."""
    rng = random.Random(seed)
    sizes = tuple(rng.choice((1, 2, 3, 5, 8)) for _ in range(4))

    def some(most):
        return tuple(rng.sample(range(4), rng.randint(0, most)))

    operands = [some(3) for _ in range(4)]
    values, steps, before = list(operands), [], rng.randrange(4)
    for _ in range(rng.randint(2, 5)):
        pair = [before, rng.randrange(4) if rng.random() < 0.8 else rng.randrange(len(values))]
        rng.shuffle(pair)
        labels = values[before] if rng.random() < 0.5 else some(4)
        before = len(values)
        values.append(labels)
        steps.append((labels, (tuple(pair),)))
    outputs = (before,) if rng.random() < 0.8 or len(steps) < 2 else (before, before - 1)
    return ContractionGraph(F8, tuple(operands), sizes, tuple(steps), outputs)


def tree(seed):
    """A graph that joins its values in any order; most steps sum nothing, and some values are taken twice."""
    rng = random.Random(seed)
    sizes = tuple(rng.choice((1, 2, 3, 5)) for _ in range(4))
    operands = [tuple(rng.sample(range(4), rng.randint(0, 3))) for _ in range(rng.randint(4, 8))]
    values, steps = list(operands), []
    left = list(range(len(values)))
    while len(left) > 1:
        pair = tuple(left.pop(rng.randrange(len(left))) for _ in range(2))
        labels = tuple(dict.fromkeys(x for v in pair for x in values[v]))
        if rng.random() < 0.15:
            labels = labels[1:]
        left += [len(values)] * (2 if rng.random() < 0.1 else 1)
        values.append(tuple(rng.sample(labels, len(labels))))
        steps.append((values[-1], (pair,)))
    return ContractionGraph(F8, tuple(operands), sizes, tuple(steps), (len(values) - 1,))


def test_random_trees_in_other_orders(monkeypatch):
    """Trees of any sizes, where they would not gain too."""
    monkeypatch.setattr(tuning, "CHAIN_MIN_ELEMENTS", 0)
    monkeypatch.setattr(tuning, "CHAIN_SIZE_FACTOR", 1 << 40)
    monkeypatch.setattr(tuning, "CHAIN_GAIN", 100)
    changed = 0
    for seed in range(400):
        graph = tree(seed)
        found = _chains.folded(graph)
        changed += found is not graph
        rng = np.random.default_rng(seed)
        arrays = [rng.normal(size=[graph.extents[x] for x in labels]) for labels in graph.operands]
        for values in (step_by_step(found, arrays), get_backend("cpu").contraction(graph, CPU)(*arrays)):
            scale = step_by_step(graph, [np.abs(x) for x in arrays])[0]
            assert np.all(np.abs(values[0] - step_by_step(graph, arrays)[0]) <= 1e-12 * scale + 1e-30), graph
    assert changed > 200


def test_random_chains_wherever_the_rules_fit(everywhere):
    """Values that are taken again, labels that no term has, several outputs."""
    for seed in range(600):
        graph = chain(seed)
        rng = np.random.default_rng(seed)
        arrays = [rng.normal(size=[graph.extents[x] for x in labels]) for labels in graph.operands]
        found = get_backend("cpu").contraction(graph, CPU)(*arrays)
        wanted, scales = (step_by_step(graph, xs) for xs in (arrays, [np.abs(x) for x in arrays]))
        for x, want, scale in zip(found, wanted, scales, strict=True):
            assert np.all(np.abs(x - want) <= 1e-12 * scale + 1e-30), graph
    assert len(everywhere) > 100
