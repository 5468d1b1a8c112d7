"""Axes and lanes that do not fit: the error names the argument of `vmap` and the leaf."""

from typing import Any

import numpy as np
import pytest

import tenferro_runtime as tr
from tenferro_runtime.batching import shifting
from tenferro_runtime.extension import REGISTRY, RegistryError, Spec, primitive
from tenferro_tensor_core import ArgumentError, AxisError, ShapeError


def total(x: Any, y: Any = 0.0, *, scale: Any = 1.0) -> Any:
    return tr.sum(x["a"] if isinstance(x, dict) else x) * scale + tr.sum(y)


@pytest.mark.parametrize("axis", [2, -3, 5])
@pytest.mark.parametrize("of", [lambda f: f, tr.compile], ids=["eager", "compiled"])
def test_an_axis_that_an_argument_does_not_have(of: Any, axis: int) -> None:
    with pytest.raises(AxisError, match=rf"in_axes of vmap puts the lanes of args\[0\]\['a'\] along axis {axis}"):
        of(tr.vmap(total, in_axes=axis))({"a": tr.ones((3, 2))})


@pytest.mark.parametrize("axis", [2, -3])
def test_an_axis_that_a_result_does_not_have(axis: int) -> None:
    for f in (lambda x: x, lambda x: tr.ones(2)):
        with pytest.raises(AxisError, match=rf"out_axes of vmap puts the lanes along axis {axis} .* has 2 axes"):
            tr.vmap(f, out_axes=axis)(tr.ones((3, 2)))


def test_lanes_that_differ_in_number_are_named() -> None:
    x, y = tr.ones((3, 2)), tr.ones((4, 2))
    with pytest.raises(ShapeError, match=r"args\[0\]\['a'\] has 3 and args\[1\] has 4 along its axis 0"):
        tr.vmap(total)({"a": x}, y)
    with pytest.raises(ShapeError, match=r"args\[0\] has 3 and kwargs\['scale'\] has 4 along its axis 0"):
        tr.vmap(total)(x, scale=y[:, 0])
    with pytest.raises(ShapeError, match=r"axis_size has 5 and args\[0\] has 3"):
        tr.vmap(total, axis_size=5)(x)


def test_an_argument_without_axes_is_named() -> None:
    with pytest.raises(AxisError, match=r"args\[1\] has no axis for the lanes"):
        tr.vmap(total)(tr.ones((3, 2)), 1.0)


@primitive(family="nobody.batched.v1")
def told_batches(x: Spec) -> tuple[Spec, Spec]:
    """An operation of a plug-in with two results."""
    return x, x.with_(shape=x.shape[1:])


REGISTRY.kernel(told_batches, "cpu", lambda ins, outs: lambda x: (x.copy(), x[0].copy()))
WRONG_RULES: dict[str, Any] = {
    "lanes behind": lambda size, values, batched: (tr.moveaxis(values[0], 0, -1), values[0][:, 0]),
    "one result": lambda size, values, batched: values[0],
    "no lanes": lambda size, values, batched: (values[0], values[0][0, 0]),
    "another dtype": lambda size, values, batched: (values[0], tr.astype(values[0][:, 0], tr.float32)),
}


@pytest.mark.parametrize("name", WRONG_RULES)
def test_what_rules_of_plug_ins_return_is_held_to_the_inference(name: str) -> None:
    x = tr.reshape(tr.arange(60.0), (5, 3, 4))
    REGISTRY.batching(told_batches, lambda size, values, batched: (values[0], values[0][:, 0]), replace=True)
    same, first = tr.vmap(told_batches.op())(x)
    assert same.shape == (5, 3, 4) and np.array_equal(first, x[:, 0])
    REGISTRY.batching(told_batches, WRONG_RULES[name], replace=True)
    for call in (tr.vmap(told_batches.op()), tr.compile(tr.vmap(told_batches.op()))):
        with pytest.raises(RegistryError, match=r"batching rule of told_batches returned .* for .* lanes of .*\.py:"):
            call(x)


def test_axes_that_a_primitive_does_not_have_are_refused_when_the_rule_is_made() -> None:
    with pytest.raises(ArgumentError, match=r"told_batches\(x\) has no metadata axis"):
        shifting(told_batches, "axis")
