"""`CostModel`: estimates the time of a program's steps from their operations and the bytes that they move."""

from __future__ import annotations

from dataclasses import dataclass

from tenferro_runtime.costs._costs import cost
from tenferro_runtime.costs._storage import Storage
from tenferro_runtime.ir._call import is_part
from tenferro_runtime.ir._program import Equation, Program
from tenferro_tensor_core import ArgumentError


@dataclass(frozen=True)
class CostModel:
    """The assumptions about a machine that place steps; ``compile(f, placement=CostModel(...))``.

    The defaults never depend on a measurement, so that a program is placed equally everywhere. Pass other numbers if
    they are far off.

    Attributes:
        products: operations per second of contractions, decompositions and transforms, in one thread.
        elements: operations per second of element-wise steps.
        bytes: bytes per second that a step reads and writes.
        step: overhead of a step in seconds.
        handover: seconds until another pool starts its steps.
        join: seconds until a thread that waits for another one continues.
        least: smallest amount of work for a pool, in seconds.
        long: smallest mean duration of the steps of another pool, in seconds: threads call short steps one at a time.
        gain: smallest fraction of the sequential time that placement must save.

    Raises:
        ArgumentError: a speed is not positive, or a time or the gain is negative.

    >>> CostModel().join < CostModel().least
    True
    """

    products: float = 4e10
    elements: float = 5e8
    bytes: float = 8e9
    step: float = 1e-6
    handover: float = 90e-6
    join: float = 70e-6
    least: float = 150e-6
    long: float = 20e-6
    gain: float = 0.15

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            speed = name in ("products", "elements", "bytes")
            if not (value > 0 if speed else value >= 0):
                law = "speeds are positive" if speed else "times and gains are not negative"
                raise ArgumentError(f"a CostModel was made with {name}={value!r}; {law}", **{name: value})

    def seconds(self, program: Program, eq: Equation, storage: Storage) -> float:
        """Estimate the time of an equation of a program without symbolic sizes; 0 for a view.

        Args:
            program: the program.
            eq: the equation.
            storage: the storage analysis of the program.

        Returns:
            Seconds.
        """
        if storage.is_view(eq):
            return 0.0
        found = cost(program, eq, storage)
        speed = self.elements if _by_elements(eq) else self.products
        return self.step + max(_number(found.flops) / speed, _number(found.bytes) / self.bytes)


def _by_elements(eq: Equation) -> bool:
    steps = eq.op.params["program"].equations if is_part(eq) else (eq,)
    return all(step.op.primitive.elementwise for step in steps)


def _number(n: object) -> float:
    """A count; 0 if it is unknown."""
    return float(n) if isinstance(n, (int, float)) else 0.0
