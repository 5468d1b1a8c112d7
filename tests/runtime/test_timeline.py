"""Timelines: a waiter never leaves early, is never forgotten, and leaves nothing behind."""

import random
import sys
import threading

import pytest

from tenferro_runtime.placement import CancelledError, TimelineSignal
from tenferro_tensor_core import ArgumentError
from thorough import tries


def test_a_reached_number_needs_no_waiting():
    timeline = TimelineSignal()
    assert timeline.wait(0)
    timeline.signal(3)
    assert timeline.value == 3
    assert timeline.wait(3)
    assert timeline.waiting == 0


def test_a_number_that_is_not_reached_in_time_leaves_no_waiter():
    timeline = TimelineSignal()
    timeline.signal(1)
    assert not timeline.wait(2, timeout=0.001)
    assert timeline.waiting == 0
    timeline.signal(1)  # the same number again is nothing new


def test_a_timeline_only_grows():
    timeline = TimelineSignal()
    timeline.signal(4)
    with pytest.raises(ArgumentError, match="a timeline stands at 4 and was set back to 3; it only grows"):
        timeline.signal(3)


def test_a_failure_wakes_everybody_with_the_first_error():
    timeline, seen, started = TimelineSignal(), [], threading.Barrier(4)

    def sleeper(n):
        started.wait()
        try:
            timeline.wait(n)
        except CancelledError as error:
            seen.append(str(error))

    threads = [threading.Thread(target=sleeper, args=(n,)) for n in (1, 2, 3)]
    for thread in threads:
        thread.start()
    started.wait()
    timeline.fail(CancelledError("first"))
    timeline.fail(CancelledError("second"))
    for thread in threads:
        thread.join()
    assert seen == ["first"] * 3
    with pytest.raises(CancelledError, match="first"):
        timeline.wait(1)


def test_what_was_reached_before_a_failure_stays_reached():
    timeline = TimelineSignal()
    timeline.signal(2)
    timeline.fail(CancelledError("stop"))
    assert timeline.wait(2)


def test_callbacks_are_called_once_in_order_and_without_the_lock():
    timeline, seen = TimelineSignal(), []

    def call(n):
        seen.append(n)
        timeline.when(100, lambda: None)  # takes the lock

    for n in (3, 1, 2, 5):
        assert not timeline.when(n, lambda n=n: call(n))  # type: ignore[misc]
    timeline.signal(3)
    assert seen == [1, 2, 3]
    assert timeline.when(3, seen.clear)
    assert seen == [1, 2, 3]
    timeline.signal(5)
    assert seen == [1, 2, 3, 5]


def storm(signals, waiters, seed):
    """Threads that signal two timelines in turn, and threads that wait for random numbers with random patience."""
    timelines = [TimelineSignal(), TimelineSignal()]
    locks = [threading.Lock(), threading.Lock()]
    wrong, done = [], threading.Event()
    total = 3 * signals

    def signaller(number):
        for i in range(2 * signals):
            which = (i + number) % 2
            with locks[which]:
                timelines[which].signal(timelines[which].value + 1)

    def waiter(number):
        rng = random.Random(seed + 100 + number)
        while not done.is_set():
            timeline = timelines[rng.randrange(2)]
            target = min(total, timeline.value + rng.randrange(1, 50))
            patience = rng.choice((0.0, 0.0001, 0.01, -1))  # without end: all numbers up to the total are reached
            if timeline.wait(target, timeout=patience):
                if timeline.value < target:
                    wrong.append(("early", target))
            elif patience == -1:
                wrong.append(("gave up", target))

    def caller():
        rng = random.Random(seed + 200)
        while not done.is_set():
            timeline = timelines[rng.randrange(2)]
            target = timeline.value + rng.randrange(1, 5)

            def check(timeline=timeline, target=target):
                if timeline.value < target:
                    wrong.append(("called early", target))

            timeline.when(target, check)

    threads = [threading.Thread(target=signaller, args=(n,)) for n in range(3)]
    rest = [threading.Thread(target=waiter, args=(n,)) for n in range(waiters)] + [threading.Thread(target=caller)]
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for thread in (*threads, *rest):
            thread.start()
        for thread in threads:
            thread.join()
        done.set()
        for thread in rest:
            thread.join(timeout=60)
            assert not thread.is_alive(), "a waiter hangs"
    finally:
        sys.setswitchinterval(before)
    assert [timeline.value for timeline in timelines] == [total, total]
    for timeline in timelines:
        timeline.signal(total + 1000)
    assert not wrong
    assert [timeline.waiting for timeline in timelines] == [0, 0]


def test_no_wake_up_is_lost_in_a_storm():
    storm(1000, 6, seed=1)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_no_wake_up_is_lost_in_a_long_storm(seed):
    storm(tries(5_000, 16_667), 12, seed)
