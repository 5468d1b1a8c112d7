"""Planned reductions: for operands of known shapes and strides one built-in function that makes the results and runs.

The interpreter finds the function by shapes and strides; the function reads where the operands begin, and writes that
into a copy of the words that the driver was given for this layout. What it does not take, operands of other dtypes or
misaligned ones, goes to the fallback.
"""

import struct
from collections.abc import Callable, Sequence
from functools import cache
from math import prod
from typing import Any, Final

from tenferro_cpu.native.kernels._body import Body, Fields, Loop, item
from tenferro_cpu.native.kernels._combined_text import MOST
from tenferro_cpu.native.kernels._driver import PAYS, Step, driver_addresses, words
from tenferro_cpu.native.kernels._fused_entry import unpooled
from tenferro_cpu.native.kernels._fused_entry_text import OBJECTS
from tenferro_cpu.native.kernels._results_text import give_results
from tenferro_cpu.native.kernels._run_text import ALONE
from tenferro_cpu.native.machine._jit import engine
from tenferro_cpu.native.python._builtin import FASTCALL, MethodDef, builtin, definition
from tenferro_cpu.native.python._interpreter import interpreter
from tenferro_cpu.native.python._layout import ALIGNED, BYTES, DATA, DESCR, FLAGS
from tenferro_tensor.device_model import Operand

LARGEST: Final = 256
"""Words of the longest block, which is copied to the stack."""

HEAD: Final = Fields("kernel inputs outputs words rank unlocked")
"""Numbers before the descriptors of operands and results, the extents of the results and the words of the driver."""

_DECLARED: Final = OBJECTS + "declare void @tenferro_drive(ptr, ptr)\n"


def _text(tuple_items: int) -> str:
    b = Body("ptr @laid(ptr %self, ptr %args, i64 %nargs)")
    block, made = b.variable(f"[{LARGEST} x i64]"), b.variable(f"[{MOST} x ptr]")
    k, d = b.variable("i64"), b.variable("i64")
    numbers = b.at(b.load("%self", tuple_items), BYTES)
    kernel = b.load(numbers, HEAD.kernel)
    nin, nout, count, rank, unlocked = (
        b.load(numbers, at, "i64") for at in (HEAD.inputs, HEAD.outputs, HEAD.words, HEAD.rank, HEAD.unlocked)
    )
    b.guard(b.get(f"icmp eq i64 %nargs, {nin}"), "refuse")
    descrs = b.at(numbers, 8 * len(HEAD.names))
    extents = item(b, item(b, descrs, nin), nout)
    plan = item(b, extents, rank)
    with Loop(b, k, count, "word") as at:
        b.store(b.load(item(b, plan, at), kind="i64"), item(b, block, at), kind="i64")
    pointers = b.at(block, 32)
    with Loop(b, k, nin, "operand") as at:
        x = b.load(item(b, "%args", at))
        b.require([(b.type_of(x), "@tenferro_ndarray")], "refuse")
        b.require([(b.load(x, DESCR), b.load(item(b, descrs, at)))], "refuse")
        aligned = b.get(f"and i32 {b.load(x, FLAGS, 'i32')}, {ALIGNED}")
        b.guard(b.get(f"icmp ne i32 {aligned}, 0"), "refuse")
        b.store(b.load(x, DATA), item(b, pointers, at))
    axes = b.get(f"trunc i64 {rank} to i32")
    with Loop(b, k, nout, "result") as at:
        slot = b.get(f"add i64 {at}, {nin}")
        descr = b.load(item(b, descrs, slot))
        b.hold(descr)
        out = b.call("tenferro_new_from_descr", "@tenferro_ndarray", descr, f"i32 {axes}", extents, "null", "null",
                     "i32 0", "null")  # fmt: skip
        b.present(out, "failed")
        b.store(out, item(b, made, at))
        b.store(b.load(out, DATA), item(b, pointers, slot))
    b.branch(b.get(f"icmp ne i64 {unlocked}, 0"), "release", "keep")
    b.label("keep")
    b.call("tenferro_drive", kernel, block, result="void")
    b.jump("finite")
    b.label("release")
    thread = b.call("tenferro_save_thread")
    b.call("tenferro_drive", kernel, block, result="void")
    b.call("tenferro_restore_thread", thread, result="void")
    b.jump("finite")
    give_results(b, nout, made, (k, d), tuple_items)
    b.label("refuse")
    b.give(b.call("tenferro_vectorcall", b.load("%self", tuple_items + 8), "%args", "i64 %nargs", "null"))
    return _DECLARED + b.text()


@cache
def _definition() -> MethodDef | None:
    have = interpreter()
    if have is None:
        return None
    known = have.symbols | {"tenferro_drive": driver_addresses()[0]}
    return definition("laid", engine().function(_text(have.tuple_items), "laid", known, level=2), FASTCALL)


def laid(
    step: Step,
    inputs: Sequence[Operand],
    written: Sequence[Operand],
    shape: tuple[int, ...],
    fallback: Callable[..., Any],
    *,
    cost: float,
) -> Callable[..., Any] | None:
    """The function for a layout, or None where calls are too large for it, or it cannot be had.

    Args:
        step: how the driver runs for the layout.
        inputs: the operands.
        written: the results, fresh and contiguous.
        shape: extents of the results.
        fallback: called with the same operands for everything else.
        cost: nanoseconds that one element takes.
    """
    elements = step.elements
    block = words((0,) * (len(inputs) + len(written)), step)
    large = prod(shape) > unpooled(written) or cost * elements > PAYS
    made = None if large or len(block) > LARGEST or len(inputs) + len(written) > MOST else _definition()
    if made is None:
        return None
    descrs = [o.dtype for o in (*inputs, *written)]
    numbers = [step.kernel, len(inputs), len(written), len(block), len(shape), elements > ALONE]
    numbers += [*map(id, descrs), *shape, *block]
    receiver = (struct.pack(f"={len(numbers)}q", *numbers), fallback, tuple(descrs))
    return builtin(made, receiver)  # type: ignore[no-any-return]


def layout_of(arrays: Sequence[Any]) -> Any:
    """What tells layouts apart, or None where an operand is no array."""
    try:
        return tuple([(x.shape, x.strides) for x in arrays])
    except AttributeError:
        return None
