"""einsum on random equations: the definition, opt_einsum, gradients, and what is left behind."""

import gc
import tracemalloc
from typing import Any

import numpy as np
import opt_einsum
import opt_einsum.testing
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tenferro_runtime as tr
from einsum_oracles import EXACT, INEXACT, by_loops, random_equation
from runtime_rooms import COMPILING
from tenferro_ad import check_grads, grad
from tenferro_cpu import memory_pool
from tenferro_einsum import einsum, plan
from tenferro_runtime.extension import caches
from thorough import tries

SEEDS = st.integers(0, 1 << 40)


def require(subscripts, arrays, **options):
    """The definition, up to roundings."""
    found = einsum(subscripts, *map(tr.asarray, arrays), **options)
    dtype = np.result_type(*arrays)
    wide = [x.astype({"c": "D", "f": "d"}.get(dtype.kind, dtype)) for x in arrays]
    want = by_loops(subscripts, *wide)
    assert found.dtype == dtype and found.shape == want.shape, (subscripts, found, want)
    single = dtype.char in "fF"
    scale = by_loops(subscripts, *[np.abs(x).astype("float64") for x in arrays])
    wrong = np.abs(np.asarray(found).astype("D") - want) > (1e-5 if single else 1e-13) * scale + 1e-30
    assert not wrong.any(), (subscripts, [(x.dtype, x.shape, x.strides) for x in arrays])


@given(SEEDS, st.sampled_from(["auto", "greedy", False]))
@settings(max_examples=tries(40, 120))
def test_the_definition(seed, optimize):
    """Any strides and patterns of labels, zero extents, dtypes of the engine."""
    require(*random_equation(seed, INEXACT), optimize=optimize)


@given(SEEDS)
def test_the_definition_for_exact_numbers(seed):
    """Integers and booleans, and what they are promoted to."""
    equation = random_equation(seed, EXACT)
    kinds = {x.dtype for x in equation.arrays}
    if len(kinds) == 1:  # NumPy's sum of a product of mixed kinds counts booleans
        require(*equation)
    require(*random_equation(seed, (*EXACT[1:], "float64", "complex64")))


@pytest.mark.parametrize("seed", range(40))
def test_larger_networks_agree_with_opt_einsum(seed):
    """Networks of regular degree with output and batch labels, and hyper-edges, along two orders."""
    rng = np.random.default_rng(seed)
    count = int(rng.integers(3, 16))
    subscripts, shapes = opt_einsum.testing.rand_equation(
        count, int(rng.integers(2, 4)), n_out=int(rng.integers(0, 4)), d_min=2, d_max=5, seed=seed
    )
    if seed % 2:  # a label on every operand: summed, or left
        terms, output = subscripts.split("->")
        subscripts = ",".join(f"{t}Z" for t in terms.split(",")) + f"->{output}{'Z' if seed % 4 == 1 else ''}"
        shapes = [(*s, 3) for s in shapes]
    dtype = INEXACT[seed % 4]
    draw = lambda s: rng.standard_normal(s) + (1j * rng.standard_normal(s) if dtype[0] == "c" else 0)
    arrays = [draw(s[::-1]).T.astype(dtype) for s in shapes]
    wide = [x.astype("D" if dtype[0] == "c" else "d") for x in arrays]
    want = opt_einsum.contract(subscripts, *wide, optimize="greedy")
    scale = opt_einsum.contract(subscripts, *map(np.abs, wide), optimize="greedy")
    for optimize in ("auto", "greedy"):
        found = np.asarray(einsum(subscripts, *arrays, optimize=optimize))
        assert found.dtype == dtype
        assert (np.abs(found - want) <= (3e-5 if dtype in ("float32", "complex64") else 1e-12) * scale).all()


@given(SEEDS, st.sampled_from(INEXACT))
@settings(max_examples=tries(16, 40))
def test_gradients_against_differences(seed, dtype):
    """Both modes, for operands with any strides."""
    subscripts, arrays = random_equation(seed, (dtype,))
    check_grads(lambda *xs: einsum(subscripts, *xs), tuple(map(tr.asarray, arrays)), order=1)


@given(SEEDS)
@settings(max_examples=tries(16, 40))
def test_plans_write_into_any_memory(seed):
    """A given result of any strides is filled, whatever it held."""
    subscripts, arrays = random_equation(seed, ("float64",))
    prepared = plan(subscripts, *arrays)
    want = by_loops(subscripts, *arrays)
    rng = np.random.default_rng(seed)
    order = rng.permutation(want.ndim)
    wide = np.full([2 * want.shape[k] + 1 for k in order], np.nan)
    index: Any = (..., *[slice(1, 1 + 2 * want.shape[k], 2) for k in order])
    out = wide[index].transpose(np.argsort(order))
    found = prepared(*arrays, out=out)
    assert np.shares_memory(found.data, wide) or not want.size
    np.testing.assert_allclose(out, want, atol=1e-12)
    assert np.isnan(wide).sum() == wide.size - want.size


def work(seeds):
    for seed in seeds:
        subscripts, arrays = random_equation(seed, INEXACT)
        xs = tuple(map(tr.asarray, arrays))
        einsum(subscripts, *xs)
        if seed % 5 == 0:
            grad(lambda *xs, s=subscripts: tr.sum(tr.real(einsum(s, *xs))), argnums=tuple(range(len(xs))))(*xs)


def held():
    """Bytes that Python holds, with nothing left in caches, and that arrays of the pool hold."""
    COMPILING.drain()
    for cache in caches():
        if cache.owner.startswith("tenferro_einsum"):
            cache.clear()
    gc.collect()
    pool = memory_pool()
    return tracemalloc.get_traced_memory()[0], 0 if pool is None else pool.stats()["live"]


def require_no_leak(rounds, most):
    """What is held grows by less than `most` bytes from the first round to the last: caches fill up to their bounds."""
    work(rounds[0])
    tracemalloc.start()
    try:
        work(rounds[0])
        python, arrays = held()
        for seeds in rounds[1:]:
            work(seeds)
        after = held()
    finally:
        tracemalloc.stop()
    assert after[0] - python < most
    assert after[1] <= arrays


def test_contractions_leave_nothing_behind():
    require_no_leak([range(150)] * 4, 1 << 20)


@pytest.mark.slow
def test_thousands_of_contractions_leave_nothing_behind():
    """Less than 700 bytes for each: no array, no plan."""
    work(range(1000))
    require_no_leak([range(1000, 1300)] * 5, 1 << 20)
