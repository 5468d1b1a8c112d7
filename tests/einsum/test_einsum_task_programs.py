"""Executors that take programs: slices and branches as programs give what the engine gives, gradients too."""

from concurrent.futures import Executor, Future, ThreadPoolExecutor

import numpy as np
import pytest

import tenferro_runtime as tr
from tenferro_ad import grad
from tenferro_einsum import WorkerError, einsum, plan, run_on
from tenferro_einsum._slices import contract_slices


class Programs(Executor):
    """Runs programs in a thread; loses the first ones."""

    def __init__(self, losses=0):
        self.threads, self.losses, self.programs, self.bytes = ThreadPoolExecutor(1), losses, [], []

    def submit(self, fn, /, *args, **kwargs):
        raise AssertionError("it is sent programs")

    def submit_program(self, program, arrays):
        assert [x.shape for x in arrays] == [s.shape for s in program.inputs]
        self.programs.append(program)
        self.bytes.append(sum(x.nbytes for x in arrays))
        if self.losses:
            self.losses -= 1
            lost = Future()
            lost.set_exception(ConnectionError("the device is gone"))
            return lost
        return self.threads.submit(program.run, *arrays)

    def shutdown(self, wait=True, *, cancel_futures=False):
        self.threads.shutdown(wait)


def operands(dtype):
    rng = np.random.default_rng(0)
    draw = lambda *shape: rng.standard_normal(shape) + (1j * rng.standard_normal(shape) if dtype.kind == "c" else 0)
    return [tr.asarray(draw(*shape).astype(dtype)) for shape in ((7, 6, 3), (5, 6, 3), (7, 5, 3))]


@pytest.mark.parametrize("dtype", [np.dtype(np.float64), np.dtype(np.complex128)], ids=str)
@pytest.mark.parametrize(
    ("sliced", "tasks"),
    [
        (((0, 7),), 8),
        (((0, 3),), 2),
        (((0, 3), (2, 2)), 1),
        (((2, 2), (4, 3)), 4),
    ],
    ids=["one slice for each task", "uneven", "all in one task", "regions of the output"],
)
def test_values_and_gradients_are_those_of_the_whole(dtype, sliced, tasks):
    xs = operands(dtype)
    whole = plan("abi,cbj,ack->ijk", *xs)
    cut = contract_slices.op(inputs=whole._labels, output=whole._output, steps=whole.steps, sliced=sliced)
    loss = lambda f: lambda *xs: tr.sum(abs(f(*xs)) ** 2)
    want = grad(loss(whole), argnums=(0, 1, 2))(*xs)
    with Programs() as programs, run_on(programs, tasks=tasks):
        np.testing.assert_allclose(np.asarray(cut(*xs)), np.asarray(whole(*xs)), rtol=1e-11, atol=1e-11)
        found = grad(loss(cut), argnums=(0, 1, 2))(*xs)
    for a, b in zip(found, want, strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-11, atol=1e-9)
    assert len(programs.programs) >= 3 * min(tasks, 7 if sliced == ((0, 7),) else 2)


def test_tasks_with_the_same_extents_share_a_program_and_get_their_parts_only():
    xs = operands(np.dtype(np.float64))
    whole = plan("abi,cbj,ack->ijk", *xs)
    cut = contract_slices.op(inputs=whole._labels, output=whole._output, steps=whole.steps, sliced=((0, 7),))
    with Programs() as programs, run_on(programs, tasks=7):
        cut(*xs)
        cut(*xs)
    assert len(programs.programs) == 14 and len({*programs.programs}) == 1
    sliced = (xs[0].nbytes + xs[2].nbytes) // 7
    table = np.dtype(np.int32).itemsize
    assert {*programs.bytes} == {sliced + xs[1].nbytes + table}


def test_branches_are_programs_too():
    rng = np.random.default_rng(1)
    xs = [tr.asarray(rng.standard_normal((180, 180))) for _ in range(4)]
    want = einsum("ab,bc,cd,da->", *xs)
    with Programs() as programs, run_on(programs, tasks=2):
        found = einsum("ab,bc,cd,da->", *xs)
    np.testing.assert_allclose(float(found), float(want))
    assert len(programs.programs) == 2


def test_a_lost_program_is_sent_again():
    xs = operands(np.dtype(np.float64))
    whole = plan("abi,cbj,ack->ijk", *xs)
    cut = contract_slices.op(inputs=whole._labels, output=whole._output, steps=whole.steps, sliced=((0, 3),))
    with Programs(losses=2) as programs, run_on(programs, tasks=3):
        np.testing.assert_allclose(np.asarray(cut(*xs)), np.asarray(whole(*xs)))
    assert len(programs.programs) == 5
    with (
        Programs(losses=9) as programs,
        run_on(programs, tasks=3),
        pytest.raises(WorkerError, match="ConnectionError: the device is gone"),
    ):
        cut(*xs)
