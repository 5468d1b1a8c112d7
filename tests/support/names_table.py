"""What becomes of NumPy's names here: a page that is written from the namespace itself.

``python3 dev run tests/support/names_table.py`` writes the tables of ``docs/numpy-names.md``, below a mark; a test
compares them with the namespace anew.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

import tenferro_fft
import tenferro_linalg
import tenferro_runtime as tr
from tenferro_runtime._absent import INSTEAD
from tenferro_tensor._absent_attributes import INSTEAD as ATTRIBUTES

PAGE: Final = Path(__file__).resolve().parents[2] / "docs" / "numpy-names.md"

NUMPY: Final = """
abs absolute acos acosh add all allclose amax amin angle any append apply_along_axis apply_over_axes arange arccos
arccosh arcsin arcsinh arctan arctan2 arctanh argmax argmin argpartition argsort argwhere around array array2string
array_equal array_equiv array_repr array_split array_str asanyarray asarray asarray_chkfinite ascontiguousarray
asfortranarray asin asinh astype atan atan2 atanh atleast_1d atleast_2d atleast_3d average bartlett base_repr
binary_repr bincount bitwise_and bitwise_count bitwise_invert bitwise_left_shift bitwise_not bitwise_or
bitwise_right_shift bitwise_xor blackman block broadcast_arrays broadcast_shapes broadcast_to can_cast cbrt ceil
choose clip column_stack common_type compress concat concatenate conj conjugate convolve copy copysign copyto corrcoef
correlate cos cosh count_nonzero cov cross cumprod cumsum cumulative_prod cumulative_sum deg2rad degrees delete diag
diag_indices diag_indices_from diagflat diagonal diff digitize divide divmod dot dsplit dstack ediff1d einsum
einsum_path empty empty_like equal exp exp2 expand_dims expm1 extract eye fabs fill_diagonal fix flatnonzero flip
fliplr flipud float_power floor floor_divide fmax fmin fmod format_float_positional format_float_scientific frexp
from_dlpack frombuffer fromfile fromfunction fromiter frompyfunc fromregex fromstring full full_like gcd genfromtxt
geomspace get_printoptions gradient greater greater_equal hamming hanning heaviside histogram histogram2d
histogram_bin_edges histogramdd hsplit hstack hypot i0 identity imag indices inner insert interp intersect1d invert
isclose iscomplex iscomplexobj isdtype isfinite isfortran isin isinf isnan isneginf isposinf isreal isrealobj isscalar
issubdtype iterable ix_ kaiser kron lcm ldexp left_shift less less_equal lexsort linspace load loadtxt log log10 log1p
log2 logaddexp logaddexp2 logical_and logical_not logical_or logical_xor logspace mask_indices matmul matrix_transpose
matvec max maximum may_share_memory mean median meshgrid min min_scalar_type minimum mod modf moveaxis multiply
nan_to_num nanargmax nanargmin nancumprod nancumsum nanmax nanmean nanmedian nanmin nanpercentile nanprod nanquantile
nanstd nansum nanvar ndim negative nextafter nonzero not_equal ones ones_like outer packbits pad partition percentile
permute_dims piecewise place poly polyadd polyder polydiv polyfit polyint polymul polysub polyval positive pow power
printoptions prod promote_types ptp put put_along_axis putmask quantile rad2deg radians ravel ravel_multi_index real
real_if_close reciprocal remainder repeat require reshape resize result_type right_shift rint roll rollaxis roots
rot90 round row_stack save savetxt savez savez_compressed searchsorted select set_printoptions setdiff1d seterr
setxor1d shape shares_memory sign signbit sin sinc sinh size sort sort_complex spacing split sqrt square squeeze stack
std subtract sum swapaxes take take_along_axis tan tanh tensordot tile trace transpose trapezoid tri tril tril_indices
tril_indices_from trim_zeros triu triu_indices triu_indices_from true_divide trunc union1d unique unique_all
unique_counts unique_inverse unique_values unpackbits unravel_index unstack unwrap vander var vdot vecdot vecmat
vsplit vstack where zeros zeros_like
"""
"""The functions of NumPy 2.4 that are about arrays, not about dates, matrices or NumPy itself."""

FFT: Final = (
    "fft fft2 fftfreq fftn fftshift hfft ifft ifft2 ifftn ifftshift ihfft irfft irfft2 irfftn rfft rfft2 rfftfreq rfftn"
)
LINALG: Final = """
cholesky cond cross det diagonal eig eigh eigvals eigvalsh inv lstsq matmul matrix_norm matrix_power matrix_rank
matrix_transpose multi_dot norm outer pinv qr slogdet solve svd svdvals tensordot tensorinv tensorsolve trace vecdot
vector_norm
"""

MARK: Final = "<!-- written by tests/support/names_table.py from here on -->\n"
"""The line of the page below which this module writes."""


def functions() -> list[str]:
    """The public functions of the namespace, and those that it finds in families."""
    return sorted({n for n in tr.__all__ if callable(getattr(tr, n)) and not isinstance(getattr(tr, n), type)})


def own_name(name: str) -> str:
    """The name that a function calls itself."""
    own: str = getattr(getattr(tr, name), "__name__", name)
    return own if getattr(tr, own, None) is getattr(tr, name) else name


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _table(titles: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in (titles, ("---",) * len(titles), *rows))


def page() -> str:
    """The whole page."""
    numpy = NUMPY.split()
    others = [n for n in functions() if own_name(n) != n]
    there = [n for n in numpy if hasattr(tr, n) and n not in others]
    nowhere = [n for n in numpy if not hasattr(tr, n) and n not in INSTEAD]
    parts = [("linalg", tenferro_linalg, LINALG.split()), ("fft", tenferro_fft, FFT.split())]
    nowhere += [f"{part}.{n}" for part, module, names in parts for n in names if not hasattr(module, n)]
    sections = [
        PAGE.read_text(encoding="utf-8").partition(MARK)[0] + MARK.rstrip("\n"),
        _table(("name", "write"), [(f"`{n}`", INSTEAD[n].replace("|", "\\|")) for n in sorted(INSTEAD)]),
        "Attributes of other libraries' arrays, in the same way:",
        _table(("attribute", "write"), [(f"`{n}`", ATTRIBUTES[n]) for n in sorted(ATTRIBUTES)]),
        "## Names of NumPy that are here",
        _listed(there),
        "In `tr.linalg` and `tr.fft`:",
        *[_listed(f"{part}.{n}" for n in names if hasattr(module, n)) for part, module, names in parts],
        "## Other spellings",
        "Each of these is the same function as the one beside it.",
        _table(("name", "the same as"), [(f"`{n}`", f"`{own_name(n)}`") for n in others]),
        "## Names of NumPy that are missing",
        _listed(nowhere),
    ]
    return "\n\n".join(sections) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
