"""Every way of running a program gives the same: concrete calls, the reference executor, both renderings, each pass."""

import numpy as np
import pytest
from hypothesis import given

import tenferro_runtime as tr
from random_programs import Random, random_functions, same
from tenferro_runtime._interpret import interpret
from tenferro_runtime._render import render
from tenferro_runtime._spec_check import check_program
from tenferro_runtime.passes import PASSES, optimise

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


@given(random_functions())
def test_each_pass_keeps_the_results_and_the_law(f: Random) -> None:
    program = traced(f)
    expected = interpret(program, f.inputs)
    for run in PASSES:
        program = check_program(run(program))
        for got, want in zip(interpret(program, f.inputs), expected, strict=True):
            same(got, want)
        for got, want in zip(program.run(*f.inputs), expected, strict=True):
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
