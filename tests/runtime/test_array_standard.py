"""The namespace has every name of the Array API standard 2025.12, with its parameters."""

import inspect
import math

import numpy as np
import pytest

import tenferro_runtime as tr
from array_api_table import ARRAY_MEMBERS, CONSTANTS, DTYPES, signatures
from tenferro_runtime import _namespace
from tenferro_tensor import Array, functions
from tenferro_tensor_core import ArgumentError, TenferroError

TABLE = signatures()
P = inspect.Parameter


@pytest.mark.parametrize("name", sorted(TABLE))
def test_function_and_parameters(name):
    """Every way to call it that the standard allows is allowed; more may be (an axis by position, say)."""
    found = inspect.signature(getattr(tr, name)).parameters
    first, either, keyword = TABLE[name]
    order = list(found.values())
    for i, wanted in enumerate(first):
        assert order[i].name == wanted
        assert order[i].kind in (P.POSITIONAL_ONLY, P.POSITIONAL_OR_KEYWORD)
    for i, wanted in enumerate(either, len(first)):
        star = wanted.startswith("*")
        assert order[i].name == wanted.lstrip("*")
        assert order[i].kind == (P.VAR_POSITIONAL if star else P.POSITIONAL_OR_KEYWORD)
    for wanted in keyword:
        assert found[wanted].kind in (P.KEYWORD_ONLY, P.POSITIONAL_OR_KEYWORD)
        assert found[wanted].default is not P.empty
    known = {w.lstrip("*") for w in (*first, *either, *keyword)}
    assert all(p.default is not P.empty for p in order if p.name not in known), "an extra parameter is required"


def test_table_is_whole():
    assert len(TABLE) == 136
    assert TABLE["sum"] == (["x"], [], ["axis", "dtype", "keepdims"])


@pytest.mark.parametrize("name", ARRAY_MEMBERS)
def test_array_member(name):
    assert hasattr(Array, name) and hasattr(type(tr.asarray(0.0)), name)


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
        with pytest.raises(ArgumentError, match=rf"version '{unknown}' was asked for; this is version 2025.12"):
            x.__array_namespace__(api_version=unknown)


def test_info():
    info = tr.__array_namespace_info__()
    assert info.capabilities()["boolean indexing"] is True
    assert str(info.default_device()) == "cpu:0" and info.default_device() in info.devices()
    assert info.default_dtypes()["real floating"] == tr.float64
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
    monkeypatch.setattr(_namespace, "installed", lambda group: {})
    with pytest.raises(
        TenferroError, match=r"the linalg functions .* not installed here; pip install tenferro-linalg$"
    ):
        tr.linalg
    assert not hasattr(tr, "fft")
    monkeypatch.undo()
    assert tr.fft.__name__ == "tenferro_fft" and tr.linalg.svd
    with pytest.raises(AttributeError, match="module 'tenferro_runtime' has no attribute 'nonsense'"):
        tr.nonsense
