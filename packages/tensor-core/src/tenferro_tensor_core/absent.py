"""Errors about names that are not there, which say the nearest one or what to write instead."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any

from tenferro_tensor_core._errors import TenferroError

__all__ = ["AbsentNameError", "absent_from", "nearest"]


class AbsentNameError(TenferroError, AttributeError):
    """A module or a value has no attribute of some name; the text says the nearest name, or what to write instead.

    What to add to the message is found out when it is shown: ``hasattr`` and ``getattr`` with a default cost little.

    >>> str(AbsentNameError("module 'm' has no attribute 'meen'", lambda: nearest("meen", ["mean", "max"])))
    "module 'm' has no attribute 'meen'; did you mean 'mean'?"
    """

    def __init__(self, message: str, advice: Callable[[], str] | None = None, /, **payload: Any) -> None:
        super().__init__(message, **payload)
        self._advice = advice

    def __str__(self) -> str:
        (message,) = self.args
        advice = "" if self._advice is None else self._advice()
        return f"{message}; {advice}" if advice else message

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (str(self), self.payload)


def _again(text: str, payload: dict[str, Any]) -> AbsentNameError:
    return AbsentNameError(text, **payload)


def nearest(name: str, names: Iterable[str]) -> str:
    """The question after the name most like another one, whatever its case; empty if none is alike.

    >>> nearest("argSort", ["sort", "argsort"])
    "did you mean 'argsort'?"
    """
    from difflib import get_close_matches  # costs as much as the whole module, and few programs need it

    known = {n.lower(): n for n in names if not n.startswith("_")}
    found = get_close_matches(name.lower(), known, n=1, cutoff=0.7)
    return f"did you mean {known[found[0]]!r}?" if found else ""


def absent_from(module: str) -> Callable[[str], Any]:
    """The ``__getattr__`` of a module that has no other names: an error that says the nearest one.

    >>> absent_from("json")("dump_")
    Traceback (most recent call last):
    tenferro_tensor_core.absent.AbsentNameError: module 'json' has no attribute 'dump_'; did you mean 'dump'?
    """

    def get(name: str) -> Any:
        message = f"module {module!r} has no attribute {name!r}"
        raise AbsentNameError(message, lambda: nearest(name, import_module(module).__all__), name=name)

    return get
