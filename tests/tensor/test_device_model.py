"""The device model: kernels as typed SSA, and what a program refuses."""

import numpy as np
import pytest

from tenferro_tensor.catalog import arithmetic, reduction
from tenferro_tensor.device_model import (
    Access,
    Apply,
    CompiledSpec,
    KernelIR,
    Literal,
    Operand,
    Over,
    Program,
    ProgramSpec,
    Reduction,
    Variable,
)
from tenferro_tensor_core import ArgumentError, DTypeError, ShapeError

F8 = Operand(np.dtype("float64"))


def test_a_kernel_knows_the_dtypes_of_its_values():
    kernel = KernelIR((F8, F8), (Literal(2.0, np.dtype("float64")), Apply(arithmetic.mul.op(), (0, 2))), (3,))
    assert [d.name for d in kernel.dtypes] == ["float64"] * 4
    assert kernel.written == (F8,) and [op.primitive.name for op in kernel.ops] == ["mul"]


def test_values_are_defined_before_they_are_used():
    with pytest.raises(ArgumentError, match="add names value 2, but values 0 to 1 are defined there"):
        KernelIR((F8, F8), (Apply(arithmetic.add.op(), (0, 2)),), (2,))
    with pytest.raises(ArgumentError, match="the list of outputs names value 5"):
        KernelIR((F8,), (), (5,))
    with pytest.raises(ArgumentError, match="writes nothing"):
        KernelIR((F8,), (), ())


def test_lines_are_element_wise_and_typed():
    with pytest.raises(ArgumentError, match="reduce_sum is not; end the kernel before it"):
        KernelIR((F8,), (Apply(reduction.reduce_sum.op(axes=()), (0,)),), (1,))
    with pytest.raises(DTypeError, match="add needs operands of one dtype"):
        KernelIR((F8, Operand(np.dtype("float32"))), (Apply(arithmetic.add.op(), (0, 1)),), (2,))


def test_reductions_are_checked():
    with pytest.raises(ArgumentError, match="there is no reduction 'mean'"):
        Reduction("mean")
    with pytest.raises(DTypeError, match="max of complex128 is not defined: complex numbers have no order"):
        KernelIR((Operand(np.dtype("complex128")),), (), (0,), reduction=Reduction("max"))
    located = KernelIR((F8,), (), (0,), reduction=Reduction("argmax", Over.TRAILING))
    assert located.written[0].dtype == np.dtype("int64")


def test_literals_tell_signed_zeros_apart_and_nan_is_itself():
    f8 = np.dtype("float64")
    assert Literal(0.0, f8) != Literal(-0.0, f8)
    assert Literal(float("nan"), f8) == Literal(float("nan"), f8)
    assert hash(Literal(float("nan"), f8)) == hash(Literal(float("nan"), f8))


def test_equal_descriptions_are_one_kernel():
    make = lambda access: KernelIR((Operand(np.dtype("float64"), access),), (Apply(arithmetic.neg.op(), (0,)),), (1,))
    assert make(Access.UNIT) == make(Access.UNIT) and hash(make(Access.UNIT)) == hash(make(Access.UNIT))
    assert make(Access.UNIT) != make(Access.STRIDED)


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
