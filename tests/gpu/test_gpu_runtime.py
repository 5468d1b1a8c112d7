"""The device runtime on a simulated CuPy: streams, events, copies through page-locked memory, DLPack, failures."""

import gc
import re
from typing import Any

import numpy as np
import pytest

import tenferro_gpu
import tenferro_runtime as tr
from fake_cupy import CUDARuntimeError, FakeCupy, OutOfMemoryError
from hand_written import reducing
from host_kernels import COMPILER, HostCompiler
from tenferro_gpu import CudaContext, PoolAllocator, _kernels, _machine_code, download, upload
from tenferro_runtime.running.fusion import wait
from tenferro_tensor import (
    AsynchronousError,
    DeviceMemoryError,
    Spec,
    catalog,
    compute_context,
    device_runtime,
    get_backend,
    no_transfers,
    synchronize,
)
from tenferro_tensor.transfers import booking
from tenferro_tensor_core import (
    ArgumentError,
    DTypeError,
    HostAdapterError,
    PlacementError,
    ShapeError,
    TransferForbiddenError,
    UnsupportedError,
)


@pytest.fixture
def runtime(with_cupy):
    with_cupy(count=2)
    return device_runtime("cuda")


def events(*kinds):
    return [entry for entry in FakeCupy.ordered if entry[0] in kinds]


def no_event_comes(monkeypatch):
    monkeypatch.setattr("fake_cupy.Event.done", False, raising=False)
    monkeypatch.setattr("fake_cupy.Event.__init__", lambda self, block, disable_timing: self.__dict__.update(device=0))


def test_work_of_a_context_runs_on_its_stream_and_waits_for_others(runtime):
    x = tr.asarray(np.arange(3.0), device="cuda:1")
    context = CudaContext.for_device(1)
    with compute_context(context):
        y = x * 2.0
        assert runtime.stream_of(y.data) is context.stream and y.data.stream is context.stream.raw
        assert y.data.device.id == 1
        assert events("wait")[-1] == ("wait", context.stream.raw, runtime.device(1).default_stream.raw)
        before = len(events("wait"))
        z = y + y
        assert len(events("wait")) == before  # its own stream is in order
    assert FakeCupy.stream is runtime.device(0).default_stream.raw and FakeCupy.current == 0
    w = z - 1.0
    assert events("wait")[-1] == ("wait", runtime.device(1).default_stream.raw, context.stream.raw)
    np.testing.assert_array_equal(np.asarray(w.to_device("cpu:0")), [-1.0, 3.0, 7.0])


def test_contexts_are_kept_and_know_their_device(runtime):
    assert CudaContext.for_device(1) is CudaContext.for_device("cuda:1")
    assert CudaContext("cuda:0", priority=-1).stream.priority == -1
    assert CudaContext.for_device(0).capabilities.architecture == "90"


def test_marks_go_with_their_values(runtime):
    x = tr.asarray(np.ones(3), device="cuda:0")
    with compute_context(CudaContext.for_device(0)):
        y = x + 1.0
    assert runtime.marked
    del y
    gc.collect()
    assert not runtime.marked


def test_the_usual_case_waits_for_nothing(runtime):
    x = tr.asarray(np.arange(4.0), device="cuda:0")
    FakeCupy.ordered.clear()
    FakeCupy.synchronized.clear()
    tr.sum(tr.exp(x) * x + tr.ones(4, device="cuda:0"))
    assert not FakeCupy.synchronized and not events("wait", "get")


@pytest.mark.parametrize("starts", [(0, 0), (1, 2), (-5, 9)])
@pytest.mark.parametrize("dtype", ["int64", "uint8"])
def test_blocks_at_computed_positions_are_found_without_looking(runtime, starts, dtype):
    x, update = np.arange(12.0).reshape(3, 4), -np.ones((2, 3))
    starts = np.array(starts).astype(dtype)
    at = [tr.asarray(n, device="cuda:0") for n in starts]
    FakeCupy.synchronized.clear()
    block = catalog.dynamic_slice(tr.asarray(x, device="cuda:0"), *at, sizes=(2, 3))
    whole = catalog.dynamic_update_slice(tr.asarray(x, device="cuda:0"), tr.asarray(update, device="cuda:0"), *at)
    assert not FakeCupy.synchronized
    np.testing.assert_array_equal(download(block), catalog.dynamic_slice(tr.asarray(x), *starts, sizes=(2, 3)))
    expected = catalog.dynamic_update_slice(tr.asarray(x), tr.asarray(update), *starts)
    np.testing.assert_array_equal(download(whole), expected)


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_positions_of_narrow_dtypes_reach_into_long_axes(runtime, dtype):
    x, at = tr.asarray(np.arange(1000.0), device="cuda:0"), tr.asarray(np.array(100, dtype), device="cuda:0")
    np.testing.assert_array_equal(download(catalog.dynamic_slice(x, at, sizes=(3,))), [100.0, 101.0, 102.0])
    filled = catalog.dynamic_update_slice(x, tr.zeros(2, device="cuda:0"), at)
    assert np.flatnonzero(np.asarray(download(filled)) == 0).tolist() == [0, 100, 101]


@pytest.mark.parametrize(("mode", "expected"), [("add", 7), ("max", 5)])
def test_one_number_is_scattered(runtime, mode, expected):
    x, at, number = (tr.asarray(np.array(v), device="cuda:0") for v in ([1, 2, 3], [1], 5))
    y = catalog.scatter(x, at, number, mode=mode, update_window_dims=(), inserted_dims=(0,), scatter_dims=(0,))
    assert download(y).tolist() == [1, expected, 3]


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int32", "int64", "float32"])
@pytest.mark.parametrize("mode", ["set", "add", "min", "max"])
def test_scatters_of_dtypes_that_have_no_atomic_operation(runtime, monkeypatch, dtype, mode):
    rng = np.random.default_rng(2)
    x, updates = (rng.integers(-100, 100, n).astype(dtype) for n in (5, 8))
    at = rng.integers(0, 5, (8, 1)) if mode != "set" else rng.permutation(5)[:5].reshape(5, 1)
    numbers = {"update_window_dims": (), "inserted_dims": (0,), "scatter_dims": (0,), "mode": mode}
    operands = x, at, updates[: len(at)]
    expected = catalog.scatter(*map(tr.asarray, operands), **numbers)
    seen = []
    real = {name: getattr(np, name) for name in ("add", "minimum", "maximum")}

    class Atomic:
        def __init__(self, ufunc):
            self.ufunc = ufunc

        def __call__(self, *args):
            return self.ufunc(*args)

        def at(self, out, index, values):
            seen.append(out.dtype.name)
            self.ufunc.at(out.view(np.ndarray), index.view(np.ndarray), values.view(np.ndarray))

    for name in real:
        monkeypatch.setattr(_kernels.cupy("cuda"), name, Atomic(real[name]), raising=False)  # type: ignore[attr-defined]
    _kernels.core_kernels.cache_clear()
    make = _kernels.core_kernels("cuda")[catalog.scatter]
    raws = [tr.asarray(o, device="cuda:0").data for o in operands]
    specs = tuple(tr.asarray(o).spec for o in operands)
    got = make(specs, (specs[0],), **numbers)(*raws)
    assert got.dtype == dtype
    np.testing.assert_array_equal(np.asarray(got), expected)
    assert set(seen) <= {"int32", "uint64", "float32"}  # what CUDA has


def test_launch_runs_on_the_stream_that_it_is_told(runtime):
    device = runtime.device(1)
    stream = device.stream(priority=-1)
    spec = Spec((3,), np.dtype("float64"), tr.ones(1, device="cuda:1").spec.place)
    kernel = get_backend("cuda").kernel(catalog.add.op(), (spec, spec), (spec,), device.id)
    raw = device.upload(np.arange(3.0), stream)
    FakeCupy.ordered.clear()
    (total,) = stream.launch(kernel, (raw, raw), (spec,))
    assert total.stream is stream.raw and not events("wait")
    np.testing.assert_array_equal(device.download(total, stream).result(), [0.0, 2.0, 4.0])
    assert set(device.streams) >= {stream, device.default_stream}


def test_uploads_are_staged_so_that_the_source_may_change(runtime):
    source = np.arange(6.0).reshape(2, 3).T
    pending = upload(source, "cuda:1", pending=True)
    source[...] = -1.0
    x = pending.result()
    pending.synchronize()
    assert pending.done and str(x.device) == "cuda:1" and x.shape == (3, 2)
    copying = runtime.device(1).copy_stream
    assert events("set")[-1] == ("set", copying.raw)
    y = x + 0.0  # on the default stream, after the copy
    assert events("wait")[-1] == ("wait", runtime.device(1).default_stream.raw, copying.raw)
    np.testing.assert_array_equal(np.asarray(download(y)), np.arange(6.0).reshape(2, 3).T)


def test_uploads_come_from_main_memory_whatever_the_scope_says(runtime):
    with compute_context(CudaContext.for_device(1)):
        for x in (upload(np.ones(2)), upload(np.ones(2), pending=True).result()):
            assert str(x.device) == "cuda:0"
    assert not events("peer")


def test_downloads_wait_for_the_value_and_not_for_the_caller(runtime):
    x = tr.asarray(np.arange(4.0), device="cuda:0") * 2.0
    FakeCupy.synchronized.clear()
    pending = download(x, pending=True)
    copying = runtime.device(0).copy_stream.raw
    assert events("wait")[-1] == ("wait", copying, runtime.device(0).default_stream.raw)
    assert not FakeCupy.synchronized
    result = pending.result()
    np.testing.assert_array_equal(np.asarray(result), [0.0, 2.0, 4.0, 6.0])
    assert FakeCupy.synchronized == [(0, copying)]
    assert download(tr.asarray(2.5, device="cuda:0"), pending=True).result().item() == 2.5


def test_downloads_stay_in_main_memory_whatever_the_scope_says(runtime):
    pending = download(tr.asarray(np.ones(2), device="cuda:0"), pending=True)
    with compute_context(CudaContext.for_device(1)):
        result = pending.result()
    assert str(result.device) == "cpu:0" and isinstance(result.data, np.ndarray)


def test_copies_with_handles_are_booked_and_forbidden_as_others(runtime):
    x = tr.asarray(np.ones(4), device="cuda:0")
    moves = []
    with booking(moves.append):
        upload(np.ones(3), pending=True)
        download(x, pending=True)
    assert [(m.nbytes, str(m.target)) for m in moves] == [(24, "cuda:0"), (32, "host")]
    assert all("test_gpu_runtime.py" in m.line for m in moves)
    for ask in (lambda: upload(np.ones(3), pending=True), lambda: download(x, pending=True)):
        with no_transfers(), pytest.raises(TransferForbiddenError, match=r"would be moved, but no_transfers\(\)"):
            ask()


def test_handles_are_for_concrete_values_in_the_right_memory(runtime):
    x = tr.asarray(np.ones(2), device="cuda:0")
    with pytest.raises(PlacementError, match="download with a handle or out= takes a concrete tensor in device memory"):
        download(tr.asarray(np.ones(2)), pending=True)
    with pytest.raises(PlacementError, match="in device memory, got ndarray in host memory; leave both out"):
        download(np.ones(2), pending=True)  # type: ignore[call-overload]
    with pytest.raises(PlacementError, match="upload with a handle or out= takes a concrete tensor in main memory"):
        upload(x, pending=True)


def test_nothing_is_kept_after_its_work(runtime):
    device = runtime.device(0)
    stream = device.stream()
    for _ in range(20):
        raw = device.upload(np.ones(100), stream)
        device.default_stream.release(raw)
        device.download(raw, stream).result()
    del raw
    memory = device.memory()
    assert memory.pop("peak") >= 800 and memory == {"live": 0, "free": 2**29, "total": 2**30}
    assert len(device.keeping) == 0


def test_values_that_another_stream_reads_are_kept_until_it_has(runtime, monkeypatch):
    x = tr.asarray(np.ones(3), device="cuda:0")
    no_event_comes(monkeypatch)
    device = runtime.device(0)
    before = len(device.keeping)
    with compute_context(CudaContext.for_device(0)):
        x + 1.0
    assert len(device.keeping) == before + 1


def test_memory_of_views_is_kept_for_the_stream_of_their_base(runtime, monkeypatch):
    x = tr.asarray(np.ones((2, 3)), device="cuda:0")
    device, context = runtime.device(0), CudaContext.for_device(0)
    with compute_context(context):
        view = x.mT
    assert runtime.stream_of(view.data) is context.stream and view.data.base is x.data
    no_event_comes(monkeypatch)
    before = len(device.keeping)
    with compute_context(context):
        own = view + 1.0
        assert len(device.keeping) == before + 1
        own + 1.0
        assert len(device.keeping) == before + 1
    context.stream.release(view.data)
    assert len(device.keeping) == before + 2


def test_a_value_that_a_kernel_hands_through_stays_one_of_its_stream(runtime):
    x = tr.asarray(np.ones(3), device="cuda:0")
    with compute_context(CudaContext.for_device(0)):
        get_backend("cuda").started(runtime.device(0), lambda x: x, (x.data,))  # type: ignore[attr-defined]
    assert runtime.stream_of(x.data) is runtime.device(0).default_stream


def test_copies_between_devices_do_not_pass_main_memory(runtime):
    x = tr.asarray(np.arange(6.0).reshape(2, 3), device="cuda:0")
    FakeCupy.ordered.clear()
    for value in (x, x.mT):
        y = value.to_device("cuda:1")
        assert y.data.device.id == 1
        np.testing.assert_array_equal(np.asarray(y.to_device("cpu:0")), np.asarray(value.to_device("cpu:0")))
    assert events("peer") == [("peer", 0, 1)] * 2
    assert runtime.can_access_peer(runtime.device(0), runtime.device(1))


def test_memory_that_does_not_suffice(with_cupy):
    module = with_cupy()
    x = tr.asarray(np.ones(1000), device="cuda:0")
    module.room = 100
    with pytest.raises(DeviceMemoryError, match=r"cuda:0 has no room for 8000 bytes: \d+ bytes are in use by values"):
        upload(np.ones(1000))
    with pytest.raises(DeviceMemoryError, match="drop tensors, work in smaller pieces"):
        get_backend("cuda").started(device_runtime("cuda").device(0), lambda x: module.empty(1000), (x.data,))  # type: ignore[attr-defined]
    assert FakeCupy.current == 0 and FakeCupy.stream.name == "null"


def test_copies_of_what_lies_with_gaps_need_room_as_well(with_cupy, monkeypatch):
    module = with_cupy()
    x = tr.asarray(np.ones((10, 20)), device="cuda:0").mT

    def refuses(x):
        raise OutOfMemoryError("Out of memory")

    monkeypatch.setattr(module, "ascontiguousarray", refuses, raising=False)
    for copied in (download, lambda x: download(x, pending=True), lambda x: x.to_device("cuda:1")):
        with pytest.raises(DeviceMemoryError, match="cuda:0 has no room for 1600 bytes"):
            copied(x)


def test_failures_of_accepted_work_keep_their_cause(runtime):
    x = tr.asarray(np.ones(2), device="cuda:0") + 1.0
    FakeCupy.failing = CUDARuntimeError("cudaErrorIllegalAddress")
    for ask in (lambda: download(x), lambda: synchronize("cuda:0"), get_backend("cuda").synchronize):
        with pytest.raises(
            AsynchronousError, match="work that cuda:0 had accepted failed: cudaErrorIllegalAddress"
        ) as seen:
            ask()
        assert isinstance(seen.value.__cause__, CUDARuntimeError)


def test_events_measure_time_only_where_they_were_told_to(runtime):
    stream = runtime.device(0).default_stream
    a, b = stream.record(timing=True), stream.record(timing=True)
    assert b.elapsed(a) == 0.002 and b.done
    with pytest.raises(UnsupportedError, match=re.escape("record(timing=True)")):
        b.elapsed(stream.record())


def test_streams_of_another_device_are_refused(runtime):
    one, other = runtime.devices()
    with pytest.raises(ArgumentError, match="cuda:0 was given <stream of cuda:1, priority 0>, which is not one of its"):
        one.empty(Spec((2,), np.dtype("float32")), other.default_stream)
    raw = one.empty(Spec((2,), np.dtype("float32")), one.default_stream)
    assert raw.shape == (2,) and raw.dtype == "float32"
    with pytest.raises(PlacementError, match="takes values in its memory"):
        other.download(raw, other.default_stream)
    with pytest.raises(ArgumentError, match="an array of CuPy was expected, got ndarray"):
        runtime.device_of(np.ones(2))


class Foreign:
    """A DLPack producer on cuda:1."""

    def __dlpack_device__(self):
        return 2, 1

    def __dlpack__(self, **options):
        return np.arange(3.0).__dlpack__()


def test_dlpack_goes_both_ways_in_the_order_of_streams(with_cupy, monkeypatch):
    module = with_cupy()
    runtime: Any = device_runtime("cuda")
    with compute_context(CudaContext.for_device(1)):
        x = tr.asarray(np.arange(3.0), device="cuda:1") * 2.0
    assert x.__dlpack_device__() == (2, 1)
    x.__dlpack__(stream=2)
    assert events("dlpack") == [("dlpack", CudaContext.for_device(1).stream.raw)]  # type: ignore[attr-defined]
    received = []
    module.from_dlpack = lambda p: received.append((FakeCupy.current, FakeCupy.stream)) or module.asarray([0.0, 1.0])
    y = tr.from_dlpack(Foreign())
    assert str(y.device) == "cuda:1" and y.data.device.id == 1
    assert received == [(1, runtime.device(1).default_stream.raw)]
    no_event_comes(monkeypatch)
    before = len(runtime.device(1).keeping)
    copied = tr.from_dlpack(Foreign(), copy=True)
    assert len(runtime.device(1).keeping) == before + 1  # what was shared, until it is copied
    np.testing.assert_array_equal(np.asarray(download(copied)), [0.0, 1.0])
    monkeypatch.setattr(module.ndarray, "copy", lambda x: module.empty(2**50), raising=False)
    with pytest.raises(DeviceMemoryError, match="cuda:1 has no room for 16 bytes"):
        tr.from_dlpack(Foreign(), copy=True)

    def refuses(producer):
        raise BufferError("it needs a gradient")

    module.from_dlpack = refuses
    with pytest.raises(HostAdapterError, match="from_dlpack cannot read Foreign on cuda:1: it needs a gradient"):
        tr.from_dlpack(Foreign())


class Counting(HostCompiler):
    def stats(self):
        return {"loaded": len(self.sources)}


@pytest.mark.skipif(COMPILER is None, reason="there is no g++ to compile rendered kernels with")
def test_programs_fuse_on_a_device_and_stream(with_cupy, monkeypatch):
    with_cupy()
    made = Counting()
    monkeypatch.setattr(_machine_code, "compiler", lambda kind, architecture, major: made)
    backend = get_backend("cuda")

    @tr.compile
    def f(x, scale):
        return tr.sum(tr.tanh(x * scale) + x, axis=1), x * 2.0 - scale

    rng = np.random.default_rng(0)
    for shape in ((3, 40), (5, 70), (2, 50)):
        x, scale = rng.standard_normal(shape), rng.standard_normal(shape[1])
        with compute_context(CudaContext.for_device(1)):
            found = f(tr.asarray(x, device="cuda:1"), tr.asarray(scale, device="cuda:1"))
        wait()
        np.testing.assert_allclose(np.asarray(download(found[0])), (np.tanh(x * scale) + x).sum(1), rtol=1e-12)
        np.testing.assert_allclose(np.asarray(download(found[1])), x * 2 - scale, rtol=1e-15)
    assert FakeCupy.launched and set(FakeCupy.launched) == {(1, CudaContext.for_device(1).stream.raw)}  # type: ignore[attr-defined]
    assert backend.compiled() == len(made.sources) > 0
    assert FakeCupy.current == 0


@pytest.mark.parametrize("pending", [False, True])
def test_transfers_into_memory_of_the_user(runtime, pending, monkeypatch):
    monkeypatch.setattr(FakeCupy, "pageable", True)  # the copy goes to the array itself
    host, back = np.arange(6.0).reshape(2, 3), np.zeros((2, 3))
    device, finished = runtime.device(1), lambda way: way.result() if pending else way
    mine = device.empty(Spec((2, 3), host.dtype), device.default_stream)
    moves = []
    with booking(moves.append):
        x = finished(upload(host, "cuda:1", out=mine, pending=pending))
        y = finished(download(x, out=back, pending=pending))
    assert x.data is mine and str(x.device) == "cuda:1" and len(moves) == 2
    assert np.shares_memory(y.data, back) and str(y.device) == "cpu:0"
    np.testing.assert_array_equal(back, host)


def test_transfers_refuse_memory_that_does_not_fit(runtime):
    host = np.arange(6.0)
    x = upload(host, "cuda:0")
    with pytest.raises(DTypeError, match=r"a transfer of float64 \(6,\) was given float32 \(6,\) in main memory"):
        download(x, out=np.zeros(6, "float32"))
    with pytest.raises(ShapeError, match="pass an array of that shape"):
        download(x, out=np.zeros((2, 3)))
    with pytest.raises(ArgumentError, match="a tensor is no destination"):
        download(x, out=tr.asarray(host))
    with pytest.raises(ArgumentError, match="it is read-only"):
        download(x, out=tr.asarray(host).data)
    with pytest.raises(PlacementError, match="a transfer to cuda:1 writes into an array of CuPy in its memory, got"):
        upload(host, "cuda:1", out=x.data)
    with pytest.raises(PlacementError, match="got ndarray"):
        upload(host, "cuda:1", out=np.zeros(6))
    with pytest.raises(PlacementError, match="download with a handle or out= takes a concrete tensor in device memory"):
        tr.compile(lambda x: download(x, out=np.zeros(6)))(x)


def test_contexts_have_an_allocator(with_cupy):
    with_cupy()
    device: Any = device_runtime("cuda").device(1)
    own, model = PoolAllocator(device, own=True), tenferro_gpu.device("cuda:1")
    context = CudaContext("cuda:1", allocator=own)
    with compute_context(context):
        block = model.memory.allocate(256)
        raw = device.empty(Spec((8,), np.dtype("float64")), context.stream)
    assert own.stats()["live"] == 256 + 64 and block.nbytes == 256 and raw.nbytes == 64
    assert isinstance(model.memory, PoolAllocator) and model.memory is not own
    model.memory.allocate(256)
    assert own.stats()["live"] == 320
    own.clear()
    assert own.stats() == {"live": 0, "peak": 0}


@pytest.mark.skipif(COMPILER is None, reason="there is no g++ to compile rendered kernels with")
def test_a_device_builds_kernels_that_are_written_by_hand(with_cupy, monkeypatch):
    with_cupy()
    made = Counting()
    monkeypatch.setattr(_machine_code, "compiler", lambda kind, architecture, major: made)
    model = tenferro_gpu.device("cuda:1")
    assert list(model.toolchains) == ["nvrtc"] and model.renderer.device == "cuda" and model.compiler is made
    with pytest.raises(ArgumentError, match="cuda has no toolchain 'llvm'; it has nvrtc"):
        model.toolchain("llvm")
    program = model.build(reducing("sum", "float64", 1, 1), "rows")
    x = tr.asarray(np.arange(12.0).reshape(3, 4), device="cuda:1")
    with device_runtime("cuda").device(1).default_stream:  # type: ignore[attr-defined]
        y = model.allocator.allocate(24).view("float64")
        program((x.data, y), (3, 4))
    np.testing.assert_array_equal(y.view(np.ndarray), np.arange(12.0).reshape(3, 4).sum(1))
    assert y.device.id == 1 and model.kind == "cuda" and model.allocator.stats()["live"] >= 24
    model.allocator.clear()
    assert events("cleared") == [("cleared", 1)]
