"""PyTorch functions as operations: one primitive for all of them, whose derivatives are PyTorch functions again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from tenferro_ad.adapters.torch._library import torch
from tenferro_ad.adapters.torch._memory import raws_of, tensor_in
from tenferro_runtime.batching import lane_by_lane
from tenferro_runtime.extension import (
    REGISTRY,
    ArgumentError,
    BoundedCache,
    DimLike,
    General,
    Op,
    Primitive,
    Spec,
)

Flags = tuple[bool, ...]
Specs = tuple[Spec, ...]
Infer = Callable[[Specs], Specs]

MAX_INFERRED: Final = 1024
"""Bound of the caches of inferred specs and of derived functions."""


class TorchFunction:
    """A function of PyTorch on tensors to a tuple of tensors.

    Args:
        run: the function.
        infer: maps specs of the operands to specs of the results.
        title: name for messages.
        sequential: whether to run lane by lane under `vmap`.
        again: maps flags of the used results to a cheaper function that computes only those, or ``None``.
    """

    def __init__(self, run: Callable[..., Any], infer: Infer, title: str, sequential: bool, again: Any = None) -> None:
        self.run, self._infer, self.title, self.sequential, self._again = run, infer, title, sequential, again
        self._specs: BoundedCache[Specs, Specs] = BoundedCache(f"from_torch({title}): results", MAX_INFERRED)
        self._derived: BoundedCache[Any, TorchFunction] = BoundedCache(
            f"from_torch({title}): derivatives", MAX_INFERRED
        )

    def __repr__(self) -> str:
        return self.title

    def results(self, specs: Specs) -> Specs:
        """Specs of the results."""
        return self._specs.get_or_make(specs, lambda: self._infer(specs))

    def pushed(self, given: Flags) -> TorchFunction:
        """Tangents of the inexact results, from the operands and the tangents of those that are `given`."""
        need = _places(given)
        count = len(given)

        def infer(specs: Specs) -> Specs:
            return tuple([s for s in self.results(specs[:count]) if s.inexact])

        return self._derive(("pushed", given), partial(_pushed, self.run, need, count), infer, "tangents of")

    def pulled(self, need: Flags, given: Flags) -> TorchFunction:
        """Cotangents of the operands at `need`, from the operands and the cotangents of the results `given`."""
        places = _places(need)

        def infer(specs: Specs) -> Specs:
            return tuple([specs[i] for i in places])

        run = partial(_pulled, self.run, places, _places(given), len(need))
        return self._derive(("pulled", need, given), run, infer, "cotangents of", partial(self._fewer, need, given))

    def _fewer(self, need: Flags, given: Flags, used: Flags) -> TorchFunction:
        left = iter(used)
        return self.pulled(tuple([n and next(left) for n in need]), given)

    def only(self, used: Flags) -> TorchFunction | None:
        """A cheaper function that computes only the results that are `used`, or ``None``."""
        return None if self._again is None else self._again(used)

    def mapped(self, batched: Flags) -> TorchFunction:
        """The function mapped over lanes, which are the first axis of the results."""
        axes = tuple([0 if there else None for there in batched])

        def infer(specs: Specs) -> Specs:
            size = specs[batched.index(True)].shape[0]
            lanes = tuple([s.with_(shape=s.shape[1:]) if b else s for s, b in zip(specs, batched, strict=True)])
            return tuple([s.with_(shape=(size, *s.shape)) for s in self.results(lanes)])

        return self._derive(("mapped", batched), torch.func.vmap(self.run, axes), infer, "lanes of")

    def _derive(self, key: Any, run: Callable[..., Any], infer: Infer, what: str, again: Any = None) -> TorchFunction:
        return self._derived.get_or_make(
            key, lambda: TorchFunction(run, infer, f"{what} {self.title}", self.sequential, again)
        )


def _places(flags: Flags) -> tuple[int, ...]:
    return tuple([i for i, there in enumerate(flags) if there])


def _of_some(run: Callable[..., Any], values: Sequence[Any], places: Sequence[int]) -> Callable[..., Any]:
    """The function of some operands, with the others fixed."""

    def some(*moving: Any) -> Any:
        full = list(values)
        for i, x in zip(places, moving, strict=True):
            full[i] = x
        return run(*full)

    return some


def _pushed(run: Callable[..., Any], need: tuple[int, ...], count: int, *values: Any) -> tuple[Any, ...]:
    some = _of_some(run, values[:count], need)
    _, tangents = torch.func.jvp(some, tuple([values[i] for i in need]), values[count:])
    return tuple([t for t in tangents if t.is_floating_point() or t.is_complex()])


def _pulled(
    run: Callable[..., Any], need: tuple[int, ...], given: tuple[int, ...], count: int, *values: Any
) -> tuple[Any, ...]:
    some = _of_some(run, values[:count], need)

    def chosen(*moving: Any) -> tuple[Any, ...]:
        outs = some(*moving)
        return tuple([outs[k] for k in given])

    _, pull = torch.func.vjp(chosen, *[values[i] for i in need])
    return pull(tuple(values[count:]))  # type: ignore[no-any-return]


def _torch_call(*xs: Spec, function: TorchFunction) -> Specs:
    """Apply a function of PyTorch to the operands."""
    return function.results(xs)


_torch_call.__name__ = "torch_call"
torch_call = Primitive(_torch_call)


def _kernel(ins: Specs, outs: Specs, *, function: TorchFunction) -> Callable[..., Any]:
    def run(*raws: Any) -> tuple[Any, ...]:
        tensors = [tensor_in(raw) for raw in raws]
        with torch.no_grad():
            found = function.run(*tensors)
        for i, x in enumerate(tensors):
            if x._version:
                raise ArgumentError(
                    f"{function!r} wrote to its argument {i}, which other tensors may share; work on a copy, "
                    "as in x = x.clone()"
                )
        return raws_of(found, outs, tensors, function.title)

    return run


def _jvp(primals: Any, tangents: Any, outs: Any, *, function: TorchFunction) -> tuple[Any, ...]:
    given = tuple([t is not None for t in tangents])
    moved = iter(torch_call(*primals, *[t for t in tangents if t is not None], function=function.pushed(given)))
    return tuple([next(moved) if out.spec.inexact else None for out in outs])


def _vjp(primals: Any, outs: Any, cotangents: Any, *, function: TorchFunction) -> tuple[Any, ...]:
    need = tuple([x.spec.inexact for x in primals])
    given = tuple([g is not None for g in cotangents])
    pulled = function.pulled(need, given)
    found = iter(torch_call(*primals, *[g for g in cotangents if g is not None], function=pulled))
    return tuple([next(found) if there else None for there in need])


def _batched(size: DimLike, values: tuple[Any, ...], batched: Flags, /, *, function: TorchFunction) -> Any:
    if function.sequential:
        return lane_by_lane(torch_call.op(function=function), size, values, batched)
    return torch_call(*values, function=function.mapped(batched))


def _prune(op: Op, used: Flags) -> Any:
    function = op.params["function"].only(used)
    if function is None:
        return None
    left = iter(range(sum(used)))
    return torch_call.op(function=function), tuple([next(left) if there else None for there in used])


for _backend in ("cpu", "cuda", "rocm"):
    REGISTRY.kernel(torch_call, _backend, _kernel)
REGISTRY.rule(torch_call, General(jvp=_jvp, vjp=_vjp))
REGISTRY.batching(torch_call, _batched)
REGISTRY.pruning(torch_call, _prune)
