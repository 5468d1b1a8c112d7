"""`checkpoint`: a function whose intermediate values are recomputed in the backward pass instead of saved."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, ParamSpec, TypeVar

from tenferro_ad._backward import backward_pass
from tenferro_ad._call import Sizes, pull_second, push_call, run_first
from tenferro_ad._differentiated import Differentiated
from tenferro_ad._dual import JVP_RULES
from tenferro_ad._eager import EagerTensor, watched, wrap, wrap_many
from tenferro_ad._node import make_node
from tenferro_ad._partition import split_reverse
from tenferro_ad._record import RECORDERS
from tenferro_ad._saving import Policy, kept_values, marked, named, saved
from tenferro_ad._zeros import full
from tenferro_runtime.batching import calling
from tenferro_runtime.compiling import CacheInfo, Compiled, in_open_trace
from tenferro_runtime.extension import (
    REGISTRY,
    ArgumentError,
    Builder,
    Equation,
    Program,
    TracedTensor,
    call,
    interpret,
    optimise,
)
from tenferro_runtime.ir import (
    ProgramPrimitive,
    called,
    chosen,
    definitions,
    filled,
    instance,
    kept,
    sizes_for,
    substitute,
    without_effects,
)
from tenferro_runtime.ir import named as named_sizes
from tenferro_runtime.running import call_kernel
from tenferro_runtime.tracing.derived import derived
from tenferro_runtime.tracing.expanding import specs_of
from tenferro_tensor import Op, Spec, next_level
from tenferro_tensor.calls import Node
from tenferro_tensor_core import DimLike, decisions

if TYPE_CHECKING:
    from tenferro_runtime.lowering import Step


def _infer(*xs: Spec, program: Program, sizes: tuple[DimLike, ...] = ()) -> tuple[Spec, ...]:
    """Apply a program to operands; its backward pass recomputes the values."""
    return called(*xs, program=program, sizes=sizes)


class _LateOp(Op):
    """The op of a program with data-dependent sizes, which has no output spec.

    Only `_record` and `push_call` see it; on values that are not differentiated it runs its program step by step.
    """

    __slots__ = ()

    def __call__(self, *args: Any) -> Any:
        if isinstance(max(args, key=lambda a: a.level, default=None), Differentiated):
            return super().__call__(*args)
        return self.params["program"].run(*args)


class _Checkpointed(ProgramPrimitive):
    def op(self, **params: Any) -> Op:
        program = params.get("program")
        if not isinstance(program, Program) or not definitions(program):
            return super().op(**params)
        key = ("late", params["sizes"])
        found: Op | None = program.memo.get(key)
        return program.memo.setdefault(key, _LateOp(self, params)) if found is None else found


_infer.__name__ = "checkpointed"
checkpointed = _Checkpointed(_infer, family="tenferro-ad.checkpointed.v1")


class _Recomputed(NamedTuple):
    """The backward program of a checkpoint: from operands, saved values and cotangents to cotangents.

    Attributes:
        program: reruns the function, then runs the backward pass.
        active: which outputs of the function carry a derivative.
        places: index of each output of `program` among the cotangents; the others are zero.
    """

    program: Program
    active: tuple[bool, ...]
    places: tuple[int, ...]


def _recomputing(need: tuple[int, ...], program: Program, builder: Builder) -> _Recomputed:
    level = next_level()
    xs = [builder.input(s) for s in program.inputs]
    kept = [builder.input(program.specs[v]) for v in kept_values(program)]
    ins: list[Any] = [watched(x, level) if i in need else x for i, x in enumerate(xs)]
    outs, stands_for = _with_kept(without_effects(program), ins, kept, level)
    active = tuple([o.__class__ is EagerTensor and o.level == level for o in outs])
    reached = backward_pass([(o.node, builder.input(o.spec)) for o, there in zip(outs, active) if there])
    pulled = [reached.get(ins[i].node) for i in need]
    places = tuple([k for k, c in enumerate(pulled) if c is not None])
    back = builder.close([pulled[k] for k in places], examples=program.examples)
    return _Recomputed(optimise(_reading(back, stands_for)), active, places)


def _with_kept(
    program: Program, values: list[Any], kept: list[Any], level: int
) -> tuple[tuple[Any, ...], dict[int, int]]:
    """Run a program with its saved values given: the outputs, and the saved variable for each recomputed one."""
    given, stands_for, unnamed = iter(kept), dict[int, int](), dict[int, list[Any]]()

    def apply(eq: Equation, operands: list[Any]) -> Any:
        if eq.op.primitive is named:
            unnamed[eq.results[0]] = operands
        if eq.op.primitive is not saved:
            return eq.op(*operands)
        (y,), (v,), x = operands, eq.variables, next(given)
        for same in [y, *unnamed.get(v, ())]:
            inside = same.value if same.__class__ is EagerTensor and same.level == level else same
            if inside.__class__ is TracedTensor and inside.home is x.home:
                stands_for[inside.id] = x.id
        return wrap(x, level, y.node) if y.__class__ is EagerTensor and y.level == level else x

    return interpret(program, values, apply=apply), stands_for


def _reading(program: Program, stands_for: Mapping[int, int]) -> Program:
    """The program with reads of some variables redirected to others."""
    stands_for = {v: x for v, x in stands_for.items() if v not in program.input_ids}
    if not stands_for:
        return program
    read = lambda v: stands_for.get(v, v) if isinstance(v, int) else v
    equations = [Equation(eq.op, tuple(map(read, eq.operands)), eq.results, eq.source) for eq in program.equations]
    return program.with_(equations=tuple(equations), output_ids=tuple(map(read, program.output_ids)))


def _unified(found: _Recomputed, equalities: Mapping[str, DimLike]) -> _Recomputed:
    return found._replace(program=substitute(found.program, equalities))


def _record(op: Op, level: int, lower: list[Any], need: tuple[int, ...], parents: tuple[Node, ...]) -> Any:
    program = op.params["program"]
    sizes = named_sizes(program, sizes_for(program, [x.spec for x in lower], op.params["sizes"]))
    if definitions(program):
        return _record_late(op, sizes, level, lower, need, parents)
    back, active, places = derived(program, ("recompute", need), sizes, partial(_recomputing, need), _unified)
    kept = kept_values(program)
    found = checkpointed(*lower, program=_with_outputs(program, kept), sizes=op.params["sizes"])
    outs, values = found[: len(active)], found[len(active) :]
    specs = [s.with_(shape=filled(s.shape, sizes)) for s in back.inputs[len(lower) + len(kept) :]]

    def pull(gs: list[Any], saved: tuple[Any, ...]) -> list[Any]:
        those = [g for g, there in zip(gs, active) if there]
        cotangents = [full(s, 0) if g is None else g for g, s in zip(those, specs)]
        found = call(*saved, *cotangents, program=back, sizes=chosen(back, sizes))
        results: list[Any] = [None] * len(need)
        for k, c in zip(places, found):
            results[k] = c
        return results

    pull.op = op  # type: ignore[attr-defined]
    wrapped = wrap_many(outs, level, make_node(pull, parents, (*lower, *values)))
    return tuple([w if there else z for w, z, there in zip(wrapped, outs, active)])


@kept
def _with_outputs(program: Program, more: tuple[int, ...]) -> Program:
    """The program with further outputs."""
    return program.with_(output_ids=(*program.output_ids, *more)) if more else program


def _record_late(
    op: Op, sizes: Sizes, level: int, lower: list[Any], need: tuple[int, ...], parents: tuple[Node, ...]
) -> Any:
    """`_record` for data-dependent sizes: the backward pass first reruns the forward part to find them."""
    split = split_reverse(without_effects(op.params["program"]), need, sizes)
    outs = op(*lower)
    if not any(split.active):
        return outs

    def pull(gs: list[Any], saved: tuple[Any, ...]) -> list[Any]:
        _, residuals, known = run_first(split, list(saved), sizes)
        return pull_second(split, gs, residuals, len(need), known)

    pull.op = op  # type: ignore[attr-defined]
    wrapped = wrap_many(outs, level, make_node(pull, parents, tuple(lower)))
    return tuple([w if there else z for w, z, there in zip(wrapped, outs, split.active)])


def _loop_nests(step: Step) -> Sequence[Any]:
    """Inline the program inside a loop, where the rerun is in another loop and shares no values with it."""
    if step.w.statements is step.w.function:
        raise step.unsupported("outside loops, running step by step takes less memory")
    params, specs = step.params, specs_of(step.body.program.specs, step.eq)
    inner = params["program"]
    inner = instance(inner, sizes_for(inner, specs, params["sizes"]))
    operands = [step.operand(k, s.dtype) for k, s in enumerate(inner.inputs)]
    return step.lowering.run(optimise(inner), operands)


def _lowering(e: Any, xs: Sequence[Any], outs: Sequence[Spec], *, program: Program, sizes: Any) -> Sequence[Any]:
    """Inline the program behind an optimization barrier, without which XLA would merge the rerun with the first run."""
    specs = [x.spec for x in xs]
    fixed = instance(program, sizes_for(program, specs, sizes))
    return e.inline(fixed, e.ops("optimization_barrier", xs, specs) if xs else xs)  # type: ignore[no-any-return]


REGISTRY.kernel(checkpointed, "*", call_kernel)
REGISTRY.lowering(checkpointed, _lowering)
REGISTRY.loops(checkpointed, _loop_nests)
RECORDERS[checkpointed] = _record
JVP_RULES[checkpointed] = push_call
REGISTRY.batching(checkpointed, calling(checkpointed))


class _Function(Compiled):
    """A compiled function that is called as one checkpointed operation.

    Attributes:
        policy: selects the values to save; ``None`` saves none.
    """

    def __init__(self, f: Callable[..., Any], policy: Policy | None) -> None:
        super().__init__(f, (), ())
        self.policy = policy

    def __call__(self, values: tuple[Any, ...]) -> Any:
        dynamic, static = self.signature.split(values)
        going_on = decisions() if in_open_trace() else None
        before = [(x, x.state()) for x in (going_on, getattr(going_on, "home", None)) if x is not None]
        leaves, treedef, constants = self.flattened(dynamic)
        found = self.find(static, leaves, treedef, constants)
        form = found.form
        if before and definitions(form.program):  # data-dependent sizes belong to the enclosing trace
            for x, state in before:
                x.restore(state)
            return self._called(dynamic, static)
        program = form.program if self.policy is None else marked(form.program, self.policy)
        result = form.result(checkpointed(*found.leaves, *found.captured, program=program, sizes=found.sizes))
        return result.handed_over(leaves) if form.writes else result


P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


if TYPE_CHECKING:

    class Checkpointed(ABC, Generic[P, R_co]):
        """A function that `checkpoint` returned."""

        @abstractmethod
        def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co:
            """Run the function."""

        @abstractmethod
        def cache_info(self) -> CacheInfo:
            """The number of traces and cached programs, and the reason of each trace."""

        @abstractmethod
        def clear(self) -> None:
            """Drop all programs."""


def checkpoint(f: Callable[P, R], *, policy: Policy | None = None) -> Checkpointed[P, R]:
    """Wrap a function so that the backward pass recomputes its intermediate values instead of saving them.

    Trades the memory of the intermediate values for a second run. The function is traced as by `compile`, once for
    each kind of arguments, so it cannot branch on elements. Inside another trace, a function with data-dependent
    sizes is inlined into that trace and saves what it would save there.

    Args:
        f: a function of pytrees of arrays to a pytree of arrays.
        policy: selects values to save in addition to the arguments: one of `checkpoint_policies`, or a function of an
            operation to a boolean. By default none.

    Returns:
        A function with the arguments and the value of `f`, and with the methods ``cache_info()`` and ``clear()``.

    Raises:
        ArgumentError: `policy` is not callable.

    See also:
        checkpoint_name: names a value for the policies `save_names` and `save_all_names_but`.

    >>> from tenferro_ad import checkpoint, grad
    >>> block = checkpoint(lambda x: (x * x) * (x * x))
    >>> grad(block)(2.0)
    Tensor(32.)
    """
    if policy is not None and not callable(policy):
        raise ArgumentError(
            f"checkpoint takes a function of an operation as its policy, got {policy!r}; see checkpoint_policies"
        )
    state = _Function(f, policy)
    entry: Any = state.entry
    entry.cache_info, entry.clear = state.info, state.clear
    return entry  # type: ignore[no-any-return]
