"""Pytrees: every container, identity of structures, and errors."""

import copy
import pickle
from collections import OrderedDict, defaultdict, deque, namedtuple
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tenferro_runtime as tr
from tenferro_runtime import TreeDef
from tenferro_runtime.extension import flatten, unflatten
from tenferro_runtime.trees import LEAF, flatten_like, map_tree
from tenferro_runtime.trees._tree_code import builder, reader
from tenferro_tensor import Tensor, tensor
from tenferro_tensor_core import ArgumentError

Pair = namedtuple("Pair", "left right")


@tr.register_dataclass
@dataclass
class Layer:
    w: object
    b: object


@tr.register_dataclass(static="padding")
@dataclass
class Conv:
    w: object
    padding: str


class Bag:
    """Taken apart by functions of its own."""

    def __init__(self, *items: object) -> None:
        self.items = items

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Bag) and self.items == other.items

    def __getitem__(self, i: int) -> object:
        return self.items[i]

    __hash__ = None


tr.register_node(Bag, lambda bag: (bag.items, None), lambda _, items: Bag(*items))

trees = st.recursive(
    st.integers(-(2**63), 2**63 - 1) | st.none(),
    lambda part: (
        st.lists(part, max_size=3)
        | st.lists(part, max_size=3).map(tuple)
        | st.dictionaries(st.sampled_from("abc"), part, max_size=3)
        | st.builds(Pair, part, part)
        | st.builds(Layer, part, part)
        | st.builds(Conv, part, st.sampled_from(["same", "valid"]))
        | st.builds(Bag, part, part)
        | st.dictionaries(st.sampled_from("abc"), part, max_size=3).map(OrderedDict)
        | st.dictionaries(st.sampled_from("abc"), part, max_size=3).map(lambda d: defaultdict(list, d))
        | st.builds(deque, st.lists(part, max_size=3), st.sampled_from([None, 3, 4]))
    ),
    max_leaves=8,
)


@given(trees)
def test_unflatten_undoes_flatten(tree) -> None:
    leaves, treedef = flatten(tree)
    assert unflatten(treedef, leaves) == tree
    assert treedef.size == len(leaves) == len(list(treedef.paths()))
    assert flatten(tree)[1] is treedef
    assert flatten_like(treedef, tree) == leaves
    assert map_tree(lambda x, y: x - y, tree, tree) == unflatten(treedef, [0] * len(leaves))


@given(trees)
def test_paths_lead_to_the_leaves(tree) -> None:
    leaves, treedef = flatten(tree)
    assert [eval(f"tree{path}", {"tree": tree}) for path in treedef.paths()] == leaves


@given(trees)
def test_rendered_reading_and_building_agree_with_the_general_form(tree) -> None:
    leaves, treedef = flatten((tree,))
    read = reader(treedef, tuple(int for _ in leaves), (0,))
    key, raws = read((tree,))
    assert key[0] is treedef and list(raws) == leaves
    t = tensor([1.0])
    made = builder(treedef, {0: 5} if leaves else {}, (False,) * len(leaves))((t.spec,) * max(len(leaves) - 1, 0))(
        (t.data,) * len(leaves)
    )
    out, same = flatten(made)
    assert same is treedef and (not leaves or out[0] == 5) and all(isinstance(x, Tensor) for x in out[1:])


@given(trees, trees)
def test_a_rendered_reader_refuses_other_structures(tree, other) -> None:
    leaves, treedef = flatten((tree,))
    found = reader(treedef, tuple(int for _ in leaves), (0,))((other,))
    if found is not None:
        assert flatten_like(treedef, (other,)) == list(found[1])
    else:
        assert flatten((other,))[1] is not treedef


def test_structures_are_interned_and_print() -> None:
    tree = {"a": [1, (2,)], "b": None, "c": Pair(3, Layer(4, ()))}
    treedef = flatten(tree)[1]
    assert treedef.show() == "{'a': [*, (*,)], 'b': None, 'c': Pair(left=*, right=Layer(w=*, b=()))}"
    assert repr(flatten(1)[1]) == "TreeDef(*)" and flatten(1)[1] is LEAF
    assert copy.deepcopy(LEAF) is LEAF and pickle.loads(pickle.dumps(flatten([1, 2])[1])) is flatten([3, 4])[1]
    assert flatten({1: 0})[1] is not flatten({True: 0})[1]
    assert TreeDef(None, (), ()) is LEAF


def test_the_order_of_a_dict_is_kept_and_matched_by_key() -> None:
    leaves, treedef = flatten({"b": 1, "a": 2})
    assert leaves == [1, 2] and list(unflatten(treedef, leaves)) == ["b", "a"]
    assert flatten_like(treedef, {"a": 20, "b": 10}) == [10, 20]


class Options(dict):
    """A class of its own, which says nothing about being a container."""


def test_subclasses_of_containers_are_leaves() -> None:
    d = Options(a=1)
    assert flatten(d) == ([d], LEAF)


def test_static_data_belong_to_the_structure() -> None:
    treedef = flatten([defaultdict(list, a=1), deque([2], maxlen=3), Conv(4, "same")])[1]
    assert treedef.show() == "[defaultdict(list, {'a': *}), deque(*, 3), Conv(w=*, padding='same')]"
    assert flatten(Conv(1, "same"))[1] is not flatten(Conv(1, "valid"))[1]
    assert flatten(deque([1], maxlen=3))[1] is not flatten(deque([1]))[1]
    assert pickle.loads(pickle.dumps(treedef)) is treedef


def test_errors() -> None:
    treedef = flatten({"a": 1, "b": [2]})[1]
    with pytest.raises(ArgumentError, match=r"the tree \{'a': \*, 'b': \[\*\]\} has 2 leaves, but 3 were given"):
        unflatten(treedef, [1, 2, 3])
    with pytest.raises(
        ArgumentError, match=r"gradient must have the structure \{'a': \*, 'b': \[\*\]\}, got \{'a': \*"
    ):
        flatten_like(treedef, {"a": 1}, "gradient")
    for wrong in ({"a": None, "b": [2]}, {"a": 1, "b": (2,)}, {"a": 1, "b": [2, 3]}, [1, [2]], {"a": 1, "c": [2]}):
        with pytest.raises(ArgumentError, match="give it the same nesting"):
            flatten_like(treedef, wrong)


def test_dataclasses_must_be_what_their_constructor_takes() -> None:
    with pytest.raises(ArgumentError, match="Plain is not a dataclass; put @dataclasses.dataclass on it first"):
        tr.register_dataclass(type("Plain", (), {}))

    @dataclass
    class Derived:
        a: int
        b: int = field(init=False)

    with pytest.raises(ArgumentError, match="has fields that its constructor does not take: b; make them properties"):
        tr.register_dataclass(Derived)
