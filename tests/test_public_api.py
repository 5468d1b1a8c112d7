"""The public interface is what the snapshot says: names and signatures change on purpose only."""

from types import SimpleNamespace
from typing import Any

import pytest

import public_api


@pytest.mark.parametrize("package", public_api.packages())
def test_interface_is_the_snapshot(package: str) -> None:
    kept = (public_api.SNAPSHOT / f"{package}.txt").read_text()
    assert public_api.interface(package) == kept, (
        f"the public interface of {package} has changed. If that is meant, run `python3 dev api`, say it in a fragment "
        "in changelog.d, and deprecate a name before it disappears (docs/support.md)"
    )


def test_a_changed_default_is_a_change() -> None:
    def function(x: Any, *, axis: int | None = None, key: object = object()) -> None: ...

    def other(x: Any, *, axis: int | None = 0, key: object = object()) -> None: ...

    texts = [
        [*public_api.lines(SimpleNamespace(__name__="m", __all__=["f"], f=f))]  # a module of one function
        for f in (function, other)
    ]
    assert texts == [["m.f(x, *, axis=None, key=...)"], ["m.f(x, *, axis=0, key=...)"]]
