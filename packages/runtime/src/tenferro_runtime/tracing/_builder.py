"""`Builder`: records equations, lifts outside values, and closes to a `Program`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from copy import copy
from itertools import count
from typing import Any, Final

import numpy as np

from tenferro_runtime.ir._effects import effectful, silenced
from tenferro_runtime.ir._inference import INFERRED, infer
from tenferro_runtime.ir._interpret import recording
from tenferro_runtime.ir._program import WRITTEN_OUT, Equation, Literal, Operand, Program, inner_programs
from tenferro_runtime.ir._source import Source, here, user_line, where
from tenferro_runtime.tracing import _staging
from tenferro_runtime.tracing._traced import TracedTensor
from tenferro_tensor import (
    SCALARS,
    Array,
    ComputeDevice,
    Interval,
    LinearForm,
    Op,
    Place,
    Spec,
    Tensor,
    catalog,
    next_level,
    tensor,
)
from tenferro_tensor.calls import state
from tenferro_tensor.dispatch import common_place, decide, scoped_device
from tenferro_tensor.identity import Identity, aliased, identity
from tenferro_tensor.origins import made_at
from tenferro_tensor.ownership import owned
from tenferro_tensor.promotion import common_dtype, materialised, normalised
from tenferro_tensor_core import (
    ArgumentError,
    Dim,
    DimLike,
    Guard,
    TracingError,
    bool_,
    complex128,
    dim,
    float64,
    int64,
    new_size,
    weak,
)

_new = object.__new__
_WEAK: Final[dict[Any, type]] = {bool_: bool, int64: int, float64: float, complex128: complex}


_STARTS: Final = {catalog.dynamic_slice: 1, catalog.dynamic_update_slice: 2}
"""Position of the first operand that is the start of a block."""

OPENED: Final[ContextVar[tuple[ComputeDevice | None] | None]] = ContextVar("tenferro device of the trace", default=None)
"""The device of the scope in which the outermost trace was opened, during that trace."""


_RECORDED: Final = (
    "_constants", "_defined", "_equations", "_lifted", "_size_values", "_specs", "_weak", "captured",
)  # fmt: skip


class Builder:
    """Records one program.

    Attributes:
        level: level of its traced values.
        captured: differentiated values, and values of an outer trace, that the program takes as inputs, each with its
            variable; these inputs follow the declared ones.
        closed: whether the program is finished, after which its values cannot be used.
        device: the device of the scope around the outermost trace, which applies when the program runs; inner scopes
            are recorded in the program.
        source: line of user code that opened the trace.
        written_out: whether the user asked for a loop to be unrolled.
        blame: line to attribute equations to, if not the running one: derivatives belong to the line of the function.
    """

    __slots__ = (
        "_constants", "_defined", "_equations", "_indexed", "_inputs", "_lifted", "_made", "_names", "_next",
        "_size_values", "_specs", "_weak", "blame", "captured", "closed", "device", "intervals", "level",
        "linear_forms", "source", "written_out",
    )  # fmt: skip
    closed: bool
    device: ComputeDevice | None
    level: int
    written_out: bool

    def __init__(self, level: int | None = None) -> None:
        self.level = next_level() if level is None else level
        self.captured: list[tuple[Any, int]] = []
        self.closed = self.written_out = False
        self.source: Source = user_line()
        opened = OPENED.get()
        self.device = scoped_device() if opened is None else opened[0]
        self.blame: Source = None
        # A counter and a dict instead of a list, since both are atomic: a traced function may start threads.
        self._next = count().__next__
        self._specs: dict[int, Spec] = {}
        self._inputs: list[int] = []
        self._constants: dict[int, Tensor] = {}
        self._equations: list[Equation] = []
        self._names: dict[int, str] = {}
        self._lifted: dict[Identity, TracedTensor] = {}
        self._weak: dict[int, type] = {}
        self._size_values: dict[Op, TracedTensor] = {}
        self._defined: dict[int, Dim] = {}
        self.intervals: dict[int, Interval] = {}
        self.linear_forms: dict[int, LinearForm] = {}
        self._made: dict[int, Equation] = {}
        self._indexed = 0

    def state(self) -> tuple[Any, ...]:
        """The state of the recording, for `restore`."""
        return tuple([copy(getattr(self, name)) for name in _RECORDED])

    def restore(self, state: tuple[Any, ...]) -> None:
        """Drop everything recorded since a state.

        Args:
            state: a value of `state`.
        """
        for name, kept in zip(_RECORDED, state, strict=True):
            setattr(self, name, kept)
        self._indexed = min(self._indexed, len(self._equations))

    def mark(self) -> int:
        """Number of equations so far, for `silence`."""
        return len(self._equations)

    def silence(self, mark: int) -> None:
        """Remove the effects of the equations recorded after a mark; their values do not change.

        Args:
            mark: a value of `mark`.
        """
        later = self._equations[mark:]
        if any(effectful(eq.op) for eq in later):
            self._equations[mark:] = [silent for eq in later if (silent := silenced(eq)) is not None]
            self._indexed = min(self._indexed, mark)

    def _variable(self, spec: Spec) -> TracedTensor:
        v = _new(TracedTensor)
        v.spec, v.level, v.home, v.id = spec, self.level, self, self._next()
        self._specs[v.id] = spec
        return v

    def input(
        self, spec: Spec, name: str | None = None, weak: type | None = None, interval: Interval | None = None
    ) -> TracedTensor:
        """Declare an input.

        A weak value, and a value computed from weak values only, takes the dtype of other operands, as the Python
        scalar would.

        Args:
            spec: its spec.
            name: its name, for display.
            weak: class of the Python scalar that it represents, if any.
            interval: bounds of the elements of an integer, which must hold in every run.

        Returns:
            The traced value.
        """
        self.require_open(None)
        v = self._variable(spec)
        self._inputs.append(v.id)
        if weak is not None:
            self._weak[v.id] = weak
        if interval is not None:
            self.intervals[v.id] = interval
        if name is not None:
            self._names[v.id] = name
        return v

    def constant(self, value: Tensor) -> TracedTensor:
        """Record a concrete tensor as a constant of the program.

        The same value is one constant, even if elements of the tensor are assigned later.

        Args:
            value: the tensor, which owns its memory from now on.

        Returns:
            The variable.
        """
        self.require_open(None)
        known = self._lifted.get(identity(owned(value)))
        if known is None:
            known = self._lifted[identity(value)] = self._variable(value.spec)
            self._constants[known.id] = aliased(value)  # also keeps the value alive, so that its identity stays unique
        return known

    def lift(self, value: Any) -> TracedTensor:
        """Make an outside value a variable: concrete data a constant, any other value of a lower level an input.

        Args:
            value: a value or a number.

        Returns:
            The variable.

        Raises:
            TracingError: the value belongs to a finished trace or to an inner transformation.
        """
        if value.__class__ is TracedTensor:
            if value.home is self:
                self.require_open(value)
                return value
            value.home.require_open(value)
        if value.__class__ is Tensor:
            return self.constant(value)
        if value.__class__ in SCALARS or isinstance(value, (np.ndarray, np.generic)):
            return self.constant(tensor(value))
        if not isinstance(value, Array):
            raise ArgumentError(
                f"a program computes with arrays and numbers, got {type(value).__name__}{here()}; "
                "convert it with asarray(), or pass it as a static argument",
                type=type(value).__name__,
            )
        inside = recording(value)
        if inside is not None:
            inside.require_open(value)
        if value.level > self.level:
            raise TracingError(
                f"a {type(value).__name__} of an inner transformation was used in an outer program{here()}; "
                "return it from the inner function instead of storing it elsewhere",
                spec=repr(value.spec),
            )
        known = self._lifted.get(identity(value))
        if known is None:
            self.require_open(None)
            known = self._lifted[identity(value)] = self._variable(value.spec)
            self.captured.append((aliased(value), known.id))
            if value.__class__ is TracedTensor and value.id in value.home._weak:
                self._weak[known.id] = value.home._weak[value.id]
        return known

    def size_value(self, op: Op) -> TracedTensor:
        """The value of a size, weak; recorded once for each size.

        Args:
            op: the op that returns the value of a size.

        Returns:
            The traced value.
        """
        known = self._size_values.get(op)
        if known is None:
            known = self._size_values[op] = self.emit(op, ())
            self._weak[known.id] = int
        return known

    def define_size(self, k: TracedTensor, most: DimLike | None) -> Dim:
        """Make the value of a 0-d integer a new size; once for each variable.

        Args:
            k: the traced integer.
            most: upper bound of the size.

        Returns:
            The size.
        """
        known = self._defined.get(k.id)
        if known is None:
            upper = most if isinstance(most, int) else most.upper if isinstance(most, Dim) else None
            known = dim(new_size(), 0, upper)
            self._defined[k.id] = known
            made = self.emit(catalog.define_size.op(size=known), (k,))
            self._size_values[catalog.dim_value.op(size=known)] = made
        return known

    def spec_of(self, v: int) -> Spec:
        """The spec of a variable.

        Args:
            v: the variable.

        Returns:
            The spec.
        """
        return self._specs[v]

    def source_of(self, v: int) -> Any:
        """The origin of a variable.

        Args:
            v: the variable.

        Returns:
            A constant, the equation that computes it, or a captured value; ``None`` for an input.
        """
        constant = self._constants.get(v)
        if constant is not None:
            return constant
        equations = self._equations
        for eq in equations[self._indexed :]:
            self._made.update(dict.fromkeys(eq.results, eq))
        self._indexed = len(equations)
        made = self._made.get(v)
        return made if made is not None else next((x for x, known in self.captured if known == v), None)

    def weak_class(self, value: TracedTensor) -> type | None:
        """Class of the Python number that a value of this builder represents.

        Args:
            value: the value.

        Returns:
            The class, or ``None``.
        """
        return self._weak.get(value.id)

    def require_open(self, value: TracedTensor | None) -> None:
        """Check that the program is still being recorded.

        Args:
            value: the value whose use is checked, or the builder itself.

        Raises:
            TracingError: the trace has ended.
        """
        if self.closed:
            what = "a program" if value is None else f"a traced {value.spec!r}"
            made = where(self.source)
            raise TracingError(
                f"{what} was used{here()} after the trace{f' opened at {made}' if made else ''} had ended; "
                "return values from the traced function instead of storing them in globals, attributes or lists"
            )

    def bind(self, op: Op, args: tuple[Any, ...]) -> Any:
        """Record an op on any operands: lift them, bring them to the form of the IR, emit the equation.

        Args:
            op: the op.
            args: its operands.

        Returns:
            The traced result, or a tuple of them.
        """
        if _staging.active:
            inner = _staging.stage_above(self.level)
            if inner is not None:
                return inner.bind(op, args)
        if state.open_scopes:
            device = scoped_device()
            if device is not self.device and device is not None:
                return self._bind_on(device, op, args)
        if self.closed:
            self.require_open(next((a for a in args if a.__class__ is TracedTensor and a.home is self), None))
        if self._weak and any(a.__class__ is TracedTensor and a.home is self and a.id in self._weak for a in args):
            return self._bind_weak(op, args)
        return self._bind(op, args)

    def _bind_on(self, device: ComputeDevice, op: Op, args: tuple[Any, ...]) -> Any:
        """Record an op inside a device scope that was opened while tracing, so that the program names the device.

        One operand is marked with the device, in the same memory, and the results carry no device, as after an eager
        call.
        """
        lifted: list[Any] = [a if a.__class__ in SCALARS else self.lift(a) for a in args]
        arrays = [a for a in lifted if a.__class__ is TracedTensor]
        said = op.primitive is catalog.convert  # a weak operand represents a scalar, unless the op fixes the dtype
        strong = next(
            (i for i, a in enumerate(lifted) if a.__class__ is TracedTensor and (said or a.id not in self._weak)), None
        )
        named = op.primitive is catalog.transfer or any(a.spec.place.compute_device for a in arrays)
        if strong is None or named or inner_programs(op.params):  # inner programs name devices themselves
            return self._bind_weak(op, tuple(lifted))
        decide(op.primitive.name, arrays)  # raises an error for operands that the device cannot compute on
        there = Place(device.memory_space, device)
        lifted[strong] = self._bind(catalog.transfer.op(place=there), (lifted[strong],))
        out = self._bind_weak(op, tuple(lifted))
        back = catalog.transfer.op(place=Place(device.memory_space))
        outs = [self._bind(back, (v,)) for v in (out if out.__class__ is tuple else (out,))]
        return tuple(outs) if out.__class__ is tuple else outs[0]

    def bind_alike(self, op: Op, operands: tuple[TracedTensor, ...]) -> Any:
        """`bind` for operands of this builder, with a fast path for specs that the op has been recorded for.

        Args:
            op: the op.
            operands: traced values of this builder.

        Returns:
            The traced result, or a tuple of them.
        """
        known = INFERRED.table.get((op, *[v.spec for v in operands]))
        if known is None or known[1] or self.closed or self._weak or _staging.active or state.open_scopes:
            return self.bind(op, operands)
        out = self._variable(known[0][0])
        eq = _new(Equation)
        eq.op, eq.operands, eq.results = op, tuple([v.id for v in operands]), (out.id,)
        eq.source = self.blame or user_line()
        self._equations.append(eq)
        return out

    def _bind_weak(self, op: Op, args: tuple[Any, ...]) -> Any:
        """As `_bind` with weak operands, which take the dtype that their Python scalars would."""
        lifted: list[Any] = [a if a.__class__ in SCALARS else self.lift(a) for a in args]
        p = op.primitive
        classes = [a.__class__ if a.__class__ in SCALARS else self._weak.get(a.id) for a in lifted]
        if p in _STARTS:  # indices, whose dtype does not follow from other operands
            classes[_STARTS[p] :] = [None] * (len(classes) - _STARTS[p])
        if inner_programs(op.params):  # these take the specs that their programs were recorded for
            return self._bind(op, tuple(lifted))
        if all(classes):
            out = self._bind(op, tuple(lifted))
            kind = None if out.__class__ is tuple or p is catalog.convert else _WEAK.get(out.spec.dtype)
            if p.elementwise and kind is not None:
                self._weak[out.id] = kind
            return out
        strong = [a.spec for a, c in zip(lifted, classes, strict=True) if c is None]
        for i, kind in enumerate(classes):
            if kind is not None and lifted[i].__class__ is TracedTensor and i != p.chooser:
                ruled: list[Any] = [c or lifted[j].spec for j, c in enumerate(classes) if j != p.chooser]
                dtype = common_dtype(ruled) if p.elementwise else weak(kind, strong[0].dtype)
                if lifted[i].spec.dtype != dtype:
                    lifted[i] = self._bind(catalog.convert.op(dtype=dtype), (lifted[i],))
        return self._bind(op, tuple(lifted))

    def _bind(self, op: Op, args: tuple[Any, ...]) -> Any:
        if op.primitive is catalog.dim_value:
            return self.size_value(op)
        seen: list[Any] = [op]
        operands: list[Any] = []
        a: Any
        for a in args:
            if a.__class__ is TracedTensor and a.home is self:
                seen.append(a.spec)
            elif a.__class__ in SCALARS:
                seen.append(a.__class__)
            else:
                a = self.lift(a)
                seen.append(a.spec)
            operands.append(a)
        known = INFERRED.table.get(tuple(seen))
        if known is None:
            require_common_place(op, operands)
            ready = normalised(op, tuple(operands)) if op.primitive.elementwise else materialised(tuple(operands))
            return self.emit(op, ready)
        return self._append(op, operands, known, self.blame or user_line())

    def emit(self, op: Op, operands: Sequence[Any]) -> Any:
        """Record an equation on operands in the form of the IR.

        Args:
            op: the op.
            operands: values of this builder, and Python scalars for element-wise ops.

        Returns:
            The value, or the tuple of values.
        """
        lifted: list[Any] = [a if a.__class__ in SCALARS else self.lift(a) for a in operands]
        seen = tuple([a.__class__ if a.__class__ in SCALARS else a.spec for a in lifted])
        return self._append(op, lifted, infer(op, seen), self.blame or user_line())

    def _append(self, op: Op, operands: list[Any], outs: tuple[tuple[Spec, ...], bool], source: Source) -> Any:
        ids: list[Operand] = []
        for a in operands:
            if a.__class__ is TracedTensor:
                ids.append(a.id)
            else:
                if a.__class__ is int:
                    _require_in_range(op, a, operands)
                ids.append(Literal(a))
        specs, many = outs
        results = [self._variable(spec) for spec in specs]
        eq = _new(Equation)
        eq.op, eq.operands, eq.results, eq.source = op, tuple(ids), tuple([v.id for v in results]), source
        self._equations.append(eq)
        return tuple(results) if many else results[0]

    def origin(self, v: int) -> str:
        """The origin of a variable, as a clause of messages about operands.

        Args:
            v: the variable.

        Returns:
            The clause.
        """
        if v in self._constants:
            return self._constants[v]._origin()
        if v in self._inputs:
            return f"argument {self._names.get(v, self._inputs.index(v))}"
        made = next((eq for eq in reversed(self._equations) if v in eq.results), None)
        return "from outside of the trace" if made is None else made_at(where(made.source))

    def close(
        self,
        outputs: Sequence[Any],
        *,
        guards: tuple[Guard, ...] = (),
        examples: Mapping[str, int] | None = None,
    ) -> Program:
        """End the trace.

        Args:
            outputs: values of any level up to this one, or numbers.
            guards: conditions on symbolic sizes.
            examples: example sizes.

        Returns:
            The program that computes the outputs.
        """
        output_ids = tuple([self.lift(v).id for v in outputs])
        self.closed = True
        program = Program(
            (*self._inputs, *[v for _, v in self.captured]),
            self._constants,
            tuple(self._equations),
            output_ids,
            self._specs,
            names=self._names,
            guards=guards,
            examples=examples,
        )
        if self.written_out:
            program.memo[WRITTEN_OUT] = True
        return program


def require_common_place(op: Op, operands: Sequence[Any]) -> None:
    """Check that one device can compute on all operands; the error shows the line of each."""
    given = [] if op.primitive.anywhere else [a for a in operands if a.__class__ not in SCALARS]
    if any(a.spec.place is not given[0].spec.place for a in given):
        common_place(op.primitive.name, given)


def _require_in_range(op: Op, value: int, operands: list[Any]) -> None:
    """Check that an integer operand fits the dtype of an integer array, as in a concrete call."""
    dtype = next((a.spec.dtype for a in operands if a.__class__ is TracedTensor and a.spec.dtype.kind in "iu"), None)
    if dtype is not None:
        info = np.iinfo(dtype)
        if not info.min <= value <= info.max:
            raise ArgumentError(
                f"{op.primitive.name}: Python integer {value} out of bounds for {dtype.name}{here()}; "
                "convert the array to a wider dtype or the number to an array first",
                primitive=op.primitive.name,
            )
