"""Checks that leaves of equations and solutions have the equation's structure, shapes and dtypes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from tenferro_ad._apply import same_sizes
from tenferro_ad._differentiated import Differentiated
from tenferro_ad._trees import as_value
from tenferro_runtime import StructureError
from tenferro_runtime.ir import here
from tenferro_runtime.tracing import staged
from tenferro_runtime.trees import LEAF, TreeDef, flatten, flatten_like, unflatten
from tenferro_tensor import SCALARS, Primitive, Spec, catalog
from tenferro_tensor_core import ArgumentError, GradientError, TenferroError, weak


def unknowns(x: Any, what: str, f: Callable[..., Any] | None = None) -> tuple[list[Any], TreeDef]:
    """The leaves of the unknowns of an equation, as values.

    Args:
        x: the unknowns.
        what: their name in messages.
        f: the function of the equation; a Python number takes the dtype of f's result, like the carry of a loop.

    Raises:
        GradientError: an unknown is neither real nor complex floating point.
    """
    leaves, tree = flatten(x)
    values = [as_value(leaf) for leaf in leaves]
    if f is not None and any(leaf.__class__ in SCALARS for leaf in leaves):
        values = _settled(leaves, values, tree, f)
    for v, path in zip(values, tree.paths(), strict=True):
        if not v.spec.inexact:
            raise GradientError(
                f"{what}{path} is {v.spec!r}{here()}, but the unknowns of an equation are real or complex floating-"
                "point values; convert it with .astype('float64'), or let the functions close over it",
                spec=repr(v.spec),
            )
    return values, tree


def _settled(leaves: list[Any], values: list[Any], tree: TreeDef, f: Callable[..., Any]) -> list[Any]:
    classes = [leaf.__class__ if leaf.__class__ in SCALARS else None for leaf in leaves]
    specs: list[Spec] = []

    def recorded(*xs: Any) -> tuple[()]:
        outs, seen = flatten(f(unflatten(tree, xs)))
        if seen is tree:
            specs.extend([v.spec if o.__class__ in SCALARS else as_value(o).spec for o, v in zip(outs, values)])
        return ()

    staged(recorded, [v.spec for v in values], weak=classes)
    if not specs:
        return values  # an error, once the function is recorded
    return [
        v if cls is None or s.shape or not s.inexact or weak(cls, s.dtype) != s.dtype else _number(leaf, s)
        for leaf, v, cls, s in zip(leaves, values, classes, specs, strict=True)
    ]


def _number(x: Any, spec: Spec) -> Any:
    return Primitive.adopt(x, dtype=spec.dtype, device=spec.place.device)


def require_functions(name: str, **functions: Any) -> None:
    """Raise unless all arguments are callable.

    Raises:
        ArgumentError: one is not.
    """
    for parameter, f in functions.items():
        if not callable(f):
            raise ArgumentError(f"{name} needs a function as {parameter}{here()}, got {f!r:.80}", parameter=parameter)


def matched(out: Any, tree: TreeDef, specs: Sequence[Spec], what: str, like: str) -> list[Any]:
    """The leaves of a result with required structure, shapes and dtypes; a Python number takes the dtype.

    Raises:
        StructureError: they differ.
    """
    leaves = nested(out, tree, f"{what}{here()} returned the structure {{0}}, but {like} has {{1}}")
    return [
        fitting(x, spec, f"{what}{here()} returned {{0!r}} at result{path}, but {like} has {{1!r}} there; convert it")
        for x, spec, path in zip(leaves, specs, tree.paths(), strict=True)
    ]


def nested(x: Any, tree: TreeDef, message: str) -> list[Any]:
    """The leaves of a tree with a required structure.

    Raises:
        StructureError: it has another structure; the text is `message`, formatted with both.
    """
    seen = flatten(x)[1]
    try:
        if tree is not LEAF or seen is LEAF:
            return flatten_like(tree, x)
    except ArgumentError:
        pass
    message = message.format(seen.show(), tree.show())
    raise StructureError(f"{message}; use the same nesting", expected=tree.show(), seen=seen.show())


def fitting(x: Any, spec: Spec, message: str) -> Any:
    """A leaf as a value with a required spec.

    Raises:
        StructureError: it has another spec; the text is `message`, formatted with both.
    """
    if x.__class__ in SCALARS:
        if spec.shape or (x.__class__ is complex and not spec.cplx):
            _refuse(message, x, spec)
        return _number(x, spec)
    try:
        v = as_value(x)
    except TenferroError:
        _refuse(message, x, spec)
    if v.spec is spec:
        return v
    v = same_sizes(v, spec)
    if v.spec.shape != spec.shape:
        _refuse(message, v.spec, spec)
    if v.spec.dtype != spec.dtype:
        if v._number_class() is None:
            _refuse(message, v.spec, spec)
        v = catalog.convert(v, dtype=spec.dtype)
    return v


def _refuse(message: str, seen: Any, spec: Spec) -> NoReturn:
    raise StructureError(message.format(seen, spec), seen=repr(seen), expected=repr(spec))


def plain(x: Any) -> Any:
    """The value inside all levels of differentiation."""
    while isinstance(x, Differentiated):
        x = x.value
    return x


def constant(values: Sequence[Any]) -> bool:
    """Whether no transform (derivative, trace, `vmap`) applies to values."""
    return not any(v.level for v in values)
