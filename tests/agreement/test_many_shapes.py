"""Compiled functions in long runs and in company: bounded memory, threads with different shapes, asyncio tasks."""

import asyncio
import gc
import threading

import numpy as np
import pytest

import tenferro_runtime as tr
from tenferro_ad import grad, value_and_grad
from tenferro_linalg import svdvals
from tenferro_runtime.running import fusion


def loss(x, w):
    y = tr.truncate(x @ w, tr.count_nonzero(x[:, 0] > 0.5))
    return tr.sum(tr.tanh(y) * 0.5) + tr.sum(svdvals(x)) + tr.scan(lambda c, r: (c + tr.sum(r * r), None), 0.0, x)[0]


def shapes(count):
    rng = np.random.default_rng(3)
    for _ in range(count):
        n, m = rng.integers(1, 40, size=2)
        yield rng.random((n, m)), rng.random((m, 3))


def grow(count):
    """Objects that are alive after so many calls of all kinds with changing shapes, at intervals."""
    functions = tr.compile(loss), tr.compile(value_and_grad(loss)), grad(tr.compile(loss))
    alive = []
    for i, (x, w) in enumerate(shapes(count)):
        for f in functions:
            f(tr.asarray(x), tr.asarray(w))
        if i % (count // 4) == 0:
            fusion.wait()
            gc.collect()
            alive.append(len(gc.get_objects()))
    gc.collect()
    assert [f.cache_info().traces for f in functions[:2]] == [1, 1]
    return [*alive, len(gc.get_objects())]


def within_bounds():
    return all(s["size"] <= s["bound"] for s in tr.current_runtime().stats() if "bound" in s)


def test_caches_stay_within_their_bounds():
    with tr.Runtime(kinds_per_function=16, programs_per_function=4):
        few = tr.compile(lambda x: tr.tanh(x) * x.shape[0])
        many = tr.compile(lambda x: sum(x[i] for i in range(x.shape[0])))
    for n in range(60):
        x = np.arange(1.0 + n)
        np.testing.assert_allclose(np.asarray(few(x)), np.tanh(x) * (n + 1))
        if n < 12:
            np.testing.assert_allclose(np.asarray(many(x)), x.sum())
    assert few.cache_info().traces == 1 and few.cache_info().fast <= 16
    assert many.cache_info().traces == 12 and many.cache_info().size == 4
    assert within_bounds()


def test_any_and_all_of_no_elements_are_compiled_as_they_are():
    f = tr.compile(lambda x: (tr.any(x > 0.3, axis=-1), tr.all(x < 0.3, axis=-1)))
    for shape in ((3, 4), (3, 0), (0, 3)):
        x = tr.asarray(np.ones(shape))
        for _ in range(3):
            assert [y.tolist() for y in f(x)] == [
                (x.numpy() > 0.3).any(-1).tolist(),
                (x.numpy() < 0.3).all(-1).tolist(),
            ]
        fusion.wait()


@pytest.mark.slow
def test_thousands_of_calls_cost_no_more_memory_than_hundreds():
    alive = grow(800)  # of three functions
    assert within_bounds()
    assert max(alive[3:]) < 1.15 * max(alive[1:3]), alive


def test_one_compiled_function_in_many_threads_with_different_shapes():
    compiled, slope = tr.compile(loss), tr.compile(grad(loss))
    cases = list(shapes(24))
    wanted = [(np.asarray(loss(x, w)), np.asarray(grad(loss)(x, w))) for x, w in (map(tr.asarray, c) for c in cases)]
    raised, start = [], threading.Barrier(4)

    def work(offset):
        start.wait()
        try:
            for i in range(2 * len(cases)):
                (x, w), (value, gradient) = cases[(5 * i + offset) % 24], wanted[(5 * i + offset) % 24]
                np.testing.assert_allclose(np.asarray(compiled(x, w)), value, rtol=1e-9)
                np.testing.assert_allclose(np.asarray(slope(x, w)), gradient, rtol=1e-9, atol=1e-12)
                if i == 20:
                    fusion.wait()
        except BaseException as error:
            raised.append(error)

    threads = [threading.Thread(target=work, args=(6 * k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(120)
    assert raised == []
    assert compiled.cache_info().size <= 4, "at most one program for each thread that came first"
    traces = compiled.cache_info().traces
    compiled(*cases[0])
    assert compiled.cache_info().traces == traces


def test_compiled_functions_in_asyncio_tasks_with_scopes_of_their_own():
    compiled = tr.compile(lambda x: tr.tanh(x) * 2 + tr.ones(x.shape[0]))

    async def task(k):
        device = "cpu:0" if k % 2 else None
        runtime = tr.Runtime(deterministic=bool(k % 3), strict_sizes=True)
        x = np.linspace(0.0, 1.0, k + 1)
        with runtime:
            mine = tr.compile(lambda x: tr.sum(x**2))
            await asyncio.sleep(0)
            assert tr.current_runtime() is runtime
            for _ in range(3):
                if device is None:
                    got = compiled(x)
                else:
                    with tr.compute_device(device):
                        await asyncio.sleep(0)
                        got = compiled(x)
                await asyncio.sleep(0)
                np.testing.assert_allclose(np.asarray(got), np.tanh(x) * 2 + 1)
                np.testing.assert_allclose(np.asarray(mine(x)), (x**2).sum())
        names = [eq.op.primitive.name for eq in mine.program(x).equations]
        return names[0] == ("pow" if k % 3 else "mul")

    async def everybody():
        return await asyncio.gather(*[task(k) for k in range(12)])

    before = tr.current_runtime()
    assert all(asyncio.run(everybody()))
    assert tr.current_runtime() is before
    assert compiled.cache_info().traces <= 2  # with a device of a scope, and without


def test_a_trace_is_not_seen_by_tasks_that_run_meanwhile():
    """A function that is traced in one thread does not record what another thread computes."""
    entered, leave = threading.Event(), threading.Event()

    def slow(x):
        entered.set()
        assert leave.wait(60)
        return x * 2

    found = []
    thread = threading.Thread(target=lambda: found.append(tr.compile(slow)(np.ones(3))))
    thread.start()
    assert entered.wait(60)
    y = tr.ones(4) * 3
    assert y.tolist() == [3.0] * 4 and float(tr.sum(tr.zeros(2))) == 0.0
    assert tr.compile(lambda x: x + 1)(np.zeros(5)).tolist() == [1.0] * 5
    leave.set()
    thread.join(60)
    assert found[0].tolist() == [2.0] * 3
