"""The first ten minutes on a GPU: one check of each thing that only hardware can show, and a report to attach.

    python tools/gpu_smoke.py [--kind cuda|rocm] [--report FILE] [--simulated]

`python3 dev gpu cuda13 --smoke` installs what is needed and runs it. The exit status is 0 only if every check ran and
passed. With ``--simulated`` the checks run on the simulated CuPy of the tests, which shows that they run.
"""

from __future__ import annotations

import argparse
import io
import platform
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import nullcontext, redirect_stdout
from importlib.metadata import distributions
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import tenferro_runtime as tr
from tenferro_ad import grad
from tenferro_einsum import einsum
from tenferro_gpu import CudaContext, RocmContext, download, upload
from tenferro_runtime.running.fusion import kernel_stats, wait
from tenferro_tensor import DeviceMemoryError, compute_context, device_runtime, get_backend
from tenferro_tensor_core import NumericalError

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("cupy", "cuda", "cutensor", "nvidia", "numpy", "tenferro")
"""Beginnings of the names of distributions that the report lists."""


class Card(NamedTuple):
    """Where to run; `full` sizes occupy a whole GPU, and take a processor too long."""

    device: str
    full: bool

    @property
    def kind(self) -> str:
        return self.device.partition(":")[0]

    def put(self, x: Any) -> Any:
        """An array in the memory of the device."""
        return upload(x, self.device)

    def stream(self) -> Any:
        """A context with a stream of its own."""
        return (CudaContext if self.kind == "cuda" else RocmContext)(self.device)


Check = Callable[[Card], str]
"""Returns what is worth reporting; an exception is a failure."""


class Outcome(NamedTuple):
    """What a check did; `trouble` is empty if it passed."""

    title: str
    seconds: float
    note: str
    trouble: str


def _close(found: Any, wanted: Any, tolerance: float = 1e-9) -> None:
    np.testing.assert_allclose(np.asarray(download(found)), np.asarray(wanted), rtol=tolerance, atol=tolerance)


def _numbers(*shape: int, dtype: str = "float64", seed: int = 0) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).uniform(-1, 1, shape).astype(dtype)


def _device_is_found(card: Card) -> str:
    context = card.stream()
    return f"{context.capabilities}; {device_runtime(card.kind).device(0).memory()}"


def _transfers_keep_every_bit(card: Card) -> str:
    for dtype in ("bool", "int8", "uint64", "float32", "float64", "complex128"):
        x = _numbers(7, 1001, seed=1).astype(dtype)
        beside = download(upload(x, card.device, pending=True).result(), pending=True).result()
        for y in (download(card.put(x)), beside):
            assert np.asarray(y).tobytes() == x.tobytes(), dtype
    return ""


def _one_operation(card: Card) -> str:
    x = _numbers(1000)
    _close(tr.tanh(card.put(x)) + 1.0, np.tanh(x) + 1.0)
    return ""


def _one_kernel_of_our_own(card: Card) -> str:
    x, row = _numbers(300, 200), _numbers(200)
    fused = tr.compile(lambda x, row: tr.exp(-x * x) * row + 0.5)
    for _ in range(3):
        found = fused(card.put(x), card.put(row))
        wait()
    _close(found, np.exp(-x * x) * row + 0.5)
    assert get_backend(card.kind).compiled(), "no kernel was compiled; is the run-time compiler installed?"
    return str(kernel_stats())


def _one_whole_program(card: Card) -> str:
    """Shared memory, barriers, split sums, numbers between kernels, loops of the host."""

    def program(x: Any) -> Any:
        rows = tr.softmax(x, axis=1) if hasattr(tr, "softmax") else tr.exp(x - tr.max(x, axis=1, keepdims=True))
        y = tr.fori_loop(0, 4, lambda i, c: tr.flip(c) * 0.5 + tr.sum(c) / c.size, rows)
        z = tr.while_loop(lambda c: tr.max(c) > 0.1, lambda c: c * 0.5 - tr.mean(c) * 0.01, y)
        return (
            z,
            tr.sum(x, axis=0),
            tr.sum(x, axis=1),
            tr.prod(1.0 + x[:, 0] / x.shape[0]),
            tr.scan(lambda c, row: (c * 0.5 + row, tr.sum(c)), x[0], x),
        )

    compiled = tr.compile(program)
    for shape in ((1, 1), (3, 255), (257, 256), (300, 2049)) if card.full else ((1, 1), (3, 255)):
        x = _numbers(*shape)
        for _ in range(3):
            found = compiled(card.put(x))
            wait()
        for a, b in zip(tr.tree_leaves(found), tr.tree_leaves(program(tr.asarray(x))), strict=True):
            _close(a, b)
    return ""


def _products_and_contractions(card: Card) -> str:
    a, b, t = _numbers(130, 70), _numbers(70, 90), _numbers(6, 70, 5)
    _close(card.put(a) @ card.put(b), a @ b)
    found = einsum("ij,jk,ljm->lmik", *[card.put(x) for x in (a, b, t)])
    _close(found, np.einsum("ij,jk,ljm->lmik", a, b, t))
    return ""


def _decompositions(card: Card) -> str:
    for shape in ((40, 40), (5, 20, 20)):
        x = _numbers(*shape)
        there = card.put(x)
        u, s, vh = tr.linalg.svd(there, full_matrices=False)
        _close(u * s[..., None, :] @ vh, x)
        _close(s, np.linalg.svd(x, compute_uv=False))
        spd = there @ tr.matrix_transpose(there) + tr.eye(shape[-1], device=card.device)
        w, v = tr.linalg.eigh(spd)
        _close(spd @ v - v * w[..., None, :], np.zeros(shape))
        factor = tr.linalg.cholesky(spd)
        _close(factor @ tr.matrix_transpose(factor) - spd, np.zeros(shape))
        q, r = tr.linalg.qr(there)
        _close(q @ r, x)
        _close(tr.linalg.solve(spd, there) - tr.linalg.inv(spd) @ there, np.zeros(shape), 1e-8)
    return ""


def _failures_are_errors(card: Card) -> str:
    """A singular matrix, and matrices that are not positive definite from different columns on."""
    raised = []
    for n in (3, 40, 200):
        indefinite = np.eye(n)
        indefinite[n // 2, n // 2] = -1.0
        for f, x in ((tr.linalg.cholesky, indefinite), (tr.linalg.inv, np.zeros((n, n)))):
            try:
                f(card.put(x))
            except NumericalError as error:
                raised.append(str(error))
            else:
                raise AssertionError(f"{f.__name__} of {n} x {n} raised nothing")
    return raised[0]


def _transforms(card: Card) -> str:
    x = _numbers(12, 1000)
    _close(tr.fft.irfft(tr.fft.rfft(card.put(x)), n=1000), x)
    return ""


def _two_streams_are_ordered(card: Card) -> str:
    """Work of a stream waits for the values of another, and their memory is not reused too early."""
    a, b, n = card.stream(), card.stream(), 1024 if card.full else 100
    x = card.put(np.ones((n, n)))
    for number in range(30 if card.full else 3):
        with compute_context(a):
            y = x
            for _ in range(4):
                y = y @ x / float(n)
        with compute_context(b):
            z = y * 2.0 + number
        del y
        junk = [tr.full((n, n), -7.0, device=card.device) for _ in range(2)]
        _close(z, np.full((n, n), 2.0 + number))
        del junk
    return ""


def _gradients(card: Card) -> str:
    x, w = _numbers(30, 20), _numbers(20, 10)

    def loss(x: Any, w: Any) -> Any:
        return tr.sum(tr.tanh(x @ w) ** 2)

    gradient = tr.compile(grad(loss, 1))
    for _ in range(3):
        found = gradient(card.put(x), card.put(w))
        wait()
    _close(found, grad(loss, 1)(tr.asarray(x), tr.asarray(w)))
    return ""


def _too_much_memory_is_refused(card: Card) -> str:
    try:
        tr.broadcast_to(card.put(np.ones(1)), (1 << 44,)) * 2.0
    except DeviceMemoryError as error:
        _one_operation(card)  # works again
        return str(error)
    raise AssertionError("128 TiB were allocated")


CHECKS: tuple[Check, ...] = (
    _device_is_found, _transfers_keep_every_bit, _one_operation, _one_kernel_of_our_own, _one_whole_program,
    _products_and_contractions, _decompositions, _failures_are_errors, _transforms, _two_streams_are_ordered,
    _gradients, _too_much_memory_is_refused,
)  # fmt: skip


def outcomes(card: Card) -> Iterator[Outcome]:
    """Run the checks; without a device the others are not tried."""
    for check in CHECKS:
        title, started = check.__name__.strip("_").replace("_", " "), time.perf_counter()
        note = trouble = ""
        try:
            note = check(card)
        except Exception:  # a report names every kind of failure
            trouble = traceback.format_exc()
        yield Outcome(title, time.perf_counter() - started, note, trouble)
        if trouble and check is _device_is_found:
            return


def _verdict(outcome: Outcome) -> str:
    return "FAILED" if outcome.trouble else "passed"


def _said(*command: str) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=ROOT).stdout.strip()
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{command[0]}: {error}"


def _configuration() -> str:
    shown = io.StringIO()
    try:
        import cupy

        with redirect_stdout(shown):
            cupy.show_config()
    except Exception as error:  # a report is written all the same
        return f"{type(error).__name__}: {error}"
    return shown.getvalue().strip()


def report(kind: str, found: list[Outcome]) -> str:
    """The report in Markdown."""
    installed = sorted({f"{d.name}=={d.version}" for d in distributions() if d.name and d.name.startswith(PACKAGES)})
    failed = [o for o in found if o.trouble]
    parts = [
        f"# GPU smoke test: {len(found) - len(failed)} of {len(CHECKS)} checks passed",
        f"commit {_said('git', 'rev-parse', 'HEAD')}, Python {platform.python_version()}, {platform.platform()}",
        "| check | result | seconds | |\n|---|---|---|---|\n"
        + "\n".join(
            f"| {o.title} | {'FAILED' if o.trouble else 'passed'} | {o.seconds:.1f} | {o.note.replace('|', '/')} |"
            for o in found
        ),
    ]
    blocks = [(o.title, o.trouble) for o in failed]
    blocks += [
        ("Driver", _said("nvidia-smi" if kind == "cuda" else "rocm-smi")),
        ("CuPy", _configuration()),
        ("Packages", "\n".join(installed)),
    ]
    return "\n\n".join([*parts, *[f"## {title}\n\n```\n{text}\n```" for title, text in blocks]]) + "\n"


def _simulated() -> Any:
    sys.path.append(str(ROOT / "tests" / "support"))
    from installed_cupy import simulated_gpu

    return simulated_gpu()


def main(arguments: list[str] | None = None) -> int:
    """Run the checks and write the report; 0 if all of them ran and passed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kind", choices=("cuda", "rocm"), default="cuda")
    parser.add_argument("--report", type=Path, default=ROOT / "build" / "gpu-smoke.md")
    parser.add_argument("--simulated", action="store_true")
    options = parser.parse_args(arguments)
    found = []
    with _simulated() if options.simulated else nullcontext():
        for outcome in outcomes(Card(f"{options.kind}:0", not options.simulated)):
            found.append(outcome)
            print(f"{_verdict(outcome)} {outcome.seconds:7.1f} s  {outcome.title}", flush=True)
            if outcome.trouble:
                print(outcome.trouble.strip().splitlines()[-1], flush=True)
        text = report(options.kind, found)
    options.report.parent.mkdir(parents=True, exist_ok=True)
    options.report.write_text(text, encoding="utf-8")
    passed = [o for o in found if not o.trouble]
    print(f"{len(passed)} of {len(CHECKS)} checks passed; the report is {options.report}")
    return int(len(passed) < len(CHECKS))


if __name__ == "__main__":
    sys.exit(main())
