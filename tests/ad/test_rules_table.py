"""Every rule of the core: against central differences, forward against reverse, first and second order, four dtypes."""

import numpy as np
import pytest

from rule_cases import CASES, Case
from rule_checks import check_derivatives, check_single_precision
from tenferro_ad import jvp, rules, vjp
from tenferro_runtime.extension import General, Inactive, check_rule
from tenferro_tensor import REGISTRY, Primitive, Registry, Spec, catalog, primitive, tensor

PRIMITIVES = {n: p for n, p in vars(catalog).items() if isinstance(p, Primitive)}
RULES = {p: r for table in rules.TABLES for p, r in table.RULES.items()}


@pytest.mark.parametrize("case", [case for case in CASES if case.xs is not None], ids=str)
def test_real_operands(case: Case) -> None:
    check_derivatives(case.f, case.xs)


@pytest.mark.parametrize("case", [case for case in CASES if case.zs is not None], ids=str)
def test_complex_operands(case: Case) -> None:
    check_derivatives(case.f, case.zs)


@pytest.mark.parametrize("case", [case for case in CASES if case.single], ids=str)
def test_single_precision_keeps_its_dtypes(case: Case) -> None:
    for operands in (case.xs, case.zs):
        if operands is not None:
            check_single_precision(case.f, operands)


def test_every_primitive_has_a_rule() -> None:
    assert set(RULES) == set(PRIMITIVES.values())


def test_every_differentiable_primitive_has_a_case() -> None:
    active = {p.name for p, r in RULES.items() if not isinstance(r, Inactive)}
    assert {case.primitive.name for case in CASES} == active


def test_every_rule_fits_its_primitive() -> None:
    for p, record in RULES.items():
        check_rule(p, record)


def test_no_two_tables_claim_one_primitive() -> None:
    assert sum(len(table.RULES) for table in rules.TABLES) == len(RULES)
    registry = Registry()
    rules.register(registry)
    assert all(registry.find("rule", p) is r for p, r in RULES.items())


def test_the_checker_finds_a_derivative_that_is_wrong_in_both_modes() -> None:
    # stop_gradient hides half of the product from both modes.
    with pytest.raises(AssertionError, match="jvp against central differences"):
        check_derivatives(lambda x: x * catalog.stop_gradient(x), [np.array([1.0, 2.0])])


@primitive
def crooked(x: Spec) -> Spec:
    """The square, with a vjp that lacks the factor 2."""
    return x


def test_the_checker_finds_two_sides_that_disagree() -> None:
    REGISTRY.kernel(crooked, "cpu", lambda ins, outs: np.square)
    REGISTRY.rule(
        crooked,
        General(
            jvp=lambda primals, tangents, outs: (2 * primals[0] * tangents[0],),
            vjp=lambda primals, outs, cotangents: (primals[0] * cotangents[0],),
        ),
    )
    with pytest.raises(AssertionError, match="vjp against jvp"):
        check_derivatives(crooked, [np.array([1.0, 2.0])])


@pytest.mark.parametrize("case", [case for case in CASES if case.f is case.primitive], ids=str)
def test_numbers_without_axes(case: Case) -> None:
    check_derivatives(case.f, [np.asarray(x).reshape(-1)[0] for x in case.xs or ()])


INDEX = tensor(np.zeros((0, 1), dtype=np.int64))
ROWS = {"update_window_dims": (1,), "inserted_dims": (0,), "scatter_dims": (0,)}
EMPTY = [
    Case(catalog.tanh, catalog.tanh, (np.ones((0, 3)),)),
    Case(catalog.maximum, catalog.maximum, (np.ones((0,)), np.ones((0,)))),
    Case(catalog.reduce_sum, lambda x: catalog.reduce_sum(x, axes=(0,)), (np.ones((0, 3)),)),
    Case(catalog.reduce_prod, lambda x: catalog.reduce_prod(x, axes=(0, 1)), (np.ones((2, 0)),)),
    Case(catalog.reduce_max, lambda x: catalog.reduce_max(x, axes=(1,)), (np.ones((0, 3)),)),
    Case(catalog.cumprod, lambda x: catalog.cumprod(x, axis=1, reverse=True), (np.ones((2, 0)),)),
    Case(catalog.cummax, lambda x: catalog.cummax(x, axis=0, reverse=False), (np.ones((0,)),)),
    Case(catalog.cumlogsumexp, lambda x: catalog.cumlogsumexp(x, axis=0, reverse=True), (np.ones((0, 2)),)),
    Case(catalog.sort, lambda x: catalog.sort(x, axis=1, descending=True), (np.ones((2, 0)),)),
    Case(
        catalog.dot_general,
        lambda x, y: catalog.dot_general(x, y, contract=((1,), (0,)), batch=((), ())),
        (np.ones((2, 0)), np.ones((0, 3))),
    ),
    Case(
        catalog.gather,
        lambda x: catalog.gather(
            x, INDEX, offset_dims=(1,), collapsed_dims=(0,), start_index_map=(0,), slice_sizes=(1, 3)
        ),
        (np.ones((4, 3)),),
    ),
    *[
        Case(
            catalog.scatter,
            lambda x, u, mode=mode: catalog.scatter(x, INDEX, u, mode=mode, **ROWS),
            (np.ones((4, 3)), np.ones((0, 3))),
            note=mode,
        )
        for mode in ("add", "set", "mul", "min", "max")
    ],
]


@pytest.mark.parametrize("case", EMPTY, ids=str)
def test_zero_extents(case: Case) -> None:
    assert case.xs is not None
    check_derivatives(case.f, case.xs)


def test_slopes_at_a_complex_zero_are_zero() -> None:
    zero, one = tensor(np.array(0j)), tensor(np.array(1.0 + 1.0j))
    assert complex(jvp(catalog.sign, (zero,), (one,))[1].data) == 0
    assert complex(vjp(catalog.sign, zero)[1](one)[0].data) == 0
    assert complex(jvp(lambda y: catalog.pow(zero, y), (tensor(np.array(2.0 + 1.0j)),), (one,))[1].data) == 0


def test_a_real_operand_converted_to_complex_has_a_real_cotangent() -> None:
    x = tensor(np.array([1.0, 2.0]))
    (g,) = vjp(lambda x: catalog.convert(x, dtype=np.dtype(complex)), x)[1](tensor(np.array([1 + 2j, 3 - 1j])))
    assert g.spec == x.spec and np.asarray(g.data).tolist() == [1.0, 3.0]
