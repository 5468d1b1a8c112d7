"""The namespace has every name of the Array API standard 2025.12, with its parameters."""

import inspect
import math
from operator import attrgetter
from typing import Any

import numpy as np
import pytest

import tenferro_runtime as tr
from array_api_table import ATTRIBUTES, CONSTANTS, DTYPES, FUNCTIONS, METHODS, signatures
from tenferro_ad import variable
from tenferro_runtime import _namespace
from tenferro_tensor import Array, functions
from tenferro_tensor_core import ArgumentError, TenferroError

TABLE = signatures(FUNCTIONS)
OF_ARRAYS = signatures(METHODS)
P = inspect.Parameter


def admits(found: inspect.Signature, wanted: inspect.Signature) -> None:
    """Every call that the standard allows is allowed, with its defaults; more may be (an axis by position, say)."""
    have, order = found.parameters, list(found.parameters.values())
    for i, p in enumerate(wanted.parameters.values()):
        if p.kind is P.POSITIONAL_ONLY:
            assert order[i].kind in (P.POSITIONAL_ONLY, P.POSITIONAL_OR_KEYWORD)
            # NumPy's name of it may be passed.
            assert p.name in ("self", order[i].name) or (p.name, order[i].name) == ("repetitions", "reps")
        elif p.kind is P.VAR_POSITIONAL:
            assert (order[i].name, order[i].kind) == (p.name, p.kind)
        elif p.kind is P.POSITIONAL_OR_KEYWORD:
            assert (order[i].name, order[i].kind) == (p.name, p.kind)
        else:
            assert have[p.name].kind in (P.KEYWORD_ONLY, P.POSITIONAL_OR_KEYWORD)
        at = order[i] if p.kind is P.POSITIONAL_ONLY else have[p.name]
        assert p.default is P.empty or at.default == p.default, f"{p.name} has the default {at.default!r}"
    extra = [p for p in order[len(wanted.parameters) :] if p.name not in wanted.parameters]
    assert all(p.default is not P.empty or p.kind in (P.VAR_KEYWORD, P.VAR_POSITIONAL) for p in extra)


@pytest.mark.parametrize("name", sorted(TABLE))
def test_function(name):
    admits(inspect.signature(attrgetter(name)(tr)), TABLE[name])


@pytest.mark.parametrize("name", sorted(OF_ARRAYS))
def test_method(name):
    for x in (tr.asarray(0.0), variable(tr.asarray(0.0))):
        assert callable(getattr(x, name))
    method = getattr(Array, name)
    try:
        found = inspect.signature(method)
    except ValueError:  # written in C, without a signature
        return
    if not [p for p in found.parameters.values() if p.kind is P.VAR_POSITIONAL]:
        admits(found, OF_ARRAYS[name])


def test_attributes():
    for x in (tr.ones((2, 3)), variable(tr.ones((2, 3)))):
        assert [n for n in ATTRIBUTES if not hasattr(x, n)] == []
        assert (x.ndim, x.shape, x.size, x.T.shape, x.mT.shape) == (2, (2, 3), 6, (3, 2), (3, 2))


def test_tables_are_whole():
    assert (len(TABLE), len(OF_ARRAYS)) == (136 + 14 + 25, 47)
    assert str(TABLE["sum"]) == "(x, /, *, axis=None, dtype=None, keepdims=False)"
    assert set(dir(object)) & set(OF_ARRAYS) == {"__eq__", "__ge__", "__gt__", "__le__", "__lt__", "__ne__"}


def test_constants_and_dtypes():
    assert [getattr(tr, n) for n in CONSTANTS if n != "nan"] == [math.e, math.inf, None, math.pi]
    assert math.isnan(tr.nan)
    assert [getattr(tr, n) for n in DTYPES] == [np.dtype(n) for n in DTYPES]
    assert tr.__array_api_version__ == "2025.12"


def test_namespace_of_a_value():
    x = tr.asarray([1.0])
    assert x.__array_namespace__() is tr
    assert x.__array_namespace__(api_version="2022.12") is tr
    for unknown in ("2030.12", "2022.11", "latest"):
        with pytest.raises(ArgumentError, match=rf"version '{unknown}' is not supported; this is version 2025.12"):
            x.__array_namespace__(api_version=unknown)


SIGNED, UNSIGNED = ("int8 int16 int32 int64", "uint8 uint16 uint32 uint64")
KINDS_OF_DTYPES: dict[Any, str] = {
    "bool": "bool", "signed integer": SIGNED, "unsigned integer": UNSIGNED, "integral": f"{SIGNED} {UNSIGNED}",
    "real floating": "float32 float64", "complex floating": "complex64 complex128",
    "numeric": f"{SIGNED} {UNSIGNED} float32 float64 complex64 complex128", (): "",
    ("bool", "unsigned integer"): f"bool {UNSIGNED}",
}  # fmt: skip


def test_info():
    info = tr.__array_namespace_info__()
    assert info.capabilities()["boolean indexing"] is True
    assert str(info.default_device()) == "cpu:0" and info.default_device() in info.devices()
    assert isinstance(info.devices(), tuple) and [tr.zeros(1, device=d).device for d in info.devices()[:1]]
    assert info.capabilities().keys() == {"boolean indexing", "data-dependent shapes", "max dimensions"}
    assert info.capabilities()["max dimensions"] == 64 and info.capabilities()["data-dependent shapes"] is True
    for device in (None, info.default_device()):
        assert info.default_dtypes(device=device) == {
            "real floating": tr.float64, "complex floating": tr.complex128, "integral": tr.int64, "indexing": tr.int64
        }  # fmt: skip
        for kind, names in KINDS_OF_DTYPES.items():
            assert list(info.dtypes(device=device, kind=kind)) == [n for n in DTYPES if n in names.split()]
        assert len(info.dtypes(device=device)) == len(DTYPES)
    with pytest.raises(ArgumentError, match="does not know the kind 'whole'"):
        info.dtypes(kind="whole")
    assert sorted(info.dtypes(kind=("bool", "complex floating"))) == ["bool", "complex128", "complex64"]
    assert set(info.dtypes()) == set(DTYPES)


def test_lists_for_type_checkers_are_the_modules_own():
    from importlib import import_module
    from pkgutil import iter_modules

    inner = [m.name for m in iter_modules(functions.__path__) if not m.name.startswith("_") and m.name != "updating"]
    own = [n for m in inner for n in import_module(f"tenferro_tensor.functions.{m}").__all__]
    at_once = functions.__all__  # type: ignore[attr-defined]  # not for type checkers
    assert sorted(own) == sorted([*at_once, *functions.DEFERRED])
    assert functions.DEFERRED.isdisjoint(at_once)
    for module, names in functions.LATER.items():
        assert names.split() == sorted(import_module(f"tenferro_tensor.functions.{module}").__all__)
    assert set(own) <= set(tr.__all__)
    assert [n for n in tr.__all__ if not hasattr(tr, n)] == []


def test_missing_family_says_what_to_install(monkeypatch):
    monkeypatch.setattr(_namespace, "_module_of", lambda name: None)
    monkeypatch.setattr(_namespace, "_families", {})
    for name in ("fft", "linalg"):  # a family that was found may be an attribute
        monkeypatch.delitem(vars(tr), name, raising=False)
    with pytest.raises(
        TenferroError, match=r"the linalg functions .* not installed here; pip install tenferro-linalg$"
    ):
        tr.linalg
    assert not hasattr(tr, "fft")
    monkeypatch.undo()
    assert tr.fft.__name__ == "tenferro_fft" and tr.linalg.svd
    with pytest.raises(AttributeError, match="module 'tenferro_runtime' has no attribute 'nonsense'"):
        tr.nonsense  # type: ignore[attr-defined]
