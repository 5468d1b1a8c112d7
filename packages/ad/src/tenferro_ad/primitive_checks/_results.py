"""Checks of inference and kernel: operands of any layout, size and dtype, which the kernel must not change."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from tenferro_ad.primitive_checks._subject import Subject
from tenferro_tensor.checking import LeftOut, close, copied, identical, laid_out
from tenferro_tensor_core import (
    DTYPES,
    Dim,
    InconclusiveDimError,
    MissingDTypeError,
    TenferroError,
    evaluate,
    float16,
    is_narrow,
    kind_of,
    load_bfloat16,
)

_SINGLE: Final = 2e-3
"""Allowed difference between single and double precision, relative to the largest entry."""

_NARROW: Final = 0.1
"""Allowed difference between numbers of 16 bits and double precision: a check of the formula, not of its rounding."""


def results(subject: Subject) -> Iterator[str]:
    """Check shapes and dtypes of the results against the inference."""
    wanted = subject.infer(subject.specs)
    assert wanted is not None, "check_primitive has run the inference before"
    for y, spec in zip(subject.call(subject.put([a.copy() for a in subject.arrays])), wanted, strict=True):
        raw = y._raw()
        if y.spec is not spec or tuple(raw.shape) != spec.shape or raw.dtype != spec.dtype:
            seen = f"{raw.dtype}{list(raw.shape)}"
            yield f"the kernel returned {seen}, but the inference returned {spec!r}; correct one of them"


def operands_unchanged(subject: Subject) -> Iterator[str]:
    """Check that the kernel does not write to its operands."""
    given = subject.put([a.copy() for a in subject.arrays])
    subject.run_kernel(given)
    for i, (x, before) in enumerate(zip(given, subject.arrays, strict=True)):
        if not identical(copied(x), before):
            name = _name(subject, i)
            yield f"the kernel writes to its operand {name}, which other tensors may share; work on a copy"


def repeatable(subject: Subject) -> Iterator[str]:
    """Check that equal calls return equal bits, and that no call changes the result of another."""
    first = subject.call(subject.put(subject.arrays))
    before = [copied(y) for y in first]
    again = subject.results(subject.arrays)
    if not all(map(identical, again, before)):
        yield (
            "two calls with the same operands return different results; make the kernel depend only on its operands, "
            "because compiled programs share equal steps"
        )
        return
    others = [a[::-1].copy() if a.ndim and a.dtype.kind != "b" else a for a in subject.arrays]
    try:
        subject.results(others)
        subject.results([a + a.dtype.type(1) if a.dtype.kind in "fc" else a for a in subject.arrays])
    except Exception:  # the kernel may refuse these operands
        return
    if not all(map(identical, [copied(y) for y in first], before)):
        yield "a later call changes the result of an earlier one; return newly allocated memory from every call"


def layouts(subject: Subject) -> Iterator[str]:
    """Check operands of any memory layout, and read-only ones."""
    for what, arrays in laid_out(subject.arrays):
        try:
            want = subject.results([np.array(a, order="C") for a in arrays])
        except TenferroError:
            continue  # the kernel does not take these values
        try:
            got = subject.results(arrays)
        except Exception as error:
            yield f"{what} operands make the kernel raise {_shown(error)}; accept NumPy arrays of any strides"
            continue
        if not all(map(close, got, want)):
            yield f"{what} operands lead to other results than contiguous ones; respect strides, or copy first"


def sizes(subject: Subject) -> Iterator[str]:
    """Check inference with symbolic sizes against inference with numbers."""
    specs, values = subject.open_specs()
    if not values:
        raise LeftOut("no operand has an extent above 1")
    wanted = subject.infer(subject.specs)
    assert wanted is not None
    try:
        out = subject.op.infer(*specs)
    except (InconclusiveDimError, TenferroError) as error:
        raise LeftOut(f"inference refuses symbolic sizes, so programs are specialized to sizes: {error}") from None
    except Exception as error:
        yield (
            f"inference of {', '.join(map(repr, specs))} raises {_shown(error)}; compare symbolic sizes by ask and "
            "require_equal, and compute with them as with integers"
        )
        return
    for spec, want in zip(out if isinstance(out, tuple) else (out,), wanted, strict=True):
        shape = tuple([evaluate(d, values) if isinstance(d, Dim) else d for d in spec.shape])
        if (shape, spec.dtype) != (want.shape, want.dtype):
            yield (
                f"inference returns {spec!r} for symbolic sizes, which is {spec.dtype.name}{list(shape)} here, but "
                f"{want!r} for numbers; correct the inference function"
            )


def empty(subject: Subject) -> Iterator[str]:
    """Check that operands without elements lead to results of the inferred shape, or to a typed error."""
    for n in subject.extents():
        arrays = [a[tuple([slice(0) if m == n else slice(None) for m in a.shape])] for a in subject.arrays]
        shown = ", ".join(str(a.shape) for a in arrays)
        try:
            if subject.admits(arrays) is not None:
                subject.results(arrays)
        except TenferroError as error:
            if "but its inference says" in str(error):
                yield f"operands of the shapes {shown}: {error}"
        except Exception as error:
            yield (
                f"operands of the shapes {shown} raise {_shown(error)}; return an empty result, or refuse them in the "
                "inference function with a ShapeError"
            )


def dtypes(subject: Subject) -> Iterator[str]:
    """Check that every dtype that inference admits has a kernel, and that kernels agree up to rounding."""
    reference = subject.results(subject.arrays)
    kinds = {a.dtype.kind for a in subject.arrays}
    for dtype in (*DTYPES, *_narrow()):
        name = dtype.name
        arrays = subject.cast(name)
        try:
            if subject.admits(arrays) is None:
                continue
            got = subject.results(arrays)
        except TenferroError as error:
            if "but its inference says" in str(error):
                yield f"{name}: {error}"
            continue
        except Exception as error:
            yield f"{name} operands raise {_shown(error)}, though the inference admits them; refuse them there"
            continue
        if kind_of(dtype) in kinds and kind_of(dtype) in "fc":
            for y, want in zip(got, reference, strict=True):
                if kind_of(y.dtype) == want.dtype.kind and want.dtype.kind in "fc" and y.shape == want.shape:
                    if not close(y.astype(want.dtype), want, _NARROW if is_narrow(dtype) else _SINGLE):
                        yield f"{name} operands lead to other numbers than {want.dtype.name} ones; correct the kernel"


def _narrow() -> list[np.dtype[Any]]:
    """The floating-point numbers of 16 bits that this installation has."""
    try:
        return [float16, load_bfloat16()]
    except MissingDTypeError:
        return [float16]


def _name(subject: Subject, position: int) -> str:
    names = subject.op.primitive.operands
    return names[min(position, len(names) - 1)].lstrip("*")


def _shown(error: Exception) -> str:
    return f"{type(error).__name__} ({error})"
