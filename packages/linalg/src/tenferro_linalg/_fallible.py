"""Formulas with a condition under which they do not hold: loop nests and StableHLO of tests and guarded quotients.

A formula is written for any array namespace, as kernels use it on arrays. On traced values it becomes a program; where
its condition holds, a native function runs the kernel, which raises the typed error, and a run by XLA has failed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from functools import partial
from typing import Any

import numpy as np

from tenferro_runtime.extension import DimLike, Op, Primitive, Registry, Spec, primitive
from tenferro_runtime.tracing.expanding import expansion_of, specs_of
from tenferro_tensor.catalog import convert, reduce_any
from tenferro_tensor.operands import number
from tenferro_tensor_core import Dim, real_of

FLAG = Spec((), np.dtype(np.bool_))

_FORMULAS: dict[Primitive, Callable[..., Any]] = {}

_REGULAR: set[Primitive] = set()
"""Those whose formulas have a shorter form for regular values."""


def register_formula(
    registry: Registry,
    of: Primitive,
    formula: Callable[..., Any],
    *,
    loops: bool = True,
    lowering: bool = True,
    regular: bool = False,
) -> None:
    """Register ``formula(xp, *operands, **metadata)``, which returns the results of a primitive and the condition.

    Args:
        registry: the registry.
        of: the primitive.
        formula: the formula.
        loops: whether native functions have it; then it must not inspect extents.
        lowering: whether XLA has it; then the kernel raises where the condition holds, or returns the same results.
            Otherwise its results replace those of the formula there.
        regular: whether the formula is shorter, with the condition that values are not regular, if its namespace is
            `optimistic`.
    """
    _FORMULAS[of] = formula
    if regular:
        _REGULAR.add(of)
    if loops:
        registry.loops(of, _tested if lowering else _replaced)
    if lowering:
        registry.lowering(of, partial(lower_formula, of))


class Namespace:
    """The array namespace of formulas on traced values.

    Args:
        branching: whether a program may choose between two forms when it runs; XLA is faster without.
        optimistic: whether another program runs where values are not regular.
    """

    def __init__(self, branching: bool, optimistic: bool = False) -> None:
        import tenferro_runtime

        self._namespace, self.branching, self.optimistic = tenferro_runtime, branching, optimistic

    def __getattr__(self, name: str) -> Any:
        return getattr(self._namespace, name)


def unless(xp: Any, regular: Callable[[], Any], test: Callable[[], Any]) -> Any:
    """The condition `test`, which a native function computes only if values are not `regular`."""
    if xp.optimistic:
        return ~regular()
    if not xp.branching:
        return test()
    return xp.cond(regular(), lambda: xp.asarray(False), lambda: test().any())


def register(registry: Registry) -> None:
    """The expansion of `formula_`."""
    registry.expansion(formula_, _expanded)


@primitive(family="tenferro-linalg.formula.v1", extension="linalg")
def formula_(
    *operands: Spec, of: Primitive, metadata: tuple[tuple[str, Any], ...], branching: bool, optimistic: bool
) -> tuple[Spec, ...]:
    """The results of a primitive by its formula, and whether any entry of the condition is set."""
    outs = of.infer(*operands, **dict(metadata))
    return (*(outs if isinstance(outs, tuple) else (outs,)), FLAG.with_(place=operands[0].place))


def _expanded(
    *operands: Any, of: Primitive, metadata: tuple[tuple[str, Any], ...], branching: bool, optimistic: bool
) -> tuple[Any, ...]:
    given = dict(metadata)
    if "size" in given:
        given["size"] = extent(given["size"], operands[-1])
    *found, failed = _FORMULAS[of](Namespace(branching, optimistic), *operands, **given)
    return (*found, reduce_any(failed, axes=tuple(range(failed.ndim))))


def extent(d: DimLike, like: Any) -> Any:
    """A size as a number beside values of the real dtype of `like`."""
    return convert(number(d, like.spec.place), dtype=real_of(like.dtype)) if isinstance(d, Dim) else d


def _op(of: Primitive, metadata: Any, branching: bool, optimistic: bool = False) -> Op:
    given = tuple(sorted(metadata.items()))
    return formula_.op(of=of, metadata=given, branching=branching, optimistic=optimistic)


def lower_formula(of: Primitive, e: Any, xs: Sequence[Any], outs: Any, **metadata: Any) -> Sequence[Any]:
    """The lowering of a primitive by its formula."""
    optimistic = e.optimistic and of in _REGULAR
    *found, failed = e.inline(expansion_of(_op(of, metadata, False, optimistic), tuple([x.spec for x in xs])), xs)
    (e.miss if optimistic else e.fail)(failed)
    return found


def _by_formula(step: Any) -> Any:
    """The results and the condition; ``None`` if the formula asks what the program does not know about sizes."""
    from tenferro_runtime.lowering import by_expansion

    trial, known = copy(step), step.lowering
    trial.op = _op(step.op.primitive, step.params, True)
    specs = specs_of(step.body.program.specs, step.eq)
    if expansion_of(trial.op, specs, known.guards, known.examples) is None:
        return None
    results: Any = by_expansion(trial)
    *found, failed = results
    return found, failed.at(step.w, ())


def _tested(step: Any) -> Any:
    """The results of the formula, beside a kernel that raises where they do not hold."""
    from tenferro_runtime.lowering import call
    from tenferro_tensor.loop_ir import Literal

    if (formed := _by_formula(step)) is None:
        return call(step)
    found, failed = formed
    if not (isinstance(failed, Literal) and not failed.value):
        _chosen(step, failed, lambda to: None)
    return found


def _replaced(step: Any) -> Any:
    """The results of the formula, or of the kernel where they do not hold."""
    from tenferro_runtime.lowering import call, write

    if (formed := _by_formula(step)) is None:
        return call(step)
    found, failed = formed

    def plain(to: Sequence[Any]) -> None:
        for x, place in zip(found, to, strict=True):
            write(step.w, x, place)

    return _chosen(step, failed, plain)


def _chosen(step: Any, failed: Any, plain: Callable[[Sequence[Any]], None]) -> Any:
    """Memory that the kernel has written if `failed`, and otherwise `plain`."""
    from tenferro_runtime.lowering import Stored, call_into, stored
    from tenferro_tensor.loop_ir import INDEX, Case, Switch

    w = step.w
    failed = w.let(convert.op(dtype=INDEX), INDEX, failed)
    to = [Stored.whole_of(w.buffer(s.dtype, s.shape)) for s in step.outs]
    with w.block() as usual:
        plain(to)
    with w.block() as kernel:
        call_into(step, [stored(w, x) for x in step.operands], to, recourse=True)
    w.statements.append(Switch(failed, (Case(tuple(usual)), Case(tuple(kernel)))))
    w.written(*[x.buffer for x in to])
    return to
