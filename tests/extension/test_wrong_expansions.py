"""Whatever is wrong with an expansion is a typed error that names the operation and the line."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import tenferro_runtime as tr
from tenferro_ad import grad
from tenferro_runtime.extension import REGISTRY, Spec, TenferroError, primitive
from tenferro_tensor import catalog
from tenferro_tensor_core import GradientError, MissingRuleError, RegistryError, ShapeError, TracingError

X = np.linspace(0.5, 1.5, 3)


@primitive(family="tests.wrong.v1")
def wrong(x: Spec, *, order: int = 1) -> Spec:
    """Expanded wrongly."""
    return x


@primitive(family="tests.wrong_pair.v1")
def wrong_pair(x: Spec) -> tuple[Spec, Spec]:
    """Expanded wrongly, too."""
    return x, x


@contextmanager
def expanded(op: Any, f: Callable[..., Any]) -> Iterator[None]:
    with REGISTRY.expansion(op, f):
        yield


def branching(x: Any, order: int) -> Any:
    return x if x[0] > 0 else -x  # the line that asks


def raising(x: Any, order: int) -> Any:
    return x.no_such_attribute  # the line that fails


def misshapen(x: Any, order: int) -> Any:
    return x + tr.ones(7)


def elsewhere(x: Any, order: int) -> Any:
    return np.asarray(x) * 2


WRONG: dict[str, tuple[Callable[..., Any], type[TenferroError], str]] = {
    "dtype": (
        lambda x, order: x.astype("float32"),
        RegistryError,
        r"the expansion of wrong, <lambda> \(.*test_wrong_expansions.py:\d+\), returned float32\[\w+\], but the "
        r"inference of wrong says float64\[\w+\]; correct the expansion, or the inference function",
    ),
    "shape": (lambda x, order: x[1:], RegistryError, r"returned float64\[.*\], but the inference of wrong says"),
    "rank": (lambda x, order: tr.sum(x), RegistryError, r"returned float64\[\], but the inference of wrong says"),
    "number": (lambda x, order: 1.5, RegistryError, r"returned float 1.5, but the inference of wrong says"),
    "nothing": (lambda x, order: None, RegistryError, r"returned NoneType None, but the inference of wrong says"),
    "tuple": (lambda x, order: (x,), RegistryError, r"returned tuple \(.*, but the inference of wrong says"),
    "branch": (branching, TracingError, r"the expansion of wrong, branching \(.*:\d+\), cannot be traced: .*:{ask}"),
    "NumPy": (elsewhere, TracingError, r"the expansion of wrong, elsewhere \(.*:\d+\), cannot be traced"),
    "raises": (raising, RegistryError, r"raised AttributeError at .*test_wrong_expansions.py:{raise}: .*correct it"),
    "itself": (
        lambda x, order: wrong(x, order=order) + 1,
        RegistryError,
        r"uses itself without end: wrong\[order=1\] -> wrong\[order=1\]; write it with other operations",
    ),
    "endless": (lambda x, order: wrong(x, order=order + 1), RegistryError, "uses itself without end: .*order=3"),
    "in a loop": (
        lambda x, order: tr.scan(lambda c, r: (wrong(c, order=order), r), x, x)[0],
        RegistryError,
        "uses itself without end",
    ),
    "late size": (
        lambda x, order: tr.sum(tr.compress(x, x > 0)) + x,
        RegistryError,
        "has sizes that depend on data",
    ),
}

WAYS: dict[str, Callable[[], Any]] = {
    "eager": lambda: wrong(X),
    "compiled": lambda: tr.compile(lambda x: wrong(x) + 1)(X),
    "open sizes": lambda: tr.compile(lambda x: wrong(x) * x)(X),
    "gradient": lambda: tr.compile(grad(lambda x: tr.sum(wrong(x))))(X),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_expansion_is_refused(case: str, way: str) -> None:
    f, kind, text = WRONG[case]
    text = text.replace("{ask}", str(branching.__code__.co_firstlineno + 1))
    text = text.replace("{raise}", str(raising.__code__.co_firstlineno + 1))
    with expanded(wrong, f), pytest.raises(kind, match=text):
        WAYS[way]()


def test_errors_of_operations_keep_their_class_and_name_the_expansion() -> None:
    with expanded(wrong, misshapen), pytest.raises(ShapeError) as caught:
        wrong(X)
    (note,) = [n for n in caught.value.__notes__ if "expansion" in n]
    assert note.startswith("in the expansion of wrong, misshapen (")
    assert note.endswith(f":{misshapen.__code__.co_firstlineno + 1}")


def test_the_number_of_results_is_checked() -> None:
    for f in (lambda x: x, lambda x: (x,), lambda x: (x, x, x)):
        with expanded(wrong_pair, f), pytest.raises(RegistryError, match=r"says float64\[3\], float64\[3\] in a tuple"):
            wrong_pair(X)
    with expanded(wrong_pair, lambda x: [x, -x]):
        assert wrong_pair(X)[1].tolist() == (-X).tolist()


def test_two_expansions_that_need_each_other_are_refused() -> None:
    with (
        expanded(wrong, lambda x, order: wrong_pair(x)[0]),
        expanded(wrong_pair, lambda x: (wrong(x, order=7), x)),
        pytest.raises(RegistryError, match=r"without end: wrong\[order=7\] -> wrong_pair -> wrong\[order=7\]"),
    ):
        wrong(X, order=7)


def test_a_derivative_of_an_expansion_that_uses_itself_ends() -> None:
    with REGISTRY.kernel(wrong, "cpu", lambda ins, outs, order: lambda x: x):
        with expanded(wrong, lambda x, order: wrong(x, order=order)):
            with pytest.raises(RegistryError, match="uses itself without end"):
                grad(lambda x: tr.sum(wrong(x)))(X)


def test_values_from_outside_are_refused() -> None:
    def f(y: Any) -> Any:
        with expanded(wrong, lambda x, order: x * y):
            return tr.compile(lambda x: wrong(x))(X)

    with pytest.raises(
        TracingError, match="uses float64.* from outside; it may depend on the operands and the metadata"
    ):
        grad(lambda y: tr.sum(f(y)))(2.0)


def test_what_cannot_be_an_expansion_is_refused_at_registration() -> None:
    with pytest.raises(
        RegistryError, match=r"the expansion of wrong is called with \(x, order\), but .* does not take"
    ):
        REGISTRY.expansion(wrong, lambda x: x)
    with pytest.raises(RegistryError, match="exp is a core primitive, in which expansions are written, and has none"):
        REGISTRY.expansion(catalog.exp, lambda x: x)
    with expanded(wrong, branching):
        assert REGISTRY.expansion(wrong, branching).entry.function is branching  # the same one again is no other
        with pytest.raises(RegistryError, match="an? expansion for .* is registered already"):
            REGISTRY.expansion(wrong, raising)


def test_without_an_expansion_everything_is_as_before() -> None:
    with pytest.raises(MissingRuleError), REGISTRY.kernel(wrong, "cpu", lambda ins, outs, order: lambda x: x):
        grad(lambda x: tr.sum(wrong(x)))(X)
    with expanded(wrong, lambda x, order: x**order):
        assert grad(lambda x: tr.sum(wrong(x, order=2)))(X).tolist() == (2 * X).tolist()
    with pytest.raises((MissingRuleError, GradientError, TenferroError)):
        wrong(X)
