"""First calls of contractions, their plans included, and what is planned already: tenferro beside PyTorch.

    python3 dev run benchmarks/einsum_first.py [--rounds N] [--only TEXT]

The first table has the public instances of data/einsum, the second networks of hundreds and thousands of tensors. Every
round forgets all that the process knows of contractions, but neither modules nor machine code: the first call parses,
plans and runs along a given path; a later one runs. PyTorch follows the same path, warm. For networks, "search" is the
search of the path by opt_einsum, which both need. The last table has what calls cost whose plan is known. Least
processor times of the calling thread.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from contestants import limit, optional

DATA = Path(__file__).parents[1] / "data" / "einsum"

Network = tuple[str, list[Any], list[list[Any]], list[Any]]
"""A name, arrays, their labels, and those of the result."""


def least(call: Callable[[], Any], rounds: int, before: Callable[[], Any] = lambda: None) -> float:
    """Milliseconds of a call."""
    found = []
    for _ in range(rounds):
        before()
        start = time.thread_time()
        call()
        found.append(time.thread_time() - start)
    return 1e3 * min(found)


def public(only: str) -> Iterator[tuple[str, str, list[tuple[int, ...]], list[tuple[int, ...]]]]:
    """Instances and strategies; once where strategies agree."""
    for file in sorted(DATA.glob("*.json")):
        read = json.loads(file.read_text())
        seen: list[Any] = []
        for strategy, found in read.get("paths", {}).items():
            name = f"{file.stem} {strategy}"
            if only in name and found["path"] not in seen:
                seen.append(found["path"])
                subscripts = read.get("format_string_rowmajor") or read["format_string"]
                yield name, subscripts, [tuple(s) for s in read["shapes"]], [tuple(s) for s in found["path"]]


def networks(count: int) -> Iterator[Network]:
    """About so many tensors: products of states and of unlike matrices, model counts, circuits."""
    import numpy as np

    rng, draw = np.random.default_rng(0), random.Random(0)
    arrays, terms = [], []
    for side in "kb":
        for i in range(count // 2):
            shape = (1 if i == 0 else 8, 2, 1 if i == count // 2 - 1 else 8)
            arrays.append(rng.standard_normal(shape) / 4)
            terms.append([(side, i), i, (side, i + 1)])
    yield f"states of {count // 2} sites", arrays, terms, []
    extents = [draw.randint(4, 24) for _ in range(count + 1)]
    arrays = [rng.standard_normal((extents[i], extents[i + 1])) / 4 for i in range(count)]
    yield f"{count} unlike matrices", arrays, [[i, i + 1] for i in range(count)], [0, count]
    terms = [draw.sample(range(max(0, i // 3 - 3), i // 3 + 4), 3) for i in range(count)]
    yield f"model count of {count} clauses", [rng.random((2, 2, 2)) for _ in terms], terms, []
    now: list[Any] = [("q", i) for i in range(8)]
    arrays, terms = [np.eye(2)[0]] * 8, [[x] for x in now]
    for gate in range(count - 16):
        i = 2 * gate % 7 if gate % 7 else 6
        made = [(gate, 0), (gate, 1)]
        arrays.append(np.linalg.qr(rng.standard_normal((4, 4)))[0].reshape(2, 2, 2, 2))
        terms.append([*made, now[i], now[(i + 1) % 8]])
        now[i], now[(i + 1) % 8] = made
    yield f"circuit of {count - 16} gates", arrays + [np.eye(2)[0]] * 8, terms + [[x] for x in now], []


def measured(name: str, arguments: Callable[[list[Any]], list[Any]], arrays: list[Any], path: Any, rounds: int) -> str:
    """A row: first call, later call, PyTorch's, and how many times as long as that the first one takes."""
    import opt_einsum

    import tenferro_runtime as tr
    from tenferro_einsum import einsum

    given = arguments([tr.asarray(x) for x in arrays])
    call = lambda: einsum(*given, optimize=path)
    first = least(call, rounds, tr.Runtime().clear)
    call()
    row = f"{name[:50]:52}{first:10.3f}{least(call, rounds):10.3f}"
    torch = optional("torch")
    if torch is None:
        return row
    express = opt_einsum.contract_expression(*arguments([x.shape for x in arrays]), optimize=path)
    tensors = [torch.from_numpy(x) for x in arrays]
    express(*tensors, backend="torch")
    theirs = least(lambda: express(*tensors, backend="torch"), rounds)
    return f"{row}{theirs:10.3f}{first / theirs:10.2f}"


def first_calls(only: str, rounds: int) -> None:
    """The tables of first calls."""
    import numpy as np
    from opt_einsum import paths

    from tenferro_einsum import einsum

    einsum("ab,bc,cd->ad", *[np.eye(3)] * 3)  # loads machine code
    head = f"{'first':>10}{'later':>10}{'torch':>10}{'times':>10}"
    print(f"{'ms':52}{head}")
    rng = np.random.default_rng(0)
    for name, subscripts, shapes, path in public(only):
        arrays = [rng.standard_normal(s) for s in shapes]
        print(measured(name, lambda xs, s=subscripts: [s, *xs], arrays, tuple(path), rounds), flush=True)
    print(f"\n{'ms':52}{head}{'search':>10}")
    for count in (300, 1000, 3000):
        for name, arrays, terms, output in networks(count):
            if only not in name:
                continue
            number: dict[Any, int] = {}
            labels = [[number.setdefault(x, len(number)) for x in term] for term in terms]
            end = [number[x] for x in output]
            join = lambda xs, t=labels, e=end: [v for pair in zip(xs, t, strict=True) for v in pair] + [e]
            sizes = {x: n for t, array in zip(labels, arrays, strict=True) for x, n in zip(t, array.shape, strict=True)}
            start = time.thread_time()
            path = tuple(paths.greedy([frozenset(t) for t in labels], frozenset(end), sizes))
            search = 1e3 * (time.thread_time() - start)
            spelled = lambda xs, j=join, a=arrays: [
                *(j(xs) if hasattr(xs[0], "spec") else [_subscripts(j(a)), *xs])
            ]  # opt_einsum takes shapes with a string only
            print(f"{measured(name, spelled, arrays, path, rounds)}{search:10.1f}", flush=True)


def _subscripts(arguments: list[Any]) -> str:
    from opt_einsum.parser import convert_interleaved_input

    return str(convert_interleaved_input(arguments)[0])


def known(rounds: int) -> None:
    """What is planned already."""
    import numpy as np

    import tenferro_runtime as tr
    from tenferro_einsum import contract_path, einsum, plan

    xs = [tr.asarray(np.ones((8, 8))) for _ in range(4)]
    subscripts = "ij,jk,kl,lm->im"
    prepared = plan(subscripts, *xs)
    five = ("".join(chr(200 + 5 * n + k) for k in range(5)) for n in itertools.count())
    renamed = lambda: plan("{0}{1},{1}{2},{2}{3},{3}{4}->{0}{4}".format(*next(five)), *xs)
    print(f"\n{'microseconds, four matrices of 8 x 8, plan known':52}")
    for name, call in (
        ("plan(...)", lambda: plan(subscripts, *xs)), ("plan(...) in other labels", renamed),
        ("contract_path(...)", lambda: contract_path(subscripts, *xs)),
        ("einsum(...)", lambda: einsum(subscripts, *xs)),
        ("the plan called", lambda: prepared(*xs)),
    ):  # fmt: skip
        call()
        many = lambda c=call: [c() for _ in range(50)]
        print(f"{name:52}{least(many, 5 * rounds) * 20:10.2f}")


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rounds", type=int, default=7)
    options.add_argument("--only", default="", help="rows whose name has this text")
    chosen = options.parse_args()
    limit(1)
    first_calls(chosen.only, chosen.rounds)
    known(chosen.rounds)
