"""Laws of arithmetic: each one fires, and those called exact keep every bit of the worst values there are."""

import math
from typing import Any

import numpy as np
import pytest

import tenferro_runtime as tr
from tenferro_runtime.extension import Builder, check_program, interpret
from tenferro_runtime.passes import remove_dead_code, simplify, simplify_rounding
from tenferro_runtime.passes.algebra import EXACT, ROUNDING, Hole, Law, Pattern
from tenferro_tensor import Spec, catalog, tensor

DTYPES = {"b": "bool", "i": "int64", "u": "uint8", "f": "float64", "c": "complex128"}
FLOATS = [0.0, -0.0, 1.0, -1.0, 2.5, -0.1, 5e-324, -1e308, math.inf, -math.inf, math.nan]
VALUES: dict[str, Any] = {
    "b": [False, True],
    "i": [0, 1, -1, 7, -(2**63), 2**63 - 1],
    "u": [0, 1, 200, 255],
    "f": FLOATS,
    "c": [complex(a, b) for a in FLOATS for b in FLOATS],
}


def dtype_of(hole: Hole, law: Law, kind: str) -> str:
    """Parts of complex numbers are real, branches may be anything; the rest is of the law's kind."""
    if law.left.primitive is catalog.select and hole.name != "p":
        return "float64"
    if law.left.primitive in (catalog.real, catalog.imag) and "complex" in str(law.left.operands[0]):
        return "float64"
    if law.left.primitive is catalog.complex:
        return "complex128"
    return DTYPES[kind]


def holes_of(form) -> list[Hole]:
    if isinstance(form, Hole):
        return [form]
    if isinstance(form, Pattern):
        return list(dict.fromkeys(h for o in form.operands for h in holes_of(o)))
    return []


def built(form, env):
    if isinstance(form, Hole):
        return env[form]
    if isinstance(form, Pattern):
        return form.primitive(*[built(o, env) for o in form.operands])
    return form


def cases(laws):
    return [
        pytest.param(law, kind, id=f"{i}-{law.left.primitive.name}-{kind}")
        for i, law in enumerate(laws)
        for kind in law.kinds
    ]


def programs(law: Law, kind: str):
    holes = holes_of(law.left)
    values = {}
    for i, hole in enumerate(holes):
        dtype = dtype_of(hole, law, kind)
        pool = VALUES[np.dtype(dtype).kind]
        grid = [v for v in pool for _ in pool] if i == 0 else [v for _ in pool for v in pool]
        values[hole] = grid
    count = min(map(len, values.values()))
    b = Builder()
    env, raws = {}, []
    for hole in holes:
        raws.append(tensor(np.asarray(values[hole][:count], dtype_of(hole, law, kind))))
        env[hole] = b.input(raws[-1].spec)
    numbers = [o for o in law.left.operands if not isinstance(o, (Hole, Pattern))]
    if law.left.primitive is catalog.select and numbers:
        pred = b.constant(tensor(np.full(count, numbers[0])))
        return b.close([catalog.select(pred, *[env[h] for h in holes])]), raws
    return b.close([built(law.left, env)]), raws


def bits(x) -> bytes:
    """Bytes, with one NaN for all NaN."""
    x = np.array(x.data)
    if x.dtype.kind == "c":
        x = x.view(x.real.dtype)
    if x.dtype.kind == "f":
        x[np.isnan(x)] = np.nan
    return x.tobytes()


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(("law", "kind"), cases(EXACT))
def test_an_exact_law_fires_and_keeps_every_bit(law: Law, kind: str) -> None:
    program, raws = programs(law, kind)
    after = check_program(remove_dead_code(simplify(program)))
    assert len(after.equations) < len(program.equations) or after.equations[-1].op.primitive is law.right.primitive
    assert bits(interpret(after, raws)[0]) == bits(interpret(program, raws)[0])


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(("law", "kind"), cases(ROUNDING))
def test_a_rounding_law_fires_and_keeps_ordinary_values(law: Law, kind: str) -> None:
    program, raws = programs(law, kind)
    assert simplify(program) is program
    after = check_program(remove_dead_code(simplify_rounding(program)))
    assert after is not program
    ordinary = [
        tensor(np.where(np.isfinite(r.data) & (np.abs(r.data) < 1e100), r.data, r.data.dtype.type(1))) for r in raws
    ]
    np.testing.assert_allclose(interpret(after, ordinary)[0].data, interpret(program, ordinary)[0].data, rtol=1e-15)


def test_what_is_no_law_is_left_alone() -> None:
    f8 = Spec((3,), np.dtype("float64"))
    for f in (
        lambda x: x + 0.0,  # makes 0.0 of -0.0
        lambda x: 0.0 - x,
        lambda x: -(x - 1.5),
        lambda x: x * 0.0,
        lambda x: tr.maximum(x, -x),
        lambda x: ~(x < 1.0),  # NaN is neither less nor greater
        lambda x: x / 3.0,
    ):
        program = tr.trace(f, f8)
        assert simplify(program) is program


def test_constants_that_repeat_one_number_count_as_the_number() -> None:
    x = Spec((2, 3), np.dtype("float64"))
    ones = tensor(np.ones((2, 3)))
    assert remove_dead_code(simplify(tr.trace(lambda x: x * ones, x))).equations == ()
    spread = tr.trace(lambda x: x * catalog.broadcast_in_dim(x[0, 0] * 0 + 1, shape=(2, 3), dims=()), x)
    assert simplify(spread) is spread
    n = tr.dim("n")
    b = Builder()
    y = b.input(Spec((n,), np.dtype("float64")))
    one = catalog.broadcast_in_dim(b.constant(tensor(1.0)), shape=(n,), dims=())
    assert remove_dead_code(simplify(b.close([y * one]))).equations == ()


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("divisor", [2.0, -0.25, 1024.0, 3.0, 0.0, math.inf, math.nan, 2.0**-1074, 2.0**127])
def test_division_by_a_power_of_two_is_a_product_to_the_bit(dtype: str, divisor: float) -> None:
    x = tensor(np.asarray([1.0, -3.7, 1e-45, 3e38, 0.0, -0.0, math.inf, math.nan], dtype))
    program = tr.trace(lambda x: x / divisor, x)
    after = simplify(program)
    tiny = float(np.finfo(dtype).tiny)
    exact = math.frexp(divisor)[0] in (0.5, -0.5) and tiny <= abs(divisor) <= 1 / tiny
    assert (after.equations[0].op.primitive is catalog.mul) == exact
    with np.errstate(all="ignore"):
        assert bits(interpret(after, [x])[0]) == bits(interpret(program, [x])[0])


@pytest.mark.parametrize("number", [1.0, 100.0, -0.5, math.inf, math.nan])
def test_a_number_that_is_not_zero_absorbs_nothing(number: float) -> None:
    y = np.array(FLOATS)
    program = tr.trace(lambda y: catalog.absorbing_mul(number, y), Spec(y.shape, y.dtype))
    found = simplify(program)
    assert catalog.absorbing_mul not in {eq.op.primitive for eq in found.equations}
    with np.errstate(all="ignore"):
        want, got = program.run(y)[0], interpret(remove_dead_code(found), (tensor(y),))[0]
    np.testing.assert_array_equal(np.asarray(got).view(np.int64), np.asarray(want).view(np.int64))


def test_a_zero_still_absorbs() -> None:
    program = tr.trace(lambda y: catalog.absorbing_mul(0.0, y), Spec((3,), np.dtype("float64")))
    np.testing.assert_array_equal(
        np.asarray(simplify(program).run(np.array([math.inf, math.nan, 1.0]))[0]), np.zeros(3)
    )
