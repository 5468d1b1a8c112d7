"""The catalog of core primitives: one inference function each, with StableHLO's semantics where it has the operation.

Everything else in tenferro is written with these.
"""

from tenferro_tensor.catalog.analytic import *
from tenferro_tensor.catalog.arithmetic import *
from tenferro_tensor.catalog.bits import *
from tenferro_tensor.catalog.comparison import *
from tenferro_tensor.catalog.numbers import *
