"""What people and Python ask of arrays: numbers in text, ``divmod``, ``round``, notebooks, arguments by position."""

import math

import numpy as np
import pytest

import tenferro_runtime as tr
from tenferro_ad import grad, variable
from tenferro_tensor_core import ForeignFunctionError, ShapeError

X = tr.asarray([1.26, -2.5, 7.0])


def test_single_numbers_in_text():
    assert f"{X[0]:.1f} {variable(2.0):8.3f} {tr.asarray(3):03d} {tr.asarray(1 + 2j):.1f}" == (
        "1.3    2.000 003 1.0+2.0j"
    )
    seen = []

    def loss(x):
        seen.append(f"{x.sum():.2f}")
        return x.sum()

    grad(loss)(X)
    assert seen == ["5.76"]
    with pytest.raises(ShapeError, match="formatting needs a tensor of one element"):
        f"{X:.2f}"


@pytest.mark.parametrize("way", [lambda f: f, tr.compile], ids=["eager", "compiled"])
def test_numbers_of_python(way):
    a = np.asarray(X)
    for f, wanted in (
        (lambda x: divmod(x, 2.0), divmod(a, 2.0)),
        (lambda x: divmod(20.0, x), divmod(20.0, a)),
        (lambda x: (round(x), round(x, 1)), (np.round(a), np.round(a, 1))),
        (lambda x: (math.trunc(x), math.floor(x), math.ceil(x)), (np.trunc(a), np.floor(a), np.ceil(a))),
    ):
        for found, right in zip(way(f)(X), wanted, strict=True):
            np.testing.assert_array_equal(np.asarray(found), right)
    np.testing.assert_allclose(np.asarray(grad(lambda x: (divmod(x, 2.0)[1] * x).sum())(X)), [2.52, -1.0, 8.0])


def test_notebooks_show_tables():
    shown = tr.asarray(np.arange(400.0).reshape(20, 20))._repr_html_()
    assert "<b>float64[20, 20]</b> on cpu:0" in shown and shown.count("<tr>") == 13 and "…" in shown
    assert "<td>399</td>" in shown and "<td>200</td>" not in shown and "data:image/png" in shown
    assert "<pre>2.5</pre>" in variable(2.5)._repr_html_()
    seen = []
    tr.compile(lambda x: seen.append(x._repr_html_()) or x)(X)
    assert "no elements while a program is recorded" in seen[0]


def test_arguments_by_position_where_numpy_has_them():
    f4 = np.float32
    assert tr.zeros(2, f4).dtype == tr.ones((2,), f4).dtype == tr.full(2, 1.0, f4).dtype == tr.empty(2, f4).dtype == f4
    assert tr.zeros_like(X, f4).dtype == tr.full_like(X, 1, f4).dtype == tr.asarray([1], f4).dtype == f4
    assert tr.arange(0, 3, 1, f4).dtype == tr.eye(2, 2, 1, f4).dtype == tr.sum(X, 0, f4).dtype == f4
    assert tr.linspace(0, 1, 2, False).tolist() == [0.0, 0.5] and tr.linspace(0, 1).shape == (50,)
    assert tr.tril(tr.ones((2, 2)), -1).tolist() == [[0, 0], [1, 0]] and tr.diff(X, 2).shape == (1,)
    assert tr.searchsorted(tr.asarray([1, 2]), tr.asarray([1]), "right").tolist() == [1]
    assert float(tr.tensordot(X, X, 1)) == float(X @ X) and tr.squeeze(X[None]).shape == X[None].squeeze().shape == (3,)


class Array:
    """Looks like an array of another library."""

    __module__ = "torch"

    def __dlpack__(self):
        raise AssertionError("nobody asked")


@pytest.mark.parametrize("other", [Array(), [1.0, 2.0, 3.0], (1.0, 2.0, 3.0)], ids=["torch", "list", "tuple"])
@pytest.mark.parametrize("x", [X, variable(X)], ids=["concrete", "recorded"])
def test_arrays_of_others_are_refused_with_the_way_out(x, other):
    for f in (lambda: x + other, lambda: other * x, lambda: x @ other, lambda: x == other, lambda: x < other):
        with pytest.raises(ForeignFunctionError, match=r"tr\.asarray\("):
            f()


def test_what_knows_tensors_itself_is_asked():
    class Quantity:
        def __radd__(self, x):
            return "mine"

    assert X + Quantity() == "mine"
    assert (X == None) is False  # noqa: E711
    with pytest.raises(TypeError, match="unsupported operand"):
        X + "text"


def test_the_namespace_shows_its_own_names_only():
    names = dir(tr)
    assert {"sum", "vmap", "show_config", "__version__"} <= {*names}
    assert not {"sys", "Any", "TYPE_CHECKING", "deferred", "ir", "lowering"} & {*names}
    assert all(hasattr(tr, n) for n in tr.__all__)
    assert tr.__version__.count(".") == 2
