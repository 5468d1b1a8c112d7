"""Deterministic programs give, bit for bit, what their operations give one by one; with any number of threads."""

import os
import subprocess
import sys
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import example_programs
import tenferro_runtime as tr
from random_programs import Random, random_functions
from tenferro_ad import value_and_grad
from tenferro_einsum import einsum
from tenferro_linalg import eigh, solve, svd, trace
from tenferro_runtime.extension import flatten
from tenferro_runtime.running import fusion

pytestmark = pytest.mark.optimised

RNG = np.random.default_rng(11)
A, B = (RNG.standard_normal((5, 5)) + 5 * np.eye(5) for _ in range(2))
V = RNG.standard_normal(40)
FUNCTIONS = {
    "element-wise": (lambda x: tr.sum(tr.tanh(x * 2.0 + 1) / (1 + x**2) - tr.exp(-x) * x / 4), V),
    "powers and quotients": (lambda x: tr.sum(x**2 / 3 + x**3 * 1.0 - (x / 8) ** 2), V),
    "layers": (lambda x: tr.sum(tr.tanh(tr.tanh(x @ B.T).mT @ B)), A),
    "einsum": (lambda x: einsum("ij,jk,lk,li->", x, B, x, tr.tanh(x)), A),
    "products summed": (lambda x: tr.sum(x[:, None, :] * B[None, :, :] * 0.5), A),
    "spectra": (lambda x: tr.sum(svd(x)[1] ** 2) + tr.sum(eigh(x + x.mT)[0] * solve(x, x[0])), A),
}


def bits(tree) -> list[bytes]:
    return [np.asarray(leaf.numpy()).tobytes() for leaf in flatten(tree)[0]]


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("scoped", [False, True])
def test_compiled_functions_and_their_gradients_give_the_bits_of_eager_calls(name: str, scoped: bool) -> None:
    f, raw = FUNCTIONS[name]
    x = tr.asarray(raw)
    for g in (f, value_and_grad(f)):
        if scoped:
            with tr.Runtime(deterministic=True):
                compiled = tr.compile(g)
        else:
            compiled = tr.compile(g, deterministic=True)
        expected = bits(g(x))
        assert bits(compiled(x)) == expected
        assert bits(compiled(x)) == expected


@pytest.mark.parametrize("shape", [(), (7,), (1, 1), (4, 1), (5, 3), (40, 30), (0, 3)])
@pytest.mark.parametrize("axis", [None, 0, -1])
def test_sums_of_what_is_repeated_have_the_bits_of_eager_calls(shape: tuple[int, ...], axis: Any) -> None:
    x = tr.asarray(RNG.standard_normal(shape))
    for lead in ((3,), (1,), (700,)):
        for wide in ((*lead, *shape), (*lead, *[9 if n == 1 else n for n in shape])):

            def f(x, wide=wide):
                alone, beside = tr.broadcast_to(x, wide), tr.broadcast_arrays(x, tr.zeros(wide))[0]
                return tr.sum(alone, axis=axis), tr.sum(beside, axis=axis)

            assert bits(tr.compile(f, deterministic=True)(x)) == bits(f(x)), wide


@pytest.mark.parametrize(
    "shape", [(5, 9), (9, 5), (0, 3), (1, 1), (2, 7, 7), (1, 8, 8), (2, 3, 9, 9), (40, 17, 17), (0, 4, 4)]
)
def test_traces_have_the_bits_of_eager_calls(shape: tuple[int, ...]) -> None:
    for dtype in ("float32", "float64", "complex128"):
        for offset in (0, 1, -2):
            x = tr.asarray(RNG.standard_normal((3, *shape)).astype(dtype))[1]
            f = partial(trace, offset=offset)
            assert bits(tr.compile(f, deterministic=True)(x)) == bits(f(x)), (dtype, offset)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_of_deterministic_functions_are_deterministic(name: str) -> None:
    f, raw = FUNCTIONS[name]
    x = tr.asarray(raw)
    assert bits(value_and_grad(tr.compile(f, deterministic=True))(x)) == bits(value_and_grad(f)(x))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@given(random_functions(), st.booleans())
def test_random_functions_give_the_bits_of_eager_calls(f: Random, columns: bool) -> None:
    compiled = tr.compile(f, deterministic=True)
    inputs = [tr.asarray(x.numpy().copy(order="F")) if columns else x for x in f.inputs]
    for got, want in zip(compiled(*inputs), f(*inputs), strict=True):
        np.testing.assert_array_equal(np.asarray(got.data), np.asarray(want.data))
        assert np.array_equal(np.signbit(np.real(got.data)), np.signbit(np.real(want.data)))


def test_the_energy_of_the_ising_example_has_the_bits_of_eager_calls() -> None:
    ising = example_programs.load("ising_ground_state")
    dims = ising.bonds(8, 4)
    state = [tr.asarray(RNG.normal(size=(a, 2, b))) for a, b in pairwise(dims)]
    step = value_and_grad(ising.energy_of(ising.hamiltonian(0.7)))
    assert bits(tr.compile(step, deterministic=True)(state)) == bits(step(state))


def test_the_loss_of_the_digits_example_has_the_bits_of_eager_calls() -> None:
    mps = example_programs.load("digits_mps")
    digits = mps.Digits(*[getattr(mps.load(0)[0], k)[:20] for k in ("images", "labels")])
    state, pixels, target = mps.initial_state(digits, 4), mps.spins(digits.images), mps.one_hot(digits.labels)
    step = value_and_grad(lambda s: mps.cross_entropy(s, pixels, target))
    assert bits(tr.compile(step, deterministic=True)(state)) == bits(step(state))


LAYOUTS = {
    "rows": A,
    "columns": A.T,
    "steps": np.tile(A, 2)[:, ::2],
    "backwards": A[::-1, ::-1],
    "one row": np.broadcast_to(V[:5], (5, 5)),
    "one column": np.broadcast_to(V[:5, None], (5, 5)),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("f", [tr.exp, tr.tanh, tr.sin, tr.cbrt])
def test_the_order_of_memory_that_other_kernels_read_is_that_of_single_operations(f: Any, layout: str) -> None:
    """Kernels of elementary functions may round otherwise for operands of another layout."""
    x, other = tr.asarray(LAYOUTS[layout]), tr.asarray(B)
    z = tr.asarray(LAYOUTS[layout] + 1j * B)
    for g, args in (
        (lambda x: f(tr.abs(x * 3.0 + 1.0)), (x,)),
        (lambda x, y: f(tr.abs(x * y + 1.0)) * x, (x, other)),
        (lambda z: f(tr.real(z)) + tr.real(z) * 3.0, (z,)),
        (lambda z: f(tr.imag(z).detach()) + tr.imag(z).detach() * 3.0, (z,)),
    ):
        compiled = tr.compile(g, deterministic=True)
        for _ in range(2):
            assert bits(compiled(*args)) == bits(g(*args))
            fusion.wait()


def test_the_option_says_something() -> None:
    plain, exact = tr.compile(lambda x: x**2), tr.compile(lambda x: x**2, deterministic=True)
    assert [eq.op.primitive.name for eq in plain.program(V).equations] == ["mul"]
    assert [eq.op.primitive.name for eq in exact.program(V).equations] == ["pow"]
    with tr.Runtime(deterministic=True):
        loose = tr.compile(lambda x: x**2, deterministic=False)
    assert [eq.op.primitive.name for eq in loose.program(V).equations] == ["mul"]


def test_what_is_called_is_strict_also_where_it_only_reads_what_is_traced() -> None:
    """A closure variable of a function that was compiled elsewhere, and is given concrete arguments."""
    scale = tr.asarray(1.0)
    outside = tr.compile(lambda x: (x * scale) ** 2)

    def f(y: Any) -> Any:
        nonlocal scale
        scale = y
        return outside(tr.asarray(3.0))

    names = [eq.op.primitive.name for eq in tr.compile(f, deterministic=True).program(tr.asarray(2.0)).equations]
    assert names == ["mul", "pow"]


IN_THREADS = """
import sys, hashlib
import numpy as np
import tenferro_runtime as tr
from tenferro_ad import value_and_grad
rng = np.random.default_rng(5)
x, w = (tr.asarray(rng.standard_normal(s)) for s in ((300_000,), (300_000,)))
f = tr.compile(value_and_grad(lambda x: tr.sum(tr.tanh(x * w + 0.5) * tr.exp(-x * x) / 3)), deterministic=True)
value, slope = f(x)
print(hashlib.sha256(value.numpy().tobytes() + slope.numpy().tobytes()).hexdigest())
"""


def test_the_number_of_threads_does_not_matter() -> None:
    found = set()
    for count in ("1", "2", "3"):
        names = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS")
        env = {**os.environ, **dict.fromkeys(names, count)}
        run = subprocess.run([sys.executable, "-c", IN_THREADS], env=env, capture_output=True, text=True, check=True)
        found.add(run.stdout)
    assert len(found) == 1
