"""Tracebacks without the frames of this library, and what public functions say about wrong keywords.

An error that leaves the library shows the lines of its users. One line stands for the frames that are hidden;
``TENFERRO_TRACEBACK=full`` in the environment keeps them all, for post-mortem debugging and for reports of bugs.
Errors that are no `TenferroError` and come from the library itself are such bugs, and keep their frames.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from functools import wraps
from types import FrameType, FunctionType, TracebackType
from typing import Any, Final, ParamSpec, TypeVar

from tenferro_tensor_core._errors import TenferroError

__all__ = ["SYNONYMS", "KeywordError", "boundary", "hide_frames", "hiding", "refused"]


def __dir__() -> list[str]:
    return __all__.copy()


VARIABLE: Final = "TENFERRO_TRACEBACK"

OURS: Final = frozenset(
    f"tenferro_{part}" for part in "ad cpu einsum fft gpu linalg runtime tensor tensor_core xla".split()
)
"""The packages whose frames are hidden; a plug-in with a similar name is not among them."""

SYNONYMS: Final[dict[str, tuple[str, ...]]] = {
    "D": ("k",),
    "a": ("x",),
    "a_max": ("max",),
    "a_min": ("min",),
    "argnum": ("argnums",),
    "axes": ("axis",),
    "axis": ("axes",),
    "axisa": ("axis",),
    "bond_dim": ("k",),
    "chi": ("k",),
    "cutoff": ("rtol", "atol"),
    "ddof": ("correction",),
    "dim": ("axis", "axes"),
    "dim0": ("axis1",),
    "dim1": ("axis2",),
    "dims": ("axes", "axis"),
    "donate_argnums": ("donate",),
    "end": ("stop",),
    "eps": ("rtol", "atol"),
    "in_dims": ("in_axes",),
    "input": ("x",),
    "keep_dims": ("keepdims",),
    "keepdim": ("keepdims",),
    "kind": ("stable",),
    "lower": ("upper", "UPLO"),
    "max_bond": ("k",),
    "max_rank": ("k",),
    "maxdim": ("k",),
    "memory_limit": ("memory_budget",),
    "n_components": ("k",),
    "newshape": ("shape",),
    "niter": ("iterations",),
    "norm_type": ("ord",),
    "num_steps": ("length",),
    "other": ("x2",),
    "out_dims": ("out_axes",),
    "p": ("ord",),
    "path": ("optimize",),
    "q": ("k",),
    "rank": ("k",),
    "rcond": ("rtol",),
    "repeats": ("reps",),
    "rng": ("key",),
    "seed": ("key",),
    "size": ("shape",),
    "some": ("full_matrices",),
    "steps": ("num",),
    "tensor": ("x",),
    "tol": ("rtol", "atol"),
    "unbiased": ("correction",),
    "upper": ("lower",),
}
"""Parameters that keywords of NumPy, JAX, PyTorch, opt_einsum and quimb stand for, where a function has them."""

_P = ParamSpec("_P")
_R = TypeVar("_R")


class KeywordError(TenferroError, TypeError):
    """A function has no such keyword; the message names the one that was probably meant, or lists all."""


def hide_frames(error: BaseException) -> None:
    """Hide the frames of this library in the traceback of an error, and in those of its causes.

    Call it in an ``except`` clause before a bare ``raise``: this hides the frame of that clause as well.

    Args:
        error: the error.

    >>> try:
    ...     tr.ones(2) + tr.ones(3)
    ... except ValueError as error:
    ...     error.__traceback__.tb_next.tb_frame.f_code.co_filename
    '<tenferro>'
    """
    if os.environ.get(VARIABLE) == "full":
        return
    seen: set[int] = set()
    while id(error) not in seen:
        seen.add(id(error))
        error.__traceback__ = _shortened(error, error.__traceback__)
        following = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
        if following is None:
            return
        error = following


def _shortened(error: BaseException, whole: TracebackType | None) -> TracebackType | None:
    kept, hidden, last = [], 0, ""
    trace = whole
    while trace is not None:
        last = trace.tb_frame.f_globals.get("__name__", "")
        if last == _HIDDEN:
            hidden += trace.tb_frame.f_locals["count"]
        elif last.partition(".")[0] in OURS:
            hidden += 1
        else:
            kept.append(trace)
        trace = trace.tb_next
    if not hidden or (not isinstance(error, TenferroError) and last != _HIDDEN and last.partition(".")[0] in OURS):
        return whole
    for node in reversed(kept):
        trace = TracebackType(trace, node.tb_frame, node.tb_lasti, node.tb_lineno)
    frame = _standing_for(hidden)
    return TracebackType(trace, frame, frame.f_lasti, 1)


_HIDDEN: Final = "tenferro_tensor_core.hidden_frames"


def _placeholder(count: int, __tracebackhide__: bool) -> Iterator[None]:  # so that pytest and IPython leave it out
    yield


_placeholders: Final[dict[int, Any]] = {}
"""Generators by number of frames; they stay suspended, since a finished one clears the variables of its frame."""


def _standing_for(count: int) -> FrameType:
    """A frame whose line in a traceback says how many frames are hidden; that of a generator refers to no caller."""
    if count not in _placeholders:
        name = f"{count} hidden frame{'s' * (count > 1)}, which {VARIABLE}=full shows"
        code = _placeholder.__code__.replace(co_filename="<tenferro>", co_name=name, co_qualname=name, co_firstlineno=0)
        made = FunctionType(code, {"__name__": _HIDDEN, "__builtins__": {}})(count, True)
        next(made)
        _placeholders[count] = made
    frame: FrameType = _placeholders[count].gi_frame
    return frame


def hiding(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Decorate a function so that its errors hide frames of this library.

    A call costs a tenth of a microsecond more; write ``try`` and `hide_frames` in functions that take few.

    Args:
        function: the function.

    Returns:
        A function with its signature.
    """

    @wraps(function)
    def call(*args: _P.args, **named: _P.kwargs) -> _R:
        try:
            return function(*args, **named)
        except Exception as error:
            hide_frames(error)
            raise

    return call


def boundary(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Decorate a public function as `hiding` does; errors about a keyword that it lacks also name the right one.

    Args:
        function: the function.

    Returns:
        A function with its signature.

    >>> boundary(lambda x, axis=None: x)(1, dim=0)
    Traceback (most recent call last):
    tenferro_tensor_core.tracebacks.KeywordError: <lambda>() got an unexpected keyword argument 'dim'; write axis=
    """

    @wraps(function)
    def call(*args: _P.args, **named: _P.kwargs) -> _R:
        try:
            return function(*args, **named)
        except Exception as error:
            better = refused(function, error, named)
            if better is error:
                raise
            try:
                raise better from None
            except KeywordError:
                hide_frames(better)
                raise

    return call


def refused(function: Any, error: Exception, keywords: Iterable[str] | None) -> Exception:
    """The error that users of a public function see.

    Args:
        function: the function.
        error: the error that its call raised.
        keywords: names of the keywords of the call.

    Returns:
        An error about a keyword that the function lacks, if this is what Python's error is about; else the same error,
        without the frames of this library.

    >>> refused(len, ValueError("the same"), ())
    ValueError('the same')
    """
    if error.__class__ is TypeError and keywords:
        text = f"{function.__qualname__}() got an unexpected keyword argument "
        for name in keywords:
            if str(error).startswith(f"{text}{name!r}"):
                return keyword_error(function, name)
    hide_frames(error)
    return error


def keyword_error(function: Any, name: str) -> KeywordError:
    """The error for a keyword that a function does not have.

    Args:
        function: the function.
        name: the keyword.

    Returns:
        The error, whose text names another keyword.
    """
    from inspect import signature

    from tenferro_tensor_core.absent import nearest

    parameters = signature(function).parameters.values()
    known = [p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    positional = [p.name for p in parameters if p.kind is p.POSITIONAL_ONLY]
    meant = SYNONYMS.get(name, ())
    right = [f"{p}=" for p in meant if p in known]
    first = [p for p in meant if p in positional]
    if right:
        advice = f"write {' or '.join(right)}"
    elif first:
        advice = f"pass {first[0]} by position"
    else:
        advice = nearest(name, known) or (f"it takes {', '.join(known)}" if known else "it takes no keywords")
    message = f"{function.__qualname__}() got an unexpected keyword argument {name!r}; {advice}"
    return KeywordError(message, function=function.__qualname__, keyword=name)
