"""The texts of degeneracy errors: which output, which pair, which gap, and what to do next."""

from typing import Any

import numpy as np

from tenferro_linalg import _multiplets as multiplets
from tenferro_linalg._errors import DegenerateError, GaugeError, GradientError

_NAMES = {
    "svd": ("singular values", "S", "U and Vh", "U @ diag(S) @ Vh or U[:, b] @ Vh[b, :]"),
    "eigh": ("eigenvalues", "eigenvalues", "the eigenvectors V", "V[:, b] @ V[:, b].conj().T"),
}


def _worst(la: Any, size: Any, bad: Any) -> tuple[int, ...]:
    """Index of the largest of the bad entries."""
    amount = np.where(np.broadcast_to(la.local(bad), size.shape), la.local(size), -1.0)
    return tuple(int(i) for i in np.unravel_index(int(amount.argmax()), amount.shape))


def _stack(batch: tuple[int, ...]) -> str:
    return f" of matrix {batch} of the stack" if batch else ""


def _pair(values: Any, symbol: str, i: int, j: int) -> str:
    return f"{symbol}[{i}] = {values[i]:.6g} and {symbol}[{j}] = {values[j]:.6g} (gap {abs(values[i] - values[j]):.1e})"


def report_numerator(
    la: Any, numerator: Any, values: Any, limit: Any, bad: Any, kind: str, role: str, what: str, cut: int | None
) -> GradientError:
    """A numerator that does not vanish where its gap does."""
    plural, symbol, vectors, example = _NAMES[what]
    *lead, i, j = _worst(la, abs(numerator), bad)
    batch = tuple(lead)
    v, allowed = la.local(values)[batch], float(la.local(limit)[batch])
    rate = float(abs(la.local(numerator)[(*batch, i, j)]))
    payload = dict(output=vectors, pair=(i, j), batch=batch, rate=rate, allowed=allowed)
    if kind == "column":
        which, gap = f"the zero singular value {symbol}[{j}] = {v[j]:.3g}{_stack(batch)}", float(v[j])
    elif kind == "sum":
        which, gap = f"the zero singular values {symbol}[{i}] = {v[i]:.3g} and {symbol}[{j}] = {v[j]:.3g}{_stack(batch)}", float(v[i] + v[j])  # fmt: skip
    elif i == j:
        which, gap = f"{symbol}[{i}] = {v[i]:.6g}{_stack(batch)}", 0.0
    else:
        which, gap = f"the equal {plural} {_pair(v, symbol, i, j)}{_stack(batch)}", float(abs(v[i] - v[j]))
    if role == "tangent":
        return DegenerateError(
            f"{what}: the perturbation splits {which}: it mixes their vectors at the rate {rate:.3g}, where rounding explains "
            f"{allowed:.1e}, so no derivative exists in the given basis; use jvp, which adapts the basis to its "
            "tangent, one tangent at a time, instead of a linearisation",
            gap=gap,
            **payload,
        )
    if kind == "difference" and i == j:
        freedom, advice = f"the phase of column {i} of {vectors}", "use absolute values, products of a vector with its own conjugate, or fix the phase yourself"  # fmt: skip
    else:
        freedom, advice = f"the choice of {vectors}", f"let vectors of equal values enter only through combinations that a rotation leaves alone, such as {example} for all b of the multiplet"  # fmt: skip
    extra = _cut(la, values, batch, i, j, cut)
    return GaugeError(
        f"{what}: the loss depends on {freedom} for {which}: a rotation changes it at the rate {rate:.3g}, where rounding "
        f"explains {allowed:.1e}; {advice}{extra}",
        gap=gap,
        **payload,
    )


def report_certificate(
    la: Any, cotangent: Any, values: Any, bad: Any, zero: Any, what: str, cut: int | None, vectors_used: bool
) -> DegenerateError:
    """Cotangents that differ inside a multiplet, or do not vanish at a zero singular value."""
    plural, symbol, vectors, _ = _NAMES[what]
    c, v = la.local(cotangent), la.local(values)
    if bool(bad.any()):
        *lead, i, j = _worst(la, abs(cotangent[..., :, None] - cotangent[..., None, :]), bad)
        batch = tuple(lead)
        seen = (
            f"the {plural} {_pair(v[batch], symbol, i, j)}{_stack(batch)} are equal, but the loss treats them differently: "
            f"its derivatives by them are {c[(*batch, i)]:.6g} and {c[(*batch, j)]:.6g}"
        )
        gap = float(abs(v[(*batch, i)] - v[(*batch, j)]))
    else:
        *lead, i = _worst(la, abs(cotangent), zero)
        batch, j = tuple(lead), i
        seen = (
            f"the singular value {symbol}[{i}] = {v[(*batch, i)]:.3g}{_stack(batch)} is zero, but the loss has the derivative "
            f"{c[(*batch, i)]:.6g} by it"
        )
        gap = float(v[(*batch, i)])
    if vectors_used:
        advice = (
            f"the cotangents of {symbol} and {vectors} do not determine the gradient there; use a function of the matrix "
            "that needs no vectors (spectral_function, inv, norms, det), or perturb the input"
        )
    else:
        advice = (
            "the loss has a kink there and no gradient; weight equal values equally (sum over the whole multiplet), "
            "or take a jvp, which is one-sided"
        )
    return DegenerateError(
        f"{what}: {seen}; {advice}{_cut(la, values, batch, i, j, cut)}",
        output=symbol,
        pair=(i, j),
        batch=batch,
        gap=gap,
    )


def report_second_order(la: Any, values: Any, bad: Any, kind: str, what: str) -> DegenerateError:
    """A derivative of a masked quotient."""
    plural, symbol, vectors, _ = _NAMES[what]
    *lead, i, j = (int(k) for k in np.argwhere(la.local(bad))[0])
    batch = tuple(lead)
    v = la.local(values)[batch]
    if kind == "difference":
        seen = f"the {plural} {_pair(v, symbol, i, j)}{_stack(batch)} are equal"
    else:
        seen = f"the singular value {symbol}[{j}] = {v[j]:.3g}{_stack(batch)} is zero"
    return DegenerateError(
        f"{what}: {seen}, and second derivatives through {vectors} are not available there; "
        "use a function of the matrix that needs no vectors, or perturb the input",
        output=vectors,
        pair=(i, j),
        batch=batch,
        gap=float(abs(v[i] - v[j])) if kind == "difference" else float(v[j]),
    )


def report_frame(la: Any, turn: Any, limit: Any, bad: Any, what: str) -> GaugeError:
    """A loss that depends on the basis of a null space."""
    *lead, i, j = _worst(la, turn, bad)
    batch = tuple(lead)
    rate, allowed = float(la.local(turn)[(*batch, i, j)]), float(la.local(limit)[batch])
    name = {"svd": "U or Vh with full_matrices=True", "qr": "Q"}[what]
    return GaugeError(
        f"{what}: the loss depends on the choice of the extra columns {i} and {j} of {name}{_stack(batch)}, which are any "
        f"orthonormal basis of the complement: a rotation changes it at the rate {rate:.3g}, where rounding explains "
        f"{allowed:.1e}; use them only through their projector Q2 @ Q2.conj().T",
        output=name,
        pair=(i, j),
        batch=batch,
        gap=0.0,
    )


def _cut(la: Any, values: Any, batch: tuple[int, ...], i: int, j: int, cut: int | None) -> str:
    """What a truncation can do about it: keep the multiplet whole."""
    if cut is None:
        return ""
    v = la.local(values)[batch]
    number = multiplets.labels(np, v, max(v.shape[-1], 1))
    members = np.flatnonzero((number == number[i]) | (number == number[j]))
    a, b = int(members[0]), int(members[-1])
    if not a < cut <= b:
        return ""
    return f". The truncation k = {cut} cuts the multiplet S[{a}..{b}]: keep k = {a} or k = {b + 1}"
