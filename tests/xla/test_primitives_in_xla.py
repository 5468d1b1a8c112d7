"""The page of primitives that XLA runs is that of the registry, and its reasons are those of the errors."""

from typing import Any

import numpy as np
import pytest

import tenferro_linalg as tl
import tenferro_runtime as tr
from tenferro_ad import checkpoint, custom_rule, grad
from tenferro_tensor_core import UnsupportedError
from tenferro_xla import XlaExecutor, lower_to_stablehlo
from xla_table import NOTES, PAGE, REASONS, how, page, primitives


def test_the_page_is_current():
    assert page() == PAGE.read_text(encoding="utf-8"), "write it anew: python3 dev run tests/support/xla_table.py"


def test_no_reason_is_left_over():
    ways = {name: how(name, p) for table in primitives().values() for name, p in table.items()}
    assert not [name for name in REASONS if ways[name]]
    assert not [name for name in NOTES if not ways[name]]


REFUSED = {
    "define_size": (lambda x: tr.sum(tr.compress(x, x > 0)), "depends on data"),
    "pure_callback": (lambda x: tr.pure_callback(np.sin, x, x), "pure_callback .* has no StableHLO"),
    "special": (lambda x: tr.special.jv(0.5, x), r"jv \(.*test_primitives_in_xla.py:\d+\) has no"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_lowered_is_named(name):
    f, text = REFUSED[name]
    with pytest.raises(UnsupportedError, match=text):
        lower_to_stablehlo(tr.trace(f, np.ones(3)))


def test_what_one_platform_lacks_is_named():
    program = tr.trace(lambda x: tl.schur(x).T, np.eye(3))
    with pytest.raises(UnsupportedError, match="schur has no StableHLO lowering for platform 'cuda'") as raised:
        lower_to_stablehlo(program, "cuda")
    assert "in the lowering of schur (" in raised.value.__notes__[0]
    assert "lapack" in lower_to_stablehlo(program, "cpu").text


def test_binary_search():
    vector = np.array([-np.inf, 0.0, 1.0, 1.0, 2.0, np.nan, np.nan])
    values = np.array([[np.nan, 1.0, -np.inf], [0.5, 3.0, np.inf]])
    kinds = [(vector.astype(d), values.astype(d)) for d in ("float32", "float64")]
    kinds += [(np.array([1, 1, 2], d), np.array([0, 1, 2, 200], d)) for d in ("int32", "uint8")]
    kinds += [(np.array([False, True]), np.array([True, False])), (vector[:0], values), (vector, values[:0])]
    sides: list[tuple[Any, Any]] = [(x, side) for x in kinds for side in ("left", "right")]

    def f(*xs):
        return tuple([tr.searchsorted(a, b, side=s) for a, b, (_, s) in zip(xs[::2], xs[1::2], sides, strict=True)])

    flat = [x for pair, _ in sides for x in pair]
    found = XlaExecutor().run(tr.trace(f, *flat), *flat)
    for got, ((a, b), side) in zip(found, sides, strict=True):
        np.testing.assert_array_equal(np.asarray(got), np.searchsorted(a, b, side))


@custom_rule(jvp=lambda primals, tangents, outs: (tangents[0] * 3.0,))
def steep(x):
    return tr.tanh(x) * 0.5


@custom_rule(jvp=lambda primals, tangents, outs: ({"sine": tangents[0]["angle"] * 2.0},))
def of_trees(angles):
    return {"sine": tr.sin(angles["angle"])}


@custom_rule(infer=lambda x: x, jvp=lambda primals, tangents, outs: tangents)
def of_elements(x):
    return np.sin(np.asarray(x))


def test_functions_with_rules_of_their_own():
    f = lambda x: steep(x) + of_trees({"angle": x})["sine"]
    slope = grad(lambda x: tr.sum(f(x) ** 2))
    x = tr.reshape(tr.linspace(0.1, 1.0, 6), (2, 3))
    program = tr.trace(lambda x: (f(x), slope(x), tr.vmap(f)(x), tr.vmap(slope)(x)), x)
    for got, want in zip(XlaExecutor().run(program, x), program.run(x), strict=True):
        np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=1e-14)
    with pytest.raises(UnsupportedError, match="of_elements has no StableHLO lowering because it cannot be traced"):
        lower_to_stablehlo(tr.trace(of_elements, x))


def test_compiled_and_checkpointed_functions():
    inner = tr.compile(lambda x: tr.sin(x) * x)
    f = checkpoint(lambda x: inner(x[1:]) + tr.exp(inner(x))[1:])
    x = tr.linspace(0.1, 1.0, 5)
    program = tr.trace(lambda x: (f(x), grad(lambda x: tr.sum(f(x) ** 2))(x)), x)
    for got, want in zip(XlaExecutor().run(program, x), program.run(x), strict=True):
        np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=1e-13)
    assert "optimization_barrier" in lower_to_stablehlo(program).text
