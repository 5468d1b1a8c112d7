"""The device model: what a program checks before it runs."""

import numpy as np
import pytest

from hand_written import of_op
from tenferro_tensor.catalog import arithmetic
from tenferro_tensor.device_model import CompiledSpec, Program, ProgramSpec, Variable
from tenferro_tensor.loop_ir import Literal
from tenferro_tensor_core import ArgumentError, ShapeError


def test_literals_tell_signed_zeros_apart_and_nan_is_itself():
    f8 = np.dtype("float64")
    assert Literal(0.0, f8) != Literal(-0.0, f8)
    assert Literal(float("nan"), f8) == Literal(float("nan"), f8)
    assert hash(Literal(float("nan"), f8)) == hash(Literal(float("nan"), f8))


def test_a_program_checks_numbers_and_bounds_before_it_runs():
    spec = ProgramSpec("", "saxpy", (Variable("n", 1, 10),), 2, (0,), (1,))
    ran = []

    class Recording(Program):
        compiled = CompiledSpec(spec, b"", "key")

        def execute(self, buffers, values):
            ran.append(tuple(values))

    program = Recording()
    program([None, None], [10])
    with pytest.raises(ShapeError, match="compiled for n from 1 to 10, got 11"):
        program([None, None], [11])
    with pytest.raises(ArgumentError, match=r"saxpy takes 2 buffer\(s\) and 1 value\(s\) \(n\), got 1 and 1"):
        program([None], [3])
    assert ran == [(10,)]
    with pytest.raises(ArgumentError, match="needs 0 <= min <= max"):
        Variable("n", 5, 4)


def test_the_spec_of_a_function_names_its_sizes_and_buffers():
    function = of_op(arithmetic.add.op(), "float64", "float64")
    spec = ProgramSpec.of(function, "sum", "text")
    assert spec.variables == (Variable("n"),) and (spec.buffers, spec.reads, spec.writes) == (3, (0, 1), (2,))
    assert spec.kernel is function and spec.identity == "text"
    x = np.zeros(3)
    spec.check([x, x, x], [3])
    with pytest.raises(ArgumentError, match="buffer 1 of sum is an array of float64, got int64"):
        spec.check([x, x.astype(int), x], [3])
    with pytest.raises(
        ShapeError, match=r"buffer 0 of sum is a contiguous array of shape \(4,\) for {'n': 4}, got shape"
    ):
        spec.check([x, x, x], [4])
