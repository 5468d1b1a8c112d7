"""`Expansion`: an operation of a family in terms of other operations.

Core primitives have none; `loop_ir.expansion` has formulas for those that processors lack.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from tenferro_tensor_core import UnsupportedError

if TYPE_CHECKING:
    from tenferro_tensor._primitive import Primitive
    from tenferro_tensor._spec import Spec

__all__ = ["Expansion"]


def __dir__() -> list[str]:
    return __all__.copy()


def _without_programs(expansion: Expansion, ins: tuple[Spec, ...], params: dict[str, Any]) -> Callable[..., Any]:
    raise UnsupportedError(
        f"{expansion.primitive.name} is computed by a program of other operations, and nothing here runs programs; "
        "import tenferro_runtime (pip install tenferro-runtime)"
    )


@dataclass(frozen=True, slots=True)
class Expansion:
    """A registry entry that is also a kernel maker for every backend.

    Attributes:
        primitive: the primitive.
        function: ``function(*operands, **metadata)``, written with operations on values of any level.
        keep: whether programs keep the op if a kernel is registered for their backend.
    """

    primitive: Primitive
    function: Callable[..., Any]
    keep: bool = False

    make_kernel: ClassVar[Callable[[Expansion, tuple[Spec, ...], dict[str, Any]], Callable[..., Any]]] = staticmethod(
        _without_programs
    )
    """Makes the kernel of an expansion for specs and metadata; set by ``tenferro_runtime``, since it needs programs."""

    def __call__(self, ins: tuple[Spec, ...], outs: tuple[Spec, ...], **params: Any) -> Callable[..., Any]:
        """The kernel for operands of these specs."""
        return Expansion.make_kernel(self, ins, params)
