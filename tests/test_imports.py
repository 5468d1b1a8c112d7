"""Importing a package is cheap: no heavy third party is touched and no entry point is scanned."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from workspace import DISTRIBUTIONS, import_name

# A finder sees every attempt, also for what is not installed and for what a `try` would swallow.
WATCH = """
import importlib.metadata, sys

HEAVY = {"scipy", "jax", "jaxlib", "cupy", "cupyx", "llvmlite", "opt_einsum", "torch"}
seen = set()

class Watch:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in HEAVY:
            seen.add(name.partition(".")[0])

def scan(*args, **kwargs):
    seen.add("entry_points")
    return original(*args, **kwargs)

import numpy
sys.meta_path.insert(0, Watch())
original, importlib.metadata.entry_points = importlib.metadata.entry_points, scan
__import__(sys.argv[1])
print(" ".join(sorted(seen)))
"""


def touched_by(module: str, path: Path | None = None) -> set[str]:
    environment = os.environ | ({"PYTHONPATH": str(path)} if path else {})
    command = [sys.executable, "-W", "error", "-c", WATCH, module]
    result = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return set(result.stdout.split())


@pytest.mark.parametrize("module", [import_name(distribution) for distribution in DISTRIBUTIONS])
def test_import_touches_nothing_heavy(module: str) -> None:
    assert touched_by(module) == set()


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("import scipy", "scipy"),
        ("try:\n    import cupy\nexcept ImportError:\n    pass", "cupy"),
        ("import importlib.util\nimportlib.util.find_spec('jax')", "jax"),
        ("from importlib.metadata import entry_points\nentry_points(group='g')", "entry_points"),
        ("import importlib.metadata as m\nm.entry_points(group='g')", "entry_points"),
    ],
)
def test_a_heavy_import_would_be_seen(text: str, seen: str, tmp_path: Path) -> None:
    (tmp_path / "heavy.py").write_text(text)
    assert seen in touched_by("heavy", tmp_path)


FIRST = """
import sys, numpy, tenferro_runtime as tr
x = tr.asarray(numpy.ones((200, 200)))
before = {*sys.modules}
tr.sum(x * x)
print(*sorted({*sys.modules} - before))
"""

FIRST_OPERATION = """
    _ _backend native native._compiled native._extension native._host
    native.codegen native.codegen.machine native.codegen.machine._jit
    native.copying native.copying._copy native.copying._movement native.copying.tuning
    native.eager native.eager._eager native.eager._eager_reduce native.eager._relayout
    native.kernels native.kernels._driver native.kernels._elementwise native.kernels._fixed native.kernels._forms
    native.kernels._fused_entry native.kernels._code native.kernels._limits native.kernels._planned
    native.kernels._reduce native.kernels._strided native.kernels.ordering native.kernels.ordering._along
    native.kernels.products native.kernels.products._products native.kernels.products.tuning
    native.kernels.random native.kernels.random._draw native.memory native.memory._pool
    native.threads native.threads._arbiter native.threads._blas native.threads._team
    native.threads._threads pools pools._affinity pools._opened pools._pool pools._thread
"""
"""Modules of tenferro_cpu that the first product and sum of a process load: tables of kernels, memory and threads.

Add to them only what every operation needs. Code that renders, plans or compiles is imported where it is first used.
"""


def test_a_first_operation_loads_no_more_than_it_needs() -> None:
    """Also nothing of Python that is slow to import, such as the metadata of all distributions."""
    done = subprocess.run([sys.executable, "-W", "error", "-c", FIRST], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    loaded = done.stdout.split()
    own = {
        name.removeprefix("tenferro_cpu").removeprefix(".") or "_" for name in loaded if name.startswith("tenferro_cpu")
    }
    assert own == {*FIRST_OPERATION.split()}
    others = {name.partition(".")[0] for name in loaded if not name.startswith("tenferro_")}
    assert not others & {"email", "csv", "zipfile", "hashlib", "_hashlib", "tempfile", "fractions", "platformdirs"}


STEPS = """
import sys
known = {*sys.modules}

def loaded(step):
    print(step, *sorted({*sys.modules} - known))
    known.update(sys.modules)

import numpy
known.update(sys.modules)
import tenferro_runtime as tr
loaded("import")
x = tr.asarray(numpy.eye(8))
tr.sum(x * x)
loaded("operation")
from tenferro_ad import grad
loaded("differentiation")

def loss(x):
    return tr.sum(tr.tanh(x) * tr.exp(x))

grad(loss)(x)
loaded("gradient")
tr.compile(grad(loss))(x)
loaded("program")
tr.linalg.svd(x)
loaded("decomposition")
"""

WITH_THE_NAMESPACE = (
    "_ _absent _namespace _native_forms adapters adapters._registration trees trees._containers trees._functions "
    "trees._tree"
)
"""Modules of tenferro_runtime that its import loads. Code that traces, compiles and runs programs comes with the first
program, and so does control flow."""


@pytest.mark.parametrize("name", ["extension", "control_flow", "runtime"])
def test_modules_are_attributes_without_an_import_of_their_own(name: str) -> None:
    code = f"import tenferro_runtime as tr; print(tr.{name}.__name__)"
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == f"tenferro_runtime.{name}", done.stderr


NOT_NEEDED = {
    "differentiation": "tenferro_runtime.placement tenferro_runtime.reports tenferro_runtime.lowering._lower",
    "gradient": "tenferro_runtime.placement tenferro_runtime.lowering._lower",
    "program": "tenferro_runtime.placement tenferro_runtime.reports tenferro_tensor.loop_ir csv",
    "decomposition": "tenferro_runtime.random tenferro_runtime.special opt_einsum scipy csv",
}
"""Modules that would make a step slower: of plans for several devices, of programs as loops, of a scan of what is
installed (which brings csv and email), of random numbers."""


@pytest.fixture(scope="module")
def steps() -> dict[str, set[str]]:
    """The modules that each of the first steps of a process loads."""
    done = subprocess.run([sys.executable, "-W", "error", "-c", STEPS], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return {line.split()[0]: {*line.split()[1:]} for line in done.stdout.splitlines()}


def test_importing_the_namespace_loads_no_code_of_programs(steps: dict[str, set[str]]) -> None:
    own = {
        name.removeprefix("tenferro_runtime").removeprefix(".") or "_"
        for name in steps["import"]
        if name.startswith("tenferro_runtime")
    }
    assert own == {*WITH_THE_NAMESPACE.split()}
    assert not steps["import"] & {"logging", "pathlib"}
    assert not [name for name in steps["operation"] if name.startswith("tenferro_runtime")]


@pytest.mark.parametrize("step", NOT_NEEDED)
def test_first_steps_load_nothing_that_they_do_not_need(step: str, steps: dict[str, set[str]]) -> None:
    assert not steps[step] & {*NOT_NEEDED[step].split()}
    assert not steps[step] & {"email", "importlib.metadata"}


@pytest.mark.parametrize("backend", ["tenferro_cpu", "tenferro_gpu"])
def test_the_array_namespace_does_not_load_a_backend(backend: str) -> None:
    code = f"import sys, tenferro_runtime; print({backend!r} in sys.modules)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.stdout.strip() == "False", result.stderr
