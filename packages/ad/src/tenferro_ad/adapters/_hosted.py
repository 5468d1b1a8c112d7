"""A function of arrays for another library's automatic differentiation, with its derivatives as such functions.

Arguments and results are flat lists of leaves, so this module knows neither containers nor the library. Each derived
function is a `HostedOperation` again, hence has derivatives of any order.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from inspect import Parameter, Signature
from typing import Any, Final, NamedTuple

from tenferro_ad._call import pull_second, run_first
from tenferro_ad._forward import jvp
from tenferro_ad._partition import Split, split_reverse
from tenferro_ad._reverse import vjp
from tenferro_runtime import compile, trace, vmap
from tenferro_runtime.extension import BoundedCache
from tenferro_runtime.ir import concrete, definitions, named, sizes_for
from tenferro_runtime.trees import TreeDef, flatten, unflatten
from tenferro_tensor import Spec, Tensor
from tenferro_tensor.operands import value

Values = Sequence[Any]
Function = Callable[..., tuple[Any, ...]]

MAX_DERIVED: Final = 256
"""Bound of the cache of derived functions of an operation."""


class HostedOperation:
    """A function of values to a tuple of values, and the functions derived from it.

    Args:
        f: the function; it takes values of any level, including traced ones.
        count: number of operands.
        compiled: whether to compile the function for concrete values.
        adaptive: whether it is known to have data-dependent sizes.

    Attributes:
        f: the function.
        count: number of operands.
        adaptive: whether it is known to have data-dependent sizes. A program for cotangents cannot know that they have
            the sizes of the results, so it is not compiled.
        run: computes the function for concrete values.
    """

    def __init__(self, f: Function, count: int, *, compiled: bool = True, adaptive: bool = False) -> None:
        self.f, self.count, self.adaptive = f, count, adaptive
        # A compiled function with positional-only parameters takes the fast path, without flattening containers.
        f.__signature__ = _positional(count)  # type: ignore[attr-defined]
        self.run: Any = compile(f) if compiled else f
        self._compiled: Any = self.run if compiled else None
        self._derived: BoundedCache[Any, Any] = BoundedCache("an operation of another library", MAX_DERIVED)

    def pulled(self, need: tuple[int, ...], given: tuple[bool, ...]) -> HostedOperation:
        """Cotangents of the operands `need`, from all operands and the cotangents of the results that are `given`."""
        f = partial(_pulled, self.f, need, given)
        return self._derive(("pulled", need, given), f, self.count + sum(given), not self.adaptive)

    def pushed(self, need: tuple[int, ...]) -> HostedOperation:
        """Tangents of the results that can have one, from all operands and the tangents of the operands `need`."""
        return self._derive(("pushed", need), partial(_pushed, self.f, need), self.count + len(need), True)

    def mapped(self, axes: tuple[int | None, ...]) -> HostedOperation:
        """The function mapped over lanes, which are the first axis of the results."""
        return self._derive(("mapped", axes), vmap(self.f, axes), self.count, True)

    def _derive(self, key: Any, f: Function, count: int, compiled: bool) -> HostedOperation:
        found: HostedOperation | None = self._derived.get(key)
        if found is None:
            made = HostedOperation(f, count, compiled=compiled, adaptive=self.adaptive)
            found = self._derived.get_or_make(key, lambda: made)
        return found

    def program(self, specs: Sequence[Any]) -> Any:
        """The program for operands of these specs, or Python numbers."""
        if self._compiled is None:
            self._compiled = compile(self.f)
        found = self._compiled.program(*[Tensor.wrap(None, s) if s.__class__ is Spec else s for s in specs])
        if definitions(found):
            self.adaptive = True
        return found

    def results(self, specs: Sequence[Any]) -> tuple[Spec, ...]:
        """Specs of the results for operands of these specs, or Python numbers."""
        return concrete(self.program(specs), [s if s.__class__ is Spec else value(s).spec for s in specs]).outputs

    def recorded(self, specs: Sequence[Any], need: tuple[int, ...]) -> TwoParts | None:
        """The function in two parts, for operands of these specs and cotangents of the operands `need`.

        ``None`` for data-dependent sizes, where the parts are not known beforehand.
        """
        program = None if self.adaptive else self.program(specs)
        if program is None or self.adaptive:
            return None
        key = (program, need, tuple(specs))
        found: TwoParts = self._derived.get_or_make(key, lambda: _recorded(program, need, specs))
        return found


class TwoParts(NamedTuple):
    """A function in two parts: a forward part that returns residuals, and a backward part.

    Attributes:
        first: returns the results, then the residuals that are neither operands nor results.
        results: number of results.
        active: which results depend on the differentiated operands.
        second: maps the set of results with cotangents to the backward part.
        kept: indices of the residuals among the outputs of the first part.
    """

    first: HostedOperation
    results: int
    active: tuple[bool, ...]
    second: Callable[[tuple[bool, ...]], SecondPart]
    kept: tuple[int, ...]


class SecondPart(NamedTuple):
    """The backward part.

    Attributes:
        operation: maps the given cotangents, then residuals, to cotangents of operands.
        sources: source of each of these residuals: ``i`` for operand ``i``, ``~k`` for output ``k`` of the first part.
        places: index of each result among the differentiated operands; the others have no cotangent.
    """

    operation: HostedOperation
    sources: tuple[int, ...]
    places: tuple[int, ...]


def _recorded(program: Any, need: tuple[int, ...], specs: Sequence[Any]) -> TwoParts:
    sizes = named(program, sizes_for(program, [s if s.__class__ is Spec else value(s).spec for s in specs]))
    split: Split = split_reverse(program, need, sizes)
    count = len(split.active)
    at = {v: i for i, v in reversed(list(enumerate(split.first.input_ids)))}
    kept: list[int] = []
    ids = split.first.output_ids
    for k, v in enumerate(ids):
        if k < count:
            at.setdefault(v, ~k)
        elif v not in at:
            at[v] = ~(count + len(kept))
            kept.append(k - count)
    sources = tuple([at[v] for v in ids[count:]])

    def first(*xs: Any) -> tuple[Any, ...]:
        outs, residuals, _ = run_first(split, [value(x) for x in xs], sizes)
        return (*outs, *[residuals[k] for k in kept])

    seconds: dict[tuple[bool, ...], SecondPart] = {}

    def second(given: tuple[bool, ...]) -> SecondPart:
        found = seconds.get(given)
        if found is None:
            found = seconds[given] = _second(split, sizes, given, len(need), sources)
        return found

    return TwoParts(
        HostedOperation(first, len(specs), compiled=False),
        count,
        split.active,
        second,
        tuple(sorted({~i for i in sources if i < 0})),
    )


def _second(split: Split, sizes: Any, given: tuple[bool, ...], count: int, sources: tuple[int, ...]) -> SecondPart:
    part = split.seconds.get(given) or split.seconds[split.active]
    lengths = sum(given)

    def run(*operands: Any) -> tuple[Any, ...]:
        there = iter(operands[:lengths])
        residuals: list[Any] = [None] * len(sources)
        for i, x in zip(part.residuals, operands[lengths:], strict=True):
            residuals[i] = x
        gs = [next(there) if g else None for g in given]
        return tuple([g for g in pull_second(split, gs, tuple(residuals), count, sizes) if g is not None])

    return SecondPart(
        HostedOperation(run, lengths + len(part.residuals), compiled=False),
        tuple([sources[i] for i in part.residuals]),
        part.places,
    )


@lru_cache(256)
def _positional(count: int) -> Signature:
    return Signature([Parameter(f"x{i}", Parameter.POSITIONAL_ONLY) for i in range(count)])


def _pulled(f: Function, need: tuple[int, ...], given: tuple[bool, ...], *values: Any) -> tuple[Any, ...]:
    count = len(values) - sum(given)
    chosen = [k for k, there in enumerate(given) if there]

    def some(*moving: Any) -> tuple[Any, ...]:
        outs = f(*_placed(values[:count], need, moving))
        return tuple([outs[k] for k in chosen])

    _, pull = vjp(some, *[values[i] for i in need])
    return pull(tuple(values[count:]))  # type: ignore[no-any-return]


def _pushed(f: Function, need: tuple[int, ...], *values: Any) -> tuple[Any, ...]:
    count = len(values) - len(need)
    _, tangents = jvp(
        lambda *moving: f(*_placed(values[:count], need, moving)), tuple([values[i] for i in need]), values[count:]
    )
    return tuple([t for t in tangents if t is not None])


def _placed(values: Values, places: Sequence[int], moving: Values) -> list[Any]:
    full = list(values)
    for i, x in zip(places, moving, strict=True):
        full[i] = x
    return full


class HostedFunction:
    """A function of pytrees as a `HostedOperation` on the leaves of its arguments that are arrays or numbers.

    Args:
        f: the function.
        tree: structure of its arguments, ``(args, kwargs)``.
        static: the other leaves, by position.
    """

    def __init__(self, f: Callable[..., Any], tree: TreeDef, static: dict[int, Any]) -> None:
        self._f, self._tree, self._static = f, tree, static
        self._traced = threading.local()
        self._of_program: BoundedCache[Any, TreeDef] = BoundedCache("results of a function for others", MAX_DERIVED)
        self._of_specs: BoundedCache[Any, TreeDef] = BoundedCache("results of a function for others", MAX_DERIVED)
        self.operation = HostedOperation(self, tree.size - len(static))

    def __call__(self, *values: Any) -> tuple[Any, ...]:
        """The leaves of the result."""
        rest = iter(values)
        leaves = [self._static[i] if i in self._static else next(rest) for i in range(self._tree.size)]
        args, kwargs = unflatten(self._tree, leaves)
        outs, self._traced.tree = flatten(self._f(*args, **kwargs))
        return tuple([value(x) for x in outs])

    def result(self, specs: Sequence[Any]) -> TreeDef:
        """Structure of the result for operands of these specs, or Python numbers."""
        key = tuple([s if s.__class__ is Spec else s.__class__ for s in specs])
        return self._of_specs.get_or_make(key, lambda: self._found(specs))

    def _found(self, specs: Sequence[Any]) -> TreeDef:
        self._traced.tree = None
        program = self.operation.program(specs)
        found: TreeDef | None = self._traced.tree or self._of_program.get(program)
        if found is None:  # another thread traced it, or the cache evicted it
            trace(self, *[s if s.__class__ is Spec else value(s) for s in specs])
            found = self._traced.tree
        assert found is not None, "a trace calls the function"
        self._of_program.put(program, found)
        return found
