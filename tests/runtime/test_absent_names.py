"""A name that is not there is an error that says the nearest one, or what to write instead."""

import pickle
import re

import pytest

import tenferro_ad
import tenferro_einsum
import tenferro_linalg
import tenferro_runtime as tr
from names_table import PAGE, page
from tenferro_ad import variable
from tenferro_runtime import _absent, _namespace
from tenferro_tensor import Array, _absent_attributes
from tenferro_tensor_core.absent import AbsentNameError, nearest

PRESENT = {"backward", "flags", "grad", "strides", "zero_grad"}
ABSENT = [name for name in _absent_attributes.INSTEAD if name not in PRESENT]
"""Attributes that no kind of value has; variables or concrete values have the others."""


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
        ("shares_memory", "; write np.shares_memory(x, y), which takes tensors"),
        ("get_default_dtype", "; use nothing: float64 is the default"),
        ("cuda", '; write tr.compute_device("cuda:0")'),
        ("export", "; write tr.export_library("),
        ("aot_compile", "; write tr.export_library("),
        ("tree_ravel", "; write tr.ravel_tree"),
        ("ravel_pytree", "; write tr.ravel_tree"),
        ("devices", "; write tr.__array_namespace_info__().devices()"),
        ("mesh", "; write tenferro_einsum.run_on(workers), or tenferro_xla.mesh"),
        ("primitive", "; write tenferro_runtime.extension.primitive"),
        ("optimize", "; write scipy.optimize.minimize(f, x0, jac=True) with f = tr.value_and_grad(loss)"),
        ("minimize", "; write scipy.optimize.minimize(f, x0, jac=True)"),
        ("optim", "; write tr.tree_map("),
        ("stats", "; write tr.random for draws"),
        ("debug_nans", "; write tr.find_nan(f, *args)"),
        ("detect_anomaly", "; write tr.find_nan(f, *args)"),
        ("seed", "; write tr.random.key(seed), and pass the key to each draw"),
        ("randn", "; write tr.random.normal(tr.random.key(seed), ...)"),
        ("contract", "; write tr.einsum"),
        ("valueandgrad", "; did you mean 'value_and_grad'?"),
        ("qqqqq", ""),
    ],
)
def test_of_the_namespace(name, text):
    with pytest.raises(AttributeError) as caught:
        getattr(tr, name)
    seen = str(caught.value)
    assert seen.startswith(f"module 'tenferro_runtime' has no attribute {name!r}{text}")
    assert text or seen.endswith(repr(name))
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


@pytest.mark.parametrize(
    ("module", "name", "text"),
    [
        (tr.random, "rand", "write tr.random.uniform(tr.random.key(seed), ...)"),
        (tr.random, "seed", "write tr.random.key(seed), and pass the key to each draw"),
        (tr.random, "PRNGKey", "write tr.random.key(seed)"),
        (tr.random, "normall", "did you mean 'normal'?"),
        (tr.nn, "Dense", "write a dataclass with tr.register_dataclass"),
        (tr.nn, "rellu", "did you mean 'relu'?"),
        (tr.linalg, "truncated_svd", "write tr.linalg.svd_trunc"),
        (tr.linalg, "svd_lowrank", "write tr.linalg.svd_random"),
        (tenferro_einsum, "contract", "write einsum"),
        (tenferro_einsum, "contract_expression", "write plan"),
        (tenferro_einsum, "enisum", "did you mean 'einsum'?"),
        (tenferro_ad, "custom_vjp", "write tr.custom_rule"),
        (tenferro_ad, "custom_jvp", "write tr.custom_rule"),
        (tenferro_ad, "jacobian", "write tr.jacrev"),
    ],
)
def test_of_other_modules(module, name, text):
    with pytest.raises(AbsentNameError) as caught:
        getattr(module, name)
    assert str(caught.value).startswith(f"module {module.__name__!r} has no attribute {name!r}; {text}")
    assert not hasattr(module, name)


def test_of_values():
    for x in (tr.zeros(3), variable(tr.zeros(3))):
        with pytest.raises(AttributeError, match=r"has no attribute 'unsqueeze'; write tr.expand_dims\(x, axis=axis\)"):
            x.unsqueeze  # type: ignore[attr-defined]
        with pytest.raises(AttributeError, match="has no attribute 'contiguous'; use nothing: layouts of memory"):
            x.contiguous  # type: ignore[attr-defined]
        assert [n for n in ABSENT if hasattr(x, n) or n in dir(x)] == []
        assert "mean" in dir(x)
    assert hasattr(variable(tr.zeros(3)), "backward")
    with pytest.raises(AttributeError, match=r"has no attribute 'backward'; write tr.variable\(x\)"):
        tr.zeros(3).backward()
    assert not [n for n in _absent_attributes.INSTEAD if hasattr(Array, n)]


def test_no_advice_is_about_a_name_that_exists():
    assert [n for n in _absent.INSTEAD if hasattr(tr, n)] == []


def test_advice_names_what_exists():
    parts = [text for part in _absent.PARTS.values() for text in part.values()]
    tables = [_absent.INSTEAD, _absent_attributes.INSTEAD, tenferro_linalg._INSTEAD]
    for text in [*parts, *[text for table in tables for text in table.values()]]:
        for part, name in re.findall(r"\btr\.(?:(linalg|random|nn|special)\.)?(\w+)", text):
            assert hasattr(getattr(tr, part) if part else tr, name), text
        for name in re.findall(r"\btenferro_ad\.(\w+)", text):
            assert hasattr(tenferro_ad, name), text


def test_the_advice_is_found_when_it_is_shown():
    asked = []
    error = AbsentNameError("no x", lambda: asked.append(1) or "write y", name="x")
    assert asked == [] and error.payload == {"name": "x"}
    assert str(error) == "no x; write y" and asked == [1]
    assert nearest("zzz", ["mean"]) == ""


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("sumn", "sum"), ("cumsm", "cumsum"), ("concatnate", "concatenate"), ("reshpae", "reshape"),
        ("expand_dim", "expand_dims"), ("treemap", "tree_map"), ("value_and_gard", "value_and_grad"),
        ("associativescan", "associative_scan"), ("ARGSORT", "argsort"), ("jacobain_rev", ""), ("aot_compile", ""),
        ("export", ""), ("devices", ""), ("primitive", ""), ("tree_ravel", ""), ("optimize", ""), ("stats", ""),
        ("mesh", ""), ("minimize", ""), ("div", ""), ("seed", ""), ("rand", ""), ("detect_anomaly", ""), ("x", ""),
        ("backward", ""), ("layers", ""), ("Module", ""), ("dataset", ""), ("to", ""), ("nnn", ""),
    ],
)  # fmt: skip
def test_only_typing_errors_are_guessed(name, found):
    assert nearest(name, dir(tr)) == (f"did you mean {found!r}?" if found else "")


def test_tensors_are_made_by_functions():
    for f in (lambda: tr.Tensor([1, 2]), tr.Tensor, lambda: tr.Tensor(data=[1], dtype="float32")):
        with pytest.raises(ValueError, match=r"Tensor has no public constructor; use asarray\("):
            f()


def test_a_key_comes_first():
    for f in (tr.random.normal, tr.random.uniform, tr.random.bits):
        with pytest.raises(TypeError, match=rf"{f.__name__} takes a key before all else, got \(3,\); write tr.random"):
            f((3,))


def test_methods_of_compiled_functions_take_arguments_of_the_function(tmp_path):
    f = tr.compile(lambda x: 2 * x)
    for call in (lambda: f.save(tmp_path / "f"), f.explain, f.program, lambda: f.draw(tmp_path / "f.dot")):
        with pytest.raises(TypeError, match=r"argument: 'x'; .*compile\(f\).save\(path, x\)"):
            call()


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
