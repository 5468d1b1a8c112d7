"""`elementwise`: a kernel as a built-in function of arrays, at a tenth of a ufunc's cost."""

import struct
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import numpy as np

from tenferro_cpu.native.entries._entry_text import entry_text
from tenferro_cpu.native.machine._jit import engine
from tenferro_cpu.native.python import _operand_text as text
from tenferro_cpu.native.python._builtin import FASTCALL, MethodDef, builtin, definition
from tenferro_cpu.native.python._interpreter import interpreter
from tenferro_cpu.native.python._layout import SCALARS
from tenferro_cpu.native.threads._team import team
from tenferro_tensor_core import BackendUnavailableError

_FLOATING: Final = {"float64": text.F64, "float32": text.F32, "complex128": text.C128, "complex64": text.C64}

LARGEST: Final = 2**62


@dataclass(frozen=True, slots=True)
class _Machine:
    """The compiled entries by number of operands; definitions live as long as the functions made from them."""

    definitions: dict[int, MethodDef]
    watched: int

    def function(self, nin: int, payload: tuple[Any, ...]) -> Any:
        return builtin(self.definitions[nin], payload)


@cache
def machine() -> _Machine | None:
    """The entries of this process, or None where they cannot be had: no compiler, or another object layout."""
    have = interpreter()
    if have is None:
        return None
    try:
        triple = engine().host.triple
    except BackendUnavailableError:  # a compiler that is too old
        return None
    helpers = team()
    assert helpers is not None  # there are symbols
    known, names = have.symbols | helpers.symbols, ("call_1", "call_2")
    addresses = engine().functions(entry_text(triple, have.tuple_items), names, known, level=2)
    definitions = {nin: definition("native", address, FASTCALL) for nin, address in enumerate(addresses, 1)}
    return _Machine(definitions, text.WATCHED[text.architecture(triple)])


def elementwise(
    kernel: int,
    nin: int,
    dtype: np.dtype[Any],
    fallback: Callable[..., Any],
    *,
    out: np.dtype[Any] | None = None,
    array_scalar: int = 0,
    scalar_array: int = 0,
    watch: bool = False,
    scan: bool = False,
    limit: int = LARGEST,
    large: Callable[..., Any] | None = None,
    past: tuple[int, int, int] = (0, 0, 0),
    shared: int = LARGEST,
) -> Callable[..., Any]:
    """A built-in function ``f(x[, y][, out])`` that runs a kernel on arrays.

    C-contiguous arrays of one shape, with axes, of `dtype` in the machine's byte order go to the kernel; so does one
    array with a number, where there is a kernel for it. Everything else is handed to `fallback` as it came. Above
    32768 elements the kernel runs without the interpreter lock.

    Args:
        kernel: address of ``void(void **data, int64_t n, int64_t *strides)``: pointers to the operands, then to the
            result; `n` elements; no strides are given.
        nin: number of operands, 1 or 2.
        dtype: dtype of the operands.
        fallback: called with the same arguments where the kernel does not fit; lives as long as the function.
        out: dtype of the result; by default `dtype`.
        array_scalar: address of the kernel whose second operand points to a single element.
        scalar_array: address of the kernel whose first operand points to a single element.
        watch: let the fallback compute once more where the kernel divided by zero, overflowed or made a NaN, so that
            NumPy says so in its way.
        scan: the same where the kernel wrote an infinity or a NaN, for kernels that make them without the processor
            noticing; the result is of floating point.
        limit: larger arrays go to `large`.
        large: by default the fallback.
        past: addresses of the three kernels with stores past the caches, for results aligned to 64 bytes; or zeros.
        shared: elements from which the thread team is called.

    Returns:
        The function, or `fallback` itself where entries cannot be had.
    """
    have = machine()
    if have is None:
        return fallback
    dtype = np.dtype(dtype)
    result = dtype if out is None else np.dtype(out)
    scalar = dtype.type if dtype.name in SCALARS else None
    kind, low, high = _FLOATING.get(dtype.name, text.NONE), 0, 0
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        kind, low, high = text.INT, int(limits.min), min(int(limits.max), 2**63 - 1)
    part = result.itemsize // (2 if result.kind == "c" else 1)
    numbers = struct.pack(
        "=7Q2q9Q",
        kernel, array_scalar, scalar_array, id(dtype), id(result), kind, 0 if scalar is None else id(scalar), low, high,
        have.watched if watch else 0, dtype.itemsize, result.itemsize, part if scan else 0, limit,
        shared, *past,
    )  # fmt: skip
    made: Callable[..., Any] = have.function(nin, (numbers, fallback, dtype, result, scalar, large or fallback))
    return made
