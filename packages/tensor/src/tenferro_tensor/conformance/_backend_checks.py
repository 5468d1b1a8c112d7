"""The checks of a backend: each yields mistakes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np

from tenferro_tensor import catalog
from tenferro_tensor._accelerator import AcceleratorBackend
from tenferro_tensor._place import ComputeDevice
from tenferro_tensor._primitive import Op, Primitive
from tenferro_tensor._spec import Spec
from tenferro_tensor.allocating import allocates
from tenferro_tensor.checking import LeftOut, Mistake, close, identical, laid_out, shown
from tenferro_tensor.conformance._backend import CheckedBackend, KernelCall, by_numpy, difference
from tenferro_tensor.conformance._examples import SHAPES, Elements, Example, numbers, special_examples
from tenferro_tensor.device_runtimes import AsynchronousError
from tenferro_tensor_core import DTYPES, TenferroError, UnsupportedError, float16, kind_of

SMALL: Final = tuple([np.dtype(name) for name in ("float64", "complex64", "int32", "bool")])
"""One dtype of each kind, for checks in which the others behave like it."""


def transfers(subject: CheckedBackend) -> Iterator[str]:
    """Check that arrays come back with the same bits, and that neither side shares memory with the other."""
    if subject.place.on_host:
        raise LeftOut(f"{subject.device} computes in main memory")
    backend, device, complete = subject.backend, subject.device, True
    for dtype in (*DTYPES, float16):
        for shape in SHAPES:
            for what, (array,) in [("row-major", [_special(shape, dtype)]), *laid_out([_special(shape, dtype)])]:
                back = backend.download(backend.upload(array, device))
                if not isinstance(back, np.ndarray) or not identical(_row_major(back), _row_major(array)):
                    seen = shown(back) if isinstance(back, np.ndarray) else type(back).__name__
                    yield f"a {what} array {shown(array)} comes back as {seen}; upload and download every bit"
                    complete = False
    if not complete:
        return
    array = numbers((3, 4), np.dtype("float64"), 0.0, 1.0)
    before = array.copy()
    raw = backend.upload(array, device)
    array[...] = 7.0
    first = backend.download(raw)
    if not identical(first, before):
        yield "an array that changes after `upload` changes the value on the device; copy it before upload returns"
    if first.flags.writeable:
        first[...] = 8.0
    if not identical(subject.get(raw), before):
        yield "a downloaded array shares memory with the value on the device; return a copy"


def _special(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Elements:
    x = numbers(shape, dtype, -1.5, 2.5)
    if dtype.kind in "fc" and x.size > 1:
        flat = x.reshape(-1)
        flat[:2] = np.array([np.nan, -0.0], dtype)
        flat[-1:] = -np.inf
    return x


def _row_major(array: Elements) -> Elements:
    return np.array(array, order="C")


def devices(subject: CheckedBackend) -> Iterator[str]:
    """Check names of devices, errors for others, and that values know their device."""
    backend, device = subject.backend, subject.device
    found = backend.devices()
    if not isinstance(found, tuple) or any(d.__class__ is not ComputeDevice or d.kind != backend.name for d in found):
        yield f"devices() returned {found!r}; return a tuple of ComputeDevice of the kind {backend.name!r}"
        return
    missing = ComputeDevice(f"{backend.name}:{1000 + max([d.index for d in found])}")
    trial = next(subject.trials(SHAPES[:1], SMALL))
    ins = tuple([Spec(a.shape, a.dtype, subject.place) for a in trial.arrays])
    calls: dict[str, Callable[[], Any]] = {
        "require": lambda: backend.require(missing),
        "kernel": lambda: backend.kernel(trial.op, ins, trial.outs, missing),
    }
    for what, call in calls.items():
        try:
            call()
        except TenferroError as error:
            if str(missing) not in str(error):
                yield f"{what} of {missing} raises an error that does not name it: {error}"
        except Exception as error:
            yield f"{what} of {missing} raises {type(error).__name__} ({error}); call self.require(device) first"
        else:
            yield f"{what} accepts {missing}, which is not one of the devices; call self.require(device) first"
    if not subject.place.on_host:
        home = backend.device_of(backend.upload(np.ones(3), device))
        if home is not None and home is not device:
            yield f"device_of a value on {device} is {home!r}; return its device, or None"


def unknown_to_all(x: Spec) -> Spec:
    """An operation without a kernel."""
    return x


_UNKNOWN: Final = Primitive(unknown_to_all, family="nobody.unknown_to_all.v1").op()


def missing_kernels(subject: CheckedBackend) -> Iterator[str]:
    """Check that an operation that nobody knows is refused."""
    spec = Spec((3,), np.dtype("float64"), subject.place)
    try:
        subject.backend.kernel(_UNKNOWN, (spec,), (spec,), subject.device)
    except UnsupportedError as error:
        if "unknown_to_all" not in str(error):
            yield f"an operation without a kernel is refused by {error}; name the operation"
    except Exception as error:
        yield f"an operation without a kernel raises {type(error).__name__} ({error}); call Backend.kernel for it"
    else:
        yield "an operation without a kernel has one; call Backend.kernel for what the backend does not know"


def results(subject: CheckedBackend) -> Iterator[str]:
    """Check shapes, dtypes and elements of results against NumPy."""
    yield from _compared(subject, subject.trials(SHAPES[:1], (*DTYPES, float16)))


def sizes(subject: CheckedBackend) -> Iterator[str]:
    """Check operands without axes, without elements, and with extents of 1."""
    yield from _compared(subject, subject.trials(SHAPES[1:], SMALL))


def special_values(subject: CheckedBackend) -> Iterator[str]:
    """Check NaN, infinities and zeros of both signs."""
    floating = [dtype for dtype in (*DTYPES, float16) if kind_of(dtype) == "f"]
    found = [subject.trial(e) for dtype in floating for e in special_examples(dtype)]
    yield from _compared(subject, [trial for trial in found if trial is not None])


def layouts(subject: CheckedBackend) -> Iterator[str]:
    """Check operands of any strides, and on a device views that its own kernels made."""
    for trial in subject.trials(SHAPES[:1], SMALL, 2):
        for what, arrays in laid_out(trial.arrays):
            yield from _compared(subject, [trial], f"{what} operands, ", arrays)
        if not subject.place.on_host:
            for what, view in _VIEWS.items():
                raws = [view(subject, a) if a.ndim == 2 else subject.put(a) for a in trial.arrays]
                yield from _compared(subject, [trial], f"{what} on the device, ", trial.arrays, raws)


def _by_kernel(op: Op, subject: CheckedBackend, array: Elements) -> Any:
    trial = subject.trial(Example(op, (array,)))
    return subject.put(array) if trial is None else trial.run(subject.put(array))


_VIEWS: Final[dict[str, Callable[[CheckedBackend, Elements], Any]]] = {
    "transposed": lambda s, a: _by_kernel(catalog.transpose.op(permutation=(1, 0)), s, a.T),
    "reversed": lambda s, a: _by_kernel(catalog.reverse.op(axes=(0, 1)), s, a[::-1, ::-1]),
    "sliced": lambda s, a: _by_kernel(
        catalog.slice_.op(start=(0, 0), limit=(2 * a.shape[0], a.shape[1]), stride=(2, 1)), s, np.repeat(a, 2, axis=0)
    ),
}
"""Makes a view with the elements of a matrix."""

_CUTS: Final[dict[str, Any]] = {
    "rows": np.s_[:1],
    "columns": np.s_[:, :1],
    "vectors": np.s_[0],
    "single elements": np.s_[0, 0],
}


def broadcasting(subject: CheckedBackend) -> Iterator[str]:
    """Check that element-wise kernels broadcast operands, and take numbers of Python."""
    for trial in subject.trials(SHAPES[:1], SMALL, 2):
        if not trial.op.primitive.elementwise or len(trial.arrays) < 2:
            continue
        for i in range(len(trial.arrays)):
            for what, cut in _CUTS.items():
                arrays = _with(trial.arrays, i, trial.arrays[i][cut])
                yield from _compared(subject, [trial], f"operand {i} repeated from {what}, ", arrays)
            if i != trial.op.primitive.chooser:
                number = trial.arrays[i][0, 0].item()
                raws = _with([subject.put(a) for a in trial.arrays], i, number)
                arrays = _with(trial.arrays, i, trial.arrays[i][0, 0])
                yield from _compared(subject, [trial], f"operand {i} a number of Python, ", arrays, raws)


def _with(operands: Sequence[Any], position: int, operand: Any) -> list[Any]:
    """Operands, one of which is replaced."""
    return [operand if i == position else x for i, x in enumerate(operands)]


def _compared(
    subject: CheckedBackend,
    trials: Sequence[KernelCall] | Iterator[KernelCall],
    what: str = "",
    arrays: Sequence[Elements] | None = None,
    raws: Sequence[Any] | None = None,
) -> Iterator[str]:
    for trial in trials:
        given = trial.arrays if arrays is None else arrays
        try:
            want = by_numpy(trial, given)
        except TenferroError:
            continue  # NumPy refuses these numbers
        try:
            operands = [subject.put(a) for a in given] if raws is None else raws
            with np.errstate(all="ignore"):
                got = [subject.get(y) for y in subject.results(trial, operands)]
        except UnsupportedError:
            continue
        except AsynchronousError as error:
            yield f"{what}{trial}: {error}; the stream has failed, so that the other trials are left out"
            return
        except Mistake as error:
            yield f"{what}{trial}: {error}"
            continue
        except Exception as error:
            yield f"{what}{trial} raises {type(error).__name__} ({str(error)[:200]}); refuse it in `kernel`, or run it"
            continue
        for x, y in zip(got, want, strict=True):
            if not close(x, y):
                yield f"{what}{trial} is {difference(x, y)}"


def operands_unchanged(subject: CheckedBackend) -> Iterator[str]:
    """Check that kernels do not write to their operands."""
    for trial in subject.trials(SHAPES[:1], SMALL, 2):
        raws = [subject.put(a.copy()) for a in trial.arrays]
        if _ran(subject, trial, raws) is None:
            continue
        for i, (raw, before) in enumerate(zip(raws, trial.arrays)):
            if not identical(subject.get(raw), before):
                yield f"{trial}: the kernel writes to operand {i}, which other tensors may share; work on a copy"


def memory(subject: CheckedBackend) -> Iterator[str]:
    """Check that later calls leave earlier results as they are, and that computed results share no operand's memory."""
    overwrite = _overwriting(subject)
    for trial in subject.trials(SHAPES[:1], SMALL, 2):
        raws = [subject.put(a.copy()) for a in trial.arrays]
        found = _ran(subject, trial, raws)
        if found is None:
            continue
        before = [subject.get(y) for y in found]
        _ran(subject, trial, [subject.put(a[::-1].copy() if a.ndim else a) for a in trial.arrays])
        if not all(map(identical, map(subject.get, found), before)):
            yield f"{trial}: a later call changes the result of an earlier one; return newly allocated memory"
        if not allocates(trial.op):
            continue
        for raw in raws:
            overwrite(raw)
        if not all(map(identical, map(subject.get, found), before)):
            yield f"{trial}: the result shares the memory of an operand, which programs may overwrite; allocate it"


def _overwriting(subject: CheckedBackend) -> Callable[[Any], None]:
    """A function that writes into the memory of a raw array, where there is a way."""
    backend = subject.backend
    if isinstance(backend, AcceleratorBackend):
        target = backend.runtime.device(subject.device.index)

        def upload_over(raw: Any) -> None:
            target.upload(np.full(raw.shape, 77).astype(raw.dtype), backend.stream_for(target, (raw,)), raw)

        return upload_over

    def fill(raw: Any) -> None:
        if isinstance(raw, np.ndarray) and raw.flags.writeable:
            raw[...] = np.full(raw.shape, 77).astype(raw.dtype)

    return fill


def _ran(subject: CheckedBackend, trial: KernelCall, raws: Sequence[Any]) -> tuple[Any, ...] | None:
    """The raw results; None where the kernel fails, which other checks report."""
    try:
        with np.errstate(all="ignore"):
            return subject.results(trial, raws)
    except Exception:
        return None
