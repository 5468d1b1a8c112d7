"""Errors for missing attributes, which suggest the nearest name or an alternative."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import Any

from tenferro_tensor_core._errors import TenferroError

__all__ = ["AbsentNameError", "absent_from", "advice_for", "nearest"]


def __dir__() -> list[str]:
    return __all__.copy()


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

    def advice(self) -> str:
        """The suggestion; empty if there is none."""
        return "" if self._advice is None else self._advice()

    def __str__(self) -> str:
        (message,) = self.args
        advice = self.advice()
        return f"{message}; {advice}" if advice else message

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (str(self), self.payload)


def _rebuild(text: str, payload: dict[str, Any]) -> AbsentNameError:
    return AbsentNameError(text, **payload)


def nearest(name: str, names: Iterable[str]) -> str:
    """Return a suggestion of the most similar name, ignoring case and underscores.

    A typing error is one letter that is missing, added, wrong or swapped with the next; names of eight letters or more
    may have two, and names of up to three none.

    Args:
        name: the missing name.
        names: the existing names.

    Returns:
        A question for an error text; empty if no name is similar.

    >>> nearest("argSrot", ["sort", "argsort"])
    "did you mean 'argsort'?"
    >>> nearest("export", ["lexsort", "expm1"])
    ''
    """
    asked = _plain(name)
    most = min(len(asked) // 4, 2)
    found = [(_errors(asked, _plain(n), most), n) for n in names if not n.startswith("_")]
    errors, best = min(found, default=(most + 1, ""), key=lambda pair: pair[0])
    return f"did you mean {best!r}?" if errors <= most else ""


def _plain(name: str) -> str:
    return name.lower().replace("_", "")


def _errors(a: str, b: str, most: int) -> int:
    """The number of typing errors between two words, or more than `most` (Damerau 1964)."""
    if abs(len(a) - len(b)) > most:
        return most + 1
    above: list[int] = []
    row = list(range(len(b) + 1))
    for i, x in enumerate(a):
        above, row, upper = row, [i + 1], above
        for j, y in enumerate(b):
            cost = min(above[j] + (x != y), above[j + 1] + 1, row[j] + 1)
            swapped = i and j and x == b[j - 1] and a[i - 1] == y
            row.append(min(cost, upper[j - 1] + 1) if swapped else cost)
    return row[-1]


def advice_for(instead: str) -> str:
    """Word the replacement of a name as an instruction.

    Args:
        instead: the replacement: code, or a phrase that begins with "nothing", "tr itself" or "NumPy".

    Returns:
        The text.

    >>> advice_for("tr.clip"), advice_for("nothing: layouts are not part of a value")
    ('write tr.clip', 'use nothing: layouts are not part of a value')
    """
    return f"{'use' if instead.startswith(('nothing', 'NumPy', 'tr itself')) else 'write'} {instead}"


def absent_from(module: str, instead: Mapping[str, str] | None = None) -> Callable[[str], Any]:
    """Return a ``__getattr__`` for a module that raises `AbsentNameError` with a suggestion.

    Args:
        module: ``__name__`` of the module, which has ``__all__``.
        instead: replacements of names of other libraries.

    Returns:
        The function.

    >>> absent_from("json")("dump_")
    Traceback (most recent call last):
    tenferro_tensor_core.absent.AbsentNameError: module 'json' has no attribute 'dump_'; did you mean 'dump'?
    """

    def get(name: str) -> Any:
        message = f"module {module!r} has no attribute {name!r}"
        raise AbsentNameError(message, lambda: advice(name), name=name)

    def advice(name: str) -> str:
        found = (instead or {}).get(name)
        return nearest(name, import_module(module).__all__) if found is None else advice_for(found)

    return get
