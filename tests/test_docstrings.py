"""Public docstrings are complete: each parameter and the result, and an example where users call it."""

import pytest

import docstring_gaps
from workspace import PROJECTS, import_name

INCOMPLETE: dict[str, int] = {}
"""Packages that are not complete, and how many of their docstrings at most lack something."""


@pytest.mark.parametrize("name", PROJECTS)
def test_public_docstrings_are_complete(name: str) -> None:
    found = docstring_gaps.gaps(import_name(f"tenferro-{name}"))
    listed = "\n".join(f"{path}: {', '.join(missing)}" for path, missing in found.items())
    assert len(found) <= INCOMPLETE.get(name, 0), listed
    assert found or name not in INCOMPLETE, f"{name} is complete: remove its line"


def _complete(x: int, *rest: int) -> int:
    """A sum.

    Args:
        x: first term.
        *rest: the others.

    Returns:
        The sum.
    """
    return x + sum(rest)


def _half(x: int, y: int = 0) -> int:
    """A sum.

    Args:
        x: first term.
    """
    return x + y


def test_a_gap_would_be_seen() -> None:
    assert docstring_gaps.function_gaps(_complete) == []
    assert docstring_gaps.function_gaps(_half) == ["Args: y", "Returns"]
