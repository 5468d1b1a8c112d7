"""Object code of whole programs for use without Python: entries with the C calling convention.

An entry ``int name(sizes..., inputs..., outputs...)`` checks the processor and the sizes, allocates its temporary
memory with malloc and returns 0, `NO_MEMORY`, or the code of a text from `FIRST_REPORT` on.
``name_extents(sizes, extents)`` writes the extents of all outputs, and ``name_description`` is a text for whoever loads
the library.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from tenferro_cpu.native._host import LEVELS, Host, detect, last_level_cache
from tenferro_cpu.native.codegen.builder import Flag, Int, Module, Pointer
from tenferro_cpu.native.codegen.whole._arena import arena_size
from tenferro_cpu.native.codegen.whole._calls import FIRST_REPORT
from tenferro_cpu.native.codegen.whole._export_checks import (
    baseline,
    processor_of,
    refuse,
    refuse_overflow,
    refuse_unmet,
    supported,
)
from tenferro_cpu.native.codegen.whole._frame import EntryBlock
from tenferro_cpu.native.codegen.whole._render import NAME, render
from tenferro_cpu.native.codegen.whole._sizes import Sizes
from tenferro_tensor import library
from tenferro_tensor.backends import LibraryEntry, ObjectCode, ObjectTarget
from tenferro_tensor.loop_ir import LoopFunction
from tenferro_tensor_core import ArgumentError, UnsupportedError

NO_MEMORY: Final = 1
"""Status of an entry if malloc fails."""

FOREVER: Final = 1 << 62
"""Work until the next poll, which never happens."""

PROCESSORS: Final = {
    "avx512": ("x86_64-unknown-linux-gnu", "x86-64-v4"),
    "avx2": ("x86_64-unknown-linux-gnu", "x86-64-v3"),
    "generic": ("x86_64-unknown-linux-gnu", "x86-64-v2"),
    "neon": ("aarch64-unknown-linux-gnu", "generic"),
}
"""LLVM's triple and processor for each level that object code can target."""


def object_target(level: str | None) -> ObjectTarget:
    """The vector level of object code, by default that of this processor, and the processors that run it.

    Raises:
        ArgumentError: there is no such level.
    """
    if level is None:
        llvm = library("llvmlite.binding")
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        level = detect(llvm, None).level
    elif level not in PROCESSORS:
        raise ArgumentError(
            f"object code of the vector level {level!r} was requested; the levels are {', '.join(PROCESSORS)}",
            level=level,
        )
    return ObjectTarget(level, processor_of(level))


def object_code(entries: Mapping[str, LibraryEntry], level: str | None) -> ObjectCode:
    """An object file with an entry for each name.

    Args:
        entries: programs by name.
        level: a vector level, one of `PROCESSORS`; by default this processor.

    Raises:
        ArgumentError: there is no such level.
        UnsupportedError: an entry needs kernels that only Python has, or a subroutine with another name.
    """
    llvm = library("llvmlite.binding")
    host, machine = _machine(llvm, level)
    context = llvm.create_context()
    whole, fortran = None, False
    for name, entry in entries.items():
        text, calls = _text(name, entry, host)
        fortran = fortran or calls
        module = llvm.parse_assembly(text, context)
        module.triple, module.data_layout = machine.triple, str(machine.target_data)
        module.verify()
        if whole is None:
            whole = module
        else:
            whole.link_in(module)
    options = llvm.create_pipeline_tuning_options(speed_level=1)
    options.loop_vectorization, options.slp_vectorization = True, False
    builder = llvm.create_pass_builder(machine, options)
    assert whole is not None
    builder.getModulePassManager().run(whole, builder)
    return ObjectCode(machine.emit_object(whole), fortran)


def _machine(llvm: Any, level: str | None) -> tuple[Host, Any]:
    """The processor, and LLVM's machine for it: the least one of the level, so that the level says what is needed."""
    chosen = object_target(level).level
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    triple, cpu = PROCESSORS[chosen]
    triple = llvm.get_process_triple() if level is None else triple
    host = Host(triple, cpu, "", chosen, *LEVELS[chosen], last_level_cache())
    target = llvm.Target.from_triple(host.triple)
    return host, target.create_target_machine(
        cpu=host.cpu, features=host.features, opt=3, reloc="pic", codemodel="default"
    )


def _text(name: str, entry: LibraryEntry, host: Host) -> tuple[str, bool]:
    """The module of one entry, and whether it calls BLAS or LAPACK."""
    function = entry.function
    rendered = render(function, host, alone=True)
    kernels = [call for call in rendered.calls if not call.recourse]
    if kernels:
        call = kernels[0]
        at = f" ({call.where})" if call.where else ""
        raise UnsupportedError(
            f"{call.op.primitive.name}{at} runs a Python kernel, which a library without Python lacks; export the "
            "part of the program before it and the part after it",
            primitive=call.op.primitive.name,
        )
    text = rendered.text.replace(f"define i64 @{NAME}(", f"define internal i64 @{NAME}(")
    for k, (_, array) in enumerate(function.constants):
        text += f"\n@{NAME}.constant{k} = private constant {_bytes(array)}, align 64"
    text += f"\n@{name}_description = constant {_chars(entry.text)}"
    always = baseline(host.level)
    parts = [text, *supported(host.level), *_entry(name, entry, always)]
    parts += [*_extents(name, function, always), *_error(name, entry.codes, always)]
    return "\n".join(parts), bool(rendered.foreign)


def _bytes(array: np.ndarray[Any, Any]) -> str:
    data = np.ascontiguousarray(array).tobytes()
    return f'[{len(data)} x i8] c"{"".join(f"{chr(92)}{byte:02X}" for byte in data)}"'


def _chars(value: str) -> str:
    return _bytes(np.frombuffer(value.encode() + b"\0", np.uint8))


def _entry(name: str, entry: LibraryEntry, attributes: str) -> list[str]:
    """The function with the C calling convention."""
    f, b = entry.function, EntryBlock(Module())
    b.begin("entry")
    last = FIRST_REPORT + len(entry.codes)  # the codes of calls, of bounds, of conditions, and of the processor
    conditions = last - 1 - len(entry.conditions)
    refuse(b, Flag(b, b.raw(f"call i1 @{NAME}.supported()")).opposite().name, last - 1)
    sizes = Sizes(b, {size: Int(b, f"%n{k}") for k, size in enumerate(f.sizes)})
    refuse_unmet(b, entry.bounds, sizes, conditions - len(entry.bounds))
    refuse_overflow(b, f, entry.conditions, sizes, NO_MEMORY)
    refuse_unmet(b, entry.conditions, sizes, conditions)
    buffers = [*[f"%a{k}" for k in range(len(f.inputs))], *[f"@{NAME}.constant{k}" for k in range(len(f.constants))]]
    buffers += [f"%o{k}" for k in range(len(f.outputs))]
    pointers = Pointer(b, b.raw(f"alloca [{len(buffers) + 1} x ptr], align 16"))
    given = Pointer(b, b.raw(f"alloca [{len(f.sizes) + 1} x i64], align 16"))
    context = Pointer(b, b.raw("alloca [4 x i64], align 16"))
    for k, buffer in enumerate(buffers):
        b.do(f"store ptr {buffer}, ptr {pointers.element('ptr', k).name}, align 8")
    for k in range(len(f.sizes)):
        given.element("i64", k).store("i64", f"%n{k}", 8)
    context.store("i64", str(FOREVER), 8)
    memory = b.raw(f"call ptr @malloc(i64 {arena_size(f, sizes).plus(64).name})")
    b.branch(b.raw(f"icmp eq ptr {memory}, null"), "none", "some")
    b.begin("none")
    b.do(f"ret i32 {NO_MEMORY}")
    b.begin("some")
    address = b.raw(f"ptrtoint ptr {memory} to i64")
    aligned = b.raw(f"inttoptr i64 {(Int(b, address).plus(63) & -64).name} to ptr")
    b.do(f"store ptr {aligned}, ptr {pointers.element('ptr', len(buffers)).name}, align 8")
    status = b.raw(f"call i64 @{NAME}(ptr {pointers.name}, ptr {given.name}, ptr {context.name})")
    b.do(f"call void @free(ptr {memory})")
    b.do(f"ret i32 {b.raw(f'trunc i64 {status} to i32')}")
    arguments = [f"i64 %n{k}" for k in range(len(f.sizes))]
    arguments += [f"ptr %a{k}" for k in range(len(f.inputs))] + [f"ptr %o{k}" for k in range(len(f.outputs))]
    head = f"define i32 @{name}({', '.join(arguments)}) {attributes} {{"
    return ["declare ptr @malloc(i64)", "declare void @free(ptr)", *b.module.definitions.values(), head, *b.lines, "}"]


def _extents(name: str, f: LoopFunction, attributes: str) -> list[str]:
    """The function that computes the extents of outputs."""
    b = EntryBlock(Module())
    b.begin("entry")
    given, found = Pointer(b, "%sizes"), Pointer(b, "%extents")
    sizes = Sizes(b, {size: given.element("i64", k).load_int() for k, size in enumerate(f.sizes)})
    for k, extent in enumerate([extent for buffer in f.outputs for extent in buffer.shape]):
        found.element("i64", k).store("i64", sizes.of(extent).name, 8)
    b.do("ret void")
    return [f"define void @{name}_extents(ptr %sizes, ptr %extents) {attributes} {{", *b.lines, "}"]


def _error(name: str, reports: tuple[str, ...], attributes: str) -> list[str]:
    """The function that translates a status code to text."""
    texts = ["success", f"{name}: there is no memory for temporaries", *[f"{name}: {text}" for text in reports]]
    texts.append(f"{name}: there is no such code")
    b = EntryBlock(Module())
    b.begin("entry")
    index = Int(b, b.raw("zext i32 %code to i64"))
    last = len(texts) - 1
    index = (index < last).choose(index, last)
    b.do(f"ret ptr {Pointer(b, f'@{NAME}.errors').element('ptr', index).load_pointer().name}")
    lines = [f"@{NAME}.error{k} = private constant {_chars(text)}" for k, text in enumerate(texts)]
    table = ", ".join([f"ptr @{NAME}.error{k}" for k in range(len(texts))])
    lines.append(f"@{NAME}.errors = private constant [{len(texts)} x ptr] [{table}]")
    return [*lines, f"define ptr @{name}_error(i32 %code) {attributes} {{", *b.lines, "}"]
