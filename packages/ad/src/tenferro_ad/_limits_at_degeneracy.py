"""Derivatives at degenerate points, as limits of derivatives at nearby points.

The eigenvectors of equal eigenvalues do not determine the derivative of a loss that weights them: the rule would need
a second derivative of everything downstream. A transform has the whole function, so it runs it again with every
decomposition perturbed along a direction that splits the equal values (`General.apart`), and extrapolates. With g(m)
the derivative for the perturbation m times that direction, and even(m) = (g(m) + g(-m)) / 2::

    g(0) = 1.5 even(1) - 0.6 even(2) + 0.1 even(3)

The directions are fixed after the first run, so the sum is again the derivative of a function, in any mode.
Three tests tell a smooth loss from one with a kink: fewer points yield the same limit, the odd part grows linearly
with m, and a second direction yields the same limit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar, Token
from typing import Any, Final, TypeVar, cast

from tenferro_ad._differentiated import Differentiated
from tenferro_ad._modes import _count
from tenferro_runtime.batching import all_with_lanes
from tenferro_runtime.compiling import FALLBACKS, Fallback
from tenferro_runtime.extension import REGISTRY, General, Spec, catalog, primitive
from tenferro_runtime.ir import ProgramPrimitive, interpret, named, sizes_for
from tenferro_tensor import Op, next_level
from tenferro_tensor_core import DimLike, GradientError, computing_type

R = TypeVar("R")

WEIGHTS: Final = {1: 0.75, -1: 0.75, 2: -0.3, -2: -0.3, 3: 0.05, -3: 0.05}
"""Weights of the six-point limit, by multiple; its error is of sixth order in the step."""

FEWER: Final = {1: 2 / 3, -1: 2 / 3, 2: -1 / 6, -2: -1 / 6}
"""Weights of the four-point limit."""

SCALES: Final = (1.0, 4.0, 0.25)
"""Step lengths, tried in turn: long steps reduce noise, short steps suit functions of high curvature."""

TOLERANCE: Final = {"f": 1e-2, "d": 1e-6, "F": 1e-2, "D": 1e-6}
"""Relative tolerance of the tests, by dtype character."""

FLOOR: Final = 1e-3
"""Lower bound of the tolerance's scale, as a fraction of the derivative's expected magnitude."""


class Rerun:
    """One run of a function with perturbed decompositions.

    Attributes:
        directions: two perturbation directions for each decomposition, in the order of the run.
        multiple: factor of the directions; 0 in the first run, which finds them.
        side: index of the direction that is used.
        count: number of decompositions so far.
        quiet: whether to ignore ops, because a perturbed op or a rule runs them on inner values.
        level: values of higher levels belong to transforms and traces that start during the run.
    """

    __slots__ = ("count", "directions", "level", "multiple", "quiet", "side")

    def __init__(self, directions: list[tuple[Any, Any]], multiple: float = 0.0, side: int = 0) -> None:
        self.directions, self.multiple, self.side = directions, multiple, side
        self.count, self.quiet, self.level = 0, False, next_level()


_rerun: ContextVar[Rerun | None] = ContextVar("tenferro rerun beside a point", default=None)


@contextmanager
def _running(rerun: Rerun) -> Iterator[None]:
    token = _rerun.set(rerun)
    _count(1)
    try:
        yield
    finally:
        _count(-1)
        _rerun.reset(token)


def quiet() -> AbstractContextManager[None]:
    """The scope of a backward pass, where ops of rules are not part of the function."""
    rerun = _rerun.get()
    return _NO_SCOPE if rerun is None or rerun.quiet else _quiet(rerun)


_NO_SCOPE: Final = nullcontext()


@contextmanager
def _quiet(rerun: Rerun) -> Iterator[None]:
    rerun.quiet = True
    try:
        yield
    finally:
        rerun.quiet = False


def moved(op: Op, operands: tuple[Any, ...]) -> Any:
    """Run an op of the function with its operand perturbed; ``None`` if the op is not perturbed."""
    rerun = _rerun.get()
    if rerun is None or rerun.quiet:
        return None
    if isinstance(op.primitive, ProgramPrimitive):
        program = op.params["program"]
        sizes = named(program, sizes_for(program, [x.spec for x in operands], op.params["sizes"]))
        return interpret(program, operands, sizes)
    rule = REGISTRY.find("rule", op.primitive)
    if not isinstance(rule, General) or rule.apart is None:
        return None
    x, bare = operands[0], tuple([_bare(a) for a in operands])
    if any(a.level > rerun.level for a in bare):  # in a loop body or under vmap: the operands are not constants
        return None
    with quiet():
        if not rerun.multiple:
            rerun.directions.append(tuple([rule.apart(bare, side, **op.params) for side in (0, 1)]))
            return op(*operands)
        direction = rerun.directions[rerun.count][rerun.side]
        rerun.count += 1
        return op(x + direction * rerun.multiple, *operands[1:])


class Always:
    """A scope in which every derivative is taken as a limit: a traced program does not know its values.

    Args:
        kind: the error raised if the limit does not exist.
    """

    def __init__(self, kind: type[GradientError]) -> None:
        self.kind = kind
        self._tokens: list[Token[type[GradientError] | None]] = []

    def __enter__(self) -> None:
        self._tokens.append(_always.set(self.kind))

    def __exit__(self, *exc: object) -> None:
        _always.reset(self._tokens.pop())


_always: Final[ContextVar[type[GradientError] | None]] = ContextVar("tenferro derivatives beside points", default=None)


def forced() -> GradientError | None:
    """In the scope of `Always`, the error that the rule would raise at a degenerate point; else ``None``."""
    kind, rerun = _always.get(), _rerun.get()
    if kind is None or (rerun is not None and rerun.multiple):
        return None
    text = "at equal or zero values of a decomposition the vectors do not determine the derivative"
    return kind(text, beside=True)


def _is_beside(error: BaseException) -> bool:
    """Whether nearby points may have a derivative although this point has none."""
    return isinstance(error, GradientError) and bool(error.payload.get("beside"))


FALLBACKS.append(Fallback(_is_beside, lambda error: Always(cast(type[GradientError], type(error)))))


def _bare(x: Any) -> Any:
    """The value inside all levels of differentiation."""
    while isinstance(x, Differentiated):
        x = x.value
    return x


def found_directions() -> int | None:
    """Number of directions found so far by the enclosing run; ``None`` outside of a run."""
    rerun = _rerun.get()
    return None if rerun is None else len(rerun.directions)


def limit(
    error: GradientError,
    run: Callable[[], R],
    derivative: Callable[[], Sequence[Any]],
    sizes: Callable[[R], Sequence[Any]],
    known: int | None = None,
) -> tuple[R, list[Any]]:
    """A derivative as the limit of derivatives at nearby points.

    Args:
        error: the error at the point itself; raised if the limit does not exist either.
        run: runs the function, to find the directions.
        derivative: runs the function and returns its derivative as arrays, ``None`` for zero.
        sizes: maps the result of `run` to the expected magnitude of each array of the derivative; see `size`.
        known: number of directions that an enclosing run had found before it called this function, if any.

    Returns:
        The result of `run` at the point itself, and the limit.

    Raises:
        GradientError: the derivative depends on the direction, or is not smooth.
    """
    outer = _rerun.get()
    if not _is_beside(error) or (outer is not None and outer.multiple):
        raise error
    directions: list[tuple[Any, Any]] = []
    with _running(Rerun(directions)):
        at = run()
    if not directions:
        raise error
    if outer is not None and known is not None:
        outer.directions[known:] = directions
    for scale in SCALES:
        try:
            found = [_derivatives(derivative, directions, side, scale) for side in (0, 1)]
            arrays = zip(*found[0].values(), *found[1].values(), strict=True)
            return at, [_agreeing(values, size, error) for values, size in zip(arrays, sizes(at), strict=True)]
        except (GradientError, IndexError) as seen:  # the function branches differently there, or there is no limit
            last = seen
    raise last if isinstance(last, type(error)) else error from None


def _derivatives(
    derivative: Callable[[], Sequence[Any]], directions: list[tuple[Any, Any]], side: int, scale: float
) -> dict[int, Sequence[Any]]:
    """Derivatives at multiples of one of the directions, by multiple."""
    found = {}
    for m in (WEIGHTS, FEWER)[side]:
        with _running(Rerun(directions, m * scale, side)):
            found[m] = derivative()
    return found


def size(*arrays: Any) -> Any:
    """The largest magnitude in arrays, as a constant of every differentiation; ``None`` counts as zero."""
    found: Any = 0.0
    for x in arrays:
        if x is not None and x.spec.inexact and not any(n.__class__ is int and n == 0 for n in x.spec.shape):
            found = catalog.maximum(found, catalog.reduce_max(catalog.abs(_bare(x)), axes=tuple(range(x.ndim))))
    return found


def ratio(above: Any, below: Any) -> Any:
    """``above / below``, or `above` itself where `below` is 0."""
    return above / catalog.select(catalog.eq(below, 0.0), 1.0, below)


def _agreeing(values: Sequence[Any], size: Any, error: GradientError) -> Any:
    """The limit of one array, checked by the three tests."""
    if all(v is None for v in values):
        return None
    given = dict(zip([*[(0, m) for m in WEIGHTS], *[(1, m) for m in FEWER]], values, strict=True))
    six, four = (_sum([(c, given[0, m]) for m, c in weights.items()]) for weights in (WEIGHTS, FEWER))
    other = _sum([(c, given[1, m]) for m, c in FEWER.items()])
    bent = _sum([(s * c, given[0, s * m]) for m, c in ((1, 1.0), (2, -0.5)) for s in (1, -1)])
    return smooth_(
        six, four, other, bent, size * 1.0, *[v for v in values if v is not None], kind=type(error), reason=str(error)
    )


def _sum(terms: list[tuple[float, Any]]) -> Any:
    total = None
    for c, v in terms:
        if v is not None:
            total = v * c if total is None else total + v * c
    return total


@primitive
def smooth_(
    x: Spec, fewer: Spec, other: Spec, bent: Spec, size: Spec, *values: Spec, kind: type[Exception], reason: str
) -> Spec:
    """`x`, after checking that the other limits agree with it and that the odd part is linear in the step."""
    return x


def _smooth_kernel(ins: tuple[Spec, ...], outs: tuple[Spec, ...], *, kind: Any, reason: str) -> Callable[..., Any]:
    tolerance = TOLERANCE[computing_type(outs[0].dtype).char]

    def run(x: Any, fewer: Any, other: Any, bent: Any, size: Any, *values: Any) -> Any:
        allowed = tolerance * max(FLOOR * float(size), *[float(abs(v).max()) for v in values if v.size])
        if not all(bool((abs(y) <= allowed).all()) for y in (x - fewer, x - other, bent)):
            raise kind(f"{reason}. Derivatives at nearby points have no common limit either")
        return x

    return run


def _smooth_jvp(primals: Any, tangents: Any, outs: Any, *, kind: Any, reason: str) -> tuple[Any]:
    """The tangents pass the same tests."""
    if any(t is None for t in (*tangents[:4], *tangents[5:])):
        return (tangents[0],)
    return (smooth_(*tangents[:4], primals[4], *tangents[5:], kind=kind, reason=reason),)


def _smooth_vjp(primals: Any, outs: Any, cotangents: Any, *, kind: Any, reason: str) -> tuple[Any, ...]:
    return (cotangents[0], *[None] * (len(primals) - 1))


def _smooth_batched(lanes: DimLike, values: Any, batched: tuple[bool, ...], /, **metadata: Any) -> Any:
    """All lanes pass the tests together."""
    arrays = all_with_lanes(lanes, values, batched)
    if batched[4]:
        arrays[4] = catalog.reduce_max(values[4], axes=(0,))
    else:
        arrays[4] = values[4]
    return smooth_(*arrays, **metadata)


REGISTRY.batching(smooth_, _smooth_batched)
REGISTRY.kernel(smooth_, "*", _smooth_kernel)
REGISTRY.rule(smooth_, General(jvp=_smooth_jvp, vjp=_smooth_vjp))
