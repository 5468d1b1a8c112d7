"""Structures of arguments and results as plain data; classes are looked up among imported ones only."""

from __future__ import annotations

import sys
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable
from typing import Any, Final

from tenferro_runtime.exporting.files._errors import ProgramFileError
from tenferro_runtime.trees._containers import container_of
from tenferro_runtime.trees._tree import LEAF, TreeDef

Codec = Callable[[Any], Any]
"""Encodes a metadata value as plain data, or decodes it."""

_KINDS: Final[dict[str, type]] = {
    "list": list,
    "tuple": tuple,
    "dict": dict,
    "none": type(None),
    "ordered dict": OrderedDict,
    "default dict": defaultdict,
    "deque": deque,
}
_NAMES: Final = {kind: name for name, kind in _KINDS.items()}
_UNNAMED: Final = ("list", "tuple", "none", "deque")
_FACTORIES: Final = {f.__name__: f for f in (list, dict, set, tuple, bool, int, float, complex, str)}
"""Default factories that a file may name; a file must not choose other functions to call."""


def encode_tree(encode: Codec, tree: TreeDef) -> Any:
    """Encode a structure as plain data.

    Args:
        encode: encodes a metadata value.
        tree: the structure.

    Returns:
        ``"*"`` for a leaf, else ``[kind, names, parts]``, followed by static data if there are any.

    Raises:
        ProgramFileError: a key or static data cannot be encoded.
    """
    if tree.kind is None:
        return "*"
    parts = [encode_tree(encode, child) for child in tree.children]
    kind = _NAMES.get(tree.kind) or f"{tree.kind.__module__}:{tree.kind.__qualname__}"
    try:
        entry = [kind, [encode(name) for name in tree.names], parts]
    except TypeError as cause:
        raise ProgramFileError(
            f"a key of the structure {tree.show()} cannot be written to a file: {cause}; use strings or numbers as keys"
        ) from cause
    return entry if tree.aux is None else [*entry, _encode_aux(encode, tree)]


def _encode_aux(encode: Codec, tree: TreeDef) -> Any:
    if tree.kind is defaultdict:
        name = getattr(tree.aux, "__name__", "")
        if _FACTORIES.get(name) is not tree.aux:
            raise ProgramFileError(
                f"the structure {tree.show()} has the factory {tree.aux!r:.60}, which cannot be written to a file; "
                f"use one of {', '.join(_FACTORIES)}, or a dict"
            )
        return name
    try:
        return encode(tree.aux)
    except TypeError as cause:
        raise ProgramFileError(
            f"the static data of the structure {tree.show()} cannot be written to a file: {cause}; use strings, "
            "numbers and tuples of them"
        ) from cause


def decode_tree(decode: Codec, data: Any) -> TreeDef:
    """Decode a structure.

    Args:
        decode: decodes a metadata value.
        data: the plain data.

    Returns:
        The structure.

    Raises:
        ProgramFileError: a class is not imported, or its fields have changed.
        ValueError: the data are not a structure.
    """
    if data == "*":
        return LEAF
    kind, names, parts, *rest = data
    if not all(value.__class__ is cls for value, cls in ((kind, str), (names, list), (parts, list))):
        raise ValueError(f"{data!r:.80} is not a structure of arguments or results")
    children = tuple([decode_tree(decode, part) for part in parts])
    keys = tuple([decode(name) for name in names])
    _require_fit(kind, keys, len(children))
    aux = _decode_aux(decode, kind, rest, len(children))
    return TreeDef(_KINDS[kind] if kind in _KINDS else _container(kind, keys, aux), keys, children, aux)


def _decode_aux(decode: Codec, kind: str, rest: list[Any], parts: int) -> Any:
    if not rest:
        return None
    (data,) = rest
    if kind == "default dict":
        return _FACTORIES[data]
    aux = decode(data)
    if kind in _KINDS and (kind != "deque" or aux.__class__ is not int or aux < parts):
        raise ValueError(f"a {kind} of {parts} parts cannot have the static data {data!r:.80}")
    return aux


def _require_fit(kind: str, keys: tuple[Any, ...], parts: int) -> None:
    """Check keys and parts: a sequence has no keys, None no parts, and other kinds one part for each distinct key.

    The parts of a registered class may lack names.
    """
    unnamed = kind in _UNNAMED or (kind not in _KINDS and not keys)
    if len(set(keys)) != (0 if unnamed else parts) or len(keys) != len(set(keys)) or (kind == "none" and parts):
        raise ValueError(f"a {kind} of {parts} parts cannot have the keys {keys!r:.80}")


def _container(name: str, fields: tuple[Any, ...], aux: Any) -> type:
    # A file must not cause imports: only imported classes are found.
    module, _, path = name.partition(":")
    found: Any = sys.modules.get(module)
    for part in path.split("."):
        found = getattr(found, part, None)
    container = container_of(found) if isinstance(found, type) else None
    if container is None:
        raise ProgramFileError(
            f"arguments or results of the program are objects of class {path}, which is not there; import {module} "
            "first, and register the class with register_dataclass or register_node unless it is a namedtuple",
            container=name,
        )
    if container.fields is None:
        return found  # type: ignore[no-any-return]
    saved, now = (*fields, *_static_names(aux)), (*container.fields, *container.static)
    if saved != now:
        raise ProgramFileError(
            f"the class {path} of {module} has the fields {now} now, but the program was saved with "
            f"{saved}; load it with the class as it was",
            container=name,
        )
    return found  # type: ignore[no-any-return]


def _static_names(aux: Any) -> tuple[Any, ...]:
    """Names of the static fields; static data are pairs of a name and a value."""
    return () if aux is None else tuple([name for name, _ in aux])
