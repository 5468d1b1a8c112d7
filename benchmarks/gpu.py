"""What work on a GPU costs beside raw CuPy: launches, products, contractions, fused programs, copies.

    python3 dev run benchmarks/gpu.py [--rounds N] [--check] [--simulated]

The contestants of a row run in turns, round after round; medians in microseconds. `host` is the time until calls
return, `device` the time of the work by events. With ``--check`` it fails where products or contractions have less than
0.95 of CuPy's speed, or a launch takes more than 2 microseconds longer than CuPy's, or there is no GPU to measure.
With ``--simulated`` every row runs once on small arrays of the simulated CuPy, and both contestants must give the same
numbers: that shows that the benchmark runs, and its times mean nothing.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import tenferro_runtime as tr
from tenferro_einsum import einsum
from tenferro_gpu import CudaContext, download, upload
from tenferro_runtime.running.fusion import wait
from tenferro_tensor import device_runtime
from tenferro_tensor_core import BackendUnavailableError

DEVICE = "cuda:0"


class Row(NamedTuple):
    """A measurement.

    Attributes:
        title: what is measured.
        ours, cupys: the contestants.
        calls: of one round.
        least: how fast ours has to be beside CuPy's, of device time; 0 where nothing is asked.
    """

    title: str
    ours: Callable[[], Any]
    cupys: Callable[[], Any]
    calls: int
    least: float = 0.0


class Sizes(NamedTuple):
    """Extents of matrices, of tensors of four axes, of vectors, and the bytes that are copied."""

    matrices: tuple[int, ...] = (256, 1024, 4096, 8192)
    tensors: tuple[int, ...] = (16, 32, 64)
    vectors: tuple[int, ...] = (1000, 1_000_000, 50_000_000)
    copied: int = 1 << 25


SMALL = Sizes((8,), (3,), (1000,), 1 << 12)


def rows(cupy: Any, sizes: Sizes) -> list[Row]:
    """All measurements."""
    rng = np.random.default_rng(0)
    found = []

    def both(*shape: int, dtype: str = "float32") -> tuple[Any, Any]:
        x = tr.asarray(rng.standard_normal(shape).astype(dtype), device=DEVICE)
        return x, x.data

    x, raw = both(8)
    found.append(Row("add of 8 elements", lambda: x + x, lambda: raw + raw, 1000))
    for n in sizes.matrices:
        for dtype in ("float32", "float64"):
            a, ra = both(n, n, dtype=dtype)
            found.append(Row(f"matmul {n} {dtype}", lambda a=a: a @ a, lambda ra=ra: ra @ ra, 20, 0.95))
    for n in sizes.tensors:
        t, rt = both(n, n, n, n)
        for text in ("abcd,cdef->abef", "abcd,cbed->aeb"):
            found.append(
                Row(
                    f"einsum {text} {n}",
                    lambda t=t, text=text: einsum(text, t, t),
                    lambda rt=rt, text=text: cupy.einsum(text, rt, rt),
                    20,
                    0.95,
                )
            )
    for n in sizes.vectors:
        v, rv = both(n)
        chain = tr.compile(lambda v: tr.tanh(v * v + 1.0) / (v + 3.0) - v)
        total = tr.compile(lambda v: tr.sum(tr.tanh(v * v + 1.0) / (v + 3.0) - v))
        for _ in range(3):
            chain(v), total(v)
            wait()
        plain = lambda rv=rv: cupy.tanh(rv * rv + 1.0) / (rv + 3.0) - rv
        found.append(Row(f"fused chain of {n}", lambda v=v, f=chain: f(v), plain, 20))
        found.append(Row(f"fused sum of {n}", lambda v=v, f=total: f(v), lambda plain=plain: plain().sum(), 20))
    found.append(loop_of_steps(*both(min(100_000, max(sizes.vectors)))))
    host = rng.standard_normal(sizes.copied // 8)
    there, raw_there = both(sizes.copied // 8, dtype="float64")
    size = f"{sizes.copied >> 10} KiB"
    found.append(Row(f"upload of {size}", lambda: upload(host), lambda: cupy.asarray(host), 10))
    found.append(Row(f"download of {size}", lambda: download(there), lambda: cupy.asnumpy(raw_there), 10))
    return found


def loop_of_steps(v: Any, raw: Any, steps: int = 50) -> Row:
    """Many launches of small kernels: what graphs of CUDA are for (TENFERRO_CUDA_GRAPHS=1)."""
    loop = tr.compile(lambda v: tr.fori_loop(0, steps, lambda i, c: c * 0.5 + tr.sum(c) * 1e-6, v))
    for _ in range(3):
        loop(v)
        wait()

    def plain() -> Any:
        c = raw
        for _ in range(steps):
            c = c * 0.5 + c.sum() * 1e-6
        return c

    return Row(f"loop of {steps} steps", lambda: loop(v), plain, 5)


def measured(run: Callable[[], Any], calls: int, stream: Any) -> tuple[float, float]:
    """Microseconds of a call: until it returns, and of the device."""
    stream.synchronize()
    before = stream.record(timing=True)
    started = time.perf_counter()
    for _ in range(calls):
        run()
    returned = time.perf_counter() - started
    after = stream.record(timing=True)
    after.synchronize()
    return returned / calls * 1e6, after.elapsed(before) / calls * 1e6


def tried(found: list[Row]) -> int:
    """Run every row once: whether a contestant's numbers differ."""
    different = []
    for row in found:
        ours, cupys = (np.asarray(x.to_device("cpu:0") if hasattr(x, "spec") else x) for x in (row.ours(), row.cupys()))
        equal = ours.shape == cupys.shape and np.allclose(ours, cupys, rtol=1e-3, atol=1e-3)
        different += [] if equal else [row.title]
        print(f"{row.title:32}{'equal' if equal else 'DIFFERENT'}")
    print(f"simulated: {len(found)} rows ran, {len(different)} differ; nothing is measured")
    return int(bool(different))


def main() -> int:
    """Print the table; the exit status says whether the asked ratios hold."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--simulated", action="store_true")
    options = parser.parse_args()
    if options.simulated:
        sys.path.append(str(Path(__file__).resolve().parents[1] / "tests" / "support"))
        from installed_cupy import simulated_gpu

        with simulated_gpu() as cupy:
            return tried(rows(cupy, SMALL))
    try:
        print(CudaContext.for_device(0).capabilities)
    except BackendUnavailableError as reason:
        print(f"nothing is measured: {reason}")
        return int(options.check)
    import cupy

    stream, failed = device_runtime("cuda").device(0).default_stream, []
    print(f"{'':32}{'host':>10}{'CuPy':>10}{'device':>12}{'CuPy':>12}{'speed':>8}")
    for row in rows(cupy, Sizes()):
        times: list[list[tuple[float, float]]] = [[], []]
        for run in (row.ours, row.cupys):
            run()
        for _ in range(options.rounds):
            for k, run in enumerate((row.ours, row.cupys)):
                times[k].append(measured(run, row.calls, stream))
        (host, device), (host_of_cupy, device_of_cupy) = [
            [statistics.median(part) for part in zip(*of_one, strict=True)] for of_one in times
        ]
        speed = device_of_cupy / device
        print(f"{row.title:32}{host:10.1f}{host_of_cupy:10.1f}{device:12.1f}{device_of_cupy:12.1f}{speed:8.2f}")
        if speed < row.least or (row.title.startswith("add") and host > host_of_cupy + 2):
            failed.append(row.title)
    if failed:
        print("slower than asked:", ", ".join(failed))
    return 1 if failed and options.check else 0


if __name__ == "__main__":
    sys.exit(main())
