"""The checks of streams, events and contexts: each yields mistakes."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np

from tenferro_tensor._synchronize import synchronize, synchronize_all
from tenferro_tensor._tensor import tensor
from tenferro_tensor.conformance._examples import Elements
from tenferro_tensor.conformance._runtime import (
    CheckedRuntime,
    holds,
    keep_busy,
    launch,
    numbers,
    read,
    refuses,
    same,
)
from tenferro_tensor.device_runtimes import StreamContext, current_stream
from tenferro_tensor.dispatch import compute_context, compute_device
from tenferro_tensor_core import UnsupportedError


def streams(subject: CheckedRuntime) -> Iterator[str]:
    """Check that a stream runs its work in order, and what `launch` returns."""
    for device in subject.devices:
        a, b = device.stream(), device.stream(priority=-1)
        right = a is not b and a.device is device is b.device and b.priority == -1
        yield from holds(right, "stream() makes no new streams with device and priority as asked for")
        for name in ("default_stream", "copy_stream"):
            yield from holds(getattr(device, name) is getattr(device, name), f"{name} is a new stream each time")
        for s in (a, b, device.default_stream, device.copy_stream):
            s.record()
            yield from holds(any(s is known for known in device.streams), f"a used stream is not in {device!r}.streams")
        keep_busy(a)
        raw = device.upload(numbers(4), a)
        for _ in range(100):
            raw = launch(a, "neg", launch(a, "add", raw, raw))
        yield from same(
            "200 steps on one stream; run its work in the order of issue", read(raw, a), numbers(4) * 2.0**100
        )
        made = subject.runtime.stream_of(raw)
        yield from holds(made is None or made is a, f"stream_of a value is {made!r}, not the stream that computes it")


def launches(subject: CheckedRuntime) -> Iterator[str]:
    """Check that kernels of a launch go to its stream."""
    device, seen = subject.first, []
    stream = device.stream()
    stream.launch(lambda: seen.append(current_stream(device)), ())
    yield from holds(seen == [stream], "current_stream inside of `launch` is not its stream; do not replace launch")
    yield from refuses("a launch of a function that fails", lambda: stream.launch(lambda: 1 / 0, ()), ZeroDivisionError)
    after = current_stream(device)
    yield from holds(after is device.default_stream, "after `launch`, work does not go to the default stream")


def events(subject: CheckedRuntime) -> Iterator[str]:
    """Check that events order streams and tell the host that work is done, and not before."""
    for device in subject.devices:
        s, t = device.stream(), device.stream()
        x = device.upload(numbers(5), s)
        for k in range(50):
            if k % 10 == 0:
                keep_busy(s)
                x = launch(s, "add", x, x)
            t.wait(s.record())
            x = launch(t, "add", x, x)
            s, t = t, s
        yield from same("work ordered by events; let `wait` hold up the stream", read(x, s), numbers(5) * 2.0**55)
        for how in ("synchronize", "done"):
            keep_busy(s)
            y = launch(s, "neg", device.upload(numbers(6), s))
            event = s.record()
            if how == "done":
                while not event.done:
                    threading.Event().wait(1e-4)
            else:
                event.synchronize()
            yield from holds(event.done, "an event is not done after `synchronize`")
            what = f"work read by another stream after {how} of an event; an event is done when all work before it is"
            yield from same(what, read(y, t), -numbers(6))
        for wait in (s.wait, s.wait, t.wait):
            wait(event)
        s.synchronize()
        s.synchronize()
    s, t = subject.first.stream(), subject.last.stream()
    keep_busy(s)
    x = launch(s, "neg", subject.first.upload(numbers(6), s))
    t.wait(s.record())
    y = subject.runtime.copy_peer(x, None, t)
    yield from same("work of a stream that waits for another device", read(launch(t, "add", y, y), t), -2 * numbers(6))


def times(subject: CheckedRuntime) -> Iterator[str]:
    """Check that events measure time where it was asked for."""
    s = subject.first.stream()
    start = s.record(timing=True)
    keep_busy(s)
    end, plain = s.record(timing=True), s.record()
    plain.synchronize()
    seconds = end.elapsed(start)
    yield from holds(0 <= seconds < 600, f"some milliseconds of work took {seconds} s; elapsed gives seconds")
    for a, b in ((end, plain), (plain, start)):
        yield from refuses("elapsed of an event without timing", partial(a.elapsed, b), UnsupportedError)


def waiting(subject: CheckedRuntime) -> Iterator[str]:
    """Check that all work of a device, and of all devices, can be waited for."""
    for device in subject.runtime.devices():
        for stream in (device.default_stream, device.stream()):
            keep_busy(stream)
            event = stream.record()
            synchronize(str(device.id))  # at once, while the work is going on
            yield from holds(event.done, f"after synchronize of {device!r}, work of its streams is not done")
    made = []
    for device in subject.runtime.devices():
        stream = device.stream()
        keep_busy(stream)
        made.append((device, stream, launch(stream, "neg", device.upload(numbers(1), stream)), stream.record()))
    subject.runtime.synchronize_all()
    yield from holds(all(event.done for *_, event in made), "after synchronize_all, work is not done")
    synchronize_all()
    for device, _, raw, _ in made:
        what = "work read by another stream after synchronize_all; wait for all streams"
        yield from same(what, read(raw, device.stream()), -numbers(1))


def contexts(subject: CheckedRuntime) -> Iterator[str]:
    """Check that contexts own a stream, and that eager work is ordered from one to another."""
    first, last = subject.first, subject.last
    context = StreamContext(str(last.id))
    x: Any = tensor(numbers(9), device=str(last.id))
    with compute_context(context):
        right = current_stream(last) is context.stream is not last.default_stream
        yield from holds(right, "inside of a context, work does not go to a stream of its own")
        y = x + x
    yield from holds(current_stream(last) is last.default_stream, "after a context, work still goes to its stream")
    yield from same("work in a context", _host(y * 2), numbers(9) * 4)
    context.synchronize()
    kept = StreamContext.for_device(str(last.id))
    yield from holds(
        kept.stream is kept.stream is not context.stream, "the context of a device has no stream of its own"
    )
    inner = StreamContext(first.id)
    with compute_context(inner), compute_device(last.id):
        right = current_stream(first) is inner.stream and (current_stream(last) is last.default_stream) == (
            first is not last
        )
        yield from holds(right, "a context changes the stream of another device")
    several, want = [StreamContext(str(first.id)) for _ in range(3)], numbers(10, (64, 64))
    x = tensor(want, device=str(first.id))
    for i in range(30):
        with compute_context(several[i % 3]):
            x = (x + x) * 0.25
        want = (want + want) * 0.25
    yield from same("work that goes from context to context; let stream_of say who computes a value", _host(x), want)


def _host(x: Any) -> Elements:
    return np.asarray(x.to_device("cpu:0"))


def random_work(subject: CheckedRuntime) -> Iterator[str]:
    """Check random work on all devices against NumPy, bit for bit, with every wait that is needed."""
    runtime = subject.runtime
    for seed in range(5):
        draw = random.Random(seed)
        streams = [device.stream() for device in runtime.devices() for _ in range(2)]
        values = [(s.device.upload(numbers(i), s), s, numbers(i)) for i, s in enumerate(streams)]
        for _ in range(60):
            stream, operands = draw.choice(streams), []
            for _ in range(2):
                raw, made, host = draw.choice(values)
                if made is not stream:
                    stream.wait(made.record())
                if made.device is not stream.device:
                    raw = runtime.copy_peer(raw, None, stream)
                operands.append((raw, host))
            name, f = draw.choice([("add", np.add), ("sub", np.subtract), ("maximum", np.maximum)])
            out = launch(stream, name, *[raw for raw, _ in operands])
            values.append((out, stream, f(*[host for _, host in operands])))
        for raw, stream, host in values:
            yield from same(f"random work {seed}", read(raw, stream), host)


def threads(subject: CheckedRuntime) -> Iterator[str]:
    """Check that several threads issue work at once."""
    start, found = threading.Barrier(4), subject.runtime.devices()

    def work(i: int) -> Elements:
        device = found[i % len(found)]
        stream = device.stream()
        start.wait(30)
        raw = device.upload(numbers(i), stream)
        for _ in range(40):
            raw = launch(stream, "add", raw, raw)
        return read(raw, stream)

    with ThreadPoolExecutor(4) as pool:
        for i, got in enumerate(pool.map(work, range(4))):
            yield from same(f"work of thread {i} of 4", got, numbers(i) * 2.0**40)
