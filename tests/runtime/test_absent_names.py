"""A name that is not there is an error that says the nearest one, or what to write instead."""

import pickle
import re

import pytest

import tenferro_ad
import tenferro_runtime as tr
from names_table import PAGE, page
from tenferro_ad import variable
from tenferro_runtime import _absent, _namespace
from tenferro_tensor import Array, _absent_attributes
from tenferro_tensor_core.absent import AbsentNameError, nearest


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("meen", "; did you mean 'mean'?"),
        ("argSort", "; did you mean 'argsort'?"),
        ("nanmedain", "; did you mean 'nanmedian'?"),
        ("jit", "; write tr.compile"),
        ("jacobian", "; write tr.jacrev, or tr.jacfwd for few inputs"),
        ("clamp", "; write tr.clip"),
        ("svd", "; write tr.linalg.svd"),
        ("rfft", "; write tr.fft.rfft"),
        ("xlogy", "; write tr.special.xlogy"),
        ("normal", "; write tr.random.normal"),
        ("shares_memory", "; use nothing: values never share memory visibly"),
        ("qqqqq", ""),
    ],
)
def test_of_the_namespace(name, text):
    with pytest.raises(AttributeError) as caught:
        getattr(tr, name)
    assert str(caught.value) == f"module 'tenferro_runtime' has no attribute {name!r}{text}"
    again = pickle.loads(pickle.dumps(caught.value))
    assert isinstance(again, AbsentNameError) and str(again) == str(caught.value)
    assert not hasattr(tr, name)


def test_of_families():
    with pytest.raises(
        AttributeError, match=r"module 'tenferro_linalg' has no attribute 'eigvalhs'; did you mean 'eig"
    ):
        tr.linalg.eigvalhs  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match=r"module 'tenferro_fft' has no attribute 'fftt'; did you mean 'fft'"):
        tr.fft.fftt  # type: ignore[attr-defined]


def test_of_values():
    for x in (tr.zeros(3), variable(tr.zeros(3))):
        with pytest.raises(AttributeError, match=r"has no attribute 'unsqueeze'; write tr.expand_dims\(x, axis=axis\)"):
            x.unsqueeze  # type: ignore[attr-defined]
        with pytest.raises(AttributeError, match="has no attribute 'strides'; use nothing: layouts of memory"):
            x.strides  # type: ignore[attr-defined]
        assert [n for n in _absent_attributes.INSTEAD if hasattr(x, n) or n in dir(x)] == []
        assert "mean" in dir(x)
    assert not [n for n in _absent_attributes.INSTEAD if hasattr(Array, n)]


def test_no_advice_is_about_a_name_that_exists():
    assert [n for n in _absent.INSTEAD if hasattr(tr, n)] == []


def test_advice_names_what_exists():
    for text in [*_absent.INSTEAD.values(), *_absent_attributes.INSTEAD.values()]:
        for part, name in re.findall(r"\btr\.(linalg\.)?(\w+)", text):
            assert hasattr(tr.linalg if part else tr, name), text
        for name in re.findall(r"\btenferro_ad\.(\w+)", text):
            assert hasattr(tenferro_ad, name), text


def test_the_advice_is_found_when_it_is_shown():
    asked = []
    error = AbsentNameError("no x", lambda: asked.append(1) or "write y", name="x")
    assert asked == [] and error.payload == {"name": "x"}
    assert str(error) == "no x; write y" and asked == [1]
    assert nearest("zzz", ["mean"]) == ""


def test_the_page_about_names_is_up_to_date():
    assert PAGE.read_text(encoding="utf-8") == page(), "write it anew: python3 dev run tests/support/names_table.py"


def test_derivatives_are_functions_of_the_namespace():
    for name in (name for name, home in _namespace.FORWARDED.items() if home == "ad"):
        assert getattr(tr, name) is getattr(tenferro_ad, name)
        assert name in dir(tr) and name in vars(tr)  # found once
    assert tr.value_and_grad(lambda x: tr.sum(x * x))(tr.asarray([1.0, 2.0]))[1].tolist() == [2.0, 4.0]


def test_derivatives_that_are_not_installed(monkeypatch):
    monkeypatch.setattr(_namespace, "_module_of", lambda name: None)
    monkeypatch.delattr(tr, "grad", raising=False)
    with pytest.raises(tr.MissingFamilyError, match="a distribution of their own.*; pip install tenferro-ad"):
        tr.grad
    assert not hasattr(tr, "grad") and "grad" not in dir(tr) and "sum" in dir(tr)


def test_functions_of_families_that_numpy_has_beside_the_others():
    assert tr.einsum("ij->i", tr.ones((2, 3))).tolist() == [3.0, 3.0]
    assert tr.cross(tr.asarray([1.0, 0, 0]), tr.asarray([0.0, 1, 0])).tolist() == [0.0, 0.0, 1.0]
