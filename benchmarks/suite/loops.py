"""Loops in compiled programs: scans, while loops, recurrences, and their gradients."""

from __future__ import annotations

from functools import partial
from typing import Any

from loop_programs import every
from loop_programs.record import LoopProgram, loss_of

from suite.rows import Call, row

TITLES = {
    "heat_2d": "heat equation on a grid of {n} by {n}",
    "thomas": "{n} tridiagonal systems of {n}",
    "hmm_forward": "likelihood of {n} observations of a hidden Markov chain",
    "kalman": "Kalman filter of {n} measurements",
    "runge_kutta": "{n} Runge-Kutta steps of a predator-prey model",
    "escape_times": "escape times of {n} points, each in its own while loop",
    "biquad": "cascade of biquad filters, {n} samples",
    "viterbi": "Viterbi path through {n} steps of 16 states",
    "recurrent": "a recurrent network of {n} steps",
    "tebd_sweep": "a sweep of two-site gates over {n} sites",
}


def title(program: LoopProgram, size: str) -> str:
    return TITLES[program.name].replace("{n}", str(program.sizes[size]))


def value(name: str, size: str) -> None:
    """Register a program of `loop_programs`."""
    program = every()[name]

    def make(xp: Any) -> Call:
        arguments = program.arguments(size)
        if xp.library == "numpy":
            return lambda: program.numpy(*arguments)
        f, given = xp.compiled(partial(program.traced, xp)), [xp.array_of(x) for x in arguments]
        return lambda: f(*given)

    make.__name__, make.__module__ = name, __name__
    make.__doc__ = title(program, size)
    row("numpy", "jax")(make)


def gradient(name: str, size: str) -> None:
    """Register value and gradient of the sum of squares of a program's results."""
    program = every()[name]

    def make(xp: Any) -> Call:
        f = xp.compiled(xp.value_and_grad(loss_of(xp, program.traced), argnums=program.gradient))
        given = [xp.array_of(x) for x in program.arguments(size)]
        return lambda: f(*given)

    make.__name__, make.__module__ = f"gradient_of_{name}", __name__
    make.__doc__ = f"value and gradient: {title(program, size)}"
    row("jax")(make)


for name in ("heat_2d", "thomas", "hmm_forward", "kalman", "runge_kutta", "escape_times", "biquad", "viterbi"):
    value(name, "small")
for name in ("recurrent", "kalman", "tebd_sweep", "heat_2d"):
    gradient(name, "small")
