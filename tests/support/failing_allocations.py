"""The n-th allocation fails, for every n: recording, derivatives and the backward pass end with `MemoryError`.

Run as a program, since a crash ends it. Each act is done again and again, with one more allocation that works, until it
has come to its end often enough; reference counts of what it reads must be as they were.
"""

from __future__ import annotations

import _testcapi  # type: ignore[import-not-found]
import gc
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

import tenferro_runtime as tr
from tenferro_ad import variable
from tenferro_ad._dual import dual
from tenferro_tensor import Tensor, next_level

ENOUGH = 40
"""Runs without an error after which no allocation is left to fail; some errors are dealt with on the way."""


def attempt(act: Callable[[], Any], n: int) -> bool:
    """Whether an act comes to its end although the n-th allocation fails."""
    _testcapi.set_nomemory(n, n + 1)
    try:
        act()
    except MemoryError:
        return False
    finally:
        _testcapi.remove_mem_hooks()
    return True


def campaign(act: Callable[[], Any], watched: list[Any]) -> int:
    """Let every allocation of an act fail; the number of those that did."""
    for _ in range(50):
        act()
    gc.collect()
    gc.disable()
    counts = list(map(sys.getrefcount, watched))
    failures = done = n = 0
    while done < ENOUGH:
        n += 1
        good = attempt(act, n)
        done, failures = (done + 1 if good else 0), failures + (not good)
        if n > 3000:
            raise AssertionError("an act never comes to its end")
    gc.enable()
    gc.collect()
    grown = [now - c for now, c in zip(map(sys.getrefcount, watched), counts)]
    if max(map(abs, grown)) > 2:
        raise AssertionError(f"references leak: {grown} after {n} runs")
    return failures


def main() -> None:
    x, w, t = variable(np.linspace(0.5, 2.0, 8)), variable(np.linspace(1.5, 2.0, 8)), tr.ones(8)
    m = variable(np.eye(3))
    d = dual(t, tr.ones(8), next_level())
    watched = [d, d.tangent, x, w, t, m, x.value, w.value, x.node, w.node, x.spec, x.value._data, Tensor, type(x)]
    acts: dict[str, Callable[[], Any]] = {
        "product": lambda: x * w,
        "with a tensor": lambda: t * x,
        "with a number": lambda: x + 1.0,
        "reflected": lambda: 2.0 - x,
        "unary": lambda: -x,
        "matrices": lambda: m @ m,
        "with a tangent": lambda: d * d,
        "tangent and number": lambda: 2.0 - d,
    }
    for name, act in acts.items():
        print(name, campaign(act, watched), flush=True)

    def graph() -> Any:
        return (x * w + x) * 2.0 - tr.tanh(x) / w

    for _ in range(4):  # rules are traced: what follows is C, since CPython itself leaks where its own frames fail
        graph().backward(t)
    z = graph()

    def backward() -> None:
        z.backward(t, retain_graph=True)
        x.zero_grad()
        w.zero_grad()

    print("backward", campaign(backward, [*watched, z, z.node, z.node.saved, z.node.parents]), flush=True)

    def both() -> None:
        (tr.sin(x) * w).backward(t)
        x.zero_grad()
        w.zero_grad()

    print("record and backward", campaign(both, watched), flush=True)


if __name__ == "__main__":
    main()
