"""Derivatives of random smooth programs: both modes against differences of NumPy, and second derivatives."""

import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from fuzzing.area import ALWAYS, WITH, WITHOUT, Area, Case, Mismatch
from fuzzing.programs import Programs, draw_program, function, function_text
from fuzzing.reference import SCOPE, expected, library
from fuzzing.values import array

WAYS = ("eager", "compiled", "of compiled", "second")
_SHARES = (50, 20, 15, 15)
STEP = 1e-5


def loss_text(case: Case) -> str:
    """The program, and a weighted sum of the real parts of its outputs."""
    terms = " + ".join(f"tr.sum(tr.real(y[{k}]) * {0.5 + 0.3 * k})" for k in range(len(case["outputs"])))
    names = ", ".join(case["inputs"])
    return f"{function_text(case)}\ndef loss({names}):\n    y = f({names})\n    return {terms}\n"


def _loss(case: Case, scope: dict[str, Any]) -> Callable[..., Any]:
    scope = dict(scope)
    function(loss_text(case), scope)
    made: Callable[..., Any] = scope["loss"]
    return made


def _directions(raws: list[Any]) -> list[Any]:
    rng = np.random.default_rng(7)
    made = []
    for x in raws:
        t = rng.standard_normal(x.shape)
        if x.dtype.kind == "c":
            t = t + 1j * rng.standard_normal(x.shape)
        made.append(np.asarray(t, x.dtype))
    return made


def _difference(f: Callable[..., Any], raws: list[Any], ts: list[Any]) -> tuple[float, float] | None:
    """Central difference along a direction and how far it can be trusted; None where it is of no use."""

    def at(h: float) -> Any:
        return expected(f, *[np.asarray(x + h * t) for x, t in zip(raws, ts)])

    ends = [at(s * STEP) for s in (1, -1, 2, -2)]
    if any(isinstance(e, Exception) or not np.all(np.isfinite(e)) for e in ends):
        return None
    once, twice = (ends[0] - ends[1]) / (2 * STEP), (ends[2] - ends[3]) / (4 * STEP)
    size = np.max(np.abs(ends[0]), initial=0.0)
    trust = (
        np.max(np.abs(once - twice), initial=0.0) * 3
        + 1e-10 * size / STEP * 1e-1
        + 1e-6 * np.max(np.abs(once), initial=0)
    )
    return once, float(trust) + 1e-7


def _paired(gs: Any, ts: list[Any]) -> tuple[float, float]:
    terms = [np.real(np.conj(np.asarray(g)) * t) for g, t in zip(gs, ts)]
    return float(sum(np.sum(x) for x in terms)), float(sum(np.sum(np.abs(x)) for x in terms))


class Gradients(Area):
    """Gradient, directional derivative and Hessian times a direction of one program."""

    name = "gradients"
    machines = (WITHOUT, WITH, ALWAYS)
    share = 2.0
    composed = True
    patience = 120.0

    def __init__(self) -> None:
        super().__init__()
        self._programs = Programs()

    def draw(self, rng: random.Random) -> Case:
        return draw_program(rng, 3, 25, smooth=True) | {"way": rng.choices(WAYS, _SHARES)[0]}

    def run(self, case: Case) -> None:
        import tenferro_runtime as tr
        from tenferro_ad import grad, jvp

        raws = [array(x) for x in case["inputs"].values()]
        ts = _directions(raws)
        known = _difference(_loss(case, SCOPE), raws, ts)
        if known is None:
            return
        want, trust = known
        loss, way = _loss(case, library()), case["way"]
        args, tangents = [tr.asarray(x) for x in raws], [tr.asarray(t) for t in ts]
        wrt = tuple(range(len(args)))
        if way == "of compiled":
            loss = tr.compile(loss)
        gradient: Any = grad(loss, wrt)
        if way == "compiled":
            gradient = tr.compile(gradient)
        gs = gradient(*args)
        for g, x in zip(gs, args):
            if g.spec is not x.spec:
                raise Mismatch(f"{way}: the gradient is {g.spec} for {x.spec}")
        pulled, terms = _paired(gs, ts)
        pushed = float(jvp(loss, tuple(args), tuple(tangents))[1])
        if not abs(pulled - pushed) <= 1e-9 * (terms + trust + abs(pushed)):
            raise Mismatch(f"{way}: vjp gives {pulled!r}, jvp {pushed!r}")
        if not abs(pulled - want) <= trust:
            raise Mismatch(f"{way}: differences give {want!r} +- {trust:.1e}, the gradient {pulled!r}")
        if way == "second":
            self._second(loss, wrt, args, tangents, raws, ts)

    def _second(self, loss: Any, wrt: Any, args: Any, tangents: Any, raws: Any, ts: Any) -> None:
        """The derivative of the gradient along the direction, in both modes."""
        import tenferro_runtime as tr
        from tenferro_ad import grad, jvp

        other = [np.asarray(np.roll(t.ravel(), 1).reshape(t.shape)) for t in ts]

        def slope(*xs: Any) -> Any:
            return sum(tr.sum(tr.real(tr.conj(g) * o)) for g, o in zip(grad(loss, wrt)(*xs), other))

        known = _difference(lambda *xs: float(slope(*map(tr.asarray, xs))), raws, ts)
        if known is None:
            return
        want, trust = known
        forward = float(jvp(slope, tuple(args), tuple(tangents))[1])
        backward, terms = _paired(grad(slope, wrt)(*args), ts)
        if not abs(forward - backward) <= 1e-8 * (terms + trust + abs(forward)):
            raise Mismatch(f"second: jvp of the gradient {forward!r}, gradient of the gradient {backward!r}")
        if not abs(forward - want) <= 10 * trust:
            raise Mismatch(f"second: differences give {want!r} +- {trust:.1e}, jvp of the gradient {forward!r}")

    def subject(self, case: Case) -> str:
        return self._programs.subject(case)

    def shrink(self, case: Case) -> Iterator[Case]:
        yield from self._programs.shrink(case)
        if case["way"] != "eager":
            yield case | {"way": "eager"}

    def code(self, case: Case) -> str:
        program = self._programs.code(case | {"way": "eager"})
        head, _, rest = program.partition("def f(")
        names = ", ".join(case["inputs"])
        inputs = [line for line in rest.splitlines() if line.split(" ")[0] in case["inputs"]]
        wrt = tuple(range(len(case["inputs"])))
        calls = {
            "compiled": f"tr.compile(grad(loss, {wrt}))({names})",
            "of compiled": f"grad(tr.compile(loss), {wrt})({names})",
        }
        call = calls.get(case["way"], f"grad(loss, {wrt})({names})")
        more = ["from tenferro_ad import check_grads, grad", f"print({call})"]
        more += [f"check_grads(loss, ({names},), order={2 if case['way'] == 'second' else 1})"]
        return "\n".join([head.rstrip(), loss_text(case), *inputs, *more])
