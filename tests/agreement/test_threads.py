"""Many threads at once: what they compute is right, whatever the others do to the caches meanwhile."""

import subprocess
import sys
import threading
from collections.abc import Callable

import numpy as np
import pytest

import tenferro_runtime as tr
from tenferro_ad import grad, hvp, jvp, value_and_grad, variable
from tenferro_einsum import einsum
from tenferro_fft import irfft, rfft
from tenferro_linalg import eigvalsh, solve, svdvals
from thorough import tries

THREADS = 6
ROUNDS = 12


def at_once(*works: Callable[[], object]) -> list[BaseException]:
    """Run each function in a thread of its own, started together; what they raise."""
    raised: list[BaseException] = []
    start = threading.Barrier(len(works))

    def run(work: Callable[[], None]) -> None:
        start.wait()
        try:
            work()
        except BaseException as error:
            raised.append(error)

    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    for t in threads:
        t.start()
    for t in threads:
        t.join(120)
    assert not any(t.is_alive() for t in threads), "a thread hangs"
    return raised


def network(a, b):
    """A loss through einsum, a solve, singular values and a transform."""
    c = einsum("ij,kj->ik", a, b)
    y = solve(einsum("ij,kj->ik", c, c) + 3.0 * tr.eye(c.shape[0]), b)
    return tr.sum(tr.tanh(y)) + tr.sum(svdvals(c)) + tr.sum(irfft(rfft(y, axis=1) * 0.5, n=b.shape[1], axis=1))


def operands(seed: int, n: int):
    rng = np.random.default_rng(seed)
    return tuple(tr.asarray(rng.normal(size=(n, n + 2))) for _ in range(2))


def close(got, want) -> None:
    np.testing.assert_allclose(np.asarray(got.numpy()), want, rtol=1e-9, atol=1e-11)


def test_results_are_right_while_caches_are_cleared():
    sizes = [2, 3, 4, 5]
    wanted = {}
    for n in sizes:
        a, b = operands(n, n)
        value, slope = value_and_grad(network)(a, b)
        second = hvp(network, (a, b), (a, b))[0] if n == 2 else None
        wanted[n] = [np.asarray(x.numpy()) for x in (value, slope)], second
    shared = tr.compile(grad(network))
    done = threading.Event()
    checked = []

    def differentiate(offset: int) -> None:
        for i in range(ROUNDS):
            n = sizes[(i + offset) % len(sizes)]
            a, b = operands(n, n)
            (value, slope), second = wanted[n]
            kind = (i + offset) % 5
            if kind == 0:
                got = value_and_grad(network)(a, b)
                close(got[0], value)
                close(got[1], slope)
            elif kind == 1:
                close(shared(a, b), slope)
            elif kind == 2:
                close(tr.compile(grad(network))(a, b), slope)
            elif kind == 3:
                v = variable(a)
                network(v, b).backward()
                close(v.grad, slope)
            else:
                direction = tr.ones_like(a)
                got = jvp(lambda x, b=b: network(x, b), (a,), (direction,))
                close(got[1], np.sum(slope))
            if n == 2 and second is not None:
                close(hvp(network, (a, b), (a, b))[0], np.asarray(second.numpy()))
            checked.append(kind)

    def clear() -> None:
        while not done.wait(0.002):
            tr.current_runtime().clear()
            assert all(s["size"] >= 0 for s in tr.current_runtime().stats())

    clearing = threading.Thread(target=clear)
    clearing.start()
    try:
        raised = at_once(*[lambda i=i: differentiate(i) for i in range(THREADS)])
    finally:
        done.set()
        clearing.join(60)
    assert raised == []
    assert len(checked) == THREADS * ROUNDS and set(checked) == set(range(5))


FIRST_USE = """
import sys, threading
sys.setswitchinterval(1e-5)
import numpy as np
import tenferro_runtime as tr

x = np.eye(3) + 0.1 * np.arange(9).reshape(3, 3)

def einsum():
    from tenferro_ad import grad
    from tenferro_einsum import einsum as e
    return grad(lambda v: e("ij,ij->", v, v))(x)

def linalg():
    return tr.linalg.svdvals(tr.asarray(x))

def fft():
    return tr.real(tr.fft.fft(tr.asarray(x)))

def compiled():
    return tr.compile(lambda v: tr.sin(v) * v)(x)

def special():
    return tr.erf(tr.asarray(x))

works = [einsum, linalg, fft, compiled, special] * 3
start = threading.Barrier(len(works))
found, raised = [None] * len(works), []

def run(i):
    start.wait()
    try:
        found[i] = np.asarray(works[i]().numpy())
    except BaseException as error:
        raised.append(repr(error))

threads = [threading.Thread(target=run, args=(i,)) for i in range(len(works))]
for t in threads: t.start()
for t in threads: t.join()
assert not raised, raised
from math import erf
wanted = [2 * x, np.linalg.svd(x, compute_uv=False), np.fft.fft(x).real, np.sin(x) * x, np.vectorize(erf)(x)] * 3
for got, want in zip(found, wanted):
    np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)
print("right")
"""


@pytest.mark.parametrize("attempt", range(tries(2, 10)))
def test_the_first_use_of_everything_at_once(attempt):
    """Backends, families, rules and kernels are found and made by threads that know nothing of each other."""
    result = subprocess.run([sys.executable, "-W", "error", "-c", FIRST_USE], capture_output=True, text=True)
    assert result.stdout.strip() == "right", result.stderr


def test_an_error_in_one_thread_is_not_seen_by_another():
    from tenferro_linalg import eigh
    from tenferro_tensor_core import GradientError, NumericalError

    good, bad = tr.asarray(np.diag([1.0, 2.0])), tr.asarray(np.full((2, 2), np.nan))

    def fail() -> None:
        for _ in range(ROUNDS):
            with pytest.raises(NumericalError):
                eigvalsh(bad)
            with pytest.raises(GradientError):
                grad(lambda a: eigh(a).eigenvectors[0, 0])(tr.asarray(np.eye(2)))

    def succeed() -> None:
        for _ in range(ROUNDS):
            close(grad(lambda a: tr.sum(eigvalsh(a) ** 2))(good), 2 * np.asarray(good.numpy()))

    assert at_once(fail, succeed, fail, succeed) == []
    assert len(at_once(fail, lambda: eigvalsh(bad))) == 1, "an error in a thread would not be noticed"
