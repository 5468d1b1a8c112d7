"""Random contractions: equations, paths, dtypes and strides from a seed, and what the result has to be."""

import random
from typing import Any, NamedTuple

import numpy as np

from tenferro_tensor.device_model import ContractionGraph, ContractionIR

SMALL, MIDDLE = (1, 2, 3, 4, 5, 8, 9, 16, 17), (2, 3, 8, 16, 24, 30)


class Case(NamedTuple):
    """A contraction, arrays for it, an array to write to, the result in high precision and its scale."""

    ir: ContractionIR
    arrays: list[Any]
    out: Any
    result: Any
    scale: Any

    def require(self, found: Any) -> None:
        """The result is right up to roundings."""
        assert found.shape == self.result.shape and found.dtype == self.ir.dtype
        tolerance = 1e-4 if self.ir.dtype.char in "fF" else 1e-12
        wrong = np.abs(found - self.result) > tolerance * self.scale + 1e-30
        assert not wrong.any(), f"{self.ir} with strides {[x.strides for x in self.arrays]}"


def random_ir(rng: random.Random, extents: tuple[int, ...] = SMALL) -> ContractionIR:
    """Up to five operands of up to four axes, diagonals, hyper-edges and zero extents among them."""
    count = rng.randint(1, 7)
    sizes = [rng.choice(extents) for _ in range(count)]
    if rng.random() < 0.05:
        sizes[rng.randrange(count)] = 0
    operands = []
    for _ in range(rng.randint(1, 5)):
        labels = rng.sample(range(count), rng.randint(0, min(count, 4)))
        if labels and rng.random() < 0.15:
            labels.append(rng.choice(labels))
        operands.append(tuple(labels))
    have = sorted({label for labels in operands for label in labels})
    output = tuple(rng.sample(have, rng.randint(0, min(len(have), 4))))
    left, steps = list(range(len(operands))), []
    while len(left) > 1:
        pair = rng.sample(left, 2)
        steps.append(tuple(pair))
        left = [v for v in left if v not in pair] + [len(operands) + len(steps) - 1]
    inner = range(len(operands), len(operands) + len(steps) - 1)
    kept = tuple(v for v in inner if rng.random() < 0.2)
    dtype = np.dtype(rng.choice("fdFD"))
    return ContractionIR(dtype, tuple(operands), tuple(sizes), output, tuple(steps), kept)


def random_case(seed: int, extents: tuple[int, ...] = SMALL) -> Case:
    """`case_of` a random contraction."""
    rng = random.Random(seed)
    return case_of(rng, random_ir(rng, extents))


def case_of(rng: random.Random, ir: ContractionIR) -> Case:
    """A contraction with arrays that lie in order, transposed, with gaps, or backwards."""
    arrays = [array(rng, [ir.extents[x] for x in labels], ir.dtype) for labels in ir.operands]
    wide = [x.astype("D" if ir.dtype.kind == "c" else "d") for x in arrays]
    result, scale = (einsum(ir, xs) for xs in (wide, [np.abs(x) for x in wide]))
    return Case(ir, arrays, array(rng, list(result.shape), ir.dtype), result, scale)


def einsum(ir: ContractionIR, arrays: list[Any]) -> Any:
    """The sum over all labels at once."""
    arguments = [part for x, labels in zip(arrays, ir.operands, strict=True) for part in (x, list(labels))]
    return np.asarray(np.einsum(*arguments, list(ir.output), optimize=len(arrays) > 3))


def array(rng: random.Random, shape: list[int], dtype: Any) -> Any:
    """Random numbers of a shape, somehow in memory."""
    numbers = np.random.default_rng(rng.randrange(1 << 30))

    def fresh(shape: list[int]) -> Any:
        real, imaginary = numbers.normal(size=(2, *shape))
        return np.asarray(real + 1j * imaginary if np.dtype(dtype).kind == "c" else real).astype(dtype)

    way = rng.random()
    if not shape or way < 0.4:
        return fresh(shape)
    if way < 0.8:
        order = rng.sample(range(len(shape)), len(shape))
        return fresh([shape[k] for k in order]).transpose(np.argsort(order))
    if way < 0.9:
        gaps = [slice(1, 1 + 2 * n, 2) if rng.random() < 0.5 else slice(0, n) for n in shape]
        return fresh([2 * n + 1 for n in shape])[tuple(gaps)]
    return fresh(shape)[tuple(slice(None, None, -1) for _ in shape)]


class GraphCase(NamedTuple):
    """A graph of contractions, arrays for it, and its outputs in high precision with their scales."""

    graph: ContractionGraph
    arrays: list[Any]
    results: list[Any]
    scales: list[Any]

    def require(self, found: Any) -> None:
        """All outputs are right up to roundings."""
        tolerance = 3e-3 if self.graph.dtype.char in "fF" else 1e-12
        assert len(found) == len(self.results)
        for x, want, scale in zip(found, self.results, self.scales, strict=True):
            assert x.shape == want.shape and x.dtype == self.graph.dtype
            wrong = np.abs(x - want) > tolerance * scale + 1e-30
            assert not wrong.any(), f"{self.graph} with strides {[x.strides for x in self.arrays]}"


def random_graph(seed: int, extents: tuple[int, ...] = SMALL) -> GraphCase:
    """Values that are taken several times, sums of up to three terms, diagonals, and labels that no term has."""
    rng = random.Random(seed)
    count = rng.randint(1, 5)
    sizes = [rng.choice(extents) for _ in range(count)]
    if rng.random() < 0.05:
        sizes[rng.randrange(count)] = 0

    def labels() -> tuple[int, ...]:
        found = rng.sample(range(count), rng.randint(0, min(count, 3)))
        return (*found, rng.choice(found)) if found and rng.random() < 0.15 else tuple(found)

    operands = [labels() for _ in range(rng.randint(1, 4))]
    operands += [(x,) for x in range(count) if not any(x in t for t in operands)]
    steps: list[Any] = []
    for n in range(rng.randint(1, 5)):
        made = len(operands) + n
        terms = [[rng.randrange(made) for _ in range(rng.randint(1, 2))] for _ in range(rng.choice((1, 1, 2, 3)))]
        steps.append((labels(), tuple(map(tuple, terms))))
    made = range(len(operands), len(operands) + len(steps))
    outputs = tuple(rng.sample(made, rng.randint(1, len(steps))))
    graph = ContractionGraph(np.dtype(rng.choice("fdFD")), tuple(operands), tuple(sizes), tuple(steps), outputs)
    arrays = [array(rng, [sizes[x] for x in t], graph.dtype) for t in operands]
    wide = [x.astype("D" if graph.dtype.kind == "c" else "d") for x in arrays]
    results, scales = (step_by_step(graph, xs) for xs in (wide, [np.abs(x) for x in wide]))
    return GraphCase(graph, arrays, results, scales)


def step_by_step(graph: ContractionGraph, arrays: list[Any]) -> list[Any]:
    """The outputs of a graph, each term by one sum over all of its labels."""
    values = [np.asarray(x) for x in arrays]
    for labels, terms in graph.steps:
        total = np.zeros([graph.extents[x] for x in labels], values[0].dtype)
        distinct = list(dict.fromkeys(labels))
        diagonal = np.einsum(total, list(labels), distinct) if labels else total
        for term in terms:
            have = [x for x in distinct if any(x in graph.values[v] for v in term)]
            arguments = [part for v in term for part in (values[v], list(graph.values[v]))]
            part = np.asarray(np.einsum(*arguments, have))
            diagonal += part.reshape([graph.extents[x] if x in have else 1 for x in distinct])
        values.append(total)
    return [values[v] for v in graph.outputs]
