"""Which device runs an op: the order of the rules, scopes under threads, tasks and generators, pools, transfers."""

import asyncio
import threading
from collections.abc import Generator, Iterator
from typing import Any

import numpy as np
import pytest

import tenferro_runtime as tr
from tenferro_cpu import CpuPool
from tenferro_tensor import (
    HOST,
    Backend,
    ComputeDevice,
    MemorySpace,
    Place,
    Spec,
    Tensor,
    catalog,
    clear_plans,
    compute_context,
    compute_device,
    get_backend,
    tensor,
)
from tenferro_tensor import backends as backends
from tenferro_tensor.backends import place_of
from tenferro_tensor.calls import state
from tenferro_tensor.dispatch import decide, scoped_device
from tenferro_tensor.reference import kernels
from tenferro_tensor_core import AmbiguousPlacementError, ArgumentError, PlacementError, float64

CPU0, CPU1, TOY = map(ComputeDevice, ("cpu:0", "cpu:1", "toy:0"))
POOL = Place(MemorySpace("host"), CPU1)
CHIP = Place(MemorySpace("toy:0"))


class ToyArray(np.ndarray[Any, Any]):
    """An array in the memory of the toy accelerator."""


class Toy(Backend):
    """An accelerator that computes with NumPy and notes what it was asked."""

    name = "toy"

    def __init__(self) -> None:
        self.ran: list[str] = []
        self.table = kernels(np, lambda: None)

    def devices(self) -> tuple[ComputeDevice, ...]:
        return (TOY,)

    def upload(self, array: Any, device: ComputeDevice) -> Any:
        return np.array(array).view(ToyArray)

    def download(self, raw: Any) -> Any:
        return np.array(raw)

    def synchronize(self) -> None: ...

    def kernel(self, op: Any, ins: Any, outs: Any, device: ComputeDevice) -> Any:
        self.require(device)
        run = self.table[op.primitive](ins, outs, **op.params)

        def noted(*raws: Any) -> Any:
            self.ran.append(f"{op.primitive.name} on {device}")
            return run(*raws)

        return noted


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> Iterator[Toy]:
    chip = Toy()
    monkeypatch.setitem(backends._made, "toy", chip)
    clear_plans()
    yield chip
    clear_plans()


@pytest.fixture
def pools(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """A CPU with two pools; lists where its kernels were made to run."""
    cpu, made = get_backend("cpu"), []
    general = type(cpu).kernel

    def kernel(self: Any, op: Any, ins: Any, outs: Any, device: ComputeDevice) -> Any:
        made.append(f"{op.primitive.name} on {device}")
        return general(self, op, ins, outs, device)

    monkeypatch.setattr(type(cpu), "kernel", kernel)
    clear_plans()
    with CpuPool(index=1):
        yield made
    clear_plans()


class Context:
    def __init__(self, device: ComputeDevice) -> None:
        self.device = device


@pytest.fixture(autouse=True)
def no_scope_stays_open() -> Iterator[None]:
    assert state.open_scopes == 0
    yield
    assert state.open_scopes == 0 and scoped_device() is None


def spec(place: Place) -> Spec:
    return Spec((2,), float64, place)


def test_order_of_the_rules() -> None:
    """Own device, device scope, context scope, memory."""
    assert decide("f", [spec(HOST)]) is CPU0
    assert decide("f", [spec(CHIP)]) is TOY
    assert decide("f", []) is CPU0
    with compute_context(Context(CPU1)):
        assert decide("f", [spec(HOST)]) is CPU1
        assert decide("f", []) is CPU1
        with compute_device("cpu:2"):
            assert decide("f", [spec(HOST)]) is ComputeDevice("cpu:2")
            assert decide("f", [spec(POOL)]) is CPU1
            assert decide("f", [spec(HOST), spec(POOL)]) is CPU1
    with compute_device("cpu:2"), compute_context(Context(CPU1)):
        assert decide("f", [spec(HOST)]) is ComputeDevice("cpu:2"), "the device scope ranks first, though it is outer"


def test_scopes_that_do_not_reach_the_operands() -> None:
    text = (
        r"mul was asked to run on toy:0 by `with compute_{}\(...\)`, which computes on other memory:\n"
        r"  operand 0: float64\[1\] in host memory, no compute device of its own, made at {}:\d+\n"
        r"  operand 1: .*\n"
        r"nothing is transferred implicitly: move operand 0 with .to_device\('toy:0'\), "
        r"operand 1 with .to_device\('toy:0'\), or leave the scope"
    )
    x = tensor([1.0])
    assert (x * x).tolist() == [1.0]
    with compute_device("toy:0"), pytest.raises(AmbiguousPlacementError, match=text.format("device", __file__)):
        x * x
    with compute_context(Context(TOY)), pytest.raises(PlacementError, match=text.format("context", __file__)):
        x * x
    assert (x * x).tolist() == [1.0]


def test_scopes_nest_and_unwind_after_errors() -> None:
    with compute_device("cpu:1") as outer:
        assert outer is CPU1 and state.open_scopes == 1
        with pytest.raises(ZeroDivisionError), compute_device("toy"):
            assert scoped_device() is TOY and state.open_scopes == 2
            1 / 0
        assert scoped_device() is CPU1
    with pytest.raises(ArgumentError, match="compute device 'gpu 0' is not of the form"):
        compute_device("gpu 0")
    compute_device("cpu:1")  # never entered: nothing is open


def test_threads_start_outside_of_scopes() -> None:
    seen: list[Any] = []
    with compute_device("cpu:1"):
        thread = threading.Thread(target=lambda: seen.append((scoped_device(), state.open_scopes)))
        thread.start()
        thread.join()
    assert seen == [(None, 1)]


def test_many_threads_count_right() -> None:
    def work() -> None:
        for i in range(200):
            with compute_device(f"cpu:{i % 3}") as d, compute_context(Context(CPU0)):
                assert scoped_device() is d

    workers = [threading.Thread(target=work) for _ in range(6)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()


def test_tasks_have_scopes_of_their_own() -> None:
    async def work(i: int) -> None:
        with compute_device(f"cpu:{i}") as d:
            for _ in range(3):
                await asyncio.sleep(0)
                assert scoped_device() is d

    async def main() -> None:
        await asyncio.gather(*[work(i) for i in range(30)])
        assert scoped_device() is None

    asyncio.run(main())


def test_generators_closed_elsewhere_close_their_scope() -> None:
    def scoped() -> Generator[int, None, None]:
        with compute_device("cpu:1"):
            yield 1

    closed = scoped()
    next(closed)
    assert scoped_device() is CPU1, "a scope leaks out of a suspended generator: that is Python's rule"
    closed.close()
    assert scoped_device() is None
    elsewhere = scoped()

    def start() -> None:
        next(elsewhere)

    thread = threading.Thread(target=start)
    thread.start()
    thread.join()
    assert state.open_scopes == 1
    elsewhere.close()  # in a context where the scope was never entered


def test_async_generators_dropped_half_way_close_their_scope() -> None:
    async def scoped() -> Any:
        with compute_device("cpu:1"):
            yield 1
            yield 2

    async def main() -> None:
        async for _ in scoped():
            break

    asyncio.run(main())


def test_scopes_decorate() -> None:
    @compute_device("cpu:1")
    def where() -> Any:
        return scoped_device()

    assert where() is CPU1 and where() is CPU1


def test_new_data_go_where_they_are_told(toy: Toy, pools: list[str]) -> None:
    assert (
        place_of(None) is HOST and place_of("cpu:0") is HOST and place_of("cpu:1") is POOL and place_of("toy") is CHIP
    )
    with compute_device("toy:0"):
        assert place_of(None) is CHIP and place_of("cpu:0") is HOST and place_of("cpu:1") is POOL
        assert tr.ones(2).spec.place is CHIP
        assert tr.ones(2, device="cpu:0").spec.place is HOST
        assert catalog.iota(shape=(2,), dtype=np.dtype("int64"), axis=0).spec.place is HOST
    assert tr.asarray([1.0], device="toy").device is TOY


def test_transfers_need_no_leave_of_the_scope(toy: Toy) -> None:
    """The error of an op in a scope advises to_device(): it has to work there."""
    x = tensor([1.0, 2.0])
    with compute_device("toy:0"):
        y = x.to_device("toy:0")
        assert y.spec.place is CHIP and (y + y).spec.place is CHIP
        assert y.to_device("cpu:0").spec is x.spec
    with compute_device("cpu:0"):
        assert y.to_device("cpu:0").tolist() == [1.0, 2.0]
    assert toy.ran == ["add on toy:0", "transfer on toy:0", "transfer on toy:0"]


@pytest.mark.parametrize("context", ["cpu:0", CPU0, None])
def test_what_is_no_context_is_refused_before_the_scope_opens(context: Any) -> None:
    before = state.open_scopes
    text = r"compute_context was given .*, which is no context: .* or use compute_device\(\) for the name of a device"
    with pytest.raises(ArgumentError, match=text):
        compute_context(context)
    assert state.open_scopes == before


def test_mixed_memories_are_listed(toy: Toy) -> None:
    x = tensor([1.0])
    with pytest.raises(
        PlacementError, match=r"operand 0: float64\[1\] in host memory.*\n.*operand 1: float64\[1\] in toy:0 mem"
    ):
        x + x.to_device("toy")
    with pytest.raises(PlacementError, match=r"np.asarray\(\) of float64\[1\] at toy:0 would copy it"):
        np.asarray(x.to_device("toy"))


def test_a_device_of_ones_own(toy: Toy, pools: list[str]) -> None:
    x = tensor([1.0, 2.0])
    y = x.with_compute_device("cpu:1")
    assert y.spec is x.spec.with_(place=POOL) and np.shares_memory(y.data, x.data)
    assert np.shares_memory(y.with_compute_device("cpu:1").data, y.data)
    assert y.with_compute_device(None).spec is x.spec
    z = x * y  # no device of its own beside one that has
    assert z.spec.place is POOL and (z + 1).spec.place is POOL and z.sum().spec.place is POOL
    assert (y[0] @ y[0] if y[0].ndim else y[0]).spec.place is POOL
    assert {"mul on cpu:1", "add on cpu:1", "reduce_sum on cpu:1"} <= set(pools)
    with compute_device("cpu:0"):
        assert (y * y).spec.place is POOL
    assert pools[-1] == "mul on cpu:1"
    with pytest.raises(PlacementError, match="mul has operands with several compute devices"):
        y * x.with_compute_device("cpu:0")
    with pytest.raises(ArgumentError, match=r"toy:0 cannot compute on host memory; move the data with to_device"):
        x.with_compute_device("toy:0")
    assert x.to_device("toy").with_compute_device("toy:0").spec.place is Place(MemorySpace("toy:0"), TOY)


def test_a_pool_that_is_not_there_is_an_error() -> None:
    """It must not run quietly on another pool."""
    x, text = tensor([1.0]), "cpu:7 was requested, but no such pool was ever opened; open it with"
    asked: list[Any] = [
        lambda: x.to_device("cpu:7"),
        lambda: x.with_compute_device("cpu:7"),
        lambda: tensor(1.0, device="cpu:7"),
        lambda: tr.ones(2, device="cpu:7"),
        lambda: Tensor.wrap(x.data, x.spec.with_(place=Place(MemorySpace("host"), ComputeDevice("cpu:7")))) + 1,
    ]
    for call in asked:
        with pytest.raises(PlacementError, match=text):
            call()
    for scope in (compute_device("cpu:7"), compute_context(Context(ComputeDevice("cpu:7")))):
        with scope, pytest.raises(PlacementError, match=text):
            x + 1
    assert (x + 1).tolist() == [2.0]


def test_plans_are_kept_by_scope(pools: list[str]) -> None:
    """A scope, here or in another thread, costs no new plan for each op; and no plan leaks out of it."""
    x = tensor([1.0, 2.0])
    for _ in range(3):
        assert (x + 1).tolist() == [2.0, 3.0]
        with compute_device("cpu:1"):
            assert (x + 1).tolist() == [2.0, 3.0]
            thread = threading.Thread(target=lambda: x + 1)
            thread.start()
            thread.join()
        with compute_context(Context(CPU1)):
            x + 1
    assert pools == ["add on cpu:0", "add on cpu:1"]


def test_unary_operators_and_products_obey_scopes(pools: list[str]) -> None:
    x = tensor(np.eye(2))
    calls: list[Any] = [lambda: -x, lambda: x @ x, lambda: x[0], lambda: 2.0 * x, lambda: x.sum(), lambda: tr.tanh(x)]
    for call in calls:
        call(), call()
    pools.clear()
    with compute_device("cpu:1"):
        for call in calls:
            call()
    assert pools and all(made.endswith("cpu:1") for made in pools)


def test_programs_of_operands_with_and_without_a_device_of_their_own(pools: list[str]) -> None:
    y = tensor([1.0, 2.0]).with_compute_device("cpu:1")

    def f(v: Any) -> Any:
        return catalog.select(v > 0, y, 1.0) * catalog.clamp(v, y, 5.0)

    x = tensor([1.0, -2.0])
    want = f(x)
    assert want.spec.place is POOL and want.tolist() == [1.0, 2.0]
    got = tr.compile(f)(x)
    assert got.spec is want.spec and got.tolist() == want.tolist()
