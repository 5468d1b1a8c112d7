"""Contexts own a stream: what runs there, what overlaps, how values go from one to another, and that nobody waits."""

import asyncio
import threading

import numpy as np
import pytest

import tenferro_runtime as tr
from simulated.gate import held
from simulated.installed import no_accelerator, simulated
from tenferro_ad import grad, variable
from tenferro_einsum import einsum
from tenferro_runtime import fft, linalg
from tenferro_tensor import (
    AcceleratorMismatchError,
    AsynchronousError,
    StreamContext,
    compute_context,
    compute_device,
    current_stream,
)
from tenferro_tensor_core import ArgumentError, BackendUnavailableError, PlacementError

X = np.random.default_rng(0).standard_normal((4, 4)) + 4 * np.eye(4)


@pytest.fixture
def sim():
    with simulated() as runtime:
        yield runtime


def at(device="sim:0", x=X):
    return tr.asarray(x, device=device)


def values(x):
    return np.asarray(x.to_device("cpu:0"))


WORK = {
    "operations": lambda x: tr.exp(x * 2) @ x + tr.sum(x, axis=0),
    "gradient": lambda x: grad(lambda x: tr.sum(tr.sin(x) @ x))(x),
    "compiled": lambda x: tr.compile(lambda x: tr.tanh(x @ x.mT) + tr.mean(x))(x),
    "compiled gradient": lambda x: tr.compile(grad(lambda x: tr.sum(tr.exp(x))))(x),
    "scan": lambda x: tr.scan(lambda c, row: (c + row, c), x[0], x)[1],
    "einsum": lambda x: einsum("ij,jk,kl->il", x, x, x),
    "linalg": lambda x: linalg.solve(x, x) + linalg.svd(x)[0],
    "fft": lambda x: tr.abs(fft.fft(x)),
    "creation": lambda x: x + tr.ones(4, device=x.device) + tr.arange(4, device=x.device),
    "copies": lambda x: (x.to_device("sim:1") + 1).to_device("sim:0"),
}


@pytest.mark.parametrize("name", WORK)
def test_nothing_waits_until_a_value_is_read(sim, name):
    """The device is held up all the time; a hidden wait would end in the gate's time limit."""
    want = values(WORK[name](tr.asarray(X))) if name != "copies" else X + 1
    x = at()
    first = values(WORK[name](x))
    with held(sim.device(0).default_stream, sim.device(1).default_stream):
        y = WORK[name](x)
        tr.sum(y)
    np.testing.assert_allclose(values(y), want, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(first, want, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", [name for name in WORK if name != "copies"])
def test_all_work_in_a_context_goes_to_its_stream(sim, name):
    want = values(WORK[name](at()))
    context = StreamContext("sim:0")
    with compute_context(StreamContext("sim:0")):  # streams wait for the whole stream of an operand
        x = at()
    with held(sim.device(0).default_stream):  # whatever went there would be held up
        with compute_context(context):
            y = WORK[name](x)
            assert sim.stream_of(y.data) is context.stream
            context.stream.synchronize()
    np.testing.assert_array_equal(values(y), want)


def test_two_contexts_overlap(sim):
    a, b = StreamContext("sim:0"), StreamContext("sim:0")
    x = at()
    tr.synchronize("sim:0")
    with held(a.stream):
        with compute_context(a):
            y = tr.exp(x)
        with compute_context(b):
            z = tr.exp(x)
            np.testing.assert_array_equal(values(z), np.exp(X))
    np.testing.assert_array_equal(values(y), values(z))


def test_a_value_of_another_context_is_waited_for_by_the_stream(sim):
    a, b = StreamContext("sim:0"), StreamContext("sim:0")
    x = at()
    with held(a.stream):
        with compute_context(a):
            y = x * 2
        with compute_context(b):
            z = y + x
        w = z + y  # on the default stream
        events = [s.record() for s in (b.stream, sim.device(0).default_stream)]
        assert not any(event.done for event in events)
    np.testing.assert_array_equal(values(w), (2 * X + X) + 2 * X)


def test_reading_waits_for_what_computes_the_value_alone(sim):
    a, b = StreamContext("sim:0"), StreamContext("sim:0")
    x = at()
    with compute_context(b):
        y = x + 1
    with held(a.stream), compute_context(b):
        np.testing.assert_array_equal(values(y), X + 1)


def test_a_tape_is_pulled_back_in_another_context(sim):
    a, b = StreamContext("sim:0"), StreamContext("sim:0")
    leaf = variable(at())
    with held(a.stream):
        with compute_context(a):
            loss = tr.sum(tr.exp(leaf))
        with compute_context(b):
            loss.backward()
    np.testing.assert_allclose(values(leaf.grad), np.exp(X))
    assert sim.stream_of(leaf.grad.data) is b.stream


def test_a_compiled_function_follows_the_context_of_each_call(sim):
    f, x = tr.compile(lambda x: tr.exp(x) * 2), at()
    contexts = [StreamContext("sim:0") for _ in range(3)]
    for _ in range(3):
        for context in contexts:
            with compute_context(context):
                assert sim.stream_of(f(x).data) is context.stream
    assert sim.stream_of(f(x).data) is sim.device(0).default_stream


def test_the_inner_context_wins_and_ends(sim):
    a, b = StreamContext("sim:0"), StreamContext("sim:0")
    with compute_context(a):
        with compute_context(b):
            assert current_stream(sim.device(0)) is b.stream
        assert current_stream(sim.device(0)) is a.stream
        with pytest.raises(ZeroDivisionError), compute_context(b):
            1 / 0
        assert current_stream(sim.device(0)) is a.stream
    assert current_stream(sim.device(0)) is sim.device(0).default_stream


def test_a_device_scope_keeps_the_stream_of_its_device(sim):
    context, x, far = StreamContext("sim:0"), at(), at("sim:1")
    with compute_context(context), compute_device("sim:1"):
        assert sim.stream_of((far + far).data) is sim.device(1).default_stream
    with compute_device("sim:0"), compute_context(context):
        assert sim.stream_of((x + x).data) is context.stream
    with compute_context(context), pytest.raises(PlacementError):
        far + far


def test_threads_and_tasks_have_their_own(sim):
    x, seen = at(), {}

    def work(i):
        context = StreamContext("sim:0")
        with compute_context(context):
            y = x
            for _ in range(20):
                y = y + x
            seen[i] = sim.stream_of(y.data) is context.stream, values(y)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for right, y in seen.values():
        assert right
        np.testing.assert_allclose(y, 21 * X)

    async def task(context):
        with compute_context(context):
            await asyncio.sleep(0)
            y = x + x
            await asyncio.sleep(0)
            return sim.stream_of(y.data) is context.stream

    async def both():
        return await asyncio.gather(*[task(StreamContext("sim:0")) for _ in range(5)])

    assert asyncio.run(both()) == [True] * 5


def test_contexts_are_checked_when_they_are_made_and_make_a_stream_when_used(sim):
    with pytest.raises(PlacementError, match="sim:9 was requested, but there are sim:0 to sim:3; use one of these"):
        StreamContext("sim:9")
    with pytest.raises(ArgumentError, match="'cpu' is no kind of accelerator; use a name like 'cuda'"):
        StreamContext("cpu:0")
    before = len(sim.device(2).streams)
    context = StreamContext("sim:2", priority=-1)
    assert len(sim.device(2).streams) == before and repr(context) == "StreamContext('sim:2', priority=-1)"
    assert context.stream.priority == -1 and len(sim.device(2).streams) == before + 1


def test_the_context_of_a_device_is_one(sim):
    found, start = [], threading.Barrier(8)

    def ask():
        start.wait()
        found.append(StreamContext.for_device("sim:3").stream)

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(set(map(id, found))) == 1
    assert StreamContext.for_device("sim:2") is not StreamContext.for_device("sim:3")

    class Own(StreamContext):
        """A class of its own has contexts of its own."""

    assert type(Own.for_device("sim:3")) is Own is not type(StreamContext.for_device("sim:3"))


def test_failures_of_one_context_leave_the_others_alone(sim):
    a, b, x = StreamContext("sim:0"), StreamContext("sim:0"), at()
    tr.synchronize_all()
    sim.faults.next("kernel")
    with compute_context(a):
        y = tr.exp(x)
    with compute_context(b):
        np.testing.assert_array_equal(values(x + x), 2 * X)
        with pytest.raises(AsynchronousError, match="exp on sim:0/"):
            (y + x).to_device("cpu:0")  # and the failure goes where its value goes
        with pytest.raises(AsynchronousError, match="exp on sim:0/"):
            values(x + x)
    np.testing.assert_array_equal(values(x * 2), 2 * X)
    with pytest.raises(AsynchronousError):
        a.synchronize()


def test_a_context_of_another_kind_is_refused(sim):
    with pytest.raises(AcceleratorMismatchError, match="'cuda' is asked for, but this process uses .* for 'sim'"):
        StreamContext("cuda:0")


def test_without_an_accelerator_the_context_says_what_is_missing():
    with no_accelerator(), pytest.raises(BackendUnavailableError, match="no device runtime for 'sim' is installed"):
        StreamContext("sim:0")


def test_devices_are_waited_for_by_name(sim):
    x, y = at("sim:0"), at("sim:1")
    with held(sim.device(1).default_stream):
        events = [sim.stream_of((v + v).data).record() for v in (x, y)]
        tr.synchronize("sim:0")
        assert [event.done for event in events] == [True, False]
    tr.synchronize_all()
    tr.synchronize("cpu:0")
    with pytest.raises(PlacementError, match="sim:8"):
        tr.synchronize("sim:8")
