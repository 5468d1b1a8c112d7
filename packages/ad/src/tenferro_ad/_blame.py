"""Lines of derivatives: what a pull records in a program comes from the line of the operation that it pulls through."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tenferro_runtime.ir import Source, user_line, where
from tenferro_runtime.tracing import recording


class Blamed:
    """A pull that tells the builder whose line it works for.

    Attributes:
        pull: the pull.
        builder: the builder.
        source: the line.
    """

    __slots__ = ("builder", "pull", "source")

    def __init__(self, pull: Callable[[Any, Any], Any], builder: Any, source: Source) -> None:
        self.pull, self.builder, self.source = pull, builder, source

    @property
    def op(self) -> Any:
        """The op that is pulled through, for messages."""
        return getattr(self.pull, "op", None) or getattr(getattr(self.pull, "__self__", None), "op", None)

    @property
    def where(self) -> str:
        """The line as text."""
        return where(self.source)

    def __call__(self, g: Any, saved: Any) -> Any:
        before, self.builder.blame = self.builder.blame, self.source
        try:
            return self.pull(g, saved)
        finally:
            self.builder.blame = before


def blamed(pull: Callable[[Any, Any], Any], out: Any) -> Callable[[Any, Any], Any]:
    """The pull of an operation with this output: it remembers the running line if that is being recorded."""
    builder = recording(out)
    return pull if builder is None else Blamed(pull, builder, builder.blame or user_line())
