"""The environments that tenferro is tested in, beside the locked one of `python3 dev test`.

`python3 dev matrix` lists them, `python3 dev matrix lowest` runs one: a copy of the working tree in build/matrix, an
environment of its own there, and the tests named below. The workflow of the repository runs all of them.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "build" / "matrix"
BIN = "Scripts" if os.name == "nt" else "bin"

CORE = (
    "tests/tensor_core", "tests/tensor/test_catalog_elementwise.py", "tests/tensor/test_core_tensor.py",
    "tests/runtime/test_compile.py", "tests/runtime/test_control_flow.py", "tests/runtime/test_passes.py",
    "tests/runtime/test_array_reductions.py", "tests/ad/test_ad_eager.py", "tests/ad/test_ad_programs.py",
    "tests/ad/test_ad_transforms.py", "tests/ad/test_rules_table.py", "tests/einsum/test_einsum_values.py",
    "tests/linalg/test_linalg_extension.py", "tests/fft/test_fft_values.py", "tests/cpu/test_cpu_backend.py",
    "tests/batching/test_vmap_composed.py", "tests/test_imports.py",
)  # fmt: skip
"""Main ideas of every folder that needs no guest."""

NATIVE = (
    "tests/native/test_native_elementwise.py",
    "tests/runtime/test_fusion.py",
    "tests/runtime/test_whole_programs.py",
)
XLA = (
    "tests/xla/test_jitted.py",
    "tests/xla/test_from_jax.py",
    "tests/xla/test_as_jax.py",
    "tests/agreement/test_programs_agree.py",
)
MACHINE = (
    "tests/native", "tests/cpu", "tests/linalg", "tests/lowering", "tests/agreement", "tests/einsum",
    "tests/test_readme.py", "tests/runtime/test_program_costs.py", "tests/examples/test_loop_programs.py",
)  # fmt: skip
"""What could see another processor, another BLAS, other cores or other work: kernels, decompositions, documents."""


@dataclass(frozen=True)
class Cell:
    """One environment.

    Attributes:
        shows: what it is for.
        tests: paths given to pytest.
        python: version of the interpreter; empty for the one that runs `dev`.
        lock: options of `uv lock`; without any the versions are the locked ones.
        groups: dependency groups to install.
        without: packages taken out of the environment again.
        environment: variables of the build and the tests.
        cores: how many cores the tests may use; 0 for all.
        busy: whether another process burns each core meanwhile.
    """

    shows: str
    tests: tuple[str, ...]
    python: str = ""
    lock: tuple[str, ...] = ()
    groups: tuple[str, ...] = ("test", "compare")
    without: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    cores: int = 0
    busy: bool = False


def machine(shows: str, **options: Any) -> Cell:
    """The locked environment on another machine, as far as this one can pretend to be one."""
    return Cell(shows, MACHINE, groups=("dev",), **options)


CELLS: dict[str, Cell] = {
    **{
        f"python-{version}": Cell(f"Python {version}, locked versions", (*CORE, *NATIVE), python=version)
        for version in ("3.11", "3.12", "3.13", "3.14")
    },
    "python-3.14t": Cell(
        "free-threaded Python, where the wheels are pure", CORE, python="3.14t", groups=("test",), without=("llvmlite",)
    ),
    "lowest": Cell(
        "the lowest versions that the packages accept", (*CORE, *NATIVE), lock=("--resolution", "lowest-direct")
    ),
    "newest": Cell("the newest versions on the index", (*CORE, *NATIVE, *XLA), python="3.13", lock=("--upgrade",)),
    "no-llvmlite": Cell(
        "without llvmlite: compiled programs step by step", CORE, groups=("test",), without=("llvmlite",)
    ),
    "no-compiler": Cell(
        "pure wheels, without a C compiler", CORE, environment={"TENFERRO_PURE": "1", "CC": "", "PATH": ""}
    ),
    "jax-newest": Cell(
        "the newest JAX", XLA, python="3.13", lock=("--upgrade-package", "jax", "--upgrade-package", "jaxlib")
    ),
    **{
        f"vectors-{level}": machine(
            f"vectors of at most {level}",
            environment={"TENFERRO_CPU_LEVEL": level, "TENFERRO_BUILD_LEVELS": "all"},  # not this processor's alone
        )
        for level in ("generic", "avx2", "avx512")
    },
    **{
        f"blas-{kernels.lower()}": machine(
            f"the kernels that OpenBLAS has for {kernels}", environment={"OPENBLAS_CORETYPE": kernels}
        )
        for kernels in ("Haswell", "Zen", "SkylakeX", "Prescott")
    },
    "one-core": machine("a machine with one core", cores=1),
    "busy": machine("beside processes that burn every core", busy=True),
}
"""The oldest JAX has a command of its own, `python3 dev jax`, which every run of the tests includes."""


def copy_tree(target: Path) -> None:
    """Copy the files that git tracks or would track, as they are now."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    for name in filter(None, listed.stdout.decode().split("\0")):
        if (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target / name)


@contextmanager
def burning(cores: int) -> Iterator[None]:
    """Keep this many processes busy."""
    processes = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(cores)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def run(name: str, uv: str, options: list[str]) -> int:
    """Make the environment of a cell and run its tests there.

    Returns:
        The exit status of pytest, or of the first step that failed.
    """
    cell = CELLS[name]
    tree, venv = FOLDER / name / "tree", FOLDER / name / "venv"
    shutil.rmtree(FOLDER / name, ignore_errors=True)
    copy_tree(tree)
    environment = os.environ | {"UV_PROJECT_ENVIRONMENT": str(venv), "UV_PYTHON": cell.python or sys.executable}
    environment |= cell.environment
    environment.pop("VIRTUAL_ENV", None)
    if cell.environment.get("PATH") == "":
        environment["PATH"] = str(Path(uv).parent)

    def call(*command: str) -> int:
        print(f"\n$ {' '.join(command)}", flush=True)
        return subprocess.run(command, cwd=tree, env=environment).returncode

    if call(uv, "python", "find", "--no-project", environment["UV_PYTHON"]):
        raise SystemExit(f"matrix: {name} needs Python {cell.python}; install it where uv finds it, as on PATH")
    groups = [option for group in cell.groups for option in ("--group", group)]
    sync = (uv, "sync", "--frozen", "--quiet", "--all-packages", "--no-default-groups", *groups)
    without = [option for package in cell.without for option in ("--no-install-package", package)]
    status = (call(uv, "lock", *cell.lock) if cell.lock else 0) or call(*sync, *without)
    some = ("taskset", "--cpu-list", f"0-{cell.cores - 1}") if cell.cores else ()
    with burning((os.cpu_count() or 1) if cell.busy else 0):
        return status or call(*some, str(venv / BIN / "python"), "-m", "pytest", "-q", *cell.tests, *options)


def main() -> int:
    parser = argparse.ArgumentParser(prog="dev matrix", description=__doc__)
    parser.add_argument("cell", nargs="?", choices=sorted(CELLS))
    parser.add_argument("--uv", default="uv", help=argparse.SUPPRESS)
    parser.add_argument("--json", action="store_true", help="list the names as JSON, for a workflow")
    arguments, options = parser.parse_known_args()
    if arguments.cell:
        return run(arguments.cell, arguments.uv, options)
    print(json.dumps(list(CELLS)) if arguments.json else "\n".join(f"{n:16}{c.shows}" for n, c in CELLS.items()))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
