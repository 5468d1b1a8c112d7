"""Running programs on values: the rendered form on concrete tensors, one `call` on anything else."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from contextvars import ContextVar
from functools import partial
from typing import Any, Final

import numpy as np

from tenferro_runtime._caches import BoundedCache
from tenferro_runtime._counters import COUNTERS
from tenferro_runtime._native_forms import native_forms
from tenferro_runtime.ir._call import call, instance, require_fit, sizes_for
from tenferro_runtime.ir._data_sizes import definitions
from tenferro_runtime.ir._interpret import interpret
from tenferro_runtime.ir._program import Program, ProgramError
from tenferro_runtime.ir._sizes import named, sizes_of
from tenferro_runtime.passes.identities import remove_identities
from tenferro_runtime.running._executables import compiled_form
from tenferro_runtime.running._prepared import Prepare, PreparedProgram
from tenferro_runtime.running.rendering._overwriting import EXACT, OVERWRITING
from tenferro_runtime.running.rendering._render import Rendered, explain_failure, render, render_open
from tenferro_runtime.running.rendering._updates_last import updates_last
from tenferro_runtime.runtime import how_of, optimised_like, promised_like
from tenferro_runtime.tracing._traced import is_traced
from tenferro_runtime.tracing.expanding import expand
from tenferro_runtime.trees._tree_code import wrapped
from tenferro_tensor import (
    HOST,
    REGISTRY,
    SCALARS,
    Array,
    ComputeDevice,
    Primitive,
    Spec,
    Tensor,
    catalog,
    dispatch,
    get_backend,
)
from tenferro_tensor.calls import state
from tenferro_tensor.dispatch import scoped_device
from tenferro_tensor.entries import device_of
from tenferro_tensor_core import Dim, DimLike, InconclusiveDimError
from tenferro_tensor_core.forks import importing

HOST_ARRAYS: Final = (np.ndarray, np.generic)

MAX_PREPARED_SIZES: Final = 256
"""Number of combinations of sizes for which a program stays prepared."""


def lowered(program: Program) -> Program:
    """The program as its steps run, with its parts as steps; compilers of whole programs receive it unsplit."""
    found: Program | None = program.memo.get("lowered")
    if found is None:
        how = how_of(program)
        found = remove_identities(expanded(program))
        if how.fusion and not _has_native_form(program):
            with importing():
                from tenferro_runtime.running.fusion import parts
            found = parts(promised_like(found, program), _has_native_form)
        found = updates_last(found) if how.overwriting else found
        found.memo[OVERWRITING], found.memo[EXACT] = how.overwriting, how.exact
        program.memo["lowered"] = found
    return found


def _has_native_form(program: Program) -> bool:
    return any(forms.serves(program) for forms in native_forms())


def expanded(program: Program) -> Program:
    """The program with operations replaced by their expansions, after the passes."""
    found = expand(program)
    return program if found is program else optimised_like(found, program)


WATCH: Final[ContextVar[Callable[[Program], Callable[..., tuple[Any, ...]]] | None]] = ContextVar(
    "what runs programs without symbolic sizes in their place, for kernels that are made meanwhile", default=None
)


def executable(program: Program) -> Callable[..., tuple[Any, ...]]:
    """A program without symbolic sizes as a function of raw arrays, in its fastest form."""
    form = (
        None if WATCH.get() is not None else compiled_form(program, False, (), by_steps) or _native_form(program, False)
    )
    if form is None:
        return by_steps(program)
    run, sizes, _, _ = form(())
    return lambda *raws: run(sizes, *raws)


def by_steps(program: Program, donated: tuple[int, ...] = ()) -> Callable[..., tuple[Any, ...]]:
    """A program without symbolic sizes rendered over raw arrays; cached for each device of a scope.

    Args:
        program: the program.
        donated: positions of inputs that may be overwritten if they are contiguous and writable.
    """
    watch = WATCH.get()
    if watch is not None:
        return watch(program)
    key = ("raw", donated, scoped_device())
    found: Callable[..., tuple[Any, ...]] | None = program.memo.get(key)
    if found is None:
        planned = _planned(program)
        if planned is not None:
            found = planned(())
        else:
            home = device_of_program(program)
            # Rendered first, because errors of rendering name the steps.
            found = get_backend(home.kind).replayed(render(lowered(program), "raw", donated=donated), 0, home)
        program.memo[key] = found
    return found


def _native_form(program: Program, bare: bool, donated: tuple[int, ...] = ()) -> Prepare | None:
    device = device_of_program(program)
    if scoped_device() not in (None, device) or _planned(program) is not None:
        return None
    if device != HOST.device and device.memory_space is HOST.memory_space:
        return None  # a pool of threads
    form = next((forms.form for forms in native_forms() if forms.serves(program)), None)
    return None if form is None else form(program, bare, lambda: _steps(program, bare, donated), donated)


def _planned(program: Program) -> Callable[[tuple[Any, ...]], Callable[..., tuple[Any, ...]]] | None:
    """For a program that runs by a plan: prepares it over raw arrays for given sizes.

    Programs of the calling thread are recognised here, without the modules that plan.
    """
    if how_of(program).placement is None and scoped_device() is None:
        if all(spec.place is HOST for spec in lowered(program).specs.values()):
            return None
    return program.planned()


def device_of_program(program: Program) -> ComputeDevice:
    """The device of a whole program: that of its steps if they agree, else that of its first value."""
    place = next((s.place for s in (*program.inputs, *program.outputs)), HOST)
    found = {
        device_of(eq.op, [program.specs[v] for v in eq.variables])
        for eq in program.equations
        if eq.variables and eq.op.primitive is not catalog.transfer
    }
    return found.pop() if len(found) == 1 else place.device


def replay(program: Program, *, bare: bool = False, donated: tuple[int, ...] = ()) -> Rendered:
    """A program rendered for all sizes; cached for each device of a scope."""
    key = ("replay", bare, donated, scoped_device())
    found: Rendered | None = program.memo.get(key)
    if found is None:
        found = program.memo[key] = render_open(lowered(program), bare=bare, donated=donated)
    return found


def preparing(program: Program, *, bare: bool = False, donated: tuple[int, ...] = ()) -> Prepare:
    """The function that prepares a program for sizes; cached for each device of a scope.

    Args:
        program: a program, with or without symbolic sizes.
        bare: let `run` return the only output itself instead of a tuple.
        donated: positions of inputs that may be overwritten if they are contiguous and writable.
    """
    key = ("preparing", bare, donated, scoped_device())
    found: Prepare | None = program.memo.get(key)
    if found is None:
        compiled = compiled_form(program, bare, donated, by_steps)
        planned = None if compiled else _planned(program)
        if planned is not None:
            found = _prepared(program, planned, bare)
        else:
            found = compiled or _native_form(program, bare, donated) or _steps(program, bare, donated)
        program.memo[key] = found
    return found


def _steps(program: Program, bare: bool, donated: tuple[int, ...]) -> Prepare:
    """Prepares the steps of a program."""
    run, bind, direct = replay(program, bare=bare, donated=donated)
    home = device_of_program(program)
    replayed = get_backend(home.kind).replayed

    def prepare(sizes: tuple[int, ...]) -> PreparedProgram:
        COUNTERS.binds += 1
        values, outputs, largest = bind(*sizes)
        chosen = replayed(run, largest, home)
        return PreparedProgram(chosen, values, outputs, direct if chosen is run else None)

    return prepare


def ready(program: Program, sizes: tuple[int, ...]) -> PreparedProgram:
    """The program prepared for values of its symbolic sizes."""
    return preparing(program)(sizes)


def _prepared(program: Program, planned: Callable[..., Any], bare: bool) -> Prepare:
    """As `preparing`, for a program that runs by a plan for each combination of sizes."""

    def prepare(sizes: tuple[int, ...]) -> PreparedProgram:
        COUNTERS.binds += 1
        run = planned(sizes)
        outputs = instance(program, sizes).outputs if sizes else program.outputs
        return PreparedProgram(
            (lambda _, *raws: run(*raws)[0]) if bare else (lambda _, *raws: run(*raws)), (), outputs, None
        )

    return prepare


def run(program: Program, values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Run a program on values of any level; host arrays and numbers become concrete tensors.

    Args:
        program: the program.
        values: one value for each input.

    Returns:
        The outputs.
    """
    given = tuple([Primitive.adopt(v) if v.__class__ in SCALARS or isinstance(v, HOST_ARRAYS) else v for v in values])
    for i, v in enumerate(given):
        if not isinstance(v, Array):
            raise ProgramError(
                f"a program runs on arrays and numbers, but value {i} is a {type(v).__name__}; pass its leaves one "
                "by one, or call a compiled function, which takes containers"
            )
    specs = tuple([v.spec for v in given])
    require_fit(program, specs)
    if state.open_scopes and dispatch.recorder() is not None:  # it is notified of each operation
        return interpret(program, given, named(program, sizes_for(program, specs)))
    if not all(v.__class__ is Tensor for v in given):
        sizes = sizes_for(program, specs)
        if definitions(program):
            with suppress(InconclusiveDimError):  # a rule needs a concrete size, which the steps have
                if not any(map(is_traced, given)):
                    return call(*given, program=program, sizes=sizes)  # type: ignore[no-any-return]
            return interpret(program, given, named(program, sizes))
        return call(*given, program=program, sizes=sizes)  # type: ignore[no-any-return]
    if not program.symbolic and not definitions(program):
        return _run(executable(program), [t._data for t in given], program.outputs)
    cache = program.memo.get("bound")
    if cache is None:
        cache = program.memo.setdefault("bound", BoundedCache(f"sizes of {program!r}", MAX_PREPARED_SIZES))
    key = (scoped_device(), *specs)
    found: PreparedProgram = cache.get_or_make(key, lambda: ready(program, sizes_of(program, specs)))  # type: ignore[arg-type]
    return _run(partial(found.run, found.values), [t._data for t in given], found.outputs)


def _run(function: Callable[..., tuple[Any, ...]], raws: list[Any], specs: tuple[Spec, ...]) -> tuple[Tensor, ...]:
    try:
        outs = function(*raws)
    except Exception as error:
        explain_failure(error)
        raise
    return tuple([wrapped(raw, spec) for raw, spec in zip(outs, specs, strict=True)])


def call_kernel(
    ins: tuple[Spec, ...], outs: tuple[Spec, ...], *, program: Program, sizes: tuple[DimLike, ...]
) -> Callable[..., Any]:
    """The kernel of `call`, and of other primitives that run a program.

    Args:
        ins: specs of the operands.
        outs: specs of the outputs.
        program: the program.
        sizes: values of its symbolic sizes.

    Returns:
        A function of raw arrays; for symbolic specs, of raw arrays and the values of the sizes.
    """
    if not program.symbolic:
        return executable(program)
    if any(isinstance(n, Dim) for n in sizes):
        return _OfSizes(program)
    known: Any = sizes or sizes_of(program, ins)
    if WATCH.get() is not None:
        return executable(instance(program, known))
    found = ready(program, known)
    return partial(found.run, found.values)


class _OfSizes:
    """A program as a function of raw arrays and the values of its sizes."""

    def __init__(self, program: Program) -> None:
        self.prepare = preparing(program)
        self.known: dict[tuple[int, ...], PreparedProgram] = {}

    def __call__(self, *raws_and_sizes: Any) -> Any:
        *raws, sizes = raws_and_sizes
        found = self.known.get(sizes)
        if found is None:
            if len(self.known) >= MAX_PREPARED_SIZES:
                self.known.clear()
            found = self.known[sizes] = self.prepare(sizes)
        return found.run(found.values, *raws)


def _sizes_of_call(
    ins: tuple[Spec, ...], outs: tuple[Spec, ...], *, program: Program, sizes: tuple[DimLike, ...]
) -> tuple[tuple[DimLike, ...]] | None:
    """The sizes that a call of a program takes as trailing argument; see `KernelMaker`."""
    return (sizes,) if any(isinstance(n, Dim) for n in sizes) else None


call_kernel.sizes = _sizes_of_call  # type: ignore[attr-defined]

REGISTRY.kernel(call, "*", call_kernel)
