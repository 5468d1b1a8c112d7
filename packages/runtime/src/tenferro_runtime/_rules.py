"""The records in which derivative rules are written: data that every mode of differentiation reads.

A function in a record asks for what it needs by parameter name: the operands of its primitive, ``out`` (the output, a
tuple where there are several), ``<operand>_spec``, the metadata, and the cotangent ``g`` in a transpose. What it names
is what is saved. The functions of `General` take tuples by position instead. Rules are written with primitives and the
operators of `Array`, so they trace and nest to any order; they never branch on values.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from tenferro_tensor_core import ArgumentError

Function = Callable[..., Any]
Number = int | float | complex


class _PerOperand:
    """A record of one entry for each operand that it names; frozen once made."""

    __slots__ = ("operands",)
    operands: MappingProxyType[str, Any]

    def __init__(self, entries: dict[str, Any]) -> None:
        if not entries:
            raise ArgumentError(
                f"{type(self).__name__}() names no operand; name those that carry derivatives, or use Inactive()"
            )
        object.__setattr__(self, "operands", MappingProxyType(entries))

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{type(self).__name__} records are frozen")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in self.operands.items())})"


class Slopes(_PerOperand):
    """Rule of an element-wise, holomorphic primitive: one derivative per operand, for ``t * D`` and ``g * conj(D)``.

    Attributes:
        operands: operand name to a number, or to a function that returns the derivative.
        singular: whether a derivative can be infinite or undefined at finite operands. The product with a tangent or
            cotangent that is exactly 0 is then 0, where plain multiplication would give NaN.
        square: for a length, whose derivatives are defined as 0 where it is 0: ``square(*operands, **params)``, its
            square without a root, which has derivatives there, or ``None`` for metadata for which it has none.
    """

    __slots__ = ("singular", "square")
    singular: bool
    square: Function | None

    def __init__(self, *, singular: bool = False, square: Function | None = None, **slopes: Number | Function) -> None:
        for name, slope in slopes.items():
            if not callable(slope) and not isinstance(slope, (int, float, complex)):
                raise ArgumentError(f"Slopes({name}=...) takes a number or a function, got {slope!r}", operand=name)
        super().__init__(dict(slopes))
        object.__setattr__(self, "singular", singular)
        object.__setattr__(self, "square", square)


class Linear(_PerOperand):
    """Rule of a primitive that is linear in each named operand: a transpose per operand; the jvp is the primitive.

    Attributes:
        operands: operand name to a function of the cotangent ``g`` and other named values; returns the operand's
            cotangent, or ``None`` for zero.
        joint: whether the primitive is linear in all named operands *together*, as a sum is and a product is not.
    """

    __slots__ = ("joint",)
    joint: bool

    def __init__(self, *, joint: bool = False, **transposes: Function) -> None:
        for name, transpose in transposes.items():
            if not callable(transpose):
                raise ArgumentError(f"Linear({name}=...) takes a function, got {transpose!r}", operand=name)
        super().__init__(dict(transposes))
        object.__setattr__(self, "joint", joint)


@dataclass(frozen=True, slots=True)
class General:
    """Rule with an explicit jvp, vjp, or both; a missing side is derived.

    Attributes:
        jvp: ``jvp(primals, tangents, outs, **params)``, the output tangents.
        vjp: ``vjp(primals, outs, cotangents, **params)``, the operand cotangents.
        forward: ``forward(primals, tangents, **params)``, outputs and output tangents at once; in forward mode it
            replaces the primitive followed by `jvp`.
        apart: ``apart(primals, side, **params)``, a perturbation of the first operand along which the derivative has a
            limit where it is undetermined; `side`, 0 or 1, selects one of two different ones. Used when the derivative
            raises an error whose payload has ``beside=True``.
        square: for a length, as in `Slopes`.
        recorded: ``recorded(op)``, the op of the same primitive that runs in place of `op` where its derivative in
            reverse mode is recorded; it may choose what `vjp` needs and other calls do not.

    Tangents and cotangents are tuples in the order of the operands or outputs, ``None`` where they are zero.
    """

    jvp: Function | None = None
    vjp: Function | None = None
    forward: Function | None = None
    apart: Function | None = None
    square: Function | None = None
    recorded: Function | None = None

    def __post_init__(self) -> None:
        if self.jvp is None and self.vjp is None:
            raise ArgumentError("General() needs a jvp or a vjp; use Inactive() if the derivative is zero everywhere")
        for name in ("jvp", "vjp", "forward", "apart", "square", "recorded"):
            function = getattr(self, name)
            if function is not None and not callable(function):
                raise ArgumentError(f"General({name}=...) takes a function, got {function!r}")


@dataclass(frozen=True, slots=True)
class Within:
    """Rule of a primitive that applies a program in its metadata; its derivatives apply derivatives of that program.

    The last inputs of the program correspond to the operands, and its outputs to the results, whatever their shapes. A
    derivative consists of two ops: the first takes the operands and also returns residuals; the second takes residuals
    and cotangents or tangents.

    Attributes:
        program: name of the metadata that holds the program.
        first: ``first(op, program)``, the op that applies `program` as `op` does, with the residuals as results
            after those of `op`.
        second: ``second(op, first, program, ins, outs)``, the op that applies `program`, whose inputs and outputs are
            described by pairs. In `ins`, ``("operand", i)`` is that operand or its tangent, ``("output", k)`` the
            cotangent of that result, ``("residual", j)`` that residual of the op `first`, and ``("input", i)`` that
            leading input of the program of `op`, which is no operand of the new op. In `outs`, ``("operand", i)`` is
            the cotangent of that operand, and ``("output", k)`` the tangent of that result.
    """

    program: str
    first: Function
    second: Function


@dataclass(frozen=True, slots=True)
class Inactive:
    """Rule of a primitive whose derivative is zero by definition: comparisons, rounding, indices."""


Rule = Slopes | Linear | General | Within | Inactive
"""A derivative rule."""
