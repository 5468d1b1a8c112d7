"""The compiled twin of the call path: running and recording operations. Absent from a pure wheel.

Its Python twin is `_interpreted`, which has the documentation.
"""

from collections.abc import Callable
from typing import Any

from tenferro_tensor._spec import Spec

class ValueBase:
    spec: Spec
    lent: bool
    @property
    def _inside(self) -> Any: ...
    @property
    def _link(self) -> Any: ...
    def __setitem__(self, key: Any, values: Any) -> None: ...
    def _alias(self) -> Any: ...
    def _stand_for(self, other: ValueBase, /) -> None: ...

class TensorBase(ValueBase):
    _data: Any
    def __getitem__(self, key: Any) -> Any: ...

class RecordedBase(ValueBase):
    value: Any
    level: int
    node: Any

class DualBase(ValueBase):
    value: Any
    level: int
    tangent: Any

class LanesBase(ValueBase):
    value: Any
    level: int

class SeriesBase(ValueBase):
    value: Any
    level: int
    expansion: Any

class TracedBase(ValueBase):
    level: int
    home: Any
    id: int

class Node:
    seq: int
    vjp: Callable[[Any, Any], Any] | None
    parents: tuple[Any, ...]
    saved: Any
    def __init__(self, vjp: Callable[[Any, Any], Any] | None, parents: tuple[Any, ...], saved: Any) -> None: ...

class Entry:
    @property
    def key(self) -> tuple[Any, ...]: ...
    @property
    def run(self) -> Callable[..., Any]: ...
    @property
    def out(self) -> Any: ...
    @property
    def many(self) -> bool: ...
    @property
    def save(self) -> tuple[int, ...]: ...
    @property
    def vjp(self) -> Any: ...
    def __init__(
        self, key: tuple[Any, ...], run: Any, out: Any, save: tuple[int, ...] = (), vjp: Any = None
    ) -> None: ...

class ProgramEntry(Entry):
    @property
    def values(self) -> tuple[Any, ...]: ...
    @property
    def finish(self) -> Callable[[Any], Any]: ...
    @property
    def fresh(self) -> Callable[[], bool] | None: ...
    @property
    def failed(self) -> Callable[[BaseException], bool]: ...
    @property
    def step(self) -> Callable[..., Any] | None: ...
    @property
    def order(self) -> bytes: ...
    @property
    def extras(self) -> tuple[Any, ...]: ...
    def __init__(
        self,
        key: tuple[Any, ...],
        run: Callable[..., Any],
        out: Any,
        values: tuple[Any, ...],
        finish: Callable[[Any], Any],
        fresh: Callable[[], bool] | None,
        failed: Callable[[BaseException], bool],
        step: Callable[..., Any] | None,
        order: bytes,
        extras: tuple[Any, ...],
    ) -> None: ...

class OpBase:
    bound: int
    @property
    def entries(self) -> dict[Any, Entry]: ...
    def __call__(self, *operands: Any) -> Any: ...
    def remember(self, entry: Entry, /) -> Entry: ...
    def forget(self) -> None: ...

class ProgramsBase(OpBase):
    arity: int

class State:
    open_scopes: int
    recording_scopes: int
    tensor: Any
    recorded: Any
    dual: Any
    record: Any
    spec: Any
    host: Any

state: State

def operator(op: OpBase, /) -> Callable[[Any, Any], Any]: ...
def reflected(op: OpBase, /) -> Callable[[Any, Any], Any]: ...
def unary(op: OpBase, /) -> Callable[[Any], Any]: ...

DIRECT_MAX_BYTES: int

class DirectFunction:
    __name__: str
    __qualname__: str
    @property
    def function(self) -> Callable[..., Any]: ...
    @property
    def form(self) -> Callable[..., Any]: ...
    @property
    def most(self) -> int: ...
    def __init__(self, function: Callable[..., Any], form: Callable[..., Any], most: int) -> None: ...
    def __call__(self, *args: Any, **named: Any) -> Any: ...

def broadcasted(x: Any, shape: Any, /) -> Any: ...
def copied(x: Any, /) -> Any: ...
def counted(x: Any, /) -> Any: ...
def joined(arrays: Any, /, axis: Any = 0) -> Any: ...
def reshaped(x: Any, /, *shape: Any) -> Any: ...
def stacked_indices(arrays: tuple[Any, ...], extents: tuple[int, ...], /) -> Any: ...
def swapped(x: Any, /) -> Any: ...
def transposed(x: Any, /) -> Any: ...
def spec_of_raw(raw: Any, /) -> Spec: ...
def forget_specs() -> None: ...
def kept_specs() -> tuple[int, int]: ...

class Steps:
    @property
    def op(self) -> Any: ...
    @property
    def inputs(self) -> tuple[Any, ...]: ...
    @property
    def constants(self) -> tuple[Any, ...]: ...
    @property
    def calls(self) -> tuple[tuple[Callable[..., Any], tuple[int, ...]], ...]: ...
    @property
    def outputs(self) -> tuple[tuple[int, Any] | None, ...]: ...
    @property
    def otherwise(self) -> Callable[[Any, Any], Any]: ...
    def __init__(
        self,
        op: Any,
        inputs: tuple[Any, ...],
        constants: tuple[Any, ...],
        calls: tuple[tuple[Callable[..., Any], tuple[int, ...]], ...],
        outputs: tuple[tuple[int, Any] | None, ...],
        otherwise: Callable[[Any, Any], Any],
    ) -> None: ...
    def __call__(self, given: Any, saved: Any) -> Any: ...

def backward(cotangents: dict[Any, Any], release: Callable[[Any, Any], Any] | None, failed: list[Any], /) -> None: ...
