"""Doctests see the array namespace as ``tr``, as in ``import tenferro_runtime as tr``."""

from typing import Any

import pytest


@pytest.fixture(autouse=True)
def _namespace(doctest_namespace: dict[str, Any]) -> None:
    import tenferro_runtime

    doctest_namespace["tr"] = tenferro_runtime
