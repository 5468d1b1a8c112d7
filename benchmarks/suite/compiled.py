"""Calls of compiled functions whose work is small: what reaching the kernels costs, and sizes that are new."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from suite.rows import Call, normal, row


@row("jax", repeats=100)
def tiny(xp: Any) -> Call:
    """x + 1, 8 numbers"""
    f, (x,) = xp.compiled(lambda x: x + 1.0), normal(xp, 8)
    return lambda: f(x)


@row("jax", repeats=20)
def tree(xp: Any) -> Call:
    """a function of a dictionary with two lists of four arrays"""
    arrays = normal(xp, *[8] * 8)
    given = {"w": arrays[:4], "b": arrays[4:]}
    f = xp.compiled(lambda p: {"w": [w * 2.0 for w in p["w"]], "b": [b + 1.0 for b in p["b"]]})
    return lambda: f(given)


@row("jax", "torch", repeats=5)
def gradient_of_chain(xp: Any) -> Call:
    """value and gradient of 20 steps tanh(x @ w), 4 by 4"""
    h, w = normal(xp, (4, 4), (4, 4), scale=0.5)

    def loss(w: Any) -> Any:
        y = h
        for _ in range(20):
            y = xp.tanh(y @ w)
        return y.sum()

    if xp.library == "torch":
        leaf = w.requires_grad_()
        return lambda: ((value := loss(leaf)), *xp.autograd.grad(value, leaf))
    f = xp.compiled(xp.value_and_grad(loss))
    return lambda: f(w)


@row("jax", repeats=5)
def small_solve(xp: Any) -> Call:
    """a solve and a logarithm of a determinant, 8 by 8"""
    a, b = xp.array_of(np.random.default_rng(0).normal(size=(8, 8)) + 8 * np.eye(8)), normal(xp, 8)[0]
    f = xp.compiled(lambda a, b: (xp.linalg.solve(a, b), xp.linalg.slogdet(a)[1]))
    return lambda: f(a, b)


@row(repeats=10)
def new_size(xp: Any) -> Call:
    """one more size of a compiled function: nothing is traced again"""
    f = xp.compiled(lambda x, y: xp.sum(xp.sin(x) * y + xp.exp(-x * x), axis=0))
    inputs = [normal(xp, (n, n + 1), (n, n + 1)) for n in range(2, 400)]
    following = itertools.cycle(inputs)
    return lambda: f(*next(following))
