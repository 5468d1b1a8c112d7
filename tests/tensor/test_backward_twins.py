"""`Steps` and `backward` in C and in Python: the same results and errors, and neither leaks nor crashes."""

import gc
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tenferro_tensor import Tensor, _interpreted, _interpreted_backward, tensor

TWINS = {
    "python": SimpleNamespace(
        Steps=_interpreted_backward.Steps, backward=_interpreted_backward.backward, Node=_interpreted.Node
    )
}
try:
    from tenferro_tensor import _accelerated
except ImportError:
    pass
else:
    TWINS["c"] = SimpleNamespace(Steps=_accelerated.Steps, backward=_accelerated.backward, Node=_accelerated.Node)


@pytest.fixture(params=TWINS)
def twin(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(_interpreted.state, "tensor", Tensor)
    return TWINS[request.param]


X, Y = tensor([1.0, 2.0]), tensor([3.0, 5.0])


def refused(given: Any, saved: Any) -> Any:
    return "otherwise", given, saved


def product(twin: Any) -> Any:
    """The derivative of a product with one number: cotangents of both operands, and the number as it is."""
    calls = ((np.multiply, (0, 2)), (np.multiply, (0, 1)), (np.add, (5, 4)))
    outputs = ((6, X.spec), None, (2, None), (7, X.spec))
    return twin.Steps("mul", (None, None, None, object), (np.float64(10.0),), calls, outputs, refused)


def test_calls_run_over_registers(twin: Any) -> None:
    steps = product(twin)
    g = tensor([1.0, 10.0])
    first, zero, passed, third = steps(g, (X, Y, 2.0))
    np.testing.assert_array_equal(first.data, [1.0, 20.0])
    assert zero is None and passed is Y and first.spec is X.spec
    np.testing.assert_array_equal(third.data, [13.0, 60.0])
    assert type(first) is Tensor


def test_a_list_is_given_without_what_is_absent(twin: Any) -> None:
    steps = twin.Steps("op", (None, None), (), ((np.subtract, (0, 1)),), ((2, X.spec),), refused)
    for given, saved in (([None, X, None], (Y,)), ([X, Y], ()), ([], (X, Y)), ([X], [Y])):
        np.testing.assert_array_equal(steps(given, saved)[0].data, [-2.0, -3.0])


def test_what_is_not_concrete_goes_elsewhere(twin: Any) -> None:
    steps = product(twin)
    for given, saved in (("g", (X, Y, 2.0)), (X, (X, 3, 2.0))):
        assert steps(given, saved) == ("otherwise", given, saved)


def test_wrong_numbers_of_inputs_are_value_errors(twin: Any) -> None:
    steps = product(twin)
    for given, saved in ((X, (X, Y)), (X, (X, Y, 2.0, 3.0)), ([], ())):
        with pytest.raises(ValueError, match=r"zip\(\)|inputs"):
            steps(given, saved)


def test_numbers_that_are_due_are_told_apart(twin: Any) -> None:
    for due in (2, 2.0, True, 0.0, -0.0, float("nan"), 1 + 2j, 2**70, -1):
        steps = twin.Steps("op", (None, due), (), (), ((0, None),), refused)
        for number in (2, 2.0, True, 0.0, -0.0, float("nan"), 2**70, -1, "text", None):
            found = steps(X, (number,))
            assert (found == (X,)) == (type(number) is type(due) and repr(number) == repr(due)), (due, number)


def test_errors_of_calls_pass(twin: Any) -> None:
    def fail(*_: Any) -> Any:
        raise ArithmeticError("of a kernel")

    steps = twin.Steps("op", (None,), (), ((np.negative, (0,)), (fail, ())), ((1, X.spec),), refused)
    with pytest.raises(ArithmeticError, match="of a kernel"):
        steps(X, ())


def test_steps_leak_nothing(twin: Any) -> None:
    steps, wrong = product(twin), (X, (X,))
    g = tensor([1.0, 10.0])
    watched = [X, Y, g, X.data, X.spec, refused]

    def run() -> None:
        for _ in range(1000):
            steps(g, (X, Y, 2.0))
            steps("g", (X, Y, 2.0))
            try:
                steps(*wrong)
            except ValueError:
                pass

    run()
    gc.collect()
    before = [sys.getrefcount(o) for o in watched]
    run()
    gc.collect()
    assert max(abs(sys.getrefcount(o) - b) for o, b in zip(watched, before)) < 50


@pytest.mark.skipif("c" not in TWINS, reason="there is no C extension")
@pytest.mark.parametrize(
    "wrong",
    [
        {"calls": ((len, (9,)),)}, {"calls": ((len, (-1,)),)}, {"calls": ((len, ("0",)),)}, {"calls": ((len,),)},
        {"calls": (len,)}, {"calls": ((len, [0]),)}, {"calls": [(len, (0,))]}, {"calls": ((len, (2**80,)),)},
        {"outputs": ((7, X.spec),)}, {"outputs": ((1, None),)}, {"outputs": (3,)}, {"outputs": None},
        {"inputs": 3}, {"constants": []},
    ],
)  # fmt: skip
def test_damaged_steps_cannot_be_made_in_c(wrong: dict[str, Any]) -> None:
    right: dict[str, Any] = {
        "op": "op", "inputs": (None,), "constants": (), "calls": ((np.negative, (0,)),),
        "outputs": ((1, X.spec),), "otherwise": refused,
    }  # fmt: skip
    TWINS["c"].Steps(**right)
    with pytest.raises((TypeError, ValueError, OverflowError)):
        TWINS["c"].Steps(**{**right, **wrong})


def times(k: float) -> Any:
    return lambda g, saved: (g * k,)


def chain(twin: Any, length: int) -> tuple[Any, Any]:
    leaf = node = twin.Node(None, (), None)
    for _ in range(length):
        node = twin.Node(lambda g, saved: (g + 1,), (node,), ())
    return leaf, node


def test_cotangents_meet_at_leaves(twin: Any) -> None:
    x, y = twin.Node(None, (), None), twin.Node(None, (), None)
    a = twin.Node(lambda g, saved: (g * 2, g * 3), (x, y), ())
    b = twin.Node(lambda g, saved: [g * 5, None, "more"], (a, y), ())
    c = twin.Node(lambda g, saved: (g, g * saved[0]), (a, b), (7,))
    cotangents = {c: 1, x: 1000}
    assert twin.backward(cotangents, None, []) is None
    assert cotangents == {x: 1000 + 2 * (1 + 35), y: 3 * (1 + 35)}
    assert c.saved == (7,)


def test_nodes_are_visited_from_the_newest_on(twin: Any) -> None:
    rng, seen = np.random.default_rng(3), []
    nodes = [twin.Node(None, (), None)]
    for _ in range(300):
        parents = tuple(nodes[k] for k in {*rng.integers(0, len(nodes), 3).tolist()})

        def vjp(g: Any, saved: Any, seq: int = len(nodes), count: int = len(parents)) -> Any:
            seen.append(seq)
            return (1,) * count

        nodes.append(twin.Node(vjp, parents, ()))
    cotangents = dict.fromkeys(nodes[::7], 1)
    twin.backward(cotangents, None, [])
    assert seen == sorted(seen, reverse=True) and len({*seen}) == len(seen)
    assert [*cotangents] == [nodes[0]]


def test_visited_nodes_are_released(twin: Any) -> None:
    leaf, root = chain(twin, 3)
    twin.backward({root: 1}, refused, [])
    assert root.vjp is refused and root.parents == () and root.saved is None and leaf.vjp is None


def test_the_node_that_failed_is_told(twin: Any) -> None:
    leaf = twin.Node(None, (), None)
    bad = twin.Node(lambda g, saved: 1 / 0, (leaf,), ())
    root = twin.Node(times(2), (bad,), ())
    failed: list[Any] = []
    with pytest.raises(ZeroDivisionError):
        twin.backward({root: 1}, None, failed)
    assert failed == [bad]


@pytest.mark.parametrize("damage", ["cycle", "younger parent", "no node", "no vjp", "no parents", "not iterable"])
def test_damaged_graphs_are_errors(twin: Any, damage: str) -> None:
    leaf = twin.Node(None, (), None)
    node = twin.Node(times(2), (leaf,), ())
    root = twin.Node(times(2), (node,), ())
    if damage == "cycle":
        node.parents = (node,)
    elif damage == "younger parent":
        node.parents = (root,)
    elif damage == "no node":
        node.parents = (3,)
    elif damage == "no vjp":
        node.vjp = 3
    elif damage == "no parents":
        del node.parents
    else:
        node.vjp = lambda g, saved: 5
    with pytest.raises((TypeError, AttributeError)):
        twin.backward({root: 1}, None, [])


def test_long_chains_are_swept_and_freed(twin: Any) -> None:
    leaf, root = chain(twin, 200_000)
    cotangents = {root: 0}
    twin.backward(cotangents, None, [])
    assert cotangents == {leaf: 200_000}
    if twin is TWINS.get("c"):
        del root, cotangents  # as deep as it is long


def test_nodes_of_several_outputs_and_subclasses(twin: Any) -> None:
    class Where(twin.Node):
        __slots__ = ("where",)

    leaf = Where(None, (), None)
    node = Where(times(3), (leaf,), ())
    cotangents = {node: 2}
    twin.backward(cotangents, None, [])
    assert cotangents == {leaf: 6}
