"""debug_callback and debug_print: each effect takes place once, in the order of the source, however a function runs."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tenferro_runtime as tr
from simulated.installed import simulated
from tenferro_ad import checkpoint, grad, hessian, jacrev, jvp, linearize, value_and_grad, vjp
from tenferro_runtime.ir import has_effects, without_effects
from tenferro_runtime.passes import PASSES, optimise
from tenferro_tensor import Spec
from tenferro_tensor_core import ArgumentError

pytestmark = pytest.mark.background

XS = np.array([1.0, 2.0, 3.0])
Notes = list[Any]


@pytest.fixture
def notes() -> Notes:
    """What callbacks have seen, in order."""
    return []


def noted(notes: Notes) -> Callable[..., None]:
    """A function that notes a label and what it is given."""

    def note(label: Any, *values: Any) -> None:
        tr.debug_callback(lambda *vs: notes.append((label, *[np.asarray(v).tolist() for v in vs])), *values)

    return note


def running(note: Callable[..., None]) -> Callable[[Any], Any]:
    """The sum of the products of running sums, with notes on the way."""

    def f(xs: Any) -> Any:
        note("start", xs)

        def step(c: Any, x: Any) -> tuple[Any, Any]:
            note("step", c, x)
            return c + x, c * x

        last, rows = tr.scan(step, 0.0, xs)
        note("end", last)
        return tr.sum(rows)

    return f


RUN = [("start", [1.0, 2.0, 3.0]), ("step", 0.0, 1.0), ("step", 1.0, 2.0), ("step", 3.0, 3.0), ("end", 6.0)]

TRANSFORMS: dict[str, Callable[[Any], Callable[..., Any]]] = {
    "plain": lambda f: f,
    "compiled": tr.compile,
    "grad": grad,
    "value and grad": value_and_grad,
    "vjp": lambda f: lambda x: vjp(f, x)[1](1.0),
    "jvp": lambda f: lambda x: jvp(f, (x,), (x,)),
    "jacobian": jacrev,
    "hessian": hessian,
    "second derivative": lambda f: grad(lambda x: tr.sum(grad(f)(x))),
    "linearized": lambda f: lambda x: [push(x) for push in [linearize(f, x)[1]] * 2],
    "checkpointed": lambda f: grad(checkpoint(f)),
    "jvp of grad": lambda f: lambda x: jvp(grad(f), (x,), (x,)),
}


@pytest.mark.parametrize("outside", [False, True], ids=["", "compiled outside"])
@pytest.mark.parametrize("inside", [False, True], ids=["", "compiled inside"])
@pytest.mark.parametrize("name", TRANSFORMS)
def test_each_effect_takes_place_once_in_order(name: str, inside: bool, outside: bool, notes: Notes) -> None:
    f = running(noted(notes))
    f = tr.compile(f) if inside else f
    run = TRANSFORMS[name](f)
    run = tr.compile(run) if outside else run
    for _ in range(3):  # by steps, and as a native function
        notes.clear()
        run(XS)
        assert notes == RUN


@pytest.mark.parametrize("wrap", [lambda f: f, tr.compile], ids=["eager", "compiled"])
def test_lanes_take_turns_at_each_effect(wrap: Any, notes: Notes) -> None:
    note = noted(notes)

    def f(x: Any) -> Any:
        note("all")
        note("lane", x)
        return tr.cond(x > 1, lambda: (note("large", x), x)[1], lambda: (note("small", x), -x)[1])

    assert wrap(tr.vmap(f))(XS).tolist() == [-1.0, 2.0, 3.0]
    assert notes[:4] == [("all",), ("lane", 1.0), ("lane", 2.0), ("lane", 3.0)]
    assert sorted(notes[4:]) == [("large", 2.0), ("large", 3.0), ("small", 1.0)]
    notes.clear()
    wrap(tr.vmap(grad(f)))(XS)
    assert len(notes) == 7 and notes[1:4] == [("lane", 1.0), ("lane", 2.0), ("lane", 3.0)]


# -- branches and loops -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wrap", [lambda f: f, tr.compile], ids=["eager", "compiled"])
@pytest.mark.parametrize("slope", [False, True], ids=["", "grad"])
def test_a_branch_that_is_not_taken_has_no_effect(wrap: Any, slope: bool, notes: Notes) -> None:
    note = noted(notes)

    def f(x: Any) -> Any:
        tr.cond(x > 0, lambda: note("above", x), lambda: note("below"))  # branches that return nothing
        return tr.switch(tr.where(x > 1, 1, 0), [lambda v: v, lambda v: (note("one", v), v * v)[1]], x)

    run = wrap(grad(f) if slope else f)
    for x, expected in ((0.5, [("above", 0.5)]), (-2.0, [("below",)]), (2.0, [("above", 2.0), ("one", 2.0)])):
        notes.clear()
        run(x)
        assert notes == expected


@pytest.mark.parametrize("wrap", [lambda f: f, tr.compile], ids=["eager", "compiled"])
def test_conditions_and_bodies_of_loops_have_their_effects(wrap: Any, notes: Notes) -> None:
    note = noted(notes)

    def f(n: Any) -> Any:
        tr.fori_loop(0, n, lambda i, c: (note("i", i), c)[1], ())
        return tr.while_loop(lambda c: (note("test", c), c < 2)[1], lambda c: (note("body"), c + 1)[1], 0)

    assert wrap(f)(2).item() == 2
    turns = [("test", 0), ("body",), ("test", 1), ("body",), ("test", 2)]
    assert notes == [("i", 0), ("i", 1), *turns]


def test_reverse_mode_through_a_bounded_loop_repeats_nothing(notes: Notes) -> None:
    note = noted(notes)
    f = lambda x: tr.while_loop(lambda c: c < 10, lambda c: (note("c", c), c * x)[1], x, max_steps=5)
    for run in (grad(tr.compile(f)), tr.compile(grad(f))):
        notes.clear()
        assert run(2.0).item() == 32.0
        assert notes == [("c", 2.0), ("c", 4.0), ("c", 8.0)]


@pytest.mark.parametrize("wrap", [lambda f: f, tr.compile], ids=["eager", "compiled"])
def test_what_a_backward_pass_computes_again_is_not_noted_again(wrap: Any, notes: Notes) -> None:
    note = noted(notes)
    late = checkpoint(lambda x: (note("late", x), tr.sum(tr.compress(x, x > 1) ** 2))[1])
    wrap(grad(late))(XS)
    assert notes == [("late", XS.tolist())]

    def loop(x: Any) -> Any:
        step = lambda c, y: ((note("c", c), tr.sin(c) * y)[1], None)
        return tr.scan(step, x, tr.asarray(np.ones(12)), memory_budget=64)[0]

    notes.clear()
    wrap(grad(loop))(0.5)
    assert len(notes) == 12 and notes == sorted(notes, reverse=True)


@pytest.mark.parametrize("unroll", [False, True, 2])
def test_loops_of_constants_and_of_nothing_keep_their_effects(unroll: bool | int, notes: Notes) -> None:
    note = noted(notes)

    def f(x: Any) -> Any:
        tr.scan(lambda c, _: (note("same", x), (c, None))[1], (), None, length=4, unroll=unroll)
        return x

    tr.compile(f)(2.0)
    grad(tr.compile(f))(2.0)
    assert notes == [("same", 2.0)] * 8


def test_effects_of_constants_take_place_when_the_program_runs(notes: Notes) -> None:
    note = noted(notes)
    inner = tr.compile(lambda: note("inner"))

    def f(x: Any) -> Any:
        inner()
        tr.fori_loop(0, 2, lambda i, c: (note("i", i), c)[1], ())
        note("constant", tr.asarray(3))
        return x * x

    inner()
    every = [("inner",), ("i", 0), ("i", 1), ("constant", 3)]
    compiled = tr.compile(f)
    for run in (
        f,
        compiled,
        grad(compiled),
        tr.compile(grad(compiled)),
        grad(grad(f)),
        lambda x: jvp(compiled, (x,), (x,)),
    ):
        for _ in range(2):
            notes.clear()
            run(2.0)
            assert notes == every
    notes.clear()
    tr.vmap(compiled)(XS)
    assert notes == every  # they are the same in all lanes


def test_a_number_that_becomes_an_array_makes_its_step_once(notes: Notes) -> None:
    note = noted(notes)

    def total(xs: Any) -> Any:
        return tr.scan(lambda c, x: ((note("c", c), c + x)[1], None), 0, xs)[0]

    for run in (total, tr.compile(total)):
        notes.clear()
        run(XS)
        assert [value for _, value in notes] == [0, 1, 3]
    unrolled = lambda x, xs: tr.scan(lambda c, y: ((note("c", c), c + y)[1], None), x, xs, unroll=True)[0]
    for first in (0.0, tr.asarray(0.0)):
        notes.clear()
        tr.compile(unrolled)(first, XS)
        assert [value for _, value in notes] == [0, 1, 3]


def test_a_body_that_turns_out_to_be_traced_has_no_effects_twice(notes: Notes) -> None:
    note = noted(notes)

    def f(x: Any) -> Any:
        rows = tr.scan(lambda c, k: (c + 1, (note("k", k), k * x)[1]), 0, tr.asarray(XS))[1]
        last = tr.while_loop(lambda c: (note("c", c), c < 3)[1], lambda c: c + x, 0.0)
        return tr.sum(rows) + last

    tr.compile(f)(2.0)
    assert notes == [("k", 1.0), ("k", 2.0), ("k", 3.0), ("c", 0.0), ("c", 2.0), ("c", 4.0)]


def test_long_loops_of_python_keep_the_order(notes: Notes) -> None:
    note = noted(notes)

    def f(x: Any) -> Any:
        for i in range(60):
            x = x + 1.0
            note(i, x)
        return x

    tr.compile(f)(0.0)
    assert notes == [(i, i + 1.0) for i in range(60)]


# -- passes -------------------------------------------------------------------------------------------------------


def test_passes_keep_effects_where_they_are() -> None:
    def f(x: Any) -> Any:
        g = tr.compile(lambda: tr.debug_print("again"))
        big = tr.zeros(1000) + x
        for _ in range(2):
            g()
            tr.debug_print("x {}", x)
        tr.debug_print("constant {}", tr.asarray(2.0))
        tr.debug_print("late {}", tr.sum(big))
        return x

    program = tr.trace(f, Spec((), tr.float64))
    before = [eq.op for eq in program.equations if eq.op.primitive.name == "debug_callback"]
    assert len(before) == 6
    for run in (optimise, *PASSES, tr.Runtime().optimise):
        program = run(program)
        assert [eq.op for eq in program.equations if eq.op.primitive.name == "debug_callback"] == before


def test_a_program_without_its_effects_only_computes(capsys: pytest.CaptureFixture[str]) -> None:
    def f(x: Any) -> Any:
        def step(c: Any, _: None) -> tuple[Any, None]:
            tr.cond(c > 1, lambda: tr.debug_print("above"), lambda: None)
            return c + x, None

        tr.debug_print("first")
        return tr.scan(step, x, None, length=3)[0]

    program = tr.trace(f, Spec((), tr.float64))
    silent = without_effects(program)
    assert has_effects(program) and not has_effects(silent) and without_effects(silent) is silent
    assert silent.run(1.0)[0].item() == 4.0 and capsys.readouterr().out == ""
    assert program.run(1.0)[0].item() == 4.0 and capsys.readouterr().out == "first\nabove\nabove\n"


def test_effects_stay_in_order_on_several_pools(notes: Notes) -> None:
    note = noted(notes)

    @tr.compile(placement="auto")
    def f(x: Any) -> Any:
        for i in range(6):
            note(i, tr.sum(x * float(i)))
        return x

    f(XS)
    assert notes == [(i, 6.0 * i) for i in range(6)]


# -- what callbacks get -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wrap", [lambda f: f, tr.compile], ids=["eager", "compiled"])
def test_callbacks_get_arrays_of_their_own_in_containers(wrap: Any) -> None:
    seen: list[Any] = []

    def keep(tree: Any, *, name: str, n: Any) -> None:
        seen.append(tree)
        tree["a"][0] = 7.0  # nobody else's memory
        assert name == "n" and n == 3 and type(tree["b"]) is list and tree["b"][0].dtype == np.int64

    @wrap
    def f(x: Any, i: Any) -> Any:
        tr.debug_callback(keep, {"a": x, "b": [i]}, name="n", n=3)
        return x + 1.0

    x = tr.asarray(XS)
    assert f(x, tr.asarray(5)).tolist() == [2.0, 3.0, 4.0] and x.tolist() == XS.tolist()
    f(x, tr.asarray(5))
    assert [t["a"].tolist() for t in seen] == [[7.0, 2.0, 3.0]] * 2


def test_sizes_are_values_of_the_run(notes: Notes) -> None:
    f = tr.compile(lambda x: (noted(notes)("n", x.shape[0]), tr.sum(x))[1])
    f(XS), f(XS[:2])
    assert notes == [("n", 3), ("n", 2)] and f.cache_info().traces == 1


@pytest.mark.parametrize("wrap", [lambda f: f, tr.compile], ids=["eager", "compiled"])
def test_printing(wrap: Any, capsys: pytest.CaptureFixture[str]) -> None:
    @wrap
    def f(x: Any, n: Any) -> Any:
        tr.debug_print("{0:.2f} {name} {x} {0:{width}}", x[0], name="row", x=x, width=6)
        tr.debug_print("step {{}} {} of {}", n, 3)
        tr.debug_print("done")
        return x

    f(tr.asarray([0.5]), tr.asarray(2))
    assert capsys.readouterr().out == "0.50 row [0.5]    0.5\nstep {} 2 of 3\ndone\n"


def test_values_of_an_accelerator_are_brought_by_the_function(notes: Notes) -> None:
    @tr.compile
    def f(x: Any) -> Any:
        tr.debug_callback(lambda v: notes.append(v.tolist()), tr.to_device(tr.sum(x), "cpu:0"))
        return x + 1.0

    with simulated():
        x = tr.asarray(XS).to_device("sim:0")
        assert f(x).to_device("cpu:0").tolist() == [2.0, 3.0, 4.0] and notes == [6.0]


def test_errors_of_callbacks_come_out(notes: Notes) -> None:
    def fail(x: Any) -> None:
        notes.append(1)
        raise RuntimeError("too large")

    def f(x: Any) -> Any:
        return tr.fori_loop(0, 3, lambda i, c: (tr.debug_callback(fail, c), c + 1.0)[1], x)

    for run in (f, tr.compile(f), grad(tr.compile(f))):
        for _ in range(2):
            notes.clear()
            with pytest.raises(RuntimeError, match="too large"):
                run(1.0)
            assert notes == [1]


def test_mistakes() -> None:
    with pytest.raises(ArgumentError, match="debug_callback takes a function, got 3"):
        tr.debug_callback(3)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="debug_print takes a format string first"):
        tr.debug_print(tr.asarray(1.0))  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="names 1, which is not given"):
        tr.debug_print("{} {}", 1.0)
    with pytest.raises(ArgumentError, match="leaves out y"):
        tr.debug_print("{x}", x=1.0, y=2.0)
    with pytest.raises(ArgumentError, match="cannot read the format"):
        tr.debug_print("{", 1.0)


def test_files_refuse_callbacks(tmp_path: Path) -> None:
    f = tr.compile(lambda x: (tr.debug_print("x {}", x), x)[1])
    with pytest.raises(tr.ProgramFileError, match="debug_callback calls a Python function, print 'x {}', which cannot"):
        f.save(tmp_path / "f.tfp", 1.0)
