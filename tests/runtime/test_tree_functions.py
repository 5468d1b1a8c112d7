"""The tree functions, and that everything which takes trees takes the same ones."""

from collections import OrderedDict, defaultdict, deque
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest

import tenferro_runtime as tr
from tenferro_ad import (
    checkpoint,
    custom_rule,
    fixed_point,
    grad,
    jacfwd,
    jacrev,
    jvp,
    linearize,
    taylor,
    value_and_grad,
    vjp,
)
from tenferro_tensor_core import ArgumentError


class State(NamedTuple):
    x: Any
    y: Any


@tr.register_dataclass
@dataclass
class Affine:
    w: Any
    b: Any
    name: str = field(default="affine", metadata={"static": True})


class Mesh:
    def __init__(self, nodes: Any, values: Any, unit: str) -> None:
        self.nodes, self.values, self.unit = nodes, values, unit


tr.register_node(
    Mesh, lambda m: ((m.nodes, m.values), m.unit, ("nodes", "values")), lambda unit, p: Mesh(p[0], p[1], unit)
)

TWO = {
    "tuple": lambda a, b: (a, b),
    "list": lambda a, b: [a, b],
    "dict": lambda a, b: {"a": a, "b": b},
    "ordered dict": lambda a, b: OrderedDict(b=a, a=b),
    "default dict": lambda a, b: defaultdict(list, a=a, b=b),
    "deque": lambda a, b: deque([a, b], maxlen=5),
    "namedtuple": State,
    "dataclass": Affine,
    "node": lambda a, b: Mesh(a, b, "cm"),
    "nested": lambda a, b: {"a": [a, None], "b": deque([Mesh(b, (), "m")])},
}


@pytest.fixture(params=TWO)
def make(request: pytest.FixtureRequest) -> Any:
    """A function of two leaves to a tree of them."""
    return TWO[request.param]


def norm(tree: Any) -> Any:
    a, b = tr.tree_leaves(tree)
    return tr.sum(a * a * b)


def same(tree: Any, expected: Any) -> None:
    assert tr.tree_structure(tree) is tr.tree_structure(expected)
    for x, y in zip(tr.tree_leaves(tree), tr.tree_leaves(expected), strict=True):
        np.testing.assert_allclose(np.asarray(x), np.asarray(y))


# -- one set of containers ----------------------------------------------------------------------------------------


def test_compile_takes_and_returns_them_by_both_entrances(make: Any) -> None:
    double = tr.compile(lambda tree: tr.tree_map(lambda x: 2 * x, tree))
    for k in range(4):  # traced, remembered, and read by the rendered reader
        same(double(make(tr.asarray([1.0 + k]), tr.asarray([3.0]))), make(np.array([2.0 + 2 * k]), np.array([6.0])))
    assert double.cache_info().traces == 1


def test_transforms_take_and_return_them(make: Any) -> None:
    a, b = np.array([1.0, 2.0]), np.array([3.0, 4.0])
    slope = make(2 * a * b, a * a)
    for transform in (grad(norm), tr.compile(grad(norm)), grad(tr.compile(norm)), grad(checkpoint(norm))):
        same(transform(make(a, b)), slope)
    same(value_and_grad(norm)(make(a, b))[1], slope)
    value, pull = vjp(lambda t: make(*tr.tree_leaves(t)), make(a, b))
    same(pull(value)[0], make(a, b))
    tangent = make(np.ones(2), np.zeros(2))
    assert jvp(norm, (make(a, b),), (tangent,))[1].item() == (2 * a * b).sum()
    assert linearize(norm, make(a, b))[1](tangent).item() == (2 * a * b).sum()


def test_lanes_are_taken_from_and_put_into_them(make: Any) -> None:
    a, b = np.array([1.0, 2.0]), np.array([3.0, 4.0])
    swap = lambda tree: make(*reversed(tr.tree_leaves(tree)))
    for wrap in (lambda f: f, tr.compile):
        same(wrap(tr.vmap(swap))(make(a, b)), make(b, a))
        same(wrap(tr.vmap(grad(norm)))(make(a, b)), make(2 * a * b, a * a))
        same(wrap(tr.vmap(swap, in_axes=(make(0, None),)))(make(a, b[0])), make(np.full(2, b[0]), a))
        same(wrap(tr.vmap(norm, out_axes=0))(make(a, b)), a * a * b)


def test_more_transforms_take_them(make: Any) -> None:
    x, t = make(np.array(1.0), np.array(3.0)), make(np.array(1.0), np.array(0.0))
    series = taylor(norm, (x,), ([t],))
    assert series[0].item() == 3.0 and series[1][0].item() == 6.0
    same(jacfwd(norm)(x), make(np.array(6.0), np.array(1.0)))
    same(jacrev(norm)(x), make(np.array(6.0), np.array(1.0)))
    twice = custom_rule(norm, jvp=lambda primals, tangents, outs: (2.0 * jvp(norm, primals, tangents)[1],))
    same(grad(twice)(x), make(np.array(12.0), np.array(2.0)))
    same(fixed_point(lambda tree, _: tr.tree_map(lambda v: 0.5 * v + 1.0, tree), x, 0.0), make(2.0, 2.0))


@pytest.mark.parametrize("wrap", [lambda f: f, tr.compile], ids=["eager", "compiled"])
def test_loops_and_branches_carry_them(make: Any, wrap: Any) -> None:
    x, y = tr.asarray(1.0), tr.asarray(2.0)
    swap = lambda tree: make(*reversed(tr.tree_leaves(tree)))
    same(wrap(lambda t: tr.fori_loop(0, 3, lambda i, c: swap(c), t))(make(x, y)), make(2.0, 1.0))
    below = lambda c: tr.tree_leaves(c)[0] < 5
    add = lambda c: tr.tree_map(lambda v: v + 1, c)
    same(wrap(lambda t: tr.while_loop(below, add, t))(make(x, y)), make(5.0, 6.0))
    same(wrap(lambda t: tr.cond(below(t), swap, lambda c: c, t))(make(x, y)), make(2.0, 1.0))
    xs = make(tr.asarray([1.0, 2.0]), tr.asarray([3.0, 4.0]))
    carry, rows = wrap(lambda t, xs: tr.scan(lambda c, row: (swap(c), row), t, xs))(make(x, y), xs)
    same(carry, make(1.0, 2.0))
    same(rows, xs)
    same(wrap(lambda xs: tr.map(swap, xs))(xs), make(np.array([3.0, 4.0]), np.array([1.0, 2.0])))


def test_files_keep_them(make: Any, tmp_path: Path) -> None:
    double = tr.compile(lambda tree: tr.tree_map(lambda x: 2 * x, tree))
    arguments = make(tr.asarray([1.0]), tr.asarray([3.0]))
    double.save(tmp_path / "double.tfp", arguments)
    same(tr.load(tmp_path / "double.tfp")(arguments), make(np.array([2.0]), np.array([6.0])))


def test_another_static_value_is_another_program() -> None:
    f = tr.compile(lambda layer: layer.w * (2.0 if layer.name == "twice" else 1.0))
    values = [f(Affine(tr.asarray(1.0), None, name)).item() for name in ("once", "twice", "once", "twice")]
    assert values == [1.0, 2.0, 1.0, 2.0] and f.cache_info().traces == 2


def test_a_file_keeps_static_values_and_refuses_other_ones(tmp_path: Path) -> None:
    f = tr.compile(lambda layer: layer)
    f.save(tmp_path / "layer.tfp", Affine(tr.asarray(1.0), None, "first"))
    again = tr.load(tmp_path / "layer.tfp")
    assert again(Affine(tr.asarray(3.0), None, "first")) == Affine(tr.asarray(3.0), None, "first")
    with pytest.raises(ArgumentError, match=r"at \[0\]: the static data \(\('name', 'second'\),\) instead of"):
        again(Affine(tr.asarray(3.0), None, "second"))


def test_a_file_names_no_function_to_be_called(tmp_path: Path) -> None:
    f = tr.compile(lambda d: d["a"])
    with pytest.raises(tr.ProgramFileError, match="which cannot be written to a file; use one of list, dict"):
        f.save(tmp_path / "f.tfp", defaultdict(lambda: 1, a=tr.asarray(1.0)))
    with pytest.raises(tr.ProgramFileError, match="the static data of the structure .* cannot be written"):
        f.save(tmp_path / "f.tfp", {"a": tr.asarray(1.0), "mesh": Mesh(1.0, 2.0, print)})  # type: ignore[arg-type]


# -- the functions ------------------------------------------------------------------------------------------------

TREE = {"w": [1, (2, None)], "b": State(3, Affine(4, 5))}


def test_leaves_and_structure() -> None:
    leaves, treedef = tr.tree_flatten(TREE)
    assert leaves == tr.tree_leaves(TREE) == [1, 2, 3, 4, 5] and treedef is tr.tree_structure(TREE)
    assert tr.tree_unflatten(treedef, iter(leaves)) == TREE
    assert tr.tree_reduce(lambda total, x: total - x, TREE) == -13
    assert tr.tree_reduce(lambda total, x: [*total, x], TREE, []) == leaves
    assert tr.tree_all([1, {"a": 2}]) and not tr.tree_all([1, {"a": 0}])
    assert tr.tree_leaves(None) == [] and tr.tree_map(abs, None) is None


def test_what_is_leaf_accepts_is_a_leaf() -> None:
    whole = lambda x: isinstance(x, (State, tuple))
    assert tr.tree_leaves(TREE, is_leaf=whole) == [1, (2, None), State(3, Affine(4, 5))]
    assert tr.tree_leaves([None, 1], is_leaf=lambda x: x is None) == [None, 1]
    assert tr.tree_map(len, TREE["w"][1:], is_leaf=whole) == [2]
    assert tr.tree_structure([(1, 2)], is_leaf=whole) is tr.tree_structure([3])


def test_paths_name_the_way_to_a_leaf() -> None:
    pairs, treedef = tr.tree_flatten_with_path({**TREE, "m": Mesh(6, 7, "cm")})
    assert [tuple(path) for path, _ in pairs] == [
        ("w", 0), ("w", 1, 0), ("b", "x"), ("b", "y", "w"), ("b", "y", "b"), ("m", "nodes"), ("m", "values"),
    ]  # fmt: skip
    assert [str(path) for path, _ in pairs] == list(treedef.paths())
    assert str(pairs[3][0]) == "['b'].y.w" and repr(pairs[3][0]) == "TreePath(['b'].y.w)"
    assert tr.tree_map_with_path(lambda path, x, y: (str(path), x + y), [1, 2], [3, 4]) == [("[0]", 4), ("[1]", 6)]


def test_other_trees_may_go_on_where_the_first_has_leaves() -> None:
    slots = {"b": (2, 3), "a": None}
    assert tr.tree_map(lambda x, slot: (x, slot), {"a": 1, "b": 2}, slots) == {"a": (1, None), "b": (2, (2, 3))}


def test_a_tree_of_trees_turned_inside_out() -> None:
    outer, inner = tr.tree_structure(State(0, 0)), tr.tree_structure({"a": 0, "b": [0]})
    tree = State({"a": 1, "b": [2]}, {"a": 3, "b": [4]})
    turned = {"a": State(1, 3), "b": [State(2, 4)]}
    assert tr.tree_transpose(outer, inner, tree) == tr.tree_transpose(outer, None, tree) == turned
    assert tr.tree_transpose(inner, outer, turned) == tree
    assert tr.tree_transpose(tr.tree_structure([]), inner, []) == {"a": [], "b": [[]]}


def test_errors_name_the_place() -> None:
    cases = [
        ({"w": [1, [2]], "b": 3}, r"tree 1 must have the structure .* \(at \['w'\]\[1\]: a list instead of a tuple\)"),
        ({"w": [1, (2, 3)], "b": 3}, r"\(at \['w'\]\[1\]: 2 parts instead of 1\)"),
        ({"w": [1, (2,)], "c": 3}, r"\(a dict without 'b' and with 'c'\)"),
        ([1], r"\(a list instead of a dict\)"),
    ]
    for wrong, message in cases:
        with pytest.raises(ArgumentError, match=message):
            tr.tree_map(lambda x, y: x, {"w": [1, (2,)], "b": 3}, wrong)
    with pytest.raises(ArgumentError, match=r"the part at \[1\] of the tree given to tree_transpose .* without 'b'"):
        tr.tree_transpose(tr.tree_structure([0, 0]), None, [{"b": 1}, {"c": 2}])
    with pytest.raises(ArgumentError, match="tree_unflatten takes a structure, .* the structure comes first"):
        tr.tree_unflatten([1, 2], tr.tree_structure([1, 2]))  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="a tree without leaves needs an initial value"):
        tr.tree_reduce(max, [])
    with pytest.raises(ArgumentError, match="the outer one has no leaves"):
        tr.tree_transpose(tr.tree_structure([]), None, [])
    with pytest.raises(ArgumentError, match=r"the static data of the Mesh at \['m'\]\[0\] are not hashable"):
        tr.tree_flatten({"a": 1, "m": [Mesh(1, 2, ["cm"])]})  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match=r"the static data of the Mesh are not hashable"):
        tr.tree_flatten(Mesh(1, 2, ["cm"]), is_leaf=lambda x: False)  # type: ignore[arg-type]


def test_what_is_no_array_is_named_by_its_path() -> None:
    x, odd = tr.asarray([1.0]), SimpleNamespace()
    cases = [
        (lambda: grad(lambda t: t["a"])({"a": x, "b": [odd]}), r"an argument of grad at \['b'\]\[0\] is a SimpleNa"),
        (lambda: jvp(lambda t: t, ([odd],), ([odd],)), r"an argument of jvp at \[0\]\[0\] is a SimpleNamespace"),
        (lambda: vjp(lambda t: {"a": odd}, x), r"the result of the function given to vjp at \['a'\] is a SimpleN"),
        (lambda: tr.scan(lambda c, x: (c, x), {"a": odd}, x), r"the carry of scan holds a SimpleNamespace at \['a'\]"),
        (lambda: tr.scan(lambda c, x: (c, [odd]), x, x), r"a row of scan holds a SimpleNamespace at \[0\]"),
        (lambda: tr.map(lambda x: x, {"q": odd}), r"xs of map holds a SimpleNamespace at \['q'\]"),
        (lambda: tr.cond(True, lambda t: t, lambda t: t, [odd]), r"holds a SimpleNamespace at \[0\]"),
        (lambda: tr.compile(lambda t: t)({"a": [odd]}), r"argument t\['a'\]\[0\] of .* is a SimpleNamespace"),
        (lambda: tr.compile(lambda t: {"a": odd})(x), r"returned a SimpleNamespace at result\['a'\]"),
    ]
    for call, message in cases:
        with pytest.raises(ArgumentError, match=message):
            call()


# -- registering --------------------------------------------------------------------------------------------------


def test_a_class_is_registered_once() -> None:
    with pytest.raises(ArgumentError, match="Mesh is already a container"):
        tr.register_node(Mesh, lambda m: ((), None), lambda *_: None)
    for taken in (dict, State):
        with pytest.raises(ArgumentError, match="is already a container"):
            tr.register_node(taken, lambda m: ((), None), lambda *_: None)
    assert tr.register_dataclass(Affine) is Affine  # the same again says nothing new
    with pytest.raises(ArgumentError, match="register_node takes a class, got 3"):
        tr.register_node(3, lambda m: ((), None), lambda *_: None)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="static names q, but the fields of Affine are w, b, name"):
        tr.register_dataclass(Affine, static="q")


def test_a_node_must_come_apart() -> None:
    class Odd:
        pass

    answers: list[Any] = [3, ((1, 2), None, ("a",)), ((1,), None)]
    tr.register_node(Odd, lambda odd: answers.pop(0), lambda *_: Odd())
    with pytest.raises(ArgumentError, match=r"flattens Odd returned 3; it should return the tuple \(parts, static\)"):
        tr.tree_leaves(Odd())
    with pytest.raises(ArgumentError, match="returned 2 parts, but 1 names"):
        tr.tree_leaves(Odd())
    assert tr.tree_leaves(Odd()) == [1]


class Attribute(NamedTuple):
    """A field as attrs describes it."""

    name: str
    alias: str
    init: bool
    metadata: dict[str, Any]


class Imitated:
    """A class as attrs makes it: the argument of a private field has no underscore."""

    __attrs_attrs__ = (Attribute("_w", "w", True, {}), Attribute("kind", "kind", True, {"static": True}))

    def __init__(self, w: Any, kind: str) -> None:
        self._w, self.kind = w, kind


def test_classes_of_attrs_are_registered_as_dataclasses_are() -> None:
    tr.register_dataclass(Imitated)
    made = tr.compile(lambda x: tr.tree_map(lambda leaf: 2 * leaf, x))(Imitated(tr.asarray(2.0), "cubic"))
    assert made._w.item() == 4.0 and made.kind == "cubic"
    assert tr.tree_structure(made).show() == "Imitated(_w=*, kind='cubic')"


def test_classes_of_attrs_itself() -> None:
    attr = pytest.importorskip("attr")

    @tr.register_dataclass(static=["kind"])
    @attr.s(auto_attribs=True, frozen=True)
    class Spline:
        _knots: Any
        values: Any
        kind: str = "cubic"

    spline: Any = Spline
    slope = grad(lambda s: tr.sum(s.values * s.values * s._knots))(spline(np.array([1.0]), np.array([3.0]), "linear"))
    assert slope._knots.item() == 9.0 and slope.values.item() == 6.0 and slope.kind == "linear"
