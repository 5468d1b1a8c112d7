"""The catalog of core primitives: one inference function each, with StableHLO's semantics where it has the operation.

All other functions of tenferro are compositions of these.
"""
# ruff: noqa: F403 - the modules' `__all__` lists the names; a second list here could only disagree

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
