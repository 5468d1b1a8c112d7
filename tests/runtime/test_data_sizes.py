"""Extents that depend on data: one program for all of them, with gradients; what they can be asked, and assumptions."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tenferro_runtime as tr
from runtime_rooms import COUNTERS, lowered
from tenferro_ad import grad, jvp, value_and_grad, vjp
from tenferro_cpu.native import available
from tenferro_runtime.extension import check_program, optimise
from tenferro_runtime.running import fusion
from tenferro_tensor import Spec, tensor
from tenferro_tensor_core import ArgumentError, InconclusiveDimError, ShapeError, TracingError, UnsupportedError
from tenferro_xla import lower_to_stablehlo

F8, I8 = np.dtype("float64"), np.dtype("int64")
n, m = tr.dim("n"), tr.dim("m")


def close(got, want):
    for a, b in zip(got, want, strict=True):
        assert a.spec is b.spec
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-9, atol=1e-9)


def adaptive(x, tol):
    """A low-rank approximation whose rank follows from the singular values."""
    u, s, vh = tr.linalg.svd(x, full_matrices=False)
    k = tr.sum(tr.astype(s > tol * s[0], tr.int64))
    u, s, vh = tr.truncate(u, k, axis=1), tr.truncate(s, k), tr.truncate(vh, k)
    return tr.sum(tr.sin((u * s) @ vh)) + tr.sum(s**3)


def test_adaptive_rank_is_one_program_with_the_eager_gradient():
    f = value_and_grad(adaptive)
    program = check_program(optimise(check_program(tr.trace(lambda *a: list(f(*a)), Spec((n, m), F8), Spec((), F8)))))
    assert [str(g).partition(" (")[0] for g in program.guards] == ["0 < min(m, n)"]
    compiled = tr.compile(f)
    seen = set()
    for rank in range(50):
        rng = np.random.default_rng(rank)
        x, tol = tensor(rng.normal(size=(60, 52))), tensor(np.linalg.svd(np.eye(2))[1][0] * 0)
        s = np.linalg.svd(x.numpy(), compute_uv=False)
        tol = tensor((s[rank] + s[rank + 1]) / 2 / s[0])
        seen.add(int((s > float(tol) * s[0]).sum()))
        want = f(x, tol)
        close(program.run(x, tol), want)
        close(compiled(x, tol), want)
    assert seen == set(range(1, 51)) and compiled.cache_info().traces == 1
    for a, b in [(5, 3), (2, 7), (1, 1)]:
        for tol in (0.0, 0.5, 2.0):
            x = tensor(np.random.default_rng(a).normal(size=(a, b)))
            close(program.run(x, tensor(tol)), f(x, tensor(tol)))


def test_a_known_rank_runs_by_the_short_way():
    compiled = tr.compile(value_and_grad(adaptive))
    x = tensor(np.random.default_rng(0).normal(size=(6, 5)))
    ranks = [tensor(t) for t in (0.0, 0.2, 0.5, 0.8)]
    for _ in range(2):
        for tol in ranks:
            compiled(x, tol)
    fusion.wait()
    before = replace(COUNTERS)
    found = [compiled(x, tol) for tol in ranks]
    assert before == COUNTERS
    for tol, got in zip(ranks, found, strict=True):
        close(got, value_and_grad(adaptive)(x, tol))


def test_steps_before_and_after_a_definition_are_one_part():
    def f(x, k):
        small = tr.truncate(tr.exp(x) * 2.0 + x, k)
        return tr.sin(small) * 3.0 + tr.zeros(small.shape) + tr.sum(small * small + 1.0)

    program = optimise(tr.trace(f, Spec((n,), F8), Spec((), I8)))
    steps = [eq.op.primitive.name for eq in check_program(lowered(program)).equations]
    assert steps == ["define_size", "call"] or not available()
    for size, k in [(5, 3), (4, 0), (1, 1), (6, 9), (0, 3)]:
        x = tensor(np.random.default_rng(k).normal(size=size))
        for _ in range(4):
            close(program.run(x, tensor(k)), [f(x, tensor(k))])
            fusion.wait()


def test_a_loop_beside_a_definition_runs_natively():
    """Its carry has a size that depends on data, and a definition after it depends on its result."""

    def f(x):
        y = tr.compress(x, x > 0)
        y = tr.fori_loop(0, 4, lambda i, y: tr.sin(y) * 2.0 - x[i], y)
        z = tr.compress(y, y > 0)
        return tr.sum(z * z), z

    compiled = tr.compile(f)
    for size, seed in [(9, 0), (9, 1), (5, 2), (4, 3), (30, 4)]:
        x = tensor(np.random.default_rng(seed).normal(size=size))
        for _ in range(3):
            close(compiled(x), f(x))
            fusion.wait()
    calls = [eq for eq in lowered(compiled.program(x)).equations if eq.op.primitive.name == "call"]
    assert len(calls) >= 2 or not available()


def test_sizes_pass_through_the_parts_of_a_long_program():
    def f(x, k):
        y = tr.truncate(x, k)
        z = y
        for i in range(300):
            z = z[::-1] + i
        return z + tr.ones(y.shape), tr.arange(y.shape[0])

    with tr.Runtime(fusion=False):
        program = tr.trace(f, Spec((n,), F8), Spec((), I8))
        for k in (0, 2, 5):
            x = tensor(np.arange(4.0))
            close(program.run(x, tensor(k)), f(x, tensor(k)))


@given(k=st.integers(0, 9), n0=st.integers(0, 6), n1=st.integers(0, 4))
def test_sizes_in_line(k, n0, n1):
    x = tensor(np.ones((n0, n1)))
    for a, b in zip(IN_LINE(x, tensor(k)), in_line(x, tensor(k)), strict=True):
        np.testing.assert_array_equal(a.numpy(), b.numpy())


def in_line(x, k):
    y = tr.truncate(x, k)
    u, w = y.shape[0], x.shape[1]
    return tr.zeros((u * w + 2, w)), tr.reshape(tr.zeros((2 * u, w)), (w, u, 2)), tr.arange(u // 2 + w) / (u + 1)


IN_LINE = tr.compile(in_line)


def test_a_compiled_function_is_differentiated_through_its_sizes():
    compiled = tr.compile(adaptive)
    for tol in (0.2, 0.6):
        x = tensor(np.random.default_rng(1).normal(size=(6, 4)))
        close([grad(compiled)(x, tensor(tol))], [grad(adaptive)(x, tensor(tol))])
        close(jvp(lambda x, tol=tol: compiled(x, tensor(tol)), (x,), (x,)),
              jvp(lambda x, tol=tol: adaptive(x, tensor(tol)), (x,), (x,)))  # fmt: skip


def test_the_derivative_of_a_compiled_function_is_two_programs_for_all_ranks():
    compiled = tr.compile(adaptive)
    x = tensor(np.random.default_rng(0).normal(size=(12, 9)))
    s = np.linalg.svd(x.numpy(), compute_uv=False)
    ranks = [tensor((a + b) / 2 / s[0]) for a, b in pairwise(s)]

    def both(f, tol):
        y, back = vjp(lambda x: f(x, tol), x)
        return [y, back(tensor(1.0))[0], jvp(lambda x: f(x, tol), (x,), (x,))[1]]

    both(compiled, ranks[0])
    before = replace(COUNTERS)
    found = [both(compiled, tol) for tol in ranks]
    assert (before.traces, before.renders) == (COUNTERS.traces, COUNTERS.renders)
    for got, tol in zip(found, ranks, strict=True):
        close(got, both(adaptive, tol))


def test_derivatives_of_derivatives_of_a_compiled_function():
    def f(x, k):
        y = tr.truncate(tr.sin(x), k)
        return tr.sum(y**3) / (y.shape[0] + 1) + tr.sum(tr.zeros(y.shape) + 2.0) * x[0]

    compiled = tr.compile(f)
    x = tensor(np.arange(1.0, 6.0))
    for k in (0, 2, 5):

        def second(f, k=k):
            return [grad(lambda x: tr.sum(grad(lambda x: f(x, k))(x) ** 2))(x),
                    jvp(grad(lambda x: f(x, k)), (x,), (tr.cos(x),))[1]]  # fmt: skip

        close(second(compiled), second(f))
        close(tr.compile(lambda x, k: second(lambda x, _: compiled(x, k)))(x, tensor(k)), second(f))


CALLS = {
    "truncate": lambda x, k: tr.truncate(x, k),
    "columns": lambda x, k: tr.truncate(x, k, axis=1) * 2.0,
    "bounded": lambda x, k: tr.truncate(x, k, max=6),
    "twice": lambda x, k: tr.truncate(x, k) + tr.truncate(x * x, k),
    "two sizes": lambda x, k: tr.truncate(tr.truncate(x, k), k // 2, axis=1),
    "sum": lambda x, k: tr.sum(tr.truncate(x, k), axis=0),
    "mean": lambda x, k: tr.sum(tr.truncate(x, k), axis=0) / (tr.truncate(x, k).shape[0] + 1),
    "product": lambda x, k: tr.truncate(x, k) @ tr.truncate(x, k).mT,
    "concat": lambda x, k: tr.concat([x, tr.truncate(x, k)]),
    "pad": lambda x, k: tr.pad(tr.truncate(x, k), ((0, 1), (0, 0))),
    "reshape": lambda x, k: tr.reshape(tr.truncate(x, k), (-1,)),
    "zeros": lambda x, k: tr.zeros(tr.truncate(x, k).shape) + 1.0,
    "eye": lambda x, k: tr.eye(tr.truncate(x, k).shape[0]),
    "flip": lambda x, k: tr.flip(tr.truncate(x, k), axis=0),
    "cumulative sum": lambda x, k: tr.cumulative_sum(tr.truncate(x, k), axis=0),
    "sort": lambda x, k: tr.sort(tr.truncate(x, k), axis=1),
    "compress": lambda x, k: tr.compress(x, x > 0),
    "compress rows": lambda x, k: tr.compress(x, x[:, 0] > 0, axis=0),
    "unused": lambda x, k: (tr.truncate(x, k), x)[1],
}


@pytest.mark.parametrize("name", CALLS)
def test_traced_equals_eager(name):
    f = CALLS[name]
    program = check_program(tr.trace(f, Spec((n, m), F8), Spec((), I8), examples={"n": 4, "m": 3}))
    small = check_program(optimise(program))
    assert ("define_size" in str(small)) == (name != "unused")
    compiled = tr.compile(f)
    for a, b in [(4, 3), (6, 2), (1, 5)]:
        for k in (0, 1, 3, 6):
            x = tensor(np.random.default_rng(a).normal(size=(a, b)))
            want = f(x, tensor(k))
            close([*program.run(x, tensor(k)), *small.run(x, tensor(k)), compiled(x, tensor(k))], [want] * 3)
    assert compiled.cache_info().traces <= 3


@pytest.mark.parametrize("name", [c for c in CALLS if c not in ("zeros", "eye", "unused")])
def test_derivatives_of_truncated_values(name):
    f = CALLS[name]

    def pulled(x, k):
        y, back = vjp(lambda x: f(x, k), x)
        return [back(tr.cos(y))[0], jvp(lambda x: f(x, k), (x,), (tr.sin(x),))[1]]

    program = check_program(optimise(tr.trace(pulled, Spec((n, m), F8), Spec((), I8), examples={"n": 4, "m": 3})))
    for a, b in [(4, 3), (6, 2)]:
        for k in (0, 1, 3, 6):
            x = tensor(np.random.default_rng(k).normal(size=(a, b)))
            close(program.run(x, tensor(k)), pulled(x, tensor(k)))


@given(a=st.integers(0, 6), k=st.integers(0, 9))
def test_truncate_is_a_slice(a, k):
    x = np.arange(float(a))
    for count in (k, tensor(k), np.int32(k)):
        np.testing.assert_array_equal(tr.truncate(tensor(x), count).numpy(), x[:k])


def test_what_a_size_that_depends_on_data_cannot_answer():
    def f(x, k):
        return x if tr.truncate(x, k).shape[0] > 2 else x * 2

    with pytest.raises(
        InconclusiveDimError,
        match=rf"cannot decide min\(n, u0\) > 2 at {__file__}:\d+: u0 known only when the program runs; state it with "
        r"tr.assume\(min\(n, u0\) > 2\), branch with tr.cond, or compute on all elements with a mask",
    ):
        tr.trace(f, Spec((n,), F8), Spec((), I8))
    with pytest.raises(InconclusiveDimError, match=r"needs the value of .*known only when the program runs"):
        tr.trace(lambda x, k: x * len(tr.truncate(x, k)), Spec((n,), F8), Spec((), I8))
    with pytest.raises(InconclusiveDimError, match=r"cannot decide"):
        tr.trace(lambda x, k: tr.truncate(x, k) + x, Spec((n,), F8), Spec((), I8))


def test_assumptions_are_relied_on_and_checked():
    def f(x, k):
        y = tr.truncate(x, k)
        tr.assume(y.shape[0] >= 2)
        return y[0] + y[1] + tr.max(y)

    program = check_program(tr.trace(f, Spec((n,), F8), Spec((), I8)))
    assert [str(g).partition(" (")[0] for g in program.guards] == ["min(n, u0) >= 2"]
    assert float(program.run(np.arange(5.0), np.int64(3))[0]) == 3.0
    with pytest.raises(ShapeError, match=rf"min\(n, u0\) >= 2 was assumed at {__file__}:\d+, which does not hold for"):
        program.run(np.arange(5.0), np.int64(1))
    with pytest.raises(ShapeError, match="assume: the condition does not hold"):
        f(tensor(np.arange(5.0)), tensor(1))


def test_mistakes():
    x = tensor(np.arange(6.0))
    with pytest.raises(ArgumentError, match=r"truncate keeps at least 0 and at most 6 entries, got k=-1"):
        tr.truncate(x, -1)
    with pytest.raises(ArgumentError, match=r"at most 4 entries, got k=5"):
        tr.truncate(x, 5, max=4)
    with pytest.raises(ArgumentError, match=r"takes a 0-d integer array as k, got float64\[\]"):
        tr.truncate(x, tensor(2.0))
    with pytest.raises(ArgumentError, match=r"compress takes booleans as mask, got float64\[6\]; compare"):
        tr.compress(x, x)
    with pytest.raises(ShapeError, match=r"needs a mask with one entry for each index of axis 0"):
        tr.compress(x, x[1:] > 0, axis=0)
    with pytest.raises(TracingError, match=r"compress\(x, mask\)"):
        tr.trace(lambda x: x[x > 0], Spec((n,), F8))


def test_a_size_below_zero_is_refused_with_the_line_that_made_it_a_size():
    cut = tr.compile(lambda x, k: tr.truncate(x, k))
    assert cut(np.arange(6.0), 2).shape == (2,)
    with pytest.raises(
        ShapeError,
        match=rf"the size u\d+ of {__file__}:\d+ is -3 in this call; it must be at least 0: bring the number",
    ):
        cut(np.arange(6.0), -3)


def test_files_keep_what_depends_on_data(tmp_path):
    def f(x, k):
        y = tr.truncate(x, k)
        tr.assume(y.shape[0] >= 1)
        return tr.sum(y) / y.shape[0]

    program = tr.trace(f, Spec((n,), F8), Spec((), I8))
    program.save(tmp_path / "mean")
    again = check_program(tr.load(tmp_path / "mean"))
    assert float(again.run(np.arange(4.0), np.int64(2))[0]) == 0.5
    with pytest.raises(ShapeError, match="was assumed"):
        again.run(np.arange(4.0), np.int64(0))


def test_reports_on_sizes_that_depend_on_data():
    def f(x, k):
        y = tr.truncate(x, k)
        tr.assume(y.shape[0] >= 1)
        return tr.sum(tr.sqrt(y - 1.0) * 2.0 + y)

    program = tr.trace(f, Spec((n,), F8), Spec((), I8))
    bad = program.find_nan(np.arange(5.0), np.int64(3))
    assert "sqrt" in bad.step and bad.results[0].shape == (3,) and bad.results[0].nan == 1
    assert program.find_nan(np.arange(1.0, 5.0), np.int64(3)) is None
    with pytest.raises(ShapeError, match="was assumed"):
        program.find_nan(np.arange(5.0), np.int64(0))
    measured = program.profile(np.arange(1.0, 5.0), np.int64(3), repeat=1)
    assert "float64[3]" in str(measured) and all(s.cost.flops is None or s.cost.flops.__class__ is int
                                                 for s in measured.steps)  # fmt: skip
    assert "min(n, u0)" in str(program.explain())
    assert program.explain().steps[0].kernel == "view", "the value of a size is the count itself"


def test_a_bound_of_a_size_bounds_memory():
    def peak(**bound):
        program = tr.trace(lambda x: tr.sin(tr.compress(x, x[:, 0] > 0, axis=0, **bound) @ x.T), Spec((n, 3), F8))
        return program.explain(n=100).peak_bytes

    assert 5 * 100 * 8 < peak(max=5) < peak()


def test_stablehlo_has_no_such_sizes():
    program = tr.trace(lambda x, k: tr.truncate(x, k) * 2.0, Spec((4,), F8), Spec((), I8))
    with pytest.raises(UnsupportedError, match=rf"u0 \({__file__}:\d+\) depends on data, .* and mask"):
        lower_to_stablehlo(program)


def test_a_size_that_nobody_uses_takes_its_conditions_along():
    def f(x):
        tr.sum(tr.compress(x, x > 0.5))
        return tr.tanh(x)

    program = tr.trace(f, Spec((tr.dim("n"), tr.dim("m")), np.dtype("float64")), examples={"n": 3, "m": 4})
    assert program.guards
    assert not tr.Runtime(check=True).optimise(program).guards
    assert program.run(np.zeros((2, 5)))[0].shape == (2, 5)


def test_a_size_with_narrow_bounds_has_a_gradient():
    f = tr.compile(lambda x: tr.sum(tr.tanh(tr.compress(x * 2, x > 0.1))))
    assert grad(f)(1.0).item() == pytest.approx(2 / np.cosh(2.0) ** 2)
    assert grad(f)(0.0).item() == 0.0
