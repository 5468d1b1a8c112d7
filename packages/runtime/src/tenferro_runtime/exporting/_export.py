"""`export_library`: programs as a header, an object file and a shared library with C functions."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path

from tenferro_runtime.exporting._description import conditions, describe
from tenferro_runtime.exporting._header import header
from tenferro_runtime.ir._program import Program
from tenferro_runtime.lowering import lower
from tenferro_runtime.reports import LibraryFiles
from tenferro_tensor import get_backend
from tenferro_tensor.backends import LibraryEntry
from tenferro_tensor_core import ArgumentError, BackendUnavailableError


def export_library(
    path: str | PathLike[str],
    programs: Mapping[str, Program],
    *,
    level: str | None = None,
    libraries: Sequence[str] = ("lapack", "blas"),
    shared: bool = True,
) -> LibraryFiles:
    """Export programs as C functions, which run without Python.

    The function of a program takes the symbolic sizes as ``int64_t``, then pointers to its inputs, then pointers to
    memory for its outputs; see the header. It returns 0, or a code for sizes outside of their bounds or of the guards
    of the program, for steps that fail, and on processors that lack instructions of `level`. Its results have the bits
    of the compiled program. Matrix products and decompositions call BLAS and LAPACK by their usual names (``dgemm_``),
    with 32-bit integers.

    Args:
        path: a folder and a name: ``"build/heat"`` writes ``heat.h``, ``heat.o`` and ``libheat.so`` in ``build``.
        programs: programs by the C name of their function. A gradient is another program.
        level: vector level of the machine code: ``"avx512"``, ``"avx2"``, ``"generic"`` (the levels 4, 3 and 2 of
            x86-64), or ``"neon"`` for AArch64; by default that of this processor. Library and header record it.
        libraries: libraries to link the shared library with if it calls BLAS or LAPACK.
        shared: whether to make a shared library, with the C compiler ``cc`` or that of the variable ``CC``.

    Returns:
        The files.

    Raises:
        ArgumentError: a name is not a C identifier, or there is no such level.
        UnsupportedError: a program has steps that only Python can run; the text names the source line.
        ProgramError: a symbolic size is not the extent of an input.
        BackendUnavailableError: there is no llvmlite, or no C compiler to link with.

    >>> import tempfile
    >>> import tenferro_runtime as tr
    >>> n = tr.dim("n")
    >>> double = tr.trace(lambda x: x * 2, tr.Spec((n,), tr.float64))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     files = tr.export_library(f"{folder}/twice", {"twice": double}, shared=False)
    ...     print([line for line in files.header.read_text().splitlines() if line.startswith("int ")][0])
    int twice(int64_t n, const double *x0, double *result);
    """
    for name in programs:
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
            raise ArgumentError(f"{name!r} is not a name that a function of C can have", name=name)
    if not programs:
        raise ArgumentError("a library needs at least one program")
    path = Path(path)
    functions = {name: lower(program) for name, program in programs.items()}
    backend = get_backend("cpu")
    target, described, entries = backend.object_target(level), [], {}
    for name, function in functions.items():
        checks = conditions(programs[name], function)
        d = describe(name, programs[name], function, checks.texts, target)
        described.append(d)
        entries[name] = LibraryEntry(function, d.text(), checks.bounds, checks.others, d.codes)
    code = backend.object_code(entries, level)
    path.parent.mkdir(parents=True, exist_ok=True)
    files = LibraryFiles(
        path.with_suffix(".h"), path.with_suffix(".o"), path.with_name(f"lib{path.name}.so") if shared else None
    )
    guard = re.sub(r"\W", "_", f"{path.name}_H").upper()
    files.header.write_text(header(guard, described))
    files.object.write_bytes(code.object)
    if files.library is not None:
        _link(files.object, files.library, libraries if code.fortran else ())
    return files


def _link(code: Path, library: Path, libraries: Sequence[str]) -> None:
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if compiler is None:
        raise BackendUnavailableError(
            f"{code} is written, but there is no C compiler to make a shared library of it; install one, name it by "
            "the variable CC, or export with shared=False"
        )
    command = [compiler, "-shared", "-o", str(library), str(code), *[f"-l{name}" for name in libraries], "-lm"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise BackendUnavailableError(
            f"{code} is written, but {' '.join(command)} did not make a shared library of it: "
            f"{done.stderr.strip()[-600:]}"
        )
