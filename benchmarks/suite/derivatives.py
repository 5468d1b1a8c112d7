"""Derivatives of small and medium functions, eager and compiled."""

from __future__ import annotations

from typing import Any

import numpy as np

from suite.calls import chain
from suite.rows import Call, normal, row


def rosenbrock(xp: Any) -> Any:
    return lambda x: xp.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


def perceptron(xp: Any) -> Any:
    """The squared error of a network with one hidden layer."""

    def loss(parameters: Any, x: Any, y: Any) -> Any:
        w, b, v, c = parameters
        return xp.sum((xp.tanh(x @ w + b) @ v + c - y) ** 2)

    return loss


def network(xp: Any, samples: int) -> tuple[Any, Any, Any]:
    """Parameters of a network, its input and output."""
    parameters = tuple(normal(xp, (32, 64), 64, (64, 1), 1, scale=0.2))
    return parameters, *normal(xp, (samples, 32), (samples, 1), seed=1)


def products(xp: Any) -> tuple[Any, Any]:
    """A loss of 20 products, and its argument."""
    h, w = normal(xp, (4, 4), (4, 4), scale=0.5)

    def loss(w: Any) -> Any:
        y = h
        for _ in range(20):
            y = xp.tanh(xp.matmul(y, w))
        return xp.sum(y)

    return loss, w


@row("torch", repeats=5)
def tape(xp: Any) -> Call:
    """50 operations x * b + c of 8 numbers: recorded, and the backward pass"""
    x, b, c = (xp.array_of(a) for a in (np.linspace(0.9, 1.1, 8), np.linspace(0.9, 1.01, 8), np.full(8, 0.1)))
    ones = xp.ones_like(x)
    if xp.library == "torch":
        x, b = x.requires_grad_(), b.requires_grad_()
    else:
        x, b = xp.variable(x), xp.variable(b)
    return lambda: chain(x, b, c).backward(ones)


@row("jax", "torch", "autograd", repeats=5)
def gradient_of_products(xp: Any) -> Call:
    """gradient of 20 steps tanh(x @ w), 4 by 4, eager"""
    loss, w = products(xp)
    if xp.library == "torch":
        leaf = w.requires_grad_()
        return lambda: xp.autograd.grad(loss(leaf), leaf)
    f = xp.grad(loss)
    return lambda: f(w)


@row("jax", repeats=5)
def tangent_of_chain(xp: Any) -> Call:
    """jvp of 50 operations x * b + c of 8 numbers, eager"""
    x, b, c = normal(xp, 8, 8, 8, scale=0.5)
    return lambda: xp.jvp(lambda x: chain(x, b, c), (x,), (c,))


@row("jax", repeats=5)
def hessian_times_vector(xp: Any) -> Call:
    """Hessian times vector of 20 steps tanh(x @ w), 4 by 4, eager"""
    loss, w = products(xp)
    return lambda: xp.hvp(loss, (w,), (w,))


@row("jax")
def gradient_of_network(xp: Any) -> Call:
    """value and gradient of a network 32-64-1, 128 samples, compiled"""
    f, given = xp.compiled(xp.value_and_grad(perceptron(xp))), network(xp, 128)
    return lambda: f(*given)


@row("jax")
def per_sample_gradients(xp: Any) -> Call:
    """gradients of a network 32-64-1 for each of 128 samples, compiled"""
    f, given = xp.compiled(xp.vmap(xp.grad(perceptron(xp)), (None, 0, 0))), network(xp, 128)
    return lambda: f(*given)


@row("jax")
def hessian(xp: Any) -> Call:
    """Hessian of Rosenbrock's function, 100 variables, compiled"""
    f, (x,) = xp.compiled(xp.hessian(rosenbrock(xp))), normal(xp, 100)
    return lambda: f(x)


@row("jax")
def jacobian(xp: Any) -> Call:
    """jacrev of tanh(m @ sin(x)), 64 by 64, compiled"""
    m, x = normal(xp, (64, 64), 64, scale=0.2)
    f = xp.compiled(xp.jacrev(lambda x: xp.tanh(m @ xp.sin(x))))
    return lambda: f(x)


@row("jax", repeats=2)
def gradient_of_svd(xp: Any) -> Call:
    """value and gradient of a function of an SVD, 32 by 16, compiled"""
    (x,) = normal(xp, (32, 16))

    def loss(x: Any) -> Any:
        u, s, vh = xp.linalg.svd(x, full_matrices=False)
        return xp.sum(xp.sin((u * s) @ vh)) + xp.sum(s)

    f = xp.compiled(xp.value_and_grad(loss))
    return lambda: f(x)


@row("jax")
def taylor(xp: Any) -> Call:
    """derivatives of order 4 of element-wise functions, 1000 numbers, compiled"""
    x, *terms = normal(xp, *[1000] * 5)

    def wave(x: Any) -> Any:
        return xp.exp(xp.sin(x)) / (1.0 + x * x) + xp.tanh(x)

    if xp.library == "jax":
        from jax.experimental.jet import jet

        f = xp.compiled(lambda x, terms: jet(wave, (x,), (terms,)))
    else:
        f = xp.compiled(lambda x, terms: xp.taylor(wave, (x,), (terms,)))
    return lambda: f(x, terms)


@row("jax")
def laplacian(xp: Any) -> Call:
    """Laplacian of a network 20-64-64, compiled; JAX: the trace of the Hessian"""
    x, w, v = normal(xp, 20, (20, 64), (64, 64), scale=0.2)

    def f(x: Any) -> Any:
        return xp.sum(xp.tanh(xp.tanh(x @ w) @ v))

    g = xp.compiled((lambda x: xp.trace(xp.hessian(f)(x))) if xp.library == "jax" else xp.laplacian(f))
    return lambda: g(x)
