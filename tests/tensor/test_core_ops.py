"""Primitives and ops: canonical metadata, inference, dispatch to the highest level, pickling."""

import copy
import enum
import gc
import pickle
import sys
import threading
from collections import namedtuple
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tenferro_tensor import (
    HOST,
    ComputeDevice,
    MemorySpace,
    Op,
    Place,
    Primitive,
    Spec,
    Tensor,
    catalog,
    next_level,
    primitive,
    primitives,
    tensor,
)
from tenferro_tensor import _primitive as primitives_module
from tenferro_tensor._foreign import class_of
from tenferro_tensor_core import ArgumentError, DTypeError, PlacementError, ShapeError, dim, float32, float64

Pair = namedtuple("Pair", "a b")


class Axis(enum.IntEnum):
    ROWS = 0
    COLUMNS = 1


@primitive
def tagged(x: Spec, *, tag: Any, other: Any = None) -> Spec:
    """The operand, with metadata of any kind."""
    return x


def test_values_that_are_equal_but_not_alike_are_different_ops() -> None:
    values = [1, True, 1.0, 1 + 0j, "1", (1,), (True,), (1.0,), ((1,),), Pair(1, 2), Pair(True, 2), (1, 2),
              frozenset({1}), frozenset({True}), 0.0, -0.0, 0, False, None, (), complex(0, -0.0), 0j]  # fmt: skip
    ops = [tagged.op(tag=v) for v in values]
    assert len(set(map(id, ops))) == len(values)
    for op, value in zip(ops, values, strict=True):
        assert tagged.op(tag=value) is op
        assert type(op.params["tag"]) is type(value) and repr(op.params["tag"]) == repr(value)


def test_parameters_of_one_value_are_not_swapped() -> None:
    first, second = tagged.op(tag=1, other=2), tagged.op(other=1, tag=2)
    assert first is not second
    assert tagged.op(other=2, tag=1) is first
    assert list(second.params) == ["tag", "other"] and dict(second.params) == {"tag": 2, "other": 1}
    over = catalog.dot_general.op(contract=((0,), (1,)), batch=((), ()))
    assert catalog.dot_general.op(batch=((0,), (1,)), contract=((), ())) is not over


def test_metadata_are_brought_to_one_form() -> None:
    op = tagged.op(tag=(1, (2, 3)))
    assert tagged.op(tag=[np.int64(1), [np.uint8(2), Axis(1) + 2]]) is op
    assert tagged.op(tag=Axis.COLUMNS) is tagged.op(tag=1)
    assert tagged.op(tag=np.True_) is tagged.op(tag=True)
    assert tagged.op(tag=np.float64(0.5)) is tagged.op(tag=0.5)
    assert tagged.op(tag=float("nan")) is tagged.op(tag=np.float64("nan"))
    assert tagged.op(tag=float("nan")) is not tagged.op(tag=-float("nan"))  # copysign can tell
    assert tagged.op(tag=1, other=None) is tagged.op(tag=1)
    assert tagged.op(tag=dim("n") + 1) is tagged.op(tag=1 + dim("n"))


def test_an_enum_first_does_not_spoil_the_op_for_integers() -> None:
    x = tensor([[1.0, 2.0]])
    assert catalog.reverse(x, axes=(Axis.COLUMNS,)).tolist() == [[2.0, 1.0]]
    assert catalog.reverse(x, axes=(1,)).tolist() == [[2.0, 1.0]]


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: tagged.op(), r"tagged needs the keyword argument tag; it takes tagged\(x, \*, tag, other\)"),
        (lambda: tagged.op(tag=1, axis=2), "tagged has no argument axis; it takes"),
        (lambda: tagged.op(tag=1, othr=2), "tagged has no argument othr; it takes"),
        (lambda: tagged.op(tga=1, othr=2), "tagged has no argument tga, othr; it takes"),
        (lambda: tagged.op(tag={1}), r"tagged metadata must be hashable, got \{'tag': \{1\}, 'other': None\}"),
        (lambda: tagged.op(tag=np.ones(2)), "tagged metadata must be hashable"),
        (lambda: catalog.neg(tensor(1.0), axis=1), r"neg has no argument axis; it takes neg\(x\)"),
        (lambda: catalog.add(1.0, y=2.0), r"add takes operands by position only, not y by name; it takes add\(x, y\)"),
        (lambda: catalog.neg(), r"neg takes 1 array operand\(s\) \(x\), got 0"),
        (lambda: catalog.neg(tensor(1.0), tensor(1.0)), r"neg takes 1 array operand\(s\) \(x\), got 2"),
        (lambda: catalog.add(1, 2, 3), r"add takes 2 array operand\(s\) \(x, y\), got 3"),
        (lambda: catalog.select(tensor(True), 1), r"select takes 3 array operand\(s\) \(pred, x, y\), got 2"),
        (lambda: catalog.reverse(axes=()), r"reverse takes 1 array operand\(s\) \(x\), got 0"),
        (lambda: catalog.add.infer(Spec((), float64)), "add takes 2 array operand"),
        (lambda: primitive(domain="reel")(lambda x: x), "there is no domain 'reel'; use one of any, number,"),
    ],
)  # fmt: skip
def test_wrong_calls(call: Any, text: str) -> None:
    with pytest.raises(ArgumentError, match=text):
        call()


def test_a_primitive_is_the_same_called_or_as_decorator() -> None:
    def halved(x: Spec) -> Spec:
        return x

    kind: Any = {"elementwise": True, "domain": "floating", "family": "tests.halved.v1", "extension": "halves"}
    for made in (primitive(halved, **kind), primitive(**kind)(halved)):
        assert {name: getattr(made, name) for name in kind} == kind
    with pytest.raises(TypeError, match="elementwize"):
        primitive(halved, elementwize=True)  # type: ignore[call-overload]


def test_a_missing_operand_is_noticed_after_a_good_call() -> None:
    """The plans of two equal operands are not those of one."""
    x = tensor([1.0, 2.0])
    assert catalog.add(x, x).tolist() == [2.0, 4.0]
    with pytest.raises(ArgumentError, match=r"add takes 2 array operand\(s\) \(x, y\), got 1"):
        catalog.add(x)
    assert catalog.concatenate(x, axis=0).tolist() == [1.0, 2.0]
    assert catalog.concatenate(x, x, axis=0).tolist() == [1.0, 2.0] * 2
    assert catalog.concatenate(x, x, x, axis=0).tolist() == [1.0, 2.0] * 3
    assert catalog.concatenate(x, axis=0).tolist() == [1.0, 2.0]


def test_laws_of_elementwise_operands() -> None:
    a, b = Spec((2, 3), float64), Spec((3,), float64)
    with pytest.raises(ShapeError, match=r"add is element-wise and needs operands of one shape, got float64\[2, 3\]"):
        catalog.add.infer(a, b)
    with pytest.raises(DTypeError, match=r"add needs operands of one dtype, got float64\[2, 3\], float32\[2, 3\];"):
        catalog.add.infer(a, a.with_(dtype=float32))
    with pytest.raises(DTypeError, match="floor is not defined for complex128; it takes booleans, integers or real"):
        catalog.floor.infer(a.with_(dtype=np.dtype("complex128")))


def test_inference_gives_results_the_place_of_the_operands() -> None:
    pinned = Place(MemorySpace("host"), ComputeDevice("cpu:1"))
    a = Spec((2, 2), float64)
    b = a.with_(place=pinned)
    for specs in ((a, b), (b, a)):
        assert catalog.add.infer(*specs).place is pinned
        out = catalog.dot_general.infer(*specs, contract=((1,), (0,)), batch=((), ()))
        assert out.place is pinned
    with pytest.raises(
        PlacementError, match=r"add has operands in several memory spaces:\n  operand 0: float64\[2, 2\] in host"
    ):
        catalog.add.infer(a, a.with_(place=Place(MemorySpace("cuda:0"))))


class Spy:
    """A value of its own level that says what it was asked."""

    def __init__(self, level: int) -> None:
        self.level, self.spec = level, Spec((), float64)

    def _bind(self, op: Op, args: Any) -> Any:
        return (self, op, tuple(args))


def test_the_highest_level_interprets() -> None:
    low, high, x = Spy(next_level()), Spy(next_level()), tensor(1.0)
    for args in ((low, high), (high, low), (x, high), (high, 2.0), (2, high), (np.ones(2), high)):
        who, op, seen = catalog.add(*args)
        assert who is high and op is catalog.add.op() and len(seen) == 2
    assert catalog.add(low, x)[0] is low
    assert catalog.neg(high)[0] is high
    assert catalog.select(True, low, high)[0] is high
    adopted = catalog.add(np.arange(2), low)[2][0]
    assert adopted.__class__ is Tensor and adopted.tolist() == [0, 1]


def test_levels_never_repeat_across_threads() -> None:
    found: list[int] = []
    workers = [threading.Thread(target=lambda: found.extend(next_level() for _ in range(1000))) for _ in range(4)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    assert len(set(found)) == 4000 and min(found) > 0


def test_arrays_and_numbers_are_operands() -> None:
    a = np.arange(3.0)
    for args in ((a, a), (a, 1), (1.0, a), (tensor(a), a), (a, np.float32(1)), (np.float64(1), tensor(a))):
        out = catalog.add(*args)
        assert out.__class__ is Tensor
        raws: list[Any] = [v.numpy() if isinstance(v, Tensor) else v for v in args]
        np.testing.assert_array_equal(out.numpy(), np.add(*raws))
    assert catalog.add(1, 2).spec is Spec((), np.dtype("int64"))
    assert (
        catalog.add(1, 2.5).item() == 3.5 and catalog.add(True, 1).item() == 2 and catalog.add(1, 2j).item() == 1 + 2j
    )
    assert catalog.select(True, 1, 2.0).item() == 1.0
    assert catalog.reshape(3, shape=(1, 1)).tolist() == [[3]]


@pytest.mark.parametrize("thing", ["1", None, [1.0], {}, object(), SimpleNamespace(level=99)])
@pytest.mark.parametrize("position", [0, 1])
def test_other_things_are_not_operands(thing: Any, position: int) -> None:
    args = [tensor(1.0), tensor(1.0)]
    args[position] = thing
    name = class_of(thing)
    text = f"add: operand {position} is a {name}, neither a tensor, a NumPy array nor a number; make"
    with pytest.raises(ArgumentError, match=text):
        catalog.add(*args)
    with pytest.raises(ArgumentError, match=f"neg: operand 0 is a {name}"):
        catalog.neg(thing)


def test_operators_leave_other_things_to_python() -> None:
    x = tensor([1.0])
    for thing in ("1", None, object()):
        with pytest.raises(TypeError, match="unsupported operand"):
            x + thing
        with pytest.raises(TypeError, match="unsupported operand"):
            thing - x
        assert [x == thing, x != thing] == [False, True]


def test_bare_primitives_have_one_op() -> None:
    assert catalog.add.op() is catalog.add.op() is catalog.add.bare
    assert catalog.reverse.bare is None
    assert repr(catalog.add.op()) == "add" and repr(catalog.reverse.op(axes=(0,))) == "reverse[axes=(0,)]"
    assert repr(catalog.slice_) == "<primitive slice(x, *, start, limit, stride)>"
    assert catalog.concatenate.signature == "concatenate(*xs, *, axis)"
    assert list(catalog.add.live_ops()) == [catalog.add.op()]


def test_ops_are_immutable_where_it_matters() -> None:
    op = catalog.reverse.op(axes=(0,))
    with pytest.raises(TypeError):
        op.params["axes"] = (1,)  # type: ignore[index]


CATALOG = sorted((p for p in vars(catalog).values() if isinstance(p, Primitive)), key=lambda p: p.name)


@pytest.mark.parametrize("p", CATALOG, ids=lambda p: p.name)
def test_primitives_pickle_and_copy_by_name(p: Primitive) -> None:
    assert pickle.loads(pickle.dumps(p)) is p
    assert copy.copy(p) is p and copy.deepcopy([p])[0] is p
    assert p in primitives()
    assert p.__doc__


@pytest.mark.parametrize(
    "op",
    [
        catalog.add.op(),
        catalog.slice_.op(start=(0, 1), limit=(dim("n"), 2), stride=(1, 1)),
        catalog.iota.op(shape=(2,), dtype=np.dtype("float32"), axis=0, place=HOST),
        catalog.transfer.op(place=Place(MemorySpace("cuda:1"))),
    ],
    ids=repr,
)
def test_ops_pickle_and_copy_to_themselves(op: Op) -> None:
    assert pickle.loads(pickle.dumps(op)) is op
    assert copy.copy(op) is op and copy.deepcopy([op])[0] is op


def test_local_primitives_refuse_to_be_pickled() -> None:
    @primitive
    def local(x: Spec) -> Spec:
        """Nowhere to be found again."""
        return x

    with pytest.raises(pickle.PicklingError, match="it is not local of module .*; define the primitive at the top of"):
        pickle.dumps(local)


def test_ops_live_while_they_are_used_or_recent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(primitives_module, "LIVE_OPS", 4)
    held = tagged.op(tag="held")
    for i in range(20):
        tagged.op(tag=("short lived", i))
    gc.collect()
    assert len(tagged._alive) <= 4
    tags = [op.params["tag"] for op in tagged.live_ops()]
    assert "held" in tags and ("short lived", 0) not in tags and ("short lived", 19) in tags
    assert tagged.op(tag="held") is held


def test_threads_that_race_for_one_op_get_one_object() -> None:
    rows: list[list[Op]] = [[] for _ in range(8)]
    barrier = threading.Barrier(8)

    def make(row: list[Op]) -> None:
        barrier.wait()
        row.extend(tagged.op(tag=("race", i)) for i in range(200))

    workers = [threading.Thread(target=make, args=(row,)) for row in rows]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    for same in zip(*rows, strict=True):
        assert len(set(map(id, same))) == 1


def test_ops_are_listed_while_threads_make_others() -> None:
    done = threading.Event()

    def make() -> None:
        i = 0
        while not done.is_set():
            tagged.op(tag=("made meanwhile", i))
            i += 1

    workers = [threading.Thread(target=make) for _ in range(2)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for w in workers:
            w.start()
        held = tagged.op(tag="held")
        for _ in range(300):
            assert held in list(tagged.live_ops())
    finally:
        done.set()
        sys.setswitchinterval(interval)
        for w in workers:
            w.join()
