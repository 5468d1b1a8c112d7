"""`checkpoint`: a function whose intermediate values are not kept for the sweep, but computed again in it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from tenferro_ad._call import push_call
from tenferro_ad._dual import PUSHES
from tenferro_ad._eager import EagerTensor, watched, wrap_many
from tenferro_ad._node import Node, make_node
from tenferro_ad._partition import sizes_decided
from tenferro_ad._record import HOOKS
from tenferro_ad._sweep import sweep
from tenferro_ad._zeros import full
from tenferro_runtime._call import concrete
from tenferro_runtime._compile import _Compiled
from tenferro_runtime._entry import make_entry
from tenferro_runtime._execute import executable
from tenferro_runtime._render import explain_failure
from tenferro_runtime.extension import REGISTRY, Builder, Program, call, flatten, interpret, optimise
from tenferro_tensor import Op, Primitive, Spec, next_level


class _Checkpointed(Primitive):
    """The primitive behind `checkpoint`; a program owns its op, as for `call`."""

    def op(self, **params: Any) -> Op:
        program = params["program"]
        found: Op | None = program.memo.get("checkpoint")
        if found is None:
            found = program.memo.setdefault("checkpoint", Op(self, {"program": program}))
        return found


def _infer(*xs: Spec, program: Program) -> tuple[Spec, ...]:
    """Apply a program to operands; its values are computed anew when it is differentiated."""
    return concrete(program, xs).outputs


_infer.__name__ = "checkpointed"
checkpointed = _Checkpointed(_infer, family="tenferro-ad.checkpointed.v1")


def _kernel(ins: tuple[Spec, ...], outs: tuple[Spec, ...], *, program: Program) -> Callable[..., Any]:
    return executable(concrete(program, ins))


def _recomputing(program: Program, need: tuple[int, ...]) -> tuple[Program, tuple[bool, ...], tuple[int, ...]]:
    """Program of operands and cotangents to cotangents, which outputs are active, and which results are not zero."""
    key = ("recompute", need)
    found: Any = program.memo.get(key)
    if found is None:
        builder = Builder()
        with sizes_decided(program, builder):
            level = next_level()
            xs = [builder.input(s) for s in program.inputs]
            ins: list[Any] = [watched(x, level) if i in need else x for i, x in enumerate(xs)]
            outs: Any = interpret(program, ins)
            active = tuple([o.__class__ is EagerTensor and o.level == level for o in outs])
            reached = sweep([(o.node, builder.input(o.spec)) for o, there in zip(outs, active) if there])
            pulled = [reached.get(ins[i].node) for i in need]
            places = tuple([k for k, c in enumerate(pulled) if c is not None])
            back = optimise(builder.close([pulled[k] for k in places]))
        found = program.memo.setdefault(key, (back, active, places))
    return found  # type: ignore[no-any-return]


def _record(op: Op, level: int, lower: list[Any], need: tuple[int, ...], parents: tuple[Node, ...]) -> Any:
    program = concrete(op.params["program"], tuple([x.spec for x in lower]))
    back, active, places = _recomputing(program, need)
    outs = checkpointed(*lower, program=program)
    specs = back.inputs[len(lower) :]

    def pull(gs: list[Any], saved: tuple[Any, ...]) -> list[Any]:
        those = [g for g, there in zip(gs, active) if there]
        found = call(*saved, *[full(s, 0) if g is None else g for g, s in zip(those, specs)], program=back)
        results: list[Any] = [None] * len(need)
        for k, c in zip(places, found):
            results[k] = c
        return results

    pull.op = op  # type: ignore[attr-defined]
    wrapped = wrap_many(outs, level, make_node(pull, parents, tuple(lower)))  # type: ignore[arg-type]
    return tuple([w if there else z for w, z, there in zip(wrapped, outs, active)])


REGISTRY.kernel(checkpointed, "*", _kernel)
HOOKS[checkpointed] = _record
PUSHES[checkpointed] = push_call


class _Function(_Compiled):
    """A compiled function that is called as one checkpointed operation."""

    def __call__(self, values: tuple[Any, ...]) -> Any:
        dynamic, static = self.signature.split(values)
        form, ready, _, captured, _ = self.find(dynamic, static, *flatten(dynamic))
        return form.result(checkpointed(*ready, *captured, program=form.program))


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
    entry: Any = make_entry(state.signature, state.hits.table, state, explain_failure)
    functools.update_wrapper(entry, f)
    entry.cache_info, entry.clear = state.info, state.clear
    return entry  # type: ignore[no-any-return]
