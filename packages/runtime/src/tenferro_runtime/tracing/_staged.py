"""`staged`: a function of traced values as a program."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, TypeVar

from tenferro_runtime.ir._program import Program
from tenferro_runtime.tracing._builder import Builder
from tenferro_runtime.tracing._staging import stage
from tenferro_tensor import Spec
from tenferro_tensor_core import Decisions

T = TypeVar("T")


class Staged(NamedTuple):
    """A function as a program.

    Attributes:
        program: takes the declared inputs, then the captured values.
        captured: values of outer traces and derivatives that the function uses.
        there: positions of the results that are not ``None``; the program returns these.
    """

    program: Program
    captured: tuple[Any, ...]
    there: tuple[int, ...]


def staged(
    f: Callable[..., Sequence[Any]],
    specs: Sequence[Any],
    builder: Builder | None = None,
    *,
    weak: Sequence[type | None] | None = None,
    alone: bool = False,
    decide: bool = False,
    examples: Mapping[str, int] | None = None,
) -> Staged:
    """Record a function as a program.

    Args:
        f: returns a sequence of values, numbers and ``None``.
        specs: for each argument of `f` the spec of an input, or another value, which `f` takes as it is.
        builder: records the program; by default a new builder.
        weak: classes of the Python numbers that inputs represent.
        alone: also record operations on outside values only; otherwise they run once, where they belong.
        decide: answer questions about symbolic sizes by `examples`.
        examples: example values of symbolic sizes.

    Returns:
        The program and the captured values.

    >>> import tenferro_runtime as tr
    >>> staged(lambda x: [x * x, None], [tr.asarray([1.0, 2.0]).spec]).there
    (0,)
    """
    builder = Builder() if builder is None else builder
    try:
        classes = [None] * len(specs) if weak is None else weak
        inputs = [builder.input(s, None, w) if s.__class__ is Spec else s for s, w in zip(specs, classes)]
        if alone:
            f = within(stage(builder), f)
        if decide:
            f = within(Decisions(examples or {}, builder), f)
        results = f(*inputs)
        there = tuple([i for i, y in enumerate(results) if y is not None])
        program = builder.close([results[i] for i in there], examples=examples)
    finally:
        builder.closed = True
    return Staged(program, tuple([value for value, _ in builder.captured]), there)


def within(scope: AbstractContextManager[Any], f: Callable[..., T]) -> Callable[..., T]:
    """A function that runs inside a scope."""

    def run(*xs: Any) -> T:
        with scope:
            return f(*xs)

    return run
