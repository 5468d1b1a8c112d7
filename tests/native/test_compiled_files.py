"""What is compiled, in which order and for which processors, and how large it may become."""

import os
import platform
import subprocess
import sys
import sysconfig
from pathlib import Path

import numpy as np
import pytest

from instrumented import EXTENSIONS, compiler
from native_rooms import compiled

NATIVE = EXTENSIONS["tenferro_cpu.native._compiled"]
BUILD = compiler()

pytestmark = [
    pytest.mark.skipif(platform.machine() != "x86_64" or os.name != "posix", reason="levels of x86-64"),
    pytest.mark.skipif(not BUILD.compiler_of_system(), reason="there is no C compiler"),
]

TEMPLATES = {
    "contraction": {"elementwise", "engine", "pack", "product", "strip", "tile"},
    "copying": {"copy"},
    "kernels": {"arithmetic", "reductions"},
    "linalg": {"complex128", "complex64", "float32", "float64", "product"},
    "native": {"status"},
    "ordering": {"extremes", "keys", "scans", "search"},
    "products": {"product"},
    "random": {"fill"},
}
"""Files that are compiled once for each vector level. They take nine tenths of the time: another one has to pay."""

MOST_BYTES = 7_600_000
"""Of the extension with all levels and names of functions; 7.2 million are there."""

MODULE = """
#define TENFERRO_MODULE
#include "compiled.h"
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, .m_name = "levels", .m_size = -1};
PyMODINIT_FUNC PyInit_levels(void)
{
    PyObject *module = PyModule_Create(&definition);
    if (module != NULL && tenferro_add_levels(module) < 0)
        Py_CLEAR(module);
    return module;
}
"""


def test_files_with_levels_are_those_that_are_known():
    found = {folder: set() for folder in TEMPLATES}
    for source in NATIVE.rglob("*.simd.c"):
        found.setdefault(source.parent.name, set()).add(source.name.removesuffix(".simd.c"))
    assert found == TEMPLATES


@pytest.mark.skipif(compiled is None, reason="this installation has no C extension")
def test_the_extension_stays_small():
    assert Path(compiled.__file__).stat().st_size <= MOST_BYTES


def test_the_longest_jobs_come_first():
    jobs = BUILD.jobs_of(NATIVE, ["v2", "v3", "v4"])
    assert len(jobs) == len(set(NATIVE.rglob("*.c"))) + 2 * sum(map(len, TEMPLATES.values()))
    assert {job.source.name for job in jobs[:12]} == {f"{name}.simd.c" for name in TEMPLATES["linalg"] - {"product"}}
    last_template = max(i for i, job in enumerate(jobs) if job.source.name.endswith(".simd.c"))
    assert last_template == 3 * sum(map(len, TEMPLATES.values())) - 1


def test_the_environment_chooses_levels(monkeypatch):
    def levels(asked: str) -> list[str]:
        monkeypatch.setenv("TENFERRO_BUILD_LEVELS", asked)
        return BUILD.levels_to_build(NATIVE, BUILD.compiler_of_system())

    assert levels("all") == ["v2", "v3", "v4"]
    assert levels("avx2,generic") == ["v2", "v3"]
    assert levels("own") == levels("") and len(levels("own")) == 1
    with pytest.raises(OSError, match=r"TENFERRO_BUILD_LEVELS=avx9 names avx9; choose \['generic', 'avx2', 'avx512'\]"):
        levels("avx9")


@pytest.fixture(scope="module")
def load(tmp_path_factory):
    """Load a module with the code that chooses a level, built for some levels: its level, or the error."""
    folder = tmp_path_factory.mktemp("levels")
    (folder / "module.c").write_text(MODULE)
    includes = [f"-I{path}" for path in (NATIVE, sysconfig.get_path("include"), np.get_include())]

    def load(built: int, level: str = "") -> str:
        target = folder / str(built) / "levels.so"
        if not target.exists():
            target.parent.mkdir()
            flags = [*BUILD.FLAGS, f"-DTENFERRO_BUILT={built}", *includes, "-shared", "-o", str(target)]
            sources = [str(folder / "module.c"), str(NATIVE / "levels.c")]
            subprocess.run([*BUILD.compiler_of_system(), *flags, *sources], check=True)
        code = "try: import levels; print(levels.LEVEL)\nexcept ImportError as error: print(error)"
        environment = os.environ | {"PYTHONPATH": str(target.parent), "TENFERRO_CPU_LEVEL": level}
        done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    return load


def test_a_level_that_is_not_compiled_is_replaced_by_a_lower_one_or_refused(load):
    best = BUILD.LEVEL_NAMES.index(load(7))
    assert load(7, "generic") == load(1) == "generic"
    if best == 0:
        pytest.skip("this processor has the lowest level only")
    assert load(1, "avx2") == "generic"
    own = BUILD.LEVEL_NAMES[best]
    assert load(1 << best) == own
    assert load(1 << best, "generic") == (
        f"the C extension of tenferro-cpu was compiled for {own} only, and TENFERRO_CPU_LEVEL is generic; "
        "build it with TENFERRO_BUILD_LEVELS=all in the environment"
    )


def test_code_for_a_better_processor_is_refused(load):
    best = BUILD.LEVEL_NAMES.index(load(7))
    if best == 2:
        pytest.skip("this processor has every level")
    assert f"this processor has {BUILD.LEVEL_NAMES[best]}" in load(4)
