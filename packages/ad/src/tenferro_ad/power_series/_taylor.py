"""`taylor`: the derivatives of a function along a curve, to any order, in one run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import factorial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, overload

from tenferro_ad._differentiated import running
from tenferro_ad._eager import EagerTensor, watched
from tenferro_ad._limits_at_degeneracy import forced, found_directions, limit, ratio, size
from tenferro_ad._seed import fitted
from tenferro_ad._trees import as_values, split_aux
from tenferro_ad._zeros import zeros_like
from tenferro_ad.power_series import _calls, _control_flow, _expand, _implicit  # noqa: F401 - imported to register Taylor rules
from tenferro_ad.power_series._coefficients import Coefficients, Term
from tenferro_ad.power_series._series import Collapse, coefficients_of
from tenferro_ad.power_series._series import series as made
from tenferro_runtime.trees import flatten, flatten_like, map_tree, unflatten
from tenferro_tensor import next_level
from tenferro_tensor.identity import handed
from tenferro_tensor_core import ArgumentError, GradientError

if TYPE_CHECKING:
    from tenferro_ad._signatures import Aux, R


@overload
def taylor(
    f: Callable[..., R], primals: Sequence[Any], series: Sequence[Sequence[Any]], *, has_aux: Literal[False] = ...
) -> tuple[R, list[R]]: ...
@overload
def taylor(
    f: Callable[..., tuple[R, Aux]], primals: Sequence[Any], series: Sequence[Sequence[Any]], *, has_aux: Literal[True]
) -> tuple[R, list[R], Aux]: ...
@overload
def taylor(
    f: Callable[..., Any], primals: Sequence[Any], series: Sequence[Sequence[Any]], *, has_aux: bool
) -> tuple[Any, ...]: ...
def taylor(
    f: Callable[..., Any], primals: Sequence[Any], series: Sequence[Sequence[Any]], *, has_aux: bool = False
) -> tuple[Any, ...]:
    """Compute the value of a function and its derivatives of all orders along a curve.

    For a curve ``x(t)`` with the derivatives ``x(0), x'(0), ..., x^(K)(0)``, these are the derivatives of ``f(x(t))``
    at 0. One forward run, of cost quadratic in the order K; nested `jvp` costs ``2**K`` runs. Terms are derivatives,
    without a factor ``1/k!``, as in ``jax.experimental.jet``. The recurrences are those of Griewank and Walther,
    Evaluating Derivatives (2008), chapter 13.

    Args:
        f: a function of pytrees of arrays to a pytree of arrays.
        primals: tuple of the arguments.
        series: for each argument, the list of derivatives of order 1, 2, ..., K of its curve, each with the structure,
            shapes and dtypes of the argument; all lists have the same length K. ``None`` for an order stands for
            zeros; terms of integers and booleans are ignored.
        has_aux: `f` returns a pair ``(value, aux)``; aux is returned undifferentiated.

    Returns:
        ``(value, derivatives)``, or ``(value, derivatives, aux)``, with the list of derivatives of order 1, ..., K.
        Each has the structure, shapes and dtypes of the value; it is zero where the value does not depend on the
        curve, and ``None`` for integers and booleans.

    Raises:
        ArgumentError: `series` does not hold one list per argument, all of the same length.
        GradientError: the shape or dtype of a term differs from its argument's.
        MissingRuleError: an operation has no derivative rule.

    See also:
        jvp: the first order alone.
        taylor_kind: the kind of Taylor rule of a primitive.

    >>> import tenferro_runtime as tr
    >>> from tenferro_ad import taylor
    >>> taylor(lambda x: x**3, (2.0,), ([1.0, 0.0, 0.0],))
    (Tensor(8.), [Tensor(12.), Tensor(12.), Tensor(6.)])
    """
    leaves, tree, order = _checked(primals, series)
    values = as_values(leaves, tree, "an argument of taylor")
    curves: list[list[Term]] = [[v] for v in values]
    for k in range(order):
        nothing = [None] * len(primals)
        given = [nothing[i] if terms[k] is None else terms[k] for i, terms in enumerate(series)]
        for curve, term in zip(curves, _leaves(primals, given, k)):
            curve.append(_coefficient(term, curve[0].spec, k + 1))
    found = SeriesRun(f, tree, order, "taylor", has_aux).run(curves)
    derivatives = [
        unflatten(found.tree, [_derivative(z, x[k], k) for z, x in zip(found.outs, found.terms, strict=True)])
        for k in range(1, order + 1)
    ]
    value = unflatten(found.tree, found.outs)
    return (value, derivatives, found.aux) if has_aux else (value, derivatives)


def _checked(primals: Any, series: Any) -> tuple[list[Any], Any, int]:
    if not isinstance(primals, (tuple, list)) or not isinstance(series, (tuple, list)):
        raise ArgumentError("taylor takes tuples of primals and of series, as in taylor(f, (x,), ([dx, ddx],))")
    lengths = [len(terms) if isinstance(terms, (tuple, list)) else None for terms in series]
    if len(series) != len(primals) or None in lengths or len({*lengths}) > 1:
        raise ArgumentError(
            f"taylor takes one list of derivatives for each argument, all of the same length; got {len(primals)} "
            f"arguments and lists of lengths {lengths}"
        )
    leaves, tree = flatten(tuple(primals))
    return leaves, tree, lengths[0] or 0 if lengths else 0


def _leaves(primals: Sequence[Any], given: list[Any], k: int) -> list[Any]:
    """The leaves of the terms of one order, ``None`` for the leaves of a zero term."""
    found: list[Any] = []
    for x, term in zip(primals, given, strict=True):
        leaves, tree = flatten(x)
        what = f"the derivatives of order {k + 1} given to taylor"
        found += [None] * len(leaves) if term is None else flatten_like(tree, term, what)
    return found


def _coefficient(term: Any, spec: Any, k: int) -> Term:
    if term is None or not spec.inexact:
        return None
    term = fitted(term, spec, f"taylor: the derivative of order {k}")
    return term if k == 1 else term / factorial(k)


def _derivative(value: Any, term: Term, k: int) -> Any:
    if term is None:
        return zeros_like(value) if value.spec.inexact else None
    return term if k == 1 else term * factorial(k)


class SeriesResult(NamedTuple):
    """The results of a function on series.

    Attributes:
        outs: leaves of the value.
        tree: structure of the value.
        terms: coefficients of the leaves.
        aux: the auxiliary result.
    """

    outs: list[Any]
    tree: Any
    terms: list[Coefficients]
    aux: Any


class SeriesRun:
    """Runs a function on series.

    Attributes:
        f: the function.
        tree: structure of the tuple of its arguments.
        order: the highest order.
        what: the calling function, for errors.
        has_aux: whether `f` returns a pair of value and aux.
        collapse: see `Series`.
    """

    def __init__(
        self,
        f: Callable[..., Any],
        tree: Any,
        order: int,
        what: str,
        has_aux: bool = False,
        collapse: Collapse | None = None,
    ) -> None:
        self.f, self.tree, self.order, self.what, self.has_aux, self.collapse = f, tree, order, what, has_aux, collapse

    def run(self, curves: Sequence[list[Term]]) -> SeriesResult:
        """Run the function on leaves with coefficients; at a degenerate point, take limits."""
        known, error = found_directions(), forced()
        if error is None:
            try:
                return self._run(curves)
            except GradientError as seen:
                error = seen
        return self._limit_nearby(error, known, curves)

    def _run(self, curves: Sequence[list[Term]]) -> SeriesResult:
        level = next_level()
        xs = [Coefficients(curve, self.order).forced(self.order) for curve in curves]
        args = [handed(made(x, level, self.order, self.collapse) if len(x.terms) > 1 else x.terms[0]) for x in xs]

        def lowered(x: Any) -> Any:
            return x if coefficients_of(x, level) is None else x.value

        outs, leaves, tree, aux = self._called(level, args, lowered)
        terms = [coefficients_of(y, level) or Coefficients([z], self.order) for y, z in zip(leaves, outs, strict=True)]
        return SeriesResult(outs, tree, terms, aux)

    def _called(self, level: int, args: list[Any], lowered: Callable[[Any], Any]) -> tuple[Any, Any, Any, Any]:
        out, aux = split_aux(running(level, self.f, *unflatten(self.tree, args)), self.has_aux, self.what)
        leaves, tree = flatten(out)
        outs = as_values([lowered(y) for y in leaves], tree, "the result of a function differentiated in forward mode")
        return outs, leaves, tree, map_tree(lowered, aux)

    def _limit_nearby(self, error: GradientError, known: int | None, curves: Sequence[list[Term]]) -> SeriesResult:
        """`_run` at a degenerate point: the limit of coefficients at nearby points."""
        level, orders = next_level(), range(1, self.order + 1)

        def lowered(x: Any) -> Any:
            return x.value if x.__class__ is EagerTensor and x.level == level else x

        def run() -> tuple[Any, Any, Any, Any]:
            args = [handed(watched(x[0], level) if len(x) > 1 and x[0].spec.inexact else x[0]) for x in curves]
            return self._called(level, args, lowered)

        def derivative() -> list[Any]:
            return [x[k] for x in self._run(curves).terms for k in orders]

        def sizes(at: tuple[Any, Any, Any, Any]) -> list[Any]:
            rate = ratio(size(*[t for x in curves for t in x[1:]]), size(*[x[0] for x in curves]))
            return [size(z) * rate**k for z in at[0] for k in orders]

        (outs, _, tree, aux), found = limit(error, run, derivative, sizes, known)
        rows = iter(found)
        terms = [Coefficients([z, *[next(rows) for _ in orders]], self.order) for z in outs]
        return SeriesResult(outs, tree, terms, aux)
