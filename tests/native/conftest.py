"""What tests of the contraction engine set, and put back."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from native_kernels import FUNCTIONS


@pytest.fixture
def fresh_steps() -> Iterator[None]:
    """No step is remembered from before, nor after: what they are depends on what a test sets."""
    from tenferro_cpu.native.contraction._step import STEPS

    STEPS.clear()
    yield
    STEPS.clear()


@pytest.fixture
def allow_threads(monkeypatch: pytest.MonkeyPatch, fresh_steps: None) -> Iterator[Callable[[int], None]]:
    """Plans for four threads on any machine, each piece of work for itself; sets how many threads there are."""
    from tenferro_cpu.native.contraction import _kernel, tuning
    from tenferro_cpu.native.threads._team import team

    for name in ("THREAD_MIN_FLOPS", "THREAD_MIN_BYTES"):
        monkeypatch.setattr(tuning, name, 1)
    monkeypatch.setattr(_kernel, "usable_cores", lambda: 4)
    crew = team()
    assert crew is not None
    before = {name: crew._get(name) for name in ("cores", "allowed")}
    crew._set("cores", 4)
    yield partial(crew._set, "allowed")
    for name, value in before.items():
        crew._set(name, value)


WITH_FUNCTIONS = {
    "test_contraction_blocks", "test_interrupts", "test_native_combined", "test_native_complex", "test_native_device",
    "test_native_elementwise", "test_native_engine", "test_native_expansions", "test_native_fused_entry",
    "test_native_team", "test_whole_render",
}  # fmt: skip
"""Modules whose kernels hold functions like `exp`, or vectors of more than two numbers."""


def pytest_collection_modifyitems(items):
    files = {Path(__file__).with_name(f"{name}.py") for name in WITH_FUNCTIONS}
    for item in items:
        if item.path in files:
            item.add_marker(FUNCTIONS)
