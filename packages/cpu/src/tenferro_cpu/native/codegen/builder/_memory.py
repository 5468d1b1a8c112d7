"""Vector loads and stores: contiguous or gathered lanes, full or masked."""

from __future__ import annotations

from dataclasses import dataclass

from tenferro_cpu.native.codegen.builder._scalars import Int, Pointer
from tenferro_cpu.native.codegen.builder._types import indices
from tenferro_cpu.native.codegen.builder._vectors import Block, Vec

_LETTERS = {"double": "f64", "float": "f32"}
ALL = "splat (i1 true)"


@dataclass(frozen=True, slots=True)
class Element:
    """Layout of numbers in memory.

    Attributes:
        llvm: their LLVM type; booleans are bytes.
        align: size in bytes.
    """

    llvm: str
    align: int

    def vector(self, count: int) -> str:
        """LLVM type of a vector of `count` elements."""
        return f"<{count} x {self.llvm}>"

    def suffix(self, count: int) -> str:
        """Suffix of intrinsics for a vector of `count` elements."""
        return f"v{count}{_LETTERS.get(self.llvm, self.llvm)}"


def load(
    block: Block, at: Pointer, element: Element, count: int, mask: str = "", period: int = 1, idle: str = ""
) -> str:
    """Load `count` contiguous elements; masked-out lanes are taken from `idle`, or repeat the first `period` elements.

    An arbitrary number in those lanes might divide by zero and raise the floating-point flag.
    """
    v = element.vector(count)
    if not mask:
        return block.raw(f"load {v}, ptr {at.name}, align {element.align}")
    if not idle:
        few = element.vector(period)
        first = block.raw(f"load {few}, ptr {at.name}, align {element.align}")
        order = [k % period for k in range(count)]
        idle = block.raw(f"shufflevector {few} {first}, {few} poison, {indices(order)}")
    return block.raw(
        f"call {v} @llvm.masked.load.{element.suffix(count)}.p0(ptr {at.name}, i32 {element.align}, "
        f"<{count} x i1> {mask}, {v} {idle})"
    )


def store(
    block: Block, at: Pointer, element: Element, name: str, count: int, mask: str = "", *, stream: bool = False
) -> None:
    """Store contiguous elements; `stream` writes full vectors past the caches to addresses aligned to 64 bytes."""
    v = element.vector(count)
    if mask:
        block.do(
            f"call void @llvm.masked.store.{element.suffix(count)}.p0({v} {name}, ptr {at.name}, "
            f"i32 {element.align}, <{count} x i1> {mask})"
        )
    elif stream:
        block.module.require("!nontemporal", lambda: "!1 = !{i32 1}")
        whole = min(64, count * element.align)
        block.do(f"store {v} {name}, ptr {at.name}, align {whole}, !nontemporal !1")
    else:
        block.do(f"store {v} {name}, ptr {at.name}, align {element.align}")


def addresses(block: Block, base: Pointer, distances: str) -> str:
    """Vector of the addresses at the given byte offsets from a pointer, one per lane."""
    return block.raw(f"getelementptr i8, ptr {base.name}, <{block.lanes} x i64> {distances}")


def gather(block: Block, places: str, element: Element, mask: str = "") -> str:
    """Load the lanes from these addresses."""
    w, v = block.lanes, element.vector(block.lanes)
    return block.raw(
        f"call {v} @llvm.masked.gather.{element.suffix(w)}.v{w}p0(<{w} x ptr> {places}, i32 {element.align}, "
        f"<{w} x i1> {mask or ALL}, {v} zeroinitializer)"
    )


def scatter(block: Block, places: str, element: Element, name: str, mask: str = "") -> None:
    """Store the lanes to these addresses."""
    w, v = block.lanes, element.vector(block.lanes)
    block.do(
        f"call void @llvm.masked.scatter.{element.suffix(w)}.v{w}p0({v} {name}, <{w} x ptr> {places}, "
        f"i32 {element.align}, <{w} x i1> {mask or ALL})"
    )


def reordered(block: Block, element: Element, x: str, count: int, order: list[int], y: str = "") -> str:
    """Permute the lanes of one or two vectors of `count` elements."""
    v = element.vector(count)
    return block.raw(f"shufflevector {v} {x}, {v} {y or 'poison'}, {indices(order)}")


def load_every_other(block: Block, at: Pointer, element: Element, mask: str = "") -> str:
    """Load every other element, from two contiguous vectors that end with the last one, so nothing beyond is read."""
    w, low, high = block.lanes, "", ""
    for end, lanes in _halves(block, at, element):
        some = _chosen(block, mask, lanes) if mask else ""
        low, high = high, load(block, end, element, w, some, idle=high if some else "")
    return reordered(block, element, low, w, [2 * k + (2 * k >= w) for k in range(w)], high)


def store_every_other(block: Block, at: Pointer, element: Element, name: str, mask: str = "") -> None:
    """Store a vector to every other element; the elements between them stay unchanged."""
    w = block.lanes
    for end, lanes in _halves(block, at, element):
        spread = reordered(block, element, name, w, [w if k is None else k for k in lanes])
        here = f"<{', '.join(['i1 false' if k is None else 'i1 true' for k in lanes])}>"
        store(block, end, element, spread, w, _chosen(block, mask, lanes) if mask else here)


def _halves(block: Block, at: Pointer, element: Element) -> list[tuple[Pointer, list[int | None]]]:
    """Two contiguous vectors that contain every other element, and the index of the element in each of their lanes."""
    w = block.lanes
    low: list[int | None] = [None if j % 2 else j // 2 for j in range(w)]
    high: list[int | None] = [(w + j - 1) // 2 if j % 2 else None for j in range(w)]
    return [(at, low), (at.offset((w - 1) * element.align), high)]


def _chosen(block: Block, mask: str, lanes: list[int | None]) -> str:
    """Mask of the elements in these lanes."""
    flags = f"<{block.lanes} x i1>"
    order = indices([block.lanes if k is None else k for k in lanes])
    return block.raw(f"shufflevector {flags} {mask}, {flags} zeroinitializer, {order}")


def doubled(block: Block, mask: str) -> str:
    """Duplicate every lane of a mask, for adjacent real and imaginary parts."""
    w = block.lanes
    order = [k for k in range(w) for _ in (0, 1)]
    return block.raw(f"shufflevector <{w} x i1> {mask}, <{w} x i1> poison, {indices(order)}")


def as_mask(block: Block, name: str) -> str:
    """Convert bytes of booleans to a mask."""
    return block.raw(f"icmp ne <{block.lanes} x i8> {name}, zeroinitializer")


class Scratch:
    """Vectors on the stack, by index.

    Methods take:
        number: index of the vector.
        x: the vector.

    Methods return:
        The vector.

    Args:
        block: the function that uses it, before the first loop unless there is an `entry`.
        kind: element kind.
        count: number of vectors.
        entry: where the memory is reserved; by default the current position of `block`.
    """

    def __init__(self, block: Block, kind: str, count: int, entry: Block | None = None) -> None:
        self.block: Block = block
        self.kind: str = kind
        self.stored: str = "i8" if kind == "i1" else kind
        self._type = block.vector(self.stored)
        self._base = Pointer(block, (entry or block).raw(f"alloca [{count} x {self._type}], align 64"))

    def put(self, number: Int, x: Vec) -> None:
        """Store one vector."""
        kept = self.block.cast("zext", x, "i8") if self.kind == "i1" else x
        self.block.do(f"store {self._type} {kept.names[0]}, ptr {self._base.item(self._type, number).name}")

    def get(self, number: Int) -> Vec:
        """Load one vector."""
        name = self.block.raw(f"load {self._type}, ptr {self._base.item(self._type, number).name}")
        x = Vec(self.block, self.stored, (name,))
        return x.differs(0) if self.kind == "i1" else x
