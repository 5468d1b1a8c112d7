"""Every way of running a program gives the same: concrete calls, the reference executor, both renderings, each pass."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tenferro_runtime as tr
from random_programs import Random, random_functions, same
from tenferro_runtime.extension import check_program, render
from tenferro_runtime.ir import interpret
from tenferro_runtime.passes import PASSES, Pass, optimise

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def traced(f: Random) -> tr.Program:
    return check_program(tr.trace(f, *f.inputs))


@given(random_functions())
def test_a_traced_function_computes_what_the_function_computes(f: Random) -> None:
    for got, expected in zip(interpret(traced(f), f.inputs), f(*f.inputs), strict=True):
        same(got, expected)


@given(random_functions())
def test_both_renderings_agree_with_the_reference_executor(f: Random) -> None:
    program = traced(f)
    expected = interpret(program, f.inputs)
    for got, want in zip(render(program, "value")(*f.inputs), expected, strict=True):
        same(got, want)
    for got, want in zip(program.run(*f.inputs), expected, strict=True):
        same(got, want)


@given(random_functions())
def test_the_raw_rendering_returns_arrays_of_the_recorded_specs(f: Random) -> None:
    program = optimise(traced(f))
    raws = render(program, "raw")(*[t.data for t in f.inputs])
    for raw, spec in zip(raws, program.outputs, strict=True):
        assert np.shape(raw) == spec.shape
        assert raw.dtype == spec.dtype


@given(random_functions(), st.permutations(PASSES))
def test_passes_in_any_order_keep_the_results_and_the_law(f: Random, passes: list[Pass]) -> None:
    program = traced(f)
    expected = interpret(program, f.inputs)
    for run in passes:
        after = check_program(run(program))
        if not any(a is not b for a, b in itertools.zip_longest(after.equations, program.equations)):
            assert after is program or after.constants != program.constants, run
        program = after
        for got, want in zip(interpret(program, f.inputs), expected, strict=True):
            same(got, want)
    for got, want in zip(program.run(*f.inputs), expected, strict=True):
        same(got, want)


@given(random_functions())
def test_each_pass_alone_keeps_the_results_and_is_done_after_a_while(f: Random) -> None:
    start = traced(f)
    expected = interpret(start, f.inputs)
    for run in PASSES:
        program = start
        for _ in range(8):
            before, program = program, check_program(run(program))
            for got, want in zip(interpret(program, f.inputs), expected, strict=True):
                same(got, want)
            if program is before:
                break
        assert program is before, f"{run!r} never finds an end"


@pytest.mark.parametrize("exact", [True, False])
@given(f=random_functions())
def test_passes_that_keep_bits_keep_every_bit(exact: bool, f: Random) -> None:
    program = traced(f)
    runtime = tr.Runtime(check=True, deterministic=exact)
    for got, want in zip(interpret(runtime.optimise(program), f.inputs), interpret(program, f.inputs), strict=True):
        if exact:
            np.testing.assert_array_equal(np.asarray(got.data), np.asarray(want.data))
            assert np.array_equal(np.signbit(np.real(got.data)), np.signbit(np.real(want.data)))
        same(got, want)


@given(random_functions())
def test_a_program_called_inside_a_program_gives_the_same(f: Random) -> None:
    inner = tr.compile(f)
    with tr.Runtime(check=True):
        outer = tr.compile(lambda *xs: inner(*xs))
    for got, want in zip(outer(*f.inputs), f(*f.inputs), strict=True):
        same(got, want)
    program = tr.trace(lambda *xs: inner(*xs), *f.inputs)
    assert [eq.op.primitive.name for eq in check_program(program).equations] in ([], ["call"])
    for got, want in zip(program.run(*f.inputs), f(*f.inputs), strict=True):
        same(got, want)
