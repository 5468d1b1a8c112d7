"""Reports of program inspection, as plain data that prints for people."""

from tenferro_runtime.reports._bad_step import BadStep, Statistics
from tenferro_runtime.reports._calls import Dispatch, DispatchStep, TransferRow, Transfers
from tenferro_runtime.reports._comparison import Comparison, Difference, Side
from tenferro_runtime.reports._cost import BodyCost, Explanation, StepCost
from tenferro_runtime.reports._library import LibraryFiles
from tenferro_runtime.reports._loop_nests import LoopNests
from tenferro_runtime.reports._memory import MemoryBlock, MemoryTimeline
from tenferro_runtime.reports._table import text_card
from tenferro_runtime.reports._time import BodyTime, Profile, StepTime
from tenferro_tensor.markup import readable

__all__ = [
    "BadStep",
    "MemoryBlock",
    "BodyCost",
    "BodyTime",
    "Comparison",
    "Difference",
    "Dispatch",
    "DispatchStep",
    "Explanation",
    "LibraryFiles",
    "LoopNests",
    "MemoryTimeline",
    "Profile",
    "Statistics",
    "Side",
    "StepCost",
    "StepTime",
    "TransferRow",
    "Transfers",
    "readable",
    "text_card",
]


def __dir__() -> list[str]:
    return __all__.copy()
