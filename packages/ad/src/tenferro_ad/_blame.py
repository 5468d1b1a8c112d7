"""Lines of derivatives: what a pull records in a program comes from the line of the operation that it pulls through."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tenferro_runtime.ir import Source, user_line, where
from tenferro_runtime.tracing import recording


class Blamed:
    """A pull that tells the builder whose line it works for.

    Attributes:
        vjp: the pull.
        builder: the builder.
        source: the line.
    """

    __slots__ = ("builder", "source", "vjp")

    def __init__(self, vjp: Callable[[Any, Any], Any], builder: Any, source: Source) -> None:
        self.vjp, self.builder, self.source = vjp, builder, source

    @property
    def op(self) -> Any:
        """The op that is pulled through, for messages."""
        return getattr(self.vjp, "op", None)

    @property
    def where(self) -> str:
        """The line as text."""
        return where(self.source)

    def __call__(self, g: Any, saved: Any) -> Any:
        before, self.builder.blame = self.builder.blame, self.source
        try:
            return self.vjp(g, saved)
        finally:
            self.builder.blame = before


def blamed(vjp: Callable[[Any, Any], Any], out: Any) -> Callable[[Any, Any], Any]:
    """The pull of an operation with this output: it remembers the running line if that is being recorded."""
    builder = recording(out)
    return vjp if builder is None else Blamed(vjp, builder, builder.blame or user_line())
