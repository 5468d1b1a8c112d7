"""`taylor`: the derivatives of a function along a curve, to any order, in one run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import factorial
from typing import Any

from tenferro_ad._differentiated import running
from tenferro_ad._seed import fitted
from tenferro_ad._trees import as_value, split_aux
from tenferro_ad._zeros import zeros_like
from tenferro_ad.power_series import _calls, _control_flow, _expand, _implicit  # noqa: F401 - how ops run on series
from tenferro_ad.power_series._coefficients import Coefficients, Term
from tenferro_ad.power_series._series import Collapse, coefficients_of
from tenferro_ad.power_series._series import series as made
from tenferro_runtime.trees import flatten, flatten_like, map_tree, unflatten
from tenferro_tensor import next_level
from tenferro_tensor_core import ArgumentError


def taylor(
    f: Callable[..., Any], primals: Sequence[Any], series: Sequence[Sequence[Any]], *, has_aux: bool = False
) -> tuple[Any, ...]:
    """Value of a function, and its derivatives of all orders along a curve.

    For a curve ``x(t)`` with the derivatives ``x(0), x'(0), ..., x^(K)(0)``, the derivatives of ``f(x(t))`` at 0. One
    forward run, whose cost grows with the square of the order K; nested `jvp` costs ``2**K`` runs. Terms are
    derivatives, not coefficients with a factor ``1/k!``, as in ``jax.experimental.jet``.

    Args:
        f: a function of arrays, in any containers, to arrays in any containers.
        primals: tuple of the arguments.
        series: for each argument the derivatives of order 1, 2, ..., K of its curve, each in the containers of the
            argument; all lists have one length K. ``None`` for an order stands for zeros, and what belongs to
            integers or booleans is ignored.
        has_aux: the function returns a pair (value, aux), of which aux is passed on undifferentiated.

    Returns:
        ``(value, derivatives)``, or ``(value, derivatives, aux)``: a list of the derivatives of order 1, ..., K, each
        in the containers of the value; zeros where it does not depend on the curve, ``None`` for integers and
        booleans.

    Raises:
        ArgumentError: there is not one list of the same length for each argument.
        GradientError: a term has another shape or dtype than its primal.
        MissingRuleError: an operation has no derivative rule.

    >>> import tenferro_runtime as tr
    >>> from tenferro_ad import taylor
    >>> taylor(lambda x: x**3, (2.0,), ([1.0, 0.0, 0.0],))
    (Tensor(8.), [Tensor(12.), Tensor(12.), Tensor(6.)])
    """
    leaves, tree, order = _checked(primals, series)
    values = [as_value(x) for x in leaves]
    curves: list[list[Term]] = [[v] for v in values]
    for k in range(order):
        nothing = [None] * len(primals)
        given = [nothing[i] if terms[k] is None else terms[k] for i, terms in enumerate(series)]
        for curve, term in zip(curves, _leaves(primals, given, k)):
            curve.append(_coefficient(term, curve[0].spec, k + 1))
    outs, out_tree, terms, aux = expanded(f, curves, tree, order, has_aux)
    derivatives = [
        unflatten(out_tree, [_derivative(z, term[k], k) for z, term in zip(outs, terms)]) for k in range(1, order + 1)
    ]
    value = unflatten(out_tree, outs)
    return (value, derivatives, aux) if has_aux else (value, derivatives)


def _checked(primals: Any, series: Any) -> tuple[list[Any], Any, int]:
    if not isinstance(primals, (tuple, list)) or not isinstance(series, (tuple, list)):
        raise ArgumentError("taylor takes tuples of primals and of series, as in taylor(f, (x,), ([dx, ddx],))")
    lengths = [len(terms) if isinstance(terms, (tuple, list)) else None for terms in series]
    if len(series) != len(primals) or None in lengths or len({*lengths}) > 1:
        raise ArgumentError(
            f"taylor takes one list of derivatives for each argument, all of one length; {len(primals)} arguments were "
            f"given, and lists of lengths {lengths}"
        )
    leaves, tree = flatten(tuple(primals))
    return leaves, tree, lengths[0] or 0 if lengths else 0


def _leaves(primals: Sequence[Any], given: list[Any], k: int) -> list[Any]:
    """The leaves of the terms of one order, ``None`` for those of an argument whose term is zero."""
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


def expanded(
    f: Callable[..., Any],
    curves: list[list[Term]],
    tree: Any,
    order: int,
    has_aux: bool = False,
    *,
    what: str = "taylor",
    collapse: Collapse | None = None,
) -> tuple[list[Any], Any, list[Coefficients], Any]:
    """Values, their tree, coefficients and aux of a function at leaves with coefficients."""
    level = next_level()

    def lowered(x: Any) -> Any:
        return x if coefficients_of(x, level) is None else x.value

    xs = [Coefficients(curve, order).forced(order) for curve in curves]
    args = unflatten(tree, [made(x, level, order, collapse) if len(x.terms) > 1 else x.terms[0] for x in xs])
    out, aux = split_aux(running(level, f, *args), has_aux, what)
    leaves, out_tree = flatten(out)
    outs = [as_value(lowered(y)) for y in leaves]
    terms = [coefficients_of(y, level) or Coefficients([z], order) for y, z in zip(leaves, outs)]
    return outs, out_tree, terms, map_tree(lowered, aux)
