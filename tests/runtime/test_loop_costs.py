"""What loops cost: memory against what is measured, and reports that show their bodies."""

import subprocess
import sys

import numpy as np

F8 = np.dtype("float64")

# ------------------------------------------------------------------------------------------------ memory

MEASURE = """
import tracemalloc
import numpy as np
import tenferro_runtime as tr
from tenferro_ad import grad
from tenferro_runtime.fusion import wait

rng = np.random.default_rng(0)
image = tr.asarray(rng.normal(size=(400, 500)))
field = tr.asarray(0.1 * rng.normal(size=(200, 200)))
matrix = tr.asarray(rng.normal(size=(150, 150)) / 12)

def deriche(x, reverse=False):
    def step(carry, row):
        y1, y2, x1 = carry
        y = 0.3 * row + 0.1 * x1 + 0.8 * y1 - 0.2 * y2
        return (y, y1, row), y
    zero = tr.zeros_like(x[0])
    return tr.scan(step, (zero, zero, zero), x, reverse=reverse)[1]

def both(x):
    y = deriche(x) + deriche(x, reverse=True)
    y = y.mT
    return deriche(y) + deriche(y, reverse=True)

def clipped(x):
    def step(y, row):
        y = tr.tanh(0.5 * y + row)
        return y, y
    return tr.scan(step, tr.zeros_like(x[0]), x)[1]

def heat(u):
    def step(u, _):
        inner = u[1:-1, 1:-1]
        flow = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4.0 * inner
        return u.at[1:-1, 1:-1].set(inner + 0.1 * flow * inner), None
    return tr.scan(step, u, length=50)[0]

def eliminated(a):
    n = a.shape[0]
    def step(a, k):
        row = a[k] / (2.0 + a[k, k] ** 2)
        return a.at[k].set(row), tr.sum(row)
    return tr.scan(step, a, tr.arange(n))[1]

def gauss(a):
    def step(a, k):
        return a - 0.01 * a[:, k][:, None] * a[k][None, :], a[k]
    return tr.scan(step, a, tr.arange(30))[1]

def powers(a):
    def step(v, _):
        v = tr.tanh(a @ v)
        return v, v[:20]
    return tr.scan(step, a, length=20)[1]

def trace(a):
    return tr.scan(lambda s, i: (s + tr.tanh(a[i, i]), None), 0.0, tr.arange(a.shape[0]))[0]

def halved(x):
    return tr.while_loop(lambda v: tr.max(v) > 0.1, lambda v: tr.tanh(0.5 * v @ v), x, max_steps=10)

def total(f):
    return lambda x: tr.sum(f(x) ** 2)

family = {
    "deriche": (both, image), "clipped": (clipped, image), "heat": (heat, field), "eliminated": (eliminated, matrix),
    "gauss": (gauss, matrix), "powers": (powers, matrix), "trace": (trace, matrix), "while": (halved, matrix),
}
for name, (f, x) in family.items():
    for kind, g in (("value", f), ("gradient", grad(total(f)))):
        g = tr.compile(g)
        for _ in range(4):
            g(x)
            wait()
        predicted = g.explain(x).peak_bytes
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        g(x)
        measured = tracemalloc.get_traced_memory()[1] - before
        tracemalloc.stop()
        if measured > 20_000:  # less is Python's own
            print(f"{name} {kind}:{predicted / measured:.3f}")
"""


def test_the_predicted_peak_of_loops_is_near_the_measured_one() -> None:
    environment = {"TENFERRO_CPU_POOL": "0", "OPENBLAS_NUM_THREADS": "1", "PATH": ""}
    command = [sys.executable, "-W", "ignore", "-c", MEASURE]
    found = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
    ratios = {name: float(ratio) for name, ratio in (line.split(":") for line in found.stdout.splitlines())}
    assert len(ratios) == 15
    assert {name: ratio for name, ratio in ratios.items() if not 1 / 1.5 < ratio < 1.5} == {}
