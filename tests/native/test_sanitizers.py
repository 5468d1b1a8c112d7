"""The C code under sanitizers: tests of the extensions in a process of their own, pool and team as a program."""

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import instrumented

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="sanitizers are preloaded as Linux does it")

CHECKED = (
    "tests/native/test_failing_allocations.py", "tests/native/test_native_no_memory.py",
    "tests/cpu/test_native_pool.py", "tests/native/test_native_team.py", "tests/cpu/test_threads.py",
    "tests/native/test_native_fused_entry.py", "tests/native/test_native_strided.py",
    "tests/native/test_native_planned.py", "tests/native/test_whole_entry.py", "tests/cpu/test_native_copy.py",
    "tests/tensor/test_core_tensor.py", "tests/tensor/test_calls_out_of_memory.py", "tests/ad/test_ad_eager.py",
)  # fmt: skip
"""Tests that call C code of both extensions, and its vector code: only the first level is built with sanitizers."""

LEFT_OUT = (
    "fork child environment compiler off lost linear depend warned caches without_gap ends accurate no_access streamed "
    "very_long"
)
"""Words in names of tests that need processes of their own, measure memory, or are about generated code."""

Run = Callable[..., tuple[int, str]]


@pytest.fixture(scope="module")
def sanitized(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Python with instrumented extensions: arguments to exit status and output."""
    more = instrumented.sanitized(tmp_path_factory.mktemp("sanitized"))
    if not more:
        pytest.skip("the C compiler has no AddressSanitizer")
    environment = os.environ | more

    def run(*arguments: str) -> tuple[int, str]:
        done = instrumented.run([sys.executable, *arguments], environment)
        return done.returncode, done.stdout + done.stderr

    return run


def test_addresses_and_defined_behaviour(sanitized: Run) -> None:
    chosen = "not " + " and not ".join(LEFT_OUT.split())
    status, output = sanitized("-m", "pytest", "-q", "-x", "-p", "instrumented", *CHECKED, "-k", chosen)
    assert status == 0 and " passed" in output, output[-6000:]


PLANTED = """
import ctypes, os
planted = ctypes.CDLL(os.environ["TENFERRO_INSTRUMENTED"] + "/tenferro_cpu.native._compiled.so")
planted.plant_overflow(0), planted.plant_wrapped(1)
print("so far nothing", flush=True)
planted.{call}
print("nothing was reported")
"""


@pytest.mark.parametrize(
    "call, report",
    [("plant_overflow(1)", "heap-buffer-overflow"), ("plant_wrapped(2**31 - 1)", "signed integer overflow")],
)
def test_a_planted_error_is_reported(sanitized: Run, call: str, report: str) -> None:
    status, output = sanitized("-c", PLANTED.format(call=call))
    assert status != 0 and output.startswith("so far nothing\n"), output[-6000:]
    assert report in output and "nothing was reported" not in output, output[-6000:]


def races(folder: Path, *sources: str) -> tuple[int, str]:
    """Exit status and output of the program of pool and team under ThreadSanitizer."""
    if not instrumented.runtime_of("tsan"):
        pytest.skip("the C compiler has no ThreadSanitizer")
    native, program = instrumented.EXTENSIONS["tenferro_cpu.native._compiled"], str(folder / "driver")
    flags = ["-std=gnu11", "-g1", "-O1", "-fsanitize=thread", "-pthread", f"-I{native}", "-o", program]
    driver = str(instrumented.SOURCES / "threads_driver.c")
    done = instrumented.run([*instrumented.compiler().compiler_of_system(), *flags, driver, *sources])
    assert done.returncode == 0, done.stderr
    done = instrumented.run([program])
    if "unexpected memory mapping" in done.stderr:
        pytest.skip("ThreadSanitizer does not run with this system's layout of addresses")
    return done.returncode, done.stdout + done.stderr


def test_pool_and_team_have_no_races(tmp_path: Path) -> None:
    native = instrumented.EXTENSIONS["tenferro_cpu.native._compiled"]
    status, output = races(tmp_path, str(native / "memory/pool.c"), str(native / "threads/team.c"))
    assert status == 0 and "pieces in workers" in output and not output.startswith("0 "), output[-6000:]


def test_a_missing_order_would_be_reported(tmp_path: Path) -> None:
    native = instrumented.EXTENSIONS["tenferro_cpu.native._compiled"]
    text, wrong = (native / "threads/team.c").read_text(), tmp_path / "team.c"
    seat = "&t->gate, 1, memory_order_release"
    assert text.count(seat) == 1
    wrong.write_text(text.replace(seat, seat.replace("release", "relaxed")))
    status, output = races(tmp_path, str(native / "memory/pool.c"), str(wrong))
    assert status != 0 and "data race" in output, output[-6000:]
