"""Fourier transforms, eager."""

from __future__ import annotations

from typing import Any

from suite.rows import Call, normal, row


@row("numpy", "jax", "torch", sizes=(64, 4096, 4099))
def fft(xp: Any, n: int) -> Call:
    """fft of {n} numbers"""
    (x,), f = normal(xp, n), xp.fft.fft
    x = x + 1j * x
    return lambda: f(x)


@row("numpy", "jax", "torch")
def rfft2(xp: Any) -> Call:
    """rfft2, 256 by 256"""
    (x,), f = normal(xp, (256, 256)), xp.fft.rfft2
    return lambda: f(x)


@row("numpy", "jax", "torch")
def stack(xp: Any) -> Call:
    """irfft of 500 rows of 129"""
    (x,), f = normal(xp, (500, 129)), xp.fft.irfft
    x = x + 0j
    return lambda: f(x)


@row("jax")
def gradient(xp: Any) -> Call:
    """gradient through abs(fft2(x)), 64 by 64, compiled"""
    (x,) = normal(xp, (64, 64))
    f = xp.compiled(xp.grad(lambda x: xp.sum(xp.abs(xp.fft.fft2(x)) ** 1.5)))
    return lambda: f(x)
