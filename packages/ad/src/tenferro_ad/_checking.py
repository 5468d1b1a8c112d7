"""`check_grads`: compares forward mode with central differences, and reverse mode with forward mode."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from tenferro_ad._forward import jvp
from tenferro_ad._reverse import vjp
from tenferro_ad._trees import as_value
from tenferro_runtime.trees import flatten, unflatten
from tenferro_tensor import tensor
from tenferro_tensor_core import ArgumentError, GradientError, computing_type, finfo, real_of

_STEP: Final = {4: 2e-3, 8: 6e-6}
"""Step of the central differences, by bytes per real number: about the cube root of the rounding error."""
_RTOL: Final = {4: 2e-2, 8: 1e-6}
_ATOL: Final = {4: 2e-2, 8: 1e-6}
_NARROW_UNITS: Final = 24
"""Default `rtol` and `atol` for float16 and bfloat16, in rounding units of the dtype."""
MODES: Final = ("fwd", "rev")

Floats = np.ndarray[Any, Any]


def check_grads(
    f: Callable[..., Any],
    args: Sequence[Any],
    *,
    order: int = 1,
    modes: Sequence[str] = MODES,
    rtol: float | None = None,
    atol: float | None = None,
    step: float | None = None,
    seed: int = 0,
) -> None:
    """Check the derivatives of a function in random directions.

    Forward mode is compared with central differences. Reverse mode is checked by the pairing
    Re<u, J t> = Re<J* u, t>, with J t from forward mode if `modes` includes it, else from central differences. Higher
    orders check the derivatives of the derivatives, for all combinations of `modes`.

    Args:
        f: a function of pytrees of arrays to pytrees of arrays, differentiable around `args`.
        args: tuple of the arguments; integer and boolean leaves are held fixed.
        order: highest order of derivatives to check, at least 1.
        modes: ``"fwd"``, ``"rev"`` or both.
        rtol: allowed difference relative to the largest entry; by default 1e-6 in double precision, 2e-2 in single
            precision, and 24 rounding units for float16 and bfloat16, whose differences are taken in float32.
        atol: allowed absolute difference; same defaults as `rtol`.
        step: step of the central differences; by default about the cube root of the rounding error.
        seed: seed of the random directions.

    Raises:
        ArgumentError: `modes` or `order` is not valid.
        GradientError: two derivatives differ; the message says which, where, and by how much. Or no argument, or no
            result, is real or complex floating point.

    See also:
        check_primitive: checks all registrations of one primitive.

    >>> from tenferro_ad import check_grads
    >>> check_grads(lambda x, y: x * x * y, (2.0, 3.0), order=2)
    """
    unknown = sorted(set(modes) - set(MODES))
    if unknown or not modes:
        raise ArgumentError(f"check_grads knows the modes 'fwd' and 'rev', got {tuple(modes)!r}", modes=tuple(modes))
    if not isinstance(order, int) or order < 1:
        raise ArgumentError(f"check_grads takes order=1 or higher, got {order!r}", order=order)
    _Check(f, args, tuple(modes), (rtol, atol, step), np.random.default_rng(operator.index(seed)), "").run(order)


class _Check:
    """The check of one function at one point, as a function of its real and complex leaves."""

    def __init__(
        self,
        f: Callable[..., Any],
        args: Sequence[Any],
        modes: tuple[str, ...],
        limits: tuple[float | None, float | None, float | None],
        rng: np.random.Generator,
        trail: str,
    ) -> None:
        leaves, self.tree = flatten(tuple(args))
        self.all = [as_value(x) for x in leaves]
        self.at = [i for i, x in enumerate(self.all) if x.spec.inexact]
        if not self.at:
            raise GradientError("check_grads was given no real or complex floating-point argument to differentiate")
        self.f, self.modes, self.limits, self.rng, self.trail = f, modes, limits, rng, trail
        self.points = [self.all[i] for i in self.at]
        size = min(real_of(computing_type(x.dtype)).itemsize for x in self.points)
        coarsest = max(_NARROW_UNITS * finfo(x.dtype).eps if x.spec.narrow else 0.0 for x in self.points)
        given_rtol, given_atol, given_step = limits
        self.rtol = max(_RTOL[size], coarsest) if given_rtol is None else given_rtol
        self.atol = max(_ATOL[size], coarsest) if given_atol is None else given_atol
        self.step = _STEP[size] if given_step is None else given_step

    def call(self, *points: Any) -> tuple[Any, ...]:
        """Map differentiable leaves of the arguments to differentiable leaves of the value."""
        leaves = list(self.all)
        for i, x in zip(self.at, points):
            leaves[i] = x
        out = flatten(self.f(*unflatten(self.tree, leaves)))[0]
        return tuple([v for v in map(as_value, out) if v.spec.inexact])

    def direction(self, like: Sequence[Any]) -> list[Any]:
        """A random tangent without small entries."""
        found = []
        for x in like:
            shape, dtype = x.shape, x.dtype
            entry = self.rng.uniform(0.5, 1.0, shape) * self.rng.choice([-1.0, 1.0], shape)
            if dtype.kind == "c":
                entry = entry + 1j * self.rng.uniform(0.5, 1.0, shape) * self.rng.choice([-1.0, 1.0], shape)
            found.append(tensor(np.asarray(entry, dtype), device=x.spec.place.device))
        return found

    def differences(self, t: Sequence[Any]) -> list[Floats]:
        """Central differences along `t`, computed in float32 for narrow arguments, whose rounding exceeds the step."""
        moved = [(_widened(x), self.step * _widened(d)) for x, d in zip(self.points, t)]
        ahead = self.call(*[x + d for x, d in moved])
        behind = self.call(*[x - d for x, d in moved])
        return [(host(a) - host(b)) / (2 * self.step) for a, b in zip(ahead, behind)]

    def run(self, order: int) -> None:
        """Check this function and its derivatives up to `order`."""
        t = self.direction(self.points)
        if "rev" in self.modes:
            outs, pull = vjp(self.call, *self.points)
        else:
            outs = self.call(*self.points)
        if not outs:
            raise GradientError(f"check_grads: the function{self.trail} has no real or complex value to differentiate")
        u = self.direction(outs)
        expected = self.differences(t)
        if "fwd" in self.modes:
            pushed = [host(c) for c in jvp(self.call, self.points, t)[1]]
            for k, (got, want) in enumerate(zip(pushed, expected)):
                self.compare(got, want, f"forward mode{self.trail}, output {k}", "central differences")
            expected = pushed
        if "rev" in self.modes:
            pulled = pull(tuple(u))
            paired = sum(_pair(host(c), host(d)) for c, d in zip(pulled, t))
            wanted = sum(_pair(host(c), d) for c, d in zip(u, expected))
            size = sum(float(np.sum(np.abs(host(c)) * np.abs(d))) for c, d in zip(u, expected))
            source = "forward mode" if "fwd" in self.modes else "central differences"
            self.compare(np.asarray(paired), np.asarray(wanted), f"reverse mode{self.trail}, Re<J* u, t>", source, size)
        if order > 1:
            for mode in self.modes:
                self.derivative(mode, t, u).run(order - 1)

    def derivative(self, mode: str, t: Sequence[Any], u: Sequence[Any]) -> _Check:
        """The check of a derivative of the function."""
        if mode == "fwd":
            g: Callable[..., Any] = lambda *points: jvp(self.call, points, tuple(t))[1]
            name = " of the jvp"
        else:
            g = lambda *points: vjp(self.call, *points)[1](tuple(u))
            name = " of the vjp"
        return _Check(g, self.points, self.modes, self.limits, self.rng, name + self.trail)

    def compare(self, got: Floats, want: Floats, what: str, source: str, size: float | None = None) -> None:
        scale = size if size is not None else float(np.max(np.abs(want), initial=0.0))
        allowed = self.atol + self.rtol * scale
        with np.errstate(invalid="ignore"):
            worst = float(np.max(np.abs(got - want), initial=0.0))
        if got.shape == want.shape and worst <= allowed:
            return
        at: tuple[int, ...] = ()
        if got.shape == want.shape and got.ndim:
            gap = np.abs(got - want)
            at = tuple(
                int(i) for i in np.unravel_index(int(np.argmax(np.where(np.isnan(gap), np.inf, gap))), got.shape)
            )
        raise GradientError(
            f"check_grads: {what} disagrees with {source}: {got[at]!s} against {want[at]!s}"
            f"{f' at {at}' if at else ''}, difference {worst:.3g} where {allowed:.3g} is allowed; the derivative rule "
            "of an operation in the function is wrong, or the function is not smooth there",
            got=complex(got[at]),
            expected=complex(want[at]),
            difference=worst,
            allowed=allowed,
        )


def host(x: Any) -> Floats:
    """The elements of a concrete value as a NumPy array; narrow floats as float32."""
    found: Floats = _widened(x)._concrete()
    return found


def _widened(x: Any) -> Any:
    return x.astype(computing_type(x.dtype)) if x.spec.narrow else x


def _pair(a: Floats, b: Floats) -> float:
    return float(np.sum(np.conj(a) * b).real)
