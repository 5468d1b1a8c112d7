"""Functions as another library's automatic differentiation takes them; no such library takes part."""

import importlib
import sys

import numpy as np
import pytest

import tenferro_runtime as tr
from tenferro_ad import jvp, vjp
from tenferro_ad.adapters._hosted import HostedFunction, HostedOperation
from tenferro_runtime.trees import flatten
from tenferro_tensor_core import BackendUnavailableError

X, Y = tr.asarray([0.3, 0.7, -0.4]), tr.asarray([1.5, 2.0, 0.5])
G = tr.asarray([1.0, -2.0, 0.5])


def products(x, y):
    return tr.sin(x) * y, tr.sum(x * x), x > 0


def close(found, expected):
    for a, b in zip(found, expected, strict=True):
        assert np.allclose(np.asarray(a), np.asarray(b), rtol=1e-12)


def recorded(operation, *values, need):
    """The two parts, run one after the other as a host does."""
    parts = operation.recorded([v.spec for v in values], need)
    found = parts.first.run(*values)
    at = {~k: found[k] for k in parts.kept}

    def pull(*gs):
        second = parts.second(tuple([g is not None for g in gs]))
        residuals = [values[i] if i >= 0 else at[i] for i in second.sources]
        slopes = [None] * len(need)
        for place, slope in zip(second.places, second.operation.run(*[g for g in gs if g is not None], *residuals)):
            slopes[place] = slope
        return slopes

    return found[: parts.results], pull


def test_two_parts_give_values_and_cotangents():
    values, pull = recorded(HostedOperation(products, 2), X, Y, need=(0, 1))
    close(values, products(X, Y))
    _, expected = vjp(lambda x, y: products(x, y)[:2], X, Y)
    close(pull(G, tr.asarray(2.0), None), expected((G, tr.asarray(2.0))))
    close(pull(G, None, None), expected((G, tr.asarray(0.0))))
    slope, none = pull(None, tr.asarray(3.0), None)
    close([slope], [6 * X])
    assert none is None


def test_residuals_are_no_copies_of_operands_or_results():
    parts = HostedOperation(lambda x, y: (tr.exp(x) * y, tr.exp(x)), 2).recorded([X.spec, Y.spec], (0, 1))
    assert parts.results == 2
    assert parts.kept == (1,)  # the derivatives read an operand and a result
    assert len(parts.first.run(X, Y)) == 2


def test_the_parts_are_those_of_all_sizes():
    operation = HostedOperation(products, 2)
    for n in (2, 3, 5):
        x = tr.linspace(0.1, 1.0, n)
        _, pull = recorded(operation, x, x, need=(1,))
        close(pull(tr.ones(n), None, None), [tr.sin(x)])
    assert operation.run.cache_info().traces == 1


def test_derived_functions_are_made_once_and_have_derivatives():
    operation = HostedOperation(lambda x, y: (tr.sin(x) * y,), 2)
    pulled = operation.pulled((0,), (True,))
    assert operation.pulled((0,), (True,)) is pulled
    close(pulled.run(X, Y, G), [G * Y * tr.cos(X)])
    close(pulled.pulled((0, 2), (True,)).run(X, Y, G, tr.ones(3)), [-G * Y * tr.sin(X), Y * tr.cos(X)])
    close(operation.pushed((0,)).run(X, Y, G), jvp(lambda x: tr.sin(x) * Y, (X,), (G,))[1:])
    close(operation.mapped((0, None)).run(X, Y), [tr.sin(X)[:, None] * Y])
    close(operation.mapped((0, None)).pushed((0,)).run(X, Y, G), [(G * tr.cos(X))[:, None] * Y])


def test_results_that_are_no_floats_take_no_part():
    operation = HostedOperation(lambda x: (tr.argsort(x), tr.sort(x)), 1)
    close(operation.pushed((0,)).run(X, G), [G[tr.argsort(X)]])
    _, pull = recorded(operation, X, need=(0,))
    close(pull(None, G), vjp(tr.sort, X)[1](G))


def test_sizes_that_depend_on_data_have_no_parts_beforehand():
    operation = HostedOperation(lambda x: (tr.compress(x, x > 0),), 1)
    assert operation.recorded([X.spec], (0,)) is None
    close(operation.run(X), [X[:2]])
    close(operation.pulled((0,), (True,)).run(X, tr.asarray([1.0, 2.0])), [tr.asarray([1.0, 2.0, 0.0])])


def test_arguments_are_put_back_into_their_containers():
    seen = []

    def f(p, *, name, power):
        seen.append(name)
        return {name: p["a"] ** power, "rest": (p["b"], None)}

    tree = flatten((({"a": X, "b": Y},), {"name": "z", "power": 2}))[1]
    flat = HostedFunction(f, tree, {2: "z"})
    shape = flat.result([X.spec, Y.spec, 2])
    assert shape is flatten({"z": 0, "rest": (0, None)})[1]
    close(flat.operation.run(X, Y, 2), [X**2, Y])
    assert flat.result([X[:2].spec, Y[:2].spec, 3]) is shape
    assert seen == ["z"]


def test_the_containers_of_the_result_may_depend_on_sizes():
    flat = HostedFunction(lambda x: [*x], flatten(((0,), {}))[1], {})
    assert [flat.result([X[:n].spec]).size for n in (2, 3, 2)] == [2, 3, 2]
    flat.operation.run(X[:1])  # traced by a call that does not ask for containers
    assert flat.result([X[:1].spec]).size == 1


def test_a_missing_library_is_named(monkeypatch):
    for name in [m for m in sys.modules if m.startswith("tenferro_ad.adapters.torch")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(BackendUnavailableError, match="needs PyTorch, which cannot be imported.*pip install torch"):
        importlib.import_module("tenferro_ad.adapters.torch")
