"""Tracing: what is recorded, and what every misuse says."""

import pickle
import threading

import numpy as np
import pytest

import tenferro_runtime as tr
from tenferro_runtime.extension import Builder, check_program
from tenferro_tensor import Spec, catalog, tensor
from tenferro_tensor.identity import identity
from tenferro_tensor_core import ArgumentError, PlacementError, TracingError

F8 = np.dtype("float64")
X = Spec((3,), F8)


def names(program: tr.Program) -> list[str]:
    return [eq.op.primitive.name for eq in program.equations]


def test_a_program_prints_as_it_reads() -> None:
    b = Builder()
    x, y = b.input(Spec((2, 3), F8), "x"), b.input(Spec((3,), np.dtype("float32")), "y")
    program = b.close([x * y + 1])
    lines = [line.partition("  #")[0].rstrip() for line in str(program).splitlines()]
    assert lines == [
        "program(x: float64[2, 3], y: float32[3]) {",
        "  v2: float64[3] = convert[dtype=float64](y)",
        "  v3: float64[2, 3] = broadcast_in_dim[shape=(2, 3), dims=(1,)](v2)",
        "  v4: float64[2, 3] = mul(x, v3)",
        "  v5: float64[2, 3] = add(v4, 1)",
        "  return v5",
        "}",
    ]
    assert repr(program) == "<program (float64[2, 3], float32[3]) -> (float64[2, 3]), 4 equations>"


def test_the_lines_of_code_stand_below_each_other() -> None:
    program = tr.trace(lambda x: tr.sum(tr.exp(x) * 2 + x), X)
    shown = [line for line in str(program).splitlines() if "#" in line]
    assert (
        len({line.index("  # ") for line in shown}) == 1
        and len({len(line.split("  # ")[0].rstrip()) for line in shown}) > 1
    )


def test_equations_know_the_line_of_user_code() -> None:
    program = tr.trace(lambda x: tr.exp(x), X)
    assert program.equations[0].where.startswith(__file__ + ":")


def test_concrete_values_become_one_constant() -> None:
    k = tensor([1.0, 2.0, 3.0])
    program = tr.trace(lambda x: x * k + k, X)
    assert [identity(c) for c in program.constants.values()] == [identity(k)]


def test_python_scalars_stay_literals_and_keep_the_dtype() -> None:
    program = tr.trace(lambda x: 2 * x - 0.5, Spec((3,), np.dtype("float32")))
    assert names(program) == ["mul", "sub"]
    assert program.outputs == (Spec((3,), np.dtype("float32")),)


def test_a_scalar_that_the_dtype_cannot_hold_converts_the_array() -> None:
    program = tr.trace(lambda x: x * 1j, X)
    assert names(program) == ["convert", "mul"]
    assert program.outputs[0].dtype == "complex128"


def test_an_integer_out_of_range_is_refused_while_tracing() -> None:
    with pytest.raises(ArgumentError, match="add: Python integer 300 out of bounds for uint8"):
        tr.trace(lambda x: x + 300, Spec((3,), np.dtype("uint8")))


def test_operators_of_an_ndarray_reach_the_trace() -> None:
    program = tr.trace(lambda x: np.ones(3) * x, X)
    assert names(program) == ["mul"] and len(program.constants) == 1


def test_ops_without_operands_are_constants() -> None:
    program = tr.trace(lambda x: x + catalog.iota(shape=(3,), dtype=F8, axis=0), X)
    assert names(program) == ["add"]


def test_operands_at_several_places_are_refused_while_tracing() -> None:
    other = tr.ComputeDevice("cuda:0").memory_space
    from tenferro_tensor import Place

    with pytest.raises(
        PlacementError, match=r"add has operands in several memory spaces:(.*\n)+.*to_device\('cpu:0'\)"
    ):
        tr.trace(lambda x, y: x + y, X, Spec((3,), F8, Place(other)))


@pytest.mark.parametrize(
    ("misuse", "text"),
    [
        (lambda x: bool(x[0] > 0), "a truth value was requested .*use tr.where"),
        (lambda x: 1 if x[0] > 0 else 2, "a truth value was requested"),
        (lambda x: float(x[0]), r"float\(\) was requested .*pass the number as a static argument"),
        (lambda x: int(x[0]), r"int\(\) was requested"),
        (lambda x: complex(x[0]), r"complex\(\) was requested"),
        (lambda x: range(x[0]), r"an integer was requested .*static_argnames="),
        (
            lambda x: np.asarray(x),
            "conversion to a NumPy array was requested .*return the value and convert it outside",
        ),
        (lambda x: x.tolist(), r"tolist\(\) was requested"),
        (lambda x: x[0].item(), r"item\(\) was requested"),
        (lambda x: pickle.dumps(x), "pickling was requested .*save it outside"),
    ],
)
def test_asking_for_elements_names_the_line_and_the_fix(misuse, text) -> None:
    with pytest.raises(TracingError, match=text) as caught:
        tr.trace(misuse, X)
    assert isinstance(caught.value, TypeError)
    assert "is a variable of a program that is being recorded by the call at " + __file__ in str(caught.value)


def test_a_traced_value_shows_its_spec_not_its_elements() -> None:
    shown = []
    tr.trace(lambda x: shown.append(repr(x + 1)) or x, X)
    assert shown == ["TracedTensor(float64[3], v1)"]


def test_using_a_traced_value_after_the_trace_is_an_error() -> None:
    leaked = []
    tr.trace(lambda x: leaked.append(x) or x, X)
    for use in (lambda: leaked[0] + 1, lambda: leaked[0] + leaked[0], lambda: catalog.exp(leaked[0])):
        with pytest.raises(
            TracingError, match=r"a traced float64\[3\] was used at .*after the trace opened at .*ended"
        ):
            use()
    with pytest.raises(TracingError, match="return values from the traced function"):
        tr.trace(lambda y: y + leaked[0], X)


def test_a_trace_that_failed_is_closed_as_well() -> None:
    leaked = []

    def fails(x):
        leaked.append(x)
        raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"):
        tr.trace(fails, X)
    with pytest.raises(TracingError, match="had ended"):
        leaked[0] + 1


def test_a_value_of_an_inner_trace_cannot_leave_it() -> None:
    def outer(x):
        kept = []
        tr.trace(lambda y: kept.append(y) or y, X)
        return x + kept[0]

    with pytest.raises(TracingError, match="after the trace opened at"):
        tr.trace(outer, X)


def test_a_builder_refuses_values_of_a_higher_level() -> None:
    low, high = Builder(), Builder()
    x = high.input(X)
    with pytest.raises(TracingError, match="of an inner transformation was used in an outer program"):
        low.lift(x)


def test_a_program_computes_with_arrays_only() -> None:
    with pytest.raises(ArgumentError, match="a program computes with arrays and numbers, got str"):
        Builder().lift("x")


def test_an_outer_trace_is_captured_as_an_input() -> None:
    outer, inner = Builder(), Builder()
    w, x = outer.input(X), inner.input(X)
    y = x * w + w
    assert [(identity(v), number) for v, number in inner.captured] == [(identity(w), 1)]
    program = check_program(inner.close([y]))
    assert program.inputs == (X, X) and names(program) == ["mul", "add"]


def test_trace_refuses_what_it_cannot_keep() -> None:
    with pytest.raises(ArgumentError, match=r"a traced function returned a set at result\['a'\]; it may return arrays"):
        tr.trace(lambda x: {"a": {1, 2}}, X)
    with pytest.raises(ArgumentError, match=r"a str is not an array, a number or a Spec \(at argument \[0\]\[1\]\)"):
        tr.trace(lambda x, y: x, X, "y")
    with pytest.raises(TracingError, match=r"returned the number 3, which does not depend on its arguments; return as"):
        tr.trace(lambda x: 3, X)


def test_trace_refuses_values_of_an_outer_trace() -> None:
    with pytest.raises(TracingError, match=r"uses float64\[3\] of class TracedTensor from outside.*pass the value as"):
        tr.trace(lambda w: tr.trace(lambda x: x * w, X).run(w)[0], X)


def test_zero_dimensional_and_empty_operands() -> None:
    program = tr.trace(lambda x, y: (x * y, tr.sum(y)), Spec((), F8), Spec((0, 2), F8))
    a, b = program.run(2.0, np.ones((0, 2)))
    assert a.shape == (0, 2) and float(b) == 0.0
    (c,) = tr.trace(lambda x: x + 1, Spec((), F8)).run(1.5)
    assert c.shape == () and float(c) == 2.5


def test_programs_check_what_they_run_on() -> None:
    program = tr.trace(lambda x: x + 1, X)
    with pytest.raises(tr.ProgramError, match="the program takes 1 arrays, got 2"):
        program.run(np.ones(3), np.ones(3))
    with pytest.raises(tr.ProgramError, match=r"input 0 \(v0\) of the program is float64\[3\], got float64\[4\]"):
        program.run(np.ones(4))
    with pytest.raises(tr.ProgramError, match="value 0 is a str"):
        program.run("x")


def test_a_failing_kernel_names_the_equation_and_the_line() -> None:
    program = tr.trace(lambda x: tr.pow(x, -1 * tr.asarray([2])), Spec((1,), np.dtype("int64")))
    with pytest.raises(ValueError) as caught:
        program.run(np.asarray([2]))
    assert any("= pow(" in note and f"traced at {__file__}:" in note for note in caught.value.__notes__)


def test_a_traced_function_may_start_threads() -> None:
    def f(x, y):
        sums = [None] * 8

        def work(i):
            part = x
            for _ in range(50):
                part = part * y + i
            sums[i] = part

        threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        return sum(sums[1:], sums[0])

    program = check_program(tr.trace(f, X, X))
    a, b = tensor([1.0, 2.0, 3.0]), tensor([0.5, 0.25, 0.125])
    np.testing.assert_array_equal(program.run(a, b)[0].data, f(a, b).data)
    assert len(program.equations) == 8 * 100 + 7


def test_the_trace_of_an_array_is_the_sum_of_its_diagonal() -> None:
    x = np.arange(24.0).reshape(2, 3, 4)
    np.testing.assert_array_equal(np.asarray(tr.trace(tensor(x))), np.trace(x))
    np.testing.assert_array_equal(np.asarray(tr.trace(tensor(x), 1, 2, 1)), np.trace(x, 1, 2, 1))
    assert tr.compile(tr.trace)(tr.ones((3, 3))).item() == 3.0  # type: ignore[arg-type, attr-defined]


def test_a_program_can_be_called() -> None:
    x = tr.asarray([1.0, 2.0, 3.0])
    one, two = tr.trace(lambda x: x * 2, X), tr.trace(lambda x: (x * 2, tr.sum(x)), X)
    assert one(x).tolist() == one.run(x)[0].tolist() == [2.0, 4.0, 6.0]
    assert isinstance(two(x), tuple) and [z.tolist() for z in two(x)] == [z.tolist() for z in two.run(x)]
    assert tr.grad(lambda x: two(x)[1])(x).tolist() == [1.0, 1.0, 1.0]
    assert tr.compile(lambda x: one(x) + 1)(x).tolist() == [3.0, 5.0, 7.0]
    with pytest.raises(tr.ProgramError):
        one(x, x)
