"""Programs of 30 to 60 operations, in all ways to run them, against the same text over NumPy."""

import random
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from fuzzing.area import ALWAYS, WITH, WITHOUT, Area, Case, Mismatch
from fuzzing.comparing import RTOL, bitwise, near
from fuzzing.reference import SCOPE, expected, library
from fuzzing.singles import remark
from fuzzing.values import ALL, array, literal, operand, smaller
from fuzzing.writing import Writer

WAYS = ("eager", "recorded", "compiled", "deterministic", "xla")
_SHARES = (20, 10, 40, 28, 2)
_DTYPES = ("float64",) * 5 + ("float32",) * 2 + ("complex128",) * 2 + ("int64", "bool", "complex64", "int32", "uint8")


def function_text(case: Case) -> str:
    """The program as a function definition."""
    names = ", ".join(case["inputs"])
    lines = [f"def f({names}):", *[f"    {n} = {text}" for n, text in case["lines"]]]
    return "\n".join([*lines, f"    return {', '.join(case['outputs'])},"]) + "\n"


def function(text: str, scope: dict[str, Any]) -> Callable[..., Any]:
    """What the definition defines over a library."""
    exec(text, scope)
    made: Callable[..., Any] = scope["f"]
    return made


def draw_program(rng: random.Random, least: int = 30, most: int = 60, smooth: bool = False) -> Case:
    """Operands, lines and outputs; with `smooth`, functions that have derivatives, of floats."""
    n, m = rng.choice(((2, 3), (3, 4), (1, 3), (4, 4), (5, 2), (0, 3), (3, 1)))
    if smooth:
        n = max(n, 1)
    dtypes = ("float64", "float64", "complex128") if smooth else _DTYPES
    inputs = {}
    for k in range(rng.randint(1, 4)):
        shape = rng.choice(((), (m,), (n, m), (n, 1), (m, n), (2, n, m)))
        inputs[f"v{k}"] = operand(
            rng, (rng.choice(dtypes),), shape, rng.choice(("plain", "unit", "plain" if smooth else "small"))
        )
    writer = Writer(rng, {name: array(x) for name, x in inputs.items()}, smooth)
    writer.write(rng.randint(least, most))
    lines = [list(line) for line in writer.lines]
    late = [name for name, _ in writer.lines[-12:]] or list(inputs)
    outputs = sorted(set(rng.choices(late, k=rng.randint(1, 3))) | {late[-1]})
    return {"inputs": inputs, "lines": lines, "outputs": outputs}


def reference(case: Case, args: list[Any]) -> tuple[Any, list[Any]]:
    """NumPy's results, and for each output the numbers that its tolerance is relative to.

    These are how far it moves when the operands move a little, and the largest value on the way: values that cancel,
    whatever the operands are, leave rounding errors behind.
    """
    count, names = len(case["outputs"]), [n for n, _ in case["lines"]]
    f = function(function_text(case | {"outputs": [*case["outputs"], *names]}), dict(SCOPE))
    every = expected(f, *args)
    if isinstance(every, Exception):
        return every, []
    largest = max([np.max(np.abs(v), initial=0.0) for v in every if np.asarray(v).dtype.kind in "fc"], default=0.0)
    want = every[:count]
    scales = [largest * np.ones(np.shape(w)) for w in want]
    rng = np.random.default_rng(0)
    narrow = max([1e-8] + [_nudge(x.dtype) for x in args])
    for _ in range(2):
        other = expected(f, *[_moved(x, rng) for x in args])
        if isinstance(other, Exception):
            return other, []
        for k, (w, o) in enumerate(zip(want, other)):
            if np.asarray(w).dtype.kind in "fc" and np.size(w):
                scales[k] = scales[k] + np.max(np.abs(w - o)) / narrow
    return want, scales


def _nudge(dtype: Any) -> float:
    return 1e-3 if dtype.char in "fF" else 1e-8


def _moved(x: Any, rng: Any) -> Any:
    if x.dtype.kind not in "fc":
        return x
    return (x * (1 + _nudge(x.dtype) * rng.standard_normal(x.shape))).astype(x.dtype)


class Programs(Area):
    """Programs of random lines."""

    name = "programs"
    machines = (WITHOUT, WITH, WITHOUT, WITHOUT, ALWAYS, WITHOUT)
    share = 6.0
    composed = True
    patience = 120.0

    def draw(self, rng: random.Random) -> Case:
        return draw_program(rng) | {"way": rng.choices(WAYS, _SHARES)[0]}

    def run(self, case: Case) -> None:
        raws = [array(x) for x in case["inputs"].values()]
        want, scales = reference(case, raws)
        if isinstance(want, Exception):
            return  # made smaller until it means nothing
        got = self.outcome(case, raws)
        low = any(x["dtype"] in ("float32", "complex64") for x in case["inputs"].values())
        for g, w, s, name in zip(got, want, scales, case["outputs"]):
            dtype = np.asarray(w).dtype.name
            wide = RTOL["float32"] / RTOL["float64"] if low and dtype in ("float64", "complex128") else 1.0
            near(g, w, f"`{case['way']}: {name}`", 100 * wide, [s])

    def outcome(self, case: Case, raws: list[Any]) -> Any:
        """The results of the library in the way of the case."""
        import tenferro_runtime as tr

        way, f = case["way"], function(function_text(case), library())
        args = [tr.asarray(x) for x in raws]
        if way == "eager":
            return f(*args)
        if way == "recorded":
            from tenferro_ad import variable

            return f(*[variable(x) if x.spec.inexact else x for x in args])
        if way == "xla":
            from tenferro_xla import XlaExecutor

            return XlaExecutor().run(tr.trace(f, *args), *args)
        run = tr.compile(f, deterministic=way == "deterministic" or None)
        got = run(*args)
        if way == "deterministic":
            bitwise(got, f(*args), "deterministic against eager")
        again = run(*args)
        try:
            bitwise(again, got, "a second call")
        except Mismatch:
            if way == "deterministic":
                raise
        return again

    def subject(self, case: Case) -> str:
        names = {n for _, t in case["lines"] for n in re.findall(r"(?:tr\.|at\(.*\)\.)(\w+)\(|( [-+*/@] )|(\[)", t)}
        return " ".join(sorted("".join(n).strip() for n in names)[:4])

    def shrink(self, case: Case) -> Iterator[Case]:
        names = [n for n, _ in case["lines"]]
        if len(case["outputs"]) > 1:
            yield from (_live(case | {"outputs": [n]}) for n in case["outputs"])
        for n in names[:: max(1, len(names) // 8)] + names:
            if n not in case["outputs"]:
                yield _live(case | {"outputs": [n]})
        args = {n: array(x) for n, x in case["inputs"].items()}
        specs = _specs(case, args)
        for k, (n, _) in enumerate(case["lines"]):  # one line less, an earlier value of its kind in its place
            for other in [*case["inputs"], *names[:k]]:
                if specs.get(other) == specs.get(n) and other in specs:
                    rest = case["lines"][:k] + [[m, _renamed(t, n, other)] for m, t in case["lines"][k + 1 :]]
                    yield _live(case | {"lines": rest, "outputs": [other if o == n else o for o in case["outputs"]]})
        for name, x in case["inputs"].items():
            for y in smaller(x):
                yield case | {"inputs": case["inputs"] | {name: y}}

    def code(self, case: Case) -> str:
        way = case["way"]
        lines = ["import numpy as np", "import tenferro_runtime as tr"]
        lines += ["from fuzzing.reference import at  # x.at[index]"] * any("at(" in t for _, t in case["lines"])
        lines += [function_text(case).rstrip()]
        lines += [f"{n} = tr.asarray({literal(x)})" for n, x in case["inputs"].items()]
        arguments = ", ".join(case["inputs"])
        calls = {
            "recorded": f"from tenferro_ad import variable\nprint(f(*[variable(x) if x.spec.inexact else x for x in "
            f"({arguments},)]))",
            "compiled": f"print(tr.compile(f)({arguments}))",
            "deterministic": f"print(tr.compile(f, deterministic=True)({arguments}))",
            "xla": f"from tenferro_xla import XlaExecutor\n"
            f"print(XlaExecutor().run(tr.trace(f, {arguments}), {arguments}))",
        }
        eager = f"print(f({arguments}))"
        raws = [array(x) for x in case["inputs"].values()]
        want = expected(function(function_text(case), dict(SCOPE)), *raws)
        return "\n".join([*lines, eager, calls.get(way, ""), remark(f"NumPy: {want!r}")])


def _specs(case: Case, args: dict[str, Any]) -> dict[str, Any]:
    scope = dict(SCOPE) | args
    for n, text in case["lines"]:
        scope[n] = expected(eval, text, scope)
    made: dict[str, Any] = {n: scope[n] for n in [*case["inputs"], *[n for n, _ in case["lines"]]]}
    return {n: (x.shape, x.dtype) for n, x in made.items() if not isinstance(x, Exception)}


def _renamed(text: str, old: str, new: str) -> str:
    return re.sub(rf"\b{old}\b", new, text)


def _live(case: Case) -> Case:
    """Without lines and inputs that no output needs."""
    needed, lines = set(case["outputs"]), []
    for n, text in reversed(case["lines"]):
        if n in needed:
            needed |= set(re.findall(r"\bv\d+\b", text))
            lines.insert(0, [n, text])
    kept = {n: x for n, x in case["inputs"].items() if n in needed}
    return case | {"lines": lines, "inputs": kept or dict([next(iter(case["inputs"].items()))])}


assert set(_DTYPES) <= set(ALL)
