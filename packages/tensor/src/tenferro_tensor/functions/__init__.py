"""The public array functions: compositions of catalog primitives, hence one meaning for every kind of value.

Names and semantics are those of the Array API standard where it has the function. ``axis`` may be given by position.
"""
# ruff: noqa: F403 - each module's `__all__` is the list, and here they are joined

from tenferro_tensor.functions import (
    analytic,
    arithmetic,
    bits,
    comparison,
    creation,
    dtypes,
    joining,
    linear_algebra,
    manipulation,
    parts,
    placement,
    reading,
    reductions,
    scans,
    searching,
    sets,
    sorting,
    statistics,
)
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

__all__: list[str] = []
__all__ += analytic.__all__
__all__ += arithmetic.__all__
__all__ += bits.__all__
__all__ += comparison.__all__
__all__ += creation.__all__
__all__ += dtypes.__all__
__all__ += joining.__all__
__all__ += linear_algebra.__all__
__all__ += manipulation.__all__
__all__ += parts.__all__
__all__ += placement.__all__
__all__ += reading.__all__
__all__ += reductions.__all__
__all__ += scans.__all__
__all__ += searching.__all__
__all__ += sets.__all__
__all__ += sorting.__all__
__all__ += statistics.__all__
