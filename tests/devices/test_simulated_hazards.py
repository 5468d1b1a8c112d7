"""The happens-before checker of the simulated accelerator: each rule, what it lets pass, and dropped waits."""

import itertools
import random
import threading

import numpy as np
import pytest

from simulated.clocks import HazardError
from simulated.faults import Faults
from simulated.installed import simulated
from simulated.memory import Staging
from simulated.streams import SimEvent
from tenferro_tensor import Spec

ONES = np.ones(4)
SPEC = Spec((4,), np.dtype("float64"))


def negate(stream, raw):
    return stream.compute("negate", np.negative, (raw,), [(raw.shape, raw.dtype)])[0]


@pytest.fixture
def sim():
    with simulated(hazards=True) as runtime:
        yield runtime


@pytest.fixture
def two(sim):
    """A device, and two streams of it."""
    device = sim.device(0)
    return device, device.stream(), device.stream()


def rules(runtime):
    return [hazard.rule for hazard in runtime.checker.hazards]


def test_a_read_needs_an_event_after_the_write(sim, two):
    device, s, t = two
    x = device.upload(ONES, s)
    negate(t, x)
    assert set(rules(sim)) == {"read not ordered after the write", "use not ordered after the allocation"}
    hazard = sim.checker.hazards[-1]
    assert "negate reads value 1 of sim:0, written by sim:0/" in hazard.text
    assert f"{__file__}:" in hazard.line and "np.negative" in hazard.line


def test_an_event_orders_them(sim, two):
    device, s, t = two
    x = device.upload(ONES, s)
    t.wait(s.record())
    y = negate(t, x)
    np.testing.assert_array_equal(device.download(y, t).result(), -ONES)
    assert not rules(sim)


def test_an_event_recorded_too_early_orders_nothing(sim, two):
    device, s, t = two
    early = s.record()
    x = device.upload(ONES, s)
    t.wait(early)
    negate(t, x)
    assert "read not ordered after the write" in rules(sim)


def test_order_goes_from_stream_to_stream(sim, two):
    device, s, t = two
    far = sim.device(1).stream()
    x = device.upload(ONES, s)
    t.wait(s.record())
    far.wait(t.record())
    sim.copy_peer(x, None, far)
    assert not rules(sim)


@pytest.mark.parametrize("how", ["event", "stream", "done"])
def test_what_the_host_has_waited_for_is_ordered_before_what_it_issues(sim, two, how):
    device, s, t = two
    x = device.upload(ONES, s)
    event = s.record()
    if how == "event":
        event.synchronize()
    elif how == "stream":
        s.synchronize()
    else:
        while not event.done:
            pass
    negate(t, x)
    assert not rules(sim)


def test_an_overwrite_needs_the_write_and_the_reads_before_it(sim, two):
    device, s, t = two
    x = device.empty(SPEC, s)
    s.issue("fill", lambda: None, (), [x.buffer])
    t.wait(s.record())
    negate(t, x)
    s.issue("refill", lambda: None, (), [x.buffer])
    assert rules(sim) == ["overwrite not ordered after a read"]
    t.issue("refill", lambda: None, (), [x.buffer])
    assert rules(sim)[1:] == ["overwrite not ordered after the write"]
    t.wait(s.record())
    t.issue("refill", lambda: None, (), [x.buffer])
    assert len(rules(sim)) == 2


def test_memory_that_nobody_has_written_is_not_read(sim, two):
    device, s, _ = two
    x = device.empty(SPEC, s)
    y = negate(s, x)
    assert rules(sim) == ["read of memory that nobody has written"]
    assert np.isnan(device.download(y, s).result()).all(), "and there is nonsense in it"


def test_released_memory_is_not_used(sim, two):
    device, s, _ = two
    x = device.upload(ONES, s)
    s.release(x)
    s.release(x)  # once is enough
    assert not rules(sim)
    negate(s, x)
    assert rules(sim) == ["use after free"]


def test_memory_is_released_when_all_its_users_have_passed(sim, two):
    device, s, t = two
    x, y = device.upload(ONES, s), device.upload(ONES, s)
    t.wait(s.record())
    negate(t, x)
    negate(t, y)
    s.release(x)
    assert rules(sim) == ["free while another stream uses it"]
    s.wait(t.record())
    s.release(y)
    assert len(rules(sim)) == 1


def test_a_release_is_seen_by_streams_that_read_in_spite_of_it(sim, two):
    device, s, _ = two
    x = device.upload(ONES, s)
    s.release(x)
    y = negate(s, x)
    assert not np.array_equal(device.download(y, s).result(), -ONES)


def test_dropped_values_may_be_in_use(sim, two):
    """The last reference goes while a stream has not yet read the value; the stream keeps the memory."""
    device, s, _ = two
    gate = threading.Event()
    x = device.upload(ONES, s)
    s.issue("gate", lambda: gate.wait(10))
    y = negate(s, x)
    del x
    assert device.memory()["values"] == 1
    gate.set()
    np.testing.assert_array_equal(device.download(y, s).result(), -ONES)
    assert not rules(sim)


def test_events_that_nobody_has_recorded_are_found(sim, two):
    _, s, _ = two
    event = SimEvent(sim)
    assert event.done, "as on hardware, where it is silently passed"
    event.synchronize()
    s.wait(event)
    assert rules(sim) == ["event never recorded"] * 2


def test_the_host_leaves_staging_buffers_in_flight_alone(sim, two):
    device, s, _ = two
    x = device.upload(ONES, s)
    pending = device.download(x, s)
    pending.staging.read()
    assert rules(sim) == ["host read of a staging buffer in flight"]
    np.testing.assert_array_equal(pending.result(), ONES)
    staging = Staging(sim.checker, (4,), np.dtype("float64"))
    staging.write(ONES)
    device.upload_staged(staging, s)
    staging.write(2 * ONES)
    assert rules(sim)[1:] == ["overwrite not ordered after a read"]
    s.synchronize()
    staging.write(3 * ONES)
    assert len(rules(sim)) == 2


def test_a_strict_checker_raises_at_the_access():
    with simulated(hazards=True, strict=True) as runtime:
        device = runtime.device(0)
        s, t = device.stream(), device.stream()
        x = device.upload(ONES, s)
        with pytest.raises(HazardError, match="use not ordered after the allocation: negate uses value 1 of sim:0"):
            negate(t, x)


def test_the_fixture_fails_where_a_test_leaves_hazards():
    with pytest.raises(AssertionError, match="read not ordered after the write"):
        with simulated() as runtime:
            device = runtime.device(0)
            negate(device.stream(), device.upload(ONES, device.stream()))


@pytest.mark.parametrize("threads", [False, True])
def test_order_between_host_threads_is_carried_or_taken_for_granted(threads):
    """With a clock for each thread, what one has waited for is known to another only when it is told."""
    for told in (False, True):
        with simulated(hazards=True, threads=threads) as runtime:
            device = runtime.device(0)
            s, t = device.stream(), device.stream()
            x = device.upload(ONES, s)
            seen = {}

            def wait(s=s, runtime=runtime, seen=seen):
                s.synchronize()
                seen.update(runtime.checker.publish())

            worker = threading.Thread(target=wait)
            worker.start()
            worker.join()
            if told:
                runtime.checker.observe(seen)
            negate(t, x)
            assert bool(rules(runtime)) == (threads and not told)


def chain(runtime, steps, dropped):
    """Random work over two streams each of two devices, with its waits but for one; returns how many there are."""

    draw = random.Random(steps)
    streams = [d.stream() for d in runtime.devices()[:2] for _ in range(2)]
    values = [(runtime.devices()[i // 2].upload(ONES, s), i) for i, s in enumerate(streams)]
    waits = itertools.count()
    for _ in range(steps):
        (raw, at), to = draw.choice(values), draw.randrange(4)
        if at != to and next(waits) != dropped:
            streams[to].wait(streams[at].record())
        if raw.device is streams[to].device:
            values.append((negate(streams[to], raw), to))
        else:
            values.append((runtime.copy_peer(raw, None, streams[to]), to))
    return next(waits)


@pytest.mark.parametrize("steps", [3, 7, 12, 20])
def test_a_dropped_wait_is_found_whatever_the_timing(steps):
    """The verdict depends on what is issued alone: the same with delays and without, time after time."""
    with simulated() as runtime:
        waits = chain(runtime, steps, None)
    verdicts = []
    for faults in (Faults(), Faults(seed=1, delayed=0.3, longest=1e-3)):
        for dropped in range(waits):
            with simulated(hazards=True, faults=faults) as runtime:
                chain(runtime, steps, dropped)
                verdicts.append(tuple(rules(runtime)))
    assert verdicts[:waits] == verdicts[waits:]
    assert verdicts[0], "the first wait is implied by none before it"
    found = sum(map(bool, verdicts[:waits]))
    assert found >= waits // 2, "later ones may be implied"
