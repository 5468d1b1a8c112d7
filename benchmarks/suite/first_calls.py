"""First calls: recording, passes and native code of functions that the process has not seen."""

from __future__ import annotations

from typing import Any

from suite.rows import Call, normal, row


def steps(xp: Any, w: Any, count: int) -> Any:
    """A loss of so many different steps of a product and tanh."""

    def loss(x: Any) -> Any:
        for i in range(count):
            x = xp.tanh(xp.einsum("ij,jk->ik", x, w) + 0.1 * i)
        return xp.sum(x)

    return loss


def mixed(xp: Any) -> Any:
    """About 100 equations, element-wise and reductions."""

    def f(x: Any) -> Any:
        y = 0.5 * x
        for i in range(16):
            x, y = xp.sin(x) * y + 0.1 * i, xp.exp(-y * y) + xp.where(x > 0.0, x, y)
        return xp.sum(x * y)

    return f


@row("jax", kind="first")
def record(xp: Any) -> Call:
    """recording of about 100 equations"""
    (x,) = normal(xp, 1000)
    if xp.library == "jax":
        import jax

        return lambda: jax.make_jaxpr(mixed(xp))(x)
    return lambda: xp.trace(mixed(xp), x)


@row("jax", kind="first")
def tiny(xp: Any) -> Call:
    """sin(x) + 1, until its native code is there"""
    (x,) = normal(xp, 8)
    return lambda: (xp.compiled(lambda x: xp.sin(x) + 1.0)(x), xp.settle())


@row("jax", kind="first")
def hundred_equations(xp: Any) -> Call:
    """about 100 equations, until their native code is there"""
    (x,) = normal(xp, 1000)
    return lambda: (xp.compiled(mixed(xp))(x), xp.settle())


@row("jax", kind="first")
def gradient(xp: Any) -> Call:
    """value and gradient of 20 steps of einsum and tanh, until their native code is there"""
    x, w = normal(xp, (4, 4), (4, 4), scale=0.3)
    return lambda: (xp.compiled(xp.value_and_grad(steps(xp, w, 20)))(x), xp.settle())


@row("jax", kind="first")
def scan(xp: Any) -> Call:
    """value and gradient of a scan of 100 steps, until its native code is there"""
    x, w = normal(xp, 8, (8, 8), scale=0.3)

    def loss(x: Any) -> Any:
        return xp.sum(xp.scan(lambda c, _: (xp.tanh(c @ w), None), x, None, 100)[0])

    return lambda: (xp.compiled(xp.value_and_grad(loss))(x), xp.settle())


@row("jax", kind="first")
def eager_gradient(xp: Any) -> Call:
    """an eager gradient whose rules have not been traced"""
    x, w = normal(xp, (4, 4), (4, 4), scale=0.3)
    return lambda: xp.grad(steps(xp, w, 2))(x)


@row("jax", kind="first")
def other_dtype(xp: Any) -> Call:
    """a function that was compiled for float64, for float32"""
    (x,) = normal(xp, 1000)
    narrow = xp.astype(x, xp.float32)

    def call() -> None:
        f = xp.compiled(mixed(xp))
        f(x)
        f(narrow)
        xp.settle()

    return call
