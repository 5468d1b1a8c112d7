"""`key_of`: equal keys for values that cannot be told apart, and for no others."""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np
import pytest

from tenferro_tensor_core import dim, key_of


class Pair(NamedTuple):
    a: Any
    b: Any


class Color(IntEnum):
    RED = 1


class Angle(float):
    pass


@dataclass(frozen=True)
class Options:
    number: Any
    note: str = field(default="", compare=False)


@dataclass
class Open:
    number: Any


@dataclass(eq=False)
class ByIdentity:
    number: Any


@dataclass(frozen=True)
class ByName:
    name: str
    table: dict[str, int]

    def __hash__(self) -> int:
        return hash(self.name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ByName) and other.name == self.name


NAN = float("nan")
KINDS = [
    0, 1, 0.0, -0.0, 1.0, True, False, None, 0j, complex(-0.0, 0.0), complex(0.0, -0.0), 1 + 0j, NAN, -NAN,
    complex(NAN, 0), np.int8(1), np.int64(1), np.float32(1), np.float64(1), np.float64(-0.0), np.float64(0),
    np.bool_(1),
    np.complex128(1), Angle(1), Angle(0.0), Angle(-0.0), Color.RED, "1", b"1", (), (1,), (True,), (1.0,), ((1,),),
    (float, "0x1.0p+0"), Pair(1, 2), Pair(1.0, 2), (1, 2), frozenset({1}), frozenset({True}), slice(1), slice(1.0),
    slice(1, None, None), slice(True), (None, 1, None), Options(1), Options(True), Options(0.0), Options(-0.0),
    Options(NAN), (Options(1), 1), int, float, np.dtype("float64"), dim("n"), dim("n", min=1), ...,
]  # fmt: skip


def test_no_two_kinds_share_a_key() -> None:
    keys = [key_of(v) for v in KINDS]
    assert len(set(keys)) == len(keys)


MAKERS: list[Callable[[], Any]] = [
    lambda: float("nan"), lambda: np.float32("nan"), lambda: (1, (float("nan"),)), lambda: Options(float("nan")),
    lambda: Pair(-0.0, "x"), lambda: slice(0.5, None),
]  # fmt: skip


def test_a_value_made_again_has_its_key_again() -> None:
    for make in MAKERS:
        assert key_of(make()) == key_of(make()) and hash(key_of(make())) == hash(key_of(make()))


def test_fields_that_take_no_part_in_comparison_take_none_in_the_key() -> None:
    assert key_of(Options(1, "a")) == key_of(Options(1, "b"))


def test_objects_with_an_equality_of_their_own_keep_it() -> None:
    x, y = ByIdentity(1), ByIdentity(1)
    assert key_of(x) == key_of(x) != key_of(y)
    assert key_of(ByName("a", {})) == key_of(ByName("a", {"b": 1})) != key_of(ByName("b", {}))


@pytest.mark.parametrize("value", [[1], {1: 2}, (1, [2]), Open(1), Options([1]), slice([1])])
def test_what_has_no_hash_has_no_key_with_a_hash(value: Any) -> None:
    with pytest.raises(TypeError):
        hash(key_of(value))


def test_many_classes_are_not_kept_for_ever() -> None:
    from tenferro_tensor_core import _key_of

    for n in range(_key_of._MAX_CLASSES + 10):
        key_of(type(f"Kind{n}", (), {})())
    assert len(_key_of._key_functions) <= _key_of._MAX_CLASSES
