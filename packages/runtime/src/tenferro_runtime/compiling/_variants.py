"""`Variant`: the result of one trace of a compiled function, for all sizes that its guards allow."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

from tenferro_runtime.compiling._fallbacks import fallback_of
from tenferro_runtime.compiling._trace import Recorded
from tenferro_runtime.compiling._writes import Written
from tenferro_runtime.ir._bind import render_fit
from tenferro_runtime.ir._data_sizes import conditions
from tenferro_runtime.ir._program import Equation, Program
from tenferro_runtime.ir._sizes import substitute, variables
from tenferro_runtime.running._donation import Donation, giving
from tenferro_runtime.running._executables import compiler_of
from tenferro_runtime.running._execute import MAX_PREPARED_SIZES, preparing
from tenferro_runtime.running._prepared import PreparedProgram
from tenferro_runtime.running.rendering._render import blame, explain_failure
from tenferro_runtime.trees._tree import TreeDef, unflatten
from tenferro_runtime.trees._tree_code import builder, wrapped
from tenferro_tensor import Spec, Tensor
from tenferro_tensor.calls import ProgramEntry
from tenferro_tensor_core import Guard, dim
from tenferro_tensor_core.tracebacks import hide_frames

Finish = Callable[[Any], Any]


def opened(specs: Sequence[Spec]) -> tuple[list[Spec], dict[str, int]]:
    """Replace every extent by a symbolic size.

    Sizes are named by position, so that two traces of one kind of arguments share specs and plans.

    Args:
        specs: concrete specs.

    Returns:
        The symbolic specs, and the extents as examples by name.
    """
    examples: dict[str, int] = {}
    found = []
    for spec in specs:
        shape = []
        for n in spec.shape:
            name = f"n{len(examples)}"
            examples[name] = n  # type: ignore[assignment]
            shape.append(dim(name))
        found.append(spec.with_(shape=tuple(shape)))
    return found, examples


class Variant:
    """A program, the structure of its result, and the guards that decide which arguments it serves.

    Args:
        recorded: the trace.
        optimise: runs the passes.
        specs: specs of the arguments of the trace.
        outer: positions of the captured values among the differentiated and traced values that the function reads.
        kept: objects whose identity is part of the form's key.
        donation: the donated arguments.

    Attributes:
        program: the program; sizes that the trace found equal are one size.
        asked: guards of the trace in order, over the sizes of the arguments by position.
        bare: whether the result is one array.
        writes: whether the function writes to arguments.
    """

    __slots__ = ("_arrays", "_finish", "_fit", "_ready", "_specs", "asked", "bare", "donation", "fixed", "kept",
                 "outer", "program", "tree", "writes")  # fmt: skip
    asked: tuple[Guard, ...]
    bare: bool
    donation: Donation | None
    fixed: dict[int, Any]
    kept: tuple[Any, ...]
    outer: tuple[int, ...]
    program: Program
    tree: TreeDef
    writes: bool

    def __init__(
        self,
        recorded: Recorded,
        optimise: Callable[[Program], Program],
        specs: Sequence[Spec],
        outer: tuple[int, ...],
        kept: tuple[Any, ...],
        donation: Donation | None = None,
    ) -> None:
        program = recorded.program
        if recorded.equalities:
            program = substitute(program, recorded.equalities)
        self.program = optimise(program)
        self.donation = donation
        self.tree, self.fixed, self.outer, self.kept = recorded.tree, recorded.fixed, outer, kept
        later = conditions(recorded.program)
        self.asked = tuple([g for g in recorded.program.guards if g not in later])
        self.writes = self.tree.kind is Written
        self.bare = self.tree.kind is None and not self.fixed
        self._specs = tuple(specs)
        self._arrays = [i for i in range(self.tree.size) if i not in self.fixed]
        self._fit: Callable[[Any], tuple[int, ...] | None] | None = None
        self._finish: Callable[[tuple[Spec, ...]], Finish] | None = None
        self._ready: dict[tuple[int, ...], PreparedProgram] = {}

    def sizes(self, specs: Sequence[Spec]) -> tuple[int, ...] | None:
        """Values of the program's symbolic sizes for concrete arguments; ``None`` if a guard does not hold."""
        return self.fit([s.shape for s in specs])

    @property
    def fit(self) -> Callable[[Any], tuple[int, ...] | None]:
        """The function that returns these sizes for concrete shapes."""
        if self._fit is None:
            self._fit = render_fit([s.shape for s in self._specs], self.asked, variables(self.program))
        return self._fit

    def failed(self, specs: Sequence[Spec]) -> Guard | None:
        """The first guard that does not hold for concrete arguments."""
        given = opened(specs)[1]
        return next((g for g in self.asked if not _holds(g, given)), None)

    def ready(self, sizes: tuple[int, ...]) -> PreparedProgram:
        """The program prepared for sizes."""
        known = self._ready.get(sizes)
        if known is None:
            if len(self._ready) >= MAX_PREPARED_SIZES:
                self._ready.clear()
            known = self._ready[sizes] = self._made(sizes)
        return known

    def _made(self, sizes: tuple[int, ...]) -> PreparedProgram:
        plain = preparing(self.program, bare=self.bare)(sizes)
        if self.donation is None:
            return plain
        over = preparing(self.program, bare=self.bare, donated=self.donation.leaves)(sizes)
        foreign = compiler_of(self.program) is not None
        run = giving(self.donation, over.run, plain.run, foreign=foreign)
        return over._replace(run=run, direct=None)

    def hit(self, made: PreparedProgram, specs: tuple[Spec, ...], fresh: Callable[[], bool] | None) -> ProgramEntry:
        """The entry for calls with concrete arguments of given specs.

        Args:
            made: the program prepared for the arguments.
            specs: specs of the arguments.
            fresh: returns whether the data that the function reads are up to date; ``None`` if it reads none.
        """
        run, values, outputs, direct = made
        bare = self.bare and not outputs[0].symbolic
        step, order, extras = None, b"", ()
        failed: Callable[[BaseException], bool] = _explain
        if direct is not None and bare:
            step, order, extras = direct.kernel, direct.order, direct.extras
            failed = partial(_explain_step, direct.equation)
        if self.donation is not None:  # the arguments cannot be used again
            failed = partial(_explain_only, failed)
        out = outputs[0] if bare else None
        return ProgramEntry((0, *specs), run, out, values, self.finish(outputs), fresh, failed, step, order, extras)

    def finish(self, specs: tuple[Spec, ...]) -> Finish:
        """The function that builds the result from raw outputs."""
        if self.bare:
            (spec,) = specs
            return partial(wrapped if spec.symbolic else Tensor.wrap, spec=spec)
        if self._finish is None:
            self._finish = builder(self.tree, self.fixed, tuple([spec.symbolic for spec in specs]))
        return self._finish(specs)

    def result(self, values: Iterable[Any]) -> Any:
        """Build the result from outputs of any level."""
        if not self.fixed:
            return unflatten(self.tree, tuple(values))
        leaves = [self.fixed.get(i) for i in range(self.tree.size)]
        for i, value in zip(self._arrays, values, strict=True):
            leaves[i] = value
        return unflatten(self.tree, leaves)


def _explain(error: BaseException) -> bool:
    explain_failure(error)
    hide_frames(error)
    return fallback_of(error) is not None


def _explain_step(equation: Equation, error: BaseException) -> bool:
    explain_failure(error)
    blame(error, equation)
    hide_frames(error)
    return fallback_of(error) is not None


def _explain_only(failed: Callable[[BaseException], bool], error: BaseException) -> bool:
    failed(error)
    return False


def _holds(guard: Guard, sizes: dict[str, int]) -> bool:
    try:
        return guard.holds(sizes)
    except ArithmeticError:
        return False
