"""Cotangents of small slices of large values, which are added in one buffer, are those of padding and adding."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tenferro_ad as ad
import tenferro_runtime as tr
from tenferro_ad import _parts
from tenferro_tensor import Op
from tenferro_tensor.catalog import pad

Array = np.ndarray[Any, Any]


def fresh(seed: int, shape: tuple[int, ...], dtype: str = "float64") -> Array:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(shape)
    return (x + 1j * rng.standard_normal(shape) if np.dtype(dtype).kind == "c" else x).astype(dtype)


def gradient(f: Callable[[Any], Any], x: Array) -> Array:
    return np.asarray(ad.grad(f)(tr.asarray(x)))


def by_padding(f: Callable[[Any], Any], x: Array) -> Array:
    """The same gradient by a program, whose equations pad each slice."""
    return np.asarray(tr.compile(ad.grad(f))(tr.asarray(x)))


@contextmanager
def counted() -> Iterator[list[int]]:
    """How many sums of parts are made."""
    found, whole = [], _parts.Parts.whole

    def noted(self: _parts.Parts) -> Any:
        found.append(0 if self.memory is None else 1)
        return whole(self)

    with patch.object(_parts.Parts, "whole", noted):
        yield found


starts = st.lists(st.tuples(st.integers(0, 90), st.integers(1, 12), st.integers(1, 3)), min_size=1, max_size=6)


@given(starts, st.sampled_from(["float32", "float64", "complex64", "complex128"]), st.booleans())
def test_they_are_those_of_padding_and_adding(places: list[tuple[int, int, int]], dtype: str, whole: bool) -> None:
    x = fresh(0, (100, 50), dtype)

    def f(x: Any) -> Any:
        total = tr.sum(tr.real(x * x)) if whole else 0.0
        for k, (start, count, step) in enumerate(places):
            part = x[start : start + count : step, k : 50 - k]
            total = total + tr.sum(tr.real(part * part * (k + 1)))
        return total + (tr.sum(tr.real(x * x * x)) if whole else 0.0)

    got, want = gradient(f, x), by_padding(f, x)
    np.testing.assert_allclose(got, want, rtol=2e-6 if dtype in ("float32", "complex64") else 1e-14)
    assert got.dtype == x.dtype


def test_many_slices_are_added_to_one_buffer() -> None:
    def f(x: Any) -> Any:
        y = x * 2.0  # the sum belongs to a node, not to a leaf
        return sum(tr.sum(tr.reshape(y[50 * k : 50 * k + 50], (10, 5)) ** 2) for k in range(200))

    x = fresh(1, (10000,))
    with counted() as sums:
        np.testing.assert_allclose(gradient(f, x), 8 * x, rtol=1e-14)
    assert sums == [1]


def test_a_single_slice_is_padded() -> None:
    x = fresh(2, (8192,))
    with counted() as sums:
        got = gradient(lambda x: tr.sum(x[7:9] ** 2), x)
    assert sums == [0]
    want = np.zeros_like(x)
    want[7:9] = 2 * x[7:9]
    np.testing.assert_array_equal(got, want)


def test_a_gradient_in_use_is_not_written_to() -> None:
    """What one backward pass returns, and what a user holds, stays as it is."""
    x = ad.variable(tr.asarray(fresh(3, (5000,))))
    loss = lambda: sum(tr.sum(x[10 * k : 10 * k + 10]) for k in range(3))
    loss().backward()
    first = x.grad
    kept = np.array(first)
    loss().backward()
    np.testing.assert_array_equal(first, kept)
    np.testing.assert_array_equal(x.grad, 2 * kept)


@pytest.mark.parametrize("order", ["whole first", "slices first", "between"])
def test_other_uses_of_the_value(order: str) -> None:
    def f(x: Any) -> Any:
        uses = [lambda: tr.sum(x[:5] ** 2), lambda: tr.sum(x[3:9] ** 3), lambda: tr.sum(tr.sin(x))]
        uses = {"whole first": uses[::-1], "slices first": uses, "between": [uses[0], uses[2], uses[1]]}[order]
        total = uses[0]()
        for use in uses[1:]:
            total = total + use()
        return total

    x = fresh(4, (4096,))
    want = np.cos(x)
    want[:5] += 2 * x[:5]
    want[3:9] += 3 * x[3:9] ** 2
    np.testing.assert_allclose(gradient(f, x), want, rtol=1e-13)


def test_higher_orders_and_other_transforms() -> None:
    def f(x: Any) -> Any:
        return tr.sum(x[:4] ** 3) * tr.sum(x[2:6] ** 2) + tr.sum(x[100:104] ** 4)

    x, v = fresh(5, (4200,)), fresh(6, (4200,))
    ours = np.asarray(ad.grad(lambda x: tr.sum(ad.grad(f)(x) * v))(tr.asarray(x)))
    pushed = np.asarray(ad.jvp(ad.grad(f), (tr.asarray(x),), (tr.asarray(v),))[1])
    np.testing.assert_allclose(ours, pushed, rtol=1e-12)
    lanes = np.stack([x, v])
    found = np.asarray(tr.vmap(ad.grad(f))(tr.asarray(lanes)))
    np.testing.assert_allclose(found, [gradient(f, x), gradient(f, v)], rtol=1e-13)


def test_the_derivative_of_a_small_slice_pads() -> None:
    """A program has one equation for each slice; it is the compiler that adds them."""
    program = tr.trace(ad.grad(lambda x: tr.sum(x[:4]) + tr.sum(x[4:8] ** 2)), tr.asarray(fresh(7, (4096,))))
    ops: list[Op] = [eq.op for eq in program.equations]
    assert any(op.primitive is pad for op in ops)
