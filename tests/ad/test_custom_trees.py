"""custom_rule over trees: containers, static arguments, both modes, and values from outside."""

from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import tenferro_runtime as tr
from tenferro_ad import check_grads, custom_rule, grad, jvp, value_and_grad, variable, vjp
from tenferro_runtime.extension import Linear
from tenferro_tensor_core import ArgumentError, GradientError

X, Y = np.array([0.5, 1.5]), np.array([2.0, 0.75])


class Result(NamedTuple):
    total: Any
    parts: dict[str, Any]


@tr.register_dataclass(static="power")
@dataclass
class Term:
    x: Any
    y: Any
    power: int = 2


def plain(term, shift, *, scale=1.0):
    value = scale * tr.sin(term.x) * term.y**term.power
    return Result(tr.sum(value) + shift[0], {"value": value, "double": 2.0 * shift[0] * term.x})


def push(primals, tangents, outs, *, scale):
    (term, shift), (t, s) = primals, tangents
    assert isinstance(outs[0], Result)
    t = Term(0.0 * term.x, 0.0 * term.y) if t is None else t
    s = [0.0 * shift[0]] if s is None else s
    n = term.power
    value = scale * (tr.cos(term.x) * t.x * term.y**n + tr.sin(term.x) * float(n) * term.y ** (n - 1) * t.y)
    double = 2.0 * (s[0] * term.x + shift[0] * t.x)
    return (Result(tr.sum(value) + s[0], {"value": value, "double": double}),)


def pull(primals, outs, cotangents, *, scale):
    (term, shift), (g,) = primals, cotangents
    n, (total, parts) = term.power, g
    each = scale * (parts["value"] + total)
    x = each * tr.cos(term.x) * term.y**n + 2.0 * shift[0] * parts["double"]
    y = each * tr.sin(term.x) * float(n) * term.y ** (n - 1)
    return Term(x, y, n), [total + 2.0 * tr.sum(parts["double"] * term.x)]


SIDES: dict[str, Any] = {"jvp": {"jvp": push}, "vjp": {"vjp": pull}, "both": {"jvp": push, "vjp": pull}}


def made(**sides: Any) -> Any:
    def f(term, shift, *, scale=1.0):
        return plain(term, shift, scale=scale)

    return custom_rule(f, **sides)


def close(tree: Any, expected: Any) -> None:
    assert tr.tree_structure(tree) is tr.tree_structure(expected)
    for a, b in zip(tr.tree_leaves(tree), tr.tree_leaves(expected), strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("compiled", [False, True])
def test_one_side_serves_every_mode(side: str, compiled: bool) -> None:
    f = made(**SIDES[side])
    wrap = tr.compile if compiled else lambda g: g
    loss = lambda out: tr.sum(out.parts["value"] ** 2) + out.total
    own = wrap(lambda term, shift: loss(f(term, shift, scale=3.0)))
    other = lambda term, shift: loss(plain(term, shift, scale=3.0))
    term, shift = Term(X, Y, 3), [0.25]
    for _ in range(3):  # by the rule, and by what was traced from it
        close(f(term, shift, scale=3.0), plain(Term(tr.asarray(X), tr.asarray(Y), 3), shift, scale=3.0))
        close(grad(own, (0, 1))(term, shift), grad(other, (0, 1))(term, shift))
        close(grad(own, 1)(term, shift), grad(other, 1)(term, shift))
        tangents = (Term(Y, X, 3), [2.0])
        close(jvp(own, (term, shift), tangents), jvp(other, (term, shift), tangents))
        one = lambda g: lambda y: g(Term(X, y, 3), shift)  # a part of a container only
        close(grad(one(own))(Y), grad(one(other))(Y))
        close(jvp(one(own), (Y,), (X,)), jvp(one(other), (Y,), (X,)))
    check_grads(lambda x, y, s: own(Term(x, y, 3), [s]), (X, Y, 0.25), order=2)


@pytest.mark.parametrize("side", SIDES)
def test_inside_of_loops_and_branches(side: str) -> None:
    f = made(**SIDES[side])

    def run(g: Any) -> Any:
        def loss(x: Any) -> Any:
            step = lambda c, y: (g(Term(c, y), [0.5]).parts["value"], None)
            last = tr.scan(step, x, tr.asarray([[1.0, 0.5], [0.75, 1.25], [2.0, 1.0]]))[0]
            return tr.sum(tr.cond(tr.sum(last) > 0, lambda v: g(Term(v, v), [v[0]]).parts["double"], lambda v: v, last))

        return loss

    close(tr.compile(value_and_grad(run(f)))(X), value_and_grad(run(plain))(X))
    close(value_and_grad(tr.compile(run(f)))(X), value_and_grad(run(plain))(X))
    close(jvp(run(f), (X,), (Y,)), jvp(run(plain), (X,), (Y,)))


def test_arrays_in_and_a_container_out_and_the_reverse() -> None:
    @custom_rule(vjp=lambda primals, outs, cotangents: (cotangents[0]["a"] + 3.0 * cotangents[0]["b"],))
    def spread(x):
        return OrderedDict(a=x, b=3.0 * x)

    value, pullback = vjp(spread, X)
    assert list(value) == ["a", "b"] and value.__class__ is OrderedDict
    np.testing.assert_allclose(np.asarray(pullback(OrderedDict(a=X, b=Y))[0]), X + 3 * Y)
    np.testing.assert_allclose(np.asarray(grad(lambda x: tr.sum(spread(x)["b"]))(X)), 3.0)

    @custom_rule(jvp=lambda primals, tangents, outs: (sum(tangents[0]),))
    def gather(xs):
        return sum(xs)

    assert [g.item() for g in grad(lambda xs: gather(xs) ** 2)([1.0, 2.0])] == [6.0, 6.0]

    @custom_rule(vjp=lambda primals, outs, cotangents: (None, cotangents[0]))
    def lists(x, y):
        return [x * y][0], [y]

    assert lists(2.0, 3.0)[0].item() == 6.0 and lists(2.0, 3.0)[1][0].item() == 3.0


def test_integers_beside_arrays_have_no_tangent() -> None:
    seen: list[Any] = []

    def rule(primals, tangents, outs):
        seen.append(tangents[0])
        return (tangents[0]["x"] * 2.0 ** primals[0]["n"],)

    scaled = custom_rule(lambda t: t["x"] * 2.0 ** t["n"], jvp=rule)
    assert grad(lambda x: scaled({"x": x, "n": 3}))(1.0).item() == 8.0
    assert all(t["n"] is None for t in seen)


def test_host_code_and_the_specs_of_its_result() -> None:
    def split(t, *, at):
        x = t["x"].numpy()
        return {"low": x[:at] ** 2, "high": x[at:]}

    def infer(t, *, at):
        (n,) = t["x"].shape
        return {"low": t["x"].with_(shape=(at,)), "high": t["x"].with_(shape=(n - at,))}

    def rule(primals, outs, cotangents, *, at):
        g = cotangents[0]
        return ({"x": tr.concat([2.0 * g["low"] * primals[0]["x"][:at], g["high"]])},)

    cut = custom_rule(split, infer=infer, vjp=rule)
    loss = lambda x: tr.sum(cut({"x": x}, at=1)["low"]) + tr.sum(cut({"x": x}, at=2)["high"] * 5.0)
    for f in (loss, tr.compile(loss)):
        np.testing.assert_allclose(np.asarray(grad(f)(np.array([3.0, 4.0, 5.0]))), [6.0, 0.0, 5.0])


def square(x):
    return x * x


def test_static_arguments_may_be_functions_by_position() -> None:
    @custom_rule(
        static_argnames=["g", "steps"],
        jvp=lambda primals, tangents, outs, g, steps: (jvp(g, (primals[0]["x"],), (tangents[0]["x"],))[1] * steps,),
    )
    def repeated(g, t, steps=1):
        return g(t["x"]) * steps

    for wrap in (lambda f: f, tr.compile):
        f = wrap(lambda x: repeated(square, {"x": x}, steps=3))
        assert f(2.0).item() == 12.0 and grad(f)(2.0).item() == 12.0 and grad(grad(f))(2.0).item() == 6.0
        assert grad(wrap(lambda x: repeated(tr.sin, {"x": x})))(0.0).item() == 1.0
    flat = custom_rule(lambda n, x: x**n, static_argnames="n", jvp=lambda p, t, o, n: (n * p[0] ** (n - 1) * t[0],))
    assert flat(3, 2.0).item() == flat(x=2.0, n=3).item() == 8.0 and grad(lambda x: flat(3, x))(2.0).item() == 12.0


def test_what_static_arguments_must_be() -> None:
    with pytest.raises(ArgumentError, match="'steps' of .* must be an array .* or name it in static_argnames"):
        custom_rule(lambda g, t, steps=1: t, static_argnames="g", jvp=push)
    with pytest.raises(ArgumentError, match="static_argnames='q' names no parameter of"):
        custom_rule(lambda x: x, static_argnames="q", jvp=push)
    f = custom_rule(lambda t, *, n: t["x"] * n[0], jvp=lambda p, t, o, n: (t[0]["x"] * n[0],))
    with pytest.raises(ArgumentError, match="static arguments of .* must be hashable"):
        f({"x": 1.0}, n=[1])


def test_values_from_outside_are_named() -> None:
    one = lambda primals, outs, cotangents: ({"x": cotangents[0]},)

    def over(w: Any) -> Any:
        return custom_rule(lambda t: t["x"] * w, vjp=one)({"x": 1.0})

    def in_the_rule(w: Any) -> Any:
        return custom_rule(lambda t: t["x"], vjp=lambda p, o, c: ({"x": c[0] * w},))({"x": 1.0})

    def as_an_argument(w: Any) -> Any:
        apply = custom_rule(
            lambda t, *, g: g(t["x"]), vjp=lambda p, o, c, g: ({"x": c[0]},), infer=lambda t, *, g: t["x"]
        )
        return apply({"x": 1.0}, g=lambda x: x * w)

    for f in (over, in_the_rule, as_an_argument):
        for call in (grad(f), tr.compile(f), lambda w, f=f: f(variable(w)), lambda w, f=f: jvp(f, (w,), (w,))):
            with pytest.raises(
                GradientError, match="closes over w, .* which the rule does not know; pass it as an argument"
            ):
                call(2.0)


def test_files_keep_calls_with_trees(tmp_path: Path) -> None:
    def total(t, *, times):
        return {"sum": times * (t["a"] + t["b"][0])}

    def rule(primals, outs, cotangents, *, times):
        g = times * cotangents[0]["sum"]
        return ({"a": g, "b": (g,)},)

    named = custom_rule(total, vjp=rule, family="wave-company.total.v1")
    f = tr.compile(lambda a, b: named({"a": a, "b": (b,)}, times=2.0)["sum"])
    f.save(tmp_path / "f.tfp", X, Y)
    again = tr.load(tmp_path / "f.tfp")
    np.testing.assert_array_equal(np.asarray(again(X, Y)), 2 * (X + Y))
    np.testing.assert_array_equal(np.asarray(grad(lambda a: tr.sum(again(a, Y)))(X)), 2.0)


def test_wrong_rules_and_results_are_told() -> None:
    tree = {"a": X, "b": X}
    total = lambda t: tr.sum(t["a"] * t["b"])
    short = custom_rule(total, vjp=lambda p, o, c: c[0])
    with pytest.raises(
        GradientError, match="the vjp of .* must return a tuple with one cotangent or None for each of 1 arg"
    ):
        grad(short)(tree)
    other = custom_rule(total, vjp=lambda p, o, c: ({"a": c[0]},))
    with pytest.raises(ArgumentError, match="cotangent 0 that the vjp of .* without 'b'"):
        grad(other)(tree)
    shape = custom_rule(total, vjp=lambda p, o, c: ({"a": c[0], "b": None},))
    with pytest.raises(GradientError, match=r"float64\[\]"):
        grad(shape)(tree)
    record = custom_rule(total, rule=Linear(t=lambda g: g))
    with pytest.raises(ArgumentError, match="has a rule record, which is for arrays"):
        record(tree)
    lying = custom_rule(lambda t: {"c": t["a"]}, vjp=lambda p, o, c: (None,), infer=lambda t: {"d": t["a"]})
    with pytest.raises(ArgumentError, match=r"the result of .* must have the structure \{'d': \*\}, got \{'c': \*\}"):
        lying(tree)
    empty = custom_rule(lambda t: {}, vjp=lambda p, o, c: (None,))
    with pytest.raises(ArgumentError, match="should return Specs in containers, but returned"):
        empty(tree)
    with pytest.raises(ArgumentError, match=r"an argument of .* at \[0\]\['a'\] is a str"):
        short({"a": "text", "b": X})
