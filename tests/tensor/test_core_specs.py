"""Places, devices and specs: one object for each value, under threads, collection, pickling and copying."""

import copy
import enum
import gc
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from tenferro_tensor import HOST, ComputeDevice, MemorySpace, Place, Spec
from tenferro_tensor import _spec as specs
from tenferro_tensor.dispatch import common_place
from tenferro_tensor_core import AmbiguousPlacementError, ArgumentError, DTypeError, dim, float32, float64, int64

CPU1 = Place(MemorySpace("host"), ComputeDevice("cpu:1"))
CPU2 = Place(MemorySpace("host"), ComputeDevice("cpu:2"))
CUDA = Place(MemorySpace("cuda:0"))


class Size(enum.IntEnum):
    THREE = 3


def test_names_are_canonical() -> None:
    assert ComputeDevice("cuda") is ComputeDevice("cuda:0") is ComputeDevice("cuda:00")
    assert ComputeDevice(ComputeDevice("rocm:2")) is ComputeDevice("rocm:2")
    assert MemorySpace(MemorySpace("cuda:1")) is MemorySpace("cuda:1") is not MemorySpace("cuda:0")
    assert MemorySpace("host:0") is MemorySpace("host") is HOST.memory_space
    assert (str(MemorySpace("host")), str(MemorySpace("cuda")), str(ComputeDevice("cpu"))) == (
        "host",
        "cuda:0",
        "cpu:0",
    )
    assert repr(CPU1) == "Place(host, cpu:1)" and repr(CUDA) == "Place(cuda:0)"
    assert ComputeDevice("cpu:3").memory_space is MemorySpace("host")
    assert MemorySpace("rocm:1").default_device is ComputeDevice("rocm:1")
    xla = ComputeDevice("xla:cpu:0")
    assert (xla.kind, xla.index, str(xla), xla.memory_space) == ("xla:cpu", 0, "xla:cpu:0", MemorySpace("xla:cpu:0"))
    assert (HOST.device, CPU1.device, CUDA.device) == tuple(map(ComputeDevice, ("cpu:0", "cpu:1", "cuda:0")))


@pytest.mark.parametrize(
    "name", ["", "cuda:", ":0", "cuda:x", "cuda:-1", "a:1:2", "a:b", "a:b:c:1", "a 1", "a:²", "a:٣", 3, None]
)
@pytest.mark.parametrize("cls", [MemorySpace, ComputeDevice])
def test_other_names_are_errors(cls: Any, name: Any) -> None:
    with pytest.raises(ArgumentError, match=r"(memory space|compute device) .* is not of the form 'kind' or"):
        cls(name)


def test_memories_and_devices_are_not_confused() -> None:
    with pytest.raises(ArgumentError, match="'host' is a memory and runs nothing; its compute devices are"):
        ComputeDevice("host")
    for name in ("cpu", "cpu:1", "host:1"):
        with pytest.raises(ArgumentError, match="there is no memory space .*: main memory is one space, 'host'"):
            MemorySpace(name)
    with pytest.raises(ArgumentError, match=r"cuda:0 cannot compute on host memory; move the data with to_device"):
        Place(MemorySpace("host"), ComputeDevice("cuda:0"))
    for parts in (("host",), (MemorySpace("host"), "cpu:1")):
        with pytest.raises(ArgumentError, match="a Place consists of a MemorySpace and a ComputeDevice or None, got"):
            Place(*parts)


@pytest.mark.parametrize(
    "thing",
    [MemorySpace("host"), MemorySpace("cuda:3"), ComputeDevice("cpu:2"), HOST, CPU1, CUDA,
     Spec((2, dim("n")), float64), Spec((), float32, CUDA)],
    ids=repr,
)  # fmt: skip
def test_copies_and_pickles_are_the_object_itself(thing: Any) -> None:
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(thing, protocol)) is thing
    assert copy.copy(thing) is thing
    assert copy.deepcopy([thing])[0] is thing


def test_equal_specs_are_one_object() -> None:
    n, s = dim("n"), Spec((2, 3), float64)
    assert Spec((2, 3), float64, HOST) is s
    assert Spec([2, 3], float64) is s  # type: ignore[arg-type]
    assert Spec((np.int32(2), Size.THREE), float64) is s  # type: ignore[arg-type]
    assert Spec((2, 3), np.dtype("d")) is s and Spec((2, 3), "float64") is s  # type: ignore[arg-type]
    assert Spec((n + 1, n * 2 - n), float64) is Spec((1 + n, n), float64)
    assert len({s, Spec((3, 2), float64), Spec((2, 3), float32), s.with_(place=CPU1), Spec((2, n), float64)}) == 5
    assert s.with_() is s and s.with_(shape=()).with_(dtype=float32).with_(place=CUDA) is Spec((), float32, CUDA)


def test_extents_are_plain_integers_whatever_they_were() -> None:
    """A bool is an integer; kept as it is, it would make the spec symbolic."""
    s = Spec((True, np.int64(4), Size.THREE), float64)  # type: ignore[arg-type]
    assert s is Spec((1, 4, 3), float64)
    assert [type(d) for d in s.shape] == [int] * 3
    assert not s.symbolic and s.size == 12


def test_dtypes_are_canonical_whoever_comes_first() -> None:
    """On some platforms two C types share one format; the spec holds the instance that identity tests know."""
    assert Spec((97, 89), np.dtype("longlong")).dtype is int64
    assert Spec((97, 83), np.dtype("float64", metadata={"unit": "m"})).dtype is float64


def test_facts_of_a_spec() -> None:
    s = Spec((dim("n"), 2), np.dtype("complex64"), CPU1)
    assert (s.ndim, s.cplx, s.inexact, s.symbolic) == (2, True, True, True)
    assert repr(s) == "complex64[n, 2] at cpu:1" and str(s.size) == "2*n"
    i = Spec((), int64)
    assert (i.ndim, i.cplx, i.inexact, i.symbolic, i.size, repr(i)) == (0, False, False, False, 1, "int64[]")


def test_what_a_spec_refuses() -> None:
    with pytest.raises(ArgumentError, match="extents of a shape cannot be negative, got -1"):
        Spec((2, -1), float64)
    for extent in (2.0, "2", None):
        with pytest.raises(ArgumentError, match="a shape consists of integers or symbolic sizes, not"):
            Spec((extent,), float64)  # type: ignore[arg-type]
    with pytest.raises(DTypeError, match="element type 'object' is not supported"):
        Spec((2,), np.dtype(object))
    with pytest.raises(DTypeError, match="foreign byte order"):
        Spec((2,), np.dtype(">f8"))
    with pytest.raises(ArgumentError, match="a Spec takes a Place, got 'host'; HOST is main memory"):
        Spec((2,), float64, "host")  # type: ignore[arg-type]


def test_unused_specs_are_dropped() -> None:
    spec = Spec((7919,), float64)
    key = (spec.shape, spec.dtype, spec.place)
    assert key in specs._interned
    del spec
    gc.collect()
    assert key not in specs._interned


def test_threads_that_race_for_one_spec_get_one_object() -> None:
    threads, rounds = 8, 300
    barrier = threading.Barrier(threads)

    def make(_: int) -> list[Spec]:
        found = []
        for i in range(rounds):
            if i % 50 == 0:
                barrier.wait()
            found.append(Spec((i, 10_007), float32, Place(MemorySpace(f"cuda:{i % 7}"))))
        return found

    with ThreadPoolExecutor(threads) as pool:
        rows = list(pool.map(make, range(threads)))
    for same in zip(*rows, strict=True):
        assert len(set(map(id, same))) == 1


def test_specs_made_and_dropped_by_threads_stay_consistent() -> None:
    """The table forgets a spec while another thread asks for an equal one: what is alive is still unique."""
    failures = []

    def churn(seed: int) -> None:
        for i in range(3000):
            a = Spec((seed % 2, i % 5, 10_009), float64)
            if a is not Spec((seed % 2, i % 5, 10_009), float64):
                failures.append(a)
            del a

    workers = [threading.Thread(target=churn, args=(k,)) for k in range(4)]
    for w in workers:
        w.start()
    for _ in range(5):
        gc.collect()
    for w in workers:
        w.join()
    assert not failures


def test_a_finalizer_may_make_specs_while_the_table_is_locked() -> None:
    """Collection can strike anywhere, also inside of the lock."""
    made = []

    class Cyclic:
        def __init__(self) -> None:
            self.me = self

        def __del__(self) -> None:
            made.append(Spec((10_037,), float64))

    Cyclic()
    with specs._lock:
        gc.collect()
    assert made == [Spec((10_037,), float64)]


def spec(place: Place) -> Spec:
    return Spec((2,), float64, place)


def test_the_place_of_results_is_that_of_the_operands() -> None:
    assert common_place("f", []) is None
    assert common_place("f", [spec(HOST), spec(HOST)]) is HOST
    assert common_place("f", [spec(HOST), spec(CPU1), spec(HOST)]) is CPU1
    assert common_place("f", [spec(CUDA)]) is CUDA


@pytest.mark.parametrize(
    ("places", "why", "moves"),
    [
        ((HOST, CUDA), "in several memory spaces", "operand 1 with .to_device('cpu:0')"),
        ((CPU1, CPU2), "with several compute devices", "operand 1 with .to_device('cpu:1')"),
        ((HOST, CPU1, CUDA), "in several memory spaces", "operand 2 with .to_device('cpu:1')"),
        ((CUDA, HOST, CUDA), "in several memory spaces", "operand 1 with .to_device('cuda:0')"),
    ],
)
def test_operands_apart_are_listed(places: tuple[Place, ...], why: str, moves: str) -> None:
    """The device that is advised is the one that the least data have to be moved to."""
    with pytest.raises(AmbiguousPlacementError) as error:
        common_place("matmul", [spec(p) for p in places])
    listing = "".join(f"  operand {i}: float64[2] in {home(p)}\n" for i, p in enumerate(places))
    assert str(error.value) == (f"matmul has operands {why}:\n{listing}nothing is transferred implicitly: move {moves}")
    assert error.value.payload["devices"] == tuple(str(p.device) for p in places)
    assert error.value.payload["memory_spaces"] == tuple(str(p.memory_space) for p in places)


def home(place: Place) -> str:
    own = place.compute_device
    return f"{place.memory_space} memory, {f'computed on {own}' if own else 'no compute device of its own'}"
