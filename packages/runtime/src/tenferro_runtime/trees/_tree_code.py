"""Flattening and unflattening rendered for one structure: the fast path of compiled functions.

Generated text contains generated names and names of dataclass fields; keys and classes are bound as objects.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tenferro_runtime._generated_code import defined
from tenferro_runtime.trees._containers import container_of
from tenferro_runtime.trees._tree import TreeDef
from tenferro_tensor import Spec, Tensor
from tenferro_tensor.calls import spec_of_raw
from tenferro_tensor.ownership import is_plain, received
from tenferro_tensor_core import key_of


class _FunctionWriter:
    """Lines of one function, and the objects that it names."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.space: dict[str, Any] = {"__name__": "tenferro_runtime.trees", "T": Tensor, "new": object.__new__}

    def bind(self, value: Any) -> str:
        name = f"o{len(self.space)}"
        self.space[name] = value
        return name

    def define(self, head: str, result: str) -> Callable[..., Any]:
        body = [f"    {line}" for line in (*self.lines, f"return {result}")]
        return defined(head.partition("(")[0], [f"def {head}:", *body], self.space, "tree")


RAW: Final[dict[type, str]] = {bool: "bool_({})", int: "int64({})", float: "float64({})", complex: "complex128({})"}
"""Conversions of Python scalars to raw arrays."""

_FORMS: Final[dict[type, tuple[str, str]]] = {Tensor: ("{}.spec", "{}._data"), np.ndarray: ("spec_of(r{0})", "r{}")}
"""The part of the key and the raw array of a leaf that is an array."""


def reader(
    treedef: TreeDef, kinds: tuple[type, ...], order: tuple[int | None, ...], *, borrows: bool = False
) -> Callable[[tuple[Any, ...]], Any]:
    """Render a function that flattens arguments of a given structure.

    Args:
        treedef: structure of the tuple of dynamic arguments.
        kinds: class of each leaf: `Tensor`, NumPy's array, or that of a Python scalar.
        order: position of each argument among the dynamic ones, or ``None`` if it is static.
        borrows: whether NumPy arrays are raw leaves themselves, uncopied where that is possible.

    Returns:
        A function of the tuple of arguments that returns a key (structure, specs, static values) and the raw leaves, or
        ``None`` if the structure or the class of a leaf differs.
    """
    w = _FunctionWriter()
    w.space.update({name: getattr(np, name) for name in ("bool_", "int64", "float64", "complex128")}, key=key_of)
    w.space.update(adopt=Tensor.adopt, is_plain=is_plain, received=received, spec_of=spec_of_raw)
    leaves: list[str] = []
    keys = [w.bind(treedef)]
    for i, place in enumerate(order):
        w.lines.append(f"a{i} = values[{i}]")
        if place is not None:
            _read(w, treedef.children[place], f"a{i}", leaves)
    raws = []
    for leaf, kind in zip(leaves, kinds, strict=True):
        w.lines.append(f"if {leaf}.__class__ is not {w.bind(kind)}: return None")
        if kind is int:
            w.lines.append(f"if not {-(2**63)} <= {leaf} < {2**63}: return None")
        if kind is np.ndarray:
            taken = leaf if borrows else f"received({leaf})"
            w.lines.append(f"r{leaf} = {taken} if is_plain({leaf}) else adopt({leaf})._data")
        key, raw = _FORMS.get(kind) or (w.bind(kind), RAW[kind])
        keys.append(key.format(leaf))
        raws.append(raw.format(leaf) + ", ")
    keys += [f"key(a{i})" for i, place in enumerate(order) if place is None]
    return w.define("read(values)", f"({', '.join(keys)},), ({''.join(raws)})")


def _read(w: _FunctionWriter, treedef: TreeDef, name: str, leaves: list[str]) -> None:
    kind = treedef.kind
    if kind is None:
        leaves.append(name)
        return
    if kind is type(None):
        w.lines.append(f"if {name} is not None: return None")
        return
    count = len(treedef.children)
    test = f"{name}.__class__ is not {w.bind(kind)}"
    parts = [f"{name}_{i}" for i in range(count)]
    if kind is dict:  # the order of keys is part of the structure
        w.lines.append(f"if {test} or key(tuple({name})) != {w.bind(key_of(treedef.names))}: return None")
        if parts:
            w.lines.append(f"{', '.join(parts)}, = {name}.values()")
    elif kind is list or kind is tuple or issubclass(kind, tuple):
        w.lines.append(f"if {test} or len({name}) != {count}: return None")
        if parts:
            w.lines.append(f"{', '.join(parts)}, = {name}")
    else:
        container = container_of(kind)
        assert container is not None, "only containers have shapes"
        if container.parameters is not None:
            w.lines.append(f"if {test}: return None")
            for part, field in zip(parts, treedef.names, strict=True):
                w.lines.append(f"{part} = {name}.{field}")
        else:
            w.lines.append(f"if {test}: return None")
            w.lines.append(f"{name}p, {name}s, {name}n = {w.bind(container.take)}({name})")
            same = w.bind(key_of((treedef.aux, treedef.names)))
            w.lines.append(f"if key(({name}s, {name}n)) != {same} or len({name}p) != {count}: return None")
            if parts:
                w.lines.append(f"{', '.join(parts)}, = {name}p")
    for part, child in zip(parts, treedef.children, strict=True):
        _read(w, child, part, leaves)


def wrapped(raw: Any, spec: Spec) -> Tensor:
    """A raw output as a tensor; data-dependent extents are those of the output."""
    return Tensor.wrap(raw, spec.with_(shape=tuple(raw.shape)) if spec.symbolic else spec)


def builder(
    treedef: TreeDef, fixed: dict[int, Any], late: tuple[bool, ...]
) -> Callable[[tuple[Spec, ...]], Callable[[tuple[Any, ...]], Any]]:
    """Render a function of the specs of raw outputs that returns the function which builds the result.

    Args:
        treedef: structure of the result.
        fixed: leaves that are plain numbers, by position.
        late: whether each raw output has a data-dependent extent.
    """
    w = _FunctionWriter()
    w.space["wrapped"] = wrapped
    leaves = []
    specs: list[str] = []
    for i in range(treedef.size):
        if i in fixed:
            leaves.append(w.bind(fixed[i]))
            continue
        raw = f"raws[{len(specs)}]"
        if late[len(specs)]:
            w.lines.append(f"    t{i} = wrapped({raw}, s{i})")
        else:
            w.lines.append(f"    t{i} = new(T); t{i}._data = {raw}; t{i}.spec = s{i}")
        leaves.append(f"t{i}")
        specs.append(f"s{i}, ")
    names = [f"{''.join(specs)} = specs"] if specs else []
    w.lines = [*names, "def build(raws):", *w.lines, f"    return {_built(w, treedef, iter(leaves))}"]
    return w.define("build_for(specs)", "build")


def _built(w: _FunctionWriter, treedef: TreeDef, leaves: Any) -> str:
    kind = treedef.kind
    if kind is None:
        return str(next(leaves))
    parts = [_built(w, child, leaves) for child in treedef.children]
    if kind is type(None):
        return "None"
    if kind is list:
        return f"[{', '.join(parts)}]"
    if kind is tuple:
        return f"({''.join(f'{part}, ' for part in parts)})"
    if kind is dict:
        return "{" + ", ".join(f"{w.bind(k)}: {part}" for k, part in zip(treedef.names, parts, strict=True)) + "}"
    container = container_of(kind)
    assert container is not None, "only containers have shapes"
    if container.parameters is not None:
        given = [f"{name}={part}" for name, part in zip(container.parameters, parts, strict=True)]
        return f"{w.bind(kind)}({', '.join(given)})"
    made = f"{w.bind(container.make)}({w.bind(treedef.aux)}, {w.bind(treedef.names)}"
    return f"{made}, ({''.join(f'{part}, ' for part in parts)}))"
