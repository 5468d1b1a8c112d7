"""New sizes of arguments of a known kind: the short way prepares what the long way does, and leaves it the rest."""

import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tenferro_runtime as tr
from runtime_rooms import COMPILING, COUNTERS
from tenferro_runtime.compiling import Compiled
from tenferro_tensor import Tensor, tensor
from thorough import tries

pytestmark = pytest.mark.background


def energy(x, y):
    """Two results, one of them of the shape of an argument."""
    z = tr.tanh(x * y + 1.0)
    return tr.sum(z, axis=0), {"grad": z * x}


def arrays(*shape):
    rng = np.random.default_rng(sum(shape))
    return tensor(rng.standard_normal(shape)), tensor(rng.standard_normal(shape))


def agree(found, wanted):
    np.testing.assert_allclose(found[0].numpy(), wanted[0].numpy(), rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(found[1]["grad"].numpy(), wanted[1]["grad"].numpy(), rtol=1e-13)
    assert found[0].spec is wanted[0].spec
    assert found[1]["grad"].spec is wanted[1]["grad"].spec


@pytest.fixture
def long_way(monkeypatch):
    """Counts the calls that look for a program."""
    calls = []
    find = Compiled.find

    def counting(self, *args):
        calls.append(args)
        return find(self, *args)

    monkeypatch.setattr(Compiled, "find", counting)
    return calls


@settings(max_examples=tries(24, 60), deadline=None)
@given(shapes=st.lists(st.tuples(*[st.integers(0, 6)] * 2), min_size=2, max_size=6))
def test_new_sizes_give_what_eager_calls_give(shapes):
    f = tr.compile(energy)
    for shape in shapes:
        x, y = arrays(*shape)
        for _ in range(2):
            agree(f(x, y), energy(x, y))
    assert f.cache_info().traces == 1


def test_the_short_way_is_taken(long_way):
    f = tr.compile(energy)
    f(*arrays(3, 4))
    COMPILING.drain()
    before = COUNTERS.binds, COUNTERS.traces
    for n in range(5, 25):
        f(*arrays(n, 4))
        f(*arrays(n, 4))
    assert len(long_way) == 1
    assert COUNTERS.traces == before[1] and COUNTERS.binds <= before[0] + 20
    assert f.cache_info().fast == 21


def test_one_argument_and_one_result(long_way):
    f = tr.compile(lambda x: tr.exp(x) + 1.0)
    for n in range(4):
        x = tensor(np.arange(float(n)))
        assert isinstance(f(x), Tensor)
        np.testing.assert_allclose(f(x).numpy(), np.exp(x.numpy()) + 1.0)
    assert len(long_way) == 1
    assert f.cache_info().fast == 4


def test_other_kinds_go_the_long_way(long_way):
    f = tr.compile(lambda x, y: x * y)
    x = tensor(np.ones(3))
    for y in (x, tensor(np.ones(3, "f4")), tensor(np.ones((2, 3))), 2.0, np.ones(3)):
        np.testing.assert_allclose(f(x, y).numpy(), x.numpy() * np.asarray(getattr(y, "data", y)))
    assert len(long_way) == 5
    f(tensor(np.ones(5)), tensor(np.ones(5, "f4")))  # a kind that was met
    assert len(long_way) == 5


def test_guards_are_asked():
    def f(x):
        return x * 2.0 if x.shape[0] > 4 else x + 100.0

    g = tr.compile(f)
    for n in (3, 6, 2, 7, 4, 5, 1, 9):
        x = tensor(np.ones(n))
        np.testing.assert_array_equal(g(x).numpy(), f(x).numpy())
    assert g.cache_info().traces == 2


def test_a_changed_closure_is_noticed():
    scale = 2.0

    def f(x):
        return x * scale

    g = tr.compile(f)
    for n, scale in ((2, 2.0), (3, 2.0), (4, 5.0), (5, 5.0), (6, 2.0), (7, 3.0)):
        np.testing.assert_array_equal(g(tensor(np.ones(n))).numpy(), np.full(n, scale))


def test_clearing_forgets_all(long_way):
    f = tr.compile(energy)
    f(*arrays(3, 4)), f(*arrays(4, 4))
    f.clear()
    f(*arrays(5, 4))
    assert f.cache_info().traces == 2
    assert len(long_way) == 2


def test_dropped_programs_are_traced_again():
    with tr.Runtime(programs_per_function=1):
        f = tr.compile(lambda x: x + x)
    for n in range(2, 8):
        for dtype in ("f8", "f4"):
            np.testing.assert_array_equal(f(tensor(np.ones(n, dtype))).numpy(), np.full(n, 2, dtype))
    assert f.cache_info().size == 1
    assert f.cache_info().traces == 12


def test_inside_of_a_trace():
    inner = tr.compile(lambda x: tr.sum(x * x))
    inner(tensor(np.ones(3)))
    constant = tensor(np.arange(5.0))
    outer = tr.compile(lambda y: y + inner(constant))
    for n in (2, 4):
        np.testing.assert_array_equal(outer(tensor(np.ones(n))).numpy(), np.full(n, 31.0))


def test_device_scopes_are_asked(long_way):
    f = tr.compile(lambda x: x + 1.0)
    f(tensor(np.ones(2)))
    with tr.compute_device("cpu:0"):
        np.testing.assert_array_equal(f(tensor(np.ones(3))).numpy(), np.full(3, 2.0))
    assert len(long_way) == 2


def test_errors_name_the_step():
    f = tr.compile(lambda x: tr.linalg.cholesky(x))
    f(tensor(np.eye(2)))
    with pytest.raises(Exception, match="positive") as info:
        f(tensor(-np.eye(3)))
    assert any("test_new_sizes.py" in note for note in info.value.__notes__)


def test_many_threads_at_once():
    f, wrong = tr.compile(energy), []

    def work(seed):
        for n in range(40):
            x, y = arrays(2 + (n * seed) % 29, 3)
            try:
                agree(f(x, y), energy(x, y))
            except BaseException as error:
                wrong.append(error)
                raise

    workers = [threading.Thread(target=work, args=(seed,)) for seed in range(1, 5)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong
