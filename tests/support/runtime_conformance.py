"""What every device runtime promises, as tests: subclass `RuntimeConformance` and give it the fixture `runtime`."""

import gc
import random
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import tenferro_runtime as tr
from tenferro_tensor import (
    Capabilities,
    ComputeDevice,
    DeviceRuntime,
    Event,
    MemorySpace,
    Pending,
    Place,
    RuntimeDevice,
    Spec,
    Stream,
    StreamContext,
    catalog,
    compute_context,
    compute_device,
    current_stream,
    device_runtime,
    get_backend,
)
from tenferro_tensor_core import (
    DTYPES,
    ArgumentError,
    BackendUnavailableError,
    DTypeError,
    PlacementError,
    ShapeError,
    UnsupportedError,
)

F8 = np.dtype("float64")


def spec_on(device: RuntimeDevice, shape: tuple[int, ...], dtype: np.dtype = F8) -> Spec:
    return Spec(shape, dtype, Place(MemorySpace(str(device.id))))


def kernel(device: RuntimeDevice, name: str, shape: tuple[int, ...], dtype: np.dtype = F8, **params: Any) -> Any:
    """The kernel of an element-wise primitive, and the specs of its results."""
    op = getattr(catalog, name).op(**params)
    spec = spec_on(device, shape, dtype)
    ins = (spec,) * len(op.primitive.operands)
    return get_backend(device.id.kind).kernel(op, ins, (spec,), device.id), (spec,)


def launch(stream: Stream, name: str, *raws: Any, shape: tuple[int, ...] = (8,)) -> Any:
    run, outs = kernel(stream.device, name, shape)
    (out,) = stream.launch(run, raws, outs)
    return out


def read(device: RuntimeDevice, raw: Any, stream: Stream) -> np.ndarray:
    return device.download(raw, stream).result()


def numbers(seed: int, shape: tuple[int, ...] = (8,)) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape)


class RuntimeConformance:
    """The contract of `DeviceRuntime`; devices are whatever the fixture `runtime` has, one or more."""

    @pytest.fixture
    def device(self, runtime: DeviceRuntime) -> RuntimeDevice:
        return runtime.devices()[0]

    def test_devices_have_their_names(self, runtime: DeviceRuntime) -> None:
        assert isinstance(runtime, DeviceRuntime) and device_runtime(runtime.kind) is runtime
        assert runtime.devices()
        for i, device in enumerate(runtime.devices()):
            assert isinstance(device, RuntimeDevice) and device.ordinal == i
            assert device.id is ComputeDevice(f"{runtime.kind}:{i}") and runtime.device(i) is device
        assert [d.id for d in runtime.devices()] == list(get_backend(runtime.kind).devices())

    @pytest.mark.parametrize("ordinal", [-1, 1000])
    def test_devices_that_are_not_there_are_named(self, runtime: DeviceRuntime, ordinal: int) -> None:
        with pytest.raises((PlacementError, BackendUnavailableError), match=f"{runtime.kind}:{ordinal}"):
            runtime.device(ordinal)

    def test_capabilities(self, runtime: DeviceRuntime) -> None:
        for device in runtime.devices():
            found = device.capabilities
            assert isinstance(found, Capabilities) and found == device.capabilities
            assert found.name and found.memory > 0 and found.warp > 0 and found.architecture

    @pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0, 3), (2, 3, 4)], ids=str)
    def test_data_come_back_as_they_went(self, device: RuntimeDevice, shape: tuple[int, ...]) -> None:
        for dtype in DTYPES:
            host = (numbers(0, shape) * 10).astype(np.dtype(dtype))
            raw = device.upload(host, device.default_stream)
            back = read(device, raw, device.default_stream)
            assert isinstance(back, np.ndarray) and (back.shape, back.dtype) == (host.shape, host.dtype)
            np.testing.assert_array_equal(back, host)

    def test_any_layout_is_uploaded(self, device: RuntimeDevice) -> None:
        a = numbers(1, (4, 6))
        for host in (a.T, a[::-1, ::2], np.asfortranarray(a), np.broadcast_to(a[0], (3, 6)), a[1:1]):
            raw = device.upload(host, device.copy_stream)
            np.testing.assert_array_equal(read(device, raw, device.copy_stream), host)

    def test_the_host_array_is_free_when_upload_returns(self, device: RuntimeDevice) -> None:
        host = np.ones(1000)
        raws = []
        for i in range(10):
            host[...] = i
            raws.append(device.upload(host, device.default_stream))
        assert [read(device, raw, device.default_stream)[-1] for raw in raws] == list(range(10))

    def test_downloads_are_pending(self, device: RuntimeDevice) -> None:
        raw = device.upload(numbers(2), device.default_stream)
        pending = device.download(raw, device.default_stream)
        assert isinstance(pending, Pending) and isinstance(pending.event, Event)
        np.testing.assert_array_equal(pending.result(), numbers(2))
        assert pending.event.done
        np.testing.assert_array_equal(pending.result(), numbers(2))

    @pytest.mark.parametrize("shape", [(), (0,), (2, 3)], ids=str)
    def test_copies_go_into_memory_that_is_given(self, runtime: DeviceRuntime, shape: tuple[int, ...]) -> None:
        first, last = runtime.devices()[0], runtime.devices()[-1]
        s, t, host = first.stream(), last.stream(), numbers(12, shape)
        raw, other = first.empty(spec_on(first, shape), s), last.empty(spec_on(last, shape), t)
        assert first.upload(host, s, raw) is raw and runtime.stream_of(raw) in (None, s)
        assert runtime.copy_peer(raw, s, t, other) is other
        back = np.empty(shape)
        assert last.download(other, t, back).result() is back
        np.testing.assert_array_equal(back, host)
        assert first.upload(last.download(other, t), s, raw) is raw
        np.testing.assert_array_equal(read(first, raw, s), host)

    def test_memory_that_does_not_fit_is_refused(self, runtime: DeviceRuntime) -> None:
        device = runtime.devices()[0]
        s, raw = device.default_stream, device.upload(numbers(0), device.default_stream)
        for host, error in ((numbers(0, (4,)), ShapeError), (numbers(0).astype("float32"), DTypeError)):
            with pytest.raises(error, match="a transfer of"):
                device.upload(host, s, raw)
            with pytest.raises(error, match="a transfer of"):
                device.download(raw, s, np.empty_like(host))
            with pytest.raises(error, match="a transfer of"):
                runtime.copy_peer(device.upload(host, s), None, s, raw)
        fixed = np.zeros(8)
        fixed.flags.writeable = False
        for out in (fixed, np.zeros(16)[::2], [0.0] * 8):
            with pytest.raises(ArgumentError, match="of your"):
                device.download(raw, s, out)  # type: ignore[arg-type]
        np.testing.assert_array_equal(read(device, raw, s), numbers(0))

    def test_a_pending_download_is_uploaded_without_a_host_that_waits(self, runtime: DeviceRuntime) -> None:
        first, last = runtime.devices()[0], runtime.devices()[-1]
        s, t = first.stream(), last.stream()
        pending = first.download(first.upload(numbers(3), s), s)
        np.testing.assert_array_equal(read(last, last.upload(pending, t), t), numbers(3))

    def test_values_know_their_device(self, runtime: DeviceRuntime) -> None:
        for device in runtime.devices():
            stream = device.stream()
            raw = device.upload(numbers(0), stream)
            assert runtime.device_of(raw) is device
            made = runtime.stream_of(raw)
            assert made is None or made is stream

    def test_a_stream_runs_in_order(self, device: RuntimeDevice) -> None:
        stream, x = device.stream(), numbers(4)
        raw = device.upload(x, stream)
        for _ in range(100):
            raw = launch(stream, "neg", launch(stream, "add", raw, raw))
        np.testing.assert_array_equal(read(device, raw, stream), x * 2.0**100)

    def test_launch_gives_as_many_values_as_there_are_results(self, device: RuntimeDevice) -> None:
        run, outs = kernel(device, "neg", (8,))
        results = device.default_stream.launch(run, [device.upload(numbers(0), device.default_stream)], outs)
        assert isinstance(results, tuple) and len(results) == 1

    def test_kernels_of_a_launch_go_to_its_stream(self, device: RuntimeDevice) -> None:
        stream, seen = device.stream(), []
        stream.launch(lambda: seen.append(current_stream(device)), ())
        assert seen == [stream] and current_stream(device) is device.default_stream
        with pytest.raises(ZeroDivisionError):
            stream.launch(lambda: 1 / 0, ())
        assert current_stream(device) is device.default_stream

    def test_events_order_streams(self, runtime: DeviceRuntime) -> None:
        device = runtime.devices()[0]
        s, t = device.stream(), device.stream()
        x = device.upload(numbers(5), s)
        for _ in range(50):
            t.wait(s.record())
            x = launch(t, "add", x, x)
            s, t = t, s
        np.testing.assert_array_equal(read(device, x, s), numbers(5) * 2.0**50)

    def test_waits_that_change_nothing(self, device: RuntimeDevice) -> None:
        s = device.stream()
        event = s.record()
        s.wait(event)
        s.wait(event)
        event.synchronize()
        s.wait(event)
        s.synchronize()
        s.synchronize()
        assert event.done

    def test_events_of_other_devices(self, runtime: DeviceRuntime) -> None:
        first, last = runtime.devices()[0], runtime.devices()[-1]
        s, t = first.stream(), last.stream()
        x = launch(s, "neg", first.upload(numbers(6), s))
        t.wait(s.record())
        y = runtime.copy_peer(x, None, t)
        np.testing.assert_array_equal(read(last, launch(t, "add", y, y), t), -2 * numbers(6))

    def test_time_is_measured_where_it_was_asked_for(self, device: RuntimeDevice) -> None:
        s = device.stream()
        start = s.record(timing=True)
        launch(s, "neg", device.upload(numbers(0), s))
        end, plain = s.record(timing=True), s.record()
        plain.synchronize()
        assert 0 <= end.elapsed(start) < 60
        for a, b in ((end, plain), (plain, start)):
            with pytest.raises(UnsupportedError):
                a.elapsed(b)

    def test_peer_copies(self, runtime: DeviceRuntime) -> None:
        for source in runtime.devices():
            for target in runtime.devices():
                s, t = source.stream(), target.stream()
                x = source.upload(numbers(7), s)
                y = runtime.copy_peer(x, s, t)
                assert runtime.device_of(y) is target
                assert runtime.can_access_peer(source, target) in (True, False)
                np.testing.assert_array_equal(read(target, y, t), numbers(7))
        assert all(runtime.can_access_peer(d, d) for d in runtime.devices())

    def test_peer_copies_are_copies(self, runtime: DeviceRuntime) -> None:
        device = runtime.devices()[0]
        s = device.stream()
        x = device.upload(numbers(8), s)
        y = runtime.copy_peer(x, s, s)
        assert y is not x
        s.release(x)
        np.testing.assert_array_equal(read(device, y, s), numbers(8))

    def test_empty_values_are_written_later(self, device: RuntimeDevice) -> None:
        raw = device.empty(spec_on(device, (3, 4)), device.default_stream)
        assert device_runtime().device_of(raw) is device
        device.default_stream.release(raw)

    def test_memory_is_counted(self, device: RuntimeDevice) -> None:
        s = device.default_stream
        s.synchronize()
        gc.collect()
        before = device.memory()
        assert 0 <= before["live"] <= before["peak"]
        raw = device.upload(np.ones(2**16), s)
        during = device.memory()
        assert during["live"] >= before["live"] + 8 * 2**16 and during["peak"] >= during["live"]
        s.release(raw)
        s.release(raw)
        s.synchronize()
        del raw
        assert device.memory()["live"] <= before["live"]
        raw = device.upload(np.ones(2**16), s)
        del raw
        s.synchronize()
        assert device.memory()["live"] <= before["live"]

    def test_values_that_are_dropped_while_they_are_used(self, device: RuntimeDevice) -> None:
        s, t = device.stream(), device.stream()
        x = device.upload(np.ones(2**16), s)
        t.wait(s.record())
        y = launch(t, "neg", x, shape=(2**16,))
        s.wait(t.record())
        del x
        z = device.upload(np.zeros(2**16), s)  # may have the memory of x
        np.testing.assert_array_equal(read(device, y, t), -np.ones(2**16))
        np.testing.assert_array_equal(read(device, z, s), np.zeros(2**16))

    def test_streams(self, device: RuntimeDevice) -> None:
        a, b = device.stream(), device.stream(priority=-1)
        assert a is not b and a.device is device is b.device and b.priority == -1
        assert device.default_stream is device.default_stream and device.copy_stream is device.copy_stream
        for s in (a, b, device.default_stream, device.copy_stream):
            s.record()
            assert any(s is known for known in device.streams)

    def test_everything_can_be_waited_for(self, runtime: DeviceRuntime) -> None:
        events = []
        for device in runtime.devices():
            stream = device.stream()
            launch(stream, "neg", device.upload(numbers(0), stream))
            events.append((device, stream, stream.record()))
        tr.synchronize(str(runtime.devices()[0].id))
        assert events[0][2].done
        runtime.synchronize_all()
        assert all(event.done for _, _, event in events)
        tr.synchronize_all()

    def test_contexts_own_a_stream(self, runtime: DeviceRuntime) -> None:
        device = runtime.devices()[-1]
        context = StreamContext(str(device.id))
        x = tr.asarray(numbers(9), device=str(device.id))
        with compute_context(context):
            assert current_stream(device) is context.stream is not device.default_stream
            y = x + x
        assert current_stream(device) is device.default_stream
        np.testing.assert_array_equal(np.asarray((y * 2).to_device("cpu:0")), numbers(9) * 4)
        context.synchronize()
        kept = StreamContext.for_device(str(device.id))
        assert kept is StreamContext.for_device(device.id) and kept.stream is kept.stream is not context.stream

    def test_eager_work_is_ordered_from_context_to_context(self, runtime: DeviceRuntime) -> None:
        name = str(runtime.devices()[0].id)
        contexts = [StreamContext(name) for _ in range(3)]
        x = tr.asarray(numbers(10, (64, 64)), device=name)
        want = numbers(10, (64, 64))
        for i in range(30):
            with compute_context(contexts[i % 3]):
                x = (x + x) * 0.25
            want = (want + want) * 0.25
        np.testing.assert_array_equal(np.asarray(x.to_device("cpu:0")), want)

    def test_scopes_pick_the_stream_of_their_device_alone(self, runtime: DeviceRuntime) -> None:
        first, last = runtime.devices()[0], runtime.devices()[-1]
        context = StreamContext(first.id)
        with compute_context(context), compute_device(last.id):
            assert current_stream(first) is context.stream
            assert (current_stream(last) is last.default_stream) == (first is not last)

    @pytest.mark.parametrize("seed", range(5))
    def test_random_work_on_all_devices(self, runtime: DeviceRuntime, seed: int) -> None:
        """With every wait that is needed, results have the bits of NumPy."""
        draw = random.Random(seed)
        streams = [device.stream() for device in runtime.devices() for _ in range(2)]
        values = [(s.device.upload(numbers(i), s), s, numbers(i)) for i, s in enumerate(streams)]
        for _ in range(60):
            stream = draw.choice(streams)
            operands = []
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
            np.testing.assert_array_equal(read(stream.device, raw, stream), host)

    def test_threads_issue_at_once(self, runtime: DeviceRuntime) -> None:
        start = threading.Barrier(4)

        def work(i: int) -> np.ndarray:
            device = runtime.devices()[i % len(runtime.devices())]
            stream = device.stream()
            start.wait(30)
            raw = device.upload(numbers(i), stream)
            for _ in range(40):
                raw = launch(stream, "add", raw, raw)
            return read(device, raw, stream)

        with ThreadPoolExecutor(4) as pool:
            for i, got in enumerate(pool.map(work, range(4))):
                np.testing.assert_array_equal(got, numbers(i) * 2.0**40)
