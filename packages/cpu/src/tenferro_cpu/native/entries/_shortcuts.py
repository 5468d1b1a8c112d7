"""Compiled short cuts: the way into compiled functions, and copies in pooled memory."""

import ctypes
from collections.abc import Callable
from functools import cache
from types import MemberDescriptorType
from typing import Any

from tenferro_cpu.native.entries import _enter_text as enters
from tenferro_cpu.native.entries._entry import machine
from tenferro_cpu.native.entries._operators_text import DECLARED, Offsets, shared_text
from tenferro_cpu.native.machine._jit import engine
from tenferro_cpu.native.memory import _pool
from tenferro_cpu.native.python._builtin import FASTCALL, MethodDef, builtin, definition
from tenferro_cpu.native.python._capi import symbols
from tenferro_cpu.native.python._layout import Layout, word
from tenferro_tensor import Tensor
from tenferro_tensor import dispatch as _select
from tenferro_tensor._shortcuts import Entering, Shortcuts, offer


def slots(name: str, cls: type, names: str) -> Offsets | None:
    """Offsets of the slots of a class, each tried out; None where the class keeps them in another way."""
    probe: Any = object.__new__(cls)
    found = Offsets()
    for slot in names.split():
        descriptor = getattr(cls, slot, None)
        if not isinstance(descriptor, MemberDescriptorType):
            return None
        offset = ctypes.c_int64.from_address(word(id(descriptor) + 40) + 16).value
        mark = object()
        descriptor.__set__(probe, mark)
        if not 0 < offset < cls.__basicsize__ or word(id(probe) + offset) != id(mark):
            return None
        found[f"{name}.{slot}"] = offset
    return found


class NativeShortcuts(Shortcuts):
    """Short cuts as machine code.

    Args:
        tensor: slots of concrete tensors.
    """

    def __init__(self, tensor: Offsets) -> None:
        self._tensor = tensor
        self._enter: MethodDef | None = None
        self._common = {
            "tensor": Tensor,
            "scopes": vars(_select),
            "scopes_name": _key(vars(_select), "open_scopes"),
            "zero": id(0),
        }

    def copied(self, array: Any) -> Any:
        """See `Shortcuts`."""
        return _pool.pooled_replay(_copy)(array)

    def entry(self, entering: Entering) -> Callable[..., Any] | None:
        """See `Shortcuts`."""
        if entering.arguments > enters.MOST:
            return None
        if self._enter is None:
            tiered = slots("tiered", entering.tiered, "run")
            if tiered is None:
                return None
            at = Offsets(self._tensor | tiered)
            text = DECLARED + enters.DECLARED + shared_text(at) + enters.enter_text(at)
            self._enter = definition("enter", engine().function(text, "enter", symbols(), level=2), FASTCALL)
        payload = tuple(
            [self._common[name] if name in self._common else getattr(entering, name) for name in enters.ENTER.names]
        )
        made: Callable[..., Any] = builtin(self._enter, payload)
        return made


def _copy(array: Any) -> Any:
    return array.copy(order="K")


def _key(table: dict[str, Any], name: str) -> str:
    """The key of a namespace itself, which is found by identity."""
    return next(k for k in table if k == name)


@cache
def install() -> bool:
    """Offer short cuts to all eager values, once; False where they cannot be had."""
    layout = Layout.found() if machine() is not None else None
    tensor = slots("tensor", Tensor, "_data spec") if layout is not None else None
    if layout is None or tensor is None:
        return False
    offer(NativeShortcuts(Offsets(tensor | {"tuple": layout.tuple_items})))
    return True
