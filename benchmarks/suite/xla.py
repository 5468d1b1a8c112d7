"""Programs that XLA runs: compiled by tenferro for it, beside `jax.jit` of the same function."""

from __future__ import annotations

from typing import Any

from suite.rows import Call, row


def program(name: str, key: str, title: str) -> None:
    """Register a row of `benchmarks/xla.py`."""

    def make(xp: Any) -> Call:
        import xla_programs

        given = xla_programs.rows()[key]
        own, other = xla_programs.contestants(given)
        f, arguments = own if xp.library == "tenferro" else other
        return lambda: xla_programs.wait(f(*arguments))

    make.__name__, make.__module__, make.__doc__ = name, __name__, title
    row("jax", counted=False)(make)


for name, key, title in (
    ("tiny_call", "tiny call", "x + 1, 3 numbers"),
    ("gradient", "gradient of a perceptron", "gradient of a network 64-128-10, 256 samples"),
    ("scan", "scan of 1000 steps", "scan of 1000 steps tanh(x @ w), 32 numbers"),
    ("solves", "batched solve", "64 systems of 16 with 4 right-hand sides"),
    ("fft", "fft", "abs(fft2(x)), 16 of 128 by 128"),
    ("network", "einsum network", "einsum of six tensors of 8 by 8 by 8"),
):
    program(name, key, title)
