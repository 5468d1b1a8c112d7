"""The public array functions: compositions of catalog primitives, hence one meaning for every kind of value.

Names and semantics are those of the Array API standard where it has the function. ``axis`` may be given by position.
Modules of functions that few programs use are imported when one of their names is first asked for.
"""
# ruff: noqa: F403 - the `__all__` of the modules lists the names

import types
import typing

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

LATER: typing.Final = {
    "averages": "average corrcoef cov ptp",
}
"""Modules that are imported when they are needed, and the names of their functions."""

DEFERRED: typing.Final = frozenset(" ".join(LATER.values()).split())

if not typing.TYPE_CHECKING:  # type checkers follow the star imports
    __getattr__ = _deferred(__name__, LATER)
    __all__ = sorted(
        name
        for name, found in globals().items()
        if not name.startswith("_") and name not in ("DEFERRED", "LATER") and not isinstance(found, types.ModuleType)
    )
