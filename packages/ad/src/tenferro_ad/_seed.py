"""Checks of the cotangents and tangents that users pass; a real number's cotangent defaults to 1."""

from __future__ import annotations

from typing import Any

from tenferro_ad._zeros import ones_like
from tenferro_tensor import Array, Primitive, Spec
from tenferro_tensor.ownership import owned
from tenferro_tensor_core import GradientError


def seed_of(value: Any, given: Any, what: str) -> Any:
    """The cotangent of an output.

    Args:
        value: the output.
        given: the user's cotangent, or ``None``.
        what: the calling function, for errors.
    """
    spec = value.spec
    if given is not None:
        return fitted(given, spec, f"{what}: the cotangent")
    if spec.shape != () or spec.cplx:
        kind = "complex" if spec.cplx else "an array"
        # grad takes no cotangent, so do not advise to pass one
        advice = (
            "reduce the value to a real number first, use vjp or jacrev, or holomorphic=True for a complex derivative"
            if what == "grad"
            else "pass one of the same shape and dtype, or reduce the value to a real number first"
        )
        raise GradientError(
            f"{what} of {spec!r} needs a cotangent: only a single real number has a gradient by itself, and this is "
            f"{kind}; {advice}",
            spec=repr(spec),
        )
    return ones_like(value)


def fitted(given: Any, spec: Spec, what: str) -> Any:
    """A user's tangent or cotangent as a value of exactly the given spec."""
    if not isinstance(given, Array):
        try:
            given = Primitive.adopt(given, dtype=spec.dtype, device=spec.place.device, copy=True)
        except Exception as error:
            raise GradientError(f"{what} must be an array like {spec!r}, got {given!r}") from error
    if given.spec is not spec:
        raise GradientError(
            f"{what} must be {spec!r}, like the value that it belongs to, but is {given.spec!r}; "
            "pass one of the same shape and dtype",
            expected=repr(spec),
            given=repr(given.spec),
        )
    return owned(given)._alias()  # gradients may be the cotangent itself
