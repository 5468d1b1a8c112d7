"""What programmers get wrong while tracing and running programs: every error names their line and the way out."""

import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tenferro_runtime as tr
from tenferro_ad import grad, jvp, vjp
from tenferro_linalg import cholesky, solve, svd
from tenferro_runtime.extension import call
from tenferro_tensor import Spec, tensor
from tenferro_tensor_core import (
    ArgumentError,
    AxisError,
    DTypeError,
    ForeignFunctionError,
    GradientError,
    InconclusiveDimError,
    NumericalError,
    ShapeError,
    TenferroError,
    TracingError,
)

F8 = np.dtype("float64")
X = tensor([1.0, 2.0, 3.0])
WIDE = tr.ones((2, 3))


def said(error: BaseException) -> str:
    return "\n".join([str(error), *getattr(error, "__notes__", ())])


def line_of(f: Callable[..., Any]) -> str:
    """The line of a function's body: the mistakes below stand there."""
    return f"{__file__}:{f.__code__.co_firstlineno + 1}"


def raised(f: Callable[..., Any], *args: Any) -> BaseException:
    try:
        f(*args)
    except Exception as error:
        return error
    raise AssertionError("no error")


class While:
    """Mistakes while tracing, by what they teach; each body is one line."""

    def text_of_array(x: Any):
        return np.array2string(x)

    def ufunc_of_both(x: Any):
        return np.isnat(x)

    def special(x: Any):
        return math.sqrt(x[0])

    def order(x: Any):
        return np.sort(x, order="f0")

    def array(x: Any):
        return np.asarray(x)

    def stack(x: Any):
        return np.array([x, x])

    def in_place(x: Any):
        return np.zeros(3).__iadd__(x)

    def branch(x: Any):
        return 1.0 if x[0] > 0 else 2.0

    def loop(x: Any):
        return [x := x / 2 for _ in range(3) if x[0] > 1]

    def largest(x: Any):
        return max(x[0], x[1])

    def chained(x: Any):
        return 0 < x[0] < 1

    def both(x: Any):
        return x[0] > 0 and x[1] > 0

    def count(x: Any):
        return range(tr.astype(x[0], tr.int64))

    def item(x: Any):
        return [10, 20][tr.astype(x[0], tr.int64)]

    def text(x: Any):
        return f"{x[0]:.3f}"

    def elements(x: Any):
        return x.numpy()

    def assignment(x: Any):
        x += tr.ones(4)
        return x

    def masked(x: Any):
        return x[x > 0]

    def shapes(x: Any):
        return x + tr.ones(2)

    def product(x: Any):
        return x @ WIDE

    def arrangement(x: Any):
        return tr.reshape(x, (2, 2))

    def axis(x: Any):
        return tr.sum(x, axis=3)

    def kind(x: Any):
        return x & 1

    def letters(x: Any):
        return tr.sin("a")


TABLE = [
    (While.text_of_array, ForeignFunctionError, r"np\.array2string was called on .*no counterpart.*its own rule"),
    (While.ufunc_of_both, ForeignFunctionError, r"np\.isnat was called on .*no counterpart"),
    (While.special, TracingError, r"float\(\) was requested"),
    (While.order, ForeignFunctionError, r"np\.sort was called on .*argument 'order'.*call tr\.sort"),
    (While.array, TracingError, "conversion to a NumPy array was requested"),
    (While.stack, TracingError, "conversion to a NumPy array was requested"),
    (While.in_place, ForeignFunctionError, r"np\.add cannot write .* into a NumPy array.*a = a \+ x"),
    (While.branch, TracingError, r"a truth value was requested .*use tr.where\(\)"),
    (While.loop, TracingError, "a truth value was requested"),
    (While.largest, TracingError, "a truth value was requested"),
    (While.chained, TracingError, "a truth value was requested"),
    (While.both, TracingError, "a truth value was requested"),
    (While.count, TracingError, "an integer was requested"),
    (While.item, TracingError, r"an integer was requested .*index an array of tenferro.*fori_loop\(\)"),
    (While.text, TracingError, "formatting was requested .*return the value"),
    (While.elements, TracingError, "the elements were requested"),
    (While.assignment, ShapeError, "extents"),
    (While.masked, TracingError, r"depends on the elements of the mask.*where\(mask, x, fill\)"),
    (While.shapes, ShapeError, "extents 3 and 2"),
    (While.product, ShapeError, "matmul cannot multiply"),
    (While.arrangement, ShapeError, "reshape cannot arrange"),
    (While.axis, AxisError, "axis 3 is out of range"),
    (While.kind, DTypeError, "bitwise_and is not defined for float64"),
    (While.letters, ArgumentError, "operand 0 is a str"),
]
WAYS: dict[str, Any] = {
    "trace": lambda f: lambda x: tr.trace(f, x),
    "compile": tr.compile,
    "compiled gradient": lambda f: tr.compile(grad(f)),
    "inside of a compiled function": lambda f: tr.compile(lambda x: tr.compile(f)(x * 1.0)),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("f", "kind", "text"), TABLE, ids=[f.__name__ for f, _, _ in TABLE])
def test_a_mistake_while_tracing_names_its_line_and_the_fix(way: str, f, kind, text: str) -> None:
    error = raised(WAYS[way](f), X)
    if way == "compiled gradient":
        # A differentiated value refuses first what would cut it off from the derivative.
        assert isinstance(error, (kind, GradientError, TypeError))
    else:
        assert isinstance(error, kind) and re.search(text, str(error), re.S), said(error)
        assert issubclass(kind, TenferroError)
    assert line_of(f) in said(error)


# ------------------------------------------------------------------------------------------------ what may be done


@pytest.mark.parametrize(
    ("f", "numpy"),
    [
        (lambda x: np.ones(3) * x, lambda x: x),
        (lambda x: np.float64(2.0) - x, lambda x: 2.0 - x),
        (lambda x: np.arange(3.0) / x, lambda x: np.arange(3.0) / x),
        (lambda x: np.ones((2, 3)) @ x, lambda x: np.ones((2, 3)) @ x),
        (lambda x: np.ones(3) ** x, lambda x: np.ones(3)),
        (lambda x: np.full(3, 2.0) < x, lambda x: x > 2.0),
        (lambda x: np.full(3, 2.0) == x, lambda x: x == 2.0),
        (lambda x: x - np.ones(3), lambda x: x - 1.0),
        (lambda x: x * np.shape(x)[0] + np.ndim(x) + np.size(x), lambda x: 3 * x + 4),
    ],
    ids="mul sub div matmul pow lt eq right metadata".split(),
)
def test_arithmetic_with_numpy_arrays_is_recorded(f, numpy) -> None:
    assert np.array_equal(tr.compile(f)(X).numpy(), numpy(X.numpy()))


def test_a_traced_value_prints_without_its_elements() -> None:
    shown = []
    tr.trace(lambda x: shown.append(f"{x} {x!s}") or x, X)
    assert shown == ["TracedTensor(float64[3], v0) TracedTensor(float64[3], v0)"]


# ------------------------------------------------------------------------------------------------ leaks


def test_a_leaked_value_names_the_use_and_the_trace() -> None:
    leaked = []

    def keeps(x):
        leaked.append(x * 2)
        return x

    def uses():
        return leaked[0] + 1

    tr.compile(keeps)(X)
    error = raised(uses)
    assert isinstance(error, TracingError) and "return values from the traced function" in str(error)
    assert line_of(uses) in str(error) and re.search(
        rf"after the trace opened at {re.escape(__file__)}:\d+", str(error)
    )


def test_a_value_that_leaks_out_of_a_derivative_is_named_too() -> None:
    leaked = []

    def f(x):
        leaked.append(x * 2)
        return tr.sum(x)

    def uses(y):
        return tr.sum(y * leaked[0])

    tr.compile(grad(f))(X)
    error = raised(tr.compile(uses), X)
    assert isinstance(error, TenferroError) and line_of(uses) in said(error)


@pytest.mark.parametrize("use", [bool, float, np.sin, np.asarray], ids=lambda f: f.__name__)
def test_elements_of_a_leaked_value_are_no_matter_of_a_trace_that_has_ended(use) -> None:
    leaked = []
    tr.compile(lambda x: leaked.append(x * 2) or x)(X)
    with pytest.raises(TracingError, match=r"after the trace opened at .* had ended; return values from the traced"):
        use(leaked[0])


def test_sizes_of_a_leaked_value_say_where_they_may_come_from() -> None:
    leaked = []
    tr.compile(lambda x: leaked.append(x * 2) or x)(X)
    with pytest.raises(InconclusiveDimError, match="outlived its trace has such sizes: return it instead"):
        grad(lambda x: tr.sum(x * leaked[0]))(X)


@pytest.mark.parametrize(
    "use",
    [
        lambda x, f: tr.cond(x[0] > 0, f, tr.sin, x),
        lambda x, f: tr.switch(1, [tr.sin, f], x),
        lambda x, f: tr.while_loop(lambda c: tr.sum(c) < 0, f, x),
        lambda x, f: tr.while_loop(f, tr.sin, x),
        lambda x, f: tr.scan(f, 0.0, x),
    ],
    ids=["cond", "switch", "body", "condition", "scan"],
)
def test_control_flow_takes_functions(use) -> None:
    for run in (use, tr.compile(use, static_argnames="f")):
        with pytest.raises(ArgumentError, match=r"takes functions at .*_mistakes.*, got 1; wrap a constant"):
            run(X, 1)


def test_notes_show_a_called_program_in_one_line() -> None:
    op = call.op(program=tr.trace(lambda x: tr.sin(x) * 2, X))
    assert repr(op).startswith("call[program=<program (float64[3]) -> (float64[3]), 2 equations>")


# ------------------------------------------------------------------------------------------------ trees


@pytest.mark.parametrize(
    ("f", "args", "text"),
    [
        (lambda x: "result", (X,), "returned a str at result"),
        (lambda x: {"a": object()}, (X,), r"returned a object at result\['a'\]"),
        (lambda x, how: x, (X, bytearray()), "argument how of .* is a bytearray.*has no hash"),
        (lambda x: x, ({"a": [X, None, {1}]},), r"argument x\['a'\]\[2\] of .* is a set"),
    ],
    ids=["text", "object", "option", "set"],
)
def test_what_is_no_tree_of_arrays_is_named_with_its_place(f, args, text: str) -> None:
    error = raised(tr.compile(f), *args)
    assert isinstance(error, ArgumentError) and re.search(text, str(error))


@pytest.mark.parametrize(
    ("f", "text"),
    [
        (lambda: jvp(lambda d: d["a"], ({"a": X},), (X,)), r"must have the structure \(\{'a': \*\},\), got \(\*,\)"),
        (lambda: jvp(lambda x: x, (X,), (tr.ones(2),)), "the tangent must be float64.3., .* but is float64.2."),
        (lambda: vjp(lambda x: (x, x), X)[1](X), r"must have the structure \(\*, \*\)"),
    ],
    ids=["structure", "shape", "cotangent"],
)
def test_tangents_and_cotangents_must_fit(f, text: str) -> None:
    error = raised(f)
    assert isinstance(error, TenferroError) and re.search(text, str(error))


# ------------------------------------------------------------------------------------------------ replay


def singular(x):
    return solve(tr.zeros((3, 3)) * x, x)


def not_finite(x):
    return svd(tr.reshape(x, (1, 3)) * np.nan)[1]


def indefinite(x):
    return cholesky(-x[:, None] * x)


@pytest.mark.parametrize("f", [singular, not_finite, indefinite], ids=lambda f: f.__name__)
@pytest.mark.parametrize("calls", [1, 3])
def test_a_kernel_that_fails_in_a_replay_names_the_line(f, calls: int) -> None:
    compiled = tr.compile(f)
    for _ in range(calls):
        error = raised(compiled, X)
    assert isinstance(error, NumericalError) and f"traced at {line_of(f)}" in said(error)
    assert said(error).count("traced at") == 1


def test_a_kernel_that_fails_in_a_program_inside_of_a_program_names_both_lines() -> None:
    inner = tr.compile(singular)

    def outer(x):
        return inner(x) + 1

    program = tr.trace(outer, X)
    error = raised(program.run, X)
    assert line_of(singular) in said(error)


def kinked(x):
    return svd(x[:, None] * x)[1][1]


def pulled(x):
    return kinked(x * 1.0)


@pytest.mark.parametrize("f", [kinked, pulled], ids=lambda f: f.__name__)
def test_a_derivative_that_fails_in_a_replay_names_the_line_of_the_function(f) -> None:
    error = raised(tr.compile(grad(f)), X)
    assert isinstance(error, GradientError) and line_of(kinked) in said(error)


def test_a_program_called_with_other_shapes_names_the_input() -> None:
    program = tr.trace(lambda x: x + 1, Spec((3,), F8))
    with pytest.raises(tr.ProgramError, match=r"input 0 .* is float64\[3\], got float64\[4\]; convert the operand"):
        program.run(tr.ones(4))


def test_a_program_takes_no_containers() -> None:
    program = tr.trace(lambda d: d["a"] + 1, {"a": tr.ones(2)})
    with pytest.raises(tr.ProgramError, match="value 0 is a dict; pass its leaves one by one"):
        program.run({"a": tr.ones(2)})
    assert program.run(tr.ones(2))[0].tolist() == [2.0, 2.0]
