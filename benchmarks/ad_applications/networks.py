"""A recurrent network with memory cells."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ad_applications.record import Application, Library


def memory_cells(xp: Library) -> Callable[..., Any]:
    """Gradient of the likelihood of a sequence under two layers of diagonal LSTM cells."""

    def sigmoid(x: Any) -> Any:
        return 1 / (1 + xp.exp(-x))

    def cell(weights: Any, state: Any, x: Any) -> Any:
        hidden, memory = state
        forget, take, out = (sigmoid(x * weights[k] + weights[k + 4]) for k in (0, 2, 3))
        change = xp.tanh(hidden * weights[1] + weights[5])
        memory = memory * forget + take * change
        return (out * xp.tanh(memory), memory)

    def loss(weights: Any, ends: Any, states: Any, sequence: Any) -> Any:
        def step(state: Any, x: Any) -> Any:
            value = x * ends[0]
            after = []
            for layer in range(2):
                new = cell(weights[layer], (state[layer, 0], state[layer, 1]), value)
                after.append(xp.stack(new))
                value = new[0]
            return xp.stack(after), value * ends[1] + ends[2]

        _, guesses = xp.scan(step, states, sequence[:-1])
        logs = guesses - xp.log(2 + xp.sum(xp.exp(guesses), axis=1))[:, None]
        return -xp.mean(sequence[1:] * logs)

    return xp.value_and_grad(loss, argnums=(0, 1))


def _sequence(n: int, random: np.random.Generator) -> tuple[Any, ...]:
    d = 14
    return (
        random.normal(size=(2, 8, d)),
        random.normal(size=(3, d)),
        random.normal(size=(2, 2, d)),
        random.normal(size=(n, d)),
    )


APPLICATIONS = [Application("memory cells", memory_cells, _sequence, (4, 100))]
