"""Operands of rules: real, complex and boolean values of vectors, and the context in which a rule is applied."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from tenferro_cpu.native.codegen.builder import Block, Vec
from tenferro_tensor_core import is_narrow


@dataclass(frozen=True, slots=True, eq=False)
class Pair:
    """A complex value as two vectors."""

    re: Vec
    im: Vec


Value: TypeAlias = Vec | Pair


@dataclass(frozen=True, slots=True)
class OpContext:
    """The context of an op: its block, and the dtypes of its operands and result."""

    block: Block
    dtype: np.dtype[Any]
    out: np.dtype[Any]

    @property
    def unsigned(self) -> bool:
        return self.dtype.kind == "u"


Rule: TypeAlias = Callable[..., Value]


def kind_of(dtype: np.dtype[Any]) -> str:
    """Element kind of a dtype: for complex ones that of the parts, for narrow ones that of the bits.

    >>> kind_of(np.dtype("complex64")), kind_of(np.dtype("uint8")), kind_of(np.dtype("bool"))
    ('f32', 'i8', 'i1')
    """
    if dtype.kind == "c":
        return f"f{dtype.itemsize * 4}"
    if is_narrow(dtype):
        return "i16"
    return "i1" if dtype.kind == "b" else ("f" if dtype.kind == "f" else "i") + str(dtype.itemsize * 8)


def literal(block: Block, value: Any, dtype: np.dtype[Any]) -> Value:
    """A number in every lane; integers wrap as in NumPy's conversion."""
    kind = kind_of(dtype)
    if dtype.kind == "c":
        z = complex(value)
        return Pair(block.splat(kind, z.real), block.splat(kind, z.imag))
    if is_narrow(dtype):
        value = np.asarray(value, dtype).view(np.int16).item()
    return block.splat(kind, value)


def real(f: Callable[..., Vec]) -> Rule:
    """`f` on real values."""
    return lambda context, *args: f(*args)
