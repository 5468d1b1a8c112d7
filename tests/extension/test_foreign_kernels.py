"""What a guest's kernel returns is held against the inference, at every call and in every mode."""

from typing import Any

import numpy as np
import pytest

import tenferro_runtime as tr
from simulated.backend import SimBackend
from simulated.installed import simulated
from tenferro_ad import grad, variable
from tenferro_cpu import CpuPool
from tenferro_runtime.extension import General, Linear
from tenferro_tensor import REGISTRY, Spec, primitive, sized, tensor
from tenferro_tensor_core import RegistryError

X = tensor(np.ones(3, np.float32))
TEXT = "the kernel of mistaken returned .* but its inference says .*; correct the kernel of .*, or the inference"


@primitive
def mistaken(x: Spec) -> Spec:
    """As its operand, says the inference."""
    return x


@primitive
def mistaken_pair(x: Spec) -> tuple[Spec, Spec]:
    """Two of its operand, says the inference."""
    return x, x


REGISTRY.rule(mistaken, Linear(x=lambda g: 2.0 * g))
REGISTRY.rule(mistaken_pair, General(vjp=lambda primals, outs, cotangents: (cotangents[1],)))

WRONG = {
    "shape": lambda x: x[:1],
    "dtype": lambda x: x.astype(np.int64),
    "byte order": lambda x: x.astype(x.dtype.newbyteorder()),
    "list": lambda x: x.tolist(),
    "None": lambda x: None,
    "number": lambda x: 1.0,
    "subclass": lambda x: np.ma.masked_array(x, x > 0),
    "other subclass": lambda x: x.view(np.recarray),
    "tuple": lambda x: (x,),
    "axes": lambda x: x[None],
}
WRONG_PAIRS = {
    "one": lambda x: x,
    "list": lambda x: [x, x],
    "three": lambda x: (x, x, x),
    "none": lambda x: (),
    "second": lambda x: (x, x[:1]),
    "second is None": lambda x: (x, None),
}


def later(wrong: Any) -> Any:
    """A kernel that is right while its operand is positive: the mistake depends on the data."""
    return lambda x: wrong(x) if np.min(x, initial=1.0) < 0 else x * 2


def scanned(op: Any, x: Any) -> Any:
    return tr.scan(lambda carry, row: (carry, op(row)), tr.asarray(0.0), x)[1]


def looped(op: Any, x: Any) -> Any:
    return tr.while_loop(lambda c: c[0] < 2, lambda c: (c[0] + 1, op(c[1])), (0, x))[1]


def conditional(op: Any, x: Any) -> Any:
    return tr.cond(tr.sum(x) < 100.0, lambda v: op(v), lambda v: v, x)


MODES = {
    "eager": lambda op, x: op(x),
    "recorded": lambda op, x: op(variable(x)),
    "compiled": lambda op, x: tr.compile(op)(x),
    "compiled in a program": lambda op, x: tr.compile(lambda v: tr.sum(op(v + 1) * 2))(x - 1),
    "program of one size": lambda op, x: tr.trace(op, x).run(x),
    "in a branch": lambda op, x: conditional(op, x),
    "in a compiled branch": lambda op, x: tr.compile(lambda v: conditional(op, v))(x),
    "in a loop": lambda op, x: looped(op, x),
    "in a compiled loop": lambda op, x: tr.compile(lambda v: looped(op, v))(x),
    "in a scan": lambda op, x: scanned(op, x[None, :]),
    "in a compiled scan": lambda op, x: tr.compile(lambda v: scanned(op, v))(x[None, :]),
    "on a pool": lambda op, x: tr.compile(op)(x.with_compute_device("cpu:0")),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_result_is_named_in_every_mode(mode: str, wrong: str) -> None:
    run = MODES[mode]
    with REGISTRY.kernel(mistaken, "cpu", lambda ins, outs: later(WRONG[wrong])):
        run(mistaken, tensor(np.ones(3)))
        for _ in range(2):
            with pytest.raises(RegistryError, match=TEXT):
                run(mistaken, tensor(-np.ones(3)))


@pytest.mark.parametrize("mode", [m for m in MODES if "scan" not in m and "loop" not in m])
@pytest.mark.parametrize("wrong", WRONG_PAIRS)
def test_wrong_results_of_several_outputs_are_named(mode: str, wrong: str) -> None:
    def second(x: Any) -> Any:
        return mistaken_pair(x)[1]

    def kernel(x: Any) -> Any:
        return WRONG_PAIRS[wrong](x) if np.min(x) < 0 else (x, x)

    with REGISTRY.kernel(mistaken_pair, "cpu", lambda ins, outs: kernel):
        MODES[mode](second, tensor(np.ones(3)))
        with pytest.raises(RegistryError, match="mistaken_pair returned .* says .*in a tuple; correct the kernel of"):
            MODES[mode](second, tensor(-np.ones(3)))


@pytest.mark.parametrize(
    ("op", "kernel", "text"),
    [
        (
            mistaken,
            lambda x: x.astype(np.float64)[:1],
            r"returned float64\[1\], but its inference says float32\[3\]",
        ),
        (mistaken, lambda x: [1.0], r"mistaken returned list, but its inference says float32\[3\]"),
        (mistaken, np.ma.masked_array, r"mistaken returned MaskedArray float32\[3\], but its inference says"),
        (mistaken_pair, lambda x: (x, x[:2]), r"returned float32\[3\], float32\[2\], but its inference says float32"),
        (mistaken_pair, lambda x: x, r"returned float32\[3\], but its inference says float32\[3\], float32\[3\] in a"),
        (
            mistaken,
            lambda x: x[:1],
            r"correct the kernel of [a-z.]*test_foreign_kernels \(.*\.py:\d+\), or the inference",
        ),
    ],
)
def test_the_text_says_what_was_seen_and_whose_kernel_it_is(op: Any, kernel: Any, text: str) -> None:
    with REGISTRY.kernel(op, "cpu", lambda ins, outs: kernel):
        for _ in range(2):
            with pytest.raises(RegistryError, match=text):
                op(X)


def test_kernels_for_all_sizes_are_checked_at_the_sizes_of_the_call() -> None:
    @sized(lambda ins, outs: (ins[0].shape[0],))
    def make(ins: Any, outs: Any) -> Any:
        return lambda x, n: x[: n - 1] if n > 4 else x * n

    with REGISTRY.kernel(mistaken, "cpu", make):
        f = tr.compile(lambda v: mistaken(v) + 1)
        assert f(tr.ones(3)).tolist() == [4.0, 4.0, 4.0]
        assert f(tr.ones(4)).tolist() == [5.0] * 4
        with pytest.raises(RegistryError, match=r"returned float64\[6\], but its inference says float64\[7\]"):
            f(tr.ones(7))


def test_sizes_that_depend_on_data_are_checked() -> None:
    with REGISTRY.kernel(mistaken, "cpu", lambda ins, outs: later(lambda x: x[:1])):
        f = tr.compile(lambda v: mistaken(tr.compress(v, v != 0.0)))
        assert f(tr.asarray([1.0, 0.0, 2.0])).tolist() == [2.0, 4.0]
        with pytest.raises(RegistryError, match=TEXT):
            f(tr.asarray([-1.0, 0.0, 2.0]))


def test_kernels_on_pools_and_in_plans_for_several_devices_are_checked() -> None:
    with CpuPool(index=1) as one, REGISTRY.kernel(mistaken, "cpu", lambda ins, outs: later(lambda x: x[:1])):
        good, bad = (tensor(sign * np.ones(3), device=one.device) for sign in (1, -1))
        several = tr.compile(
            lambda v: mistaken(v) + mistaken(v.with_compute_device("cpu:0")).with_compute_device("cpu:1")
        )
        for run in (mistaken, tr.compile(mistaken), several):
            run(good)
            with pytest.raises(RegistryError, match=TEXT):
                run(bad)


def test_an_array_in_the_wrong_memory_is_found() -> None:
    """A tensor that claims to be on an accelerator and holds a NumPy array would fail much later, or never."""
    with simulated() as runtime:
        x = tr.ones(3, device="sim:0")
        with REGISTRY.kernel(mistaken, "sim", lambda ins, outs: lambda raw: np.ones(3)):
            for run in (mistaken, tr.compile(mistaken), tr.compile(lambda v: mistaken(v + 1.0) * 2.0)):
                with pytest.raises(RegistryError, match=r"mistaken returned ndarray float64\[3\], but .* at sim:0"):
                    run(x)
        runtime.synchronize_all()


def test_whatever_a_guest_s_backend_runs_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    with simulated() as runtime:
        x = tr.ones(3, device="sim:0")
        monkeypatch.setattr(SimBackend, "kernel", lambda *given: lambda *raws: np.ones(3))
        for run in (lambda v: v * 2, tr.compile(lambda v: tr.sin(v) + 1.0), tr.compile(lambda v: tr.cumulative_sum(v))):
            with pytest.raises(RegistryError, match=r"returned ndarray float64\[3\], but its inference says .*sim:0"):
                run(x)
        runtime.synchronize_all()


def test_a_right_result_passes() -> None:
    with REGISTRY.kernel(mistaken, "cpu", lambda ins, outs: lambda x: x * x.dtype.type(2)):
        assert mistaken(X).tolist() == [2.0, 2.0, 2.0]
        assert mistaken(tr.asarray(3.0)).tolist() == 6.0  # a NumPy scalar stands for an array without axes
        assert mistaken(tr.ones((0, 2))).shape == (0, 2)
        assert grad(lambda v: tr.sum(mistaken(v)))(X).tolist() == [2.0, 2.0, 2.0]


def test_kernels_of_the_house_are_not_wrapped() -> None:
    """The check costs nothing where it is not needed."""
    from tenferro_tensor import catalog, get_backend
    from tenferro_tensor.kernels import kernel_of

    s, cpu, op = Spec((3,), np.dtype(np.float64)), get_backend("cpu"), catalog.sort.op(axis=0, descending=False)
    device = cpu.devices()[0]
    ours = kernel_of(cpu, op, (s,), (s,), device)
    assert getattr(ours, "__module__", "") != "tenferro_tensor.kernels"
    with REGISTRY.kernel(mistaken, "cpu", lambda ins, outs: lambda x: x):
        assert kernel_of(cpu, mistaken.op(), (s,), (s,), device).__module__ == "tenferro_tensor.results"
