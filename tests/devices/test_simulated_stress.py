"""Random work over four devices with delays and faults: right, or failed for the reason that was injected; no leak."""

import gc
import random
import threading

import numpy as np
import pytest

import tenferro_runtime as tr
from simulated.faults import Faults, InjectedFault
from simulated.installed import simulated
from tenferro_tensor import AsynchronousError, DeviceMemoryError, StreamContext, compute_context
from tenferro_tensor.conformance._runtime import launch, numbers
from thorough import tries

OPERATIONS = [("add", np.add), ("sub", np.subtract), ("maximum", np.maximum)]


def settled(runtime):
    """All streams have run dry, and whatever they say about failures is of the injected ones."""
    for device in runtime.devices():
        for stream in device.streams:
            try:
                stream.synchronize()
            except AsynchronousError as error:
                assert isinstance(error.__cause__, InjectedFault)


def issue_and_check(seed, faults):
    """Random kernels, copies, releases and waits on eight streams; the waits are all that are needed."""
    draw = random.Random(seed)
    peers = {(a, b) for a in range(4) for b in range(4) if draw.random() < 0.6}
    with simulated(peers=peers, faults=faults) as runtime:
        streams = [device.stream() for device in runtime.devices() for _ in range(2)]
        values, marks = [], []
        for i, stream in enumerate(streams):
            try:
                values.append((stream.device.upload(numbers(i), stream), stream, numbers(i)))
            except DeviceMemoryError as error:
                assert isinstance(error.__cause__, InjectedFault)
        for _ in range(draw.randrange(5, 40)):
            if not values:
                break
            stream, operands = draw.choice(streams), []
            try:
                for raw, made, host in [draw.choice(values) for _ in range(2)]:
                    if made is not stream:
                        stream.wait(made.record())
                    if made.device is not stream.device:
                        raw = runtime.copy_peer(raw, None, stream)
                    operands.append((raw, host))
                name, f = draw.choice(OPERATIONS)
                out = launch(stream, name, *[raw for raw, _ in operands])
            except DeviceMemoryError as error:
                assert isinstance(error.__cause__, InjectedFault)
                continue
            values.append((out, stream, f(*[host for _, host in operands])))
            marks.append((stream, stream.record()))
            if len(values) > 6 and draw.random() < 0.3:
                raw, made, _ = values.pop(draw.randrange(len(values)))
                for other in streams:
                    if other is not made:
                        made.wait(other.record())
                made.release(raw)
        for raw, stream, host in values:
            try:
                got = stream.device.download(raw, stream).result()
            except AsynchronousError as error:
                assert isinstance(error.__cause__, InjectedFault)
            else:
                np.testing.assert_array_equal(got, host)
        settled(runtime)
        assert all(event.done for _, event in marks)
        raw = out = operands = None
        values.clear()
        gc.collect(0)
        assert [device.memory()["live"] for device in runtime.devices()] == [0] * 4
        return runtime.faults.injected


def random_faults(seed):
    return Faults(seed, kernel=0.02, transfer=0.02, allocation=0.01, delayed=0.1, longest=3e-4)


def test_work_without_faults_is_right():
    for seed in range(25):
        assert issue_and_check(seed, Faults(seed, delayed=0.1, longest=3e-4)) == 0


def test_work_with_faults_is_right_or_fails_for_their_reason():
    assert sum(issue_and_check(seed, random_faults(seed)) for seed in range(25)) > 5


@pytest.mark.slow
def test_much_work_with_faults_is_right_or_fails_for_their_reason():
    for seed in range(tries(60, 500)):
        issue_and_check(seed, random_faults(seed))


def eager_and_check(seed, threads=1):
    """Operations on tensors in random contexts of random devices, which order themselves."""
    with simulated(peers=bool(seed % 2), faults=Faults(seed, delayed=0.1, longest=3e-4)) as runtime:
        failures = []

        def work(seed):
            try:
                draw = random.Random(seed)
                contexts = [StreamContext(str(d.id)) for d in runtime.devices() for _ in range(2)]
                values = [(tr.asarray(numbers(i), device=f"sim:{i}"), numbers(i)) for i in range(4)]
                for _ in range(25):
                    context = draw.choice([*contexts, None])
                    (x, a), (y, b) = draw.choice(values), draw.choice(values)
                    x = x if context is None else x.to_device(str(context.device))
                    y = y.to_device(x.device)
                    name, f = draw.choice(OPERATIONS)
                    call = {"add": tr.add, "sub": tr.subtract, "maximum": tr.maximum}[name]
                    if context is None:
                        out = call(x, y)
                    else:
                        with compute_context(context):
                            out = call(x, y)
                            assert runtime.stream_of(out.data) is context.stream
                    values.append((out, f(a, b)))
                for x, a in values:
                    np.testing.assert_array_equal(np.asarray(x.to_device("cpu:0")), a)
            except BaseException as error:
                failures.append(error)

        workers = [threading.Thread(target=work, args=(seed * 10 + i,)) for i in range(threads)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        if failures:
            raise failures[0]


@pytest.mark.parametrize("threads", [1, 4])
def test_eager_work_orders_itself(threads):
    for seed in range(8):
        eager_and_check(seed, threads)


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 4])
def test_much_eager_work_orders_itself(threads):
    for seed in range(tries(30, 200) // threads):
        eager_and_check(seed, threads)
