"""Instruction counts of rows: one process under callgrind, which counts between marks that pytest-codspeed sets.

A count does not depend on what else the machine does. It depends on the versions of Python and of the libraries, on the
compiler of the C files, and little on the processor, for callgrind offers the same vector instructions on all that
have AVX2. Threads of all kinds count; nothing is scheduled at random, for callgrind runs one thread at a time.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from suite.libraries import settings
from suite.rows import rows

BENCHMARKS = Path(__file__).resolve().parents[1]
MODULE = BENCHMARKS / "suite" / "test_counts.py"
FIRST_PART = ("imports", "calls", "indexing", "assignment", "reductions", "elementwise", "special", "fourier")
"""Groups that are counted in the first of two processes."""
LEVEL = "avx2"
"""Vector instructions of counted processes, the widest that callgrind knows."""

_DUMP = re.compile(r"^desc: Trigger: Client Request: [^\[\n]*\[([^\n]+)\]$.*?^totals: (\d+)$", re.MULTILINE | re.DOTALL)


class CountingError(RuntimeError):
    """Instructions cannot be counted here, or a row failed."""


def counts(keys: Sequence[str], module: Path = MODULE, *, strict: bool = True) -> dict[str, int]:
    """Instructions of the benchmarks of a module, counted in one process, by the name in brackets.

    Args:
        keys: keys of rows, which the module finds in its environment.
        module: a pytest module that uses the fixture `benchmark`.
        strict: raise an error if a row fails; otherwise leave it out.

    Raises:
        CountingError: there is no valgrind, or a row raised an error.
    """
    if shutil.which("valgrind") is None:
        raise CountingError("instructions are counted by callgrind: install valgrind (apt-get install valgrind)")
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | settings(LEVEL) | {
            "SUITE_ROWS": "\n".join(keys),
            "CODSPEED_ENV": "local",
            "CODSPEED_PROFILE_FOLDER": folder,
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "TENFERRO_CACHE_DIR": folder,
            "PYTHONPATH": os.pathsep.join(filter(None, [str(BENCHMARKS), os.environ.get("PYTHONPATH", "")])),
        }  # fmt: skip
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        pytest = ["-m", "pytest", "-q", "-c", os.devnull, "--rootdir", str(BENCHMARKS), "-p", "pytest_codspeed.plugin"]
        callgrind = ["valgrind", "--tool=callgrind", "--instr-atstart=no", f"--callgrind-out-file={folder}/out"]
        done = subprocess.run(
            [*callgrind, sys.executable, *pytest, "-p", "no:cacheprovider", str(module)],
            env=environment, cwd=BENCHMARKS, capture_output=True, text=True,
        )  # fmt: skip
        dumps = [_DUMP.search(path.read_text()) for path in Path(folder).glob("out.*")]
        found = {match[1]: int(match[2]) for match in dumps if match}
    if done.returncode and strict:
        raise CountingError(f"counting failed with {done.returncode}:\n{done.stdout[-6000:]}\n{done.stderr[-2000:]}")
    return found


def counted(chosen: Sequence[str] = (), *, strict: bool = True) -> dict[str, int]:
    """Instructions by key of row, in the order of the suite, of one call each.

    The groups are always split in the same way between two processes, for counts depend a little on what ran before.
    """
    some = [row for row in rows(chosen) if row.counted]
    parts = [[row.key for row in some if (row.group in FIRST_PART) == first] for first in (True, False)]
    environment = os.environ | settings()
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    everything = "import pytest, tenferro_ad, tenferro_einsum, tenferro_linalg, tenferro_fft"
    subprocess.run([sys.executable, "-c", everything], env=environment, check=True)  # writes bytecode
    with ThreadPoolExecutor(max_workers=min(2, os.cpu_count() or 1)) as pool:
        found = [*pool.map(lambda keys: counts(keys, strict=strict) if keys else {}, parts)]
    counted = found[0] | found[1]
    lost = [row.key for row in some if row.key not in counted]
    if lost and strict:
        raise CountingError(f"callgrind left no counts of {', '.join(lost)}")
    return {row.key: round(counted[row.key] / row.repeats) for row in some if row.key in counted}
