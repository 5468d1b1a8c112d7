"""Decompositions of an optimistic emitter: the basis of vectors matters where values are equal, which is a miss."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from tenferro_linalg import _eigh, _svd
from tenferro_linalg._degeneracy import certified_
from tenferro_linalg._fallible import lower_formula
from tenferro_linalg.stablehlo import _spectra
from tenferro_runtime.extension import Primitive


def _require_regular(e: Any, values: Any, what: str, size: int) -> None:
    """Miss unless values differ and are finite, as tests of derivatives do in these words, so that XLA merges both."""
    lower_formula(certified_, e, (values, values), (values.spec,), what=what, size=size, cut=None)


def svd(e: Any, xs: Any, outs: Any, *, full: bool, basis: str = "generic", **_: Any) -> Any:
    """Singular triplets in the basis of the library."""
    (*_, m, n) = xs[0].spec.shape
    if basis != "generic" or 0 in xs[0].spec.shape or (full and m != n):
        return None
    found = e.traced(_spectra.plain_svd, xs, outs, full=full)
    _require_regular(e, found[1], "svd", max(m, n))
    return found


def svd_adapted(e: Any, xs: Any, outs: Any, *, full: bool) -> Any:
    """Singular triplets, whose vectors have no choice."""
    (*_, m, n) = xs[0].spec.shape
    return svd(e, xs[:1], outs, full=full) if m == n else None


def eigh(e: Any, xs: Any, outs: Any, *, basis: str = "generic") -> Any:
    """Eigenvalues, and eigenvectors in the basis of the library."""
    n = xs[0].spec.shape[-1]
    if basis != "generic" or 0 in xs[0].spec.shape or n == 1:
        return None
    found = e.traced(_spectra.plain_eigh, xs[:1], outs)
    _require_regular(e, found[0], "eigh", n)
    return found


REGULAR: Final[dict[Primitive, Callable[..., Sequence[Any] | None]]] = {
    _svd.svd_: svd, _svd.svd_adapted_: svd_adapted, _eigh.eigh_: eigh, _eigh.eigh_adapted_: eigh,
}  # fmt: skip
"""The lowerings, which return ``None`` where there is only the one for all values."""
