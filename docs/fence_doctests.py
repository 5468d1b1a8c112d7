"""Docstrings show examples as doctests without a heading; Markdown would read their prompts as quotations."""

import re
from typing import Any

from griffe import Extension, Object

DOCTEST = re.compile(r"^>>> (?:.+\n?)+", re.MULTILINE)


class FenceDoctests(Extension):
    """Puts every doctest of a docstring into a fence."""

    def on_object(self, *, obj: Object, **kwargs: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = DOCTEST.sub(lambda m: f"```pycon\n{m[0].rstrip()}\n```\n", obj.docstring.value)
