"""Bessel functions of the first kind, and the running mean of a signal: two guests with kernels and rules."""

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


def register(registry):
    """Entry point: kernels for the CPU, and derivative rules."""
    registry.kernel(bessel_j, "cpu", _make_bessel_j)
    # DLMF 10.6.1: 2 J_n' = J_(n-1) - J_(n+1)
    registry.rule(
        bessel_j, Slopes(x=lambda x, order: 0.5 * (bessel_j(x, order=order - 1) - bessel_j(x, order=order + 1)))
    )
    registry.kernel(neighbours, "cpu", lambda ins, outs: _neighbours)
    registry.rule(neighbours, Linear(x=lambda g: _backwards(neighbours(_backwards(g)))))


def _make_bessel_j(ins, outs, *, order):
    from scipy.special import jv

    return lambda x: jv(order, x)


def _neighbours(x):
    import numpy as np

    return x + np.roll(x, 1, -1)


def _backwards(x):
    from tenferro_runtime.extension import catalog

    return catalog.reverse(x, axes=(x.ndim - 1,))
