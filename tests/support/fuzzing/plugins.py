"""Plug-ins, right ones and wrong ones: what a guest does wrong is an error that names it, in every way to run."""

import itertools
import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from fuzzing.area import WITH, WITHOUT, Area, Case, Mismatch
from fuzzing.reference import expected

INFER = {
    "right": "x",
    "none": "None",
    "shape": "x.shape",
    "text": "'x'",
    "raises": "1 / 0",
    "array": "np.zeros(3)",
    "nested": "(x, (x,))",
    "pair": "(x, x)",
}
KERNEL = {
    "right": "np.sin(x)",
    "short": "np.sin(x)[:1]",
    "wide": "np.sin(x)[None]",
    "dtype": "np.sin(x).astype('float32')",
    "object": "np.sin(x).astype(object)",
    "list": "np.sin(x).tolist()",
    "none": "None",
    "text": "'y'",
    "number": "1.0",
    "raises": "1 / 0",
    "tuple": "(np.sin(x),)",
    "pair": "(np.sin(x), np.cos(x))",
    "tensor": "tr.asarray(np.sin(x))",
    "masked": "np.ma.masked_array(np.sin(x))",
}
"""Kernels that overwrite their operands are not among them: `check_primitive` looks for those, once."""

MAKER = {"right": "lambda ins, outs: kernel", "none": "lambda ins, outs: None", "raises": "lambda ins, outs: 1 / 0",
         "number": "lambda ins, outs: 3"}  # fmt: skip
RULE = {
    "right": "Slopes(x=lambda x: catalog.cos(x))",
    "none": "Slopes(x=lambda x: None)",
    "text": "Slopes(x=lambda x: 'cos')",
    "raises": "Slopes(x=lambda x: 1 / 0)",
    "names": "Slopes(x=lambda q: q)",
    "operand": "Slopes(y=lambda x: x)",
    "general": "General(jvp=lambda p, t, o: (t[0] * catalog.cos(p[0]),), "
    "vjp=lambda p, o, c: (c[0] * catalog.cos(p[0]),))",
    "general none": "General(jvp=lambda p, t, o: None, vjp=lambda p, o, c: None)",
    "general many": "General(jvp=lambda p, t, o: (t[0], t[0]), vjp=lambda p, o, c: (c[0], c[0]))",
    "array": "Slopes(x=lambda x: np.ones(2))",
    "no rule": "None",
}
WAYS = ("eager", "twice", "compiled", "traced", "grad", "compiled grad", "jvp", "second", "scan", "saved", "vjp pair")

NAMES = itertools.count()


def run_way(f: Callable[[Any], Any], way: str, x: Any) -> Any:
    """Use the operation in one way; grad and its like give a number or an array."""
    import tenferro_runtime as tr
    from tenferro_ad import grad, jvp, vjp

    def loss(v: Any) -> Any:
        return tr.sum(f(v))

    ways: dict[str, Callable[[], Any]] = {
        "eager": lambda: f(x),
        "twice": lambda: (f(x), f(x))[1],
        "compiled": lambda: tr.compile(f)(x),
        "traced": lambda: tr.trace(f, x).run(x),
        "grad": lambda: grad(loss)(x),
        "compiled grad": lambda: tr.compile(grad(loss))(x),
        "jvp": lambda: jvp(f, (x,), (tr.ones_like(x),))[1],
        "second": lambda: grad(lambda v: tr.sum(grad(loss)(v) * v))(x),
        "scan": lambda: tr.scan(lambda c, v: (f(c), v), x, x)[0],
        "saved": lambda: tr.compile(lambda v: f(v) * 2)(x),
        "vjp pair": lambda: vjp(f, x)[1](tr.ones_like(x))[0],
    }
    return ways[way]()


class Plugins(Area):
    """One primitive of a guest, each of its parts right or wrong, used in one way."""

    name = "plug-ins"
    machines = (WITH, WITHOUT)

    def draw(self, rng: random.Random) -> Case:
        wrong = rng.choice(("infer", "kernel", "kernel", "maker", "rule", "rule", "nothing"))
        tables = {"infer": INFER, "kernel": KERNEL, "maker": MAKER, "rule": RULE}
        case = {part: rng.choice(list(table)) if part == wrong else "right" for part, table in tables.items()}
        return case | {"way": rng.choice(WAYS), "elementwise": rng.random() < 0.5, "length": rng.choice((0, 1, 3))}

    def run(self, case: Case) -> None:
        import tenferro_runtime as tr
        from tenferro_tensor_core import TenferroError

        raw = np.linspace(0.3, 1.2, case["length"])
        before = raw.copy()
        x = tr.asarray(raw)
        try:
            f = self.operation(case)
            got = run_way(f, case["way"], x)
        except TenferroError:
            seen = "typed"
        except ZeroDivisionError:
            if "raises" not in case.values():
                raise
            seen = "its own"
        except Exception as error:
            text = f"{_wrong(case)}`, {case['way']}`: a raw {type(error).__name__}: {error}"
            raise Mismatch(text) from error
        else:
            seen = "result"
        if seen == "result":
            self._result(case, got, before)
        elif not _wrong(case):
            raise Mismatch(f"a right plug-in is refused, {case['way']}")
        if not np.array_equal(np.asarray(x), before):
            raise Mismatch(f"{_wrong(case)}`, {case['way']}`: the operand has changed, and nothing said so")

    def _result(self, case: Case, got: Any, x: Any) -> None:
        """A result is right, or nothing that it uses was wrong."""
        names = {
            "eager": np.sin(x), "twice": np.sin(x), "compiled": np.sin(x), "traced": np.sin(x), "grad": np.cos(x),
            "compiled grad": np.cos(x), "jvp": np.cos(x), "second": np.cos(x) - x * np.sin(x), "saved": 2 * np.sin(x),
            "vjp pair": np.cos(x),
        }  # fmt: skip
        if case["way"] not in names:
            return
        got = got[0] if isinstance(got, tuple) and len(got) == 1 else got
        value = expected(np.asarray, got)
        want = names[case["way"]]
        fine = getattr(value, "shape", None) == want.shape and np.allclose(value.astype("float64"), want)
        spec = getattr(getattr(got, "spec", None), "dtype", None)
        if not fine or value.dtype != want.dtype or spec != want.dtype:
            raise Mismatch(f"{_wrong(case)}`, {case['way']}`: expected {want!r} or an error, seen {got!r}")

    def operation(self, case: Case) -> Callable[[Any], Any]:
        """The primitive, registered under a name of its own."""
        scope: dict[str, Any] = {}
        exec(_definition(case, next(NAMES)), scope)
        operation: Callable[[Any], Any] = scope["guest"]
        return operation

    def shrink(self, case: Case) -> Iterator[Case]:
        for simpler in ("eager", "compiled", "grad"):
            if WAYS.index(simpler) < WAYS.index(case["way"]):
                yield case | {"way": simpler}
        if case["length"] != 1:
            yield case | {"length": 1}
        if case["elementwise"]:
            yield case | {"elementwise": False}

    def code(self, case: Case) -> str:
        uses = {
            "eager": "guest(x)", "twice": "(guest(x), guest(x))[1]", "compiled": "tr.compile(guest)(x)",
            "traced": "tr.trace(guest, x).run(x)", "grad": "grad(lambda v: tr.sum(guest(v)))(x)",
            "compiled grad": "tr.compile(grad(lambda v: tr.sum(guest(v))))(x)",
            "jvp": "jvp(guest, (x,), (tr.ones_like(x),))[1]", "saved": "tr.compile(lambda v: guest(v) * 2)(x)",
            "second": "grad(lambda v: tr.sum(grad(lambda w: tr.sum(guest(w)))(v) * v))(x)",
            "scan": "tr.scan(lambda c, v: (guest(c), v), x, x)[0]",
            "vjp pair": "vjp(guest, x)[1](tr.ones_like(x))[0]",
        }  # fmt: skip
        lines = [_definition(case, 0), "from tenferro_ad import grad, jvp, vjp"]
        lines += [f"x = tr.asarray(np.linspace(0.3, 1.2, {case['length']}))", f"print({uses[case['way']]})"]
        return "\n".join(lines)


def _wrong(case: Case) -> str:
    parts = [f"{p} {case[p]}" for p in ("infer", "kernel", "maker", "rule") if case[p] not in ("right", "general")]
    return ", ".join(parts)


def _definition(case: Case, number: int) -> str:
    rule = RULE[case["rule"]]
    if not case["elementwise"]:
        rule = rule.replace("Slopes(x=lambda x: catalog.cos(x))", RULE["general"])
    lines = [
        "import numpy as np", "import tenferro_runtime as tr",
        "from tenferro_runtime.extension import REGISTRY, General, Linear, Slopes, Spec, catalog, primitive",
        f"@primitive(family='fuzz.guest{number}.v1'{', elementwise=True' if case['elementwise'] else ''})",
        "def guest(x: Spec) -> Spec:", "    '''A guest.'''", f"    return {INFER[case['infer']]}",
        "def kernel(x):", f"    return {KERNEL[case['kernel']]}",
        f"REGISTRY.kernel(guest, 'cpu', {MAKER[case['maker']]})",
    ]  # fmt: skip
    return "\n".join(lines + [f"REGISTRY.rule(guest, {rule})"] * (rule != "None"))
