"""Finds the rule of a primitive, and injects arguments into rule functions by parameter name."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Final
from weakref import WeakKeyDictionary

from tenferro_runtime.extension import check_rule
from tenferro_tensor import REGISTRY, Op, Primitive, Spec
from tenferro_tensor_core import GradientError, MissingRuleError
from tenferro_tensor_core.forks import importing, new_lock

_lock = new_lock()
_core_rules = False
_checked: Final[WeakKeyDictionary[Primitive, Any]] = WeakKeyDictionary()
"""Rules that have been checked to fit their primitives."""

RULE_MAKERS: Final[list[Callable[[Primitive], Any | None]]] = []
"""Factories tried in turn for the rule of a primitive that has none in the registry."""


def rule_of(op: Op) -> Any:
    """The rule record of an op's primitive.

    Raises:
        MissingRuleError: there is none; the message names the primitive, its family and how to add a rule.
        RegistryError: the registered rule does not fit the primitive.
    """
    global _core_rules
    p = op.primitive
    rule = REGISTRY.find("rule", p)
    if rule is None and not _core_rules:
        with _lock:
            if not _core_rules:
                with importing():
                    from tenferro_ad import rules

                rules.register(REGISTRY)
                _core_rules = True
        rule = REGISTRY.find("rule", p)
    for make in RULE_MAKERS if rule is None else ():
        rule = make(p)
        if rule is not None:
            return rule
    if rule is None:
        raise MissingRuleError(f"{p.name} cannot be differentiated: {_absence(p)}", primitive=p.name, family=p.family)
    if _checked.get(p) is not rule:
        made = REGISTRY.registration("rule", p)
        if made is not None and not made.owner.ours:
            check_rule(p, rule)
        _checked[p] = rule
    return rule


def _absence(p: Primitive) -> str:
    whose = f" of family {p.family!r}" if p.family else ""
    if p.extension:
        return (
            f"the extension {p.extension!r} defines the primitive{whose} but no derivative rule for it; "
            "register one with registry.rule(), or stop the gradient of its operands with stop_gradient"
        )
    return (
        f"no derivative rule is registered for the primitive{whose}; register one with REGISTRY.rule(), wrap the "
        "function with custom_rule, or stop the gradient of its operands with stop_gradient"
    )


def missing_operand(op: Op, operand: str) -> MissingRuleError:
    """The error for an operand that a rule does not cover."""
    p = op.primitive
    whose = f" (family {p.family!r})" if p.family else ""
    return MissingRuleError(
        f"{p.name}{whose} has a derivative rule, but none for its operand {operand!r}; complete the rule, or stop the "
        "gradient of that operand with stop_gradient",
        primitive=p.name,
        family=p.family,
        operand=operand,
    )


_wanted: dict[Callable[..., Any], tuple[str, ...]] = {}
WANTED_MAX: Final = 4096
"""Bound of the cache of parameter names."""


def wanted(function: Callable[..., Any]) -> tuple[str, ...]:
    """Names of the parameters of a rule function: the values to inject, hence to save."""
    names = _wanted.get(function)
    if names is None:
        names = tuple(inspect.signature(function).parameters)
        if len(_wanted) >= WANTED_MAX:
            _wanted.clear()
        _wanted[function] = names
    return names


def operand_name(primitive: Primitive, i: int) -> str:
    """Name of the i-th operand; variadic operands share one name."""
    names = primitive.operands
    return names[min(i, len(names) - 1)].lstrip("*")


class Scope:
    """The names available to rule functions: operands, ``out``, ``<operand>_spec``, metadata, and ``g`` in a transpose.

    The name of a variadic operand stands for the tuple of its values, and its ``_spec`` for the tuple of their specs.
    """

    __slots__ = ("g", "ins", "op", "outs", "specs")

    def __init__(self, op: Op, specs: tuple[Spec, ...], ins: list[Any], outs: list[Any], g: Any = None) -> None:
        self.op, self.specs, self.ins, self.outs, self.g = op, specs, ins, outs, g

    def __getitem__(self, name: str) -> Any:
        if name == "g":
            return self.g
        params = self.op.params
        if name in params:
            return params[name]
        if name == "out":
            return self.outs[0] if len(self.outs) == 1 else tuple(self.outs)
        source: Any = self.ins
        bare = name
        if name.endswith("_spec"):
            source, bare = self.specs, name[:-5]
        names = self.op.primitive.operands
        if bare in names:
            return source[names.index(bare)]
        if names and names[-1] == f"*{bare}":
            return tuple(source[len(names) - 1 :])
        raise GradientError(
            f"the rule of {self.op.primitive.name} asks for {name!r}; it may name g, out, the operands "
            f"({', '.join(names)}), <operand>_spec and the metadata ({', '.join(params) or 'none'})",
            primitive=self.op.primitive.name,
            name=name,
        )

    def call(self, function: Callable[..., Any]) -> Any:
        """Call a rule function with the values that its parameters name."""
        return function(*[self[name] for name in wanted(function)])


def indices_wanted(op: Op, count: int, nout: int, function: Callable[..., Any]) -> set[int]:
    """Positions, among `count` operands followed by `nout` outputs, of the values that a rule function names."""
    names = op.primitive.operands
    found: set[int] = set()
    for name in wanted(function):
        if name == "out":
            found.update(range(count, count + nout))
        elif name in op.params or name == "g":
            continue
        elif name in names:
            found.add(names.index(name))
        elif names and names[-1] == f"*{name}":
            found.update(range(len(names) - 1, count))
    return found
