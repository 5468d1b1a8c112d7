"""Shared by the checks of third-party code: how they run, what they report, and how they compare arrays.

`check_primitive` and `check_compiler` of tenferro_ad check operations and compilers; `check_backend` and
`check_device_runtime` of `tenferro_tensor.conformance` check backends and device runtimes. Each takes names of checks
to skip, runs the others, and raises one `CheckError` that lists all mistakes.

- `_report`: the outcome of checks
- `_comparing`: comparison of arrays, and arrays in unusual memory layouts
"""

from tenferro_tensor.checking._comparing import close, copied, identical, laid_out, shown
from tenferro_tensor.checking._report import CheckError, CheckReport, Finding, LeftOut, Mistake, run_checks

__all__ = [
    "CheckError",
    "CheckReport",
    "Finding",
    "LeftOut",
    "Mistake",
    "close",
    "copied",
    "identical",
    "laid_out",
    "run_checks",
    "shown",
]


def __dir__() -> list[str]:
    return __all__.copy()
