"""Errors for missing attributes, which suggest the nearest name or an alternative."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any

from tenferro_tensor_core._errors import TenferroError

__all__ = ["AbsentNameError", "absent_from", "nearest"]
__dir__ = __all__.copy


class AbsentNameError(TenferroError, AttributeError):
    """A module or a value has no such attribute; the text suggests the nearest name or an alternative.

    The suggestion is computed when the message is shown, which keeps ``hasattr`` and ``getattr`` with a default fast.

    Args:
        message: the text.
        advice: returns the suggestion.
        payload: facts for programs.

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
        return _rebuild, (str(self), self.payload)


def _rebuild(text: str, payload: dict[str, Any]) -> AbsentNameError:
    return AbsentNameError(text, **payload)


def nearest(name: str, names: Iterable[str]) -> str:
    """Return a suggestion of the most similar name, ignoring case.

    Args:
        name: the missing name.
        names: the existing names.

    Returns:
        A question for an error text; empty if no name is similar.

    >>> nearest("argSort", ["sort", "argsort"])
    "did you mean 'argsort'?"
    """
    from difflib import get_close_matches  # deferred: slow to import, rarely needed

    known = {n.lower(): n for n in names if not n.startswith("_")}
    found = get_close_matches(name.lower(), known, n=1, cutoff=0.7)
    return f"did you mean {known[found[0]]!r}?" if found else ""


def absent_from(module: str) -> Callable[[str], Any]:
    """Return a ``__getattr__`` for a module that raises `AbsentNameError` with a suggestion.

    Args:
        module: ``__name__`` of the module, which has ``__all__``.

    Returns:
        The function.

    >>> absent_from("json")("dump_")
    Traceback (most recent call last):
    tenferro_tensor_core.absent.AbsentNameError: module 'json' has no attribute 'dump_'; did you mean 'dump'?
    """

    def get(name: str) -> Any:
        message = f"module {module!r} has no attribute {name!r}"
        raise AbsentNameError(message, lambda: nearest(name, import_module(module).__all__), name=name)

    return get
