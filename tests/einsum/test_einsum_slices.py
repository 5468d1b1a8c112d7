"""Contractions in slices: the same results and gradients in less memory, here and on workers."""

from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from multiprocessing import get_context
from threading import Event

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import einsum_tasks
import tenferro_runtime as tr
from tenferro_ad import check_grads, grad, value_and_grad
from tenferro_einsum import MemoryBudgetError, WorkerError, einsum, plan, run_on
from tenferro_einsum import _branches as branches
from tenferro_einsum import _jobs as jobs
from tenferro_einsum._slices import contract_slices, contract_slices_pull
from tenferro_tensor import REGISTRY
from tenferro_tensor_core import ArgumentError
from thorough import tries


def draw(shape, dtype="float64", seed=0):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(shape)
    return tr.asarray((x + 1j * rng.standard_normal(shape) if np.dtype(dtype).kind == "c" else x).astype(dtype))


def network(dtype="float64", bond=6):
    """A ring of three tensors with a wide middle and an open leg each."""
    return "abi,bcj,cak->ijk", [draw((bond, bond, 3), dtype, seed) for seed in range(3)]


@given(st.data())
@settings(max_examples=tries(24, 60))
def test_any_labels_sliced_give_the_same(data):
    labels = "abcd"
    terms = [tuple(data.draw(st.text(labels, min_size=1, max_size=3))) for _ in range(data.draw(st.integers(2, 4)))]
    have = sorted({x for t in terms for x in t})
    out = data.draw(st.permutations(have))[: data.draw(st.integers(0, len(have)))]
    extent = {x: data.draw(st.integers(0, 3)) for x in labels}
    xs = [draw([extent[x] for x in t], seed=i) for i, t in enumerate(terms)]
    args = [v for pair in zip(xs, terms, strict=True) for v in pair]
    prepared = plan(*args, out)
    labels = data.draw(st.lists(st.sampled_from(range(len(have))), unique=True, max_size=3))
    sliced = tuple([(x, data.draw(st.integers(1, 3))) for x in labels])
    alike = branches.constant(prepared._labels, prepared.steps, labels) if labels else ()
    once = tuple([v for v in alike if data.draw(st.booleans())])
    cut = contract_slices.op(
        inputs=prepared._labels, output=prepared._output, steps=prepared.steps, sliced=sliced, once=once
    )
    np.testing.assert_allclose(np.asarray(cut(*xs)), np.asarray(prepared(*xs)), atol=1e-12)
    weigh = np.random.default_rng(9).standard_normal(prepared(*xs).shape)
    number = tuple(range(len(xs)))
    got = grad(lambda *xs: tr.sum(cut(*xs) * weigh), argnums=number)(*xs)
    want = grad(lambda *xs: tr.sum(prepared(*xs) * weigh), argnums=number)(*xs)
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), atol=1e-12)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_slices_have_all_derivatives(dtype):
    subscripts, xs = network(dtype, bond=3)
    whole = plan(subscripts, *xs, memory_budget=10**9)
    sliced = plan(subscripts, *xs, memory_budget=whole.backward_peak_bytes * 3 // 4)
    assert sliced.backward_slicing.count > 1
    check_grads(lambda *xs: sliced(*xs), tuple(xs), order=2)
    loss = lambda *xs: tr.sum(tr.abs(sliced(*xs)))
    want = grad(loss, argnums=(0, 2))(*xs)
    for way in (tr.compile(grad(loss, argnums=(0, 2))), grad(tr.compile(loss), argnums=(0, 2))):
        for a, b in zip(way(*xs), want, strict=True):
            np.testing.assert_allclose(np.asarray(a), np.asarray(b), atol=1e-12)


def test_a_budget_slices_and_reports():
    subscripts, xs = network(bond=20)
    whole = plan(subscripts, *xs)
    assert whole.slicing is None
    assert whole.report.slices == 1
    budget = whole.peak_bytes // 2
    cut = plan(subscripts, *xs, memory_budget=budget)
    assert cut.peak_bytes <= budget < whole.peak_bytes
    assert cut.report.slices == cut.slicing.count > 1
    assert cut.report.sliced_flops >= cut.report.flops == whole.report.flops
    assert f"slices             {cut.slicing.count}" in str(cut.report)
    np.testing.assert_allclose(np.asarray(cut(*xs)), np.asarray(whole(*xs)))
    cut = plan(subscripts, *xs, memory_budget=whole.backward_peak_bytes * 3 // 4)
    assert cut.backward_slicing.count > 1
    value, grads = value_and_grad(lambda *xs: tr.sum(cut(*xs) ** 2), argnums=(0, 1, 2))(*xs)
    for x, g in zip(xs, grads, strict=True):
        np.testing.assert_allclose(float(tr.sum(x * g)), 2 * float(value), rtol=1e-10)
    assert plan(subscripts, *xs, memory_budget=10**9).slicing is None


def test_a_budget_that_is_too_small_is_refused():
    subscripts, xs = network()
    with pytest.raises(
        MemoryBudgetError, match=r"memory_budget=100 bytes: in slices, with its results, it takes \d+ bytes"
    ):
        einsum(subscripts, *xs, memory_budget=100)
    with pytest.raises(ArgumentError, match="a positive number of bytes, got 0"):
        einsum(subscripts, *xs, memory_budget=0)
    with pytest.raises(ArgumentError, match="needs operands with numeric sizes"):
        tr.trace(
            lambda x, y: einsum("ij,jk->ik", x, y, memory_budget=10**9),
            *[tr.Spec((tr.dim("n"), tr.dim("n")), tr.float64)] * 2,
        )


def test_threads_and_processes_do_slices_and_branches(monkeypatch):
    subscripts, xs = network(bond=12)
    want = np.asarray(einsum(subscripts, *xs))
    cut = plan(subscripts, *xs, memory_budget=plan(subscripts, *xs).backward_peak_bytes // 2)
    gradient = grad(lambda *xs: tr.sum(cut(*xs) ** 2), argnums=(0, 1, 2))
    here = gradient(*xs)
    told = []
    with ThreadPoolExecutor(2) as threads, run_on(threads, tasks=3, progress=lambda part, n: told.append((part, n))):
        there = gradient(*xs)
        np.testing.assert_allclose(np.asarray(cut(*xs)), want)
    assert told[:3] == [(1 / 3, 1.0), (2 / 3, 2.0), (1.0, 3.0)]
    for a, b in zip(here, there, strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-12)
    with ProcessPoolExecutor(2, get_context("spawn")) as processes, run_on(processes, tasks=2):
        np.testing.assert_allclose(np.asarray(contract_in(cut)(*xs)), want)
        monkeypatch.setattr(branches, "BRANCH_MIN_MULTIPLICATIONS", 0)  # from here on in branches
        whole = lambda *xs: einsum("abi,bcj,cdk,dal->ijkl", *xs, optimize=((0, 1), (2, 3)))
        xs.append(xs[0])
        parts: list[float] = []
        with run_on(processes, progress=lambda part, n: parts.append(part)):
            found = grad(lambda *xs: tr.sum(whole(*xs) ** 2), argnums=(0, 3))(*xs)
        assert parts == [0.5, 1.0] * 3  # values, values again for the gradient, gradients
        for a, b in zip(found, grad(lambda *xs: tr.sum(whole(*xs) ** 2), argnums=(0, 3))(*xs), strict=True):
            np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-10)


class Recording(ThreadPoolExecutor):
    """Remembers the bytes of the arrays that it is sent."""

    bytes: list[int]

    def submit(self, fn, /, *args, **options):
        self.bytes.append(sum(x.nbytes for x in args[-1]))
        return super().submit(fn, *args, **options)


@pytest.mark.parametrize("tasks", [1, 2, 3, 5, 12])
def test_workers_are_sent_what_they_need(tasks):
    """Parts of operands; the values and gradients are those of the whole."""
    subscripts, xs = network(bond=8)
    whole = plan(subscripts, *xs)
    params = {"inputs": whole._labels, "output": whole._output, "steps": whole.steps}
    cut = contract_slices.op(**params, sliced=((0, 4), (2, 3)))
    want = grad(lambda *xs: tr.sum(whole(*xs) ** 2), argnums=(0, 1, 2))(*xs)
    with Recording(2) as pool, run_on(pool, tasks=tasks):
        pool.bytes = []
        np.testing.assert_allclose(np.asarray(cut(*xs)), np.asarray(whole(*xs)), rtol=1e-12)
        assert len(pool.bytes) == tasks
        everything = sum(np.asarray(x).nbytes for x in xs)
        assert pool.bytes[0] < everything if tasks > 1 else pool.bytes == [everything]
        for a, b in zip(grad(lambda *xs: tr.sum(cut(*xs) ** 2), argnums=(0, 1, 2))(*xs), want, strict=True):
            np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-12)


def contract_in(prepared):
    """The contraction of a plan, its first label sliced whatever the budget."""
    return contract_slices.op(inputs=prepared._labels, output=prepared._output, steps=prepared.steps, sliced=((0, 4),))


def test_a_process_that_dies_is_replaced(tmp_path, monkeypatch):
    subscripts, xs = network(bond=4)
    cut = contract_in(plan(subscripts, *xs))
    monkeypatch.setattr(jobs, "work", partial(einsum_tasks.dying_once, str(tmp_path / "mark")))
    make = partial(ProcessPoolExecutor, 1, get_context("spawn"))
    with run_on(make, tasks=2):
        np.testing.assert_allclose(np.asarray(cut(*xs)), np.asarray(einsum(subscripts, *xs)))
    (tmp_path / "mark").unlink()
    with (
        ProcessPoolExecutor(1, get_context("spawn")) as pool,
        run_on(pool, tasks=2),
        pytest.raises(WorkerError, match="pass run_on a function that creates executors"),
    ):
        cut(*xs)


def test_a_task_that_fails_again_and_again_is_named(monkeypatch):
    subscripts, xs = network(bond=4)
    cut = contract_in(plan(subscripts, *xs))
    monkeypatch.setattr(jobs, "work", einsum_tasks.failing)
    with (
        ThreadPoolExecutor(1) as pool,
        run_on(pool, tasks=2, retries=1),
        pytest.raises(
            WorkerError,
            match=r"slices \d to \d of 4, failed 2 time\(s\), most recently with OSError: the disk is full",
        ),
    ):
        cut(*xs)
    with pytest.raises(ArgumentError, match="an Executor or a function that makes one, got a int"), run_on(3):  # type: ignore[arg-type]
        pass
    with pytest.raises(ArgumentError, match="tasks of at least 1"), run_on(make_none, tasks=0):
        pass


def make_none():
    raise AssertionError


def test_what_is_not_wanted_any_more_is_cancelled(monkeypatch):
    work = jobs.work
    subscripts, xs = network(bond=8)
    cut = contract_in(plan(subscripts, *xs))
    finished, ran, stopped = [], 0, Event()

    def counting(*args):
        nonlocal ran
        ran += 1
        assert ran == 1 or stopped.wait(60)
        return work(*args)

    def stop(part, count):
        finished.append(count)
        raise KeyboardInterrupt

    monkeypatch.setattr(jobs, "work", counting)
    with ThreadPoolExecutor(1) as pool:
        with pytest.raises(KeyboardInterrupt), run_on(pool, tasks=8, progress=stop):
            cut(*xs)
        stopped.set()
    assert finished == [1.0]
    assert ran <= 2


def heavy_end(n=40, legs=12):
    """Two tensors with an open leg each, times a product of matrices that no slice of the bond between them touches."""
    shapes = [(n, n, legs), (n, n, legs), *[(n, n)] * 4]
    return "abi,bcj,cd,de,ef,fa->ij", [draw(shape, seed=k) for k, shape in enumerate(shapes)]


PATH = [(2, 3), (2, 4), (2, 3), (0, 2), (0, 1)]


def test_what_no_slice_changes_is_done_once():
    """Reported, counted, and true of result and gradient; the operations fall."""
    subscripts, xs = heavy_end()
    whole = plan(subscripts, *xs, optimize=PATH)
    cut = plan(subscripts, *xs, optimize=PATH, memory_budget=whole.peak_bytes // 3)
    slicing = cut.slicing
    assert slicing.count > 1
    assert slicing.once == (8,)
    assert slicing.once_flops == 3 * 2 * 40**3
    assert cut.report.once_flops == slicing.once_flops
    assert f"operations together, {slicing.once_flops:.3e} of them once" in str(cut.report)
    np.testing.assert_allclose(np.asarray(cut(*xs)), np.asarray(whole(*xs)))
    cost = REGISTRY.find("cost", contract_slices)
    specs = [x.spec for x in xs]
    params = {"inputs": cut._labels, "output": cut._output, "steps": cut.steps, "sliced": slicing.sliced}
    assert cost(specs, (), **params, once=slicing.once).flops == slicing.flops
    assert cost(specs, (), **params).flops == slicing.flops + (slicing.count - 1) * slicing.once_flops
    cost, params["wanted"] = REGISTRY.find("cost", contract_slices_pull), tuple(range(len(xs)))
    forward, once = slicing.flops - slicing.once_flops, slicing.once_flops
    specs.insert(0, tr.Spec((12, 12), tr.float64))
    made_once = cost(specs, (), **params, once=slicing.once).flops
    assert 2 * forward + 3 * once < made_once <= 3 * forward + 4 * once  # made, and made anew to go back
    made_anew = cost(specs, (), **params).flops
    assert 2 * forward + 2 * slicing.count * once < made_anew <= 3 * (forward + slicing.count * once)


def test_a_tight_budget_has_no_room_for_what_is_done_once():
    subscripts, xs = heavy_end()
    most = plan(subscripts, *xs, optimize=PATH).peak_bytes
    cuts = {most // part: plan(subscripts, *xs, optimize=PATH, memory_budget=most // part) for part in range(2, 9)}
    assert all(cut.peak_bytes <= budget and cut.slicing.count > 1 for budget, cut in cuts.items())
    assert {cut.slicing.once for cut in cuts.values()} == {(8,), ()}


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_gradients_go_through_what_is_done_once(dtype):
    """To second order, and with workers, who are sent the values."""
    subscripts, _ = heavy_end()
    xs = tuple([draw(shape, dtype, seed=k) for k, shape in enumerate([(3, 2, 2), (2, 3, 2), *[(3, 3)] * 4])])
    prepared = plan(subscripts, *xs, optimize=PATH)
    params = {"inputs": prepared._labels, "output": prepared._output, "steps": prepared.steps}
    cut = contract_slices.op(**params, sliced=((1, 2),), once=(8,))
    check_grads(cut, xs, order=2)
    number = tuple(range(6))
    loss = lambda *xs: tr.sum(tr.abs(cut(*xs)) ** 2)
    want = grad(loss, argnums=number)(*xs)
    with ThreadPoolExecutor(2) as pool, run_on(pool, tasks=2):
        there = grad(loss, argnums=number)(*xs)
    for way in (there, tr.compile(grad(loss, argnums=number))(*xs)):
        for a, b in zip(way, want, strict=True):
            np.testing.assert_array_equal(np.asarray(a), np.asarray(b))
