"""What was suspected of GPUs before any test ran on one: a check of each, for hardware and for the simulated CuPy.

docs/gpu-check.md lists the suspicions.
"""

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, Final, NamedTuple

import numpy as np

import gpu_calls
import tenferro_ad as ad
import tenferro_gpu
import tenferro_runtime as tr
from every_kind import SIZES, every_kind, operands
from tenferro_gpu import CudaContext, download, upload
from tenferro_runtime.running.fusion import wait
from tenferro_tensor import compute_context, device_runtime
from tenferro_tensor.catalog import arithmetic
from tenferro_tensor.loop_ir import (
    INDEX,
    Affine,
    Buffer,
    For,
    Let,
    Load,
    LoopFunction,
    Order,
    Position,
    Reg,
    Role,
    Store,
)
from tenferro_tensor_core import NumericalError, UnsupportedError, dim

DEVICE: Final = "cuda:0"


class Extent(NamedTuple):
    """How much a check does: `rounds` of what depends on time, matrices of `size`."""

    rounds: int
    size: int


SIMULATED, HARDWARE = Extent(2, 24), Extent(200, 1024)


def close(found: Any, wanted: Any, tolerance: float = 1e-9) -> None:
    for x, y in zip(tr.tree_leaves(found), tr.tree_leaves(wanted), strict=True):
        assert str(x.device) == DEVICE
        np.testing.assert_allclose(np.asarray(download(x)), np.asarray(y), rtol=tolerance, atol=tolerance)


def programs_of_every_kind_of_kernel(extent: Extent) -> None:
    """Shared memory, barriers and split sums: the same program at all sizes, compiled."""
    compiled = tr.compile(every_kind)
    for n, m in SIZES:
        xs = operands(n, m)
        for _ in range(3):
            found = compiled(*map(upload, xs))
            wait()
        close(found, every_kind(*map(tr.asarray, xs)))


def memory_is_not_reused_while_another_stream_reads_it(extent: Extent) -> None:
    """A value is dropped while a slow product on another stream still has to read it; new values fill its memory."""
    side, n = CudaContext(DEVICE), extent.size
    x = upload(np.eye(n))
    for number in range(extent.rounds):
        y = x * float(number)
        with compute_context(side):
            slow = x
            for _ in range(4):
                slow = slow @ x
            z = slow @ y
        del y, slow
        filled = [tr.full((n, n), -1.0, device=DEVICE) for _ in range(3)]
        close(tr.sum(z), float(number * n))
        del filled, z


def arguments_of_kernels_arrive(extent: Extent) -> None:
    """Addresses and sizes are passed as integers of Python: y[i] = x[i] + i + m, for sizes of more than 32 bits."""
    n, m, i = dim("n"), dim("m"), Reg(0, INDEX)
    x, y = Buffer(0, INDEX, (n,), Role.INPUT), Buffer(1, INDEX, (n,), Role.OUTPUT)
    a, position, total = Reg(1, INDEX), Reg(2, INDEX), Reg(3, INDEX)
    body = (
        Load(a, x, Affine.of(i)),
        Position(position, Affine.of(i) + m),
        Let(total, arithmetic.add.op(), (a, position)),
        Store(y, Affine.of(i), total),
    )
    loop = For(i, n, body, order=Order.ANY)
    kernel = tenferro_gpu.device(DEVICE).build(LoopFunction(("n", "m"), (x,), (y,), (), (), (loop,)))
    stream: Any = device_runtime("cuda").device(0).default_stream
    for size in (1, 255, 256, 257, 70_000):
        given, other = np.arange(size) * 2**40, 2**40 + 1
        source, target = upload(given), upload(np.zeros(size, np.int64))
        with stream:
            kernel((source.data, target.data), (size, other))
        close(target, given + np.arange(size) + other)


def page_locked_memory_returns(extent: Extent) -> None:
    """Downloads that are dropped leave their memory for the next ones."""
    import cupy

    pool = cupy.get_default_pinned_memory_pool()
    x = upload(np.ones((extent.size, extent.size)))
    before = pool.n_free_blocks()
    for _ in range(extent.rounds):
        assert download(x * 2.0)[0, 0].item() == 2.0
    assert pool.n_free_blocks() <= before + 8


def stacks_of_matrices(extent: Extent) -> None:
    """The routines for stacks, in both ways, and their gradients."""
    rng = np.random.default_rng(0)
    for batch, n in (((), 5), ((7,), 5), ((2, 3), 40), ((1,), 300)):
        for dtype in ("float64", "complex128"):
            a, b = (rng.standard_normal((*batch, n, k)).astype(dtype) for k in (n, 3))
            a = a + n * np.eye(n)
            p, l, u = tr.linalg.lu(upload(a))
            close(p @ l @ u, a)
            close(tr.linalg.solve(upload(a), upload(b)), np.linalg.solve(a, b))
            for trans, matrix in (("N", np.tril(a)), ("C", np.tril(a).conj().swapaxes(-1, -2))):
                found = tr.linalg.solve_triangular(upload(np.tril(a)), upload(b), lower=True, trans=trans)
                close(found, np.linalg.solve(matrix, b))
            loss = lambda a, b: tr.sum(tr.abs(tr.linalg.solve(a, b)) ** 2)
            close(ad.grad(loss)(upload(a), upload(b)), ad.grad(loss)(tr.asarray(a), tr.asarray(b)))


def matrices_that_cannot_be_factored_are_errors(extent: Extent) -> None:
    """cuSOLVER says so only by a code on the device, which is not read."""
    for n in (1, 2, 33, 300):
        for column in {0, n // 2, n - 1}:
            x = np.eye(n)
            x[column, column] = -0.25
            for matrices in (x, np.stack([np.eye(n), x])):
                _refused(tr.linalg.cholesky, matrices)
        for f in (tr.linalg.inv, lambda x: tr.linalg.solve(x, x)):
            _refused(f, np.zeros((n, n)))
            _refused(f, np.stack([np.eye(n), np.zeros((n, n))]))


def _refused(f: Callable[..., Any], x: np.ndarray[Any, Any]) -> None:
    try:
        f(upload(x))
    except NumericalError:
        return
    raise AssertionError(f"nothing was raised for {x.shape}")


def decompositions_of_programs(extent: Extent) -> None:
    """Compiled programs test their decompositions once, at their end."""

    def several(x: Any) -> Any:
        spd = x @ tr.matrix_transpose(x) + tr.eye(x.shape[-1], device=x.device)
        w, _ = tr.linalg.eigh(spd)
        s = tr.linalg.svdvals(tr.linalg.cholesky(spd))
        return w, s, tr.linalg.inv(spd)

    compiled, x = tr.compile(several), np.random.default_rng(0).standard_normal((3, 20, 20))
    for _ in range(3):
        found = compiled(upload(x))
        wait()
    close(found, several(tr.asarray(x)), 1e-8)
    x[1, 2, 3] = np.nan
    try:
        compiled(upload(x))
    except NumericalError as error:
        assert "nan or inf" in str(error)
    else:
        raise AssertionError("an operand with nan was taken")


def functions_of_batches(extent: Extent) -> None:
    """vmap, of functions with decompositions and loops, too."""
    x = np.random.default_rng(0).standard_normal((5, 4, 4))
    for f in (
        lambda x: tr.linalg.svdvals(x @ x.T),
        lambda x: tr.fori_loop(0, 3, lambda i, c: tr.tanh(c @ x), x),
        ad.grad(lambda x: tr.sum(tr.linalg.inv(x + 5.0 * tr.eye(4, device=x.device)))),
    ):
        close(tr.vmap(f)(upload(x)), tr.vmap(f)(tr.asarray(x)))


def random_numbers_and_special_functions(extent: Extent) -> None:
    """On the device, or refused with a typed error and lent by the CPU."""
    calls = gpu_calls.calls()
    names = list(calls) if extent is HARDWARE else list(calls)[::25]
    for name in names:
        call = calls[name]
        with np.errstate(all="ignore"):
            want = tr.tree_leaves(call.f(*map(tr.asarray, call.operands)))
            for scope in (nullcontext, tr.host_fallback):
                try:
                    with scope(), tr.compute_device(DEVICE):
                        found = tr.tree_leaves(call.f(*[tr.asarray(x, device=DEVICE) for x in call.operands]))
                except UnsupportedError:
                    assert scope is nullcontext, name
                    continue
                for x, y in zip(found, want, strict=True):
                    np.testing.assert_allclose(
                        np.asarray(download(x)), np.asarray(y), rtol=1e-7, atol=1e-7, err_msg=name
                    )


CHECKS: Final[dict[str, Callable[[Extent], None]]] = {
    f.__name__: f
    for f in (
        programs_of_every_kind_of_kernel, memory_is_not_reused_while_another_stream_reads_it,
        arguments_of_kernels_arrive, page_locked_memory_returns, stacks_of_matrices,
        matrices_that_cannot_be_factored_are_errors, decompositions_of_programs, functions_of_batches,
        random_numbers_and_special_functions,
    )
}  # fmt: skip
