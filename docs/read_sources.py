"""How the sources are read for the reference."""

import re
from typing import Any

from griffe import Extension, Module, Object

DOCTEST = re.compile(r"^>>> (?:.+\n?)+", re.MULTILINE)


class ReadSources(Extension):
    """Fences every doctest, whose prompts Markdown would read as quotations, and follows star imports."""

    def on_module_members(self, *, mod: Module, **kwargs: Any) -> None:
        """An `__all__` that is computed reads as an empty one, which would hide every name."""
        if not mod.exports:
            mod.exports = None

    def on_object(self, *, obj: Object, **kwargs: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = DOCTEST.sub(lambda m: f"```pycon\n{m[0].rstrip()}\n```\n", obj.docstring.value)
