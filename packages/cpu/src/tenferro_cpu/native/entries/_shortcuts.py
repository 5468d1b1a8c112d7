"""Compiled short cuts of eager values: operator methods that reach a kernel without the interpreter."""

import ctypes
import sys
from collections.abc import Callable
from functools import cache
from types import MemberDescriptorType
from typing import Any, Final

from tenferro_cpu.native.entries import _enter_text as enters
from tenferro_cpu.native.entries._entry import machine
from tenferro_cpu.native.entries._operators_text import DECLARED, PAYLOAD, Offsets, shared_text, tensor_text, thunks
from tenferro_cpu.native.machine._jit import engine
from tenferro_cpu.native.memory import _pool
from tenferro_cpu.native.python._builtin import FASTCALL, MethodDef, builtin, definition
from tenferro_cpu.native.python._capi import symbols
from tenferro_cpu.native.python._layout import Layout, word
from tenferro_tensor import Op, Tensor
from tenferro_tensor import dispatch as _select
from tenferro_tensor._plan import Plan
from tenferro_tensor._shortcuts import Entering, Plans, Shortcuts, offer
from tenferro_tensor_core.forks import new_lock

_ONE_ARGUMENT: Final = 0x8
_TENSOR: Final = ("tensor_operator",) * 20 + ("tensor_reflected",) * 20 + ("tensor_unary", "op_call")

_new_method: Final = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object, ctypes.c_void_p)(
    ("PyDescr_NewMethod", ctypes.pythonapi)
)


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


class _Thunks:
    """C functions for method descriptors, each with a place for its payload; places are given out once."""

    def __init__(self, text: str, generics: tuple[str, ...]) -> None:
        names = [f"thunk_{i}" for i in range(len(generics))]
        known = symbols()
        assert known is not None
        payloads, *functions = engine().functions(text + thunks(list(generics)), ["payloads", *names], known, level=2)
        self._payloads = ctypes.PYFUNCTYPE(ctypes.c_void_p)(payloads)()
        self._free: dict[str, list[int]] = {g: [i for i, h in enumerate(generics) if h == g] for g in generics}
        self._functions = functions
        self._lock = new_lock()
        self._kept: list[Any] = []

    def method(self, generic: str, cls: type, name: str, fields: dict[str, Any]) -> Any:
        """A method descriptor, or None where all places are taken; integers are written as they are."""
        with self._lock:
            if not self._free[generic]:
                return None
            place = self._free[generic].pop()
        numbers = [fields.get(field, 0) for field in PAYLOAD.names]
        payload = (ctypes.c_int64 * len(numbers))(*[n if n.__class__ is int else id(n) for n in numbers])
        flags = FASTCALL if generic == "op_call" else _ONE_ARGUMENT
        definition = MethodDef(name.encode(), self._functions[place], flags, None)
        self._kept.append((payload, fields, definition))
        ctypes.c_void_p.from_address(self._payloads + 8 * place).value = ctypes.addressof(payload)
        return _new_method(cls, ctypes.addressof(definition))


class NativeShortcuts(Shortcuts):
    """Short cuts as machine code.

    Args:
        tensor: slots of concrete tensors and of forward plans.
    """

    def __init__(self, tensor: Offsets) -> None:
        self._tensor = tensor
        self._thunks = _Thunks(DECLARED + shared_text(tensor) + tensor_text(tensor), _TENSOR)
        self._enter: MethodDef | None = None
        self._common = {
            "tensor": Tensor,
            "scopes": vars(_select),
            "plan": Plan,
            "scopes_name": _key(vars(_select), "open_scopes"),
            "zero": id(0),
        }

    def tensor_operator(
        self, name: str, method: Callable[..., Any], plans: Plans, *, reflected: bool
    ) -> Callable[..., Any]:
        """See `Shortcuts`."""
        generic = "tensor_reflected" if reflected else "tensor_operator"
        fields = {**self._common, "same": plans.same, "plans": plans.pairs, "method": method}
        return self._thunks.method(generic, Tensor, name, fields) or method

    def tensor_unary(self, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        """See `Shortcuts`."""
        fields = {**self._common, "op": Op, "method": method}
        return self._thunks.method("tensor_unary", Tensor, name, fields) or method

    def op_call(self, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        """See `Shortcuts`."""
        fields = {**self._common, "op": Op, "method": method, "unary_name": sys.intern("_unary")}
        return self._thunks.method("op_call", Op, name, fields) or method

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
    plan = slots("plan", Plan, "run out many") if layout is not None else None
    op = slots("op", Op, "one same plans") if layout is not None else None
    if layout is None or tensor is None or plan is None or op is None:
        return False
    offer(NativeShortcuts(Offsets(tensor | plan | op | {"tuple": layout.tuple_items})))
    return True
