"""Loads and stores of vectors: neighbours, single elements and strided ones, whole or under a mask."""

from collections.abc import Sequence
from dataclasses import dataclass

from tenferro_cpu.native.operations._emit import BITS, LLVM_TYPES, Block, Vec
from tenferro_cpu.native.operations._value import Pair, Value, kind_of
from tenferro_tensor.device_model import Access, Operand


@dataclass(frozen=True, slots=True)
class Port:
    """One operand inside of a function: its pointer, and for strided access the stride and the lanes' offsets."""

    operand: Operand
    pointer: str
    stride: str = ""
    steps: str = ""

    @property
    def stored(self) -> str:
        """LLVM type of one number in memory; booleans are bytes."""
        return "i8" if self.operand.dtype.kind == "b" else LLVM_TYPES[kind_of(self.operand.dtype)]

    @property
    def cplx(self) -> bool:
        return self.operand.dtype.kind == "c"

    @property
    def align(self) -> int:
        """Bytes of one number."""
        return self.operand.dtype.itemsize // (2 if self.cplx else 1)


def lane_numbers(lanes: int) -> str:
    """The constant vector 0, 1, 2, ..."""
    return f"<{', '.join(f'i64 {k}' for k in range(lanes))}>"


def open_port(block: Block, operand: Operand, data: str, strides: str, number: int) -> Port:
    """Read pointer and stride number `number` from the argument arrays."""
    slot = block.raw(f"getelementptr ptr, ptr {data}, i64 {number}")
    pointer = block.raw(f"load ptr, ptr {slot}, align 8")
    if operand.access is not Access.STRIDED:
        return Port(operand, pointer)
    slot = block.raw(f"getelementptr i64, ptr {strides}, i64 {number}")
    stride = block.raw(f"load i64, ptr {slot}, align 8")
    w = block.lanes
    wide = broadcast(block, "i64", stride)
    return Port(operand, pointer, stride, block.raw(f"mul <{w} x i64> {wide}, {lane_numbers(w)}"))


def broadcast(block: Block, llvm_type: str, scalar: str) -> str:
    """A scalar in every lane; gives the name."""
    v = f"<{block.lanes} x {llvm_type}>"
    first = block.raw(f"insertelement {v} poison, {llvm_type} {scalar}, i64 0")
    return block.raw(f"shufflevector {v} {first}, {v} poison, <{block.lanes} x i32> zeroinitializer")


def load_fixed(block: Block, port: Port) -> tuple[str, ...]:
    """The one element in every lane: names of its vectors, two for a complex number."""
    names = []
    for part in range(2 if port.cplx else 1):
        slot = block.raw(f"getelementptr {port.stored}, ptr {port.pointer}, i64 {part}")
        scalar = block.raw(f"load {port.stored}, ptr {slot}, align {port.align}")
        names.append(broadcast(block, port.stored, scalar))
    if port.operand.dtype.kind == "b":
        return (block.raw(f"icmp ne <{block.lanes} x i8> {names[0]}, zeroinitializer"),)
    return tuple(names)


def fixed_value(block: Block, port: Port, names: tuple[str, ...]) -> Value:
    """`load_fixed`'s names as a value of the present interleaving."""
    kind = kind_of(port.operand.dtype)
    parts = [Vec(block, kind, (name,) * block.interleave) for name in names]
    return Pair(*parts) if port.cplx else parts[0]


def _join(block: Block, kind: str, numbers: Sequence[tuple[str, ...]], cplx: bool) -> Value:
    parts = [Vec(block, kind, tuple(column)) for column in zip(*numbers)]
    return Pair(*parts) if cplx else parts[0]


def load(block: Block, port: Port, starts: Sequence[str], mask: str = "") -> Value:
    """Vectors of elements from the given numbers on, one per interleaved vector; the mask has the first lane set."""
    return _join(block, kind_of(port.operand.dtype), [_load(block, port, s, mask) for s in starts], port.cplx)


def _load(block: Block, port: Port, start: str, mask: str) -> tuple[str, ...]:
    w, t = block.lanes, port.stored
    if port.operand.access is Access.STRIDED:
        names = tuple(_gather(block, port, p, mask) for p in _pointers(block, port, start))
    elif port.cplx:
        both = _load_run(block, port, start, 2 * w, _doubled(block, mask) if mask else "", 2)
        halves = [", ".join(f"i32 {k}" for k in range(part, 2 * w, 2)) for part in (0, 1)]
        names = tuple(
            block.raw(f"shufflevector <{2 * w} x {t}> {both}, <{2 * w} x {t}> poison, <{w} x i32> <{half}>")
            for half in halves
        )
    else:
        names = (_load_run(block, port, start, w, mask, 1),)
    if port.operand.dtype.kind == "b":
        return (block.raw(f"icmp ne <{w} x i8> {names[0]}, zeroinitializer"),)
    return names


def _load_run(block: Block, port: Port, start: str, count: int, mask: str, per: int) -> str:
    t = port.stored
    slot = _address(block, port, start, per)
    if not mask:
        return block.raw(f"load <{count} x {t}>, ptr {slot}, align {port.align}")
    # Idle lanes repeat the first element: a made-up number might divide by zero, and that would be reported.
    first = block.raw(f"load <{per} x {t}>, ptr {slot}, align {port.align}")
    order = ", ".join(f"i32 {k % per}" for k in range(count))
    idle = block.raw(f"shufflevector <{per} x {t}> {first}, <{per} x {t}> poison, <{count} x i32> <{order}>")
    return block.raw(
        f"call <{count} x {t}> @llvm.masked.load.v{count}{_suffix(t)}.p0(ptr {slot}, i32 {port.align}, "
        f"<{count} x i1> {mask}, <{count} x {t}> {idle})"
    )


def store(block: Block, port: Port, starts: Sequence[str], value: Value, mask: str = "", stream: bool = False) -> None:
    """Write vectors of elements; `stream` writes past the cache and needs 64-byte aligned whole vectors."""
    w, t = block.lanes, port.stored
    if port.operand.dtype.kind == "b":
        assert isinstance(value, Vec)
        value = block.cast("zext", value, "i8")
    columns = (value.re.names, value.im.names) if isinstance(value, Pair) else (value.names,)
    for start, names in zip(starts, zip(*columns)):
        if port.operand.access is Access.STRIDED:
            for name, pointers in zip(names, _pointers(block, port, start)):
                block.do(
                    f"call void @llvm.masked.scatter.v{w}{_suffix(t)}.v{w}p0(<{w} x {t}> {name}, <{w} x ptr> "
                    f"{pointers}, i32 {port.align}, <{w} x i1> {mask or _all_set(w)})"
                )
        elif port.cplx:
            order = ", ".join(f"i32 {k + part * w}" for k in range(w) for part in (0, 1))
            both = block.raw(f"shufflevector <{w} x {t}> {names[0]}, <{w} x {t}> {names[1]}, <{2 * w} x i32> <{order}>")
            _store_run(block, port, start, both, 2 * w, _doubled(block, mask) if mask else "", 2, stream)
        else:
            _store_run(block, port, start, names[0], w, mask, 1, stream)


def _store_run(block: Block, port: Port, start: str, name: str, count: int, mask: str, per: int, stream: bool) -> None:
    t = port.stored
    slot = _address(block, port, start, per)
    if mask:
        block.do(
            f"call void @llvm.masked.store.v{count}{_suffix(t)}.p0(<{count} x {t}> {name}, ptr {slot}, "
            f"i32 {port.align}, <{count} x i1> {mask})"
        )
    elif stream:
        nontemporal = "!nontemporal"
        block.module.require(nontemporal, lambda: "!1 = !{i32 1}")
        whole = min(64, count * port.align)
        block.do(f"store <{count} x {t}> {name}, ptr {slot}, align {whole}, {nontemporal} !1")
    else:
        block.do(f"store <{count} x {t}> {name}, ptr {slot}, align {port.align}")


def _address(block: Block, port: Port, start: str, per: int) -> str:
    if per == 2:
        start = block.raw(f"shl i64 {start}, 1")
    return block.raw(f"getelementptr {port.stored}, ptr {port.pointer}, i64 {start}")


def _pointers(block: Block, port: Port, start: str) -> list[str]:
    """Addresses of strided lanes; of both parts for complex numbers."""
    w = block.lanes
    shift = block.raw(f"mul i64 {start}, {port.stride}")
    base = block.raw(f"getelementptr i8, ptr {port.pointer}, i64 {shift}")
    bases = [base]
    if port.cplx:
        bases.append(block.raw(f"getelementptr i8, ptr {base}, i64 {port.align}"))
    return [block.raw(f"getelementptr i8, ptr {b}, <{w} x i64> {port.steps}") for b in bases]


def _gather(block: Block, port: Port, pointers: str, mask: str) -> str:
    w, t = block.lanes, port.stored
    return block.raw(
        f"call <{w} x {t}> @llvm.masked.gather.v{w}{_suffix(t)}.v{w}p0(<{w} x ptr> {pointers}, i32 {port.align}, "
        f"<{w} x i1> {mask or _all_set(w)}, <{w} x {t}> zeroinitializer)"
    )


def _doubled(block: Block, mask: str) -> str:
    """Every lane of a mask twice."""
    w = block.lanes
    order = ", ".join(f"i32 {k}" for k in range(w) for _ in (0, 1))
    return block.raw(f"shufflevector <{w} x i1> {mask}, <{w} x i1> poison, <{2 * w} x i32> <{order}>")


def _all_set(lanes: int) -> str:
    return "splat (i1 true)"


def _suffix(llvm_type: str) -> str:
    return {"double": "f64", "float": "f32"}.get(llvm_type, llvm_type)


def number_bits(operand: Operand) -> int:
    """Bits of one number in a register; booleans go through bytes."""
    return max(8, BITS[kind_of(operand.dtype)])
