"""First, second and third derivatives where formulas divide by zero, operands are equal, or limits stand in.

Every order is computed in several compositions of modes, eager, compiled, and of a compiled function. All entries are
compared, so that mixed derivatives must agree in either order.
"""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tenferro_runtime as tr
from critical_points import EDGES, SMOOTH, Edge, derivatives
from tenferro_ad import hessian, jacfwd, jacrev
from thorough import THOROUGH

Transform = Callable[[Callable[[Any], Any]], Callable[[Any], Any]]
WAYS: list[dict[str, Transform]] = [
    {"forward": jacfwd, "reverse": jacrev},
    {
        "forward over forward": lambda f: jacfwd(jacfwd(f)),
        "forward over reverse": hessian,
        "reverse over forward": lambda f: jacrev(jacfwd(f)),
        "reverse over reverse": lambda f: jacrev(jacrev(f)),
    },
    {
        "forward thrice": lambda f: jacfwd(jacfwd(jacfwd(f))),
        "forward over reverse over reverse": lambda f: jacfwd(jacrev(jacrev(f))),
        "reverse over forward over reverse": lambda f: jacrev(jacfwd(jacrev(f))),
        "reverse thrice": lambda f: jacrev(jacrev(jacrev(f))),
    },
]


ORDERS: list[Transform] = [jacrev, hessian, lambda f: jacfwd(hessian(f))]
TURNS = (0, 1, 0, 1, 2)
"""The orders of programs in turn: those of third derivatives take long to compile."""


def everything(f: Callable[[Any], Any], turn: int = 0, *, all_ways: bool = THOROUGH) -> Callable[..., Any]:
    """The derivatives of three orders at a point, by the names of the ways to compute them.

    Every function meets every order, every composition of modes, and both ways to compile, and every order meets both
    ways to compile; of all three together a part is taken by `turn`, the number of the function: one order of the
    compiled function, and another one compiled. Of several points, each takes two compositions of second derivatives
    and one of third ones by turns, and the first one alone derivatives of the compiled function; an only point takes
    all compositions of second derivatives and every other one of third ones.
    """
    eager = [{name: way(f) for name, way in ways.items()} for ways in WAYS]
    called = tr.compile(f)
    compiled: list[dict[str, Any]] = [
        {
            name: g
            for place, (name, g) in enumerate((("compiled", tr.compile(d(f))), ("of compiled", d(called))))
            if all_ways or TURNS[(turn + place) % len(TURNS)] == order
        }
        for order, d in enumerate(ORDERS)
    ]

    def at(x: Any, number: int | None = None) -> list[dict[str, Any]]:
        found = []
        for order, ways in enumerate(eager):
            every = 1 if all_ways else (1, 1, 2)[order] if number is None else (1, 2, 4)[order]
            taken = [way for at, way in enumerate(ways.items()) if (at + turn + (number or 0)) % every == 0]
            taken += [way for way in compiled[order].items() if way[0] == "compiled" or not number]
            found.append({name: np.asarray(g(x)) for name, g in taken})
        return found

    return at


@pytest.fixture(autouse=True)
def quiet() -> Any:
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        yield


@pytest.mark.parametrize("name", SMOOTH)
def test_derivatives_that_exist(name: str) -> None:
    case = SMOOTH[name]
    at = everything(case.f, [*SMOOTH].index(name))
    for number, point in enumerate(case.points):
        turn = None if THOROUGH or len(case.points) == 1 else number
        for order, found in enumerate(at(tr.asarray(np.array(point)), turn), 1):
            want = derivatives(case, point, order)
            for way, got in found.items():
                np.testing.assert_allclose(got, want, rtol=1e-8, atol=1e-9, err_msg=f"{point}, order {order}, {way}")


@pytest.mark.parametrize("name", EDGES)
def test_values_that_stand_in(name: str) -> None:
    case: Edge = EDGES[name]
    n = len(case.point)
    for order, found in enumerate(everything(case.f, [*EDGES].index(name))(tr.asarray(np.array(case.point))), 1):
        if case[order + 1] is None:
            continue
        want = np.broadcast_to(np.asarray(case[order + 1], float), (n,) * order)
        for way, got in found.items():
            np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-15, err_msg=f"order {order}, {way}")


def test_the_tables_tell_a_wrong_derivative() -> None:
    kinked = lambda v: tr.max(v) + tr.log1p(tr.exp(-tr.abs(v[0] - v[1])))
    with pytest.raises(AssertionError):
        for got in everything(kinked)(tr.asarray([0.6, 0.6]))[1].values():
            np.testing.assert_allclose(got, derivatives(SMOOTH["logaddexp"], (0.6, 0.6), 2), rtol=1e-8)
