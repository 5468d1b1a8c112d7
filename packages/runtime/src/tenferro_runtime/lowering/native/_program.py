"""`TieredProgram`: a program that runs step by step at first, and as one native function when that is compiled."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from tenferro_runtime._native_forms import NativeForms
from tenferro_runtime.ir._call import PART
from tenferro_runtime.ir._data_sizes import definitions
from tenferro_runtime.ir._kept import kept
from tenferro_runtime.ir._program import Program
from tenferro_runtime.ir._sizes import OPEN, filled, variables
from tenferro_runtime.lowering.native._cost import gains, is_worth_waiting
from tenferro_runtime.running._execute import (
    MAX_PREPARED_SIZES,
    device_of_program,
    lowered,
)
from tenferro_runtime.running._prepared import Prepare, PreparedProgram
from tenferro_runtime.running.fusion._bits import keeps_bits
from tenferro_runtime.running.rendering._tiers import Tiered
from tenferro_runtime.runtime import how_of
from tenferro_tensor import Spec, get_backend
from tenferro_tensor.backends import Backend, NativeProgram, is_available
from tenferro_tensor.results import Maker, Results, foreign, owner_of, reading
from tenferro_tensor_core import TenferroError, evaluate
from tenferro_tensor_core.forks import cached_property, importing

if TYPE_CHECKING:
    from tenferro_tensor.loop_ir import LoopFunction

FORM: Final = "native"
"""Key of a program's memo: its forms, by form of the result and donated inputs."""


class TieredProgram(Tiered):
    """A program as a function of values of its sizes, then of raw arrays.

    If a run step by step would take long, the first call waits for the compiler.

    Args:
        program: the program.
        bare: return the only output itself instead of a tuple.
        steps: makes the function that prepares the program step by step.
        donated: positions of inputs that may be overwritten if they are contiguous and writable.
        general: whether the native function must serve all sizes that the program accepts. One that may refuse sizes
            unlike the first ones is half the code, and compiled in half the time.

    Attributes:
        native: the native function, once it is compiled.
        why: why there is no native function, or an empty string.
    """

    def __init__(
        self,
        program: Program,
        bare: bool,
        steps: Callable[[], Prepare],
        donated: tuple[int, ...] = (),
        *,
        general: bool = False,
    ) -> None:
        super().__init__(self._by_steps, self._compiled)
        self.program, self.bare, self._make, self.donated, self.general = program, bare, steps, donated, general
        self.native: NativeProgram | None = None
        self.why = ""
        self._waits: dict[tuple[int, ...], bool] = {}
        self._ready: dict[tuple[int, ...], PreparedProgram] = {}

    def prepare(self, sizes: tuple[int, ...]) -> PreparedProgram:
        """Prepare the program for sizes without running it."""
        return PreparedProgram(self, sizes, self._outputs(sizes), None)

    def _outputs(self, sizes: tuple[int, ...]) -> tuple[Spec, ...]:
        if not sizes:
            return self.program.outputs
        known = self._named(sizes)
        return tuple([s.with_(shape=filled(s.shape, known)) for s in self.program.outputs])

    def _named(self, sizes: tuple[int, ...]) -> dict[str, int]:
        return dict(zip(variables(self.program), sizes, strict=True))

    @cached_property
    def _prepare(self) -> Prepare:
        return self._make()

    def _by_steps(self, sizes: tuple[int, ...], *raws: Any) -> Any:
        if self.state in ("waiting", "queued") and self._is_worth_waiting(sizes):
            self.build()
            return self.run(sizes, *raws)
        return self._stepwise(sizes, *raws)

    def _stepwise(self, sizes: tuple[int, ...], *raws: Any) -> Any:
        ready = self._ready.get(sizes)
        if ready is None:
            if len(self._ready) >= MAX_PREPARED_SIZES:
                self._ready.clear()
            ready = self._ready[sizes] = self._prepare(sizes)
        return ready.run(ready.values, *raws)

    @cached_property
    def _everywhere(self) -> TieredProgram:
        """The form for all sizes."""
        return TieredProgram(self.program, self.bare, self._make, self.donated, general=True)

    def _refused_sizes(self, sizes: tuple[int, ...], *raws: Any) -> Any:
        """Serve sizes that the native function refuses."""
        if self.general or not self._function.accepts(self._named(sizes)):
            return self._stepwise(sizes, *raws)
        return self._everywhere.run(sizes, *raws)

    def _is_worth_waiting(self, sizes: tuple[int, ...]) -> bool:
        found = self._waits.get(sizes)
        if found is None:
            if len(self._waits) >= MAX_PREPARED_SIZES:
                self._waits.clear()
            found = self._waits[sizes] = is_worth_waiting(lowered(self.program), self._named(sizes))
        return found

    def _compiled(self) -> Callable[..., Any] | None:
        try:
            function = _lowered(self.program, self.donated)
            if self.general:
                function = replace(function, examples={})
            self._function, backend = function, get_backend(_kind(self.program))
            self.native = backend.whole(function, bare=self.bare, otherwise=self._refused_sizes)
            if self.native is not None:
                return self._in_rows(self._checked(backend, self.native.run))
            self.why = "there is no machine code of programs here"
        except TenferroError as error:
            self.why = str(error)
        except Exception as error:  # the steps run instead, whatever failed
            self.why = f"{type(error).__name__}: {error}"
            with importing():
                import logging
            log = logging.getLogger("tenferro")
            log.warning("a program was not compiled as a whole; it runs step by step: %s", self.why)
            log.debug("the failure of the compiler", exc_info=True)
        return None

    def _checked(self, backend: Backend, run: Callable[..., Any]) -> Callable[..., Any]:
        """The native function; that of a third party's backend cannot write to operands, and its results are checked.

        The function takes the values of the sizes before the operands.
        """
        if not foreign(backend):
            return run
        owner = owner_of(backend)
        maker = Maker(f"the native program of {owner}", "its outputs are", lambda: f"correct {owner}", {})
        results = Results(maker, self.program.inputs, self.program.outputs, not self.bare)
        run = reading(run, [i + 1 for i in self.donated])
        return lambda sizes, *raws: results.held(run(sizes, *raws), raws, [s.shape for s in self._outputs(sizes)])

    def _in_rows(self, run: Callable[..., Any]) -> Callable[..., Any]:
        """For a part of a deterministic program: the native function for operands whose steps have row-major results.

        Other steps of the program may round by the layout of what they read.
        """
        if PART not in self.program.memo or not how_of(self.program).exact:
            return run

        def in_rows(sizes: tuple[int, ...], *raws: Any) -> Any:
            for raw in raws:
                if not raw.flags.c_contiguous and not _is_in_rows(raw):
                    return self._stepwise(sizes, *raws)
            return run(sizes, *raws)

        return in_rows


def _is_in_rows(raw: Any) -> bool:
    """Whether an array that is not contiguous is laid out in axis order, with neighbours of the last axis closest."""
    steps = [s for n, s in zip(raw.shape, raw.strides) if n > 1]
    return steps[-1] > 0 and all(a >= b for a, b in pairwise(steps))


@kept
def _serves(program: Program) -> bool:
    """Whether a program has a native form; see `NativeForms`."""
    return gains(program) and not _refused(program)


def _form(program: Program, bare: bool, steps: Callable[[], Prepare], donated: tuple[int, ...]) -> Prepare:
    """The function that prepares a program; see `NativeForms`."""
    donated = _given(program, donated)
    forms = program.memo.setdefault(FORM, {})
    key = bare, donated
    found: TieredProgram | None = forms.get(key)
    if found is None:
        found = forms.setdefault(key, TieredProgram(program, bare, steps, donated))
    return found.prepare


def _given(program: Program, donated: tuple[int, ...]) -> tuple[int, ...]:
    """The donated inputs that a native function may overwrite."""
    return donated if how_of(program).overwriting and _kind(program) == "cpu" else ()


def _kind(program: Program) -> str:
    """The kind of the device that a program runs on."""
    return device_of_program(program).kind


def _refused(program: Program) -> str:
    """Why a program cannot be compiled as a whole, independent of its steps; empty if it can."""
    if len({spec.place for spec in program.specs.values()}) > 1:
        return "its values are in several memories"
    kind = _kind(program)
    if not is_available(kind) or not get_backend(kind).compiles_wholes():
        return "there is no machine code of programs here"
    if definitions(program):
        return "it has sizes that depend on data"
    if how_of(program).exact and not keeps_bits(program):
        return "it must preserve the bits of single steps, and some of its steps depend on the order of rounding"
    return ""


def _forms(program: Program) -> Iterator[TieredProgram]:
    """The forms of a program, and of the symbolic program that it is an instance of."""
    while True:
        yield from program.memo.get(FORM, {}).values()
        if OPEN not in program.memo:
            return
        program, _ = program.memo[OPEN]


def how(program: Program) -> str:
    """Describe how a program runs that gains by being compiled as a whole.

    Args:
        program: the program.

    Returns:
        The description; empty for all other programs.
    """
    if not gains(program):
        return ""
    forms = [*_forms(program)]
    if any(form.native is not None for form in forms):
        return "runs as one native function"
    why = next((form.why for form in forms if form.why), "") or _refused(_opened(program))
    if why:
        return f"runs step by step: {why}"
    if any(form.state == "queued" for form in forms):
        return "runs step by step while its native function is being compiled"
    return "runs step by step at first, and as one native function when that is compiled"


def _opened(program: Program) -> Program:
    """The symbolic program that a program is an instance of."""
    while OPEN in program.memo:
        program, _ = program.memo[OPEN]
    return program


def memory(program: Program, donated: tuple[int, ...] = ()) -> int | None:
    """Bytes that a run needs in addition to inputs and constants, if the program has or will have a native form.

    Args:
        program: a program without symbolic sizes.
        donated: positions of donated inputs.

    Returns:
        Bytes, or ``None``.
    """
    sizes: Mapping[str, Any] = {}
    if FORM not in program.memo and FORM in (above := program.memo.get(OPEN, (program, {})))[0].memo:
        program, sizes = above  # as it was compiled
    if not _serves(program):
        return None
    try:
        function = _lowered(program, _given(program, donated))
    except Exception:  # reported when the program is compiled
        return None
    fresh = [math.prod((b.dtype.itemsize, *b.shape)) for b in function.outputs if b not in function.inputs]
    with importing():
        from tenferro_tensor.loop_ir import plan_arena

    return sum([evaluate(n, sizes) for n in (*plan_arena(function).slots, *fresh)])


def _lowered(program: Program, donated: tuple[int, ...]) -> LoopFunction:
    with importing():
        from tenferro_runtime.lowering import lower
    return lower(program, donated, kind=_kind(program))


FORMS: Final = NativeForms(_serves, _form)
"""Registered when the first program is prepared."""
