"""Doctests see the array namespace as ``tr``, as in ``import tenferro_runtime as tr``."""

from importlib.util import find_spec
from typing import Any

import pytest

collect_ignore_glob = [] if find_spec("torch") else ["ad/src/tenferro_ad/adapters/torch/*"]
"""Modules that import a library which is not installed here."""


@pytest.fixture(autouse=True)
def _namespace(doctest_namespace: dict[str, Any]) -> None:
    import tenferro_runtime

    doctest_namespace["tr"] = tenferro_runtime
