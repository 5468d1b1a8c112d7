"""`custom_rule`: makes a primitive of a plain function and a derivative rule for it."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, Protocol, TypeVar, overload

import numpy as np

from tenferro_ad._custom_batching import LanesRule
from tenferro_ad._custom_lowering import traced_lowering
from tenferro_ad._custom_trees import TreeRule
from tenferro_ad._trees import as_value
from tenferro_runtime import trace
from tenferro_runtime.compiling import outer_values
from tenferro_runtime.extension import REGISTRY, General, Primitive, Rule
from tenferro_runtime.trees import LEAF, TreeDef, flatten, unflatten
from tenferro_tensor import Spec, Tensor
from tenferro_tensor.ownership import owned
from tenferro_tensor_core import ArgumentError, GradientError, TracingError

Function = Callable[..., Any]
P = ParamSpec("P")
R = TypeVar("R")


if TYPE_CHECKING:

    class RuleDecorator(Protocol):
        """`custom_rule` without a function."""

        def __call__(self, f: Callable[P, R], /) -> CustomFunction[P, R]:
            """Make a function with the rule."""


@overload
def custom_rule(
    f: Callable[P, R], /, *, jvp: Function | None = ..., vjp: Function | None = ..., rule: Rule | None = ...,
    infer: Function | None = ..., static_argnames: str | Iterable[str] = ..., family: str | None = ...,
) -> CustomFunction[P, R]: ...  # fmt: skip
@overload
def custom_rule(
    f: None = None, /, *, jvp: Function | None = ..., vjp: Function | None = ..., rule: Rule | None = ...,
    infer: Function | None = ..., static_argnames: str | Iterable[str] = ..., family: str | None = ...,
) -> RuleDecorator: ...  # fmt: skip
def custom_rule(
    f: Function | None = None,
    /,
    *,
    jvp: Function | None = None,
    vjp: Function | None = None,
    rule: Rule | None = None,
    infer: Function | None = None,
    static_argnames: str | Iterable[str] = (),
    family: str | None = None,
) -> Any:
    """Define the derivative of a function. One of `jvp` and `vjp` suffices: the other is its transpose.

    The function becomes a primitive: its positional parameters are pytrees of arrays, its keyword-only parameters are
    hashable metadata. It is opaque to tracing, so it may call NumPy or SciPy. Every mode and order of differentiation
    uses the rule; higher orders differentiate the rule itself, which must then be written with tenferro functions.
    Neither the function nor its rule may close over differentiated or traced values. Define it once, at module level:
    a primitive lives as long as the process.

    Args:
        f: a function of pytrees of arrays to an array, or to a pytree of arrays; without it, returns a decorator.
        jvp: ``jvp(primals, tangents, outs, **metadata)``, which returns the tuple of tangents of the outputs.
        vjp: ``vjp(primals, outs, cotangents, **metadata)``, which returns the tuple of cotangents of the arguments. In
            all these tuples ``None`` stands for zero; inside containers zeros are arrays, and ``None`` stands for the
            tangent of an integer. `outs` is a tuple even if there is one output.
        rule: a rule record of `tenferro_runtime.extension`, instead of `jvp` and `vjp`, for arguments that are arrays.
        infer: maps the `Spec`s of the arguments, in their containers, and the metadata, to the `Spec`s of the result.
            By default the function is traced, so it must be written with tenferro functions.
        static_argnames: names of positional parameters that are also metadata: functions, options, sizes.
        family: ``"<distribution>.<op>.v<major>"``, the name of the function in program files; a process must define
            the function before it loads such a file. Without it, programs that use the function cannot be saved.

    Returns:
        The primitive, a `CustomFunction`; without `f`, a decorator that makes one.

    Raises:
        ArgumentError: no rule or more than one rule is given, or the function's parameters do not fit.

    See also:
        custom_root, custom_linear_solve: derivatives of functions that are defined by equations.

    >>> import numpy as np
    >>> from tenferro_ad import custom_rule, grad
    >>> @custom_rule(jvp=lambda primals, tangents, outs: (3 * primals[0] ** 2 * tangents[0],), infer=lambda x: x)
    ... def cube(x):
    ...     return np.power(x.numpy(), 3)
    >>> cube(2.0), grad(cube)(2.0), grad(grad(cube))(2.0)
    (Tensor(8.), Tensor(12.), Tensor(12.))
    >>> @custom_rule(vjp=lambda primals, outs, cotangents: ({"re": cotangents[0], "im": -cotangents[0]},))
    ... def total(z):
    ...     return z["re"] + z["im"]
    >>> grad(total)({"re": 1.0, "im": 2.0})
    {'re': Tensor(1.), 'im': Tensor(-1.)}
    """
    if rule is not None and (jvp is not None or vjp is not None):
        raise ArgumentError("custom_rule takes jvp and vjp, or a rule record in their place, but both were given")
    if rule is None and jvp is None and vjp is None:
        raise ArgumentError("custom_rule needs a jvp, a vjp or a rule record; give one of them")
    record = General(jvp=jvp, vjp=vjp) if rule is None else rule
    static = (static_argnames,) if isinstance(static_argnames, str) else tuple(static_argnames)
    if f is None:
        return lambda g: CustomFunction(g, record, infer, static, family)
    return CustomFunction(f, record, infer, static, family)


class _NotFlat(Exception):
    """Raised when a function of arrays returns its result in containers."""


class CustomFunction(Primitive, Generic[P, R]):
    """A function with its own derivative rule. Calls with nested containers go to a primitive of their leaves.

    Args:
        f: the function.
        rule: its derivative.
        infer: maps specs to specs, or ``None``.
        static: names of positional parameters that are metadata.
        family: its id in program files, or ``None``.
    """

    def __init__(
        self, f: Function, rule: Rule, infer: Function | None, static: tuple[str, ...], family: str | None
    ) -> None:
        name = getattr(f, "__name__", type(f).__name__)
        self._signature = _read(f, name, static) if static else None
        self._f = f if self._signature is None else _arrays_first(f, self._signature, static)
        self._record, self._given, self._flat = rule, infer, True
        signature = _checked(inspect.signature(f), name, static)

        def specs_of(*specs: Spec, **params: Any) -> Any:
            return self._flat_specs(specs, params)

        specs_of.__name__, specs_of.__doc__, specs_of.__module__ = name, f.__doc__, f.__module__
        specs_of.__signature__ = signature  # type: ignore[attr-defined]
        specs_of.__wrapped__ = f  # type: ignore[attr-defined]  # to detect a family id that other code uses
        super().__init__(specs_of, family=family)
        self._static = frozenset(self.metadata)
        REGISTRY.kernel(self, "*", self._kernel)
        REGISTRY.lowering(self, traced_lowering(name, self._leaves))
        REGISTRY.rule(self, rule)
        stem, _, version = (family or "").rpartition(".v")
        self._trees = (
            TreeRule(self._f, name, self.metadata, self._specs, _raw, rule, family and f"{stem}_of_trees.v{version}")
            if isinstance(rule, General)
            else None
        )
        # A function with its own inference may be opaque, so it runs lane by lane.
        if isinstance(rule, General) and rule.forward is None and infer is None:
            LanesRule(self, self._leaves, _raw, rule, family and f"{stem}_of_lanes.v{version}")
            if self._trees is not None:
                self._trees.map_over_lanes(family and f"{stem}_of_trees_of_lanes.v{version}")

    def __call__(self, *args: P.args, **params: P.kwargs) -> R:
        """Apply the function to arrays, or to pytrees of arrays."""
        result: R = self._applied(args, params)
        return result

    def _applied(self, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        if self._signature is not None:
            args, params = _sorted(self._signature, self._static, args, params)
        if self._flat and _flat(flatten(args)[1]):
            try:
                return super().__call__(*args, **params)
            except _NotFlat:
                self._flat = False
        if self._trees is None:
            raise ArgumentError(
                f"{self.name} has a rule record, which is for arrays, but its arguments or results are in containers; "
                "give it a jvp or a vjp"
            )
        return self._trees(args, {**self._defaults, **params})

    def _flat_specs(self, specs: tuple[Spec, ...], params: dict[str, Any]) -> Any:
        found = self._specs(*specs, **params)
        tree = flatten(found)[1]
        if tree is not LEAF and (tree.kind is not tuple or not _flat(tree)):
            raise _NotFlat
        return found

    def _specs(self, *args: Any, **params: Any) -> Any:
        """Specs of the result, in its containers."""
        rule = self._record
        sides = (rule.jvp, rule.vjp) if isinstance(rule, General) else ()
        for g in (self._f, *sides, *params.values()):
            for variable, value in outer_values(g) if callable(g) else ():
                raise GradientError(
                    f"{self.name} has its own derivative rule, but closes over {variable}, {value.spec!r} of class "
                    f"{type(value).__name__}, which the rule does not know; pass it as an argument",
                    variable=variable,
                )
        return _inferred(self._f, self.name, args, params) if self._given is None else self._given(*args, **params)

    def _leaves(self, values: Sequence[Any], params: dict[str, Any]) -> list[Any]:
        return flatten(self._f(*values, **params))[0]

    def _kernel(self, ins: tuple[Spec, ...], outs: tuple[Spec, ...], **params: Any) -> Function:
        many = isinstance(self.infer(*ins, **params), tuple)

        def run(*raws: Any) -> Any:
            result = self._f(*[Tensor.wrap(raw, spec) for raw, spec in zip(raws, ins)], **params)
            found = [_raw(self.name, x, s) for x, s in zip(_tuple(self.name, result, many, len(outs)), outs)]
            return tuple(found) if many else found[0]

        return run


def _flat(tree: TreeDef) -> bool:
    """Whether a tree has children, all of them leaves."""
    return bool(tree.children) and all(child is LEAF for child in tree.children)


def _checked(signature: inspect.Signature, name: str, static: tuple[str, ...]) -> inspect.Signature:
    """The signature, with the static parameters made keyword-only."""
    parameters = list(signature.parameters.values())
    for p in parameters:
        fixed = p.name in static
        if p.kind is p.VAR_KEYWORD or (p.kind is p.POSITIONAL_OR_KEYWORD and p.default is not p.empty and not fixed):
            raise ArgumentError(
                f"custom_rule: parameter {p.name!r} of {name} must be an array without a default, or keyword-only "
                "metadata; put a * in front of the metadata, or name it in static_argnames",
                parameter=p.name,
            )
    arrays = [p for p in parameters if p.kind is not p.KEYWORD_ONLY and p.name not in static]
    rest = [p.replace(kind=p.KEYWORD_ONLY) for p in parameters if p.kind is p.KEYWORD_ONLY or p.name in static]
    return signature.replace(parameters=[*arrays, *rest])


def _read(f: Function, name: str, static: tuple[str, ...]) -> inspect.Signature:
    """The signature of a function, checked to have the static parameters.

    Raises:
        ArgumentError: it lacks one, or takes it by position only.
    """
    signature = inspect.signature(f)
    for n in static:
        p = signature.parameters.get(n)
        if p is None or p.kind in (p.POSITIONAL_ONLY, p.VAR_POSITIONAL, p.VAR_KEYWORD):
            raise ArgumentError(
                f"custom_rule: static_argnames={n!r} names no parameter of {name} that can be passed by keyword; its "
                f"signature is {signature}",
                parameter=n,
            )
    return signature


def _arrays_first(f: Function, signature: inspect.Signature, static: tuple[str, ...]) -> Function:
    """The function with arrays as positional and static arguments as keyword parameters."""
    order = [p.name for p in signature.parameters.values() if p.kind is p.POSITIONAL_OR_KEYWORD]

    @functools.wraps(f)
    def called(*arrays: Any, **params: Any) -> Any:
        rest = iter(arrays)
        args = [params.pop(n) if n in static else next(rest) for n in order]
        return f(*args, *rest, **params)

    return called


def _sorted(
    signature: inspect.Signature, static: frozenset[str], args: tuple[Any, ...], params: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Split bound arguments into positional arrays and keyword metadata."""
    bound = signature.bind(*args, **params)
    bound.apply_defaults()
    arrays: list[Any] = []
    for name, value in bound.arguments.items():
        if name not in static:
            arrays += value if signature.parameters[name].kind is inspect.Parameter.VAR_POSITIONAL else [value]
    return tuple(arrays), {name: value for name, value in bound.arguments.items() if name in static}


def _inferred(f: Function, name: str, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
    tree: Any = None

    def traced(*xs: Any) -> Any:
        nonlocal tree
        result = f(*xs, **params)
        tree = flatten(result)[1]
        return result

    try:
        outs = trace(traced, *args).outputs
    except TracingError as error:
        raise TracingError(
            f"custom_rule cannot infer the shapes that {name} returns by tracing it: {error}. Pass infer=, a "
            f"function of the specs of its arrays, as in custom_rule(infer=lambda x: x, ...)"
        ) from error
    return unflatten(tree, outs)


def _tuple(name: str, result: Any, many: bool, count: int) -> tuple[Any, ...]:
    if not many:
        return (result,)
    if not isinstance(result, (tuple, list)) or len(result) != count:
        raise GradientError(f"{name} should return {count} arrays, as its inference says, but returned {result!r:.80}")
    return tuple(result)


def _raw(name: str, x: Any, spec: Spec) -> Any:
    if not isinstance(x, (np.ndarray, np.generic)):
        x = as_value(x)
        if x.__class__ is not Tensor:
            raise GradientError(
                f"{name} has its own derivative rule, but closes over {x.spec!r} of class {type(x).__name__}, "
                "which the rule does not know; pass it as an argument"
            )
        if x.spec is spec:
            return owned(x)._data
    if x.shape != spec.shape or x.dtype != spec.dtype:
        raise GradientError(
            f"{name} returned {x.dtype.name}{list(x.shape)} where its inference says {spec!r}; correct infer, or "
            "convert the result"
        )
    # Copy: the function may keep the array that it returns and overwrite it in its next call.
    return x.copy() if isinstance(x, (np.ndarray, np.generic)) else owned(x)._data
