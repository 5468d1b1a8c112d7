"""Programs that XLA runs: compiled by tenferro for it, beside `jax.jit` of the same function."""

from __future__ import annotations

from typing import Any

from suite.rows import Call, row


def program(name: str, key: str) -> None:
    """Register a row of `benchmarks/xla.py`."""

    def make(xp: Any) -> Call:
        import xla_programs

        given = xla_programs.rows()[key]
        own, other = xla_programs.contestants(given)
        f, arguments = own if xp.library == "tenferro" else other
        return lambda: xla_programs.wait(f(*arguments))

    make.__name__, make.__module__, make.__doc__ = name, __name__, key
    row("jax", counted=False)(make)


for name, key in (
    ("tiny_call", "tiny call"), ("gradient", "gradient of a perceptron"), ("scan", "scan of 1000 steps"),
    ("solves", "batched solve"), ("fft", "fft"), ("network", "einsum network"),
):  # fmt: skip
    program(name, key)
