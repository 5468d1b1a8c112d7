"""The catalog of core primitives: one inference function each, with StableHLO's semantics where it has the operation.

Everything else in tenferro is written with these.
"""
# ruff: noqa: F403 - the modules' `__all__` is the list, and a second one here would only be able to disagree

from tenferro_tensor.catalog.analytic import *
from tenferro_tensor.catalog.arithmetic import *
from tenferro_tensor.catalog.bits import *
from tenferro_tensor.catalog.comparison import *
from tenferro_tensor.catalog.contraction import *
from tenferro_tensor.catalog.creation import *
from tenferro_tensor.catalog.indexing import *
from tenferro_tensor.catalog.numbers import *
from tenferro_tensor.catalog.placement import *
from tenferro_tensor.catalog.reduction import *
from tenferro_tensor.catalog.scan import *
from tenferro_tensor.catalog.sorting import *
from tenferro_tensor.catalog.structure import *
