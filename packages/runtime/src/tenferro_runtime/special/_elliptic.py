"""Legendre's elliptic integrals and Jacobi's elliptic functions, by the parameter ``m``, the square of the modulus.

Derivatives by `m` are those of Carlson's integrals on a circle around the argument in which `m` enters, which needs no
quotient by `m` or ``1 - m``; they are accurate at ``m == 0`` and for `m` near 1.
"""

from __future__ import annotations

from functools import partial
from math import pi
from typing import Any, NamedTuple

import numpy as np

from tenferro_runtime.special._declared import partials, several
from tenferro_runtime.special._operands import real_floating
from tenferro_runtime.special._sampling import circled
from tenferro_runtime.special._scipy import host_special
from tenferro_tensor import Array, catalog
from tenferro_tensor.functions import broadcast_arrays
from tenferro_tensor.operands import alike

__all__ = ["EllipjResult", "ellipe", "ellipeinc", "ellipj", "ellipk", "ellipkinc", "ellipkm1"]


class EllipjResult(NamedTuple):
    """Jacobi's elliptic functions and the amplitude."""

    sn: Array
    cn: Array
    dn: Array
    ph: Array


def ellipk(m: Any, /) -> Array:
    """Complete elliptic integral of the first kind; infinite at ``m == 1`` and NaN beyond.

    Definition: DLMF 19.2.

    Args:
        m: parameter, the square of the modulus, a real array.

    Returns:
        Values of the shape of `m`, in its floating-point dtype (float64 for integers).

    >>> tr.special.ellipk(tr.asarray([0.0, 0.5, 1.0]))
    Tensor([1.57079633, 1.85407468,        inf])
    """
    return ellipk_(m)  # type: ignore[no-any-return]


def ellipkm1(p: Any, /) -> Array:
    """Complete elliptic integral of the first kind of ``1 - p``, accurate for small `p`.

    Args:
        p: complementary parameter ``1 - m``, a real array.

    Returns:
        Values of the shape of `p`, in its floating-point dtype (float64 for integers).

    >>> tr.special.ellipkm1(tr.asarray([1e-20, 0.5]))
    Tensor([24.41214529,  1.85407468])
    """
    return ellipkm1_(p)  # type: ignore[no-any-return]


def ellipe(m: Any, /) -> Array:
    """Complete elliptic integral of the second kind; NaN beyond ``m == 1``.

    Definition: DLMF 19.2.

    Args:
        m: parameter, the square of the modulus, a real array.

    Returns:
        Values of the shape of `m`, in its floating-point dtype (float64 for integers).

    >>> tr.special.ellipe(tr.asarray([0.0, 0.5, 1.0]))
    Tensor([1.57079633, 1.35064388, 1.        ])
    """
    return ellipe_(m)  # type: ignore[no-any-return]


def ellipkinc(phi: Any, m: Any, /) -> Array:
    """Incomplete elliptic integral of the first kind, of the amplitude `phi`.

    Definition: DLMF 19.2.

    Args:
        phi: amplitude in radians, a real array.
        m: parameter, the square of the modulus, a real array.

    Returns:
        Values of the broadcast shape, in the promoted floating-point dtype (float64 for integers).

    >>> tr.special.ellipkinc(tr.asarray([0.5, 2.0]), 0.5)
    Tensor([0.51046714, 2.44438264])
    """
    return ellipkinc_(phi, m)  # type: ignore[no-any-return]


def ellipeinc(phi: Any, m: Any, /) -> Array:
    """Incomplete elliptic integral of the second kind, of the amplitude `phi`.

    Definition: DLMF 19.2.

    Args:
        phi: amplitude in radians, a real array.
        m: parameter, the square of the modulus, a real array.

    Returns:
        Values of the broadcast shape, in the promoted floating-point dtype (float64 for integers).

    >>> tr.special.ellipeinc(tr.asarray([0.5, 2.0]), 0.5)
    Tensor([0.48991096, 1.6628951 ])
    """
    return ellipeinc_(phi, m)  # type: ignore[no-any-return]


def ellipj(u: Any, m: Any, /) -> EllipjResult:
    """Jacobi elliptic functions sn, cn and dn, and the amplitude.

    Definition: DLMF 22.2.

    Args:
        u: real array.
        m: parameter from 0 to 1, the square of the modulus.

    Returns:
        `EllipjResult` of four arrays of the broadcast shape: sn, cn, dn and the amplitude.

    >>> tr.special.ellipj(tr.asarray(0.5), 0.5).sn
    Tensor(0.47075047)
    """
    u, m = (real_floating("ellipj", x) for x in alike(u, m))
    return EllipjResult(*ellipj_(*broadcast_arrays(u, m)))


def _first(sine: Any, cosine2: Any, q: Any, order: int) -> Any:
    """The derivative by ``q = 1 - m sin(phi)**2`` of the first integral, for amplitudes up to a right angle."""
    # The first one is another of Carlson's integrals.
    return sine * circled(lambda z: host_special().elliprd(cosine2, 1.0, z), q, 0.25 * q, order - 1) * (-1 / 6)


def _second(sine: Any, cosine2: Any, q: Any, order: int) -> Any:
    """The same of the integral of ``sin**2 / sqrt(1 - m sin**2)``, which is minus twice the slope of the second one."""
    return sine**3 / 3 * circled(lambda z: host_special().elliprd(cosine2, z, 1.0), q, 0.25 * q, order)


def _complete(name: str, orders: tuple[int], x: Any) -> Any:
    order = orders[0]
    if order == 0:
        return getattr(host_special(), name)(x)
    p = x if name == "ellipkm1" else 1.0 - x
    if name == "ellipe":
        value, sign = _second(1.0, 0.0, p, order - 1), -0.5 * (-1) ** (order - 1)
    else:
        value, sign = _first(1.0, 0.0, p, order), 1.0 if name == "ellipkm1" else (-1.0) ** order
    pole = np.inf * (-1) ** (order if name != "ellipe" else order - 1)
    return sign * np.where(p == 0, pole, value)


def _incomplete(name: str, orders: tuple[int, int], phi: Any, m: Any) -> Any:
    order = orders[1]
    if order == 0:
        return getattr(host_special(), name)(phi, m)
    turns = np.round(phi / np.pi)
    sine, cosine = np.sin(phi - turns * np.pi), np.cos(phi - turns * np.pi)
    q = cosine**2 + (1.0 - m) * sine**2
    if name == "ellipkinc":
        value = (-(sine**2)) ** order * _first(sine, cosine**2, q, order)
        whole = "ellipk"
    else:
        value = -0.5 * (-(sine**2)) ** (order - 1) * _second(sine, cosine**2, q, order - 1)
        whole = "ellipe"
    value = np.where(sine == 0, 0.0, value)
    if not turns.any():
        return value
    return value + np.where(turns == 0, 0.0, 2 * turns * _complete(whole, (order,), m))


def _integrand(power: float, phi: Any, m: Any, orders: tuple[int, int]) -> Any:
    """The derivative by `m` of ``(1 - m sin(phi)**2)**power``."""
    order, factor = orders[1], 1.0
    for i in range(order):
        factor *= i - power
    sine2 = catalog.sin(phi) ** 2
    value = catalog.pow(1.0 - m * sine2, power - order)
    return value if order == 0 else factor * sine2**order * value


def _ellipj_jvp(primals: Any, tangents: Any, outs: Any) -> Any:
    (_, m), (t, r), (sn, cn, dn, ph) = primals, tangents, outs
    by_argument = cn * dn, -sn * dn, -m * sn * cn, dn
    turned = -dn * ellipkinc_(ph, m, orders=(0, 1))  # ellipkinc(ph, m) is constant
    by_parameter = cn * turned, -sn * turned, -(sn * sn + 2.0 * m * sn * cn * turned) / (2.0 * dn), turned
    if r is None:
        return tuple([t * slope for slope in by_argument])
    if t is None:
        return tuple([r * slope for slope in by_parameter])
    return tuple([t * a + r * b for a, b in zip(by_argument, by_parameter, strict=True)])


ellipk_ = partials("ellipk", "m", "Complete elliptic integral of the first kind.", partial(_complete, "ellipk"))
ellipkm1_ = partials(
    "ellipkm1",
    "p",
    "Complete elliptic integral of the first kind of the parameter ``1 - p``.",
    partial(_complete, "ellipkm1"),
)
ellipe_ = partials(
    "ellipe",
    "m",
    "Complete elliptic integral of the second kind.",
    partial(_complete, "ellipe"),
    library=lambda special, orders: None if any(orders) else lambda m: special.ellipeinc(0.5 * pi, m),
)
ellipkinc_ = partials(
    "ellipkinc",
    "phi m",
    "Incomplete elliptic integral of the first kind.",
    partial(_incomplete, "ellipkinc"),
    phi=lambda phi, m, orders: _integrand(-0.5, phi, m, orders),
)
ellipeinc_ = partials(
    "ellipeinc",
    "phi m",
    "Incomplete elliptic integral of the second kind.",
    partial(_incomplete, "ellipeinc"),
    phi=lambda phi, m, orders: _integrand(0.5, phi, m, orders),
)
ellipj_ = several(
    "ellipj",
    "u m",
    "Jacobi's elliptic functions sn, cn, dn and the amplitude; both operands have one shape and type.",
    4,
    _ellipj_jvp,
    on_accelerators=True,
)
