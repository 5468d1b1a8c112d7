"""One compiled function at many sizes, in all its forms, against the same function run operation by operation.

A function is compiled once for each form and called at several sizes, among them 0 and 1, first step by step and then
as machine code.
"""

import random
import re
import tempfile
import threading
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from fuzzing.area import QUICK, WITH, WITHOUT, Area, Case, Mismatch, halves
from fuzzing.comparing import bitwise, leaves, raw
from fuzzing.sized_arguments import Arguments, draw_inputs, draw_sizes, fitting
from fuzzing.sized_texts import SMOOTH, WAYS, donated, function_text, live, names_in, renamed, scope, script, way_text
from fuzzing.sized_writing import Value, Writer

FORMS = ("compiled", "deterministic", "donated")

REFUSALS = ("TracingError", "UnsupportedError", "InconclusiveDimError", "TransformError")
"""What compiling may refuse although it runs operation by operation."""

RTOL = {"float64": 1e-9, "float32": 3e-4}
"""Tolerance relative to the largest value on the way: the errors that are looked for are of its order."""


class Refused(NamedTuple):
    """An error in place of a result; `typed` if the library raised it on purpose."""

    kind: str
    text: str
    typed: bool


class Expected(NamedTuple):
    """The result operation by operation, and the largest value on the way."""

    result: Any
    largest: float


class Sized(Area):
    """A program of 4 to 40 lines at three to seven sizes."""

    name = "sizes"
    group = 150
    rounds = ((QUICK, WITHOUT), (QUICK, WITHOUT), (QUICK, WITHOUT), (WITH, WITHOUT))
    machines = (QUICK, WITHOUT, WITH)
    share = 6.0
    composed = True
    patience = 120.0

    def draw(self, rng: random.Random) -> Case:
        way = rng.choices(WAYS, (62, 16, 5, 7, 10))[0]
        inputs = draw_inputs(rng)
        writer = Writer(rng, [_value(x) for x in inputs], smooth=way in SMOOTH)
        writer.write(min(40, 4 + int(rng.expovariate(1 / 5))))
        lines = [
            {"name": n, "text": x.text, "after": x.after, "shape": list(x.shape), "kind": x.kind}
            for n, x in writer.lines
        ]
        used = set().union(*map(names_in, lines))
        outputs = [x["name"] for x in lines if x["kind"] == "f" and x["name"] not in used] or [inputs[0]["name"]]
        case = {"inputs": inputs, "lines": lines, "outputs": outputs, "way": way, "forms": list(FORMS)}
        case |= {"dtype": rng.choice(("float64",) * 5 + ("float32",)), "sizes": draw_sizes(rng)}
        case["extra"] = rng.choices(("", "xla", "library"), (94, 3, 3))[0] if way == "value" else ""
        case = live(case)
        return case | {"sizes": fitting(case)}

    def run(self, case: Case) -> None:
        names, whole = scope(), scope()
        exec(function_text(case) + way_text(case), names)
        exec(function_text(case, every=True), whole)
        calls = [Arguments(case, s) for s in case["sizes"]]
        expected = [self._expected(case, names["f"], names["g"], whole["f"], a) for a in calls]
        steps: list[Any] = [None] * len(calls)
        for form in case["forms"]:
            self._form(case, names["g"], form, calls, expected, steps)
        if case["extra"]:
            self._elsewhere(case, names["f"], calls, expected)
        self.counts["programs"] += 1

    def _expected(self, case: Case, f: Any, g: Any, whole: Any, a: Arguments) -> Expected:
        got = self._outcome("eager", g, a.tensors())
        a.check(f"`eager` at `{a.sizes}`")
        if isinstance(got, Refused):
            return Expected(got, 1.0)
        on_the_way = outcome(whole, a.tensors()) if case["way"] == "value" else ()
        values = [*leaves(got), *([] if isinstance(on_the_way, Refused) else leaves(on_the_way))]
        largest = max([1.0, *map(_largest, values)])
        if case["way"] == "lanes":
            self._lanes(case, f, a, got, 10 * largest)
        return Expected(got, largest)

    def _lanes(self, case: Case, f: Any, a: Arguments, got: Any, largest: float) -> None:
        """A batch holds what the function gives for its lanes one by one."""
        for k in range(2):
            args = [x[k] if k_ in donated(case) else x for k_, x in enumerate(a.tensors())]
            lane = outcome(f, args)
            if not isinstance(lane, Refused):
                for x, y in zip(leaves(got), leaves(lane), strict=True):
                    near(raw(x)[k], raw(y), largest, f"`eager` at `{a.sizes}`: lane `{k}`")

    def _form(
        self, case: Case, g: Any, form: str, calls: list[Arguments], expected: list[Expected], steps: list[Any]
    ) -> None:
        """All sizes step by step, then all of them with machine code."""
        import tenferro_runtime as tr
        from runtime_rooms import COMPILING
        from tenferro_runtime.running import fusion

        options: dict[str, Any] = {"deterministic": {"deterministic": True}, "donated": {"donate": donated(case)}}
        compiled, owned = tr.compile(g, **options.get(form, {})), form == "donated"
        # Sums depend on strides, and a row at an index is a view only where the index is a number.
        sums = any(word in x["text"] for x in case["lines"] for word in ("sum(", "@"))
        exact = form == "deterministic" and case["way"] == "value" and not sums
        before: list[Any] = [None] * len(calls)
        gate = threading.Event()
        COMPILING.submit(gate.wait)  # machine code waits until all sizes have run step by step
        try:
            for stage in ("step by step", "native"):
                for k, (a, want) in enumerate(zip(calls, expected, strict=True)):
                    where = f"`{form}, {stage}` at `{a.sizes}`"
                    got = self._outcome(form, compiled, a.tensors(owned))
                    a.check(where)
                    steps[k] = judge(got, want, steps[k], exact, where)
                    if form == "deterministic" and not isinstance(got, Refused):
                        if before[k] is not None:
                            bitwise(got, before[k], f"{where}, another call")
                        before[k] = got
                outcome(compiled, calls[0].tensors(owned))  # a program that ran once is not compiled
                gate.set()
                fusion.wait()
        finally:
            gate.set()

    def _elsewhere(self, case: Case, f: Any, calls: list[Arguments], expected: list[Expected]) -> None:
        """XLA, or a library of C."""
        import tenferro_runtime as tr

        extra = case["extra"]
        made = tr.compile(f, backend="xla") if extra == "xla" else outcome(lambda: _library(case, f), [])
        if isinstance(made, Refused):
            if not made.typed:
                raise Mismatch(f"`{extra}`: {made.kind} is no error of this library: {made.text}")
            return
        for a, want in zip(calls, expected, strict=True):
            if extra == "xla" and max(a.sizes) > 1000:
                continue
            where = f"`{extra}` at `{a.sizes}`"
            got = self._outcome(extra, made, a.tensors() if extra == "xla" else a.arrays())
            a.check(where)
            if isinstance(want.result, Refused) or (isinstance(got, Refused) and got.typed):
                continue
            judge(got, want, None, False, where)

    def _outcome(self, form: str, f: Callable[..., Any], args: list[Any]) -> Any:
        got = outcome(f, args)
        self.counts["calls"] += 1
        self.counts[f"refused {form}"] += isinstance(got, Refused)
        return got

    def trials(self, case: Case) -> int:
        return len(case["sizes"]) * (1 + 2 * len(case["forms"]))

    def subject(self, case: Case) -> str:
        words = {"".join(w) for x in case["lines"] for w in re.findall(r"\.(\w+)\(|(\[)", x["text"])}
        return " ".join([case["way"], *sorted(words - {"arange", "asarray"})[:5]])

    def shrink(self, case: Case) -> Iterator[Case]:
        if case["extra"]:
            yield case | {"extra": ""}
            yield case | {"forms": []}
        for part in ("forms", "sizes"):
            yield from (case | {part: some} for some in halves(case[part]) if some)
        if case["way"] != "value":
            yield case | {"way": "value"}
        yield from _with_less(case)
        if case["dtype"] != "float64":
            yield case | {"dtype": "float64"}

    def code(self, case: Case) -> str:
        return script(case)


def _value(x: dict[str, Any]) -> Value:
    if x["kind"] == "data":
        return Value(x["name"], tuple(x["shape"]), "f", 8.0, True)
    return Value(x["name"], tuple(x["shape"]), "i", 1.0, True, x["kind"].removeprefix("below "))


def _with_less(case: Case) -> Iterator[Case]:
    """Smaller cases: with fewer outputs, or with an argument or an earlier value in place of a line."""
    lines, outputs = case["lines"], case["outputs"]
    if len(outputs) > 1:
        yield from (live(case | {"outputs": [name]}) for name in outputs)
    for line in reversed(lines):
        if line["kind"] == "f" and line["name"] not in outputs:
            yield live(case | {"outputs": [line["name"]]})
    known = [(x["name"], x["shape"], "f" if x["kind"] == "data" else "i") for x in case["inputs"]]
    for k, line in enumerate(lines):
        rest, simple = lines[:k] + lines[k + 1 :], all(d in ("n", "m") or d.isdigit() for d in line["shape"])
        if line["name"] not in outputs and simple and (line["kind"] == "f" or len(line["shape"]) == 1):
            kind = "data" if line["kind"] == "f" else "indices"
            more = {"name": line["name"], "kind": kind, "shape": line["shape"], "seed": 17}
            yield live(case | {"lines": rest, "inputs": [*case["inputs"], more]})
        for name, shape, kind in known:
            if (shape, kind) == (line["shape"], line["kind"]):
                later = [renamed(x, line["name"], name) for x in rest[k:]]
                kept = [name if o == line["name"] else o for o in outputs]
                yield live(case | {"lines": rest[:k] + later, "outputs": kept})
        known.append((line["name"], line["shape"], line["kind"]))
        plain = re.sub(r"(v\d+)( \* 1\.0| \+ 0\.0|\[:\])", r"\1", line["text"])
        if plain != line["text"]:
            yield live(case | {"lines": [*lines[:k], line | {"text": plain}, *lines[k + 1 :]]})


def _library(case: Case, f: Any) -> Callable[..., Any]:
    """The function in a library of C."""
    import tenferro_runtime as tr
    from tenferro_tensor import Spec

    known = {"n": tr.dim("n"), "m": tr.dim("m")}
    specs = []
    for x in case["inputs"]:
        shape = tuple([known[d] if d in known else int(d) for d in x["shape"]])
        specs.append(Spec(shape, np.dtype(case["dtype"] if x["kind"] == "data" else "int64")))
    with tempfile.TemporaryDirectory() as folder:
        files = tr.export_library(f"{folder}/made", {"made": tr.trace(f, *specs)})
        assert files.library is not None
        return tr.load_library(files.library, "made")["made"]


def outcome(f: Callable[..., Any], args: list[Any]) -> Any:
    """The result of a call, or its error."""
    from tenferro_tensor_core import TenferroError

    try:
        return f(*args)
    except (TenferroError, MemoryError) as error:
        return Refused(type(error).__name__, str(error)[:300], True)
    except Exception as error:
        return Refused(type(error).__name__, str(error)[:300], False)


def judge(got: Any, want: Expected, steps: Any, exact: bool, where: str) -> Any:
    """Compare an outcome with the expected one.

    An access that the running program alone knows to be out of bounds need not be refused, also where it is refused
    operation by operation; all forms then agree with the first of them.

    Args:
        got: the outcome.
        want: the expected one.
        steps: the outcome of the first form where operation by operation is refused; None for the first one.
        exact: compare bits.
        where: for the text.

    Returns:
        What later forms are compared with, in place of `steps`.
    """
    if isinstance(got, Refused) and got.kind in REFUSALS:
        return steps
    if isinstance(got, Refused) and not got.typed:
        raise Mismatch(f"{where}: `{got.kind}` is no error of this library: {got.text}")
    result = want.result
    if isinstance(result, Refused):
        if steps is None:
            return got
        result, exact = steps, False
    if isinstance(got, Refused) or isinstance(result, Refused):
        x, y = (f"{o.kind} ({o.text})" if isinstance(o, Refused) else "a value" for o in (result, got))
        if x.split(" ")[0] != y.split(" ")[0]:
            raise Mismatch(f"{where}: expected {x}, seen {y}")
        return steps
    if exact:
        bitwise(got, result, where)
    for k, (a, b) in enumerate(zip(leaves(got), leaves(result), strict=True)):
        near(raw(a), raw(b), want.largest, f"{where}: output `{k}`")
    return steps


def near(x: Any, y: Any, largest: float, where: str) -> None:
    """Require near elements, relative to the largest value on the way."""
    if x.shape != y.shape or x.dtype != y.dtype:
        raise Mismatch(f"{where}: expected {y.dtype}{list(y.shape)}, seen {x.dtype}{list(x.shape)}")
    with np.errstate(all="ignore"):
        good = (x == y) | ((x != x) & (y != y))
        if x.dtype.kind == "f":
            good |= np.abs(x - y) <= RTOL[x.dtype.name] * largest
    if not np.all(good):
        at = tuple(map(int, np.argwhere(~good)[0])) if good.ndim else ()
        count = f"{int(np.sum(~good))} of {good.size} elements, first at {at}"
        raise Mismatch(f"{where}: {count}: expected {y[at]!r}, seen {x[at]!r}")


def _largest(x: Any) -> float:
    a = raw(x)
    if a.dtype.kind != "f":
        return 1.0
    return float(np.max(np.abs(a), initial=0.0, where=np.isfinite(a)))
