"""What tests of programs on several devices share."""

import pytest

from tenferro_runtime.placement import _several, verify


@pytest.fixture
def plans(monkeypatch):
    """The plans that are made, each held to its law."""
    made = []
    plan = _several.plan

    def noted(*args):
        made.append(verify(plan(*args)))
        return made[-1]

    monkeypatch.setattr(_several, "plan", noted)
    return made
