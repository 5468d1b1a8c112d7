"""The texts of degeneracy errors: which output, which pair, which gap, and what to do next."""

from typing import Any

import numpy as np

from tenferro_linalg import _multiplets as multiplets
from tenferro_linalg._errors import DefectiveError, DegenerateError, GaugeError
from tenferro_runtime.extension import GradientError

_NAMES = {
    "svd": ("singular values", "S", "U and Vh", "U @ diag(S) @ Vh or U[:, b] @ Vh[b, :]"),
    "eigh": ("eigenvalues", "w", "the eigenvectors V", "V[:, b] @ V[:, b].conj().T"),
}

_PHASE = "use absolute values or products of a vector with its own conjugate, or fix the phase yourself"
_ROTATION = "use the vectors of equal values only all together, as in"
_SPLIT = (
    "no derivative exists in the given basis; instead of a linearisation use jvp, one tangent at a time, which adapts "
    "the basis to its tangent"
)
_KINK = (
    "the loss has a kink there and no gradient; weight equal values equally (sum over the whole multiplet), "
    "or take a jvp, which is one-sided"
)
_UNDETERMINED = (
    "do not determine the gradient there; grad and vjp evaluate the function at nearby points instead, a bare backward "
    "pass cannot; or use a function of the matrix that needs no vectors (spectral_function, singular_function, inv, "
    "det, norms)"
)
_UNDETERMINED_GENERAL = (
    "do not determine the derivative there; grad, vjp and jvp evaluate the function at nearby points instead, a bare "
    "backward pass cannot; or use eigh where the matrix is Hermitian"
)


def _worst(la: Any, amount: Any, bad: Any) -> tuple[int, ...]:
    """Index of the largest of the bad entries."""
    amount = la.local(amount)
    masked = np.where(np.broadcast_to(la.local(bad), amount.shape), amount, -1.0)
    return tuple(int(i) for i in np.unravel_index(int(masked.argmax()), masked.shape))


def _stack(batch: tuple[int, ...]) -> str:
    return f" of matrix {batch} of the stack" if batch else ""


def _pair(values: Any, symbol: str, i: int, j: int) -> str:
    return f"{symbol}[{i}] = {values[i]:.6g} and {symbol}[{j}] = {values[j]:.6g} (gap {abs(values[i] - values[j]):.1e})"


def _rate(rate: float, allowed: float) -> str:
    return f"at the rate {rate:.3g} (rounding explains at most {allowed:.1e})"


def report_numerator(
    la: Any, numerator: Any, values: Any, limit: Any, bad: Any, kind: str, role: str, what: str, cut: int | None
) -> GradientError:
    """A numerator that does not vanish where its gap does."""
    plural, symbol, vectors, example = _NAMES[what]
    *lead, i, j = _worst(la, abs(numerator), bad)
    batch = tuple(lead)
    v, allowed = la.local(values)[batch], float(la.local(limit)[batch])
    rate = float(abs(la.local(numerator)[(*batch, i, j)]))
    if kind == "column":
        which, gap = f"the zero value {symbol}[{j}] = {v[j]:.3g}", v[j]
    elif kind == "sum":
        which, gap = f"the zero values {symbol}[{i}] = {v[i]:.3g} and {symbol}[{j}] = {v[j]:.3g}", v[i] + v[j]
    elif i == j:
        which, gap = f"{symbol}[{i}] = {v[i]:.6g}", 0.0
    else:
        which, gap = f"the equal {plural} {_pair(v, symbol, i, j)}", abs(v[i] - v[j])
    which += _stack(batch)
    payload = {"output": vectors, "pair": (i, j), "batch": batch, "gap": float(gap), "rate": rate, "allowed": allowed}
    if role == "tangent":
        return DegenerateError(
            f"{what}: the perturbation splits {which}: it mixes their vectors {_rate(rate, allowed)}, so {_SPLIT}",
            **payload,
            beside=True,
        )
    phase = kind == "difference" and i == j
    choice = f"the phase of vector {i} of {vectors}" if phase else f"the choice of {vectors}"
    advice = _PHASE if phase else f"{_ROTATION} {example}, b the whole multiplet"
    return GaugeError(
        f"{what}: the loss depends on {choice} for {which}: a rotation changes it {_rate(rate, allowed)}; "
        f"{advice}{_cut(la, values, batch, i, j, cut)}",
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
        c, v = c[batch], v[batch]
        gap = abs(v[i] - v[j])
        seen = (
            f"the {plural} {_pair(v, symbol, i, j)}{_stack(batch)} are equal, but the loss treats them differently: "
            f"its derivatives by them are {c[i]:.6g} and {c[j]:.6g}"
        )
    else:
        *lead, i = _worst(la, abs(cotangent), zero)
        batch, j = tuple(lead), i
        c, v = c[batch], v[batch]
        gap = v[i]
        seen = (
            f"the singular value {symbol}[{i}] = {v[i]:.3g}{_stack(batch)} is zero, but the derivative of the loss "
            f"by it is {c[i]:.6g}"
        )
    advice = f"the cotangents of {symbol} and {vectors} {_UNDETERMINED}" if vectors_used else _KINK
    return DegenerateError(
        f"{what}: {seen}; {advice}{_cut(la, values, batch, i, j, cut)}",
        output=symbol,
        pair=(i, j),
        batch=batch,
        gap=float(gap),
        beside=vectors_used,
    )


def report_second_order(la: Any, values: Any, bad: Any, kind: str, what: str) -> DegenerateError:
    """A derivative of a masked quotient."""
    plural, symbol, vectors, _ = _NAMES[what]
    *lead, i, j = (int(k) for k in np.argwhere(la.local(bad))[0])
    batch = tuple(lead)
    v = la.local(values)[batch]
    if kind == "difference":
        seen, gap = f"the {plural} {_pair(v, symbol, i, j)}{_stack(batch)} are (nearly) equal", abs(v[i] - v[j])
    else:
        seen, gap = f"the singular value {symbol}[{j}] = {v[j]:.3g}{_stack(batch)} is (nearly) zero", v[j]
    return DegenerateError(
        f"{what}: {seen}, where second derivatives through {vectors} are undetermined; "
        "grad, vjp and jvp evaluate the function at nearby points instead, a bare backward pass cannot",
        output=vectors,
        pair=(i, j),
        batch=batch,
        gap=float(gap),
        beside=True,
    )


def report_frame(la: Any, turn: Any, limit: Any, bad: Any, what: str) -> GaugeError:
    """A loss that depends on the basis of a null space."""
    *lead, i, j = _worst(la, turn, bad)
    batch = tuple(lead)
    rate, allowed = float(la.local(turn)[(*batch, i, j)]), float(la.local(limit)[batch])
    if what not in _NAMES:
        return GaugeError(
            f"{what}: the loss depends on the choice of columns {i} and {j} of the basis{_stack(batch)}: a rotation of "
            f"them changes it {_rate(rate, allowed)}; use the basis Q only through its projector Q @ Q.conj().T",
            output="basis",
            pair=(i, j),
            batch=batch,
            gap=0.0,
        )
    return GaugeError(
        f"{what}: the loss depends on the choice of the extra columns {i} and {j} of U or V{_stack(batch)} "
        "(full_matrices=True), which are any orthonormal basis of the complement: a rotation changes it "
        f"{_rate(rate, allowed)}; use them only through their projector U2 @ U2.conj().T",
        output="U or Vh",
        pair=(i, j),
        batch=batch,
        gap=0.0,
    )


def report_signs(la: Any, values: Any, bad: Any) -> GaugeError:
    """A loss that uses both null vectors of a real matrix whose signs are independent."""
    batch = tuple(int(i) for i in np.argwhere(la.local(bad))[0]) if np.ndim(bad) else ()
    v = la.local(values)[batch]
    j = v.shape[-1] - 1
    return GaugeError(
        f"svd: the singular value S[{j}] = {v[j]:.3g}{_stack(batch)} is zero, so the signs of U[:, {j}] and Vh[{j}, :] "
        "are free independently of each other, but the loss uses both vectors: a product of them, as in U @ Vh, jumps "
        f"where S[{j}] passes zero; leave the null vectors out, or use one of them only",
        output="U and Vh",
        pair=(j, j),
        batch=batch,
        gap=float(v[j]),
    )


def report_defective(batch: tuple[int, ...], kappa: float, limit: float) -> DefectiveError:
    """Eigenvectors that are dependent up to rounding."""
    return DefectiveError(
        f"eig: the eigenvectors{_stack(batch)} are linearly dependent up to rounding: an eigenvalue has the condition "
        f"number {kappa:.1e}, derivatives allow at most {limit:.1e}; the matrix is (nearly) defective, grad, vjp "
        "and jvp evaluate the function at nearby points instead, a bare backward pass cannot; or use a function of the "
        "matrix that needs no eigenvectors (det, trace, matrix_power)",
        batch=batch,
        condition=kappa,
        allowed=limit,
        beside=True,
    )


def report_eigenvectors(la: Any, numerator: Any, w: Any, bad: Any, role: str) -> GradientError:
    """A numerator of `eig` that does not vanish between equal eigenvalues, or on the diagonal of a cotangent."""
    *lead, i, j = _worst(la, abs(numerator), bad)
    batch, v = tuple(lead), la.local(w)[tuple(lead)]
    rate = float(abs(la.local(numerator)[(*batch, i, j)]))
    payload = {"output": "eigenvectors", "pair": (i, j), "batch": batch, "gap": float(abs(v[i] - v[j])), "rate": rate}
    if i == j:
        return GaugeError(
            f"eig: the loss depends on the phase of vector {i} of the eigenvectors for w[{i}] = {v[i]:.6g}"
            f"{_stack(batch)}: a rotation changes it at the rate {rate:.3g}; {_PHASE}",
            **payload,
        )
    seen = f"the equal eigenvalues {_pair(v, 'w', i, j)}{_stack(batch)}"
    if role == "tangent":
        text = f"eig: the perturbation splits {seen}, so no derivative exists in the given basis"
        return DegenerateError(text, **payload, beside=True)
    return GaugeError(f"eig: the loss depends on the choice of the eigenvectors for {seen}", **payload)


def report_eigenvalues(la: Any, w: Any, bad: Any, cotangent: Any, beside: bool) -> DegenerateError:
    """Equal eigenvalues that leave a derivative of `eig` undetermined."""
    *lead, i, j = (int(k) for k in np.argwhere(la.local(bad))[0])
    batch, v = tuple(lead), la.local(w)[tuple(lead)]
    seen = f"the eigenvalues {_pair(v, 'w', i, j)}{_stack(batch)} are equal"
    if cotangent is not None:
        c = la.local(cotangent)[batch]
        seen += f", and the derivatives of the loss by them are {c[i]:.6g} and {c[j]:.6g}"
    return DegenerateError(
        f"eig: {seen}; {f'their vectors {_UNDETERMINED_GENERAL}' if beside else _KINK}",
        output="eigenvalues",
        pair=(i, j),
        batch=batch,
        gap=float(abs(v[i] - v[j])),
        beside=beside,
    )


def _cut(la: Any, values: Any, batch: tuple[int, ...], i: int, j: int, cut: int | None) -> str:
    """Advice for a truncation: keep the multiplet whole."""
    if cut is None:
        return ""
    v = la.local(values)[batch]
    number = multiplets.labels(np, v, max(v.shape[-1], 1))
    members = np.flatnonzero((number == number[i]) | (number == number[j]))
    a, b = int(members[0]), int(members[-1])
    if not a < cut <= b:
        return ""
    return f". The truncation k = {cut} cuts the multiplet S[{a}..{b}]: keep k = {a} or k = {b + 1}"
