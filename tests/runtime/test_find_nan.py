"""Where a NaN comes from: the first step that makes one, in programs, derivatives and loops."""

import numpy as np
import pytest

import tenferro_runtime as tr
from tenferro_ad import checkpoint, grad
from tenferro_runtime.extension import ProgramError
from tenferro_tensor import Spec, tensor

F8 = np.dtype("float64")
X = Spec((3,), F8)


def line_of(f) -> str:
    return f"{f.__code__.co_filename}:{f.__code__.co_firstlineno + 1}"


def root(x):
    return tr.sqrt(x - 2.0) * 3.0


def test_the_first_step_is_named_with_what_went_in() -> None:
    bad = tr.find_nan(root, tensor([1.0, 6.0, 0.0]))
    assert bad.path == (1,) and bad.where == line_of(root)
    (operand,), (result,) = bad.operands, bad.results
    assert (operand.smallest, operand.largest, operand.nan, operand.inf) == (-2.0, 4.0, 0, 0)
    assert (result.nan, result.inf, result.smallest, result.largest) == (2, 0, 2.0, 2.0)
    assert str(bad).splitlines() == [
        "step 1: v2: float64[3] = sqrt(v1)",
        "  from   v1: float64[3], 0 nan, 0 inf, from -2 to 4",
        "  made   v2: float64[3], 2 nan, 0 inf, from 2 to 2",
        f"  traced at {bad.where}",
    ]


def test_a_clean_run_finds_nothing() -> None:
    assert tr.find_nan(root, tensor([3.0, 6.0, 2.0])) is None
    assert tr.trace(root, X).find_nan(np.full(3, 2.0)) is None


def test_infinities_count_unless_they_are_expected() -> None:
    def f(x):
        return tr.where(x > 0, tr.log(x), 0.0)

    x = tensor([0.0, 1.0])
    assert tr.find_nan(f, x).results[0].inf == 1
    assert tr.find_nan(f, x, infinities=False) is None
    assert tr.find_nan(lambda x: tr.log(x) * 0.0, x, infinities=False).path == (1,)


def test_inputs_and_constants_that_are_not_finite_are_named() -> None:
    assert str(tr.find_nan(lambda x: x + 1, tensor([1.0, np.inf]))).startswith("v0 is an input")
    k = tensor([np.nan, 1.0])
    bad = tr.find_nan(lambda x: x * k, tensor([1.0, 1.0]))
    assert "is a constant" in bad.step and bad.results[0].nan == 1 and bad.path == ()


def test_complex_and_integer_operands_have_statistics() -> None:
    bad = tr.find_nan(lambda x, n: x / n, tensor([3 + 4j, 1j]), tensor([0, 2]))
    assert bad.operands[0].largest == 5.0 or bad.operands[1].smallest == 0.0


def test_programs_of_open_size_run_for_these_sizes() -> None:
    program = tr.trace(root, Spec((tr.dim("n"),), F8))
    assert program.find_nan(tensor([0.0])).results[0].shape == (1,)
    assert program.find_nan(tensor(np.zeros(0))) is None


def test_a_step_inside_of_a_called_program_is_found() -> None:
    inner = tr.compile(root)
    bad = tr.trace(lambda x: inner(tr.exp(x)), X).find_nan(np.zeros(3))
    assert bad.path == (1, 1) and "sqrt" in bad.step and bad.where == line_of(root)
    kept = checkpoint(root)
    assert tr.trace(lambda x: kept(tr.exp(x)), X).find_nan(np.zeros(3)).where == line_of(root)


def loop(x):
    def body(c, y):
        return (
            tr.sqrt(c - y),
            c,
        )

    return tr.scan(body, tr.sum(x), x)[0]


def test_the_run_of_a_loop_that_makes_it_is_counted() -> None:
    x = tensor([1.0, 0.5, 3.0])
    for f in (loop, grad(loop)):
        bad = tr.find_nan(f, x)
        assert "sqrt" in bad.step and "in iteration 2 (from 0) of the scan at " in bad.step and len(bad.path) == 2
        assert bad.iterations == (2,)
        assert bad.where.startswith(f"{__file__}:{loop.__code__.co_firstlineno + 3}"[:-1])
    assert tr.find_nan(loop, tensor([1.0, 0.5, 0.1])) is None
    chosen = tr.trace(lambda x: tr.cond(x > 0, tr.sqrt, lambda x: tr.log(x), x), Spec((), F8))
    assert "log" in chosen.find_nan(-1.0).step and chosen.find_nan(4.0) is None


def test_every_loop_around_names_its_iteration() -> None:
    def f(x):
        def row(c, y):
            halved = tr.fori_loop(0, 6, lambda i, t: tr.where(i > 2, tr.sqrt(t - y), t), c)
            return halved, c

        return tr.scan(row, tr.sum(x), x)[0]

    bad = tr.find_nan(f, tensor([0.1, 0.05, 1.3]))
    assert bad.iterations == (2, 3) and len(bad.path) == 3 and "sqrt" in bad.step
    assert bad.step.index("in iteration 3") < bad.step.index("in iteration 2")


def test_a_while_loop_that_never_ends_with_a_nan_stops_where_it_comes_up() -> None:
    def f(x):
        return tr.while_loop(lambda v: ~(v < -1e9), lambda v: tr.sqrt(v - 0.35), x)

    v, count = 4.0, 0
    while v >= 0.35:
        v, count = np.sqrt(v - 0.35), count + 1
    for g in (f, tr.compile(f), lambda x: tr.scan(lambda c, _: (f(c), None), x, length=2)[0]):
        bad = tr.find_nan(g, tensor(4.0))
        assert count in bad.iterations and "sqrt" in bad.step and bad.where == line_of(f)


def test_a_nan_that_an_iteration_does_not_hand_on_is_no_harm() -> None:
    def f(x):
        return tr.scan(lambda c, y: (c + tr.where(y > 0, tr.sqrt(y), 0.0), None), 0.0, x)[0]

    assert tr.find_nan(f, tensor([4.0, -1.0])) is None


def test_a_step_of_a_derivative_names_the_line_of_the_function() -> None:
    def f(x):
        return tr.sum(tr.sqrt(x * 0.0))

    bad = tr.find_nan(grad(f), tensor([1.0, 2.0]))
    assert bad.where == line_of(f) and bad.results[0].inf == 2
    assert tr.compile(grad(f)).find_nan(tensor([1.0, 2.0])).where == line_of(f)


def test_values_must_be_concrete_and_fit() -> None:
    program = tr.trace(root, X)
    with pytest.raises(ProgramError, match="inspected while it runs on concrete arrays, but value 0 is a TracedTensor"):
        tr.compile(lambda x: program.find_nan(x) or x)(tensor([1.0, 2.0, 3.0]))
    with pytest.raises(ProgramError, match=r"float64\[3\], got float64\[2\]"):
        program.find_nan(tensor([1.0, 2.0]))
