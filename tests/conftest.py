"""One BLAS thread, the CPU for JAX, and deterministic, short property tests."""

import faulthandler
import gc
import os
import sys
import time
from itertools import groupby
from pathlib import Path
from typing import Any

from thorough import THOROUGH, tries

# What is collected lives as long as the process: `pytest_collection_finish` turns the collector of garbage on.
gc.disable()

# Before NumPy is imported: on small matrices threads cost more than they give, and two test workers share the cores.
for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")
os.environ.setdefault("JAX_PLATFORMS", "cpu")
XLA = ["--xla_force_host_platform_device_count=8"]  # devices for the tests of meshes
if not THOROUGH:  # compiling takes most of the time of tests that use XLA, whose optimiser is not their subject
    os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")
    XLA += ["--xla_cpu_use_fusion_emitters=false"]  # they take longer than all other stages together
os.environ.setdefault("XLA_FLAGS", " ".join(XLA))
# As `dev` does it: C code that has not changed, with sanitizers or without, is not compiled again.
os.environ.setdefault("TENFERRO_BUILD_CACHE", str(Path(__file__).parents[1] / "build" / "objects"))
os.environ.setdefault("SCIPY_ARRAY_API", "1")  # read when SciPy is imported, for the tests of its functions on tensors
os.environ.setdefault("MPLBACKEND", "agg")

import pytest  # noqa: E402
from _pytest.faulthandler import fault_handler_stderr_fd_key  # noqa: E402
from hypothesis import settings  # noqa: E402 - it may import NumPy
from hypothesis.internal.conjecture import providers  # noqa: E402

import machine_code  # noqa: E402
from covering import covering  # noqa: E402
from workspace import ROOT  # noqa: E402

settings.register_profile(
    "tenferro", max_examples=tries(12, 100), deadline=None, derandomize="CI" in os.environ, print_blob=True
)
settings.load_profile("tenferro")
if not THOROUGH:
    # It would parse all modules that are loaded for numbers to try: for seconds, and what a test draws depends on them.
    providers.is_local_module_file = lambda path: False  # type: ignore[assignment, attr-defined]


machine_code.install()


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Optimise machine code of the tests that are about it and of no others; the same for compiling behind calls.

    Loops are compiled before they run, as users have it, unless a test is marked as `stepwise`.
    """
    show_hangs(item.config)
    set_survivors_aside(item)
    machine_code.forget_programs()
    about_it = item.path.is_relative_to(ROOT / "tests" / "native") or item.get_closest_marker("optimised") is not None
    machine_code.optimise(about_it)
    machine_code.compile_in_background(item.get_closest_marker("background") is not None)
    machine_code.wait_for_loops(item.get_closest_marker("stepwise") is None)


SECONDS_OF_A_HANG = 600
_watched_since = [-float("inf")]


def show_hangs(config: pytest.Config) -> None:
    """Print all stacks once no test has begun for ten minutes.

    Pytest's own timer starts and joins a thread for each test, which costs milliseconds where all cores are busy.
    """
    if time.monotonic() - _watched_since[0] > 10:
        _watched_since[0] = time.monotonic()
        faulthandler.dump_traceback_later(SECONDS_OF_A_HANG, file=config.stash[fault_handler_stderr_fd_key])


_file = [ROOT]


def set_survivors_aside(item: pytest.Item) -> None:
    """Have `gc.collect` in the tests of a file go through what they make, and not through all that is alive.

    Late in a run that takes more than a second: caches, and the modules of many libraries.
    """
    if item.path != _file[0]:
        _file[0] = item.path
        gc.collect()
        gc.freeze()


MOST_PROCESSES = 1000
"""How many processes a run of the whole suite may start: each costs the import of NumPy and of what it tests.

Before raising it, let one process answer several questions.
"""

_started = [0]
"""Processes started here, and by the workers that have ended."""


def _count(event: str, arguments: tuple[Any, ...]) -> None:
    if event in ("subprocess.Popen", "os.fork", "os.posix_spawn"):
        _started[0] += 1


sys.addaudithook(_count)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    """Add what a worker has started."""
    _started[0] += getattr(node, "workeroutput", {}).get("processes", 0)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Tell the controller, or fail a run that has started more than `MOST_PROCESSES`."""
    faulthandler.cancel_dump_traceback_later()
    told = getattr(session.config, "workeroutput", None)
    if told is not None:
        told["processes"] = _started[0]
    elif _started[0] > MOST_PROCESSES and not THOROUGH and session.exitstatus == 0:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say how many processes the tests have started, where there are many."""
    if _started[0] > MOST_PROCESSES // 10:
        terminalreporter.line(f"{_started[0]} processes started, of at most {MOST_PROCESSES}: tests/conftest.py")


def _values(item: pytest.Function) -> tuple[tuple[int, ...], ...]:
    """The value that a case has of each mark `parametrize`, and of other parameters together, by identity."""
    params = dict(item.callspec.params)
    found = []
    for mark in item.iter_markers("parametrize"):
        names = mark.args[0] if mark.args else mark.kwargs["argnames"]
        names = names.replace(" ", "").split(",") if isinstance(names, str) else names
        found.append(tuple([id(params.pop(name)) for name in names if name]))
    return (*found, tuple(map(id, params.values()))) if params else tuple(found)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Of tests with three marks `parametrize` or more, keep a part of the product in which every pair of values is."""
    if THOROUGH:
        return
    kept: list[pytest.Item] = []
    for _, group in groupby(items, lambda item: (item.parent, getattr(item, "originalname", item.name))):
        cases = list(group)
        if hasattr(cases[0], "callspec") and all(isinstance(case, pytest.Function) for case in cases):
            cases = [cases[at] for at in covering([_values(case) for case in cases])]  # type: ignore[arg-type]
        kept += cases
    if len(kept) < len(items):
        config.hook.pytest_deselected(items=[*{*items} - {*kept}])
        items[:] = kept


def pytest_collection_finish() -> None:
    """Keep the garbage collector from going through collected tests and caches of programs again and again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
    gc.enable()
