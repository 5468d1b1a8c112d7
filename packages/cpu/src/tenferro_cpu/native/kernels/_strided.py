"""Calls planned in machine code: operands of any strides, without a plan for each shape."""

import struct
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any, Final

import numpy as np

from tenferro_cpu.native.kernels._combined_text import MOST
from tenferro_cpu.native.kernels._driver import GRAIN, PAYS, driver_addresses
from tenferro_cpu.native.kernels._fused_entry import NEVER, unpooled
from tenferro_cpu.native.kernels._numbers_text import FLOAT32, FLOAT64, INT64, NONE
from tenferro_cpu.native.kernels._strided_text import AXES, FIXED, HEAD, OPERAND, STRIDED, UNIT, strided_text
from tenferro_cpu.native.machine._jit import engine
from tenferro_cpu.native.memory._pool import pool
from tenferro_cpu.native.python._builtin import FASTCALL, MethodDef, builtin, definition
from tenferro_cpu.native.python._interpreter import interpreter
from tenferro_cpu.native.python._layout import SCALARS
from tenferro_cpu.native.python._operand_text import WATCHED, architecture
from tenferro_cpu.native.threads._team import team
from tenferro_tensor.device_model import Access, KernelIR
from tenferro_tensor_core.forks import new_lock

VARIANTS: Final = 32
"""Ways to lie along a row that one table has machine code for; others are planned by the fallback."""

_PYTHON: Final = {"float64": FLOAT64, "float32": FLOAT32, "int64": INT64}

_BITS: Final = {Access.UNIT: UNIT, Access.FIXED: FIXED, Access.STRIDED: STRIDED}


class Variants:
    """Machine code by how operands lie along a row, where machine code finds it."""

    def __init__(self) -> None:
        self._words = np.zeros((VARIANTS + 1, 2), np.int64)
        self._count = 0
        self._lock = new_lock()

    @property
    def address(self) -> int:
        """Where the table is; it lives as long as this object."""
        return self._words.ctypes.data

    def add(self, accesses: Sequence[Access], code: int) -> None:
        """Let calls for operands and results that lie so be `code`; there are none for more than `MOST`."""
        if len(accesses) > MOST:
            return
        key = 0
        for access in accesses:
            key = key << 2 | _BITS[access]
        with self._lock:
            if self._count < VARIANTS and key not in self._words[: self._count, 0]:
                self._words[self._count, 0] = key
                self._words[self._count, 1] = code  # last: calls stop at a row without code
                self._count += 1


@cache
def _definition() -> MethodDef | None:
    have, helpers = interpreter(), team()
    if have is None or helpers is None:
        return None
    drive, piece = driver_addresses()
    known = have.symbols | helpers.symbols | {"tenferro_drive": drive, "tenferro_drive_piece": piece}
    text = strided_text(engine().host.triple, have.tuple_items)
    return definition("strided", engine().function(text, "strided", known, level=2), FASTCALL)


def strided(
    kernel: KernelIR,
    variants: Variants,
    fallback: Callable[..., Any],
    *,
    cost: float,
    axes: Sequence[tuple[int, ...]] | None = None,
    rank: int = 0,
    watch: bool = False,
    scan: bool = False,
    most: int | None = None,
) -> Callable[..., Any]:
    """A built-in function of arrays of any strides, or `fallback` where it cannot be had.

    Args:
        kernel: an element-wise kernel.
        variants: its machine code; what is not there yet goes to the fallback.
        fallback: called with the same arguments for everything else.
        cost: nanoseconds that one element takes.
        axes: for each operand the axes of the space that its own axes are; by default the last ones of the largest
            operand.
        rank: axes of the space, where `axes` are given.
        watch: let the fallback compute once more where the kernel divided by zero, overflowed or made a NaN.
        scan: the same where the only result is not finite.
        most: larger spaces go to the fallback.
    """
    made = _definition()
    if (
        made is None
        or len(kernel.inputs) + len(kernel.written) > MOST
        or rank > AXES
        or (axes is not None and not rank)
    ):
        return fallback
    items = [o.dtype.itemsize for o in (*kernel.inputs, *kernel.written)]
    part = kernel.written[0].dtype
    shared = NEVER if watch or scan else int(PAYS / cost)
    warned = [
        WATCHED[architecture(engine().host.triple)] if watch else 0,
        part.itemsize // (2 if part.kind == "c" else 1) if scan else 0,
    ]
    numbers = [shared, max(1, int(GRAIN / cost)), *warned]
    make = partial(_builtin, made, kernel, variants, axes, rank, numbers)
    if most is not None:
        return make(min(most, unpooled(kernel.written)), fallback, fallback)
    have, large = pool(), fallback
    if have is not None:
        # Beyond what the caches hold the fallback writes past them.
        large = have.giving_way(make(engine().host.near_bytes // sum(items), fallback, fallback))
    return make(unpooled(kernel.written), fallback, large)


def _builtin(
    made: MethodDef,
    kernel: KernelIR,
    variants: Variants,
    axes: Sequence[tuple[int, ...]] | None,
    rank: int,
    more: list[int],
    most: int,
    fallback: Callable[..., Any],
    large: Callable[..., Any],
) -> Callable[..., Any]:
    operands = [*kernel.inputs, *kernel.written]
    numbers = [variants.address, len(kernel.inputs), len(kernel.written), rank, most, *more]
    kept: list[Any] = [variants]
    every = tuple(range(rank))
    for operand, own in zip(operands, [*(axes or ()), *[every] * len(operands)]):
        number = axes is None or not own
        scalar = operand.dtype.type if number and operand.dtype.name in SCALARS else None
        places = sum((own.index(a) if a in own else 255) << 8 * a for a in every)
        python = _PYTHON.get(operand.dtype.name, NONE) if axes is None else NONE
        numbers += [id(operand.dtype), operand.dtype.itemsize, len(own), 0 if scalar is None else id(scalar)]
        numbers += [python, places]
        kept += [operand.dtype, scalar]
    assert len(numbers) == len(HEAD.names) + len(OPERAND.names) * len(operands)
    receiver = (struct.pack(f"={len(numbers)}Q", *numbers), fallback, tuple(kept), large)
    return builtin(made, receiver)  # type: ignore[no-any-return]
