"""`check_backend` finds a planted mistake of every kind, and passes our own backends."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from simulated.installed import simulated
from tenferro_tensor import Backend, ComputeDevice, Op, Primitive, Spec, catalog, host_kernel
from tenferro_tensor.checking import CheckError
from tenferro_tensor.conformance import check_backend
from tenferro_tensor.conformance._examples import examples
from tenferro_tensor_core import ArgumentError, UnsupportedError

CHECKS = (
    "transfers", "devices", "missing kernels", "results", "sizes", "special values", "layouts", "broadcasting",
    "operands unchanged", "memory",
)  # fmt: skip
Kernel = Callable[..., Any]


class Paper(Backend):
    """NumPy arrays in a memory of their own, rightly."""

    name = "paper"

    def devices(self) -> tuple[ComputeDevice, ...]:
        return (ComputeDevice("paper:0"), ComputeDevice("paper:1"))

    def upload(self, array: Any, device: ComputeDevice) -> Any:
        return np.array(array, order="C")

    def download(self, raw: Any) -> Any:
        return np.array(raw)

    def synchronize(self) -> None:
        pass

    def kernel(self, op: Op, ins: tuple[Spec, ...], outs: tuple[Spec, ...], device: ComputeDevice) -> Kernel:
        self.require(device)
        return self.made(op, host_kernel(op, ins, outs) or super().kernel(op, ins, outs, device), outs)

    def made(self, op: Op, run: Kernel, outs: tuple[Spec, ...]) -> Kernel:
        return lambda *raws: np.asarray(run(*raws))


def test_every_core_operation_has_an_example() -> None:
    core = {p for p in vars(catalog).values() if isinstance(p, Primitive)}
    tried = {
        e.op.primitive
        for dtype in ("float64", "int64", "bool")
        for e in examples((3, 4), np.dtype(dtype), Spec((), np.dtype(dtype)).place)
    }
    assert core <= tried


def test_our_backends_pass() -> None:
    report = check_backend("cpu")
    assert [(f.check, f.outcome) for f in report.findings] == [
        (name, "left out" if name == "transfers" else "passed") for name in CHECKS
    ]
    assert report.absent == ()


def test_the_simulated_accelerator_passes() -> None:
    with simulated():
        report = check_backend("sim:3")
    assert [(f.check, f.outcome) for f in report.findings] == [(name, "passed") for name in CHECKS]


def test_operations_without_a_kernel_are_listed() -> None:
    class Partial(Paper):
        def kernel(self, op: Op, ins: Any, outs: Any, device: ComputeDevice) -> Kernel:
            if op.primitive in (catalog.sort, catalog.tan):
                raise UnsupportedError(f"{op!r} has no kernel for {device}")
            return super().kernel(op, ins, outs, device)

    report = check_backend(Partial())
    assert report.absent == ("sort", "tan") and not report.failed
    assert repr(report).endswith("no kernel for sort, tan")


class Faulty(Paper):
    """A backend with one mistake: `change` makes a kernel of a right one."""

    def __init__(self, change: Callable[[Op, Kernel, tuple[Spec, ...]], Kernel]) -> None:
        self.change = change

    def made(self, op: Op, run: Kernel, outs: tuple[Spec, ...]) -> Kernel:
        return self.change(op, super().made(op, run, outs), outs)


class OnHost(Faulty):
    """Like `Faulty`, in main memory."""

    name = "cpu"

    def devices(self) -> tuple[ComputeDevice, ...]:
        return (ComputeDevice("cpu:0"),)


def instead(primitive: Primitive, run: Kernel) -> Faulty:
    """A wrong kernel of one primitive, ``run(right, *raws)``."""
    return Faulty(lambda op, right, outs: (lambda *raws: run(right, *raws)) if op.primitive is primitive else right)


def everywhere(run: Kernel) -> Faulty:
    """A mistake in all kernels, ``run(right, *raws)``."""
    return Faulty(lambda op, right, outs: lambda *raws: run(right, *raws))


class Uploading(Paper):
    """Uploads wrongly."""

    def __init__(self, upload: Callable[[Any], Any]) -> None:
        self.wrong = upload

    def upload(self, array: Any, device: ComputeDevice) -> Any:
        return self.wrong(array)


class Downloading(Paper):
    """Downloads wrongly."""

    def __init__(self, download: Callable[[Any], Any]) -> None:
        self.wrong = download

    def download(self, raw: Any) -> Any:
        return self.wrong(raw)


class OfAnotherKind(Paper):
    def devices(self) -> tuple[ComputeDevice, ...]:
        return (ComputeDevice("stone:0"),)

    def require(self, device: ComputeDevice) -> None:
        pass


class Careless(Paper):
    def require(self, device: ComputeDevice) -> None:
        pass


class Mistaken(Paper):
    def device_of(self, raw: Any) -> ComputeDevice:
        return ComputeDevice("paper:1")


class Guessing(Paper):
    def kernel(self, op: Op, ins: Any, outs: Any, device: ComputeDevice) -> Kernel:
        try:
            return super().kernel(op, ins, outs, device)
        except UnsupportedError:
            return lambda *raws: raws[0]


class Stumbling(Paper):
    def kernel(self, op: Op, ins: Any, outs: Any, device: ComputeDevice) -> Kernel:
        self.require(device)
        run = host_kernel(op, ins, outs)
        if run is None and op.primitive is not catalog.transfer:
            raise KeyError(op)
        return self.made(op, run or np.array, outs)


def keeps_one_buffer(op: Op, run: Kernel, outs: tuple[Spec, ...]) -> Kernel:
    buffer: Any = np.empty(outs[0].shape, outs[0].dtype)

    def call(*raws: Any) -> Any:
        buffer[...] = run(*raws)
        return buffer

    return call


def writes(run: Kernel, *raws: Any) -> Any:
    out = np.array(run(*raws))
    for raw in raws[:1]:
        if isinstance(raw, np.ndarray):
            raw[...] = 0
    return out


def in_the_operand(run: Kernel, x: Any, y: Any) -> Any:
    """Results take the memory of the first operand."""
    return (
        x if not x.ndim else np.add(x, 0 * y, out=x) if isinstance(y, np.ndarray) and x.shape == y.shape else run(x, y)
    )


def without_axes(run: Kernel, *raws: Any) -> Any:
    out = run(*raws)
    return out if out.ndim else out.reshape(1)


def without_elements(run: Kernel, *raws: Any) -> Any:
    if not all(map(np.size, raws)):
        raise ValueError("an array has no elements")
    return run(*raws)


def in_order_of_memory(run: Kernel, *raws: Any) -> Any:
    return run(*[np.ravel(x, order="K").reshape(x.shape) if np.ndim(x) > 1 else x for x in raws])


def of_one_shape(run: Kernel, x: Any, y: Any) -> Any:
    if np.shape(x) != np.shape(y):
        raise TypeError("operands of different shapes")
    return run(x, y)


def of_arrays(run: Kernel, x: Any, y: Any) -> Any:
    return run(x.astype(x.dtype), y.astype(y.dtype))


FAULTS: dict[str, tuple[str, Backend, str]] = {
    "lost signs of zeros": ("transfers", Uploading(lambda x: x + 0 * x.dtype.type(0)), "comes back as"),
    "single precision": (
        "transfers", Uploading(lambda x: x.astype("float32") if x.dtype == "float64" else x.copy()), "comes back as"
    ),
    "order of memory": (
        "transfers", Uploading(lambda x: np.ravel(x, order="K").reshape(x.shape)), "a column-major array"
    ),
    "an axis more": ("transfers", Downloading(np.atleast_1d), "comes back as"),
    "a list": ("transfers", Downloading(lambda x: x.tolist()), "comes back as"),
    "a borrowed array": ("transfers", Uploading(np.asarray), "copy it before upload returns"),
    "a lent value": ("transfers", Downloading(lambda x: x), "return a copy"),
    "another kind": ("devices", OfAnotherKind(), "return a tuple of ComputeDevice of the kind 'paper'"),
    "any device": ("devices", Careless(), "call self.require(device) first"),
    "a wrong device": ("devices", Mistaken(), "return its device, or None"),
    "a guess": ("missing kernels", Guessing(), "has one"),
    "a raw error": ("missing kernels", Stumbling(), "raises KeyError"),
    "double precision": ("results", everywhere(lambda run, *raws: run(*raws) * 1.0), "where inference says"),
    "a list of results": ("results", everywhere(lambda run, *raws: run(*raws).tolist()), "without shape"),
    "truncated division": (
        "results", instead(catalog.floor_divide, lambda run, x, y: np.trunc(x / y).astype(x.dtype)), "floor_divide of"
    ),
    "the last of several": (
        "results", instead(catalog.argmax, lambda run, x: np.asarray(run(x[::-1]))), "argmax[axis=0] of"
    ),
    "a rounding of its own": (
        "results", instead(catalog.round, lambda run, x: np.floor(x + 0.5).astype(x.dtype)), "round of float"
    ),
    "dropped updates": ("results", instead(catalog.scatter, lambda run, x, i, u: x.copy()), "scatter["),
    "an error": ("results", instead(catalog.sort, lambda run, x: 1 / 0), "raises ZeroDivisionError"),
    "an axis for a number": ("sizes", everywhere(without_axes), "where inference says"),
    "no empty arrays": ("sizes", everywhere(without_elements), "raises ValueError"),
    "lost NaN": ("special values", instead(catalog.maximum, lambda run, *xs: np.fmax(*xs)), "maximum of float64[7, 7]"),
    "lost signs": ("special values", instead(catalog.div, lambda run, x, y: run(x, y + 0)), "div of float64[7, 7]"),
    "strides in main memory": ("layouts", OnHost(everywhere(in_order_of_memory).change), "column-major operands"),
    "strides of views": ("layouts", instead(catalog.exp, in_order_of_memory), "transposed on the device"),
    "one shape": ("broadcasting", instead(catalog.add, of_one_shape), "operand 1 repeated from rows"),
    "no numbers": ("broadcasting", instead(catalog.mul, of_arrays), "operand 0 a number of Python"),
    "a written operand": ("operands unchanged", everywhere(writes), "writes to operand 0"),
    "one buffer": ("memory", Faulty(keeps_one_buffer), "a later call changes"),
    "a shared operand": ("memory", instead(catalog.mul, in_the_operand), "shares the memory of an operand"),
}  # fmt: skip
"""A mistake, the check that finds it, a backend that makes it, and a part of the finding."""


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_mistake_is_found(fault: str) -> None:
    check, backend, text = FAULTS[fault]
    with pytest.raises(CheckError) as caught:
        check_backend(backend, skip=[name for name in CHECKS if name != check])
    (finding,) = caught.value.report.failed
    assert finding.check == check
    assert any(text in mistake for mistake in finding.mistakes), finding.mistakes[:5]


def test_every_check_has_a_mistake_to_find() -> None:
    assert {check for check, _, _ in FAULTS.values()} == set(CHECKS)


def test_what_is_no_backend_and_unknown_checks_are_refused() -> None:
    with pytest.raises(ArgumentError, match="check_backend has no check speed; it has transfers, devices"):
        check_backend(Paper(), skip=["speed"])
    with pytest.raises(ArgumentError, match="3 is not a backend"):
        check_backend(3)  # type: ignore[arg-type]
