"""Bessel functions, and sums of neighbours: guests with kernels and rules, and one with an expansion instead."""

from tenferro_runtime.extension import ArgumentError, Linear, Slopes, Spec, primitive


@primitive(elementwise=True, domain="floating", family="bessel-ops.bessel_j.v1", extension="bessel")
def bessel_j(x: Spec, *, order: int) -> Spec:
    """Bessel function of the first kind of integer order (DLMF 10.2)."""
    if not isinstance(order, int):
        raise ArgumentError(f"bessel_j takes an integer order, got {order!r}", order=order)
    return x


@primitive(family="bessel-ops.neighbours.v1", extension="bessel")
def neighbours(x: Spec) -> Spec:
    """Sum of each element and the one before it along the last axis, around the end."""
    return x


@primitive(elementwise=True, domain="inexact", family="bessel-ops.spherical_bessel_j0.v1", extension="bessel")
def spherical_bessel_j0(x: Spec) -> Spec:
    """Spherical Bessel function of order 0, sin(x) / x (DLMF 10.49.3)."""
    return x


def register(registry):
    """Entry point: kernels for the CPU, derivative rules, and an expansion."""
    registry.expansion(spherical_bessel_j0, _expand_spherical_bessel_j0)
    registry.kernel(bessel_j, "cpu", _make_bessel_j)
    # DLMF 10.6.1: 2 J_n' = J_(n-1) - J_(n+1)
    registry.rule(
        bessel_j, Slopes(x=lambda x, order: 0.5 * (bessel_j(x, order=order - 1) - bessel_j(x, order=order + 1)))
    )
    registry.kernel(neighbours, "cpu", lambda ins, outs: _neighbours)
    registry.rule(neighbours, Linear(x=lambda g: _backwards(neighbours(_backwards(g)))))


def _expand_spherical_bessel_j0(x):
    import tenferro_runtime as tr

    small = abs(x) < 1e-2  # where three terms of the series are exact
    y = tr.where(small, 1.0, x)
    return tr.where(small, 1 - x * x / 6 * (1 - x * x / 20), tr.sin(y) / y)


def _make_bessel_j(ins, outs, *, order):
    from scipy.special import jv

    return lambda x: jv(order, x)


def _neighbours(x):
    import numpy as np

    return x + np.roll(x, 1, -1)


def _backwards(x):
    from tenferro_runtime.extension import catalog

    return catalog.reverse(x, axes=(x.ndim - 1,))
