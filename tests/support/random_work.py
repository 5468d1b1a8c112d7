"""Random work for execution plans: calls and transfers between pools and accelerators, and what they compute."""

import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tenferro_runtime.extension import Equation
from tenferro_runtime.placement._tasks import Task, Work
from tenferro_tensor import ComputeDevice, Place, Spec, catalog

SHAPE = (3, 4)

OPS: dict[str, tuple[Any, int, Callable[..., np.ndarray]]] = {
    "neg": (catalog.neg.op(), 1, np.negative),
    "sin": (catalog.sin.op(), 1, np.sin),
    "add": (catalog.add.op(), 2, np.add),
    "mul": (catalog.mul.op(), 2, np.multiply),
    "sub": (catalog.sub.op(), 2, np.subtract),
    "reverse": (catalog.reverse.op(axes=(0,)), 1, lambda x: x[::-1]),
}
"""Of each: the op, its number of operands, and NumPy's function; the last makes views."""

Kernels = Callable[[str, ComputeDevice], Callable[..., Any]]


def spec_on(device: ComputeDevice) -> Spec:
    """The spec of every value of random work on a device."""
    return Spec(SHAPE, np.dtype("float64"), Place(device.memory_space))


def random_work(rng: random.Random, devices: Sequence[ComputeDevice], kernels: Kernels, most: int = 40) -> Work:
    """Between three and `most` calls on some devices, with the transfers that they need, and some that they do not."""
    specs: dict[int, Spec] = {}
    tasks: list[Task] = []

    def new(device: ComputeDevice) -> int:
        specs[len(specs)] = spec_on(device)
        return len(specs) - 1

    inputs = [new(rng.choice(devices)) for _ in range(rng.randint(1, 4))]
    values = list(inputs)
    copies: dict[tuple[int, Any], int] = {}

    def moved(v: int, device: ComputeDevice) -> int:
        space = device.memory_space
        if specs[v].place.memory_space is space and rng.random() < 0.9:
            return v
        if (v, space) not in copies or rng.random() < 0.2:
            result = copies[v, space] = new(device)
            op = catalog.transfer.op(place=Place(space))
            tasks.append(Task(None, (v,), (result,), False, device, Equation(op, (v,), (result,))))
            values.append(result)
        return copies[v, space]

    for _ in range(rng.randint(3, most)):
        device, name = rng.choice(devices), rng.choice(list(OPS))
        op, count, _ = OPS[name]
        recent = values[-6:] if rng.random() < 0.7 else values
        operands = tuple([moved(rng.choice(recent), device) for _ in range(count)])
        result = new(device)
        equation = Equation(op, operands, (result,))
        tasks.append(Task(kernels(name, device), operands, (result,), False, device, equation, name == "reverse"))
        values.append(result)
    outputs = [rng.choice(values) for _ in range(rng.randint(1, 4))]
    return Work(tuple(inputs), {}, tuple(tasks), tuple(outputs), specs)


def given(rng: random.Random, work: Work) -> list[np.ndarray]:
    """Elements for the inputs."""
    seed = np.random.default_rng(rng.randrange(1 << 30))
    return [seed.standard_normal(SHAPE) for _ in work.inputs]


def sequential(work: Work, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """What the work computes, one task after the other in main memory."""
    values = dict(zip(work.inputs, inputs, strict=True))
    for task in work.tasks:
        operands = [values[v] for v in task.reads]
        assert task.equation is not None
        name = task.equation.op.primitive.name
        values[task.results[0]] = operands[0] if task.run is None else OPS[name][2](*operands)
    return [values[v] for v in work.outputs]
