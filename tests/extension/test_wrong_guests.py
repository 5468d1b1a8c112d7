"""Guests with mistakes at any hook: a user gets a typed error, or the guest's own, and nothing else suffers."""

import traceback

import numpy as np
import pytest

import tenferro_runtime as tr
import wrong_guests
from tenferro_ad import grad, jvp, vjp
from tenferro_runtime.extension import Cost, General, Slopes
from tenferro_tensor import REGISTRY, Spec, primitive
from tenferro_tensor_core import ArgumentError, GradientError, RegistryError, TenferroError
from wrong_guests import Guest, GuestFault


def hold(seed: int) -> int:
    """Do everything with one guest; returns the number of refusals."""
    refused = 0
    try:
        guest = Guest(seed)
    except TenferroError:
        return 1
    for name, use in guest.uses():
        try:
            with np.errstate(all="ignore"):
                use()
        except (TenferroError, GuestFault):
            refused += 1
        except Exception as error:
            last = traceback.extract_tb(error.__traceback__)[-1].filename
            if last != wrong_guests.__file__:  # neither typed, nor raised by the guest's own code
                raise AssertionError(f"seed {seed}, {name}, {guest.chosen}: {error!r}") from error
    return refused


def test_a_guest_s_mistakes_are_typed_errors() -> None:
    before = sum(map(hold, range(30)))
    assert before > 100, "the guests make mistakes"
    x = tr.asarray([1.0, 2.0])
    assert tr.compile(grad(lambda v: tr.sum(v * v)))(x).tolist() == [2.0, 4.0]


@primitive
def guest(x: Spec, *, by: int) -> Spec:
    """Of a guest."""
    return x


@pytest.mark.parametrize(
    ("register", "text"),
    [
        (
            lambda: REGISTRY.kernel(guest, "cpu", 3),  # type: ignore[arg-type]
            r"the kernel of guest should be a function \(ins, outs, by\), got 3",
        ),
        (
            lambda: REGISTRY.kernel(guest, "cpu", lambda ins, outs: None),
            r"the kernel of guest is called with \(ins, outs, by\), but .* does not take that: got an unexpe",
        ),
        (lambda: REGISTRY.lowering(guest, lambda operands, outs, by: None), r"\(emitter, operands, outs, by\), but .*"),
        (
            lambda: REGISTRY.cost(guest, lambda ins, outs: Cost(1)),
            r"the cost of guest is called with \(ins, outs, by\)",
        ),
        (lambda: REGISTRY.pruning(guest, lambda op: None), r"the prune of guest is called with \(op, used\), but"),
        (lambda: REGISTRY.codec(guest, dict, 3), r"the decode of guest should be a function \(metadata\), got 3"),  # type: ignore[arg-type]
    ],
)
def test_a_function_that_cannot_be_called_is_refused_when_it_is_registered(register, text: str) -> None:
    with pytest.raises(RegistryError, match=text):
        register()


def test_functions_in_c_and_partial_ones_are_taken() -> None:
    with REGISTRY.codec(guest, dict, dict), REGISTRY.kernel(guest, "cpu", lambda ins, outs, *, by: np.negative):
        assert guest(tr.ones(2), by=1).tolist() == [-1.0, -1.0]


@pytest.mark.parametrize(
    ("kernel", "text"),
    [
        (None, r"the kernel that was made for guest should be a function \(x0\), got None"),
        (lambda: 1.0, r"the kernel that was made for guest is called with \(x0\), but .* does not take that: too many"),
    ],
)
def test_a_maker_makes_functions_of_the_operands(kernel, text: str) -> None:
    with REGISTRY.kernel(guest, "cpu", lambda ins, outs, by: kernel):
        for run in (lambda v: guest(v, by=1), tr.compile(lambda v: guest(v, by=1) + 1.0)):
            with pytest.raises(RegistryError, match=text):
                run(tr.ones(2))


RULES = {
    "no record": (
        3,
        RegistryError,
        "the rule of guest is 3, which is not a rule record; register Slopes, Linear, General",
    ),
    "jvp count": (
        General(jvp=lambda p, t, o, by: ()),
        GradientError,
        "the jvp of guest must return a tuple with one value or None for each output, 1 in all, but returned 0 values",
    ),
    "vjp None": (
        General(vjp=lambda p, o, c, by: None),
        GradientError,
        "the vjp of guest must return a tuple with one value or None for each operand, 1 in all, but returned a None",
    ),
    "vjp shape": (
        General(vjp=lambda p, o, c, by: (c[0][:1],)),
        GradientError,
        r"the rule of guest returned a cotangent float64\[1\] for its operand 'x', which is float64\[2\]",
    ),
    "jvp shape": (
        General(jvp=lambda p, t, o, by: (t[0][:1],)),
        GradientError,
        r"the rule of guest returned a tangent float64\[1\] for output 0, which is float64\[2\]",
    ),
}


@pytest.mark.parametrize("case", RULES)
def test_a_rule_returns_what_its_side_says_in_both_modes(case: str) -> None:
    rule, error, text = RULES[case]
    x = tr.asarray([1.0, 2.0])
    with REGISTRY.kernel(guest, "cpu", lambda ins, outs, by: lambda x: x * 2), REGISTRY.rule(guest, rule):
        with pytest.raises(error, match=text):
            grad(lambda v: tr.sum(guest(v, by=1)))(x)
        with pytest.raises(error, match=text):
            jvp(lambda v: guest(v, by=1), (x,), (x,))


@primitive(elementwise=True)
def scaled(x: Spec) -> Spec:
    """Of a guest, element by element."""
    return x


SLOPES = {
    "too long": (
        lambda x: np.ones(2, "float32"),
        r"derivative of scaled is a float32\[2\], which does not broadcast to the output, a float32\[1\]; return",
    ),
    "too many axes": (
        lambda x: x[None],
        r"derivative of scaled is a float32\[1, 1\], which does not broadcast to the output, a float32\[1\]; return",
    ),
    "wider numbers": (
        lambda x: np.ones(1),
        r"the rule of scaled returned a (co)?tangent float64\[1\] for .*, which is float32\[1\]",
    ),
    "complex numbers": (
        lambda x: 1j,
        r"the rule of scaled returned a (co)?tangent complex64\[1\] for .*, which is float32\[1\]",
    ),
}


@pytest.mark.parametrize("case", SLOPES)
def test_slopes_fit_the_output_in_both_modes(case: str) -> None:
    slope, text = SLOPES[case]
    x = tr.ones(1, dtype="float32")

    def f(v):
        return scaled(v)

    ways = [
        lambda: jvp(f, (x,), (x,)),
        lambda: vjp(f, x)[1](x),
        lambda: grad(lambda v: tr.sum(f(v)))(x),
        lambda: tr.compile(lambda v: jvp(f, (v,), (v,)))(x),
        lambda: tr.compile(grad(lambda v: tr.sum(f(v))))(x),
    ]
    with REGISTRY.kernel(scaled, "cpu", lambda ins, outs: lambda x: x * 2), REGISTRY.rule(scaled, Slopes(x=slope)):
        for way in ways * 3:
            with pytest.raises(GradientError, match=text):
                way()


@pytest.mark.parametrize(
    "slope",
    [2.0, lambda x: 2.0, lambda x: np.float32(2), lambda x: np.full(1, 2, "float32")],
    ids=["number", "function", "array of no axes", "array of one"],
)
def test_slopes_broadcast_to_the_output(slope) -> None:
    x = tr.ones((2, 3), dtype="float32")
    with REGISTRY.kernel(scaled, "cpu", lambda ins, outs: lambda x: x * 2), REGISTRY.rule(scaled, Slopes(x=slope)):
        for _ in range(3):
            for way in (lambda v: jvp(lambda v: scaled(v), (v,), (v,))[1], grad(lambda v: tr.sum(scaled(v)))):
                for got in (way(x), tr.compile(way)(x)):
                    assert (got.dtype, got.tolist()) == (x.dtype, [[2.0] * 3] * 2)


def test_general_takes_functions() -> None:
    with pytest.raises(ArgumentError, match=r"General\(vjp=...\) takes a function, got 3"):
        General(vjp=3)  # type: ignore[arg-type]
