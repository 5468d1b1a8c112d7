"""Assembly of kernels for any processor, and the loops in it."""

import re
from functools import cache

import llvmlite.binding as llvm

from tenferro_cpu.native import Host

HOSTS = {
    "avx512": Host("x86_64-unknown-linux-gnu", "znver4", "", "avx512", 64, 32, 32 << 20),
    "avx2": Host("x86_64-unknown-linux-gnu", "haswell", "", "avx2", 32, 16, 32 << 20),
    "neon": Host("aarch64-unknown-linux-gnu", "neoverse-n1", "", "neon", 16, 32, 32 << 20),
}
"""One host for each vector level, whatever this processor is."""


@cache
def _all_targets() -> None:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()


def target_machine(host: Host) -> llvm.TargetMachine:
    """The compiler for a host, for code that a linker puts anywhere."""
    _all_targets()
    target = llvm.Target.from_triple(host.triple)
    return target.create_target_machine(cpu=host.cpu, features=host.features, opt=3, reloc="pic")


def module(text: str, host: Host) -> llvm.ModuleRef:
    """LLVM text, checked, as a module for a host."""
    machine = target_machine(host)
    made = llvm.parse_assembly(text)
    made.triple, made.data_layout = host.triple, str(machine.target_data)
    made.verify()
    return made


def assembly(text: str, host: Host) -> dict[str, list[str]]:
    """Instructions and labels of every function, by name."""
    found: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in target_machine(host).emit_assembly(module(text, host)).splitlines():
        head = re.match(r"(?:\.L)?(?!BB\d|CPI|JTI|annotation|func_|tmp)(\w+):", line)
        if head is not None:
            lines = found.setdefault(head[1], [])
        elif re.match(r"\.LBB|\t[a-z]", line):
            lines.append(line.strip())
    return found


def loops(lines: list[str]) -> list[list[str]]:
    """Instructions of every loop without a loop inside."""
    places = {line.partition(":")[0]: number for number, line in enumerate(lines) if line.startswith(".L")}
    found: dict[int, int] = {}
    for number, line in enumerate(lines):
        goal = re.search(r"(\.LBB\w+)$", line)
        if goal is not None and places.get(goal[1], number) < number:
            found[places[goal[1]]] = number
    inner = {(a, b) for a, b in found.items() if not any(a < c and d <= b for c, d in found.items())}
    return [[x for x in lines[a : b + 1] if not x.startswith(".L")] for a, b in sorted(inner)]


def spilled(instruction: str) -> bool:
    """Whether a vector is put on the stack."""
    return re.search(r"mm\d+, *-?\d*\(%r[sb]p|^st\w*\s+[qdv]\d.*\[sp", instruction) is not None
