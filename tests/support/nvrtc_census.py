"""Compiles every CUDA source of the package by NVRTC, without a GPU, and says what the compiler says about them.

    python3 dev run tests/support/nvrtc_census.py [--architectures 80 90 100] [--part functions|programs]

For each architecture: kernels, warnings, kernels that spill many bytes, most registers, seconds. The exit status is 1
where a source is refused or has a warning. Around calls of functions that are not inlined, such as the slow paths of
sines and logarithms, every compiler saves some registers; only larger spills are listed.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

ARCHITECTURES: Final = ("80", "90", "100")
"""Ampere, Hopper and Blackwell."""

_REPORT: Final = re.compile(
    r"Compiling entry function '(\w+)' for '\w+'\n.*\n\s*ptxas\s+\.\s+(\d+) bytes stack frame, "
    r"(\d+) bytes spill stores, (\d+) bytes spill loads\n.*Used (\d+) registers"
)

SMALL_SPILL: Final = 64
"""Bytes that are stored and loaded around calls of functions."""

_UNUSED: Final = re.compile(r'function "tf_\w+(\(.*\))?" was declared but never referenced')
"""A source has all functions of the library, of which its kernels call some."""


class KernelReport(NamedTuple):
    """What ptxas says of a kernel: bytes of its stack frame, bytes that it spills, and its registers."""

    entry: str
    stack: int
    spilled: int
    registers: int


class Examined(NamedTuple):
    """What the compiler says of a source."""

    kernels: list[KernelReport]
    warnings: list[str]


def examined(library: Any, source: str, architecture: str) -> Examined:
    """Compile a source with warnings, and read the messages.

    Args:
        library: NVRTC, as `runtime_library` gives it.
        source: the text.
        architecture: as in ``"90"``.

    Raises:
        CompileError: the compiler refuses it.
    """
    options = [option for option in library.options(architecture) if option != "-w"]
    _, log = library._compiled(source, architecture, (*options, "-Xptxas", "-v"))
    kernels = [
        KernelReport(entry, int(stack), int(stores) + int(loads), int(registers))
        for entry, stack, stores, loads, registers in _REPORT.findall(log)
    ]
    warnings = [line for line in log.splitlines() if " warning " in line and not _UNUSED.search(line)]
    entries = set(re.findall(r"__global__ void __launch_bounds__\(\d+\) (\w+)\(", source))
    assert entries == {k.entry for k in kernels}, f"no report of {sorted(entries - {k.entry for k in kernels})[:5]}"
    return Examined(kernels, warnings)


class Source(NamedTuple):
    """A text, its title, and for the programs that its kernels are of their names by entry."""

    title: str
    text: str
    owners: dict[str, str]


def sources(part: str | None = None) -> Iterator[Source]:
    """All sources, or those of functions or programs alone."""
    import cuda_sources

    if part != "programs":
        for title, text in (*cuda_sources.functions(), *cuda_sources.reductions()):
            yield Source(title, text, {})
    if part != "functions":
        found = cuda_sources.programs()
        print(f"{len(found.texts)} programs rendered; {len(found.refused)} have no form as kernels", flush=True)
        for title, text, owners in cuda_sources.joined(found.texts):
            yield Source(title, text, owners)


def census(library: Any, every: Iterable[Source], architecture: str) -> bool:
    """Print the figures of an architecture; whether nothing is wrong."""
    begun, most, kernels = time.perf_counter(), KernelReport("", 0, 0, 0), 0
    warnings: list[str] = []
    spills: list[KernelReport] = []
    for source in every:
        found = examined(library, source.text, architecture)
        warnings += [f"{source.title}: {line}" for line in found.warnings]
        kernels += len(found.kernels)
        for kernel in found.kernels:
            named = kernel._replace(entry=f"{source.owners.get(kernel.entry, source.title)}: {kernel.entry}")
            most = max(most, named, key=lambda k: k.registers)
            if kernel.spilled > SMALL_SPILL:
                spills.append(named)
    print(
        f"sm_{architecture}: {kernels} kernels, {len(warnings)} warnings, {len(spills)} spill more than "
        f"{SMALL_SPILL} bytes; most registers {most.registers} ({most.entry}); {time.perf_counter() - begun:.0f} s"
    )
    for line in [*warnings[:20], *map(str, sorted(spills, key=lambda k: -k.spilled)[:20])]:
        print("   ", line)
    sys.stdout.flush()
    return not warnings


def main() -> int:
    """Print the census; 1 where something is wrong."""
    from tenferro_gpu.compiling import runtime_library

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--architectures", nargs="+", default=ARCHITECTURES)
    parser.add_argument("--part", choices=("functions", "programs"))
    options = parser.parse_args()
    library, every = runtime_library("cuda"), list(sources(options.part))
    print(f"{len(every)} sources, NVRTC {'.'.join(map(str, library.version))}", flush=True)
    fine = [census(library, every, architecture) for architecture in options.architectures]
    return int(not all(fine))


if __name__ == "__main__":
    sys.exit(main())
