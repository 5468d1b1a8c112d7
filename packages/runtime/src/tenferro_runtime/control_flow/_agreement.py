"""The law of carries and branches: a body preserves the structure, shapes and dtypes of its carry."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tenferro_runtime.control_flow._values import LeafKind, kind_of, name_of, number_kind, weak_class, wider
from tenferro_runtime.ir._source import here
from tenferro_runtime.trees._tree import TreeDef
from tenferro_tensor import SCALARS, catalog, tensor
from tenferro_tensor_core import TenferroError, ask, weak


class StructureError(TenferroError, TypeError):
    """Two branches return different specs, or a carry changes its structure, shape or dtype in the body of a loop.

    The message names the leaf, both specs, and the lines of the call and of the function. Pad or slice to one shape,
    convert with ``astype``, or start the loop with an array of the shape and dtype that the body returns.
    """


def require_tree(what: str, expected: TreeDef, whose: str, seen: TreeDef, f: Any) -> None:
    """Check that two trees have equal structures."""
    if expected is not seen:
        raise StructureError(
            f"{what}{here()}: {name_of(f)} returned the structure {seen.show()}, but {whose} has {expected.show()}; "
            "return the same nesting",
            expected=expected.show(),
            seen=seen.show(),
        )


def fits_number(cls: type, kind: LeafKind) -> bool:
    """Whether a Python number of a class converts to an array of this kind."""
    return kind.spec.shape == () and weak(cls, kind.spec.dtype) == kind.spec.dtype


def next_kind(entry: LeafKind, out: Any) -> LeafKind:
    """The kind of a carry for the next trace: a number takes the kind of the body's result, an array keeps its own."""
    if entry.weak is None:
        return entry
    cls = weak_class(out)
    if cls is not None:
        cls = wider(entry.weak, cls)
        return entry if cls is entry.weak else number_kind(cls)
    found = kind_of(out)
    return found if fits_number(entry.weak, found) else entry


def same_carry(what: str, paths: Sequence[str], entry: Sequence[LeafKind], outs: Sequence[Any], f: Any) -> list[Any]:
    """The leaves that a body returned, each converted to the kind that it had on entry.

    Raises:
        StructureError: an array was returned with another shape or dtype.
    """
    return [
        out if out.__class__ not in SCALARS and out.spec is kind.spec else _same_leaf(what, path, kind, out, f)
        for path, kind, out in zip(paths, entry, outs, strict=True)
    ]


def _same_leaf(what: str, path: str, kind: LeafKind, out: Any, f: Any) -> Any:
    found = kind_of(out)
    if found.weak is not None and kind.weak is None and fits_number(found.weak, kind):
        return in_kind(out, kind)
    if found.weak is not None and kind.weak is not None and wider(found.weak, kind.weak) is kind.weak:
        return in_kind(out, kind)
    same_type = found.spec.with_(shape=()) is kind.spec.with_(shape=()) and found.spec.ndim == kind.spec.ndim
    if same_type and all(ask(a, "==", b) for a, b in zip(found.spec.shape, kind.spec.shape, strict=True)):
        return out if out.spec is kind.spec else catalog.reshape(out, shape=kind.spec.shape)
    before = f"the number {kind.weak.__name__}" if kind.weak is not None else repr(kind.spec)
    raise StructureError(
        f"{what}{here()}: carry{path} is {before} before the body {name_of(f)} and {found.spec!r} after it; a carry "
        "keeps its shape and dtype: start with an array like the one that the body returns, or bring the result back "
        "with astype, reshape or a slice",
        leaf=path,
        before=repr(kind.spec),
        after=repr(found.spec),
    )


def joined_kinds(
    what: str, paths: Sequence[str], outs: Sequence[Sequence[Any]], functions: Sequence[Callable[..., Any]]
) -> list[LeafKind]:
    """The common kind of each output of all branches; numbers take the kind of the arrays of other branches.

    Raises:
        StructureError: two branches differ.
    """
    found = []
    for i, path in enumerate(paths):
        kinds = [kind_of(leaves[i]) for leaves in outs]
        arrays = [k for k, kind in enumerate(kinds) if kind.weak is None]
        if not arrays:
            cls: Any = kinds[0].weak
            for kind in kinds:
                cls = wider(cls, kind.weak)  # type: ignore[arg-type]
            found.append(number_kind(cls))
            continue
        first = arrays[0]
        goal = kinds[first]
        for k, kind in enumerate(kinds):
            agrees = kind.spec is goal.spec if kind.weak is None else fits_number(kind.weak, goal)
            if not agrees:
                raise StructureError(
                    f"{what}{here()}: result{path} is {goal.spec!r} in {name_of(functions[first])}, but {kind.spec!r} "
                    f"in {name_of(functions[k])}; all branches return one shape and dtype: convert with astype, or "
                    "broadcast to one shape",
                    leaf=path,
                    specs=(repr(goal.spec), repr(kind.spec)),
                )
        found.append(goal)
    return found


def in_kind(x: Any, kind: LeafKind) -> Any:
    """A value or number as an array of the given kind."""
    if x.__class__ in SCALARS:
        return tensor(x, dtype=kind.spec.dtype, device=kind.spec.place.device)
    return x if x.spec is kind.spec else catalog.convert(x, dtype=kind.spec.dtype)
