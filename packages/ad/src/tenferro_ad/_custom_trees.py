"""Functions with custom rules whose arguments or results are pytrees: a primitive of the leaves."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, Final

from tenferro_ad._custom_batching import LanesRule
from tenferro_ad._custom_lowering import traced_lowering
from tenferro_ad._trees import as_values
from tenferro_ad._zeros import zeros_like
from tenferro_runtime.extension import REGISTRY, BoundedCache, General, Primitive
from tenferro_runtime.trees import LEAF, TreeDef, flatten, flatten_like, unflatten
from tenferro_tensor import Spec, Tensor
from tenferro_tensor_core import ArgumentError, GradientError, key_of

Function = Callable[..., Any]

STRUCTURES_MAX: Final = 1024
"""Bound of the cache of result structures of one function, by kind of arguments."""


class TreeRule:
    """Calls a function of trees as a primitive of their leaves.

    Args:
        f: the function of trees.
        name: its name.
        metadata: names of its static arguments.
        specs_of: maps trees of specs, and static arguments, to the tree of specs of the result.
        raw: converts a returned leaf to the raw output of a spec.
        rule: the derivative, as a function of trees.
        family: the id of the primitive, or ``None``.
    """

    def __init__(
        self,
        f: Function,
        name: str,
        metadata: Sequence[str],
        specs_of: Function,
        raw: Callable[[str, Any, Spec], Any],
        rule: General,
        family: str | None,
    ) -> None:
        self._f, self._name, self._specs_of, self._raw, self._rule = f, name, specs_of, raw, rule
        self._structures: BoundedCache[Any, TreeDef] = BoundedCache(f"custom_rule({name})", STRUCTURES_MAX)

        def infer(*leaves: Spec, tree: TreeDef, made: TreeDef, **params: Any) -> tuple[Spec, ...]:
            outs, found = self._inferred(leaves, tree, params)
            if found is not made:
                raise GradientError(
                    f"{name} returned the structure {made.show()} when it was recorded, but has {found.show()} now"
                )
            return outs

        infer.__name__, infer.__doc__, infer.__module__ = name, f.__doc__, f.__module__
        keywords = [inspect.Parameter(n, inspect.Parameter.KEYWORD_ONLY) for n in ("tree", "made", *metadata)]
        leaves = inspect.Parameter("leaves", inspect.Parameter.VAR_POSITIONAL)
        infer.__signature__ = inspect.Signature([leaves, *keywords])  # type: ignore[attr-defined]
        infer.__wrapped__ = f  # type: ignore[attr-defined]  # tells whether a family id is taken by other code
        self.primitive = Primitive(infer, family=family)
        REGISTRY.kernel(self.primitive, "*", self._kernel)
        REGISTRY.lowering(self.primitive, traced_lowering(name, self._leaves))
        REGISTRY.rule(self.primitive, General(jvp=rule.jvp and self._jvp, vjp=rule.vjp and self._vjp))

    def __call__(self, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """Call the function on values of any level."""
        leaves, tree = flatten(args)
        values = as_values(leaves, tree, f"an argument of {self._name}")
        specs = tuple([v.spec for v in values])
        key = (tree, specs, key_of(tuple(params.items())))
        try:
            made = self._structures.get(key)
        except TypeError:
            raise ArgumentError(
                f"static arguments of {self._name} must be hashable, got {params!r:.80}; pass arrays as arguments "
                "without a star before them"
            ) from None
        if made is None:
            made = self._inferred(specs, tree, params)[1]
            self._structures.put(key, made)
        return unflatten(made, self.primitive(*values, tree=tree, made=made, **params))

    def _inferred(
        self, specs: Sequence[Spec], tree: TreeDef, params: dict[str, Any]
    ) -> tuple[tuple[Spec, ...], TreeDef]:
        outs, made = flatten(self._specs_of(*unflatten(tree, specs), **params))
        if not outs or not all(isinstance(out, Spec) for out in outs):
            raise ArgumentError(f"infer of {self._name} should return Specs in containers, but returned {outs!r:.80}")
        return tuple(outs), made

    def _kernel(
        self, ins: tuple[Spec, ...], outs: tuple[Spec, ...], *, tree: TreeDef, made: TreeDef, **params: Any
    ) -> Function:
        def run(*raws: Any) -> tuple[Any, ...]:
            values = [Tensor.wrap(raw, spec) for raw, spec in zip(raws, ins)]
            leaves = self._leaves(values, {"tree": tree, "made": made, **params})
            return tuple([self._raw(self._name, x, spec) for x, spec in zip(leaves, outs)])

        return run

    def _leaves(self, values: Sequence[Any], params: dict[str, Any]) -> list[Any]:
        """The leaves of the function's result, from leaves of any level."""
        rest = {name: value for name, value in params.items() if name not in ("tree", "made")}
        found = self._f(*unflatten(params["tree"], values), **rest)
        return flatten_like(params["made"], found, f"the result of {self._name}")

    def map_over_lanes(self, family: str | None) -> None:
        """Register the batching rule that runs all lanes at once, with the given family id or ``None``."""
        rule = General(jvp=self._rule.jvp and self._jvp, vjp=self._rule.vjp and self._vjp)
        LanesRule(self.primitive, self._leaves, self._raw, rule, family)

    def _jvp(
        self, primals: Any, tangents: Any, outs: Any, *, tree: TreeDef, made: TreeDef, **params: Any
    ) -> tuple[Any, ...]:
        assert self._rule.jvp is not None, "registered with a jvp only"
        parts = parts_of(made)
        found = self._rule.jvp(
            unflatten(tree, primals), filled(tree.children, tangents, primals), split(parts, outs), **params
        )
        return self._spread("jvp", "tangent", parts, found)

    def _vjp(
        self, primals: Any, outs: Any, cotangents: Any, *, tree: TreeDef, made: TreeDef, **params: Any
    ) -> tuple[Any, ...]:
        assert self._rule.vjp is not None, "registered with a vjp only"
        parts = parts_of(made)
        found = self._rule.vjp(unflatten(tree, primals), split(parts, outs), filled(parts, cotangents, outs), **params)
        return self._spread("vjp", "cotangent", tree.children, found)

    def _spread(self, mode: str, what: str, parts: Sequence[TreeDef], found: Any) -> tuple[Any, ...]:
        """The leaves of a rule's result; ``None`` for a part is zero for all of its leaves."""
        if not isinstance(found, tuple) or len(found) != len(parts):
            raise GradientError(
                f"the {mode} of {self._name} must return a tuple with one {what} or None for each of {len(parts)} "
                f"{'results' if mode == 'jvp' else 'arguments'}, but returned {found!r:.80}"
            )
        leaves: list[Any] = []
        for i, (part, value) in enumerate(zip(parts, found)):
            title = f"{what} {i} that the {mode} of {self._name} returned"
            leaves += [None] * part.size if value is None else flatten_like(part, value, title, none=True)
        return tuple(leaves)


def parts_of(made: TreeDef) -> tuple[TreeDef, ...]:
    """The structures of the results: those of a tuple's members, or of the only result."""
    return made.children if made.kind is tuple else (made,)


def split(parts: Sequence[TreeDef], leaves: Sequence[Any]) -> tuple[Any, ...]:
    """Unflatten the concatenated leaves of several trees to a tuple of trees."""
    rest = iter(leaves)
    return tuple([unflatten(part, [next(rest) for _ in range(part.size)]) for part in parts])


def filled(parts: Sequence[TreeDef], leaves: Sequence[Any], like: Sequence[Any]) -> tuple[Any, ...]:
    """Tangents or cotangents of several trees: ``None`` for a tree without any, zeros for missing leaves of others."""
    found: list[Any] = []
    start = 0
    for part in parts:
        own = range(start, start + part.size)
        start += part.size
        if part is LEAF or all(leaves[i] is None for i in own):
            found.append(leaves[own[0]] if part is LEAF else None)
            continue
        zeros = [zeros_like(like[i]) if leaves[i] is None and like[i].spec.inexact else leaves[i] for i in own]
        found.append(unflatten(part, zeros))
    return tuple(found)
