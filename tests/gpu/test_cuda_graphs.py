"""Graphs of programs on a simulated CuPy: recorded at the second run, replayed with other operands."""

import numpy as np
import pytest

import tenferro_runtime as tr
from fake_cupy import FakeCupy
from host_kernels import COMPILER, HostCompiler
from tenferro_gpu import CudaContext, _machine_code, upload
from tenferro_gpu.whole import _graphs
from tenferro_runtime.lowering import lower
from tenferro_tensor import compute_context, get_backend

pytestmark = pytest.mark.skipif(COMPILER is None, reason="there is no g++ to compile rendered kernels with")

TABLE = np.random.default_rng(1).uniform(0, 1, 200)


def many_launches(x):
    """A loop of the host with two kernels in each iteration, which swaps buffers."""
    table = tr.to_device(tr.asarray(TABLE), x.device)
    return tr.fori_loop(0, 9, lambda i, c: c * 0.5 + tr.sum(c) * table, x), tr.sum(x)


def few_launches(x):
    return tr.fori_loop(0, 2, lambda i, c: c * 0.5 + tr.sum(c), x)


def decided(x):
    y = many_launches(x)[0]
    return tr.while_loop(lambda c: tr.max(c) > 10.0, lambda c: c * 0.25, y)


@pytest.fixture
def program(with_cupy, monkeypatch):
    with_cupy()
    monkeypatch.setattr(_machine_code, "compiler", lambda *given: HostCompiler())
    monkeypatch.setenv(_graphs.GRAPHS_VARIABLE, "1")

    def made(f, rows=30):
        spec = tr.asarray(np.ones((30, 200)), device="cuda:0").spec
        return get_backend("cuda").whole(lower(tr.trace(f, spec.with_(shape=(rows, 200))), kind="cuda"))

    return made


def operand(seed, rows=30):
    return np.random.default_rng(seed).uniform(0, 1, (rows, 200))


def replays():
    return [entry[1] for entry in FakeCupy.ordered if isinstance(entry, tuple) and entry[0] == "graph"]


def require(found, f, x):
    for got, want in zip(found, tr.tree_leaves(f(tr.asarray(x))), strict=True):
        np.testing.assert_allclose(got.view(np.ndarray), np.asarray(want), rtol=1e-12)


def test_a_program_is_recorded_at_its_second_run(program):
    native, kept = program(many_launches), []
    for seed in range(4):
        found = native.run((), upload(operand(seed)).data)
        kept.append((found, operand(seed)))
        assert len(replays()) == max(seed, 0)
    assert len({*replays()}) == 1 and replays()[0] >= _graphs.MIN_LAUNCHES
    for found, x in kept:  # results have memory of their own
        require(found, many_launches, x)


def test_graphs_are_those_of_sizes_devices_and_streams(program):
    native = program(many_launches, tr.dim("n", 1))
    for rows in (30, 7, 30, 7):
        require(native.run((rows,), upload(operand(0, rows)).data), many_launches, operand(0, rows))
    assert len(replays()) == 2
    with compute_context(CudaContext("cuda:1")):
        found = [native.run((30,), upload(operand(seed), "cuda:1").data) for seed in range(2)]
    for seed in range(2):
        require(found[seed], many_launches, operand(seed))
    assert len(replays()) == 3
    for rows in range(1, _graphs.MAX_GRAPHS + 2):
        native.run((rows,), upload(operand(0, rows)).data)
    assert len(native.run._graphs._kept) == _graphs.MAX_GRAPHS


@pytest.mark.parametrize("f", [few_launches, decided])
def test_runs_with_few_launches_or_decisions_of_the_host_are_not_recorded(program, f):
    native = program(f)
    for seed in range(3):
        require(native.run((), upload(operand(seed)).data), f, operand(seed))
    assert replays() == []


def test_graphs_are_off_by_default(program, monkeypatch):
    monkeypatch.delenv(_graphs.GRAPHS_VARIABLE)
    native = program(many_launches)
    for seed in range(3):
        require(native.run((), upload(operand(seed)).data), many_launches, operand(seed))
    assert replays() == []
