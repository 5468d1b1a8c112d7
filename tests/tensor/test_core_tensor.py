"""The concrete tensor: making, copying, short ways that equal the long ones, tables of plans."""

import copy
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from tenferro_tensor import HOST, Spec, Tensor, catalog, clear_plans, plan_stats, primitive, tensor
from tenferro_tensor.entries import evaluate
from tenferro_tensor.functions.reading import getitem
from tenferro_tensor_core import ArgumentError, DTypeError, GradientError, HostAdapterError, float32, float64, int64
from thorough import tries


def test_making_a_tensor() -> None:
    assert tensor([[1, 2], [3, 4]]).spec is Spec((2, 2), int64, HOST)
    assert (
        tensor(1.5).spec is Spec((), float64) and tensor(True).dtype == np.bool_ and tensor(1j).dtype == np.complex128
    )
    assert tensor([1, 2.5]).dtype == np.float64 and tensor([]).spec is Spec((0,), float64)
    assert tensor([1, 2], dtype="float32").dtype is float32
    assert tensor([tensor(1.0), tensor([2.0])[0]]).tolist() == [1.0, 2.0]
    a = np.arange(3.0)
    assert np.shares_memory(tensor(a).data, a) and not np.shares_memory(tensor(a, copy=True).data, a)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: Tensor(), ArgumentError, r"use asarray\(...\), tensor\(...\) or Tensor.wrap"),
        (lambda: tensor([[1], [1, 2]]), ArgumentError, "nested sequences must have one length per level"),
        (lambda: tensor(["a"]), DTypeError, "element type '<U1' is not supported"),
        (lambda: tensor([object()]), DTypeError, "element type 'object' is not supported; convert to one of bool"),
        (lambda: tensor(2**70), DTypeError, "element type 'object' is not supported"),
        (lambda: tensor(np.ones(2, ">f8"), copy=False), HostAdapterError, "copy=False forbids a copy"),
        (lambda: tensor(tensor([1.0]), dtype="int64", copy=False), ArgumentError, r"cannot become int64\[1\] without"),
        (lambda: bool(tensor([1, 2])), ArgumentError, r"the truth value of int64\[2\] is undefined"),
    ],
)  # fmt: skip
def test_error_texts(call: Any, error: Any, text: str) -> None:
    with pytest.raises(error, match=text):
        call()


def test_a_tensor_of_a_tensor() -> None:
    x = tensor([1.0, 2.0])
    assert tensor(x) is x and tensor(x, dtype=float64, copy=False) is x and tensor(x, device="cpu:0") is x
    assert tensor(x, dtype=float32).spec is Spec((2,), float32)
    made = tensor(x, copy=True)
    assert made.spec is x.spec and not np.shares_memory(made.data, x.data)
    narrow = tensor(x, dtype=float32, copy=True)
    assert narrow.dtype == float32 and narrow.tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    "x", [tensor([[1.0, 2.0]]), tensor(3), tensor(np.float32(2)), tensor([]), tensor([[1j], [2]]).T]
)
def test_copies_and_pickles(x: Tensor) -> None:
    twin = copy.copy(x)
    assert twin is not x and twin.spec is x.spec and twin.tolist() == x.tolist()
    for other in (copy.deepcopy(x), *[pickle.loads(pickle.dumps(x, p)) for p in range(2, 6)]):
        assert other.__class__ is Tensor and other.spec is x.spec and other.tolist() == x.tolist()
        assert not x.ndim or not x.size or not np.shares_memory(other.data, x.data)
    shared = copy.deepcopy([x, x])
    assert shared[0] is shared[1]


def test_repr() -> None:
    assert repr(tensor([1.0, 2.5])) == "Tensor([1. , 2.5])"
    assert repr(tensor(np.float32(1))) == "Tensor(1., dtype=float32)"
    assert repr(tensor(np.zeros((0, 2)))) == "Tensor([], dtype=float64, shape=(0, 2))"
    assert repr(tensor([True])) == "Tensor([ True])"


KEYS: list[Any] = [
    0, -1, slice(None), slice(1, None), slice(None, None, -1), slice(5, 1), Ellipsis, None, (0, 1), (slice(None), 1),
    (..., 0), (None, 0, ..., None), (slice(None, None, 2), slice(2, 0, -1)), (1, None, slice(1, 3)), (), (0, ...),
]  # fmt: skip


@pytest.mark.parametrize("key", KEYS, ids=repr)
def test_views_by_the_short_way_equal_the_long_one(key: Any) -> None:
    data = np.arange(12.0).reshape(3, 4)
    for raw in (data, data.astype(np.int8).T, data[::2, 1:]):
        x = tensor(raw)
        want = getitem(x, key)
        for _ in range(2):
            got = x[key]
            assert got.__class__ is Tensor and got.spec is want.spec
            assert np.shape(got.data) == got.shape and got.data.dtype == got.dtype
            np.testing.assert_array_equal(got.data, raw[key])
            np.testing.assert_array_equal(want.data, raw[key])
        assert not got.ndim or not got.size or np.shares_memory(got.data, raw)


def test_errors_of_keys_are_ours_also_after_a_good_key() -> None:
    x = tensor([1.0, 2.0])
    assert x[1].item() == 2.0
    for _ in range(2):
        with pytest.raises(
            IndexError, match="index 2 is out of bounds for axis 0 with extent 2; indices go from -2 to 1"
        ):
            x[2]
        with pytest.raises(IndexError, match="2 indices for an array with 1 axes"):
            x[0, 0]
    assert x[True].shape == (1, 2), "True is a mask, not the index 1"
    assert [float(v) for v in x] == [1.0, 2.0]


def test_unary_and_reflected_short_ways() -> None:
    for raw in (np.arange(3.0), np.arange(3), np.float64(2), np.arange(4, dtype=np.int8)[::2]):
        x = tensor(raw)
        clear_plans()
        for _ in range(2):
            np.testing.assert_array_equal((-x).data, -raw)
            np.testing.assert_array_equal((2 - x).data, 2 - raw)
            np.testing.assert_array_equal((2.5 * x).data, 2.5 * raw)
            np.testing.assert_allclose(catalog.exp(x).data, np.exp(np.asarray(raw, float)), rtol=4e-16)
        assert (2 - x).spec is evaluate(catalog.sub.op(), (2, x)).spec


def test_several_outputs_come_as_a_tuple() -> None:
    import tenferro_linalg as la

    for _ in range(3):
        q, r = la.qr(tensor([[2.0, 0.0], [0.0, 1.0]]))
        assert q.__class__ is r.__class__ is Tensor


@primitive(elementwise=True)
def echo(x: Spec) -> Spec:
    """The operand."""
    return x


def register_echo() -> None:
    from tenferro_tensor import REGISTRY

    REGISTRY.kernel(echo, "cpu", kernel_of_echo)


def kernel_of_echo(ins: Any, outs: Any) -> Any:
    return lambda x: x


def test_tables_of_entries_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    register_echo()
    op = echo.op()
    monkeypatch.setattr(op, "bound", 8)
    op.forget()
    for n in range(50):
        assert echo(tensor(np.zeros(n))).shape == (n,)
        assert len(op.entries) <= 8


def test_plan_stats_and_clearing() -> None:
    register_echo()
    clear_plans()
    assert not any(row["owner"].startswith("forward plans") for row in plan_stats())
    x = tensor([1.0])
    echo(x), echo(tensor([1, 2])), x[0]
    x.sum()
    rows = {row["owner"]: row for row in plan_stats()}
    row = rows["forward plans: echo"]
    assert (row["size"], row["bound"], row["ops"]) == (2, echo.op().bound, 1)
    assert rows["forward plans: reduce_sum"]["bound"] > row["bound"]
    assert all(0 <= row["size"] <= row["bound"] for row in rows.values())
    assert any(row["size"] for owner, row in rows.items() if owner.startswith("array functions"))
    clear_plans()
    assert all(row["size"] == 0 for row in plan_stats())
    assert echo(x).tolist() == [1.0] and x.sum().item() == 1.0


def test_first_use_by_many_threads() -> None:
    """No plan exists yet: every thread makes or finds one, and all get one result."""
    data = [np.arange(float(n + 1)) for n in range(6)]
    barrier = threading.Barrier(8)

    def work(_: int) -> list[Any]:
        barrier.wait()
        out = []
        for a in data:
            x = tensor(a)
            out.append(((x + x) * 2.0 - catalog.tanh(x)).data)
            out.append(x[1:].data)
        return out

    for _ in range(5):
        clear_plans()
        with ThreadPoolExecutor(8) as pool:
            rows = list(pool.map(work, range(8)))
        want = [f for a in data for f in ((a + a) * 2.0 - np.tanh(a), a[1:])]
        for row in rows:
            for got, expect in zip(row, want, strict=True):
                np.testing.assert_array_equal(got, expect)


def test_clearing_while_others_compute() -> None:
    stop, failures = threading.Event(), []
    x = tensor(np.arange(3.0))

    def work() -> None:
        while not stop.is_set():
            if (x * 2.0 + x)[1].item() != 3.0:
                failures.append(1)

    workers = [threading.Thread(target=work) for _ in range(3)]
    for w in workers:
        w.start()
    for _ in range(tries(30, 300)):
        clear_plans()
        plan_stats()
    stop.set()
    for w in workers:
        w.join()
    assert not failures


def test_axes_are_integers_also_when_an_equal_one_is_known() -> None:
    x = tensor(np.ones((2, 3)))
    assert x.sum(1).shape == (2,) and x.max(axis=(0, 1)).shape == () and x.sum([0]).shape == (3,)
    for axis in (1.0, (0, 1.0)):
        with pytest.raises(ArgumentError, match="sum takes an integer as axis, got 1.0"):
            x.sum(axis)
        with pytest.raises(ArgumentError, match="max takes an integer as axis, got 1.0"):
            x.max(axis)
    with pytest.raises(ArgumentError, match="a shape consists of integers or symbolic sizes, not 2.0"):
        x.reshape(3, 2), x.reshape(3, 2.0)


def test_nothing_is_cut_off_or_moved_by_stacking() -> None:
    from tenferro_ad import variable

    v = variable(tensor([1.0, 2.0]))
    for data in (v, [v, v], [[1.0, v[0]]]):
        with pytest.raises(GradientError, match=r"would silently cut off its derivative; .*use .detach\(\)"):
            tensor(data)
    assert tensor([v.detach(), v.detach()]).shape == (2, 2)


def test_the_short_way_of_more_operands() -> None:
    p, x, y = tensor([True, False]), tensor([1.0, 2.0]), tensor([3.0, 4.0])
    clear_plans()
    for _ in range(3):
        assert catalog.select(p, x, y).tolist() == [1.0, 4.0]
        assert catalog.select(p, y, x).tolist() == [3.0, 2.0]
        assert catalog.clamp(y, x, x).tolist() == [1.0, 2.0]
        assert catalog.concatenate(x, y, x, axis=0).tolist() == [1.0, 2.0, 3.0, 4.0, 1.0, 2.0]
        assert catalog.iota(shape=(2,), dtype=int64, axis=0).tolist() == [0, 1]
