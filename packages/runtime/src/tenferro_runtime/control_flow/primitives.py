"""The primitives `cond`, `while_loop`, `scan` and `budgeted`: their metadata are closed programs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tenferro_runtime.ir._call import applied
from tenferro_runtime.ir._program import Program, ProgramError, inner_programs
from tenferro_runtime.passes.dead_code import with_outputs
from tenferro_tensor import REGISTRY, Op, Place, Primitive, Spec, catalog, get_backend
from tenferro_tensor_core import DimLike, key_of

__all__ = ["ProgramHolding", "budgeted", "cond", "scan", "uninitialized", "while_loop"]


def __dir__() -> list[str]:
    return __all__.copy()


class ProgramHolding(Primitive):
    """A primitive whose metadata hold programs that share the sizes of the enclosing program.

    The first program owns the op, so that no table keeps programs alive.
    """

    anywhere = True

    def op(self, **params: Any) -> Op:
        """The op with given metadata, cached with its first program.

        Args:
            params: the metadata.

        Returns:
            The op.

        Raises:
            ProgramError: metadata are missing, or are not programs.
        """
        if len(params) != len(self.metadata) or any(name not in params for name in self.metadata):
            raise ProgramError(f"{self.name} needs the metadata {', '.join(self.metadata)}, got {', '.join(params)}")
        ordered = {name: params[name] for name in self.metadata}
        held = inner_programs(ordered)
        if not held:
            raise ProgramError(f"{self.name} needs programs in its metadata, got {params!r:.80}")
        memo, key = held[0].memo, (self.name, *map(key_of, ordered.values()))
        found: Op | None = memo.get(key)
        return memo.setdefault(key, Op(self, ordered)) if found is None else found


def _require_fit(name: str, what: str, program: Program, specs: tuple[Spec, ...]) -> None:
    if program.inputs != specs:
        raise ProgramError(
            f"{what} of {name} takes ({', '.join(map(repr, program.inputs))}), but its operands are "
            f"({', '.join(map(repr, specs))}); record the function for such operands"
        )


def _require_outputs(name: str, what: str, program: Program, specs: tuple[Spec, ...]) -> None:
    if program.outputs != specs:
        raise ProgramError(
            f"{what} of {name} returns ({', '.join(map(repr, program.outputs))}), but "
            f"({', '.join(map(repr, specs))}) is needed"
        )


def _infer_cond(index: Spec, *xs: Spec, branches: tuple[Program, ...]) -> tuple[Spec, ...]:
    """Apply the program ``branches[index]`` to the operands; always a tuple of outputs.

    The index is one integer, clamped to the number of branches, or one boolean, which counts as 0 or 1.

    Args:
        index: one integer or boolean.
        xs: the operands.
        branches: programs of the operands with equal outputs.

    Returns:
        The outputs of the chosen branch, a tuple.
    """
    if index.shape != () or index.dtype.kind not in "biu":
        raise ProgramError(f"cond chooses by one boolean or integer, got {index!r}")
    for k, branch in enumerate(branches):
        _require_fit("cond", f"branch {k}", branch, xs)
        _require_outputs("cond", f"branch {k}", branch, branches[0].outputs)
    return branches[0].outputs


def _infer_while(*xs: Spec, cond: Program, body: Program, consts: int, max_steps: DimLike | None) -> tuple[Spec, ...]:
    """Apply `body` to the carry while `cond` holds, at most `max_steps` times; the last carry.

    Both programs take the first `consts` operands before the carry.

    Args:
        xs: constants, then the carry.
        cond: program of its constants and the carry that returns one boolean.
        body: program of its constants and the carry that returns the carry.
        consts: number of leading operands that are constants.
        max_steps: largest number of steps, or ``None``.

    Returns:
        The last carry, a tuple.
    """
    _require_fit("while_loop", "the condition", cond, xs)
    _require_fit("while_loop", "the body", body, xs)
    _require_outputs("while_loop", "the body", body, xs[consts:])
    if len(cond.outputs) != 1 or cond.outputs[0].shape != () or cond.outputs[0].dtype.kind != "b":
        raise ProgramError(f"the condition of while_loop must return one boolean, not {cond.outputs!r}")
    return body.outputs


def _infer_scan(*xs: Spec, body: Program, consts: int, carry: int, length: DimLike, reverse: bool) -> tuple[Spec, ...]:
    """Fold `body` over the leading axis of the last operands; the last carry, then the stacked rows.

    The body maps (constants, carry, slices) to (carry, rows). With `reverse` it runs from the last index to the first;
    rows keep the index of their slices.

    Args:
        xs: constants, then the carry, then the arrays to iterate over.
        body: program of constants, carry and slices that returns the carry and a row.
        consts: number of constants.
        carry: number of carries.
        length: number of steps.
        reverse: iterate from the last index to the first.

    Returns:
        The last carry and the stacked rows, a tuple.
    """
    start = consts + carry
    for s in xs[start:]:
        if not s.shape or s.shape[0] != length:
            raise ProgramError(f"scan goes over {length} slices, but one of its operands is {s!r}")
    slices = tuple([s.with_(shape=s.shape[1:]) for s in xs[start:]])
    _require_fit("scan", "the body", body, (*xs[:start], *slices))
    kept, rows = body.outputs[:carry], body.outputs[carry:]
    if kept != xs[consts:start]:
        raise ProgramError(f"the body of scan changes its carry from {xs[consts:start]!r} to {kept!r}")
    return (*kept, *[s.with_(shape=(length, *s.shape)) for s in rows])


def _infer_budgeted(*xs: Spec, program: Program, memory_budget: int) -> tuple[Spec, ...]:
    """Apply a program; the reverse mode of its loops stores at most `memory_budget` bytes.

    Args:
        xs: the operands.
        program: the program.
        memory_budget: number of bytes.

    Returns:
        The outputs of the program, a tuple.
    """
    _require_fit("budgeted", "the program", program, xs)
    return program.outputs


def _named(infer: Any, name: str, family: str | None = None) -> Primitive:
    infer.__name__ = name
    return ProgramHolding(infer, family=family)


cond: Final[Primitive] = _named(_infer_cond, "cond")
while_loop: Final[Primitive] = _named(_infer_while, "while_loop")
scan: Final[Primitive] = _named(_infer_scan, "scan")
budgeted: Final[Primitive] = _named(_infer_budgeted, "budgeted", "tenferro-runtime.budgeted.v1")


def _infer_uninitialized(*, shape: tuple[DimLike, ...], dtype: np.dtype[Any], place: Place) -> Spec:
    """An array with arbitrary elements, each of which is written before it is read."""
    return Spec(shape, dtype, place)


_infer_uninitialized.__name__ = "uninitialized"
uninitialized: Final[Primitive] = Primitive(_infer_uninitialized, family="tenferro-runtime.uninitialized.v1")


def _make_empty(
    ins: tuple[Spec, ...], outs: tuple[Spec, ...], *, shape: tuple[DimLike, ...], dtype: np.dtype[Any], place: Place
) -> Callable[..., Any]:
    empty = get_backend(place.device.kind).library("numpy").empty
    return (lambda shape: empty(shape, dtype)) if outs[0].symbolic else (lambda: empty(shape, dtype))


def _empty_sizes(ins: tuple[Spec, ...], outs: tuple[Spec, ...], **_: Any) -> tuple[Any, ...]:
    return (outs[0].shape,)


def _zeros(*, shape: tuple[DimLike, ...], dtype: np.dtype[Any], place: Place) -> Any:
    return catalog.broadcast_in_dim(Primitive.adopt(0, dtype=dtype, device=place.device), shape=shape, dims=())


def _prune_cond(op: Op, used: tuple[bool, ...]) -> tuple[Op, tuple[int | None, ...]]:
    branches = tuple([with_outputs(b, used) for b in op.params["branches"]])
    return cond.op(branches=branches), _places(used)


def _prune_scan(op: Op, used: tuple[bool, ...]) -> tuple[Op, tuple[int | None, ...]] | None:
    carry = op.params["carry"]
    kept = (*[True] * carry, *used[carry:])
    if all(kept):
        return None
    return scan.op(**{**op.params, "body": with_outputs(op.params["body"], kept)}), _places(kept)


def _places(used: tuple[bool, ...]) -> tuple[int | None, ...]:
    return tuple([sum(used[:i]) if there else None for i, there in enumerate(used)])


REGISTRY.pruning(cond, _prune_cond)
REGISTRY.pruning(scan, _prune_scan)
REGISTRY.expansion(budgeted, lambda *xs, program, memory_budget: applied(program, xs))
_make_empty.sizes = _empty_sizes  # type: ignore[attr-defined]
REGISTRY.kernel(uninitialized, "*", _make_empty)
REGISTRY.expansion(uninitialized, _zeros, keep=True)
