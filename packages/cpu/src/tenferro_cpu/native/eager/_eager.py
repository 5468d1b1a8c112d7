"""Native kernels of single element-wise ops, which eager calls and tapes use instead of ufuncs."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from types import ModuleType
from typing import Any, Final

import numpy as np

from tenferro_cpu.native._extension import compiled
from tenferro_cpu.native._host import Host, last_level_cache
from tenferro_cpu.native.codegen.machine._jit import available, engine
from tenferro_cpu.native.eager._relayout import IN_PLACE_MAX_ELEMENTS, Relayout, StridedCode, same_lanes
from tenferro_cpu.native.kernels._code import mapped, mapped_cost
from tenferro_cpu.native.kernels._elementwise import Elementwise
from tenferro_cpu.native.kernels._fixed import FORMS, fixed_cost, fixed_rows
from tenferro_cpu.native.kernels._forms import Access
from tenferro_cpu.native.kernels._fused_entry import part_size
from tenferro_cpu.native.kernels._limits import TEAM_MIN_NS, UNBOUNDED
from tenferro_cpu.native.kernels._strided import Variants, strided
from tenferro_cpu.native.threads._team import team
from tenferro_tensor import Op, Primitive, Spec
from tenferro_tensor.catalog import analytic, arithmetic, bits, comparison, numbers
from tenferro_tensor.numpy_warnings import at_user_line
from tenferro_tensor_core import is_inexact
from tenferro_tensor_core.forks import importing, new_lock

Kernel = Callable[..., Any]
Maker = Callable[..., Kernel]


def _of(*modules: ModuleType) -> tuple[Primitive, ...]:
    """The primitives of modules of the catalog that have one or two operands, without those that SciPy serves best."""
    found = [p for module in modules for p in vars(module).values() if isinstance(p, Primitive)]
    return tuple([p for p in found if len(p.operands) < 3 and p not in _BY_SCIPY])


_BY_SCIPY: Final = frozenset({analytic.erfinv, analytic.lgamma, analytic.digamma, analytic.polygamma})
ANALYTIC: Final = _of(analytic)

EAGER: Final = (*_of(arithmetic, comparison, bits), *ANALYTIC, numbers.conj, numbers.convert)
"""Primitives of one or two operands that have an entry where the dtype has a native form."""

TERNARY: Final = (comparison.select, arithmetic.clamp)
"""Primitives of three operands."""

_DIVISIONS: Final = frozenset({arithmetic.floor_divide, arithmetic.remainder, arithmetic.fmod})

_SPECIAL: Final = frozenset({analytic.erf, analytic.erfc})
_SILENT: Final = _SPECIAL | {analytic.cbrt}

SCANNED: Final = frozenset(
    {
        analytic.log, analytic.log2, analytic.log10, analytic.log1p, analytic.acosh, analytic.atanh, arithmetic.pow,
        arithmetic.nextafter,
    }
)  # fmt: skip
"""Primitives that select infinity and NaN by comparing operands, which raises no floating-point flag."""

WATCHED: Final = frozenset(
    {
        arithmetic.add, arithmetic.sub, arithmetic.mul, arithmetic.div, numbers.convert, *_DIVISIONS,
        *ANALYTIC,
    }
) - SCANNED - _SILENT  # fmt: skip
"""Other primitives that NumPy warns about if numbers leave the range or the domain."""

_ARRAYS_ONLY: Final = frozenset({arithmetic.pow})
"""With a number, NumPy has fast paths (for squares, roots, reciprocals) that no kernel of two operands has."""

_BOTH: Final = ("float64", "float32")
SHORT_ARRAYS_ONLY: Final = {
    analytic.log2: ("float32",), analytic.log10: ("float32",), analytic.atanh: ("float32",), analytic.tan: ("float32",),
    analytic.asinh: ("float32",), analytic.acosh: ("float32",), analytic.cbrt: _BOTH, arithmetic.pow: _BOTH,
}  # fmt: skip
"""Functions for which NumPy has faster AVX-512 loops: the entry takes only short arrays there."""

CALL_BOUND_MAX_ELEMENTS: Final = 512
"""Maximum elements for which an entry is faster through its call overhead alone."""

_ONE_ANSWER: Final = frozenset(
    {
        arithmetic.add, arithmetic.sub, arithmetic.neg, arithmetic.maximum, arithmetic.minimum, arithmetic.copysign,
        arithmetic.floor, arithmetic.ceil, arithmetic.trunc, arithmetic.round, arithmetic.nextafter, numbers.conj,
        *_of(comparison, bits),
    }
)  # fmt: skip
"""Primitives for which every loop returns the same bits."""

_ONE_REAL_ANSWER: Final = _ONE_ANSWER | {
    arithmetic.mul, arithmetic.absorbing_mul, arithmetic.div, arithmetic.abs, arithmetic.sign, analytic.sqrt,
}  # fmt: skip
"""The same for real numbers; for complex ones they round several times."""

_UNCHANGED: Final = frozenset({arithmetic.floor, arithmetic.ceil, arithmetic.trunc, arithmetic.round, numbers.conj})
"""Integers pass through these unchanged, without a copy."""

_kernels: dict[tuple[Op, np.dtype[Any]], _Kernels | None] = {}
_lock = new_lock()


def entries(table: dict[Primitive, Maker]) -> dict[Primitive, Maker]:
    """Makers that put entries in front of the kernels of `table`; empty in a pure wheel.

    Without a compiler for machine code the entries of `EAGER` call the inner loops of NumPy's ufuncs.
    """
    if compiled is None:
        return {}
    if not available():
        found = {p: _maker_of_loops(p, table[p]) for p in EAGER if p in table and p not in _SPECIAL}
    else:
        found = {primitive: _maker(primitive, table[primitive]) for primitive in EAGER if primitive in table}
    if arithmetic.pow in found:
        found[arithmetic.pow] = _with_squares(found[arithmetic.pow], table[arithmetic.pow])
    if not available():
        return found
    return found | {
        primitive: _maker_of_three(primitive, table[primitive]) for primitive in TERNARY if primitive in table
    }


def _with_squares(make_power: Maker, reference: Maker) -> Maker:
    """Entries of powers that multiply an array by itself if the exponent is the number 2."""

    def make(ins: tuple[Spec, ...], outs: tuple[Spec, ...]) -> Kernel:
        power, dtype = make_power(ins, outs), ins[0].dtype
        rows = fixed_rows(arithmetic.mul, dtype) if dtype.kind in "fiu" else None
        if rows is None or not outs[0].shape or ins[1].dtype != dtype:
            return power
        run = reference(ins, outs)
        square = _fixed(rows, dtype, dtype, 2, lambda x, _: run(x, 2), dtype.kind == "f")

        def squared_or(x: Any, y: Any, *more: Any) -> Any:
            return square(x, x) if y.__class__ in _NUMBERS and y == 2 and not more else power(x, y, *more)

        return squared_or

    make.any_size = getattr(make_power, "any_size", False)  # type: ignore[attr-defined]
    return make


_NUMBERS: Final = frozenset({int, float})


def _maker_of_three(primitive: Primitive, reference: Maker) -> Maker:
    """Entries for three arrays that broadcast, or arrays and numbers; these never warn."""
    op = primitive.op()

    def make(ins: tuple[Spec, ...], outs: tuple[Spec, ...]) -> Kernel:
        run = reference(ins, outs)
        if not outs[0].shape or not available():
            return run
        dtypes = tuple([s.dtype for s in ins])
        with _lock:
            if dtypes not in _threes.setdefault(op, {}):
                _threes[op][dtypes] = Elementwise(op, dtypes)
        kernel = _threes[op][dtypes]
        return kernel.entry(_learning(kernel, run), near=UNBOUNDED)

    make.any_size = getattr(reference, "any_size", False)  # type: ignore[attr-defined]
    return make


def _learning(kernel: Elementwise, run: Kernel) -> Kernel:
    """Wrap `run` to compile the kernel for the numbers it meets among the arrays, so that it takes the next call.

    Arrays too large for entries go to the kernel itself, with numbers as 0-d arrays.
    """

    def meet(*args: Any) -> Any:
        reads = tuple([Access.UNIT if getattr(x, "ndim", 0) else Access.FIXED for x in args])
        if len(reads) == 3 and Access.UNIT in reads and Access.FIXED in reads:
            kernel.address((*reads, Access.UNIT))
            if _PLAIN.issuperset(map(type, args)) and max([getattr(x, "size", 1) for x in args]) > TERNARY_MIN_ELEMENTS:
                return kernel(*[np.asarray(x, d) for x, d in zip(args, kernel.dtypes, strict=True)])
        return run(*args)

    return meet


_PLAIN: Final = frozenset({np.ndarray, float, int})

TERNARY_MIN_ELEMENTS: Final = 1 << 17
"""Minimum elements for which an operation on three operands with numbers among them is not left to NumPy."""


def _when_called(reference: Maker, ins: tuple[Spec, ...], outs: tuple[Spec, ...]) -> Kernel:
    """The reference kernel, created when it is needed because it loads SciPy."""
    made = cache(lambda: reference(ins, outs))
    return lambda *args: made()(*args)


_threes: dict[Op, dict[tuple[np.dtype[Any], ...], Elementwise]] = {}


def _maker(primitive: Primitive, reference: Maker) -> Maker:
    def make(ins: tuple[Spec, ...], outs: tuple[Spec, ...], **params: Any) -> Kernel:
        run = _when_called(reference, ins, outs) if primitive in _SPECIAL else reference(ins, outs, **params)
        op, dtype = primitive.op(**params), ins[0].dtype
        if not outs[0].shape or any(s.dtype != dtype for s in ins):
            return run  # NumPy scalars have operators of their own
        if primitive is numbers.convert and (dtype == outs[0].dtype or (dtype.kind, outs[0].dtype.kind) == ("c", "b")):
            return run
        if primitive in _UNCHANGED and dtype.kind not in ("c" if primitive is numbers.conj else "fc"):
            return run
        rows = fixed_rows(primitive, dtype)
        if rows is not None:

            def rest(*args: Any) -> Any:
                """Takes the first call only: NumPy attributes warnings to the innermost Python frame."""
                entry: Any = fixed
                entry.fallback = entry.large = following = _generated(op, dtype, outs[0].dtype, run)
                return at_user_line(following, *args)

            fixed = _fixed(rows, dtype, outs[0].dtype, len(ins), rest, _warns(primitive, dtype)[0])
            return fixed
        kernels = _compiled(op, len(ins), dtype, outs[0].dtype)
        if kernels is None:
            return run
        if not _rounds(primitive, dtype, outs[0].dtype):
            return _entry(primitive, kernels, len(ins), dtype, outs[0].dtype, run, run)
        rest = Relayout(len(ins), dtype, run, kernels.apart)
        rest.builtin = rest if kernels.apart is None else kernels.apart.builtin(rest, *_warns(primitive, dtype))
        made = rest.entry = _entry(primitive, kernels, len(ins), dtype, outs[0].dtype, run, rest.builtin)
        return made

    make.any_size = getattr(reference, "any_size", False)  # type: ignore[attr-defined]
    return make


def _fixed(
    rows: tuple[int, int, int], dtype: np.dtype[Any], out: np.dtype[Any], nin: int, rest: Kernel, watch: bool
) -> Kernel:
    """An entry of kernels compiled ahead of time, for operands that fit the caches; `rest` takes everything else."""
    team()
    moved = nin * dtype.itemsize + out.itemsize
    near = last_level_cache() // 2 // moved
    return compiled.ElementwiseEntry(
        rows[0], (*(dtype,) * nin, out), rest, rest, array_number=rows[1], number_array=rows[2], watch=watch, most=near,
        shared=int(TEAM_MIN_NS / fixed_cost(moved)),
    )  # fmt: skip


def _generated(op: Op, dtype: np.dtype[Any], out: np.dtype[Any], run: Kernel) -> Kernel:
    """The entry of generated kernels for operands that fixed ones do not take; `run` if there are none."""
    nin = len(op.primitive.operands)
    kernels = _compiled(op, nin, dtype, out)
    return run if kernels is None else _entry(op.primitive, kernels, nin, dtype, out, run, run)


def _entry(
    primitive: Primitive,
    kernels: _Kernels,
    nin: int,
    dtype: np.dtype[Any],
    out: np.dtype[Any],
    run: Kernel,
    rest: Kernel,
) -> Kernel:
    """The entry of an op: `rest` takes the operands that its kernels do not, `run` warns."""
    team()
    usual, (watch, scan) = kernels.usual, _warns(primitive, dtype)

    def make(
        fallback: Kernel, large: Kernel, most: int = UNBOUNDED, streaming: tuple[int, int, int] = (0, 0, 0)
    ) -> Kernel:
        return compiled.ElementwiseEntry(
            usual[0], (*(dtype,) * nin, out), fallback, large, array_number=usual[1], number_array=usual[2],
            streaming=streaming, watch=watch, scan=part_size(out) if scan else 0, most=most, shared=kernels.shared,
        )  # fmt: skip

    if _short(primitive, dtype):
        return make(rest, rest, most=CALL_BOUND_MAX_ELEMENTS)  # the generic path broadcasts as well

    @cache
    def streaming() -> Kernel:
        return make(run, run, streaming=kernels.past())

    def large(*args: Any) -> Any:
        return streaming()(*args)

    near = engine().host.near_bytes // (nin * dtype.itemsize + out.itemsize)
    other = kernels.broadcast(rest, watch, scan) if nin > 1 else rest
    return make(other, large, most=near)


LOOP_NS: Final = 0.3
"""Nanoseconds per element in NumPy's loops that round once."""

LOOP_MAX_ELEMENTS: Final = 32768
"""Maximum elements for loops that round several times; they are never cut, so that the bits equal NumPy's."""


def _maker_of_loops(primitive: Primitive, reference: Maker) -> Maker:
    """Entries that call the inner loop of the ufunc of `reference`: equal bits at a fraction of its overhead."""

    def make(ins: tuple[Spec, ...], outs: tuple[Spec, ...], **params: Any) -> Kernel:
        run, dtype = reference(ins, outs, **params), ins[0].dtype
        if not isinstance(run, np.ufunc) or not outs[0].shape or any(s.dtype != dtype for s in ins):
            return run
        rows, rounds = fixed_rows(primitive, dtype), _rounds(primitive, dtype, outs[0].dtype)
        if rows is not None:
            return _fixed(rows, dtype, outs[0].dtype, len(ins), run, _warns(primitive, dtype)[0])
        most, shared = (LOOP_MAX_ELEMENTS, UNBOUNDED) if rounds else (UNBOUNDED, int(TEAM_MIN_NS / LOOP_NS))
        team()
        try:
            dtypes = (*(dtype,) * len(ins), outs[0].dtype)
            return compiled.ElementwiseEntry(0, dtypes, run, run, watch=True, most=most, shared=shared, loop=run)
        except TypeError:  # NumPy converts the operands first
            return run

    make.any_size = getattr(reference, "any_size", False)  # type: ignore[attr-defined]
    return make


def _warns(primitive: Primitive, dtype: np.dtype[Any]) -> tuple[bool, bool]:
    """Whether the processor's status flags reveal NumPy's warnings, and whether the result does."""
    watched = primitive in WATCHED and dtype.kind in ("fciu" if primitive in _DIVISIONS else "fc")
    return watched, primitive in SCANNED


def _rounds(primitive: Primitive, dtype: np.dtype[Any], out: np.dtype[Any]) -> bool:
    """Whether loops may differ in the last place, or out of range."""
    if primitive is numbers.convert:
        return is_inexact(dtype) and out.kind in "iu"
    return dtype.kind in "fc" and primitive not in (_ONE_ANSWER if dtype.kind == "c" else _ONE_REAL_ANSWER)


def _short(primitive: Primitive, dtype: np.dtype[Any]) -> bool:
    return (
        sys.platform == "linux"
        and engine().host.level == "avx512"
        and dtype.name in SHORT_ARRAYS_ONLY.get(primitive, ())
    )


class _Kernels:
    """The machine code of an op for one dtype: for two arrays, an array and a number, a number and an array."""

    def __init__(self, op: Op, nin: int, dtype: np.dtype[Any], out: np.dtype[Any], host: Host) -> None:
        self.op, self.dtypes, self.out = op, (dtype,) * nin, out
        forms = [form for form in FORMS if len(form) == nin + 1]
        self._forms = forms[:1] if op.primitive in _ARRAYS_ONLY else forms
        self.usual = self._addresses(False)
        self.cost = mapped_cost(engine(), op, self.dtypes, out)
        self.shared = int(TEAM_MIN_NS / self.cost)
        self._variants = Variants()
        for form, address in zip(self._forms, self.usual):
            self._variants.add(form, address)
        self.apart = None
        if op.primitive not in _ARRAYS_ONLY and same_lanes(self.dtypes, out, host):
            most = CALL_BOUND_MAX_ELEMENTS if _short(op.primitive, dtype) else IN_PLACE_MAX_ELEMENTS
            self.apart = StridedCode(op, self.dtypes, most)

    def past(self) -> tuple[int, int, int]:
        """The same with stores past the caches."""
        return self._addresses(True)

    def broadcast(self, run: Kernel, watch: bool, scan: bool) -> Kernel:
        """The kernels on operands of other shapes, if contiguous elements are read and written; `run` for the rest."""
        return strided(self.dtypes, self.out, self._variants, run, cost=self.cost, watch=watch, scan=scan)

    def _addresses(self, stream: bool) -> tuple[int, int, int]:
        found = [mapped(engine(), self.op, self.dtypes, self.out, form, stream=stream) for form in self._forms]
        return found[0], *(found[1:] or (0, 0))


def _has_code(op: Op, nin: int, dtype: np.dtype[Any]) -> bool:
    """Whether machine code of an op is there, or can be made."""
    if fixed_rows(op.primitive, dtype) is not None:
        return True
    with importing():
        from tenferro_cpu.native.codegen.operations._ops import supported
    return supported(op.primitive, (dtype,) * nin, engine().host)


def _compiled(op: Op, nin: int, dtype: np.dtype[Any], out: np.dtype[Any]) -> _Kernels | None:
    key = (op, dtype)
    if key in _kernels:
        return _kernels[key]
    with _lock:
        if key not in _kernels:
            _kernels[key] = None
            if available() and _has_code(op, nin, dtype):
                _kernels[key] = _Kernels(op, nin, dtype, out, engine().host)
        return _kernels[key]
