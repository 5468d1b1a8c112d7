"""An operation that is registered by its expansion alone works in every way, and fuses with the steps around it."""

import logging
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tenferro_runtime as tr
from tenferro_ad import check_grads, check_primitive, grad, jvp, variable
from tenferro_runtime.extension import REGISTRY, Linear, Spec, check_program, primitive
from tenferro_runtime.ir import sizes_of
from tenferro_runtime.lowering import lower
from tenferro_runtime.tracing.expanding import expand, expansion_of
from tenferro_tensor import HOST
from tenferro_tensor.loop_interpreter import interpret
from tenferro_tensor.loop_ir import verify
from tenferro_xla import XlaExecutor

X = tr.asarray(np.linspace(-1.5, 2.0, 12).reshape(3, 4))
Y = tr.asarray(np.linspace(0.5, 1.5, 12).reshape(3, 4))


@primitive(elementwise=True, domain="inexact", family="tests.bump.v1")
def bump(x: Spec, y: Spec, *, power: int) -> Spec:
    """A bump of two operands: smooth, and holomorphic in neither."""
    return x


@primitive(family="tests.centred.v1")
def centred(x: Spec, *, axis: int) -> tuple[Spec, Spec]:
    """Sum along an axis, and what is left without an eighth of it."""
    return x.with_(shape=x.shape[:axis] + x.shape[axis + 1 :]), x


@primitive(family="tests.recursion.v1")
def recursion(x: Spec, *, order: int) -> Spec:
    """Legendre polynomial, by its expansion at lower orders."""
    return x


@primitive(family="tests.filtered.v1")
def filtered(x: Spec, *, decay: float) -> Spec:
    """Running mean along the first axis, a loop."""
    return x


def expanded_bump(x: Any, y: Any, power: int) -> Any:
    return tr.exp(-x * x) * y**power + tr.real(x * tr.conj(y)).astype(x.dtype)


def expanded_centred(x: Any, axis: int) -> Any:
    total = tr.sum(x, axis=axis)
    return total, x - tr.expand_dims(total, axis=axis) / 8


def expanded_recursion(x: Any, order: int) -> Any:
    if order < 2:
        return x if order else tr.ones_like(x)
    n = order - 1
    return ((2 * n + 1) * x * recursion(x, order=n) - n * recursion(x, order=n - 1)) / (n + 1)


def expanded_filtered(x: Any, decay: float) -> Any:
    def step(carry: Any, row: Any) -> Any:
        carry = decay * carry + (1 - decay) * row
        return carry, carry

    return tr.scan(step, tr.zeros_like(x[0]), x)[1]


REGISTRY.expansion(bump, expanded_bump)
REGISTRY.expansion(centred, expanded_centred)
REGISTRY.expansion(recursion, expanded_recursion)
REGISTRY.expansion(filtered, expanded_filtered)


def of_bump(x: Any, y: Any) -> Any:
    return tr.sin(bump(x * 2, y + 1, power=2)) - x


def of_centred(x: Any, y: Any) -> Any:
    total, rest = centred(x * y, axis=1)
    return tr.tanh(rest) * tr.expand_dims(total, axis=1)


def of_recursion(x: Any, y: Any) -> Any:
    return recursion(x, order=5) * y


def of_filtered(x: Any, y: Any) -> Any:
    return filtered(x * y, decay=0.8) + y


def in_scan(x: Any, y: Any) -> Any:
    def step(carry: Any, row: Any) -> Any:
        carry = tr.tanh(bump(carry, row + 1, power=2)) / 2
        return carry, carry

    return tr.scan(step, x[0], y)[1]


def in_cond(x: Any, y: Any) -> Any:
    return tr.cond(tr.sum(y) > 0, lambda x, y: bump(x, y, power=3), lambda x, y: x + y, x, y)


FUNCTIONS = {f.__name__: f for f in (of_bump, of_centred, of_recursion, of_filtered, in_scan, in_cond)}


def close(a: Any, b: Any, rtol: float = 1e-12) -> None:
    np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=rtol, atol=rtol)


def names(program: tr.Program) -> list[str]:
    return [eq.op.primitive.name for eq in program.equations]


@pytest.mark.parametrize("f", FUNCTIONS.values(), ids=FUNCTIONS)
def test_all_ways_to_run_agree(f: Callable[..., Any]) -> None:
    want = f(X, Y)
    close(f(variable(X), variable(Y)).detach(), want)
    close(tr.trace(f, X, Y).run(X, Y)[0], want)
    close(tr.compile(f)(X, Y), want)
    close(XlaExecutor().run(tr.trace(f, X, Y), X, Y)[0], want)
    total = lambda x, y: tr.sum(f(x, y) ** 2)
    gradient = grad(total)(X, Y)
    close(tr.compile(grad(total))(X, Y), gradient)
    close(grad(tr.compile(total))(X, Y), gradient)


def test_an_expansion_may_use_its_primitive_for_other_metadata() -> None:
    want = np.polynomial.legendre.Legendre.basis(5)(X.numpy())
    close(recursion(X, order=5), want)
    close(tr.compile(lambda x: recursion(x, order=5))(X), want)
    assert names(expand(tr.trace(lambda x: recursion(x, order=5), X))).count("recursion") == 0


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("f", [of_bump, of_centred, of_filtered, in_scan], ids=lambda f: f.__name__)
def test_derivatives_of_the_expansion_are_right(f: Callable[..., Any], dtype: str) -> None:
    x, y = X.astype(dtype) / 2, Y.astype(dtype)
    if np.dtype(dtype).kind == "c":
        x, y = x + 0.3j, y - 0.2j
    loose = {"rtol": 5e-2, "atol": 5e-2} if np.dtype(dtype).itemsize // (1 + (np.dtype(dtype).kind == "c")) == 4 else {}
    check_grads(f, (x.astype(dtype), y.astype(dtype)), **loose)  # type: ignore[arg-type]


def test_second_derivatives_eager_and_compiled() -> None:
    check_grads(of_bump, (X, Y), order=2)
    check_grads(tr.compile(of_centred), (X, Y), order=2)
    _, slope = jvp(lambda x: tr.compile(of_bump)(x, Y), (X,), (Y,))
    close(slope, jvp(lambda x: of_bump(x, Y), (X,), (Y,))[1])


def test_an_expansion_passes_the_checks_of_primitives() -> None:
    run = XlaExecutor().run
    for op, operands in ((bump.op(power=2), (X, Y)), (centred.op(axis=1), (X,)), (filtered.op(decay=0.5), (X,))):
        report = check_primitive(op, *operands, executor=run)
        assert {f.check for f in report.findings if f.outcome == "left out"} == {"pruning", "costs"}


@settings(max_examples=25, deadline=None)
@given(
    shape=st.lists(st.integers(0, 4), min_size=0, max_size=3),
    narrow=st.sampled_from(["both", "left", "right", "number", "number first"]),
    dtype=st.sampled_from(["float32", "float64", "complex128"]),
)
def test_element_wise_operands_broadcast_and_promote(shape: list[int], narrow: str, dtype: str) -> None:
    x = np.full(shape, 0.5, dtype) + np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype) / 8
    small = x[..., :1] if shape else x
    a, b = {"both": (x, x), "left": (small, x), "right": (x, small), "number": (x, 1.5), "number first": (1.5, x)}[
        narrow
    ]
    wide_a, wide_b = (np.broadcast_to(np.asarray(v, dtype), x.shape) for v in (a, b))
    want = np.exp(-wide_a * wide_a) * wide_b**2 + (wide_a * wide_b.conj()).real
    a, b = (v if isinstance(v, float) else tr.asarray(v) for v in (a, b))
    of_arrays = tr.compile(lambda z: bump(a, z, power=2) if narrow == "number first" else bump(z, b, power=2))
    compiled = tr.compile(lambda x, y: bump(x, y, power=2))
    for got in (bump(a, b, power=2), compiled(a, b), of_arrays(b if narrow == "number first" else a)):
        assert got.dtype == np.dtype(dtype) and got.shape == x.shape
        close(got, want, 1e-5 if dtype == "float32" else 1e-12)


SUMS = tr.compile(lambda x, axis: centred(x * 2, axis=axis), static_argnames="axis")


def test_a_number_as_operand_needs_no_trace_of_its_own_size() -> None:
    slope = grad(lambda x: tr.sum(bump(x, 0.4, power=2)))
    compiled = tr.compile(slope)
    for x in (X[0], X[:, 0]):
        close(compiled(x), slope(x))
    assert compiled.cache_info().traces == 1


@settings(max_examples=25, deadline=None)
@given(shape=st.tuples(st.integers(0, 5), st.integers(0, 5)), axis=st.integers(0, 1))
def test_several_results_at_any_sizes(shape: tuple[int, int], axis: int) -> None:
    x = np.arange(float(np.prod(shape))).reshape(shape)
    total = x.sum(axis)
    for found in (centred(x, axis=axis), SUMS(x / 2, axis=axis)):
        close(found[0], total)
        close(found[1], x - np.expand_dims(total, axis) / 8)


def test_it_fuses_and_each_step_names_the_line_of_the_operation() -> None:
    f = tr.compile(of_bump)
    f(X, Y)
    explained = f.explain(X, Y)
    assert "one native function" in str(explained)
    at = f"{of_bump.__code__.co_filename}:{of_bump.__code__.co_firstlineno + 1}"
    assert {step.where for step in explained.steps} == {at}
    program = expand(tr.trace(of_bump, X, Y))
    assert len(program.equations) > 8 and {eq.where for eq in program.equations} == {at}


def test_the_recorded_program_keeps_the_operation(tmp_path: Any) -> None:
    f = tr.compile(of_bump)
    program = f.program(X, Y)
    assert "bump" in names(program) and "exp" not in names(program)
    program.save(tmp_path / "bump")
    loaded = tr.load(tmp_path / "bump")
    assert "bump" in names(loaded)
    close(loaded.run(X, Y)[0], of_bump(X, Y))
    loop = tr.trace(in_scan, X, Y)
    assert "bump" in str(loop)


def test_the_pass_keeps_the_law_of_programs() -> None:
    n, m = tr.dim("n"), tr.dim("m")
    spec = Spec((n, m), tr.float64)
    for f in (of_bump, of_centred, of_filtered):
        program = tr.trace(f, spec, spec)
        check_program(expand(program))
        once = expand(program)
        assert (once is program) == (f is of_filtered)  # which asks whether there is a first row
        assert expand(once) is once


def test_one_trace_serves_all_sizes() -> None:
    traces = []

    @primitive(family="tests.scaled.v1")
    def scaled(x: Spec) -> Spec:
        """Divided by the number of rows."""
        return x

    def expansion(x: Any) -> Any:
        traces.append(x.shape)
        return x / x.shape[0]

    with REGISTRY.expansion(scaled, expansion):
        f = tr.compile(lambda x: scaled(x) + 1)
        for n in (2, 3, 7, 11):
            close(f(np.ones((n, 2))), np.full((n, 2), 1 / n + 1))
        assert len(traces) == 1


@primitive(family="tests.parity.v1")
def parity(x: Spec) -> Spec:
    """Asks for the number of rows."""
    return x


def expanded_parity(x: Any) -> Any:
    return -x if x.shape[0] > 4 else x + x


REGISTRY.expansion(parity, expanded_parity)


def test_questions_about_open_sizes_are_those_of_the_compiled_function() -> None:
    f = tr.compile(lambda x: parity(x) * 1.0)
    for n in (3, 5, 4, 9):
        close(f(np.ones(n)), np.full(n, -1.0 if n > 4 else 2.0))
    assert f.cache_info().size == 2
    assert "parity" not in str(expand(f.program(np.ones(9))))


def test_questions_inside_of_loops_are_too() -> None:
    f = tr.compile(lambda x: tr.scan(lambda c, row: (parity(c) / 2 + row, None), x[0], x)[0])
    for n in (3, 5, 9):
        x = np.arange(2.0 * n).reshape(2, n)
        want = x[0]
        for row in x:
            want = (-want if n > 4 else 2 * want) / 2 + row
        close(f(x), want)
        assert "parity" not in str(expand(f.program(x)))


def test_a_traced_program_is_not_narrowed_to_what_expansions_ask() -> None:
    spec = Spec((tr.dim("n"),), tr.float64)
    program = tr.trace(lambda x: parity(x) + 1, spec)
    assert program.guards == () and names(expand(program)) == ["parity", "add"]
    for n in (3, 9):
        close(program.run(np.ones(n))[0], np.full(n, 0.0 if n > 4 else 3.0))
    guarded = tr.trace(lambda x: parity(x) if x.shape[0] > 8 else x, spec, examples={"n": 9})
    assert names(expand(guarded)) == ["neg"]


def doubled(ins: Any, outs: Any, **params: Any) -> Callable[..., Any]:
    return lambda x: 2 * x


def test_what_stays_asks_for_nothing() -> None:
    with (
        REGISTRY.kernel(parity, "cpu", lambda ins, outs: lambda x: x * 8),
        REGISTRY.expansion(parity, expanded_parity, keep=True, replace=True),
    ):
        f = tr.compile(lambda x: parity(x) * 1.0)
        for n in (3, 9):
            close(f(np.ones(n)), np.full(n, 8.0))
        assert f.cache_info().size == 1


@primitive(family="tests.chosen.v1")
def chosen(x: Spec) -> Spec:
    """Twice by the kernel, thrice by the expansion."""
    return x


def test_a_kernel_serves_calls_and_the_expansion_programs() -> None:
    f, exact = tr.compile(lambda x: chosen(x) + 0.0), tr.compile(lambda x: chosen(x) + 0.0, deterministic=True)
    with REGISTRY.expansion(chosen, lambda x: x * 3):
        assert [float(g(1.0)) for g in (chosen, f, exact)] == [3, 3, 3]
        with REGISTRY.kernel(chosen, "cpu", doubled):
            assert [float(g(1.0)) for g in (chosen, f, exact)] == [2, 3, 2]
        assert [float(g(1.0)) for g in (chosen, f, exact)] == [3, 3, 3]
        with (
            REGISTRY.kernel(chosen, "cpu", doubled),
            REGISTRY.expansion(chosen, lambda x: x * 3, keep=True, replace=True),
        ):
            assert [float(g(1.0)) for g in (chosen, f, exact)] == [2, 2, 2]
        with (
            REGISTRY.kernel(chosen, "paper", doubled),
            REGISTRY.expansion(chosen, lambda x: x * 4, keep=True, replace=True),
        ):
            assert [float(g(1.0)) for g in (chosen, f, exact)] == [4, 4, 4]
        with (
            REGISTRY.kernel(chosen, "cpu", doubled),
            REGISTRY.kernel(chosen, "cpu", lambda ins, outs: lambda x: x * 7, replace=True),
        ):
            assert [float(g(1.0)) for g in (chosen, f, exact)] == [7, 7, 7]


def test_a_rule_and_a_lowering_of_its_own_win() -> None:
    f = lambda x: tr.sum(chosen(x * x))
    x = tr.asarray([1.0, 2.0])
    with REGISTRY.expansion(chosen, lambda x: x * 3):
        compiled = tr.compile(f)
        assert grad(f)(x).tolist() == grad(compiled)(x).tolist() == tr.compile(grad(f))(x).tolist() == [6, 12]
        program = tr.trace(chosen, x)
        assert XlaExecutor().run(program, x)[0].tolist() == [3, 6]
        with (
            REGISTRY.rule(chosen, Linear(x=lambda g: g * 10)),
            REGISTRY.lowering(chosen, lambda e, operands, outs: operands[0]),
        ):
            assert grad(f)(x).tolist() == grad(tr.compile(f))(x).tolist() == [20, 40]
            assert XlaExecutor().run(program, x)[0].tolist() == [1, 2]
        assert grad(f)(x).tolist() == [6, 12]


def test_traces_are_kept_in_a_bounded_cache() -> None:
    spec = Spec((5,), tr.float64)
    first = expansion_of(recursion.op(order=3), (spec,))
    assert expansion_of(recursion.op(order=3), (spec,)) is first
    (stats,) = [row for row in tr.Runtime().stats() if row["owner"] == "tenferro_runtime: traced expansions"]
    assert 0 < stats["size"] <= stats["bound"]
    tr.Runtime().clear()
    assert expansion_of(recursion.op(order=3), (spec,)) is not first


def test_scopes_around_the_first_use_do_not_enter_the_expansion() -> None:
    tr.Runtime().clear()
    with tr.compute_device("cpu:0"), tr.Runtime(deterministic=True):
        close(filtered(X, decay=0.25), expanded_filtered(X, 0.25))
    program = expansion_of(filtered.op(decay=0.25), (X.spec,))
    assert program is not None and "transfer" not in str(program)
    assert program.outputs[0].place is HOST


def test_a_message_of_replacement_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with REGISTRY.expansion(chosen, lambda x: x), caplog.at_level(logging.INFO, "tenferro"):
        with REGISTRY.expansion(chosen, lambda x: -x, replace=True) as made:
            assert made in REGISTRY.replacements()
        assert "the expansion of chosen" in caplog.text


@pytest.mark.parametrize("f", [of_bump, of_centred, of_filtered, in_scan, in_cond], ids=lambda f: f.__name__)
def test_loop_nests_hold_the_expansion_instead_of_calls_of_kernels(f: Callable[..., Any]) -> None:
    program = tr.compile(f).program(X, Y)
    nests = lower(program)
    assert "bump" not in str(nests) and "centred" not in str(nests) and "filtered" not in str(nests)
    verify(nests)
    sizes: Any = sizes_of(program, [X.spec, Y.spec])
    (got,) = interpret(nests, [X.numpy(), Y.numpy()], sizes)
    close(got, f(X, Y))
