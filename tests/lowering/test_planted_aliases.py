"""Each step of the rule of writing in place is needed: without it, a small program gives wrong results."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tenferro_runtime as tr
from random_loops import Change, Nest, Recipe
from tenferro_runtime.extension import Literal
from tenferro_runtime.lowering import _loops, _lowering, _reductions, _values, _writer, lower
from tenferro_tensor.loop_interpreter import interpret
from tenferro_tensor.loop_ir import LoopIRError, Role, verify


@pytest.fixture(autouse=True)
def few_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (_values, _reductions):
        monkeypatch.setattr(module, "REGISTERS_MAX_ELEMENTS", 3)


def over(*body: Any, carried: tuple[int, ...] = (0, 1, 2)) -> Nest:
    """A loop over the slices of the arrays."""
    return Nest("over slices", (body,), 0, carried, False)


def change(name: str, k: int = 0, o: int = 0) -> Change:
    return Change(name, k, o, 0, 0)


def overwritable(*, owned: bool = True, dead: bool = True, once: bool = True) -> Callable[..., bool]:
    """`Step.overwritable` without some of its conditions."""

    def found(step: Any, k: int) -> bool:
        v = step.eq.operands[k]
        x = None if isinstance(v, Literal) else step.body.values[v]
        return (
            isinstance(x, _values.Stored)
            and x.whole
            and (not owned or step.body.owns(x.buffer))
            and (not dead or not step.body.left[v])
            and (not once or step.eq.operands.count(v) == 1)
        )

    return found


def spare(*, made: bool, free: bool) -> Callable[..., Any]:
    """`_made_inside` without one of its conditions."""

    def found(x: Any, first_inside: int, taken: set[int]) -> Any:
        if not isinstance(x, _values.Stored) or not x.whole or x.buffer.role is not Role.TEMPORARY:
            return None
        good = (not made or x.buffer.number >= first_inside) and (not free or x.buffer.number not in taken)
        return x.buffer if good else None

    return found


PLANTED: dict[str, tuple[Any, str, Any, tuple[Any, ...]]] = {
    "values that read the memory are written elsewhere": (
        _lowering.Step, "_save_readers", lambda *_: None,
        (over(change("exchanged", 0, 1)), Change("mixed", 0, 0, 1, 0), change("shift", 1)),
    ),
    "the memory is the program's own": (
        _lowering.Step, "overwritable", overwritable(owned=False), (change("shift"),),
    ),
    "the operand is dead": (
        _lowering.Step, "overwritable", overwritable(dead=False), (over(change("copy", 1, 0), change("shift", 0, 2)),),
    ),
    "the operand occurs once": (
        _lowering.Step, "overwritable", overwritable(once=False), (over(over(change("shared"))),),
    ),
    "constants of a loop are foreign": (
        _lowering.Body, "owns", lambda body, buffer: buffer.number in body.own or buffer.role is Role.TEMPORARY,
        (change("shared"), over(Nest("scan", ((change("shared"),),), 1, (0, 1, 2), False), carried=(1, 2))),
    ),
    "memory of a new value is taken once": (
        _loops, "_made_inside", spare(made=True, free=False), (over(change("shared", 0, 1)),),
    ),
    "memory of a new value is made inside": (
        _loops, "_made_inside", spare(made=False, free=True),
        (over(change("exchanged", 0, 1), over(change("exchanged", 0, 1), carried=(2, 0))),),
    ),
    "a new value in place is all of the memory": (
        _loops, "_is_whole", lambda x, b: isinstance(x, _values.Stored) and x.buffer.number == b.number,
        (over(over(change("rearranged", 1, 1))),),
    ),
    "what was loaded before a store is forgotten": (
        _writer.LoopWriter, "written", lambda *_: None, (over(change("every other", 2)),),
    ),
}  # fmt: skip


def wrong(recipe: Recipe) -> bool:
    arrays = recipe.inputs()
    program = tr.trace(recipe.run, *map(tr.asarray, arrays))
    try:
        got = interpret(verify(lower(program)), arrays)
    except LoopIRError:
        return True
    want = map(np.asarray, program.run(*map(tr.asarray, arrays)))
    return any(not np.array_equal(a, b) for a, b in zip(got, want, strict=True))


@pytest.mark.parametrize("law", PLANTED)
def test_without_a_step_of_the_rule_results_are_wrong(law: str, monkeypatch: pytest.MonkeyPatch) -> None:
    owner, name, planted, body = PLANTED[law]
    recipe = Recipe((5,), "int64", body, (0, 1, 2))
    assert not wrong(recipe)
    monkeypatch.setattr(owner, name, planted)
    assert wrong(recipe)
