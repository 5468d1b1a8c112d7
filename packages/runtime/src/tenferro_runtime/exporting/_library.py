"""`load_library`: calls functions of an exported library on arrays."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from os import PathLike, fspath
from typing import Any

import numpy as np

from tenferro_runtime.exporting._description import FIRST_REPORT, NO_MEMORY, Described, described
from tenferro_tensor import Array, tensor
from tenferro_tensor_core import ArgumentError, BackendUnavailableError, DTypeError, NumericalError, ShapeError, dtype


class LibraryFunction:
    """A function of a library as a function of arrays.

    Attributes:
        description: names, dtypes and shapes.
    """

    description: Described

    def __init__(self, description: Described, run: Callable[..., int], extents: Callable[..., None]) -> None:
        self.description, self._run, self._extents = description, run, extents

    def __call__(self, *arrays: Any) -> Array | tuple[Array, ...]:
        """Call the function with arrays in the order of the inputs; returns the output, or a tuple of the outputs.

        Raises:
            ArgumentError: there are more or fewer inputs.
            DTypeError: an array has another dtype.
            ShapeError: an array has another shape, or the function refuses the sizes.
            NumericalError: a step failed.
            BackendUnavailableError: the library was built for another processor.
        """
        d = self.description
        if len(arrays) != len(d.inputs):
            raise ArgumentError(f"{d.name} takes {len(d.inputs)} arrays, got {len(arrays)}")
        raws = [np.asarray(x, order="C") for x in arrays]
        for x, a in zip(raws, d.inputs, strict=True):
            if x.dtype.name != a.dtype:
                raise DTypeError(f"{a.name} of {d.name} is {a.dtype}, got {x.dtype.name}; convert it first")
            if x.ndim != len(a.shape):
                raise ShapeError(f"{a.name} of {d.name} has the shape {a.shape}, got {x.shape}")
        sizes = [raws[k].shape[axis] for k, axis in d.found]
        known = dict(zip(d.sizes, sizes, strict=True))
        for x, a in zip(raws, d.inputs, strict=True):
            if any(want != have for want, have in zip([known.get(str(n), n) for n in a.shape], x.shape)):
                raise ShapeError(f"{a.name} of {d.name} has the shape {a.shape} for {known}, got {x.shape}")
        outputs = [np.empty(shape, dtype(a.dtype)) for shape, a in zip(self._shapes(sizes), d.outputs, strict=True)]
        code = self._run(*sizes, *[x.ctypes.data for x in raws], *[y.ctypes.data for y in outputs])
        if code == NO_MEMORY:
            raise MemoryError(f"{d.name} has no memory for its temporaries")
        if code:
            number = code - FIRST_REPORT
            text = f"{d.name}: {d.codes[number]}"
            if number < len(d.reports):
                raise NumericalError(text)
            if number < len(d.reports) + len(d.checks):
                raise ShapeError(f"{text}; the sizes are {known}", sizes=known)
            raise BackendUnavailableError(text, level=d.level)
        results = tuple(map(tensor, outputs))
        return results[0] if len(results) == 1 else results

    def _shapes(self, sizes: list[int]) -> list[tuple[int, ...]]:
        ranks = [len(a.shape) for a in self.description.outputs]
        given, found = np.array([*sizes, 0], np.int64), np.zeros(sum(ranks) + 1, np.int64)
        self._extents(given.ctypes.data, found.ctypes.data)
        rest = iter(found.tolist())
        return [tuple([next(rest) for _ in range(rank)]) for rank in ranks]


def load_library(path: str | PathLike[str], *names: str) -> Mapping[str, LibraryFunction]:
    """Load functions of a library that `export_library` wrote.

    Args:
        path: the shared library.
        names: names of the functions to load.

    Returns:
        The functions by name.

    Raises:
        BackendUnavailableError: the library cannot be loaded, or has no such function.
        ProgramError: it was exported in another format.

    >>> load_library("/nowhere/libheat.so", "heat")  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    ...
    BackendUnavailableError: /nowhere/libheat.so cannot be loaded
    """
    try:
        loaded = ctypes.CDLL(fspath(path))
    except OSError as cause:
        raise BackendUnavailableError(f"{fspath(path)} cannot be loaded: {cause}") from cause
    found = {}
    for name in names:
        try:
            text = ctypes.string_at(ctypes.addressof(ctypes.c_char.in_dll(loaded, f"{name}_description")))
            run, extents = getattr(loaded, name), getattr(loaded, f"{name}_extents")
        except (ValueError, AttributeError) as cause:
            raise BackendUnavailableError(f"{fspath(path)} has no function {name!r} of tenferro") from cause
        d = described(text.decode())
        run.argtypes = [ctypes.c_int64] * len(d.sizes) + [ctypes.c_void_p] * (len(d.inputs) + len(d.outputs))
        run.restype, extents.argtypes, extents.restype = ctypes.c_int, [ctypes.c_void_p] * 2, None
        found[name] = LibraryFunction(d, run, extents)
    return found
