"""Long runs of machine code are cut, and the interpreter sees an interrupt between two parts."""

import signal
from typing import Any

import numpy as np
import pytest

from tenferro_cpu.native.kernels import _driver
from tenferro_cpu.native.kernels._elementwise import Fused
from tenferro_cpu.native.kernels._reduce import Reduced
from tenferro_tensor import catalog
from tenferro_tensor.device_model import Apply, KernelIR, Operand, Reduction

SHAPE = (8, 4096)


def count(monkeypatch: pytest.MonkeyPatch, after: Any = None) -> list[int]:
    """Cut into parts of 4096 elements, in one thread, and note each part."""
    parts: list[int] = []
    run, piece = _driver._functions()

    def noted(kernel: int, block: int) -> None:
        run(kernel, block)
        parts.append(block)
        if after is not None and len(parts) == 2:
            after()

    monkeypatch.setattr(_driver, "_functions", lambda: (noted, piece))
    monkeypatch.setattr(_driver, "team", lambda: None)
    monkeypatch.setattr(_driver, "BREATH", 4096)
    return parts


def direct(monkeypatch: pytest.MonkeyPatch, after: Any = None) -> tuple[list[int], Any, np.ndarray[Any, Any]]:
    f8 = Operand(np.dtype("f8"))
    kernel = Fused(KernelIR((f8, f8), (Apply(catalog.mul.op(), (0, 1)),), (2,)))
    x, y = np.random.default_rng(0).random((2, *SHAPE))
    parts = count(monkeypatch, after)
    return parts, lambda: kernel(x, y), x * y


def test_parts_make_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    parts, run, expected = direct(monkeypatch)
    np.testing.assert_array_equal(run(), expected)
    assert len(parts) == 8


@pytest.mark.parametrize("axes", [(0,), (1,), (0, 1)])
def test_cut_reductions_are_those_of_one_piece(monkeypatch: pytest.MonkeyPatch, axes: tuple[int, ...]) -> None:
    kernel = Reduced(KernelIR((Operand(np.dtype("f8")),), (), (0,), reduction=Reduction("sum")))
    x = np.random.default_rng(0).random(SHAPE)
    whole = kernel(x, axes=axes)
    count(monkeypatch)
    np.testing.assert_array_equal(kernel(x, axes=axes), whole)


def test_an_interrupt_leaves_a_run_between_two_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        parts, run, _ = direct(monkeypatch, lambda: signal.raise_signal(signal.SIGINT))
        with pytest.raises(KeyboardInterrupt):
            run()
    finally:
        signal.signal(signal.SIGINT, before)
    assert len(parts) == 2
