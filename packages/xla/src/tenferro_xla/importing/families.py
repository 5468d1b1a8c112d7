"""Fourier transforms and matrix decompositions, with the installed families."""

from __future__ import annotations

from typing import Any, Final

import tenferro_runtime as tr
from tenferro_runtime.extension import catalog
from tenferro_xla.importing._reader import Handler, on_arrays, unknown
from tenferro_xla.importing.structure import integers


def _fft(op: Any, x: Any) -> Any:
    from jax.extend.mlir.dialects import stablehlo

    kind = stablehlo.FftTypeAttr(op.attributes["fft_type"]).value
    lengths = integers(op, "fft_length")
    axes = tuple(range(x.spec.ndim - len(lengths), x.spec.ndim))
    if kind == "FFT":
        return tr.fft.fftn(x, axes=axes)
    if kind == "IFFT":
        return tr.fft.ifftn(x, axes=axes)
    if kind == "RFFT":
        return tr.fft.rfftn(x, axes=axes)
    return tr.fft.irfftn(x, s=lengths, axes=axes)


def adjoint(x: Any, conjugate: bool) -> Any:
    """Return the transposed, optionally conjugated, matrices."""
    n = x.spec.ndim
    turned = catalog.transpose(x, permutation=(*range(n - 2), n - 1, n - 2))
    return catalog.conj(turned) if conjugate and x.spec.cplx else turned


def solve_triangular(a: Any, b: Any, *, left: bool, lower: bool, unit: bool, trans: str) -> Any:
    """Solve ``op(a) x = b``, or ``x op(a) = b``; `trans` is ``"N"``, ``"T"`` or ``"C"``."""
    if not left:  # (x op(a))^T = op(a)^T x^T = b^T
        if trans == "N":
            found = tr.linalg.solve_triangular(a, adjoint(b, False), lower=lower, trans="T", unit_diagonal=unit)
        else:
            a = catalog.conj(a) if trans == "C" and a.spec.cplx else a
            found = tr.linalg.solve_triangular(a, adjoint(b, False), lower=lower, unit_diagonal=unit)
        return adjoint(found, False)
    return tr.linalg.solve_triangular(a, b, lower=lower, trans=trans, unit_diagonal=unit)


def _triangular_solve(op: Any, a: Any, b: Any) -> Any:
    from jax.extend.mlir.dialects import stablehlo

    kind = stablehlo.TransposeAttr(op.attributes["transpose_a"]).value
    trans = {"NO_TRANSPOSE": "N", "TRANSPOSE": "T", "ADJOINT": "C"}.get(kind)
    if trans is None:
        raise unknown(op, f"its transpose_a is {kind}")
    left, lower, unit = (bool(op.attributes[name].value) for name in ("left_side", "lower", "unit_diagonal"))
    return solve_triangular(a, b, left=left, lower=lower, unit=unit, trans=trans)


def _cholesky(op: Any, x: Any) -> Any:
    """Only one triangle is read; the other triangle of the result is zero."""
    lower = "lower" in op.attributes and bool(op.attributes["lower"].value)
    return cholesky(x, lower)


def cholesky(x: Any, lower: bool) -> Any:
    """Return the Cholesky factor of Hermitian matrices given by one triangle."""
    half = tr.tril(x, k=-1) if lower else tr.triu(x, k=1)
    diagonal = catalog.sub(tr.tril(x), tr.tril(x, k=-1))
    if x.spec.cplx:
        diagonal = catalog.convert(catalog.real(diagonal), dtype=x.spec.dtype)
    whole = catalog.add(catalog.add(half, diagonal), adjoint(half, True))
    return tr.linalg.cholesky(whole, upper=not lower)


FAMILIES: Final[dict[str, Handler]] = {
    "stablehlo.fft": on_arrays(_fft),
    "stablehlo.triangular_solve": on_arrays(_triangular_solve),
    "stablehlo.cholesky": on_arrays(_cholesky),
}
"""Operations of the families ``fft`` and ``linalg``."""
