"""Random functions with notes in loops, branches and calls: every way to run one makes the notes of plain Python."""

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tenferro_runtime as tr
from tenferro_ad import checkpoint, grad, hessian, jvp, linearize
from thorough import tries

Step = Callable[[Any, Callable[..., None]], Any]
NESTING = 3


def random_step(rng: random.Random, depth: int = 0) -> Step:
    """A function of a number, and of a function that notes what it is given."""
    kinds = ["note", "scan", "fori_loop", "while_loop", "cond", "map", "compile", "checkpoint", "sequence"]
    kind = rng.choice(kinds if depth < NESTING else ["note"])
    label, count = rng.randrange(1000), rng.randint(0, 3)
    reverse, unroll = rng.random() < 0.5, rng.choice([False, False, 2, True])
    steps = [random_step(rng, depth + 1) for _ in range(rng.randint(1, 2))] if depth < NESTING else []

    def inner(x: Any, note: Callable[..., None]) -> Any:
        for step in steps:
            x = step(x, note)
        return x

    def outer(x: Any, note: Callable[..., None]) -> Any:
        def told(value: Any, *seen: Any) -> Any:
            note(label, *seen)
            return value

        match kind:
            case "note":
                return told(x * 1.25 + 0.1, x)
            case "scan":
                step = lambda c, y: told((inner(c, note) * 0.5 + y, c), c, y)
                last, rows = tr.scan(step, x, tr.arange(float(count)), reverse=reverse, unroll=unroll)
                return last + tr.sum(rows)
            case "fori_loop":
                return tr.fori_loop(0, count, lambda i, c: told(inner(c, note) * 0.5, i), x)
            case "while_loop":
                body = lambda c: (c[0] + 1, inner(c[1], note) * 0.5)
                return tr.while_loop(lambda c: told(c[0] < 2, c[0]), body, (0, x), max_steps=4)[1]
            case "cond":
                return tr.cond(x > 0.7, lambda v: told(inner(v, note), v), lambda v: told(v * 2.0), x)
            case "map":
                return tr.sum(tr.map(lambda y: told(inner(x * y, note), y), tr.asarray([0.5, 1.5])))
            case "compile":
                return tr.compile(lambda y: inner(y, note))(x)
            case "checkpoint":
                return checkpoint(lambda y: inner(y, note))(x)
        return inner(x, note)

    return outer


WAYS: dict[str, Callable[[Any], Callable[..., Any]]] = {
    "compiled": tr.compile,
    "grad": grad,
    "grad, compiled": lambda f: tr.compile(grad(f)),
    "compiled, grad": lambda f: grad(tr.compile(f)),
    "jvp": lambda f: lambda x: jvp(f, (x,), (1.0,)),
    "jvp, compiled": lambda f: tr.compile(lambda x: jvp(f, (x,), (1.0,))),
    "hessian": hessian,
    "second derivative, compiled": lambda f: tr.compile(grad(grad(f))),
    "linearized": lambda f: lambda x: linearize(f, x)[1](1.0),
}


@pytest.mark.parametrize("seed", range(tries(8, 40)))
def test_every_way_makes_the_same_notes(seed: int) -> None:
    step = random_step(random.Random(seed))
    notes: list[tuple[Any, ...]] = []

    def note(label: int, *values: Any) -> None:
        tr.debug_callback(lambda *vs: notes.append((label, *[round(float(v), 9) for v in vs])), *values)

    def noted(run: Callable[..., Any], x: Any) -> list[tuple[Any, ...]]:
        notes.clear()
        run(x)
        return list(notes)

    f = lambda x: step(x, note)
    plain = noted(f, 0.8)
    for name, way in WAYS.items():
        run = way(f)
        assert [noted(run, 0.8) for _ in range(2)] == [plain, plain], name

    lanes = np.array([0.8, 0.3, 1.1])
    alone = sorted([told for x in lanes for told in noted(f, x)])
    for way in (tr.vmap, lambda f: tr.compile(tr.vmap(f)), lambda f: tr.vmap(grad(f))):
        together = sorted(noted(way(f), lanes))
        assert {*together} == {*alone} and len(together) <= len(alone)  # what lanes share is noted once
