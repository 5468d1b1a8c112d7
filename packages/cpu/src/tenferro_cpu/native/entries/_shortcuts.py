"""Compiled short cuts of eager values: operator methods that reach a kernel without the interpreter."""

import ctypes
import struct
import sys
from collections.abc import Callable
from functools import cache
from types import MemberDescriptorType
from typing import Any, Final

from tenferro_cpu.native.entries import _enter_text as enters
from tenferro_cpu.native.entries import _pull_text as pulls
from tenferro_cpu.native.entries import _sweep_text as sweeps
from tenferro_cpu.native.entries._entry import machine
from tenferro_cpu.native.entries._operators_text import DECLARED, PAYLOAD, Offsets, shared_text, tensor_text, thunks
from tenferro_cpu.native.entries._record_text import record_text
from tenferro_cpu.native.machine._jit import engine
from tenferro_cpu.native.memory import _pool
from tenferro_cpu.native.python._builtin import FASTCALL, MethodDef, builtin, definition
from tenferro_cpu.native.python._capi import symbols
from tenferro_cpu.native.python._layout import Layout, word
from tenferro_tensor import Op, Tensor, catalog
from tenferro_tensor import dispatch as _select
from tenferro_tensor._plan import Plan
from tenferro_tensor._shortcuts import Entering, Plans, Pulling, Recording, Shortcuts, Sweeping, offer
from tenferro_tensor_core.forks import new_lock

_ONE_ARGUMENT: Final = 0x8
_TENSOR: Final = ("tensor_operator",) * 20 + ("tensor_reflected",) * 20 + ("tensor_unary", "op_call")
_RECORD: Final = ("record_operator",) * 10 + ("record_reflected",) * 10 + ("record_unary",)

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
        self._recorders: _Thunks | None = None
        self._pull: MethodDef | None = None
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

    def record_operator(
        self, name: str, method: Callable[..., Any], recording: Recording, *, reflected: bool
    ) -> Callable[..., Any]:
        """See `Shortcuts`."""
        return self._record("record_reflected" if reflected else "record_operator", name, method, recording)

    def tensor_unary(self, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        """See `Shortcuts`."""
        fields = {**self._common, "op": Op, "method": method}
        return self._thunks.method("tensor_unary", Tensor, name, fields) or method

    def op_call(self, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        """See `Shortcuts`."""
        fields = {**self._common, "op": Op, "method": method, "unary_name": sys.intern("_unary")}
        return self._thunks.method("op_call", Op, name, fields) or method

    def record_unary(self, name: str, method: Callable[..., Any], recording: Recording) -> Callable[..., Any]:
        """See `Shortcuts`."""
        return self._record("record_unary", name, method, recording)

    def _record(self, generic: str, name: str, method: Callable[..., Any], recording: Recording) -> Callable[..., Any]:
        recorders = self._recorders_of(recording.eager, recording.node, recording.pullback)
        if recorders is None:
            return method
        fields = {
            **self._common,
            "method": method,
            "eager": recording.eager,
            "node": recording.node,
            "pullback": recording.pullback,
            "modes": recording.modes,
            "modes_name": _key(recording.modes, "slow"),
            "count": recording.count,
            **recording.tables,
            **{f"save_{side}": sum([1 << i for i in save]) for side, save in recording.save.items()},
        }
        return recorders.method(generic, recording.eager, name, fields) or method

    def _recorders_of(self, eager: type, node: type, pullback: type) -> _Thunks | None:
        if self._recorders is None:
            at = Offsets(self._tensor)
            for part in (
                slots("eager", eager, "value spec level node"),
                slots("node", node, "seq pull parents saved"),
                slots("pullback", pullback, "how"),
            ):
                if part is None:
                    return None
                at.update(part)
            text = DECLARED + "declare i64 @llvm.ctpop.i64(i64)\n" + shared_text(at) + record_text(at)
            self._recorders = _Thunks(text, _RECORD)
        return self._recorders

    def pull(self, pulling: Pulling, pull: Callable[..., Any]) -> Callable[..., Any]:
        """See `Shortcuts`."""
        if len(pulling.saved) + len(pulling.constants) + len(pulling.steps) >= pulls.REGISTERS:
            return pull
        if any(len(registers) > 4 for _, registers, _ in pulling.steps):
            return pull
        if self._pull is None:
            text = (
                DECLARED + sweeps.DECLARED + pulls.DECLARED + shared_text(self._tensor) + pulls.pull_text(self._tensor)
            )
            self._pull = definition("pull", engine().function(text, "pull", symbols(), level=2), FASTCALL)
        made: Callable[..., Any] = builtin(self._pull, _pull_payload(pulling, pull, self._common))
        return made

    def copied(self, array: Any) -> Any:
        """See `Shortcuts`."""
        return _pool.pooled_replay(_copy)(array)

    def sweep(self, sweeping: Sweeping) -> Callable[..., None] | None:
        """See `Shortcuts`."""
        node = slots("node", sweeping.node, "seq pull parents saved")
        if node is None:
            return None
        at = Offsets(self._tensor | node)
        text = DECLARED + sweeps.DECLARED + shared_text(at) + sweeps.sweep_text(at)
        address = engine().function(text, "sweep", symbols(), level=2)
        parts = {"tensor": Tensor, "plan": Plan, "sums": catalog.add.op().same, "empty": ()}
        payload = tuple([parts[name] if name in parts else getattr(sweeping, name) for name in sweeps.SWEEP.names])
        made: Callable[..., None] = builtin(definition("sweep", address, FASTCALL), payload)
        return made

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


class _Payload(tuple[Any, ...]):
    """The ``self`` of a pullback; errors ask it for the op."""

    __slots__ = ()

    @property
    def op(self) -> Any:
        return self[1].op


def _pull_payload(pulling: Pulling, pull: Callable[..., Any], common: dict[str, Any]) -> _Payload:
    objects: list[Any] = [None, pull, common["tensor"], common["scopes"], common["scopes_name"]]

    def offset(value: Any) -> int:
        objects.append(value)
        return 8 * (len(objects) - 1)

    words: list[int] = []
    for register, value in pulling.constants:
        words += [register, offset(value)]
    for function, registers, result in pulling.steps:
        words += [offset(function), len(registers), *registers, *[0] * (4 - len(registers)), result]
    for out in pulling.outs:
        if out is None:
            words += [pulls.ABSENT, 0, 0]
        elif isinstance(out, int):
            words += [pulls.GIVEN, out, 0]
        else:
            words += [pulls.MADE, out[0], offset(out[1])]
    head = {
        "saved": len(pulling.saved),
        "mask": sum([1 << i for i, tensor in enumerate(pulling.saved) if tensor]),
        "constants": len(pulling.constants),
        "steps": len(pulling.steps),
        "outs": len(pulling.outs),
        "first_result": pulling.steps[0][2] if pulling.steps else 0,
    }
    words = [*[head[name] for name in pulls.HEAD.names], *words]
    objects[0] = struct.pack(f"={len(words)}q", *words)
    return _Payload(objects)


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
