"""Structures of arguments and results as plain data; classes are found among those that the program has imported."""

from __future__ import annotations

import sys
from typing import Any, Final

from tenferro_runtime.files._decode import Decoder
from tenferro_runtime.files._encode import Encoder
from tenferro_runtime.files._errors import ProgramFileError
from tenferro_runtime.trees._tree import LEAF, TreeDef, fields_of

_KINDS: Final[dict[str, type]] = {"list": list, "tuple": tuple, "dict": dict, "none": type(None)}
_NAMES: Final = {kind: name for name, kind in _KINDS.items()}


def encode_tree(encoder: Encoder, tree: TreeDef) -> Any:
    """A structure: ``"*"`` for a leaf, else ``[kind, names, parts]``."""
    if tree.kind is None:
        return "*"
    parts = [encode_tree(encoder, child) for child in tree.children]
    kind = _NAMES.get(tree.kind) or f"{tree.kind.__module__}:{tree.kind.__qualname__}"
    try:
        return [kind, [encoder.value(name) for name in tree.names], parts]
    except TypeError as cause:
        raise ProgramFileError(
            f"a key of the structure {tree.show()} cannot be written to a file: {cause}; use strings or numbers as keys"
        ) from cause


def decode_tree(decoder: Decoder, data: Any) -> TreeDef:
    """The structure.

    Raises:
        ProgramFileError: a class of it has not been imported, or has other fields now.
        ValueError: it is none that a tree can have.
    """
    if data == "*":
        return LEAF
    kind, names, parts = data
    if not all(value.__class__ is cls for value, cls in ((kind, str), (names, list), (parts, list))):
        raise ValueError(f"{data!r:.80} is no structure of arguments or results")
    children = tuple([decode_tree(decoder, part) for part in parts])
    keys = tuple([decoder.value(name) for name in names])
    _require_fit(kind, keys, len(children))
    return TreeDef(_KINDS[kind] if kind in _KINDS else _container(kind, keys), keys, children)


def _require_fit(kind: str, keys: tuple[Any, ...], parts: int) -> None:
    """A list or tuple has no keys, None no parts, and everything else one part for each of its distinct keys."""
    unnamed = kind in ("list", "tuple", "none")
    if len(set(keys)) != (0 if unnamed else parts) or len(keys) != len(set(keys)) or (kind == "none" and parts):
        raise ValueError(f"a {kind} of {parts} parts cannot have the keys {keys!r:.80}")


def _container(name: str, fields: tuple[Any, ...]) -> type:
    # A file must not decide what is imported: only classes that are already imported are found.
    module, _, path = name.partition(":")
    found: Any = sys.modules.get(module)
    for part in path.split("."):
        found = getattr(found, part, None)
    if not isinstance(found, type) or fields_of(found) is None:
        raise ProgramFileError(
            f"arguments or results of the program are objects of class {path}, which is not there; import {module} "
            "first, and register the class with register_dataclass unless it is a namedtuple",
            container=name,
        )
    if fields_of(found) != fields:
        raise ProgramFileError(
            f"the class {path} of {module} has the fields {fields_of(found)} now, but the program was saved with "
            f"{fields}; load it with the class as it was",
            container=name,
        )
    return found
