"""The op under check, with its example operands and variations of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from tenferro_tensor import HOST, Op, Spec, Tensor, get_backend, tensor
from tenferro_tensor.checking import copied
from tenferro_tensor_core import TenferroError, dim

Arrays = list[np.ndarray[Any, Any]]


class Subject:
    """An op and its operands.

    Attributes:
        op: the op.
        operands: concrete tensors.
        arrays: their elements, row-major copies in main memory.
        specs: their specs.
    """

    def __init__(self, op: Op, operands: Sequence[Any]) -> None:
        self.op = op
        self.operands: list[Any] = [tensor(x) for x in operands]
        self.arrays: Arrays = [copied(x) for x in self.operands]
        self.specs: list[Spec] = [x.spec for x in self.operands]

    def put(self, arrays: Sequence[np.ndarray[Any, Any]]) -> list[Tensor]:
        """Tensors of arrays on the operands' devices; in main memory they keep the arrays' layout."""
        made = []
        for array, spec in zip(arrays, self.specs, strict=True):
            if spec.place is HOST:
                raw = array if array.ndim else array[()]
                made.append(Tensor.wrap(raw, Spec(array.shape, array.dtype)))
            else:
                made.append(tensor(array, device=spec.place.device))
        return made

    def put_lanes(self, arrays: Sequence[np.ndarray[Any, Any]]) -> list[Tensor]:
        """Tensors of arrays of any shape on the devices of the operands."""
        return [tensor(a, device=s.place.device) for a, s in zip(arrays, self.specs, strict=True)]

    def call(self, operands: Sequence[Any]) -> list[Any]:
        """The results as values."""
        out = self.op(*operands)
        return list(out) if isinstance(out, tuple) else [out]

    def run_kernel(self, operands: Sequence[Tensor]) -> None:
        """Run the kernel directly, with writable operands, unlike in normal use."""
        outs = self.infer([x.spec for x in operands])
        assert outs is not None, "check_primitive has run the inference before"
        device = outs[0].place.device
        kernel = get_backend(device.kind).kernel(self.op, tuple([x.spec for x in operands]), outs, device)
        kernel(*[x._raw() for x in operands])

    def results(self, arrays: Sequence[np.ndarray[Any, Any]]) -> Arrays:
        """Elements of the results for operands with these elements; the example's own arrays are copied first."""
        given = [a.copy() if any(a is b for b in self.arrays) else a for a in arrays]
        return [copied(y) for y in self.call(self.put(given))]

    def infer(self, specs: Sequence[Spec]) -> tuple[Spec, ...] | None:
        """Specs of the results; ``None`` if inference refuses the operands."""
        try:
            out = self.op.infer(*specs)
        except TenferroError:
            return None
        return out if isinstance(out, tuple) else (out,)

    def admits(self, arrays: Sequence[np.ndarray[Any, Any]]) -> tuple[Spec, ...] | None:
        """Like `infer`, for operands of these shapes and dtypes; the kernel may still refuse their values."""
        return self.infer([s.with_(shape=a.shape, dtype=a.dtype) for a, s in zip(arrays, self.specs, strict=True)])

    def extents(self) -> list[int]:
        """The distinct extents of the operands."""
        return sorted({n for s in self.specs for n in s.shape})  # type: ignore[misc]

    def open_specs(self) -> tuple[list[Spec], dict[str, int]]:
        """Specs with symbolic sizes, one for each distinct extent above 1, and the values of the sizes."""
        names = {n: f"n{i}" for i, n in enumerate(self.extents()) if n > 1}
        sizes: dict[Any, Any] = {n: dim(name, min=1) for n, name in names.items()}
        specs = [s.with_(shape=tuple([sizes.get(n, n) for n in s.shape])) for s in self.specs]
        return specs, {name: n for n, name in names.items()}

    def cast(self, dtype: str) -> Arrays:
        """The arrays with the floating-point ones (if there are none, all) converted to a dtype."""
        wanted = np.dtype(dtype)
        floating = [a.dtype.kind in "fc" for a in self.arrays]
        return [
            _converted(a, wanted) if is_floating or not any(floating) else a
            for a, is_floating in zip(self.arrays, floating, strict=True)
        ]

    def larger(self) -> Iterator[Arrays]:
        """Operands of other sizes that inference admits: all extents above 1 increased by 1, or each alone."""
        large = [n for n in self.extents() if n > 1]
        for chosen in [large, *[[n] for n in large]]:
            arrays = list(self.arrays)
            for i, a in enumerate(arrays):
                for axis, n in enumerate(a.shape):
                    if n in chosen:
                        a = np.take(a, range(n + 1), axis=axis, mode="wrap")
                arrays[i] = a
            if chosen and self.admits(arrays) is not None:
                yield arrays


def _converted(array: np.ndarray[Any, Any], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    if dtype.kind != "c" and array.dtype.kind == "c":
        return np.ascontiguousarray(array.real).astype(dtype)
    if dtype.kind == "c" and array.dtype.kind != "c":  # imaginary parts that differ, well away from branch cuts
        return (array * (1 + 0.25j) + 0.125j).astype(dtype)
    return array.astype(dtype)
