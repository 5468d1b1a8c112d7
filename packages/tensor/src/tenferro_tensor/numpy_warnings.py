"""NumPy's floating-point warnings, attributed to the user's line.

NumPy attributes a warning to the innermost Python frame, which is one of tenferro where kernels are Python code. The
modes of ``numpy.errstate`` belong to a context, hence the detour through its mode "log" is safe with threads, and
leaves every other mode, and the filters of `warnings`, as they are.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from types import FrameType
from typing import Any, Final, TypeVar

import numpy as np

from tenferro_tensor.origins import user_frame

R = TypeVar("R")

__all__ = ["at_user_line"]


def __dir__() -> list[str]:
    return __all__.copy()


_KINDS: Final = {"divide": "divide by zero", "over": "overflow", "under": "underflow", "invalid": "invalid value"}
"""NumPy's names for a kind in `numpy.geterr`, and in messages."""

_PREFIX: Final = "Warning: "


def at_user_line(run: Callable[..., R], *args: Any) -> R:
    """Call a function so that NumPy's floating-point warnings point at the running line of user code.

    This takes microseconds: it is for calls that are known to warn, and for first calls.

    Args:
        run: the function.
        args: its arguments.

    Returns:
        Its result.

    >>> int(at_user_line(np.add, 1, 2))
    3
    """
    logged: dict[str, Any] = {kind: "log" for kind, mode in np.geterr().items() if mode == "warn"}
    frame = user_frame(2) if logged else None
    if frame is None or frame.f_globals.get("__name__") == "threading":  # a thread of ours, without user code
        return run(*args)
    with np.errstate(call=_Reissued(frame, frozenset(map(_KINDS.__getitem__, logged)), np.geterrcall()), **logged):
        return run(*args)


class _Reissued:
    """The object of `numpy.seterrcall` meanwhile: warns of some kinds, and forwards others to the user's object."""

    def __init__(self, frame: FrameType, kinds: frozenset[str], user: Any) -> None:
        self._frame, self._kinds, self._user = frame, kinds, user

    def __call__(self, kind: str, flag: int) -> None:
        self._user(kind, flag)

    def write(self, text: str) -> None:
        message = text.removeprefix(_PREFIX).rstrip("\n")
        if message.partition(" encountered in ")[0] not in self._kinds:
            self._user.write(text)
            return
        scope, code = self._frame.f_globals, self._frame.f_code
        registry = scope.setdefault("__warningregistry__", {})
        warnings.warn_explicit(
            message, RuntimeWarning, code.co_filename, self._frame.f_lineno, scope.get("__name__", "<string>"), registry
        )
