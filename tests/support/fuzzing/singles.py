"""Single calls: every function x dtype x layout x way to run it, against NumPy."""

import random
import re
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from fuzzing.area import ALWAYS, WITH, WITHOUT, Area, Case, Mismatch, halves
from fuzzing.comparing import bitwise, leaves, near
from fuzzing.family_calls import draw_call
from fuzzing.reference import SCOPE, expected
from fuzzing.texts import NAMES, pair
from fuzzing.values import array, literal, smaller, variant

WAYS = ("eager", "recorded", "compiled", "deterministic", "xla")
_SHARES = (54, 25, 11, 9.9, 0.1)

VARIANTS = 6
"""Operands of one case: making the call is dear, and repeating it cheap."""

UNKNOWN_SIZES = ("nonzero(", "unique_")
"""Functions whose results have sizes that no trace knows."""

FREE_VECTORS = ("linalg.svd(", "linalg.eigh(")
"""They choose vectors of equal singular values or eigenvalues in another way where they may be differentiated."""

EXPECTED_REFUSALS = ("DTypeError", "UnsupportedError")
"""What the library may say to operands that NumPy converts by itself; every way has to say it."""


class Compiled:
    """Compiled functions by their text, so that values, shapes and layouts meet a function that has run before."""

    def __init__(self, most: int = 1500) -> None:
        self.most = most
        self.kept: OrderedDict[tuple[str, int, bool], Callable[..., Any]] = OrderedDict()

    def __call__(self, text: str, count: int, deterministic: bool) -> Callable[..., Any]:
        import tenferro_runtime as tr

        key = (text, count, deterministic)
        if key not in self.kept:
            self.kept[key] = tr.compile(pair(text, count)[1], deterministic=deterministic or None)
            if len(self.kept) > self.most:
                self.kept.popitem(last=False)
        self.kept.move_to_end(key)
        return self.kept[key]


class Singles(Area):
    """One call on one to three operands, and again on others of their dtypes and shapes."""

    name = "singles"
    machines = (WITH, WITH, WITHOUT, ALWAYS)
    share = 6.0

    def __init__(self) -> None:
        super().__init__()
        self.compiled = Compiled()

    def draw(self, rng: random.Random) -> Case:
        call = draw_call(rng)
        way = rng.choices(WAYS, _SHARES)[0]
        if any(name in call.text for name in UNKNOWN_SIZES):
            way = "eager"
        if way == "deterministic" and any(name in call.text for name in FREE_VECTORS):
            way = "compiled"
        if way == "xla":  # its CPU takes subnormal numbers for zero
            for x in call.operands:
                x["style"] = "plain" if x["style"] == "special" else x["style"]
        case = {"text": call.text, "operands": call.operands, "rtol": call.rtol, "scale": call.scale, "way": way}
        return case | {"variants": list(range(1 if way == "xla" else VARIANTS))}

    def trials(self, case: Case) -> int:
        return len(case["variants"])

    def run(self, case: Case) -> None:
        for k in case["variants"]:
            self._compare(case, [array(variant(x, k)) for x in case["operands"]])

    def _compare(self, case: Case, raws: list[Any]) -> None:
        text, way = case["text"], case["way"]
        before = [x.copy() for x in raws]
        reference, function = pair(text, len(raws))
        want = expected(reference, *raws)
        got = expected(lambda: self.outcome(case, function, raws))
        for x, y in zip(raws, before):
            if x.tobytes() != y.tobytes():
                raise Mismatch(f"`{way}: {text}` changed an operand")
        if isinstance(got, Exception) or isinstance(want, Exception):
            refused(got, want, f"`{way}: {text}`")
            return
        scale = None
        if case["scale"]:
            with np.errstate(all="ignore"):
                top = expected(eval, case["scale"], dict(SCOPE) | dict(zip(NAMES, raws)))
            scale = [top] * len(leaves(want))
        near(got, want, f"`{way}: {text}`", case["rtol"], scale)

    def outcome(self, case: Case, function: Callable[..., Any], raws: list[Any]) -> Any:
        """The result of the library in the way of the case."""
        import tenferro_runtime as tr

        way, text = case["way"], case["text"]
        args = [tr.asarray(x) for x in raws]
        if way == "eager":
            return function(*args)
        if way == "recorded":
            from tenferro_ad import variable

            return function(*[variable(x) if x.spec.inexact else x for x in args])
        if way == "xla":
            from tenferro_xla import XlaExecutor

            out = XlaExecutor().run(tr.trace(function, *args), *args)
            return out[0] if len(out) == 1 else out
        run = self.compiled(text, len(args), way == "deterministic")
        got = run(*args)
        if way == "deterministic":
            bitwise(got, function(*args), f"deterministic against eager `{text}`")
        return got

    def subject(self, case: Case) -> str:
        text = case["text"]
        found = re.search(r"(linalg|fft)\.\w+", text) or re.search(r"tr\.\w+", text)
        return found[0] if found else "operator"

    def shrink(self, case: Case) -> Iterator[Case]:
        operands, variants = case["operands"], case["variants"]
        if variants != [0]:  # one of them, written out
            for k in variants:
                yield case | {"operands": [variant(x, k) for x in operands], "variants": [0]}
            yield from (case | {"variants": rest} for rest in halves(variants))
        for k, x in enumerate(operands):
            for axis, n in enumerate(x["shape"]):
                for less in sorted({1, n // 2, n - 1} - {n}):
                    if 0 <= less < n:  # an extent belongs to all operands that have it
                        yield case | {"operands": [_cut(y, n, less) for y in operands]}
                        yield case | {
                            "operands": [_cut(y, n, less, axis) if i == k else y for i, y in enumerate(operands)]
                        }
            for y in smaller(x):
                yield case | {"operands": [*operands[:k], y, *operands[k + 1 :]]}
        if case["way"] != "eager":
            yield case | {"way": "eager"}

    def code(self, case: Case) -> str:
        way, names = case["way"], NAMES[: len(case["operands"])]
        lines = ["import numpy as np", "import tenferro_runtime as tr"]
        lines += [f"import tenferro_{m} as {m}" for m in ("linalg", "fft") if f"{m}." in case["text"]]
        values = [literal(x) for x in case["operands"]]
        lines += [f"{n} = tr.asarray({v})" for n, v in zip(names, values)]
        f = f"lambda {', '.join(names)}: {case['text']}"
        arguments = ", ".join(names)
        calls = {
            "eager": case["text"],
            "recorded": f"({f})({', '.join(f'variable({n}) if {n}.spec.inexact else {n}' for n in names)})",
            "compiled": f"tr.compile({f})({arguments})",
            "deterministic": f"tr.compile({f}, deterministic=True)({arguments})",
            "xla": f"XlaExecutor().run(tr.trace({f}, {arguments}), {arguments})",
        }
        lines += ["from tenferro_ad import variable"] * (way == "recorded")
        lines += ["from tenferro_xla import XlaExecutor"] * (way == "xla")
        want = expected(pair(case["text"], len(names))[0], *[array(x) for x in case["operands"]])
        return "\n".join([*lines, f"print({calls[way]})", remark(f"NumPy: {want!r}")])


def remark(text: str, most: int = 12) -> str:
    """A text of any number of lines as a comment."""
    lines = text.splitlines()
    return "\n".join([f"# {line}" for line in lines[:most]] + ["# ..."] * (len(lines) > most))


def refused(got: Any, want: Any, what: str) -> None:
    """NumPy and the library both refuse, or the library refuses with one of its own errors what only NumPy converts.

    Raises:
        Mismatch: the library computes what NumPy refuses, or its error is a raw one.
    """
    if not isinstance(got, Exception):
        raise Mismatch(f"{what}: NumPy raises {want!r}, seen {got!r}")
    if isinstance(got, Mismatch):
        raise got
    kinds = [c.__name__ for c in type(got).__mro__]
    if "TenferroError" not in kinds:
        raise Mismatch(f"{what}: a raw {type(got).__name__}: {got}") from got
    if not isinstance(want, Exception) and not any(k in EXPECTED_REFUSALS for k in kinds):
        raise Mismatch(f"{what}: NumPy computes it, seen {type(got).__name__}: {got}") from got


def _cut(x: dict[str, Any], n: int, less: int, axis: int | None = None) -> dict[str, Any]:
    shape = [less if d == n and axis in (None, k) else d for k, d in enumerate(x["shape"])]
    return x | {"shape": shape}
