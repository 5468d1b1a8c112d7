"""Kernels that are made once for all sizes give the bits of kernels that are made for numbers."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from kernel_check import sample, strided
from open_cases import CASES, Case, elementwise, marked
from tenferro_runtime.control_flow.primitives import uninitialized
from tenferro_runtime.ir import filled, substituted
from tenferro_tensor import HOST, REGISTRY, Spec, catalog, get_backend
from tenferro_tensor_core import Decisions, TenferroError

BACKEND, DEVICE = get_backend("cpu"), HOST.device
for name in ("linalg", "fft", "einsum"):
    REGISTRY.load_extension(name)
ALL = [*CASES, *[case for p in sorted(marked(), key=str) if p.elementwise for case in elementwise(p)]]


def label(case: Case) -> str:
    return f"{case.primitive.name}-{'-'.join(map(str, case.ins))}-{'-'.join(map(str, case.params.values()))}"[:80]


def test_every_marked_maker_is_here() -> None:
    without_bits = {uninitialized}
    assert {case.primitive for case in ALL} >= set(marked()) - without_bits
    assert len(marked()) > 140


@pytest.mark.parametrize("case", ALL, ids=label)
def test_open_kernels_give_the_bits_of_kernels_for_numbers(case: Case) -> None:
    for n, m, k in [(3, 4, 2), (1, 1, 1), (0, 2, 3), (2, 0, 0), (1, 5, 9), (6, 1, 0), (11, 9, 10)]:
        compare(case, {"n": n, "m": m, "k": k, "u": n})
    if case.primitive is catalog.dot_general:  # through BLAS, and with several of its threads
        compare(case, {"n": 90, "m": 70, "k": 80})
        compare(case, {"n": 31, "m": 29, "k": 27})
        compare(case, {"n": 103, "m": 101, "k": 110})  # stacks and transposed ones by the contraction engine


def compare(case: Case, sizes: dict[str, int]) -> None:
    """Both kernels on arrays in rows and on strided ones."""
    op, ins = case.primitive.op(**case.params), case.ins
    now, ins_now = substituted(op, sizes), tuple([s.with_(shape=filled(s.shape, sizes)) for s in ins])
    try:
        outs_now = several(now.infer(*ins_now))
    except TenferroError:
        assert 0 in sizes.values() or 1 in sizes.values(), "other sizes are good for every case"
        return
    with Decisions(sizes, None):
        outs = several(op.infer(*ins))
    kernel = BACKEND.open_kernel(op, ins, outs, DEVICE)
    assert kernel is not None
    told = filled(kernel.sizes, sizes)
    plain = BACKEND.kernel(now, ins_now, outs_now, DEVICE)
    raws = tuple(map(operand, ins_now))
    for given in (raws, tuple(map(strided, raws))):
        assert same(outcome(plain, *given), outcome(kernel.run, *given, *told)), (case, sizes)


def several(out: Spec | tuple[Spec, ...]) -> tuple[Spec, ...]:
    return out if isinstance(out, tuple) else (out,)


def operand(spec: Spec) -> Any:
    """Numbers that kernels have results for: positive definite matrices, descending values, small positions."""
    shape: Any = spec.shape
    rng = np.random.default_rng(len(shape))
    x = sample(rng, spec.dtype, shape, low=0 if spec.dtype.kind in "iu" else -3)
    if spec.dtype.kind == "f" and spec.ndim == 3 and shape[1] == shape[2]:
        return x @ x.swapaxes(1, 2) + shape[1] * np.eye(shape[1])
    return np.sort(abs(x), axis=-1)[..., ::-1].copy() if spec.dtype.kind == "f" and spec.ndim == 2 else x


def outcome(kernel: Callable[..., Any], *raws: Any) -> Any:
    """What a kernel gives for its own copy of the operands: the results, or what it raises."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = kernel(*raws)
        except Exception as error:
            return type(error), str(error)
    return [np.asarray(x) for x in (found if isinstance(found, tuple) else (found,))]


def same(a: Any, b: Any) -> bool:
    if isinstance(a, tuple) or isinstance(b, tuple):
        return bool(a == b)
    return len(a) == len(b) and all(
        x.dtype == y.dtype and x.shape == y.shape and x.tobytes() == y.tobytes() for x, y in zip(a, b, strict=True)
    )


def test_a_kernel_with_other_bits_is_found() -> None:
    x = np.array([1.0, 0.0])
    assert same(outcome(np.negative, x), outcome(lambda x: -x, x))
    assert not same(outcome(np.negative, x), outcome(lambda x: 0 - x, x))


def test_makers_of_all_backends_have_the_same_marks() -> None:
    """Also of those whose devices are not here: they share the makers, or have makers of their own."""
    table = REGISTRY._tables["kernel"]
    others = {p: backend for p, backend in table if p.family is not None and backend in ("cuda", "rocm")}
    assert len(others) > 40
    for p, backend in others.items():
        assert hasattr(table[p, backend], "sizes") == hasattr(table[p, "cpu"], "sizes"), (p, backend)
