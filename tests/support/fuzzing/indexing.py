"""Indexing and functional assignment, several in a row on one array, against NumPy."""

import random
from collections.abc import Iterator
from typing import Any

import numpy as np

from fuzzing.area import WITH, WITHOUT, Area, Case, halves
from fuzzing.comparing import near
from fuzzing.reference import SCOPE, at, expected
from fuzzing.singles import refused
from fuzzing.values import ALL, array, literal, operand, shape_of, smaller

METHODS = ("set", "add", "multiply", "min", "max", "subtract")
_SHARES = (60, 25, 12, 3)
WAYS = ("eager", "recorded", "compiled", "deterministic")


def _integer(rng: random.Random, d: int) -> str:
    k = rng.randint(-d, d - 1) if d and rng.random() < 0.95 else rng.randint(-d - 1, d)
    return rng.choice((f"{k}", f"{k}", f"{k}", f"np.int64({k})", f"np.asarray({k})"))


def _slice(rng: random.Random, d: int) -> str:
    def bound() -> str:
        return rng.choice(("", "", str(rng.randint(-d - 2, d + 2))))

    return f"{bound()}:{bound()}:{rng.choice(('', '1', '2', '-1', '-2', '3', '-7'))}"


def _index(rng: random.Random, shape: tuple[int, ...]) -> str:
    """An index of any kind: integers, slices, new axes, an ellipsis, arrays of integers or of booleans."""
    parts: list[str] = []
    if shape and rng.random() < 0.08:
        return f"np.asarray({[bool(rng.getrandbits(1)) for _ in range(shape[0])]}, bool)"
    count = rng.randint(0, len(shape))
    advanced = rng.random() < 0.35
    length = rng.randint(0, 4)
    for d in shape[:count]:
        kind = rng.random()
        if advanced and kind < 0.5 and d:
            parts.append(f"np.asarray({[rng.randint(-d, d - 1) for _ in range(length)]}, int)")
        elif kind < 0.5:
            parts.append(_slice(rng, d))
        else:
            parts.append(_integer(rng, d))
    for extra, chance in (("None", 0.25), ("None", 0.1), ("...", 0.2)):
        if rng.random() < chance:
            parts.insert(rng.randint(0, len(parts)), extra)
    if len(parts) == 1 and rng.random() < 0.6:
        return parts[0]
    return "(" + "".join(p + "," for p in parts) + ")" if not any(":" in p for p in parts) else ", ".join(parts)


def _step(rng: random.Random, x: Any) -> str:
    index = _index(rng, x.shape)
    if rng.random() < 0.55 or x.dtype.kind in "bc":
        return f"x[{index}]"
    method = rng.choice(METHODS)
    value = rng.choice(("2", "1", "x.ravel()[0]")) if x.size else "1"
    index = index if ":" not in index else f"np.s_[{index}]"
    return f"at(x, {index}).{method}({value})"


class Indexing(Area):
    """Up to four indices or assignments, one after the other."""

    name = "indexing"
    machines = (WITH, WITHOUT)
    share = 2.0

    def draw(self, rng: random.Random) -> Case:
        style = rng.choice(("plain", "small", "special"))
        x = operand(rng, ALL, shape_of(rng, 0, 4), style)
        raw, steps = array(x), []
        for _ in range(rng.randint(1, 4)):
            steps.append(_step(rng, raw))
            raw = expected(eval, steps[-1], SCOPE | {"x": raw})
            if isinstance(raw, Exception):
                break  # the library has to refuse it too
            raw = np.asarray(raw)
        return {"operand": x, "steps": steps, "way": rng.choices(WAYS, _SHARES)[0]}

    def run(self, case: Case) -> None:
        import tenferro_runtime as tr

        raw, way, steps = array(case["operand"]), case["way"], case["steps"]
        if way not in ("eager", "recorded"):
            steps = [s for s in steps if "bool" not in s]  # sizes that depend on elements

        def apply(x: Any, each: Any = None) -> Any:
            for step in steps:
                x = eval(step, {"np": np, "at": at}, {"x": x})
                if each:
                    each(step, x)
            return x

        if any("tr." in s for s in steps):
            raise AssertionError(steps)
        wanted: list[Any] = []
        want = expected(apply, raw, lambda step, x: wanted.append(np.asarray(x)))
        x = tr.asarray(raw)
        if way == "recorded" and x.spec.inexact:
            from tenferro_ad import variable

            x = variable(x)
        seen: list[Any] = []
        if way in ("compiled", "deterministic"):
            got = expected(tr.compile(apply, deterministic=way == "deterministic" or None), x)
        else:
            got = expected(apply, x, lambda step, x: seen.append(x))
        what = f"`{way}: {' then '.join(steps)}`"
        if isinstance(want, Exception) or isinstance(got, Exception):
            refused(got, want, what)
            return
        for step, g, w in zip(steps, seen, wanted):
            near(g, w, f"`{way}: {step}`")
        near(got, want, what)

    def shrink(self, case: Case) -> Iterator[Case]:
        yield from (case | {"steps": steps} for steps in halves(case["steps"]))
        yield from (case | {"operand": x} for x in smaller(case["operand"]))
        x = case["operand"]
        for axis, n in enumerate(x["shape"]):
            for less in sorted({n // 2, n - 1} - {n}):
                if less >= 0:
                    shape = [less if k == axis else d for k, d in enumerate(x["shape"])]
                    yield case | {"operand": x | {"shape": shape}}
        if case["way"] != "eager":
            yield case | {"way": "eager"}

    def code(self, case: Case) -> str:
        lines = [
            "import numpy as np",
            "import tenferro_runtime as tr",
            "from fuzzing.reference import at  # x.at[index]",
        ]
        f = ["def f(x):", *[f"    x = {s}" for s in case["steps"]], "    return x"]
        x = literal(case["operand"])
        calls = {
            "eager": f"f(tr.asarray({x}))",
            "recorded": f"f(variable(tr.asarray({x})))",
            "compiled": f"tr.compile(f)(tr.asarray({x}))",
            "deterministic": f"tr.compile(f, deterministic=True)(tr.asarray({x}))",
        }
        lines += ["from tenferro_ad import variable"] * (case["way"] == "recorded")
        return "\n".join([*lines, *f, f"print({calls[case['way']]})", f"print(f({x}))"])
