"""Peaks of memory: bytes that one warm call allocates at once, results included, as `tracemalloc` sees them."""

from __future__ import annotations

from typing import Any

from array_programs import thirty

from suite.contractions import instance
from suite.derivatives import network, perceptron
from suite.rows import Call, normal, row

COUNT = 1_000_000


@row("numpy", kind="bytes")
def eager(xp: Any) -> Call:
    """35 element-wise operations, 1 000 000, eager"""
    f, (x, y) = thirty(xp), normal(xp, COUNT, COUNT)
    return lambda: f(x, y)


@row("numpy", kind="bytes")
def compiled(xp: Any) -> Call:
    """35 element-wise operations, 1 000 000, compiled"""
    f, (x, y) = xp.compiled(thirty(xp)), normal(xp, COUNT, COUNT)
    return lambda: f(x, y)


@row("autograd", kind="bytes")
def gradient_of_network(xp: Any) -> Call:
    """value and gradient of a network 32-64-1, 10 000 samples, eager"""
    f, given = xp.value_and_grad(perceptron(xp)), network(xp, 10_000)
    return lambda: f(*given)


@row(kind="bytes")
def gradient_of_loop(xp: Any) -> Call:
    """gradient of 2000 steps of 4096 numbers within 4 MB, compiled"""
    (x,) = normal(xp, 4096, scale=0.1)

    def loss(x: Any) -> Any:
        step = lambda i, x: 0.999 * x + 0.001 * x * x
        return xp.sum(xp.fori_loop(0, 2000, step, x, memory_budget=2**22) ** 2)

    f = xp.compiled(xp.grad(loss))
    return lambda: f(x)


@row("numpy", kind="bytes")
def network_of_tensors(xp: Any) -> Call:
    """an inner product of matrix product states, 200 tensors"""
    return instance(xp, "str_mps_varying_inner_product_200 opt_flops")
