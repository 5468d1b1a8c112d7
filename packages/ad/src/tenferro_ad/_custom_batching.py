"""`vmap` of functions with custom rules: function and rule are both mapped over the lanes.

Each runs once for all lanes. Since the rule is mapped too, `vmap` and differentiation compose in either order.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from tenferro_ad._custom_lowering import traced_lowering
from tenferro_runtime import sum as sum_over
from tenferro_runtime import vmap
from tenferro_runtime.extension import REGISTRY, DimLike, General, Primitive
from tenferro_tensor import Spec, Tensor

Function = Callable[..., Any]
Flags = tuple[bool, ...]
Raw = Callable[[str, Any, Spec], Any]


class LanesRule:
    """The batching rule of a function with a custom derivative rule: a primitive that maps it over lanes.

    The primitive has two further metadata with one entry for each enclosing `vmap`, outermost first: `lanes_` says
    which operands have a lane axis, `extents_` is the number of lanes.

    Args:
        primitive: the primitive of the function.
        run: ``run(values, params)`` returns the leaves of the function's result.
        raw: converts a returned leaf to the raw output of a spec.
        rule: the derivative of `primitive`.
        family: the id of the new primitive, or ``None``.
    """

    def __init__(self, primitive: Primitive, run: Function, raw: Raw, rule: General, family: str | None) -> None:
        self._primitive, self._run, self._raw, self._rule = primitive, run, raw, rule

        def infer(*specs: Spec, lanes_: tuple[Flags, ...], extents_: tuple[DimLike, ...], **params: Any) -> Any:
            outs, many = self._outs(specs, lanes_, params)
            found = tuple([s.with_(shape=(*extents_, *s.shape)) for s in outs])
            return found if many else found[0]

        infer.__name__, infer.__doc__, infer.__module__ = primitive.name, primitive.__doc__, __name__
        names = ("lanes_", "extents_", *primitive.metadata)
        keywords = [inspect.Parameter(n, inspect.Parameter.KEYWORD_ONLY) for n in names]
        leaves = inspect.Parameter("leaves", inspect.Parameter.VAR_POSITIONAL)
        infer.__signature__ = inspect.Signature([leaves, *keywords])  # type: ignore[attr-defined]
        infer.__wrapped__ = run  # type: ignore[attr-defined]  # tells whether a family id is taken by other code
        self.batched = Primitive(infer, family=family)
        REGISTRY.kernel(self.batched, "*", self._kernel)
        REGISTRY.lowering(self.batched, traced_lowering(self.batched.name, self._leaves))
        REGISTRY.rule(self.batched, General(jvp=rule.jvp and self._jvp, vjp=rule.vjp and self._vjp))
        REGISTRY.batching(primitive, self._batch)
        REGISTRY.batching(self.batched, self._batch)

    def _batch(
        self, size: DimLike, values: tuple[Any, ...], batched: Flags, /, *,
        lanes_: tuple[Flags, ...] = (), extents_: tuple[DimLike, ...] = (), **params: Any,
    ) -> Any:  # fmt: skip
        return self.batched(*values, lanes_=(batched, *lanes_), extents_=(size, *extents_), **params)

    def _outs(
        self, specs: Sequence[Spec], lanes: tuple[Flags, ...], params: dict[str, Any]
    ) -> tuple[tuple[Spec, ...], bool]:
        """Specs of the results of one lane, and whether the results are a tuple."""
        axes = [sum(column) for column in zip(*lanes, strict=True)]
        found = self._primitive.infer(*[s.with_(shape=s.shape[n:]) for s, n in zip(specs, axes, strict=True)], **params)
        return (found, True) if isinstance(found, tuple) else ((found,), False)

    def _leaves(self, values: Sequence[Any], params: dict[str, Any]) -> Any:
        """The results for all lanes."""
        rest = {name: value for name, value in params.items() if name not in ("lanes_", "extents_")}
        return _mapped(lambda *values: self._run(values, rest), params["lanes_"], params["extents_"])(*values)

    def _kernel(
        self, ins: tuple[Spec, ...], outs: tuple[Spec, ...], *,
        lanes_: tuple[Flags, ...], extents_: tuple[DimLike, ...], **params: Any,
    ) -> Function:  # fmt: skip
        _, many = self._outs(ins, lanes_, params)
        params |= {"lanes_": lanes_, "extents_": extents_}

        def run(*raws: Any) -> Any:
            leaves = self._leaves([Tensor.wrap(raw, spec) for raw, spec in zip(raws, ins, strict=True)], params)
            found = tuple([self._raw(self.batched.name, x, s) for x, s in zip(leaves, outs, strict=True)])
            return found if many else found[0]

        return run

    def _jvp(
        self, primals: Any, tangents: Any, outs: Any, *,
        lanes_: tuple[Flags, ...], extents_: tuple[DimLike, ...], **params: Any,
    ) -> Any:  # fmt: skip
        rule = self._rule.jvp
        assert rule is not None, "registered with a jvp only"
        given = [i for i, t in enumerate(tangents) if t is not None]
        count = len(primals)
        lanes = tuple([(*flags, *[flags[i] for i in given], *[True] * len(outs)) for flags in lanes_])

        def push(*values: Any) -> Any:
            moving = _placed(len(primals), given, values[count : count + len(given)])
            return rule(values[:count], moving, values[count + len(given) :], **params)

        found, _ = _of_all_lanes(push, lanes, extents_, (*primals, *[tangents[i] for i in given], *outs), len(outs))
        return found

    def _vjp(
        self, primals: Any, outs: Any, cotangents: Any, *,
        lanes_: tuple[Flags, ...], extents_: tuple[DimLike, ...], **params: Any,
    ) -> Any:  # fmt: skip
        rule = self._rule.vjp
        assert rule is not None, "registered with a vjp only"
        given = [k for k, g in enumerate(cotangents) if g is not None]
        count, start = len(primals), len(primals) + len(outs)
        lanes = tuple([(*flags, *[True] * (len(outs) + len(given))) for flags in lanes_])

        def pull(*values: Any) -> Any:
            return rule(values[:count], values[count:start], _placed(len(outs), given, values[start:]), **params)

        found, right = _of_all_lanes(pull, lanes, extents_, (*primals, *outs, *[cotangents[k] for k in given]), count)
        if not right:
            return found
        # An operand that all lanes share receives the sum of their cotangents.
        shared = [tuple([n for n, flags in enumerate(lanes_) if not flags[i]]) for i in range(count)]
        return tuple([
            g if g is None or not axes else sum_over(g, axis=axes) for g, axes in zip(found, shared, strict=True)
        ])  # fmt: skip


def _mapped(f: Function, lanes: tuple[Flags, ...], extents: tuple[DimLike, ...]) -> Function:
    """The function mapped over several batch axes, outermost first."""
    for flags, size in zip(reversed(lanes), reversed(extents), strict=True):
        f = vmap(f, tuple([0 if there else None for there in flags]), axis_size=size)
    return f


def _of_all_lanes(
    rule: Function, lanes: tuple[Flags, ...], extents: tuple[DimLike, ...], values: tuple[Any, ...], count: int
) -> tuple[Any, bool]:
    """The result of a derivative rule for all lanes, and whether it has the right number of values."""
    seen: Any = None

    def some(*xs: Any) -> Any:
        nonlocal seen
        seen = rule(*xs)
        return [x for x in seen if x is not None] if _right(seen, count) else []

    found = iter(_mapped(some, lanes, extents)(*values))
    if not _right(seen, count):
        return seen, False
    return tuple([None if x is None else next(found) for x in seen]), True


def _right(found: Any, count: int) -> bool:
    return isinstance(found, (tuple, list)) and len(found) == count


def _placed(count: int, positions: Sequence[int], values: Sequence[Any]) -> tuple[Any, ...]:
    full: list[Any] = [None] * count
    for i, value in zip(positions, values, strict=True):
        full[i] = value
    return tuple(full)
