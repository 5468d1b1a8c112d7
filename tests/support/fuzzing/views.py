"""Programs of views, writes and exports, line by line as in NumPy: concrete, differentiated, mapped, compiled.

One text runs over NumPy, over the library, and over the model of `views_model`, whose derivatives are those of programs
without assignment. All named arrays must agree, after each line or at the end.
"""

import copy
import random
import re
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

import views_model as model
from fuzzing.area import ALWAYS, WITH, WITHOUT, Area, Case, Mismatch, halves
from fuzzing.comparing import raw
from fuzzing.views_drawing import NUMPY, Drawing, Scope, failure, loopless

Array = np.ndarray[Any, Any]
Results = dict[str, Any]

MODES = {
    "concrete": 60, "exports": 24, "model": 5, "vjp": 4, "variable": 1, "jvp": 2.5, "vmap": 2, "compiled": 0.3,
    "open": 0.4, "deterministic": 0.1, "donated": 0.1, "compiled gradient": 0.2, "loop": 0.15, "branch": 0.15,
}  # fmt: skip
"""Ways to run a program, with their shares: of those that compile, fewer, since each takes as long as a hundred."""
CONCRETE = ("concrete", "exports", "model")
RECORDED = ("vjp", "variable", "jvp", "compiled gradient", "loop", "branch")
COMPILED = ("compiled", "open", "deterministic", "donated", "compiled gradient", "loop", "branch")
ROUNDS = 3
"""Of loops; no extent is below it where a loop counts."""
RTOL = {"float32": 2e-5, "complex64": 2e-5, "float64": 1e-12, "complex128": 1e-12}
REFUSALS = ("ForeignFunctionError", "UnsupportedError", "TracingError", "SymbolicShapeError", "DynamicShapeError")


class Refused(Exception):
    """The library does not do this in this mode, and says so."""


class Views(Area):
    """Sequences of ten to twenty-five lines over a few names."""

    name = "views"
    machines = (WITH, WITHOUT, WITH, ALWAYS)
    share = 2.0
    composed = True

    def draw(self, rng: random.Random) -> Case:
        mode = rng.choices(list(MODES), list(MODES.values()))[0]
        return draw(rng, mode)

    def run(self, case: Case) -> None:
        self.counts[case["mode"]] += 1
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                RUNS[case["mode"]](case)
            except Refused as error:
                text = re.sub(r"v\d+|\d+|\[.*?\]|\(.*?\)", "", str(error))
                self.counts[f"refused {case['mode']}: {text[:90]}"] += 1

    def trials(self, case: Case) -> int:
        return len(case["lines"])

    def subject(self, case: Case) -> str:
        words = {w for text in case["lines"] for w in re.findall(r"(?:xp|np)\.\w+|\.[a-zA-Z]\w*|\w\[|[-+*/|&^]=", text)}
        return " ".join([case["mode"], *sorted(words)[:6]])

    def shrink(self, case: Case) -> Iterator[Case]:
        for part in ("lines", "other"):
            yield from (case | {part: some} for some in halves(case[part]))
        if len(case["sizes"]) > 1:
            yield case | {"sizes": case["sizes"][:1]}
        if case["check"] == "each":
            yield case | {"check": "end"}
        if case["mode"] in ("open", "deterministic", "donated"):
            yield case | {"mode": "compiled"}
        if case["mode"] in ("compiled", "compiled gradient", "vjp", "jvp", "variable", "vmap"):
            yield case | {"mode": "concrete"}
        if any(".real" in text or ".imag" in text for text in case["lines"]):
            return
        for dtype in ("complex128", "float32", "int64", "float64"):
            if dtype != case["dtype"] == "complex128" or (dtype == "float64" != case["dtype"]):
                yield case | {"dtype": dtype}

    def code(self, case: Case) -> str:
        return script(case)


def draw(rng: random.Random, mode: str) -> Case:
    """A case of a mode."""
    recorded, traced = mode in RECORDED, mode in (*COMPILED, "vmap")
    dtypes = ("float64",) * 4 + ("complex128",) if recorded else ("float64",) * 3 + ("complex128", "float32", "int64")
    dtype = rng.choice(dtypes if recorded or traced else (*dtypes, "uint8", "bool"))
    least = ROUNDS if mode in ("loop", "open") else 2
    ndim = rng.choice((1, 2, 2, 2, 3))
    sizes = []
    for _ in range(3 if mode == "open" else 1):
        shape = [rng.randint(least, 5) for _ in range(ndim)]
        if mode in CONCRETE and rng.random() < 0.1:
            shape[rng.randrange(ndim)] = rng.choice((0, 1))
        sizes.append(shape)
    case: Case = {
        "mode": mode, "dtype": dtype, "sizes": sizes, "seed": rng.randrange(1 << 20), "lines": [], "other": [],
        "check": rng.choice(("each", "end", "end")), "borrowed": mode == "concrete" and rng.random() < 0.3,
        "differences": rng.random() < 0.25,
    }  # fmt: skip
    for part in ("lines", "other")[: 1 + (mode == "branch")]:
        with np.errstate(all="ignore"):
            scopes = [NUMPY | dict(zip("xw", inputs(case, k), strict=True)) for k in range(len(sizes))]
            index = "i" if mode == "loop" else ""
            for scope in scopes:
                scope.update({"i": 1} if index else {})
            drawing = Drawing(
                rng, scopes, traced, recorded, index, mode == "exports", mode not in ("concrete", "exports")
            )
            case[part] = list(drawing.program(rng.randint(10, 25) if mode in CONCRETE else rng.randint(6, 16)))
    return case


def inputs(case: Case, size: int = 0, more: int = 0) -> list[Array]:
    """The arrays `x`, and `w` of its last axes."""
    rng = np.random.default_rng([case["seed"], size, more])
    shape = case["sizes"][size]
    return [_elements(rng, s, case["dtype"]) for s in (shape, shape[1:] or shape)]


def _elements(rng: np.random.Generator, shape: Any, dtype: str) -> Array:
    kind = np.dtype(dtype).kind
    if kind in "biu":
        return np.asarray(rng.integers(0 if kind == "u" else -4, 2 if kind == "b" else 5, shape)).astype(dtype)
    found = rng.normal(size=shape) * 1.5
    return np.asarray(found + 1j * rng.normal(size=shape) if kind == "c" else found).astype(dtype)


# Programs as functions


def function(lines: list[str], library: Scope, loop: bool = False) -> Callable[..., Any]:
    """``f(x, w)`` gives all named arrays; a body of a loop is ``f(i, (x, w))`` and gives its carry."""
    scope = dict(library)
    head = ["def f(i, carry):", "    x, w = carry"] if loop else ["def f(x, w):"]
    last = "    return x, w" if loop else "    return {k: v for k, v in locals().items() if named(k)}"
    exec("\n".join([*head, *[f"    {text}" for text in lines], last]), scope | {"named": loopless}, scope)
    return scope["f"]


def library() -> Scope:
    import tenferro_runtime as tr

    return {"np": np, "xp": tr, "copy": copy}


def modelled(xp: Any) -> Scope:
    functions = model.Functions(xp)
    return {"np": functions, "xp": functions, "copy": copy}


def by_numpy(case: Case, size: int = 0, more: int = 0, arrays: list[Array] | None = None) -> Results | None:
    """What NumPy has at the end; None where the program is none."""
    x, w = arrays or inputs(case, size, more)
    try:
        return _run(case, NUMPY, x.copy(), w.copy())
    except (NameError, ValueError, TypeError, IndexError, AttributeError):
        return None  # made smaller too much


def _run(case: Case, scope: Scope, x: Any, w: Any) -> Results:
    """The whole program over NumPy or the model, where loops and branches are Python's."""
    if case["mode"] == "loop":
        body = function(case["lines"], scope, True)
        for i in range(ROUNDS):
            x, w = body(i, (x, w))
        return {"x": x, "w": w}
    if case["mode"] == "branch":
        first = x.read() if isinstance(x, model.Array) else x
        lines = case["lines" if np.sum(raw(first) if hasattr(first, "level") else first).real > 0 else "other"]
        x, w = function(lines, scope, True)(0, (x, w))
        return {"x": x, "w": w}
    return function(case["lines"], scope)(x, w)


def by_library(case: Case, first_copied: bool) -> Callable[[Any, Any], Any]:
    """The program as a function of the library; with `first_copied` it leaves its arguments alone."""
    import tenferro_runtime as tr

    lines = ["x = x.copy()", "w = w.copy()"] * first_copied
    if case["mode"] == "loop":
        body = function(case["lines"], library(), True)
        return lambda x, w: dict(zip("xw", tr.fori_loop(0, ROUNDS, body, (x, w)), strict=True))
    if case["mode"] == "branch":
        yes, no = (partial(function([*lines, *case[part]], library(), True), 0) for part in ("lines", "other"))
        return lambda x, w: dict(zip("xw", tr.cond(tr.real(tr.sum(x)) > 0, yes, no, (x, w)), strict=True))
    return function([*lines, *case["lines"]], library())


def by_model(case: Case) -> Callable[[Any, Any], Results]:
    """The program as a function of the library without assignment."""
    import tenferro_runtime as tr

    def f(x: Any, w: Any) -> Results:
        found = _run(case, modelled(tr), model.value(x), model.value(w))
        return {k: v.read() for k, v in found.items()}

    return f


# Comparing


def attempt(f: Callable[..., Any], *args: Any) -> Any:
    """A call whose refusal is no finding."""
    try:
        return f(*args)
    except Exception as error:
        if type(error).__name__ in REFUSALS:
            raise Refused(f"{type(error).__name__} {error}") from error
        raise


def agree(got: Any, want: Any, what: str, rtol: float | None = None) -> None:
    """Arrays of one name."""
    x = raw(got) if hasattr(got, "level") else np.asarray(got)
    y = np.asarray(want)
    if x.dtype != y.dtype or x.shape != y.shape:
        raise Mismatch(f"{what}: expected {y.dtype}{list(y.shape)}, seen {x.dtype}{list(x.shape)}")
    good = (x == y) | ((x != x) & (y != y))
    if y.dtype.kind in "fc" and not np.all(good):
        good |= np.abs(x - y) <= (rtol or RTOL[y.dtype.name]) * max(1.0, float(np.max(np.abs(y), initial=0.0)))
    if not np.all(good):
        at = tuple(map(int, np.argwhere(~good)[0])) if good.ndim else ()
        raise Mismatch(f"{what}: {int(np.sum(~good))} of {good.size} elements, first at {at}: "
                       f"expected {y[at]!r}, seen {x[at]!r}")  # fmt: skip


def all_agree(got: Results, want: Results, what: str, rtol: float | None = None) -> None:
    for name in want:
        agree(got[name], want[name], f"{what}, `{name}`", rtol)


def unchanged(tensors: list[Any], arrays: list[Array], what: str) -> None:
    for t, a in zip(tensors, arrays, strict=True):
        agree(t, a, f"{what}: a value of others changed")


# Modes


def run_concrete(case: Case) -> None:
    """Line by line; exported memory is compared where nothing else holds it."""
    import tenferro_runtime as tr

    x, w = inputs(case)
    kept = [x.copy(), w.copy()]
    scope = library() | {"x": tr.asarray(x, copy=not case["borrowed"]), "w": tr.asarray(w, copy=True)}
    others = [+scope["x"], scope["x"].detach()] if case["mode"] == "concrete" and case["dtype"] != "bool" else []
    wanted = NUMPY | {"x": kept[0].copy(), "w": kept[1].copy()}
    for text in case["lines"]:
        code = compile(text, "<case>", "exec")
        expected, found = failure(code, wanted), failure(code, scope)
        if isinstance(expected, NameError):
            return  # made smaller too much
        if found is not None and not isinstance(found, _kind(expected)):
            if type(found).__name__ in REFUSALS and "np." in text:
                raise Refused(f"{type(found).__name__} of {text.split('(')[0]}")
            raise found
        if expected is not None and found is None:
            raise Mismatch(f"`{text}`: expected {type(expected).__name__}, seen no error")
        del expected, found  # their frames hold arrays
        if case["check"] == "each":
            _named_agree(scope, wanted, f"after `{text}`")
    _named_agree(scope, wanted, "at the end")
    unchanged(others, [kept[0]] * len(others), "at the end")
    if case["borrowed"]:
        unchanged([x], kept[:1], "memory of NumPy")


def _kind(error: Exception | None) -> tuple[type[Exception], ...]:
    """The built-in classes that an error of ours must have where NumPy has this one."""
    return tuple([c for c in (TypeError, IndexError, ValueError, ZeroDivisionError) if isinstance(error, c)])


def _named_agree(scope: Scope, wanted: Scope, what: str) -> None:
    for name, y in wanted.items():
        if (loopless(name) or name[0] == "e") and name != "np" and isinstance(y, (np.ndarray, np.generic)):
            agree(scope[name], y, f"{what}, `{name}`")


def run_model(case: Case) -> None:
    """The model itself agrees with NumPy."""
    wanted = by_numpy(case)
    if wanted is None:
        return
    found = _run(case, modelled(np), *[model.value(a) for a in inputs(case)])
    all_agree({k: v.read() for k, v in found.items()}, wanted, "model")


def _smooth(results: Results) -> Results:
    return {k: v for k, v in results.items() if np.dtype(v.dtype).kind in "fc"}


def _weights(wanted: Results) -> Results:
    rng = np.random.default_rng(3)
    return {k: _elements(rng, v.shape, str(v.dtype)) for k, v in wanted.items()}


def _directions(case: Case) -> list[Array]:
    rng = np.random.default_rng([case["seed"], 77])
    return [_elements(rng, a.shape, case["dtype"]) for a in inputs(case)]


def _inner(us: Any, vs: Any) -> float:
    return float(sum([np.vdot(u, v).real for u, v in zip(us, vs, strict=True)]))


def _differences(case: Case) -> tuple[Results, Results] | None:
    """Central differences along the directions, and where two step sizes tell that they can be trusted."""
    x, w = inputs(case)
    dx, dw = _directions(case)
    found = []
    for h in (1e-5, 2e-5):
        ends = [by_numpy(case, arrays=[x + s * h * dx, w + s * h * dw]) for s in (1, -1)]
        if ends[0] is None or ends[1] is None or ends[0].keys() != ends[1].keys():
            return None
        if any(np.shape(ends[0][k]) != np.shape(ends[1][k]) for k in ends[0]):
            return None
        found.append({k: (ends[0][k] - v) / (2 * h) for k, v in _smooth(ends[1]).items()})
    return found[0], found[1]


def _tangents_agree(case: Case, tangents: Results, what: str) -> None:
    differences = _differences(case) if case["differences"] else None
    if differences is None:
        return
    for name, d in differences[0].items():
        size = max(1.0, float(np.max(np.abs(d), initial=0.0)))
        if np.max(np.abs(d - differences[1][name]), initial=0.0) < 1e-7 * size:  # no kink is near
            agree(tangents[name], d, f"{what}: differences, `{name}`", 1e-6)


def run_vjp(case: Case) -> None:
    """Values, and cotangents beside those of the model; the graph keeps its values while results are written."""
    import tenferro_runtime as tr
    from tenferro_ad import variable, vjp

    wanted = by_numpy(case)
    if wanted is None:
        return
    smooth = _smooth(wanted)
    arrays = inputs(case)
    weights = _weights(smooth)
    model_pull = vjp(lambda x, w: _chosen(by_model(case)(x, w), smooth), *map(tr.asarray, arrays))[1]
    want = model_pull({k: tr.asarray(v) for k, v in weights.items()})
    tensors = [tr.asarray(a) for a in arrays]
    if case["mode"] == "variable":
        leaves = [variable(t) for t in tensors]
        found = attempt(by_library(case, True), *leaves)
        all_agree(found, wanted, "recorded")
        total = sum([tr.sum(tr.real(tr.conj(tr.asarray(v)) * found[k])) for k, v in weights.items()])
        for k in weights:
            found[k][...] = 7.0
        total.backward()
        pulled = [tr.zeros_like(t) if v.grad is None else v.grad for t, v in zip(tensors, leaves, strict=True)]
    else:
        found, pull = attempt(vjp, lambda x, w: _chosen(by_library(case, False)(x, w), smooth), *tensors)
        all_agree(found, smooth, "recorded")
        for v in found.values():
            v[...] = 7.0
        pulled = pull({k: tr.asarray(v) for k, v in weights.items()})
    unchanged(tensors, arrays, "recorded")
    for k, (p, q) in enumerate(zip(pulled, want, strict=True)):
        agree(p, raw(q), f"cotangent `{k}` beside the model")
    differences = _differences(case) if case["differences"] else None
    if differences is not None:
        left = _inner(weights.values(), [differences[0][k] for k in weights])
        other = _inner(weights.values(), [differences[1][k] for k in weights])
        right = _inner([raw(p) for p in pulled], _directions(case))
        scale = (
            1 + abs(left) + _inner([np.abs(v) for v in weights.values()], [np.abs(differences[0][k]) for k in weights])
        )
        if abs(left - other) < 1e-7 * scale and abs(left - right) > 1e-6 * scale:
            raise Mismatch(f"cotangents: differences give `{left}`, seen `{right}`")


def _chosen(results: Results, names: Results) -> Results:
    return {k: results[k] for k in names}


def run_jvp(case: Case) -> None:
    import tenferro_runtime as tr
    from tenferro_ad import jvp

    wanted = by_numpy(case)
    if wanted is None:
        return
    smooth, arrays = _smooth(wanted), inputs(case)
    tensors, directions = [tr.asarray(a) for a in arrays], [tr.asarray(d) for d in _directions(case)]
    f = lambda g: lambda x, w: _chosen(g(x, w), smooth)
    found, tangents = attempt(jvp, f(by_library(case, False)), tuple(tensors), tuple(directions))
    unchanged(tensors, arrays, "forward")
    all_agree(found, smooth, "forward")
    _, want = jvp(f(by_model(case)), tuple(tensors), tuple(directions))
    all_agree(tangents, {k: raw(v) for k, v in want.items()}, "tangents beside the model")
    _tangents_agree(case, tangents, "tangents")


def run_vmap(case: Case) -> None:
    import tenferro_runtime as tr

    lanes = [by_numpy(case, more=k) for k in range(3)]
    if any(lane is None for lane in lanes):
        return
    batches = [np.stack(group) for group in zip(*[inputs(case, more=k) for k in range(3)], strict=True)]
    tensors = [tr.asarray(b) for b in batches]
    found = attempt(tr.vmap(by_library(case, False)), *tensors)
    unchanged(tensors, batches, "mapped")
    for k, lane in enumerate(lanes):
        assert lane is not None
        all_agree({name: raw(v)[k] for name, v in found.items()}, lane, f"mapped, lane `{k}`")


def run_compiled(case: Case) -> None:
    """One compiled function at all sizes, each twice; loops and branches also operation by operation."""
    import tenferro_runtime as tr

    mode = case["mode"]
    known: dict[str, dict[str, Any]] = {"deterministic": {"deterministic": True}, "donated": {"donate": (0, 1)}}
    options = known.get(mode, {})
    f = by_library(case, True)
    compiled = tr.compile(f, **options)
    for size in range(len(case["sizes"])):
        for more in range(2):
            wanted = by_numpy(case, size, more)
            if wanted is None:
                return
            arrays = inputs(case, size, more)
            tensors = [tr.asarray(a, copy=True) for a in arrays]
            all_agree(attempt(compiled, *tensors), wanted, mode)
            if mode != "donated":
                unchanged(tensors, arrays, mode)
            if mode in ("loop", "branch") and not more:
                all_agree(attempt(f, *tensors), wanted, f"{mode}, not compiled")
                unchanged(tensors, arrays, f"{mode}, not compiled")
    if mode in ("loop", "branch"):
        run_compiled_gradient(case)


def run_compiled_gradient(case: Case) -> None:
    import tenferro_runtime as tr
    from tenferro_ad import grad

    wanted = by_numpy(case)
    if wanted is None:
        return
    weights = _weights(_smooth(wanted))

    def loss(g: Callable[[Any, Any], Results]) -> Callable[[Any, Any], Any]:
        def f(x: Any, w: Any) -> Any:
            found = g(x, w)
            return sum([tr.sum(tr.real(tr.conj(tr.asarray(v)) * found[k])) for k, v in weights.items()])

        return f

    tensors = [tr.asarray(a) for a in inputs(case)]
    want = grad(loss(by_model(case)), argnums=(0, 1))(*tensors)
    derivative = grad(loss(by_library(case, True)), argnums=(0, 1))
    ways: dict[str, Callable[..., Any]] = {"compiled gradient": tr.compile(derivative)}
    ways["gradient of compiled"] = grad(loss(tr.compile(by_library(case, True))), argnums=(0, 1))
    if case["mode"] in ("loop", "branch"):
        ways["gradient"] = derivative
    for name, way in ways.items():
        for k, (p, q) in enumerate(zip(attempt(way, *tensors), want, strict=True)):
            agree(p, raw(q), f"{name}, `{k}`, beside the model")
    unchanged(tensors, inputs(case), "gradients")


RUNS: dict[str, Callable[[Case], None]] = {
    "concrete": run_concrete, "exports": run_concrete, "model": run_model, "vjp": run_vjp, "variable": run_vjp,
    "jvp": run_jvp, "vmap": run_vmap, "compiled": run_compiled, "open": run_compiled, "deterministic": run_compiled,
    "donated": run_compiled, "compiled gradient": run_compiled_gradient, "loop": run_compiled, "branch": run_compiled,
}  # fmt: skip


def script(case: Case) -> str:
    """The program over NumPy and over the library; of other modes with the call that shows the difference."""
    x, w = inputs(case)
    lines = ["import copy", "import numpy as np", "import tenferro_runtime as tr", "from fuzzing import views", ""]
    lines += ["def f(xp, x, w):", *[f"    {text}" for text in case["lines"]]]
    lines += ["    return {k: v for k, v in locals().items() if views.loopless(k)}", ""]
    lines += [f"x, w = np.array({x.tolist()}, {x.dtype.name!r}).reshape({x.shape}), "
              f"np.array({w.tolist()}, {w.dtype.name!r}).reshape({w.shape})"]  # fmt: skip
    lines += ["print('expected', f(views.NUMPY['xp'], x.copy(), w.copy()))"]
    if case["mode"] in ("concrete", "exports"):
        lines += ["print('seen', f(tr, tr.asarray(x, copy=True), tr.asarray(w, copy=True)))"]
    lines += [f"views.Views().run({case!r})"]
    return "\n".join(lines)
