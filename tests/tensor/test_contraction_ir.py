"""The contraction that the einsum family hands to a backend."""

import pickle

import numpy as np
import pytest

from tenferro_tensor import ComputeDevice, get_backend
from tenferro_tensor.device_model import ContractionGraph, ContractionIR
from tenferro_tensor_core import ArgumentError

F8 = np.dtype("float64")


def test_a_label_lives_until_nothing_needs_it() -> None:
    """Hyper-edges stay while a later operand has them; the last value has the order of the output."""
    ir = ContractionIR(F8, ((0, 1), (0, 1, 2), (0, 2, 3)), (2, 3, 4, 5), (3, 0), ((1, 0), (2, 3)))
    assert ir.values[3:] == ((0, 2), (3, 0))
    assert ir.shape(3) == (2, 4)
    assert ir.flops == 2 * 2 * 3 * 4 + 2 * 2 * 4 * 5
    assert pickle.loads(pickle.dumps(ir)) == ir and hash(pickle.loads(pickle.dumps(ir))) == hash(ir)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ((((0, 2),), (1, 1), (0,), ()), "labels of operands are among 0..1"),
        ((((0, 1),), (1, 1), (0, 0), ()), "each once"),
        ((((0,), (0,)), (2,), (), ()), "leave more than one of 2 operands"),
        ((((0,), (0,)), (2,), (), ((0, 0),)), "takes the value 0 twice"),
        ((((0,), (0,)), (2,), (), ((0, 2),)), "which are not one or two values that are there"),
        ((((0,), (0,)), (2,), (), ((0, 1),), (2,)), "kept values are results of steps before the last"),
    ],
)
def test_what_does_not_fit_is_refused(arguments: tuple[object, ...], text: str) -> None:
    """Each mistake has its own text."""
    with pytest.raises(ArgumentError, match=text):
        ContractionIR(F8, *arguments)  # type: ignore[arg-type]


def test_a_backend_without_an_engine_says_so() -> None:
    """Integers are contracted pair by pair everywhere."""
    ir = ContractionIR(np.dtype("int64"), ((0, 1), (1, 2)), (2, 3, 4), (0, 2), ((0, 1),))
    assert get_backend("cpu").contraction(ir, ComputeDevice("cpu:0")) is None


def test_a_contraction_is_a_graph() -> None:
    """Its outputs are the result and what is kept; without steps one is copied."""
    ir = ContractionIR(F8, ((0, 1), (1, 2), (2, 3)), (2, 3, 4, 5), (3, 0), ((0, 1), (3, 2)), (3,))
    assert ir.graph.steps == (((0, 2), ((0, 1),)), ((3, 0), ((3, 2),)))
    assert ir.graph.outputs == (4, 3)
    assert (ir.graph.values, ir.graph.flops) == (ir.values, ir.flops)
    assert ContractionIR(F8, ((0, 1),), (2, 3), (1, 0), ()).graph.steps == (((1, 0), ((0,),)),)
    assert pickle.loads(pickle.dumps(ir.graph)) == ir.graph


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ((((0, 2),), (1, 1), (), ()), "labels of values are among 0..1"),
        ((((0,),), (2,), (((0,), ()),), (1,)), "value 1 has terms of one or two values before it"),
        ((((0,),), (2,), (((0,), ((1,),)),), (1,)), "value 1 has terms of one or two values before it"),
        ((((0,),), (2,), (((0,), ((0, 0, 0),)),), (1,)), "value 1 has terms of one or two values before it"),
        ((((0,),), (2,), (((0,), ((0,),)),), (0,)), "outputs are results of steps, at least one and each once"),
        ((((0,),), (2,), (((0,), ((0,),)),), (1, 1)), "outputs are results of steps, at least one and each once"),
        ((((0,),), (2,), (((0,), ((0,),)),), ()), r"at least one and each once, got \(\)"),
    ],
)
def test_graphs_that_do_not_fit_are_refused(arguments: tuple[object, ...], text: str) -> None:
    """Each mistake has its own text."""
    with pytest.raises(ArgumentError, match=text):
        ContractionGraph(F8, *arguments)  # type: ignore[arg-type]
