"""The expansion of `adjoint`: the program that reverse mode derives from a linear function."""

from __future__ import annotations

from typing import Any

from tenferro_ad.implicit._derived_programs import adjoint_of
from tenferro_runtime.equations import adjoint
from tenferro_runtime.extension import REGISTRY, Program
from tenferro_runtime.ir import applied


def _expansion(*xs: Any, program: Program, consts: int) -> tuple[Any, ...]:
    return applied(adjoint_of(program, consts), list(xs))


REGISTRY.expansion(adjoint, _expansion)
