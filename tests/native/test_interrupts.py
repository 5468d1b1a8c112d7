"""Long runs of machine code are cut, and the interpreter sees an interrupt between two parts."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from native_rooms import Reduced, compiled
from tenferro_cpu.native.copying import _copy, tuning
from tenferro_cpu.native.eager import _eager
from tenferro_cpu.native.kernels._elementwise import Elementwise
from tenferro_cpu.pools._opened import CALLER
from tenferro_tensor import Spec, catalog, get_backend

SHAPE = (8, 4096)


class Parts:
    """The looks at signals since the last call."""

    def __init__(self) -> None:
        self.start = compiled.signal_parts()[1]

    def __call__(self, elements: int = 4096) -> None:
        self.start = compiled.signal_parts(elements)[1]

    def __len__(self) -> int:
        return compiled.signal_parts()[1] - self.start


@pytest.fixture
def parts() -> Iterator[Parts]:
    """Cuts into parts of 4096 elements when it is called, and counts the looks at signals since."""
    before = compiled.signal_parts()[0]
    yield Parts()
    compiled.signal_parts(before)


def test_parts_make_the_whole(parts: Parts) -> None:
    kernel = Elementwise(catalog.mul.op(), (np.dtype("f8"),) * 2)
    x, y = np.random.default_rng(0).random((2, 200, 4096))
    parts(40_960)
    np.testing.assert_array_equal(kernel(x, y), x * y)
    assert len(parts) == 20


@pytest.mark.parametrize("axes", [(0,), (1,), (0, 1)])
def test_cut_reductions_are_those_of_one_piece(parts: Parts, axes: tuple[int, ...]) -> None:
    kernel = Reduced("sum", np.dtype("f8"))
    x = np.random.default_rng(0).random(SHAPE)
    whole = kernel(x, axes=axes)
    parts()
    np.testing.assert_array_equal(Reduced("sum", np.dtype("f8"))(x, axes=axes), whole)


def absent(*raws: Any) -> Any:
    raise AssertionError("left to the fallback")


@pytest.mark.parametrize("shape", [(300, 5, 30), (9000, 1, 20), (2, 1, 9000)], ids=str)
def test_rows_that_are_reduced_stay_whole(parts: Parts, shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(0).random(shape)
    (spec,) = [Spec(shape, np.dtype("f8"))]
    out = Spec(shape[:1], np.dtype("f8"))

    def make() -> Any:
        return get_backend("cpu").kernel(catalog.reduce_sum.op(axes=(1, 2)), (spec,), (out,), CALLER)

    expected = make()(x)
    parts()
    assert make()(x).tobytes() == expected.tobytes()
    assert len(parts) > 1


@pytest.mark.parametrize("dtype", ["f8", "f4", "c16", "i4"])
@pytest.mark.parametrize("primitive", [catalog.mul, catalog.add, catalog.div, catalog.exp, catalog.sqrt, catalog.log])
def test_eager_parts_make_the_whole(parts: Parts, primitive: Any, dtype: str) -> None:
    x = np.random.default_rng(0).random((3, 7001)).astype(dtype) + np.ones((), dtype)
    count = 2 if primitive in (catalog.mul, catalog.add, catalog.div) else 1
    if dtype == "i4" and (count == 1 or primitive is catalog.div):
        pytest.skip("no such dtype")
    specs = (Spec(x.shape, x.dtype),) * count

    def make() -> Any:
        return _eager.entries({primitive: lambda *_: absent})[primitive](specs, specs[:1])

    calls = [(x,) * count] + ([(x, x.dtype.type(3)), (x.dtype.type(3), x)] if count == 2 else [])
    expected = [make()(*args).tobytes() for args in calls]
    parts()
    kernel = make()
    for k, args in enumerate(calls):
        parts()
        assert kernel(*args).tobytes() == expected[k]
        assert len(parts) == 6
        assert kernel(*args, into := np.empty_like(x)) is into and into.tobytes() == expected[k]


@pytest.mark.parametrize("number", [False, True])
def test_three_operands_are_taken_in_parts(parts: Parts, number: bool) -> None:
    parts()
    low, x, high = np.random.default_rng(0).random((3, 5, 40_001))
    if number:
        low = np.float64(0.3)
    specs = tuple([Spec(a.shape, a.dtype) for a in (low, x, high)])
    kernel = get_backend("cpu").kernel(catalog.clamp.op(), specs, specs[1:2], CALLER)
    np.testing.assert_array_equal(kernel(low, x, high), np.minimum(np.maximum(low, x), high))
    assert len(parts) == 0 if number else len(parts) >= 49


def test_numpy_warns_of_a_part_for_the_whole(parts: Parts) -> None:
    parts()
    x = np.full(20_000, 1.5)
    x[10_000] = 1000
    spec = (Spec(x.shape, x.dtype),)
    kernel = get_backend("cpu").kernel(catalog.exp.op(), spec, spec, CALLER)
    with pytest.warns(RuntimeWarning, match="overflow") as noted:
        found = kernel(x)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(found, np.exp(x))
    assert len(noted) == 1


@pytest.mark.parametrize("seed", range(40))
def test_copies_in_parts_are_copies(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    draw = np.random.default_rng(seed)
    rank = int(draw.integers(1, 6))
    shape = tuple(draw.integers(1, 1 + int(3e5 ** (1 / rank)), rank).tolist())
    x = draw.integers(0, 100, shape).astype(draw.choice(["f8", "i2", "c16"]))
    turned = x.transpose(draw.permutation(rank))[
        tuple([slice(None, None, s) for s in draw.choice([1, 1, -1, 2], rank)])
    ]
    parts: list[Any] = []
    find = _copy.COPIES.find
    monkeypatch.setattr(_copy.COPIES, "find", lambda *key: parts.append(key) or find(*key))
    monkeypatch.setattr(tuning, "BYTES_AT_ONCE", 64 << 10)
    np.testing.assert_array_equal(_copy.contiguous(turned), turned)
    if parts:
        assert len(parts) >= turned.nbytes / tuning.BYTES_AT_ONCE
    into = np.zeros((2 * len(turned), *turned.shape[1:]), x.dtype)[::2]
    np.testing.assert_array_equal(_copy.copy_into(into, turned), turned)
    _copy.copy_in_order(into, turned + turned.dtype.type(1))
    np.testing.assert_array_equal(into, turned + turned.dtype.type(1))


COLD = """
import os, signal, sys, threading, time
import numpy as np
from tenferro_cpu.native._extension import compiled
from tenferro_cpu.native._host import Host
from tenferro_cpu.native.memory._pool import pool

Host.near_bytes = 0
compiled.signal_parts(1 << 16)
import tenferro_runtime as tr

def parts():
    return compiled.signal_parts()[1] - START

x = tr.asarray(np.random.default_rng(0).random(1 << 23))
most = x.size >> 16

def interrupt():
    while not parts():  # machine code has begun, or is about to
        time.sleep(0)
    os.kill(os.getpid(), signal.SIGINT)

def interrupted(f):
    global START
    signal.signal(signal.SIGINT, signal.default_int_handler)
    f(x[:16])  # what is loaded and compiled for small arrays is not at issue
    START = compiled.signal_parts()[1]
    live = pool().stats()["live"]
    thread = threading.Thread(target=interrupt, daemon=True)
    thread.start()
    try:
        f(x)
    except KeyboardInterrupt:
        pass
    else:
        raise AssertionError(f"the call went on to its end, with {parts()} parts")
    thread.join()
    assert 0 < parts() < most, parts()
    assert pool().stats()["live"] == live, (live, pool().stats())

def chain(v):
    for _ in range(6):
        v = tr.tanh(tr.sin(v) * v + 0.5)
    return v
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals of other processes")
@pytest.mark.parametrize("f", ["tr.compile(chain)", "tr.tanh", "lambda v: v ** 3.0 if v.size < 99 else tr.sin(v)"])
def test_cold_calls_are_interrupted_in_their_midst(tmp_path: Path, f: str) -> None:
    code = COLD + f"f = {f}\ninterrupted(f)\nx = tr.asarray(np.linspace(0, 1, 1 << 18))\n"
    code += "np.testing.assert_allclose(f(x), f(x[::2]).data.repeat(2), atol=1e-3)\nprint('done')\n"
    folder = tmp_path / "kernels"
    folder.mkdir(mode=0o700)
    environment = {**os.environ, "TENFERRO_CACHE_DIR": str(folder)}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=300, env=environment, check=False
    )
    assert done.returncode == 0 and done.stdout == "done\n", done.stdout + done.stderr
