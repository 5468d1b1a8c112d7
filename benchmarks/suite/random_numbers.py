"""Random numbers by generators with NumPy's methods; JAX draws the same distributions from a key, compiled."""

from __future__ import annotations

from typing import Any

from random_draws import GENERATORS, KEYS

from suite.rows import Call, row, spelled

COUNT = 100_000


def drawing(name: str, count: int) -> None:
    """Register the draws of a distribution."""

    def make(xp: Any) -> Call:
        if xp.library == "jax":
            import jax

            key, compiled = jax.random.key(0), jax.jit(lambda k: KEYS[name](jax.random, k, count))
            return lambda: compiled(key)
        generator, draw = xp.random.default_rng(0), GENERATORS[name]
        return lambda: draw(generator, count)

    make.__name__, make.__module__ = f"{name}[{count}]", __name__
    make.__doc__ = f"{name.replace('_', ' ')}, {spelled(count)} numbers"
    row("numpy", "jax", repeats=50 if count < 100 else 1)(make)


for name in ("random", "standard_normal", "exponential", "integers", "gamma", "poisson(4)", "permutation"):
    drawing(name, COUNT)
drawing("standard_normal", 8)
