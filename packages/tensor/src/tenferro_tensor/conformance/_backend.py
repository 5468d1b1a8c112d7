"""The backend under check: its kernels for all examples, and the same operations by NumPy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from tenferro_tensor._host_kernel import host_kernel
from tenferro_tensor._place import HOST, ComputeDevice, Place
from tenferro_tensor._primitive import Op
from tenferro_tensor._spec import Spec
from tenferro_tensor.backends import Backend
from tenferro_tensor.checking import Mistake, shown
from tenferro_tensor.conformance._examples import SHAPES, Elements, Example, examples
from tenferro_tensor_core import DTYPES, DType, TenferroError, UnsupportedError

Kernel = Callable[..., Any]
Specs = tuple[Spec, ...]


class KernelCall(NamedTuple):
    """A kernel with operands.

    Attributes:
        op: the op.
        arrays: elements of the operands.
        outs: specs of the results.
        run: the kernel of the backend.
    """

    op: Op
    arrays: tuple[Elements, ...]
    outs: Specs
    run: Kernel

    def __str__(self) -> str:
        return f"{self.op!r} of {', '.join([f'{a.dtype}{list(a.shape)}' for a in self.arrays]) or 'no operands'}"


class CheckedBackend:
    """A backend, and one of its devices.

    Attributes:
        backend: the backend.
        device: the device that runs kernels.
        place: where their operands and results are.
        absent: names of the operations that have no kernel.
    """

    def __init__(self, backend: Backend, device: ComputeDevice) -> None:
        self.backend, self.device = backend, device
        space = device.memory_space
        self.place: Place = HOST if device is HOST.device else Place(space, device if space.kind == "host" else None)
        self._kernels: dict[tuple[Op, Specs], Kernel | None] = {}
        names: dict[str, bool] = {}
        for dtype in DTYPES:
            for example in examples(SHAPES[0], dtype, self.place):
                name = example.op.primitive.name
                names[name] = names.get(name, False) or self.trial(example) is not None
        self.absent: tuple[str, ...] = tuple(sorted([name for name, found in names.items() if not found]))

    def trials(
        self, shapes: Iterable[tuple[int, ...]] = SHAPES, dtypes: Sequence[DType] = DTYPES, most: int = len(DTYPES) + 1
    ) -> Iterator[KernelCall]:
        """The examples that inference admits and for which there is a kernel, each op for `most` dtypes at most."""
        for shape in shapes:
            seen: Counter[Op] = Counter()
            for dtype in dtypes:
                found = [self.trial(e) for e in examples(shape, dtype, self.place) if seen[e.op] < most]
                seen.update({t.op for t in found if t is not None})
                yield from [t for t in found if t is not None]

    def trial(self, example: Example) -> KernelCall | None:
        """An example as a trial; None if inference refuses it, or the backend has no kernel."""
        op, ins = example.op, tuple([Spec(a.shape, a.dtype, self.place) for a in example.arrays])
        try:
            out = op.infer(*ins)
        except TenferroError:
            return None
        outs = out if isinstance(out, tuple) else (out,)
        if (op, ins) not in self._kernels:
            run = self._kernel(op, ins, outs)
            known = run is None or _agrees(KernelCall(op, example.arrays, outs, run))
            self._kernels[op, ins] = run if known else None
        run = self._kernels[op, ins]
        return None if run is None else KernelCall(op, example.arrays, outs, run)

    def _kernel(self, op: Op, ins: Specs, outs: Specs) -> Kernel | None:
        try:
            return self.backend.kernel(op, ins, outs, self.device)
        except UnsupportedError:
            return None
        except Exception as error:
            return _raising(error)

    def put(self, array: Elements) -> Any:
        """A raw array of the backend; in main memory the array itself, as kernels get it."""
        if self.place.on_host:
            return array if array.ndim else array[()]
        return self.backend.upload(array, self.device)

    def get(self, raw: Any) -> Elements:
        """A row-major copy of the elements of a raw array."""
        return np.array(raw if self.place.on_host else self.backend.download(raw), order="C")

    def results(self, trial: KernelCall, raws: Sequence[Any]) -> tuple[Any, ...]:
        """The raw results of a kernel, which have the shapes and dtypes that inference says.

        Raises:
            Mistake: they have others.
        """
        out = trial.run(*raws)
        many = isinstance(trial.op.infer(*[Spec(a.shape, a.dtype, self.place) for a in trial.arrays]), tuple)
        found = out if many else (out,)
        if not isinstance(found, tuple) or len(found) != len(trial.outs):
            raise Mistake(
                f"the kernel returned {out!r:.80}; return {f'a tuple of {len(trial.outs)}' if many else 'it'}"
            )
        for raw, spec in zip(found, trial.outs):
            shape, dtype = getattr(raw, "shape", None), getattr(raw, "dtype", None)
            if shape is None or tuple(shape) != spec.shape or dtype != spec.dtype:
                seen = f"{type(raw).__name__} without shape" if shape is None else f"{dtype}{list(shape)}"
                raise Mistake(f"the kernel returned {seen}, where inference says {spec!r}; return what `outs` say")
        return found


def _raising(error: Exception) -> Kernel:
    def run(*raws: Any) -> Any:
        raise error

    return run


def by_numpy(trial: KernelCall, arrays: Sequence[Elements]) -> list[Elements]:
    """The results of an op on host arrays, by the reference kernels."""
    op, ins = trial.op, tuple([Spec(a.shape, a.dtype) for a in trial.arrays])
    outs = tuple([s.with_(place=HOST) for s in trial.outs])
    run = host_kernel(op, ins, outs)
    with np.errstate(all="ignore"):
        out = run(*[a if a.ndim else a[()] for a in arrays]) if run else arrays[0]
    return [np.array(x, order="C") for x in (out if isinstance(out, tuple) else (out,))]


def _agrees(trial: KernelCall) -> bool:
    """Whether the op has the dtypes of its inference; where it has not, that is no mistake of a backend."""
    try:
        return [x.dtype for x in by_numpy(trial, trial.arrays)] == [s.dtype for s in trial.outs]
    except TenferroError:  # these numbers are refused
        return True


def difference(got: Elements, want: Elements) -> str:
    """Two arrays in words."""
    return f"{shown(got)}, and by NumPy {shown(want)}"
