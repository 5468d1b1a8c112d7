"""Checks that a rule record fits its primitive."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Final

from tenferro_runtime._rules import General, Linear, Rule, Slopes
from tenferro_tensor import Primitive
from tenferro_tensor.hooks import require_call
from tenferro_tensor_core import RegistryError


def check_rule(primitive: Primitive, rule: Rule) -> None:
    """Check that the operands of a rule exist and that its functions name their parameters.

    Args:
        primitive: the primitive.
        rule: the rule record.

    Raises:
        RegistryError: the rule does not fit; the text names the entry and the allowed parameters.

    >>> from tenferro_tensor import catalog
    >>> check_rule(catalog.tanh, Slopes(x=lambda out: 1 - out * out))
    >>> check_rule(catalog.tanh, Slopes(x=lambda y: y))
    Traceback (most recent call last):
    tenferro_tensor_core._errors.RegistryError: Slopes(x=...) of tanh asks for 'y'; it may ask for out, x, x_spec
    """
    if not isinstance(rule, Rule):
        raise RegistryError(
            f"the rule of {primitive.name} is {rule!r:.80}, which is not a rule record; register Slopes, Linear, "
            "General, Within or Inactive of tenferro_runtime.extension",
            primitive=primitive.name,
        )
    if isinstance(rule, Slopes) and not primitive.elementwise:
        raise RegistryError(
            f"Slopes is for element-wise primitives, and {primitive.name} is not; use Linear or General",
            primitive=primitive.name,
        )
    if isinstance(rule, (Slopes, Linear)):
        operands = {name.lstrip("*") for name in primitive.operands}
        own = {"out", "g"} if isinstance(rule, Linear) else {"out"}
        if taken := own & (operands | {*primitive.metadata}):
            raise RegistryError(
                f"{primitive.name} has a parameter {taken.pop()!r}, a name that the functions of a rule have for the "
                "output or its cotangent; rename it, or register General",
                primitive=primitive.name,
            )
        known = operands | {f"{n}_spec" for n in operands} | {*primitive.metadata} | own
        for operand, entry in rule.operands.items():
            what = f"{type(rule).__name__}({operand}=...) of {primitive.name}"
            if operand not in operands:
                raise RegistryError(
                    f"{what}: there is no such operand; there are {', '.join(sorted(operands))}",
                    primitive=primitive.name,
                )
            if callable(entry):
                _check_parameters(what, entry, known, primitive)
    if isinstance(rule, General) and not primitive.operands:
        raise RegistryError(f"{primitive.name} has no operands, hence no derivative rule", primitive=primitive.name)
    if isinstance(rule, General):
        for name, positional in _GENERAL.items():
            function = getattr(rule, name)
            if function is not None:
                shown = f"({', '.join([*positional, *primitive.metadata])})"
                what = f"General({name}=...) of {primitive.name}"
                require_call(what, primitive, function, positional, shown, primitive.metadata)


_GENERAL: Final = {
    "jvp": ("primals", "tangents", "outs"),
    "vjp": ("primals", "outs", "cotangents"),
    "forward": ("primals", "tangents"),
}


def _check_parameters(what: str, rule: Callable[..., Any], known: set[str], primitive: Primitive) -> None:
    parameters = inspect.signature(rule).parameters.values()
    unnamed = [str(p) for p in parameters if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    if unnamed:
        raise RegistryError(
            f"{what} takes {', '.join(unnamed)}, but arguments of rules are passed by name; name each parameter",
            primitive=primitive.name,
        )
    unknown = [repr(p.name) for p in parameters if p.name not in known]
    if unknown:
        raise RegistryError(
            f"{what} asks for {', '.join(unknown)}; it may ask for {', '.join(sorted(known))}",
            primitive=primitive.name,
        )
