"""The executable specification of programs: it passes what is traced, and catches each kind of damage."""

from collections.abc import Callable

import numpy as np
import pytest

import tenferro_runtime as tr
from tenferro_runtime.extension import Equation, Literal, Program, ProgramError, check_program
from tenferro_tensor import Spec, catalog, tensor

F8 = np.dtype("float64")


def program() -> Program:
    k = tensor([1.0, 2.0])
    return tr.trace(lambda x, y: tr.sum(tr.tanh(x * y) + k * 2.0), Spec((3, 2), F8), Spec((2,), F8))


def rebuilt(p: Program, **changes: object) -> Program:
    parts = {name: getattr(p, name) for name in ("input_ids", "constants", "equations", "output_ids", "specs")}
    return Program(**{**parts, **changes})


def without(p: Program, i: int) -> Program:
    return rebuilt(p, equations=p.equations[:i] + p.equations[i + 1 :])


def edited(p: Program, i: int, **changes: object) -> Program:
    eq = p.equations[i]
    parts = {name: getattr(eq, name) for name in ("op", "operands", "results", "source")}
    new = Equation(**{**parts, **changes})
    return rebuilt(p, equations=p.equations[:i] + (new,) + p.equations[i + 1 :])


def index(p: Program, name: str) -> int:
    return next(i for i, eq in enumerate(p.equations) if eq.op.primitive.name == name)


def test_a_traced_program_passes() -> None:
    p = program()
    assert check_program(p) is p


@pytest.mark.parametrize("i", range(len(program().equations)))
def test_an_equation_cannot_go_missing(i: int) -> None:
    with pytest.raises(ProgramError, match="is not defined|nothing defines"):
        check_program(without(program(), i))


@pytest.mark.parametrize("i", range(len(program().equations)))
def test_a_recorded_spec_cannot_be_wrong(i: int) -> None:
    p = program()
    (v,) = p.equations[i].results
    with pytest.raises(ProgramError, match="but inferred as|inference rejects"):
        check_program(rebuilt(p, specs={**p.specs, v: Spec((7,), F8)}))


def dependent() -> list[int]:
    eqs = program().equations
    return [i for i in range(len(eqs) - 1) if set(eqs[i].results) & set(eqs[i + 1].operands)]


@pytest.mark.parametrize("i", dependent())
def test_the_order_matters(i: int) -> None:
    p = program()
    first, second = p.equations[i : i + 2]
    swapped = (*p.equations[:i], second, first, *p.equations[i + 2 :])
    with pytest.raises(ProgramError, match=f"equation {i}, .*is not defined before it"):
        check_program(rebuilt(p, equations=swapped))


DAMAGE: list[tuple[str, Callable[[Program], Program], str]] = [
    ("no such output", lambda p: rebuilt(p, output_ids=(99,)), "output v99 is not defined"),
    ("an input twice", lambda p: rebuilt(p, input_ids=(0, 0)), "v0 is defined twice, the second time as an input"),
    ("an input without spec", lambda p: rebuilt(p, input_ids=(0, 98)), "v98, an input, has no recorded spec"),
    ("a constant over an input", lambda p: rebuilt(p, constants={0: tensor([1.0])}), "v0 is defined twice"),
    (
        "a constant that is open",
        lambda p: rebuilt(p, constants=dict.fromkeys(p.constants, np.ones(2))),
        "is a ndarray, not a concrete tensor: not closed",
    ),
    (
        "a constant of another spec",
        lambda p: rebuilt(p, constants=dict.fromkeys(p.constants, tensor([1.0]))),
        r"constant v\d+ is float64\[1\], but recorded as float64\[2\]",
    ),
    ("a stray spec", lambda p: rebuilt(p, specs={**p.specs, 97: Spec((), F8)}), r"nothing defines: \[97\]"),
    (
        "a broadcast left out",
        lambda p: edited(p, index(p, "mul"), operands=(0, 1)),
        "mul is element-wise and needs operands of one shape",
    ),
    (
        "a dtype mixed",
        lambda p: edited(p, index(p, "tanh"), op=catalog.is_finite.op()),
        r"is recorded as float64\[3, 2\], but inferred as bool\[3, 2\]",
    ),
    (
        "a literal that is no scalar",
        lambda p: edited(p, index(p, "mul"), operands=(0, Literal(np.float64(2)))),
        "the literal .* is not a Python scalar",
    ),
    (
        "a literal in a structural equation",
        lambda p: edited(p, index(p, "reduce_sum"), operands=(Literal(2.0),)),
        "is an operand of a primitive that is not element-wise",
    ),
    (
        "no array operand",
        lambda p: edited(p, index(p, "mul"), operands=(Literal(2.0), Literal(1.0))),
        "it has no array operand",
    ),
    (
        "too many results",
        lambda p: edited(p, index(p, "tanh"), results=(*p.equations[index(p, "tanh")].results, 55)),
        "it has 2 results, but the primitive has 1 outputs",
    ),
    (
        "a result defined before",
        lambda p: edited(p, index(p, "tanh"), results=(0,)),
        "v0 is defined twice, the second time as a result",
    ),
    (
        "a literal that would promote",
        lambda p: edited(p, index(p, "tanh"), op=catalog.mul.op(), operands=(0, Literal(1j))),
        r"with a number of class complex its operand float64\[3, 2\] must be complex128\[3, 2\]",
    ),
]


@pytest.mark.parametrize(("damage", "text"), [d[1:] for d in DAMAGE], ids=[d[0] for d in DAMAGE])
def test_damage_is_found_and_named(damage: Callable[[Program], Program], text: str) -> None:
    with pytest.raises(ProgramError, match=text):
        check_program(damage(program()))


def test_the_text_names_the_equation_and_its_line() -> None:
    p = program()
    i = index(p, "mul")
    with pytest.raises(ProgramError, match=rf"equation {i}, v\d+: .*mul\(v0, v1\).*{__file__}") as caught:
        check_program(edited(p, i, operands=(0, 1)))
    assert caught.value.payload["equation"] == i


def test_literals_compare_by_class_and_value() -> None:
    assert Literal(1) != Literal(True) and Literal(1) != Literal(1.0) and Literal(0.0) != Literal(-0.0)
    assert Literal(float("nan")) == Literal(float("nan")) and len({Literal(2), Literal(2), Literal(2.0)}) == 2
