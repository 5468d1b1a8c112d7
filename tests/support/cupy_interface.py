"""The names and signatures of the real CuPy, to which the simulated one must conform.

They were read off the wheel by ``tests/assets/cupy/read_interface.py``, as a test of the packaging tier does again.
"""

import inspect
import json
from collections.abc import Callable
from functools import cache
from typing import Any

from workspace import ROOT

FOLDER = ROOT / "tests" / "assets" / "cupy"
NAMES: dict[str, Any] = json.loads((FOLDER / "interface.json").read_text())
"""By module or class, what each public name is: ``f(a, axis=)``, ``ufunc``, ``class``, ``module`` or ``value``."""

REQUIREMENT = f"cupy-cuda13x=={NAMES['version']}"


def require(owner: str, name: str) -> str:
    """What a name of CuPy stands for.

    Raises:
        AttributeError: CuPy has no such name, whatever NumPy or SciPy has.
    """
    if owner in NAMES and name not in NAMES[owner] and not name.startswith("_"):
        raise AttributeError(f"{owner!r} of CuPy {NAMES['version']} has no {name!r}")
    return str(NAMES.get(owner, {}).get(name, "value"))


@cache
def signature(owner: str, name: str) -> inspect.Signature | None:
    """The signature of a function, without its defaults; None of what is none."""
    return parsed(require(owner, name))


def parsed(text: str) -> inspect.Signature | None:
    """The signature in a description; None where it is of no function."""
    if not text.startswith("f("):
        return None
    found: list[inspect.Parameter] = []
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    for part in filter(None, text[2:-1].split(", ")):
        if part == "/":
            found = [p.replace(kind=p.POSITIONAL_ONLY) for p in found]
        elif part == "*":
            kind = inspect.Parameter.KEYWORD_ONLY
        elif part.startswith("**"):
            found.append(inspect.Parameter(part[2:], inspect.Parameter.VAR_KEYWORD))
        elif part.startswith("*"):
            found.append(inspect.Parameter(part[1:], inspect.Parameter.VAR_POSITIONAL))
            kind = inspect.Parameter.KEYWORD_ONLY
        else:
            default = None if part.endswith("=") else inspect.Parameter.empty
            found.append(inspect.Parameter(part.rstrip("="), kind, default=default))
    return inspect.Signature(found)


def bound(text: str, positional: int, named: tuple[str, ...]) -> str | None:
    """Why a described function takes no call with so many positional arguments and these others; None if it does."""
    taken = parsed(text)
    try:
        if taken is not None:
            taken.bind(*[None] * positional, **dict.fromkeys(named))
    except TypeError as error:
        return str(error)
    return None


def faithful(owner: str, name: str, run: Callable[..., Any]) -> Callable[..., Any]:
    """`run`, which stands in for a function of CuPy, called only as that function can be.

    Raises:
        TypeError: by the result, where CuPy would not take the arguments.
    """
    taken = signature(owner, name)
    if taken is None:
        return run

    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            taken.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{owner}.{name} of CuPy {NAMES['version']}: {error}") from None
        return run(*args, **kwargs)

    return call


def like(owner: str) -> Callable[[type], type]:
    """Hold the methods of a class that stands in for one of CuPy to the signatures there; others are for tests."""

    def hold(cls: type) -> type:
        for name, method in list(vars(cls).items()):
            if name in NAMES[owner] and inspect.isfunction(method):
                setattr(cls, name, _method(owner, name, method))
            elif name in NAMES[owner] and isinstance(method, staticmethod):
                setattr(cls, name, staticmethod(faithful(owner, name, method.__func__)))
        return cls

    return hold


def _method(owner: str, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        return faithful(owner, name, lambda *a, **k: method(self, *a, **k))(*args, **kwargs)

    return call
