"""Plans: steps of one form are decided once, and their memory never overlaps."""

import math
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from native_rooms import compiled, microkernels
from tenferro_cpu.native.contraction import _kernel
from tenferro_cpu.native.contraction._arena import Arena
from tenferro_cpu.native.contraction._bound import Bound
from tenferro_cpu.native.contraction._plan import _Planner
from tenferro_cpu.native.contraction.tuning import CACHE_LINE_BYTES as LINE
from tenferro_einsum import plan
from tenferro_einsum._tree import structure, with_extents
from tenferro_tensor.device_model import ContractionIR

pytestmark = pytest.mark.skipif(compiled is None, reason="there is no C extension")

FLOAT64 = np.dtype("float64")


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 700)), max_size=60))
def test_places_do_not_overlap_and_gaps_are_joined(moves):
    """Whatever is taken and given back; at the end all of the block is one gap."""
    arena, held = Arena(), []
    for gives, n in moves:
        if gives and held:
            arena.give(*held.pop(n % len(held)))
            continue
        start = arena.take(n)
        end = start + max(LINE, math.ceil(n / LINE) * LINE)
        assert start % LINE == 0 and end <= arena.size
        assert all(end <= other or start >= other + max(LINE, math.ceil(m / LINE) * LINE) for other, m in held)
        held.append((start, n))
    for place in held:
        arena.give(*place)
    size = arena.size
    if size:
        assert arena.take(size) == 0 and arena.size == size


def inner_product(count, bond):
    """Operands of the inner product of two matrix product states, their labels, and its path from the left."""
    rng = np.random.default_rng(0)
    arrays, terms = [], []
    for side in "kb":
        for i in range(count):
            shape = (1 if i == 0 else bond, 2, 1 if i == count - 1 else bond)
            arrays.append(rng.standard_normal(shape))
            terms.append([(side, i), i, (side, i + 1)])
    return arrays, terms


@pytest.mark.parametrize("dtype", [np.float32, np.complex128])
def test_steps_of_one_form_are_decided_once(dtype):
    """Their number does not grow with the network, and the result is that of a loop."""
    decided = []
    for count in (30, 60):
        arrays, terms = inner_product(count, 3)
        arrays = [x.astype(dtype) for x in arrays]
        contraction = plan(*[v for pair in zip(arrays, terms, strict=True) for v in pair], [])
        ir = with_extents(structure(contraction._labels, (), contraction.steps), FLOAT64, contraction._extents)
        planner = _Planner(microkernels("d"), ir.graph, [x.strides for x in arrays], None, 1)
        planner.plan()
        decided.append(len(planner.alike))
        environment = np.ones((1, 1), dtype)
        for ket, bra in zip(arrays[:count], arrays[count:], strict=True):
            environment = np.einsum("ab,apc,bpd->cd", environment, ket, bra)
        np.testing.assert_allclose(np.asarray(contraction(*arrays)), environment[0, 0], rtol=1e-4)
    assert decided[1] <= decided[0] + 2 < 30


@given(st.data())
def test_equal_forms_of_other_layouts_agree_with_loops(data):
    """Chains of small matrices in any order of axes: some steps are alike, some only nearly."""
    count = data.draw(st.integers(3, 12))
    extents = [data.draw(st.sampled_from([1, 2, 2, 3])) for _ in range(count + 1)]
    turned = [data.draw(st.booleans()) for _ in range(count)]
    rng = np.random.default_rng(count)
    matrices = [rng.standard_normal((extents[i], extents[i + 1])) for i in range(count)]
    arrays = [np.asfortranarray(x) if t else x for x, t in zip(matrices, turned, strict=True)]
    arguments = [v for i, x in enumerate(arrays) for v in (x, [i, i + 1])]
    order = data.draw(st.sampled_from(["auto", False]))
    got = plan(*arguments, [0, count], optimize=order)(*arrays)
    np.testing.assert_allclose(np.asarray(got), np.linalg.multi_dot(matrices), atol=1e-10)


def test_shapes_that_change_with_every_call_leave_a_bounded_number_of_plans_behind(monkeypatch):
    """The first ones are given up, and made again when they are called."""
    kept = Bound(100_000)
    monkeypatch.setattr(_kernel, "PLANS_BOUND", kept)
    rng = np.random.default_rng(0)
    kernels = []
    for n in range(20, 50):
        ir = ContractionIR(FLOAT64, ((0, 1), (1, 2), (2, 3)), (n, n + 1, n, 3), (0, 3), ((0, 1), (3, 2)))
        xs = [rng.standard_normal(s) for s in ((n, n + 1), (n + 1, n), (n, 3))]
        kernels.append((_kernel.CpuContraction(ir), xs))
        kernels[-1][0](*xs)
        assert kept.held <= kept.most
    full = [bool(kernel._plans) for kernel, _ in kernels]
    assert full == sorted(full) and 0 < sum(full) < len(full)  # the last ones
    for kernel, xs in kernels:
        np.testing.assert_allclose(kernel(*xs), np.linalg.multi_dot(xs), atol=1e-10)


def test_one_owner_may_keep_more_than_the_bound():
    """A plan that is too large for it is kept while it is the last one."""

    class Owner:
        forgot = 0

        def forget(self):
            self.forgot += 1

    bound, large, small = Bound(10), Owner(), Owner()
    bound.note(large, 50)
    assert (large.forgot, bound.held) == (0, 50)
    bound.note(small, 5)
    assert (large.forgot, small.forgot, bound.held) == (1, 0, 5)


def test_plans_are_not_given_up_while_one_is_put_in():
    """Another thread that has them given up waits until all is in its place."""
    kernel = _kernel.CpuContraction(ContractionIR(FLOAT64, ((0, 1), (1, 2)), (2, 3, 4), (0, 2), ((0, 1),)))
    kernel(np.ones((2, 3)), np.ones((3, 4)))
    with kernel._lock:
        other = threading.Thread(target=kernel.forget)
        other.start()
        other.join(0.05)
        assert kernel._plans
    other.join()
    assert not kernel._plans
