"""The structure of a program: its computation, independent of variable numbers, names and source lines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from weakref import WeakValueDictionary

from tenferro_tensor import HOST, Op, Spec, Tensor
from tenferro_tensor.identity import identity
from tenferro_tensor_core import Guard, key_of
from tenferro_tensor_core.forks import importing, new_lock

VALUE_KEY_MAX_BYTES: Final = 4096
"""Largest constant, in bytes, that is compared by its elements; larger ones are compared by a digest."""

DIGEST_MAX_BYTES: Final = 1 << 20
"""Largest constant, in bytes, that is compared by a digest; larger ones are compared by identity."""

_lock = new_lock()


class Structure:
    """Canonical form of a program, interned: two programs of one structure compute the same, bit for bit.

    Attributes:
        form: specs of the inputs, constants in order of their first use, equations as ``(op, operands, specs)``,
            outputs, and guards as ``(lhs, op, rhs)``. Variables are numbered inputs first, then
            constants, then results. An op that holds programs is replaced by its primitive and its metadata,
            with structures instead of the programs.
    """

    __slots__ = ("__weakref__", "form")
    form: tuple[Any, ...]

    def __new__(cls, form: tuple[Any, ...]) -> Structure:
        with _lock:
            self = _interned.get(form)
            if self is None:
                self = _interned[form] = object.__new__(cls)
                self.form = form
        return self


_interned: Final[WeakValueDictionary[tuple[Any, ...], Structure]] = WeakValueDictionary()


class Structured:
    """Base class of `Program`: its structure."""

    __slots__ = ()
    input_ids: tuple[int, ...]
    constants: Mapping[int, Tensor]
    equations: tuple[Any, ...]
    output_ids: tuple[int, ...]
    specs: Mapping[int, Spec]
    guards: tuple[Guard, ...]
    memo: dict[Any, Any]

    @property
    def structure(self) -> Structure:
        """The structure: one object for all programs that differ only in variable numbers, names and source lines.

        Constants larger than `DIGEST_MAX_BYTES` are equal only if they are the same tensor.

        >>> import numpy as np
        >>> import tenferro_runtime as tr
        >>> f, g = (tr.trace(lambda x: tr.sin(x) + 1, np.ones(3)) for _ in range(2))
        >>> f is g, f.structure is g.structure
        (False, True)
        """
        found: Structure | None = self.memo.get("structure")
        if found is None:
            found = self.memo["structure"] = Structure(_form(self))
        return found


_NUMBERS = frozenset({int})


def structural(op: Op) -> Any:
    """A key that is equal for ops that hold equal programs; the op itself if it holds none.

    >>> from tenferro_tensor import catalog
    >>> structural(catalog.sin.op())
    sin
    """
    for value in op.params.values():
        if _holds_program(value):
            return (op.primitive, *[_structural(v) for v in op.params.values()])
    return op


def _holds_program(value: Any) -> bool:
    if value.__class__ is tuple:
        return not _NUMBERS.issuperset(map(type, value)) and any(map(_holds_program, value))
    return isinstance(value, Structured)


def _structural(value: Any) -> Any:
    if isinstance(value, Structured):
        return value.structure
    if value.__class__ is tuple:
        return tuple(map(_structural, value))
    return key_of(value)


def _form(program: Structured) -> tuple[Any, ...]:
    used = {v: None for eq in program.equations for v in eq.operands if v in program.constants}
    used.update((v, None) for v in program.output_ids if v in program.constants)
    number = {v: i for i, v in enumerate((*program.input_ids, *used))}
    equations = []
    for eq in program.equations:
        operands = tuple([number[v] if v.__class__ is int else v for v in eq.operands])
        for v in eq.results:
            number[v] = len(number)
        equations.append((structural(eq.op), operands, tuple([program.specs[v] for v in eq.results])))
    return (
        tuple([program.specs[v] for v in program.input_ids]),
        tuple([content(program.constants[v]) for v in used]),
        tuple(equations),
        tuple([number[v] for v in program.output_ids]),
        tuple([(g.lhs, g.op, g.rhs) for g in program.guards]),
    )


class _Same:
    """A tensor compared by the identity of its value."""

    __slots__ = ("tensor",)

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and identity(other.tensor) == identity(self.tensor)

    def __hash__(self) -> int:
        return hash(identity(self.tensor))


def content(c: Tensor) -> tuple[Any, ...]:
    """A key that is equal for constants with equal bits and equal layout.

    The layout counts because rounding in kernels may depend on it.

    >>> import tenferro_runtime as tr
    >>> content(tr.arange(3)) == content(tr.asarray([0, 1, 2])), content(tr.zeros(1)) == content(-tr.zeros(1))
    (True, False)
    """
    size = c.data.nbytes if c.spec.place is HOST else DIGEST_MAX_BYTES + 1
    if size > DIGEST_MAX_BYTES:
        return (_Same(c),)
    raw = c.data.tobytes()
    if size > VALUE_KEY_MAX_BYTES:
        with importing():
            from hashlib import blake2b
        raw = blake2b(raw, digest_size=32).digest()
    return c.spec, c.data.strides, raw
