"""The waits that the library issues between streams are needed: without one of them the checker finds a fault."""

import numpy as np
import pytest

import tenferro_runtime as tr
from simulated.installed import simulated
from simulated.streams import SimStream
from tenferro_tensor import StreamContext, compute_context

X = np.random.default_rng(0).standard_normal((4, 4))


def through_contexts():
    """A value goes from one stream to another and back, and two streams join."""
    one, other = StreamContext.for_device("sim:0"), StreamContext("sim:0")
    with compute_context(one):
        x = tr.asarray(X, device="sim:0") * 2.0
    with compute_context(other):
        y = x + 1.0
    with compute_context(one):
        return y * 2.0


def through_devices():
    """Values go from device to device, from main memory and back."""
    x = tr.asarray(X, device="sim:0")
    y = (x @ x).to_device("sim:1") + 1.0
    return y.to_device("sim:0") - x


def by_a_program():
    """One program of two devices."""
    f = tr.compile(lambda x: (tr.exp(x).to_device("sim:1") * 2.0).to_device("sim:0") + x)
    return f(tr.asarray(X, device="sim:0"))


SPARE = {through_contexts: 0, through_devices: 0, by_a_program: 2}
"""Waits at most that order what is ordered already: a program waits for its operands whatever it does with them."""


def faults_without(monkeypatch, work, dropped=None):
    """How often streams wait for each other, and the faults that the checker finds where one wait is left out."""
    seen = []
    real = SimStream.wait

    def wait(self, event):
        seen.append(event)
        if len(seen) - 1 != dropped:
            real(self, event)

    with monkeypatch.context() as patch, simulated(hazards=True) as runtime:
        patch.setattr(SimStream, "wait", wait)
        np.asarray(work().to_device("cpu:0"))
        runtime.synchronize_all()
        return len(seen), list(runtime.checker.hazards)


@pytest.mark.parametrize("work", SPARE, ids=lambda work: work.__name__)
def test_every_wait_is_needed(monkeypatch, work):
    waits, faults = faults_without(monkeypatch, work)
    assert waits >= 2 and not faults
    spare = [k for k in range(waits) if not faults_without(monkeypatch, work, k)[1]]
    assert len(spare) <= SPARE[work], f"{spare} of {waits}"
