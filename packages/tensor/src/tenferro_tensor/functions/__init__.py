"""The public array functions: compositions of catalog primitives, so they work on every kind of value.

Names and semantics are those of the Array API standard where it has the function. ``axis`` may be passed by
position. Modules of rarely used functions are imported on first access to one of their names.
"""
# ruff: noqa: F403 - the modules' `__all__` lists the names

import types
import typing

from tenferro_tensor.direct import public as _public
from tenferro_tensor.functions.analytic import *
from tenferro_tensor.functions.arithmetic import *
from tenferro_tensor.functions.bits import *
from tenferro_tensor.functions.comparison import *
from tenferro_tensor.functions.creation import *
from tenferro_tensor.functions.dtypes import *
from tenferro_tensor.functions.joining import *
from tenferro_tensor.functions.linear_algebra import *
from tenferro_tensor.functions.manipulation import *
from tenferro_tensor.functions.parts import *
from tenferro_tensor.functions.placement import *
from tenferro_tensor.functions.reading import *
from tenferro_tensor.functions.reductions import *
from tenferro_tensor.functions.scans import *
from tenferro_tensor.functions.searching import *
from tenferro_tensor.functions.sets import *
from tenferro_tensor.functions.sorting import *
from tenferro_tensor.functions.statistics import *
from tenferro_tensor.functions.truncation import *
from tenferro_tensor.functions.windows import *
from tenferro_tensor_core.deferred import deferred as _deferred

if typing.TYPE_CHECKING:
    from tenferro_tensor.functions.averages import *
    from tenferro_tensor.functions.binary import *
    from tenferro_tensor.functions.closeness import *
    from tenferro_tensor.functions.counting import *
    from tenferro_tensor.functions.diagonals import *
    from tenferro_tensor.functions.differences import *
    from tenferro_tensor.functions.editing import *
    from tenferro_tensor.functions.elementwise import *
    from tenferro_tensor.functions.flat_indices import *
    from tenferro_tensor.functions.histograms import *
    from tenferro_tensor.functions.index_grids import *
    from tenferro_tensor.functions.interpolation import *
    from tenferro_tensor.functions.joining_keys import *
    from tenferro_tensor.functions.nan_reductions import *
    from tenferro_tensor.functions.numpy_forms import *
    from tenferro_tensor.functions.ordering import *
    from tenferro_tensor.functions.orientation import *
    from tenferro_tensor.functions.packing import *
    from tenferro_tensor.functions.polynomials import *
    from tenferro_tensor.functions.predicates import *
    from tenferro_tensor.functions.quantiles import *
    from tenferro_tensor.functions.ranges import *
    from tenferro_tensor.functions.selecting import *
    from tenferro_tensor.functions.set_operations import *
    from tenferro_tensor.functions.signals import *
    from tenferro_tensor.functions.spellings import *
    from tenferro_tensor.functions.stacking import *
    from tenferro_tensor.functions.tapers import *
    from tenferro_tensor.functions.writing import *

LATER: typing.Final = {
    "averages": "average corrcoef cov ptp",
    "binary": "frexp ldexp modf spacing",
    "closeness": "allclose array_equal array_equiv isclose",
    "counting": "bincount digitize",
    "diagonals": "diag diagflat tri",
    "differences": "cumulative_trapezoid ediff1d gradient trapezoid unwrap",
    "editing": "append delete insert resize trim_zeros",
    "elementwise": "angle deg2rad divmod fabs float_power fmax fmin heaviside i0 logaddexp2 rad2deg rint sinc",
    "flat_indices": "argwhere flatnonzero ravel_multi_index unravel_index",
    "histograms": "histogram histogram2d histogram_bin_edges histogramdd",
    "index_grids": (
        "diag_indices diag_indices_from indices ix_ mask_indices tril_indices tril_indices_from triu_indices "
        "triu_indices_from"
    ),
    "interpolation": "interp",
    "joining_keys": "c_ r_",
    "nan_reductions": "nanargmax nanargmin nancumprod nancumsum nanmax nanmean nanmin nanprod nanstd nansum nanvar",
    "numpy_forms": "array cumprod cumsum dot identity inner matvec sort_complex transpose vdot vecmat",
    "ordering": "argpartition lexsort partition top_k",
    "orientation": "atleast_1d atleast_2d atleast_3d fliplr flipud rollaxis rot90",
    "packing": "packbits unpackbits",
    "polynomials": "polyadd polyder polydiv polyint polymul polysub polyval vander",
    "predicates": (
        "iscomplex iscomplexobj isneginf isposinf isreal isrealobj isscalar issubdtype iterable ndim "
        "promote_types real_if_close shape size"
    ),
    "quantiles": "median nanmedian nanpercentile nanquantile percentile quantile",
    "ranges": "copy frombuffer fromfunction fromiter geomspace logspace",
    "selecting": "choose extract piecewise select",
    "set_operations": "intersect1d setdiff1d setxor1d union1d unique",
    "signals": "convolve correlate",
    "spellings": (
        "absolute amax amin arccos arccosh arcsin arcsinh arctan arctan2 arctanh around bitwise_not "
        "concatenate conjugate degrees fix invert left_shift mod power radians right_shift row_stack true_divide"
    ),
    "stacking": "array_split block column_stack dsplit dstack hsplit hstack vsplit vstack",
    "tapers": "bartlett blackman hamming hanning kaiser",
    "writing": "copyto fill_diagonal place put put_along_axis putmask",
}
"""Modules that are imported lazily, and the names of their functions."""

DEFERRED: typing.Final = frozenset(" ".join(LATER.values()).split())

if not typing.TYPE_CHECKING:  # for type checkers, which follow star imports
    _load = _deferred(__name__, LATER)

    def __getattr__(name: str) -> typing.Any:
        found = globals()[name] = _public(_load(name))
        return found

    for _name, _found in [*globals().items()]:
        globals()[_name] = _found if _name.startswith("_") else _public(_found)
    __all__ = sorted(
        name
        for name, found in globals().items()
        if not name.startswith("_") and name not in ("DEFERRED", "LATER") and not isinstance(found, types.ModuleType)
    )

    def __dir__() -> list[str]:
        return [*__all__, *DEFERRED]
