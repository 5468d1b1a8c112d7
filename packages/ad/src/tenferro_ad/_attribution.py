"""Source attribution: ops that a vjp records in a program carry the source line of the op that they differentiate."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tenferro_runtime.ir import Source, user_line, where
from tenferro_runtime.tracing import recording


class Blamed:
    """A vjp that records its ops under the source line of the op that it differentiates.

    Attributes:
        vjp: the vjp.
        builder: the builder that records its ops.
        source: the source line.
    """

    __slots__ = ("builder", "source", "vjp")

    def __init__(self, vjp: Callable[[Any, Any], Any], builder: Any, source: Source) -> None:
        self.vjp, self.builder, self.source = vjp, builder, source

    @property
    def op(self) -> Any:
        """The differentiated op, for error messages."""
        return getattr(self.vjp, "op", None)

    @property
    def where(self) -> str:
        """The source line as text."""
        return where(self.source)

    def __call__(self, g: Any, saved: Any) -> Any:
        before, self.builder.blame = self.builder.blame, self.source
        try:
            return self.vjp(g, saved)
        finally:
            self.builder.blame = before


def blamed(vjp: Callable[[Any, Any], Any], out: Any) -> Callable[[Any, Any], Any]:
    """The vjp of an op with this output, attributed to the current source line if the op is being recorded."""
    builder = recording(out)
    return vjp if builder is None else Blamed(vjp, builder, builder.blame or user_line())
