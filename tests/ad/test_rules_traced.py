"""Rules in programs: traced derivatives equal eager ones, and symbolic sizes are never asked about."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

from rule_cases import CASES, Case
from rule_checks import random_like, raw
from tenferro_ad import jvp, vjp
from tenferro_ad.rules import TABLES
from tenferro_runtime import dim, trace
from tenferro_runtime.extension import Inactive
from tenferro_tensor import Primitive, Spec, tensor
from tenferro_tensor import catalog as c

F64 = np.dtype("float64")


def backward(f: Callable[..., Any]) -> Callable[..., Any]:
    """Cotangents of the arguments; takes the cotangent first."""
    return lambda g, *xs: list(vjp(f, *xs)[1](g))


def forward(f: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *both: [jvp(f, both[: len(both) // 2], both[len(both) // 2 :])[1]]


def agree(program: Any, eager: Callable[..., Any], args: list[np.ndarray]) -> None:
    values = [tensor(a) for a in args]
    for got, want in zip(program.run(*values), eager(*values), strict=True):
        assert got.spec is want.spec
        np.testing.assert_allclose(raw(got), raw(want), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_traced_derivatives_equal_eager_ones(case: Case) -> None:
    rng = np.random.default_rng(3)
    for operands in (case.xs, case.zs):
        if operands is None:
            continue
        xs = [np.asarray(x) for x in operands]
        ts = [random_like(rng, x) for x in xs]
        g = random_like(rng, raw(case.f(*map(tensor, xs))))
        agree(trace(backward(case.f), g, *xs), backward(case.f), [g, *xs])
        agree(trace(forward(case.f), *xs, *ts), forward(case.f), [*xs, *ts])


class Open(NamedTuple):
    """A call on operands with symbolic sizes."""

    name: str
    f: Callable[..., Any]
    shapes: tuple[tuple[Any, ...], ...]


N, M = dim("n"), dim("m")


def where_indices(x: Any) -> Any:
    """Index vectors of one entry, made of data."""
    order = c.argsort(x, axis=0, descending=True)
    return c.reshape(order, shape=(*order.shape, 1))


def taken(x: Any) -> Any:
    return c.gather(x, where_indices(x), offset_dims=(), collapsed_dims=(0,), start_index_map=(0,), slice_sizes=(1,))


def written(mode: str) -> Callable[[Any, Any], Any]:
    return lambda x, u: c.scatter(
        x, where_indices(u), u, update_window_dims=(), inserted_dims=(0,), scatter_dims=(0,), mode=mode
    )


OPEN = [
    Open("elementwise", lambda x, y: c.tanh(x * y) / (1.0 + c.exp(y)), ((N, M), (N, M))),
    Open("masked", lambda x: c.select(x > 0, c.sqrt(abs(x)), 0.0), ((N,),)),
    Open("extrema", lambda x, y: c.maximum(x, c.clamp(y, -1.0, 1.0)), ((N,), (N,))),
    Open("two variables", lambda x, y: c.hypot(x, y) + c.atan2(x, y) + c.logaddexp(x, y), ((N,), (N,))),
    Open("power", lambda x, y: abs(x) ** y, ((N,), (N,))),
    Open("broadcast", lambda x: c.broadcast_in_dim(x, shape=(x.shape[1], 3, x.shape[0]), dims=(2, 0)), ((M, N),)),
    Open("reshape", lambda x: c.reshape(x, shape=(x.shape[0] * x.shape[1],)), ((N, M),)),
    Open("transpose", lambda x: c.transpose(x, permutation=(1, 0)), ((N, M),)),
    Open("reverse", lambda x: c.reverse(x, axes=(0,)), ((N, M),)),
    Open("slice", lambda x: c.slice_(x, start=(0, 0), limit=x.shape, stride=(1, 1)), ((N, M),)),
    Open("strided slice", lambda x: c.slice_(x, start=(0,), limit=x.shape, stride=(2,)), ((N,),)),
    *[
        Open(
            f"{mode} a slice",
            lambda x, y, mode=mode: c.update_slice(x, y, start=(0, 1), stride=(1, 2), mode=mode),
            ((N, 5), (N, 2)),
        )
        for mode in ("set", "add")
    ],
    Open("pad", lambda x, v: c.pad(x, v, low=(1,), high=(2,), interior=(0,)), ((N,), ())),
    Open("interior pad", lambda x, v: c.pad(x, v, low=(1,), high=(2,), interior=(1,)), ((N,), ())),
    Open("concatenate", lambda x, y: c.concatenate(x, y, axis=0), ((N,), (M,))),
    Open("sum", lambda x: c.reduce_sum(x, axes=(0,)), ((N, M),)),
    Open("prod", lambda x: c.reduce_prod(x, axes=(0, 1)), ((N, M),)),
    Open("cumsum", lambda x: c.cumsum(x, axis=0, reverse=False), ((N, M),)),
    Open("cumprod", lambda x: c.cumprod(x, axis=0, reverse=False), ((N, 2),)),
    Open("cumprod reversed", lambda x: c.cumprod(x, axis=1, reverse=True), ((2, N),)),
    Open("cumlogsumexp", lambda x: c.cumlogsumexp(x, axis=0, reverse=True), ((N,),)),
    Open("dot", lambda x, y: c.dot_general(x, y, contract=((1,), (0,)), batch=((), ())), ((N, M), (M, 3))),
    Open("dynamic_slice", lambda x: c.dynamic_slice(x, tensor(0), tensor(1), sizes=(x.shape[0], 2)), ((N, 3),)),
    Open("dynamic_update_slice", lambda x, u: c.dynamic_update_slice(x, u, tensor(1), tensor(0)), ((N, 3), (N, 2))),
]

CHOOSING = [
    # These choose one element along an axis, so that there must be one.
    Open("max", lambda x: c.reduce_max(x, axes=(0,)), ((N, M),)),
    Open("min", lambda x: c.reduce_min(x, axes=(1,)), ((N, M),)),
    Open("cummax", lambda x: c.cummax(x, axis=0, reverse=False), ((N,),)),
    Open("cummin", lambda x: c.cummin(x, axis=1, reverse=True), ((2, N),)),
    Open("sort", lambda x: c.sort(x, axis=0, descending=True), ((N, M),)),
    Open("gather", taken, ((N,),)),
    *[Open(f"scatter {mode}", written(mode), ((N,), (N,))) for mode in ("add", "set", "mul", "min", "max")],
]


ELEMENTWISE = [
    p
    for p, rule in TABLES[0].RULES.items()
    if p.elementwise
    and not p.metadata
    and p.chooser is None
    and not isinstance(rule, Inactive)
    and p.domain in ("inexact", "floating")
]


@pytest.mark.parametrize("p", ELEMENTWISE, ids=lambda p: p.name)
def test_rules_of_elementwise_primitives_ask_nothing(p: Primitive) -> None:
    specs = [Spec((N, M), F64)] * len(p.operands)
    out = trace(lambda *xs: [p(*xs)], *specs).outputs[0]
    assert trace(backward(p), out, *specs).guards == ()
    assert trace(forward(p), *specs, *specs).guards == ()


def test_every_rule_is_traced_with_open_sizes() -> None:
    """Rules of structural primitives by the calls here, those of element-wise ones as a whole."""
    used = set()
    for call in [*OPEN, *CHOOSING]:
        program = trace(lambda *xs, f=call.f: [f(*xs)], *[Spec(shape, F64) for shape in call.shapes])
        used |= {eq.op.primitive for eq in program.equations}
    ruled = {p for table in TABLES for p, r in table.RULES.items() if not p.elementwise and not isinstance(r, Inactive)}
    assert {p.name for p in ruled - used} == {"transfer"}


def example(shape: tuple[Any, ...], sizes: dict[str, int], rng: np.random.Generator) -> np.ndarray:
    return rng.normal(size=[d if isinstance(d, int) else d.evaluate(sizes) for d in shape])


@pytest.mark.parametrize("call", [*OPEN, *CHOOSING], ids=lambda call: call.name)
def test_rules_ask_nothing_about_open_sizes(call: Open) -> None:
    rng = np.random.default_rng(5)
    specs = [Spec(shape, F64) for shape in call.shapes]
    primal = trace(lambda *xs: [call.f(*xs)], *specs)
    (out,) = primal.outputs
    pulled = trace(backward(call.f), out, *specs)
    pushed = trace(forward(call.f), *specs, *specs)
    for program in (pulled, pushed):
        asked = {(g.lhs, g.op, g.rhs) for g in program.guards}
        assert asked <= {(g.lhs, g.op, g.rhs) for g in primal.guards}
    for n, m in ((4, 3), (1, 2), (2, 1), *([(0, 2), (3, 0)] if call in OPEN else [])):
        sizes = {"n": n, "m": m}
        xs = [example(shape, sizes, rng) for shape in call.shapes]
        y = raw(call.f(*map(tensor, xs)))
        agree(pulled, backward(call.f), [rng.normal(size=y.shape), *xs])
        agree(pushed, forward(call.f), [*xs, *[rng.normal(size=x.shape) for x in xs]])
