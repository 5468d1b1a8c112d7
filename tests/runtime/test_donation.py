"""Donated arguments: their memory is used where nothing else sees it, and what is left of them says so."""

import threading
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tenferro_runtime as tr
from random_programs import Random, random_functions
from runtime_rooms import COMPILING
from tenferro_ad import grad, vjp
from tenferro_cpu.native import available
from tenferro_runtime.running.fusion import wait
from tenferro_tensor import Tensor, tensor
from tenferro_tensor_core import ArgumentError

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
native = pytest.mark.skipif(not available(), reason="native kernels are off")


def fresh(*shape: int, seed: int = 0) -> Any:
    """A tensor that holds its array alone."""
    return tensor(np.random.default_rng(seed).standard_normal(shape)) + 0.0


C = tensor(np.array([0.3 - 1.9j, 2.6 + 0.7j, -1.1 + 0.2j]))


def address(t: Tensor) -> int:
    return t.data.ctypes.data


def step(x, g):
    return x - 0.1 * g


def ready(f, *args) -> None:
    """Run until the kernels are there; arguments are made for each call."""
    for _ in range(4):
        f(*[make() for make in args])
    wait()


@native
@pytest.mark.parametrize("shape", [(3,), (5, 7), (300, 300)])
def test_the_result_lies_where_the_argument_did(shape) -> None:
    f = tr.compile(step, donate=0)
    ready(f, lambda: fresh(*shape), lambda: fresh(*shape, seed=1))
    g = fresh(*shape, seed=1)
    for _ in range(3):
        x = fresh(*shape)
        want, at = step(x, g), address(x)
        found = f(x, g)
        assert address(found) == at
        np.testing.assert_allclose(found.data, want.data, rtol=1e-15)
    assert f.explain(fresh(*shape), g).peak_bytes == 0
    assert tr.compile(step).explain(fresh(*shape), g).peak_bytes == 8 * int(np.prod(shape))


@native
def test_leaves_of_trees_give_their_memory_each() -> None:
    f = tr.compile(lambda p, g: {k: p[k] - 0.1 * g[k] for k in p}, donate=(0,))

    def parameters():
        return {"w": fresh(20, 20), "b": fresh(20, seed=1)}

    ready(f, parameters, parameters)
    p, g = parameters(), parameters()
    at = {k: address(v) for k, v in p.items()}
    found = f(p, g)
    assert {k: address(v) for k, v in found.items()} == at
    assert g["w"].tolist() == parameters()["w"].tolist()
    with pytest.raises(tr.DonatedError):
        p["w"] + 1.0


@native
def test_a_row_of_steps_stays_in_its_memory() -> None:
    f = tr.compile(step, donate=0)
    g = fresh(50, 50, seed=1)
    ready(f, lambda: fresh(50, 50), lambda: g)
    x = fresh(50, 50)
    at, want = address(x), x.data - 10 * 0.1 * g.data
    for _ in range(10):
        x = f(x, g)
    assert address(x) == at
    np.testing.assert_allclose(x.data, want, rtol=1e-10)


@native
@pytest.mark.parametrize("shape", [(1,), (6, 5), (40_000,), (300, 301)])
def test_several_results_of_one_step_lie_where_the_arguments_did(shape) -> None:
    def adam(p, m, v, g):
        m, v = 0.9 * m + 0.1 * g, 0.99 * v + 0.01 * g * g
        return p - 0.01 * m / (tr.sqrt(v) + 1e-8), m, v

    f, plain = tr.compile(adam, donate=(0, 1, 2)), tr.compile(adam)
    g = fresh(*shape, seed=3)

    def state():
        return [tr.abs(fresh(*shape, seed=k)) for k in range(3)]

    for h in (f, plain):
        for _ in range(4):
            h(*state(), g)  # type: ignore[call-arg]
    wait()
    s = state()
    at, want = sorted(map(address, s)), plain(*state(), g)  # type: ignore[call-arg]
    found = f(*s, g)  # type: ignore[call-arg]
    assert sorted(map(address, found)) == at
    for got, expected in zip(found, want, strict=True):
        assert got.data.tobytes() == expected.data.tobytes()


# ------------------------------------------------------------------------------------------------ what others hold


HOLDERS = {
    "array": lambda x: x.data,
    "view": lambda x: x.data[1:],
    "tensor of it": lambda x: Tensor.wrap(x.data, x.spec),
    "transposed tensor": lambda x: x.mT,
    "buffer": lambda x: memoryview(x.data),
    "capsule": lambda x: x.__dlpack__(max_version=(1, 0)),
}


@pytest.mark.parametrize("hold", HOLDERS.values(), ids=HOLDERS)
def test_what_something_else_holds_is_not_written_over(hold) -> None:
    f = tr.compile(step, donate=0)
    ready(f, lambda: fresh(6, 6), lambda: fresh(6, 6, seed=1))
    x, g = fresh(6, 6), fresh(6, 6, seed=1)
    held, raw = hold(x), x.data.copy()
    before = np.array(held) if isinstance(held, (np.ndarray, memoryview)) else None
    found = f(x, g)
    np.testing.assert_allclose(found.data, raw - 0.1 * g.data, rtol=1e-15)
    if before is not None:
        assert np.array_equal(np.asarray(held), before)
    if isinstance(held, Tensor):
        assert np.array_equal(held.data, raw.T if hold is HOLDERS["transposed tensor"] else raw)


def test_arrays_of_the_user_views_and_locked_arrays_are_not_written_over() -> None:
    f = tr.compile(step, donate=0)
    g = fresh(6, 6, seed=1)
    ready(f, lambda: fresh(6, 6), lambda: g)
    own = np.random.default_rng(3).standard_normal((6, 6))
    locked = own.copy()
    locked.flags.writeable = False
    for x in (own, tensor(own), tensor(own[::-1]), tensor(own.T), tensor(locked), fresh(6, 6).mT):
        raw = np.array(x.data) if isinstance(x, Tensor) else x
        base = own.copy()
        np.testing.assert_allclose(f(x, g).data, raw - 0.1 * g.data, rtol=1e-15)
        assert np.array_equal(own, base) and np.array_equal(locked, base)


def test_one_tensor_as_two_arguments() -> None:
    f = tr.compile(step, donate=0)
    ready(f, lambda: fresh(6, 6), lambda: fresh(6, 6, seed=1))
    x = fresh(6, 6)
    raw = x.data.copy()
    np.testing.assert_allclose(f(x, x).data, raw - 0.1 * raw, rtol=1e-15)
    both = tr.compile(step, donate=(0, 1))
    with pytest.raises(tr.DonatedError):
        both(*[fresh(6, 6)] * 2)


def test_an_argument_that_is_the_result_comes_back() -> None:
    f = tr.compile(lambda x, y: (x, x + y, x.mT), donate=0)
    for _ in range(3):
        x = fresh(4, 4)
        want = x.data.copy()
        same, total, turned = f(x, fresh(4, 4, seed=1))
        assert np.array_equal(same.data, want) and np.array_equal(turned.data, want.T)
        np.testing.assert_array_equal(total.data, want + fresh(4, 4, seed=1).data)
        with pytest.raises(tr.DonatedError):
            x.tolist()


def test_a_tensor_that_a_program_keeps_is_not_written_over() -> None:
    kept = fresh(4, 4)
    f = tr.compile(lambda x: tr.tanh(x * 2.0) + kept)
    f(fresh(4, 4))
    g = tr.compile(step, donate=0)
    ready(g, lambda: fresh(4, 4), lambda: fresh(4, 4, seed=1))
    program = f.program(fresh(4, 4))
    (want,) = program.run(fresh(4, 4, seed=2))
    g(kept, fresh(4, 4, seed=1))
    assert np.array_equal(program.run(fresh(4, 4, seed=2))[0].data, want.data)
    with pytest.raises(tr.DonatedError):  # the function reads what was given away
        f(fresh(4, 4, seed=2))


def test_derivatives_and_traces_give_nothing_away() -> None:
    f = tr.compile(step, donate=0)
    x, g = fresh(4, 4), fresh(4, 4, seed=1)
    assert grad(lambda x: tr.sum(f(x, g)))(x).tolist() == np.ones((4, 4)).tolist()
    outer = tr.compile(lambda x, g: f(x, g) + x)
    for _ in range(3):
        np.testing.assert_allclose(outer(x, g).data, 2 * x.data - 0.1 * g.data, rtol=1e-15)


def test_a_tape_keeps_what_it_needs_or_says_that_it_is_gone() -> None:
    f = tr.compile(step, donate=0)
    ready(f, lambda: fresh(4, 4), lambda: fresh(4, 4))

    def squares(t):
        return tr.exp(t) * t

    for h in (squares, tr.compile(squares)):
        x = fresh(4, 4)
        want = vjp(h, fresh(4, 4))[1](tr.ones((4, 4)))[0]
        pull = vjp(h, x)[1]
        f(x, fresh(4, 4))
        try:
            found = pull(tr.ones((4, 4)))[0]
        except tr.DonatedError:
            continue
        np.testing.assert_array_equal(found.data, want.data)


# ------------------------------------------------------------------------------------------------ what is left


USES = {
    "operator": lambda x: x + 1.0,
    "other side": lambda x: 1.0 - x,
    "power": lambda x: x**2,
    "function": lambda x: tr.exp(x),
    "product": lambda x: x @ x,
    "sum": lambda x: tr.sum(x),
    "shape change": lambda x: tr.reshape(x, (-1,)),
    "index": lambda x: x[0],
    "numbers": lambda x: x.tolist(),
    "array": lambda x: np.asarray(x),
    "text": lambda x: repr(x),
    "copy": lambda x: tensor(x, copy=True),
    "program": lambda x: tr.trace(lambda y: y * 2.0, x).run(x),
    "compiled": lambda x: tr.compile(lambda y: tr.tanh(y * 2.0) + 1.0)(x),
    "gradient": lambda x: grad(lambda y: tr.sum(y * y))(x),
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_every_use_afterwards_names_the_call(use) -> None:
    f = tr.compile(step, donate=0)
    x = fresh(4, 4)
    f(x, fresh(4, 4))
    pattern = r"a tensor float64\[4, 4\] was donated to step at .*test_donation.py:\d+ \(donate=\), which may have "
    with pytest.raises(tr.DonatedError, match=pattern + "overwritten it, and is used afterwards; use the result"):
        use(x)
    assert x.shape == (4, 4)  # what it was is no secret


def test_a_second_donation_is_refused_on_every_way() -> None:
    f = tr.compile(lambda x, g: x * 2.0 - g, donate=0)
    for _ in range(6):
        x = fresh(4, 4)
        f(x, fresh(4, 4))
        with pytest.raises(tr.DonatedError, match=r"was donated to .*<lambda> at .*test_donation.py"):
            f(x, fresh(4, 4))


def test_a_call_that_is_refused_donates_nothing() -> None:
    """One tensor twice, or one that is gone: the others are as they were."""
    f = tr.compile(lambda a, b, c: a * b + c, donate=(0, 1, 2))
    for _ in range(4):
        x, y, gone = tr.ones(3), tr.ones(3), tr.ones(3)
        tr.compile(lambda a: a + 1, donate=0)(gone)
        with pytest.raises(tr.DonatedError, match=r"one tensor float64\[3\] is given twice to .*<lambda> as"):
            f(x, y, x)
        with pytest.raises(tr.DonatedError, match="is used afterwards"):
            f(x, y, gone)
        assert f(x, y, tr.ones(3)).tolist() == [2, 2, 2]
        with pytest.raises(tr.DonatedError, match="is used afterwards"):
            print(y)
        tr.fusion.wait()


def test_an_argument_of_a_call_that_fails_is_gone() -> None:
    f = tr.compile(lambda x, g: tr.asarray(x @ g), donate=0)
    f(fresh(4, 4), fresh(4, 4))
    x = fresh(4, 4)
    with pytest.raises(Exception, match="."):
        f(x, fresh(3, 3))
    assert x.tolist() == fresh(4, 4).tolist()  # nothing had run


def test_functions_of_any_arguments() -> None:
    def f(*xs, scale=1.0):
        return xs[0] * scale + xs[1] + 1.0

    g = tr.compile(f, donate=-1)
    for _ in range(3):
        x, y = fresh(4, 4), fresh(4, 4, seed=1)
        want = x.data * 2.0 + y.data + 1.0
        np.testing.assert_allclose(g(x, y, scale=2.0).data, want, rtol=1e-15)
        assert x.tolist() is not None
        with pytest.raises(tr.DonatedError):
            y.tolist()
    with pytest.raises(ArgumentError, match="y is a static argument of <lambda>, and cannot be donated"):
        tr.compile(lambda x, y: x, donate=(0, 1), static_argnames="y")


# ------------------------------------------------------------------------------------------------ at random


@given(random_functions(), st.data())
def test_random_functions_give_the_same_bits(f: Random, data) -> None:
    count = len(f.inputs)
    donated = tuple(sorted(data.draw(st.sets(st.integers(0, count - 1), min_size=1))))
    held = data.draw(st.sets(st.sampled_from(donated)))
    with tr.Runtime(overwriting=False):
        plain = tr.compile(lambda *xs: f(*xs))
    source = "lambda f: lambda " + (names := ", ".join(f"x{i}" for i in range(count))) + f": f({names})"
    over = tr.compile(eval(source)(f), donate=donated)
    values = [np.array(t.data) for t in f.inputs]

    def compare() -> None:
        args = [Tensor.wrap(v.copy() if v.ndim else v[()], t.spec) for v, t in zip(values, f.inputs, strict=True)]
        views = {i: args[i].data[...] for i in held if values[i].ndim}
        for got, want in zip(over(*args), plain(*f.inputs), strict=True):
            assert got.spec is want.spec
            assert np.ascontiguousarray(got.data).tobytes() == np.ascontiguousarray(want.data).tobytes()
        for i in range(count):
            if i not in donated:
                assert np.array_equal(args[i].data, values[i], equal_nan=values[i].dtype.kind in "fc")
        for i, view in views.items():
            assert view.tobytes() == values[i].tobytes()

    with COMPILING._busy:  # else one of the two becomes native before the other
        for _ in range(3):
            compare()
    wait()
    for _ in range(2):
        compare()


@native
@pytest.mark.parametrize(
    ("f", "shape"),
    [
        (lambda x, z: (x, tr.sum(tr.outer(tr.reshape(z, (-1,)), C))), (7, 1)),
        (lambda x, z: (x, tr.sum(z[:, 1:] * z[:, 1:] * 0.1)), (3, 200)),
    ],
)
def test_small_sums_of_several_passes_are_rounded_in_one_way(f, shape) -> None:
    """Whether the memory of an argument is taken or not, and in whichever call."""
    rng = np.random.default_rng(0)
    x, z = tensor(rng.standard_normal((2, 3))), tensor(rng.standard_normal(shape) + 1j * rng.standard_normal(shape))
    over, plain = tr.compile(f, donate=0), tr.compile(f)
    for g in (over, plain):
        ready(g, lambda: x + 0.0, lambda: z)
    found = set()
    for _ in range(12):
        for g in (over, plain):
            found.add(np.asarray(g(x + 0.0, z)[1]).tobytes())
            wait()
    assert len(found) == 1


def test_threads_that_give_one_tensor_away_do_not_share_it() -> None:
    f = tr.compile(step, donate=0)
    g = fresh(30, 30, seed=1)
    ready(f, lambda: fresh(30, 30), lambda: g)
    want = step(fresh(30, 30), g).data
    for _ in range(30):
        x, found = fresh(30, 30), []

        def work(x=x, found=found) -> None:
            try:
                found.append(f(x, g))
            except tr.DonatedError:
                found.append(None)

        threads = [threading.Thread(target=work) for _ in range(3)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        results = [r for r in found if r is not None]
        assert len(results) == 1
        np.testing.assert_allclose(results[0].data, want, rtol=1e-15)
