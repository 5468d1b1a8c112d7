"""`custom_rule`: a plain function with a derivative of its own, as a primitive."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, overload

import numpy as np

from tenferro_ad._trees import as_value
from tenferro_runtime import trace
from tenferro_runtime.extension import REGISTRY, General, Primitive, Rule
from tenferro_tensor import Spec, Tensor
from tenferro_tensor.ownership import owned
from tenferro_tensor_core import ArgumentError, GradientError, TracingError

Function = Callable[..., Any]


@overload
def custom_rule(
    f: Function, /, *, jvp: Function | None = ..., vjp: Function | None = ..., rule: Rule | None = ...,
    infer: Function | None = ..., family: str | None = ...,
) -> Primitive: ...  # fmt: skip
@overload
def custom_rule(
    f: None = None, /, *, jvp: Function | None = ..., vjp: Function | None = ..., rule: Rule | None = ...,
    infer: Function | None = ..., family: str | None = ...,
) -> Callable[[Function], Primitive]: ...  # fmt: skip
def custom_rule(
    f: Function | None = None,
    /,
    *,
    jvp: Function | None = None,
    vjp: Function | None = None,
    rule: Rule | None = None,
    infer: Function | None = None,
    family: str | None = None,
) -> Any:
    """Give a function a derivative of its own. One of `jvp` and `vjp` is enough: the other is its transpose.

    The function becomes a primitive: its positional parameters are arrays, its keyword-only parameters hashable
    metadata, and it is opaque to tracing, so it may call NumPy or SciPy. Its derivative is taken from the rule alone,
    in every mode and at every order (the rule itself is differentiated, so it must be written with tenferro functions
    where higher orders are wanted). Define it once, at module level; a primitive lives as long as the process.

    Args:
        f: a function of arrays to an array, or to a tuple of arrays.
        jvp: ``jvp(primals, tangents, outs, **metadata)``, the tuple of tangents of the outputs.
        vjp: ``vjp(primals, outs, cotangents, **metadata)``, the tuple of cotangents of the arrays. In all these tuples
            ``None`` stands for zero; `outs` is a tuple also where there is one output.
        rule: a rule record of `tenferro_runtime.extension` in place of the two.
        infer: maps the `Spec`s of the arrays, and the metadata, to the `Spec` of the output or the tuple of them. By
            default the function is traced to find out, for which it must be written with tenferro functions.
        family: ``"<distribution>.<op>.v<major>"``, by which a program file names the function; a process that loads
            the file must have made it before. Without it, programs that use the function cannot be saved.

    Raises:
        ArgumentError: neither or too much of a rule is given, or the function's parameters do not fit.

    >>> import numpy as np
    >>> from tenferro_ad import custom_rule, grad
    >>> @custom_rule(jvp=lambda primals, tangents, outs: (3 * primals[0] ** 2 * tangents[0],), infer=lambda x: x)
    ... def cube(x):
    ...     return np.power(x.numpy(), 3)
    >>> cube(2.0), grad(cube)(2.0), grad(grad(cube))(2.0)
    (Tensor(8.), Tensor(12.), Tensor(12.))
    """
    if rule is not None and (jvp is not None or vjp is not None):
        raise ArgumentError("custom_rule takes jvp and vjp, or a rule record in their place, but both were given")
    if rule is None and jvp is None and vjp is None:
        raise ArgumentError("custom_rule needs a jvp, a vjp or a rule record; give one of them")
    record = General(jvp=jvp, vjp=vjp) if rule is None else rule
    if f is None:
        return lambda g: _primitive(g, record, infer, family)
    return _primitive(f, record, infer, family)


def _primitive(f: Function, rule: Rule, infer: Function | None, family: str | None) -> Primitive:
    name = getattr(f, "__name__", type(f).__name__)
    signature = inspect.signature(f)
    for p in signature.parameters.values():
        if p.kind is p.VAR_KEYWORD or (p.kind is p.POSITIONAL_OR_KEYWORD and p.default is not p.empty):
            raise ArgumentError(
                f"custom_rule: parameter {p.name!r} of {name} must be an array without default, or keyword-only "
                "metadata; put a * in front of the metadata",
                parameter=p.name,
            )

    def specs_of(*specs: Spec, **params: Any) -> Any:
        return _inferred(f, name, specs, params) if infer is None else infer(*specs, **params)

    specs_of.__name__, specs_of.__doc__, specs_of.__module__ = name, f.__doc__, f.__module__
    specs_of.__signature__ = signature  # type: ignore[attr-defined]
    specs_of.__wrapped__ = f  # type: ignore[attr-defined]  # tells whether a family id is taken by other code
    primitive = Primitive(specs_of, family=family)

    def make(ins: tuple[Spec, ...], outs: tuple[Spec, ...], **params: Any) -> Function:
        many = isinstance(primitive.infer(*ins, **params), tuple)

        def run(*raws: Any) -> Any:
            result = f(*[Tensor.wrap(raw, spec) for raw, spec in zip(raws, ins)], **params)
            found = [_raw(name, x, s) for x, s in zip(_tuple(name, result, many, len(outs)), outs)]
            return tuple(found) if many else found[0]

        return run

    REGISTRY.kernel(primitive, "*", make)
    REGISTRY.rule(primitive, rule)
    return primitive


def _inferred(f: Function, name: str, specs: tuple[Spec, ...], params: dict[str, Any]) -> Any:
    many = False

    def traced(*xs: Any) -> Any:
        nonlocal many
        result = f(*xs, **params)
        many = isinstance(result, (tuple, list))
        return result

    try:
        outs = trace(traced, *specs).outputs
    except TracingError as error:
        raise TracingError(
            f"custom_rule cannot find out the shapes that {name} returns by tracing it: {error}. Give them by "
            f"infer=, a function of the specs of its arrays, as in custom_rule(infer=lambda x: x, ...)"
        ) from error
    return outs if many else outs[0]


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
                f"{name} has a rule of its own, but uses {x.spec!r} of class {type(x).__name__} from outside, "
                "which the rule does not know; pass it as an argument"
            )
        if x.spec is spec:
            return owned(x)._data
    if x.shape != spec.shape or x.dtype != spec.dtype:
        raise GradientError(
            f"{name} returned {x.dtype.name}{list(x.shape)} where its inference says {spec!r}; correct infer, or "
            "convert the result"
        )
    # The function may keep an array that it returns, and write to it in its next call.
    return x.copy() if isinstance(x, (np.ndarray, np.generic)) else owned(x)._data
