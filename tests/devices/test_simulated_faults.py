"""Failures on the simulated accelerator: they come late, stick, travel through events, and keep their cause."""

import os
import sys
import threading

import numpy as np
import pytest

import tenferro_runtime as tr
from simulated.faults import Faults, InjectedFault
from simulated.installed import no_accelerator, simulated
from simulated.runtime import SimRuntime
from tenferro_tensor import AsynchronousError, DeviceMemoryError, Spec, device_runtime
from tenferro_tensor_core import ArgumentError, PlacementError, UnsupportedError

ONES = np.ones(4)


@pytest.fixture
def sim():
    with simulated() as runtime:
        yield runtime


def test_a_kernel_fails_later_than_it_is_issued(sim):
    x = tr.asarray(ONES, device="sim:1")
    sim.faults.next("kernel", after=1)
    y = tr.sin(tr.cos(tr.sin(x)))  # the second of three, and nobody notices
    with pytest.raises(
        AsynchronousError, match=r"cos on sim:1/default failed: InjectedFault: the kernel was told"
    ) as e:
        y.to_device("cpu:0")
    assert isinstance(e.value.__cause__, InjectedFault) and isinstance(e.value, RuntimeError)
    with pytest.raises(AsynchronousError, match="cos on sim:1/default"):
        tr.synchronize("sim:1")
    tr.synchronize("sim:0")
    with pytest.raises(AsynchronousError, match="cos on sim:1/default"):
        tr.synchronize_all()


def test_an_error_travels_through_events(sim):
    a, b = sim.device(0).stream(), sim.device(1).stream()
    sim.faults.next("transfer", error=lambda: OSError("the bus is on fire"))
    x = sim.device(0).upload(ONES, a)
    b.wait(a.record())
    y = sim.copy_peer(x, None, b)
    pending = sim.device(1).download(y, b)
    for wait in (pending.result, b.synchronize, a.synchronize, pending.event.synchronize):
        with pytest.raises(AsynchronousError, match="upload on sim:0/.* failed: OSError: the bus is on fire") as error:
            wait()
        assert isinstance(error.value.__cause__, OSError)
    sim.device(0).stream().synchronize()  # others go on


def test_an_event_before_the_failure_is_whole(sim):
    s = sim.device(0).stream()
    x = sim.device(0).upload(ONES, s)
    before = s.record()
    sim.faults.next("kernel")
    s.compute("negate", np.negative, (x,), [(x.shape, x.dtype)])
    before.synchronize()
    assert before.done
    after = s.record()
    with pytest.raises(AsynchronousError, match="negate"):
        after.synchronize()
    assert after.done


def test_the_first_failure_is_the_one_that_is_told(sim):
    s = sim.device(0).stream()
    for text in ("first", "second"):
        sim.faults.next("kernel", error=lambda text=text: ValueError(text))
    for _ in range(2):
        s.issue("work", lambda: None)
    with pytest.raises(AsynchronousError, match="ValueError: first"):
        s.synchronize()


def test_allocations_fail_at_once(sim):
    sim.faults.next("allocation")
    text = "sim:2 has no room for 32 bytes: 0 of 268435456 are in use; drop tensors, or use another device"
    with pytest.raises(DeviceMemoryError, match=text) as error:
        tr.asarray(ONES, device="sim:2")
    assert isinstance(error.value, MemoryError) and isinstance(error.value.__cause__, InjectedFault)
    assert tr.asarray(ONES, device="sim:2").tolist() == [1.0] * 4


def test_memory_is_counted_and_ends():
    with simulated(memory=1000) as sim:
        device = sim.device(0)
        x = tr.asarray(np.ones(100), device="sim:0")
        assert device.memory() == {"live": 800, "peak": 800, "values": 1, "limit": 1000}
        with pytest.raises(DeviceMemoryError, match="no room for 800 bytes: 800 of 1000 are in use"):
            x + x
        del x
        y = tr.asarray(np.ones(50), device="sim:0")
        z = y + y
        assert device.memory()["live"] == 800
        del y
        assert device.memory()["live"] == 400 and device.memory()["peak"] == 800
        device.default_stream.release(z.data)
        assert device.memory()["live"] == 0


def test_host_code_cannot_read_device_memory(sim):
    x = tr.asarray(ONES, device="sim:0")
    for read in (lambda: np.asarray(x.data), lambda: list(x.data), lambda: np.sin(x.data), lambda: x.data + ONES):
        with pytest.raises((PlacementError, TypeError)):
            read()
    with pytest.raises(PlacementError, match="download it first"):
        np.asarray(x.data)


def test_what_is_elsewhere_is_refused(sim):
    x, s = tr.asarray(ONES, device="sim:0"), sim.device(1).default_stream
    with pytest.raises(PlacementError, match="download on sim:1 takes values in its memory, got <float64"):
        sim.device(1).download(x.data, s)
    with pytest.raises(
        ArgumentError, match="sim:0 was given <SimStream sim:1/default>, which is not one of its streams"
    ):
        sim.device(0).upload(ONES, s)
    with pytest.raises(PlacementError, match="sim:7 was requested, but there are sim:0 to sim:3"):
        sim.device(7)
    with pytest.raises(PlacementError, match="sim:9"):
        tr.asarray(ONES, device="sim:9")


def test_time_between_events(sim):
    s = sim.device(0).stream()
    first, gate = s.record(timing=True), threading.Event()
    s.issue("wait", lambda: gate.wait(10))
    last, plain = s.record(timing=True), s.record()
    with pytest.raises(UnsupportedError, match="events that are done; synchronize\\(\\) with the later one"):
        last.elapsed(first)
    gate.set()
    plain.synchronize()
    assert last.elapsed(first) > 0
    with pytest.raises(UnsupportedError, match=r"two events of record\(timing=True\)"):
        last.elapsed(plain)


def test_faults_and_delays_come_from_the_seed():
    def outcome(seed):
        faults = Faults(seed, kernel=0.2, transfer=0.1, delayed=0.5)
        return [(str(faults.draw(k)), faults.delay()) for k in ("kernel", "transfer") * 50]

    assert outcome(1) == outcome(1) != outcome(2)


def test_threads_end_with_their_streams():
    before = set(threading.enumerate())

    def of_streams():
        return [t for t in threading.enumerate() if t not in before and t.name.startswith("sim:")]

    with simulated() as sim:
        streams = [d.stream() for d in sim.devices()]
        assert of_streams() == [], "a thread starts with the first work"
        for s in streams:
            s.synchronize()
        ends = of_streams()
        assert len(ends) == 4
        del streams, s
        for thread in ends:
            thread.join(60)
        assert of_streams() == []
        tr.asarray(ONES, device="sim:3").tolist()
        assert len(of_streams()) == 1
    assert of_streams() == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_child_is_refused(monkeypatch):
    """As `os.getpid` tells a child."""
    with no_accelerator():
        runtime = SimRuntime()
        s = runtime.device(0).stream()
        monkeypatch.setattr(os, "getpid", lambda: -1)
        for use in (s.record, s.synchronize, lambda: runtime.device(0).upload(ONES, s), lambda: s.issue("x", print)):
            with pytest.raises(RuntimeError, match="made before this process was forked"):
                use()


def test_the_process_is_left_as_it_was():
    with simulated() as runtime:
        assert device_runtime() is runtime
        with simulated() as inner:
            assert device_runtime("sim") is inner
        assert device_runtime("sim") is runtime
    assert "simulated" in sys.modules
    with no_accelerator(), pytest.raises(Exception, match="no device runtime for 'sim' is installed"):
        device_runtime("sim")


def test_empty_values(sim):
    s = sim.device(0).default_stream
    for shape in ((0,), (2, 0, 3), ()):
        raw = sim.device(0).empty(Spec(shape, np.dtype("complex64")), s)
        assert raw.shape == shape and raw.dtype == np.dtype("complex64") and raw.nbytes == (8 if shape == () else 0)
