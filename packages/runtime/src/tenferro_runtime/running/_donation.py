"""Donated arguments: tensors whose memory a compiled function may reuse.

A donated tensor holds `DonatedMemory` instead of its elements; reading it raises an error that names the call. Its
memory is overwritten only if the tensor holds the only reference to a contiguous array that owns its memory. Views,
other tensors, buffers and variables of the user are references.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np

from tenferro_runtime.ir._source import Source, user_line, where
from tenferro_tensor import Spec, Tensor
from tenferro_tensor.ownership import taken_back
from tenferro_tensor_core import TenferroError
from tenferro_tensor_core.forks import new_lock


class DonatedError(TenferroError, RuntimeError):
    """A tensor was used after it was donated to a compiled function."""


class Donation(NamedTuple):
    """An argument whose memory a compiled function may reuse.

    Attributes:
        title: name of the function.
        leaves: positions among the leaves of its arguments.
    """

    title: str
    leaves: tuple[int, ...]


class DonatedMemory:
    """Replaces the elements of a donated tensor; every use raises `DonatedError`.

    Args:
        spec: spec of the tensor.
        title: name of the function.
        source: line of the call.
    """

    __slots__ = ("_given",)

    def __init__(self, spec: Spec, title: str, source: Source) -> None:
        self._given = spec, title, source

    def _refuse(self, *_: Any, **__: Any) -> Any:
        spec, title, source = self._given
        place = where(source)
        raise DonatedError(
            f"a tensor {spec!r} was donated to {title}{f' at {place}' if place else ''} (donate=), which may have "
            "overwritten it, and is used afterwards; use the result of the call, or pass a copy of the tensor",
            function=title,
        )

    __getattr__ = _refuse


def _closed() -> None:
    """Special methods are looked up in the class."""
    binary = "add sub mul truediv floordiv mod divmod pow matmul and or xor lshift rshift".split()
    names = [prefix + name for name in binary for prefix in ("", "r", "i")]
    names += "neg pos abs invert lt le gt ge eq ne len iter bool int float complex index getitem setitem".split()
    names += "array array_ufunc array_function buffer round copy deepcopy reduce_ex hash".split()
    for name in names:
        setattr(DonatedMemory, f"__{name}__", DonatedMemory._refuse)


_closed()

_LOCK: Final = new_lock()
"""Two threads may donate the same tensor; only one of them succeeds."""

_references: Final[Callable[[Any], int] | None] = getattr(sys, "getrefcount", None)


def _take(t: Any, left: Any) -> tuple[Any, int]:
    """Replace the raw array of a tensor; return the array and its reference count."""
    with _LOCK:
        raw = t._data
        t._data = left
    return raw, 0 if _references is None else _references(raw)


class _Holder:
    __slots__ = ("_data",)

    def __init__(self) -> None:
        self._data = np.empty(1)


_ALONE: Final = _take(_Holder(), None)[1]
"""Reference count of an array that only its tensor holds; depends on the version of Python."""


def taken(t: Tensor, title: str, source: Source, *, foreign: bool = False) -> tuple[Any, bool]:
    """Donate a tensor.

    Args:
        t: the tensor.
        title: name of the function.
        source: line of the call.
        foreign: whether arrays other than NumPy's may be overwritten if there are no other references.

    Returns:
        The raw array, and whether it may be overwritten.

    Raises:
        DonatedError: the tensor was donated before.
    """
    if t._data.__class__ is np.ndarray and t._data.base is not None:
        taken_back(t)
    raw, references = _take(t, DonatedMemory(t.spec, title, source))
    if raw.__class__ is DonatedMemory:
        raw._refuse()
    if raw.__class__ is not np.ndarray or references != _ALONE:
        return raw, foreign and references == _ALONE
    flags = raw.flags
    alone = flags.c_contiguous and flags.aligned and flags.owndata
    if alone and not flags.writeable:  # read-only views were exported, but no longer exist
        raw.setflags(write=True)
    return raw, alone


def giving(
    donation: Donation, over: Callable[..., Any], plain: Callable[..., Any], *, foreign: bool = False
) -> Callable[..., Any]:
    """A program as a function that takes tensors instead of raw arrays for donated inputs.

    Args:
        donation: the donated inputs.
        over: ``over(values, *raws)``, which overwrites donated arrays.
        plain: the same program without overwriting.
        foreign: whether `over` also overwrites arrays other than NumPy's.
    """

    def run(values: Any, *args: Any) -> Any:
        raws, source, free = list(args), user_line(), True
        given: list[int] = []
        for i in donation.leaves:
            try:
                raws[i], alone = taken(args[i], donation.title, source, foreign=foreign)
            except DonatedError as error:  # the call does not run, and donates nothing
                for k in given:
                    args[k]._data = raws[k]
                raise _twice(args[i], donation.title) if any(args[i] is args[k] for k in given) else error from None
            given.append(i)
            free = free and alone
        return (over if free else plain)(values, *raws)

    return run


def _twice(t: Tensor, title: str) -> DonatedError:
    return DonatedError(
        f"one tensor {t.spec!r} is given twice to {title} as a donated argument (donate=); pass a copy of it once",
        function=title,
    )
