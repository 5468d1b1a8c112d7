"""`checkpoint`: a function whose intermediate values are not kept for the sweep, but computed again in it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

from tenferro_ad._call import push_call
from tenferro_ad._derived import derived
from tenferro_ad._dual import PUSHES
from tenferro_ad._eager import EagerTensor, watched, wrap_many
from tenferro_ad._node import Node, make_node
from tenferro_ad._record import HOOKS
from tenferro_ad._sweep import sweep
from tenferro_ad._zeros import full
from tenferro_runtime.compiling._compiled import Compiled
from tenferro_runtime.extension import REGISTRY, Builder, Program, call, flatten, interpret, optimise
from tenferro_runtime.ir._call import ProgramPrimitive, called, sizes_for
from tenferro_runtime.ir._sizes import chosen, filled, named, substitute
from tenferro_runtime.running._execute import call_kernel
from tenferro_tensor import Op, Spec, next_level
from tenferro_tensor_core import DimLike


def _infer(*xs: Spec, program: Program, sizes: tuple[DimLike, ...] = ()) -> tuple[Spec, ...]:
    """Apply a program to operands; its values are computed anew when it is differentiated."""
    return called(*xs, program=program, sizes=sizes)


_infer.__name__ = "checkpointed"
checkpointed = ProgramPrimitive(_infer, family="tenferro-ad.checkpointed.v1")


class _Recomputed(NamedTuple):
    """Operands and cotangents to cotangents.

    Attributes:
        program: runs the function again, and the sweep.
        active: which outputs carry a derivative.
        places: positions of its outputs among the results; the others are zero.
    """

    program: Program
    active: tuple[bool, ...]
    places: tuple[int, ...]


def _recomputing(need: tuple[int, ...], program: Program, builder: Builder) -> _Recomputed:
    level = next_level()
    xs = [builder.input(s) for s in program.inputs]
    ins: list[Any] = [watched(x, level) if i in need else x for i, x in enumerate(xs)]
    outs: Any = interpret(program, ins)
    active = tuple([o.__class__ is EagerTensor and o.level == level for o in outs])
    reached = sweep([(o.node, builder.input(o.spec)) for o, there in zip(outs, active) if there])
    pulled = [reached.get(ins[i].node) for i in need]
    places = tuple([k for k, c in enumerate(pulled) if c is not None])
    back = optimise(builder.close([pulled[k] for k in places], examples=program.examples))
    return _Recomputed(back, active, places)


def _unified(found: _Recomputed, equalities: Mapping[str, DimLike]) -> _Recomputed:
    return found._replace(program=substitute(found.program, equalities))


def _record(op: Op, level: int, lower: list[Any], need: tuple[int, ...], parents: tuple[Node, ...]) -> Any:
    program = op.params["program"]
    sizes = named(program, sizes_for(program, [x.spec for x in lower], op.params["sizes"]))
    back, active, places = derived(program, ("recompute", need), sizes, partial(_recomputing, need), _unified)
    outs = checkpointed(*lower, program=program, sizes=op.params["sizes"])
    specs = [s.with_(shape=filled(s.shape, sizes)) for s in back.inputs[len(lower) :]]

    def pull(gs: list[Any], saved: tuple[Any, ...]) -> list[Any]:
        those = [g for g, there in zip(gs, active) if there]
        cotangents = [full(s, 0) if g is None else g for g, s in zip(those, specs)]
        found = call(*saved, *cotangents, program=back, sizes=chosen(back, sizes))
        results: list[Any] = [None] * len(need)
        for k, c in zip(places, found):
            results[k] = c
        return results

    pull.op = op  # type: ignore[attr-defined]
    wrapped = wrap_many(outs, level, make_node(pull, parents, tuple(lower)))  # type: ignore[arg-type]
    return tuple([w if there else z for w, z, there in zip(wrapped, outs, active)])


REGISTRY.kernel(checkpointed, "*", call_kernel)
HOOKS[checkpointed] = _record
PUSHES[checkpointed] = push_call


class _Function(Compiled):
    """A compiled function that is called as one checkpointed operation."""

    def __call__(self, values: tuple[Any, ...]) -> Any:
        dynamic, static = self.signature.split(values)
        found = self.find(dynamic, static, *flatten(dynamic))
        form = found.form
        return form.result(checkpointed(*found.leaves, *found.captured, program=form.program, sizes=found.sizes))


def checkpoint(f: Callable[..., Any]) -> Callable[..., Any]:
    """Make a function that keeps only its arguments for the reverse sweep, and runs again there.

    Memory for the values inside is traded for a second run. The function is traced as by `compile`, once for each kind
    of arguments: it takes arrays and numbers in any containers, and cannot branch on their elements.

    >>> from tenferro_ad import checkpoint, grad
    >>> block = checkpoint(lambda x: (x * x) * (x * x))
    >>> grad(block)(2.0)
    Tensor(32.)
    """
    state = _Function(f, (), ())
    entry: Any = state.entry
    functools.update_wrapper(entry, f)
    entry.cache_info, entry.clear = state.info, state.clear
    return entry  # type: ignore[no-any-return]
