"""Every CUDA source that the package renders: functions of each dtype, reductions, regions, programs.

They are collected on a simulated CuPy; `joined` puts kernels of many programs into one text, which compiles faster.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, NamedTuple
from unittest import mock

import numpy as np

import tenferro_ad as ad
import tenferro_runtime as tr
from hand_written import reducing
from installed_cupy import installed_cupy
from nest_kernels import HostTarget
from rendered_functions import NAMES, specs_of
from tenferro_gpu.rendering import CudaRenderer, _group_writer, _sharing
from tenferro_gpu.source import library
from tenferro_gpu.whole import KernelSequence, _native, _shape
from tenferro_runtime.lowering import lower
from tenferro_tensor_core import TenferroError, is_narrow
from vmap_calls import CALLS

DTYPES: Final = ("float64", "complex128", "float32", "complex64")


class Text(NamedTuple):
    """Kernels of one program, without the functions that they call.

    Attributes:
        name: of the program.
        kernels: their texts, by entry.
    """

    name: str
    kernels: dict[str, str]


class Collected(NamedTuple):
    """Kernels of programs, and the programs that have no form as kernels, with the reason."""

    texts: list[Text]
    refused: dict[str, str]


@contextmanager
def spread_out() -> Iterator[None]:
    """Small nests become kernels of their own, as large ones are, so that every kind of kernel is rendered."""
    with (
        mock.patch.object(_shape, "MAX_GROUP_WORK", 0),
        mock.patch.object(_sharing, "MIN_GROUP_EXTENT", 2),
        mock.patch.object(_sharing, "FEW_ROWS", 3),
        mock.patch.object(_group_writer, "MIN_SHARED_WORK", 2),
        mock.patch.object(_native, "MIN_PART", 3),
    ):
        yield


def functions(dtypes: Iterable[str] = NAMES) -> Iterator[tuple[str, str]]:
    """A source for each dtype with a kernel of every function; narrow floats are in them by conversions, too."""
    for dtype in dtypes:
        (spec, *_) = specs_of(dtype).values()
        yield f"functions of {dtype}", spec.source


def reductions(dtypes: Iterable[str] = NAMES) -> Iterator[tuple[str, str]]:
    """A source for each dtype and space with every kind of reduction; narrow floats are widened first."""
    for dtype in dtypes:
        if is_narrow(np.dtype(dtype)):
            continue
        kinds = ("sum", "prod") if np.dtype(dtype).kind == "c" else ("sum", "prod", "max", "min")
        for kept, gone, leading in ((0, 1, False), (1, 2, False), (2, 1, True)):
            kernels = {kind: reducing(kind, dtype, kept, gone, leading=leading) for kind in kinds}
            (spec, *_) = CudaRenderer().together(kernels)
            yield f"reductions of {gone} of {kept + gone} axes of {dtype}", spec.source


def _texts(sequence: Any) -> dict[str, str]:
    return {kernel.entry: kernel.text() for kernel in sequence.kernels}


def programs(dtypes: Sequence[str] = DTYPES, names: Iterable[str] = tuple(CALLS)) -> Collected:
    """A call of every public function and primitive as a program of a GPU, and the program of its gradient."""
    found = Collected([], {})
    with installed_cupy(), tr.compute_device("cuda:0"):
        for name in names:
            for dtype in dtypes:
                call = CALLS[name]
                try:
                    with np.errstate(all="ignore"):
                        xs = [tr.asarray(make(np.dtype(dtype))) for make in call.operands]
                        call.f(*xs)
                except TenferroError:
                    continue  # not for this dtype
                _collect(found, f"{name} {dtype}", call.f, xs)
                if dtype in DTYPES[:2]:
                    _collect(found, f"gradient of {name} {dtype}", _gradient(call.f), xs)
    return found


def _gradient(f: Callable[..., Any]) -> Callable[..., Any]:
    def pulled(*xs: Any) -> Any:
        outs, back = ad.vjp(lambda *xs: [y for y in tr.tree_leaves(f(*xs)) if y.spec.inexact], *xs)
        return back([tr.ones_like(y) for y in outs])

    return pulled


def _collect(found: Collected, name: str, f: Callable[..., Any], xs: Sequence[Any]) -> None:
    try:
        function = lower(tr.trace(f, *xs), kind="cuda")
        for spread in (False, True):
            if spread:
                with spread_out():
                    texts = _texts(KernelSequence(function, _NoTarget()).sequence)
            else:
                texts = _texts(KernelSequence(function, _NoTarget()).sequence)
            found.texts.append(Text(f"{name}{', spread out' if spread else ''}", texts))
    except TenferroError as reason:
        found.refused[name] = f"{type(reason).__name__}: {reason}"


class _NoTarget(HostTarget):
    """A target that compiles nothing."""

    def functions(self, source: str, entries: Sequence[str]) -> Any:
        return lambda device: ()

    def require_kernel(self, op: Any) -> None: ...


def joined(texts: Iterable[Text], most: int = 60) -> Iterator[tuple[str, str, dict[str, str]]]:
    """Sources of about `most` kernels each, equal kernels once: their title, their text, and the program by entry."""
    seen: set[str] = set()
    batch: list[str] = []
    owners: dict[str, str] = {}
    for name, kernels in texts:
        for entry, text in kernels.items():
            plain = re.sub(rf"\b{entry}\b", "ENTRY", text)
            if plain in seen:
                continue
            seen.add(plain)
            unique = f"k{len(seen)}_{entry}"
            owners[unique] = name
            batch.append(plain.replace("ENTRY", unique))
        if len(batch) >= most:
            yield _source(batch, owners)
            batch, owners = [], {}
    if batch:
        yield _source(batch, owners)


def _source(batch: list[str], owners: dict[str, str]) -> tuple[str, str, dict[str, str]]:
    return f"{len(batch)} kernels from {next(iter(owners.values()))}", "\n".join([library(True, True), *batch]), owners
