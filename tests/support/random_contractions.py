"""Random contractions: equations, paths, dtypes and strides from a seed, and what the result has to be."""

import random
from typing import Any, NamedTuple

import numpy as np

from tenferro_tensor.device_model import ContractionIR

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
    """A contraction with arrays that lie in order, transposed, with gaps, or backwards."""
    rng = random.Random(seed)
    ir = random_ir(rng, extents)
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
