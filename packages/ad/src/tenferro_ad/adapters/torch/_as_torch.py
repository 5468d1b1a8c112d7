"""`as_torch`: a tenferro function as a PyTorch function, with derivatives in every mode and at every order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from inspect import Signature
from typing import Any, Final, NamedTuple

from tenferro_ad.adapters._hosted import HostedFunction, HostedOperation, TwoParts
from tenferro_ad.adapters.torch._library import torch
from tenferro_ad.adapters.torch._memory import (
    borrowed,
    example_of,
    is_fake,
    is_operand,
    operand,
    spec_of,
    tensors_of,
    value_of,
)
from tenferro_runtime.extension import BoundedCache
from tenferro_runtime.trees import flatten, unflatten
from tenferro_tensor_core import ArgumentError, GradientError, key_of

STRUCTURES_MAX: Final = 256
"""Bound of the cache of argument structures of a function."""

OPERAND_TYPES: Final = frozenset({torch.Tensor, torch.nn.Parameter})
"""Classes of arguments that are operands without conversion."""


def as_torch(f: Callable[..., Any]) -> Callable[..., Any]:
    """Make a PyTorch function from a tenferro function.

    The result computes with tenferro in the memory of the tensors, and is differentiable in PyTorch: by
    ``backward()`` and `torch.autograd`, to any order, and under `torch.func.grad`, `vjp`, `jvp`, `vmap`, `jacrev`,
    `jacfwd` and `hessian`, in any nesting. The function is traced as by `compile`, once for each kind of arguments.

    Args:
        f: a compilable function of pytrees of arrays to a pytree of arrays. Tensors, NumPy arrays and numbers among
            its arguments become arrays; other leaves are constants of the program and must be hashable.

    Returns:
        A function with the arguments of `f` that returns PyTorch tensors, with the shapes and dtypes of the results of
        `f`. It copies only results that share memory with an argument, a constant or each other, since PyTorch may
        write to them. Like other PyTorch functions it saves its arguments for the backward pass, which fails if one
        was modified in between.

    Raises:
        ArgumentError: `f` is not callable, or an argument has a dtype, layout or device that tenferro lacks.
        MissingRuleError: a derivative is required, but an operation has no rule.

    See also:
        from_torch: the other direction.

    >>> import tenferro_runtime as tr
    >>> import torch
    >>> from tenferro_ad.adapters.torch import as_torch
    >>> norm = as_torch(lambda x: tr.sqrt(tr.sum(x * x)))
    >>> x = torch.tensor([3.0, 4.0], requires_grad=True)
    >>> y = norm(x)
    >>> y.backward()
    >>> y.item(), x.grad
    (5.0, tensor([0.6000, 0.8000]))
    """
    if not callable(f):
        raise ArgumentError(f"as_torch takes a function, got {f!r:.80}")
    functions: BoundedCache[Any, HostedFunction] = BoundedCache(
        f"as_torch({getattr(f, '__qualname__', '')})", STRUCTURES_MAX
    )

    def flat_for(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[HostedFunction, list[Any]]:
        leaves, tree = flatten((args, kwargs))
        static = {i: x for i, x in enumerate(leaves) if not is_operand(x)}
        try:
            key = (tree, tuple([(i, key_of(x)) for i, x in static.items()]))
            found = functions.get_or_make(key, lambda: HostedFunction(f, tree, static))
        except TypeError as error:
            raise ArgumentError(
                f"as_torch: the arguments {[*static.values()]!r:.80} are neither arrays nor numbers and not hashable, "
                "so they cannot be constants of the function; pass tensors, tuples or strings"
            ) from error
        return found, [operand(x) for i, x in enumerate(leaves) if i not in static]

    def computed(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        operands: Sequence[Any] = args
        if not kwargs and OPERAND_TYPES.issuperset(map(type, args)):
            flat = functions.get(len(args))
            if flat is None:
                flat = functions.get_or_make(len(args), lambda: flat_for(args, {})[0])
        else:
            flat, operands = flat_for(args, kwargs)
        specs = [spec_of(x) for x in operands]
        tree = flat.result(specs)
        return unflatten(tree, _apply(flat.operation, operands, specs))

    uncompiled: list[Callable[..., Any]] = []

    @wraps(f)
    def called(*args: Any, **kwargs: Any) -> Any:
        if torch.compiler.is_compiling():  # break the graph of torch.compile
            if not uncompiled:
                uncompiled.append(torch.compiler.disable(computed))
            return uncompiled[0](args, kwargs)
        return computed(args, kwargs)

    return called


def _apply(operation: HostedOperation, operands: Sequence[Any], specs: Sequence[Any] | None = None) -> tuple[Any, ...]:
    """Compute the results of an operation, in two parts if PyTorch records."""
    recorded = None
    if torch.is_grad_enabled():
        need = tuple([i for i, x in enumerate(operands) if isinstance(x, torch.Tensor) and x.requires_grad])
        if need:
            recorded = operation.recorded([spec_of(x) for x in operands] if specs is None else specs, need)
            if recorded is not None:
                found = _Apply.apply(TorchCall(operation, recorded, need), *operands)
                return tuple(found[: recorded.results])
    return tuple(_Apply.apply(TorchCall(operation, None, ()), *operands))


class TorchCall:
    """One call of an operation.

    Attributes:
        operation: the operation.
        recorded: its two parts, of which the first is called, or ``None``.
        need: positions of the operands that these differentiate.
    """

    __slots__ = ("need", "operation", "recorded")

    def __init__(self, operation: HostedOperation, recorded: TwoParts | None, need: tuple[int, ...]) -> None:
        self.operation, self.recorded, self.need = operation, recorded, need

    @property
    def computed(self) -> HostedOperation:
        """The operation that computes everything that the call returns."""
        return self.operation if self.recorded is None else self.recorded.first


class _Apply(torch.autograd.Function):  # type: ignore[misc]  # torch is Any
    """An operation on tensors and numbers; if it is recorded, its last results are residuals."""

    generate_vmap_rule = False

    @staticmethod
    def forward(call: TorchCall, *operands: Any) -> tuple[Any, ...]:
        if any(map(is_fake, operands)):
            return tuple(map(example_of, call.computed.results([spec_of(x) for x in operands])))
        found = call.computed.run(*map(value_of, operands))
        count = len(found) if call.recorded is None else call.recorded.results
        outs = tensors_of(found[:count])
        return (*_apart(outs, operands), *map(borrowed, found[count:]))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Any, ...]) -> None:
        call = ctx.call = inputs[0]
        ctx.set_materialize_grads(False)
        ctx.others = [None if isinstance(x, torch.Tensor) else x for x in inputs[1:]]
        ctx.moving = [x.is_floating_point() or x.is_complex() for x in output]
        tensors = [x for x in inputs[1:] if isinstance(x, torch.Tensor)]
        kept = () if call.recorded is None else call.recorded.kept
        ctx.save_for_backward(*tensors, *[output[k] for k in kept])
        ctx.save_for_forward(*tensors)
        ctx.mark_non_differentiable(*[x for x, moves in zip(output, ctx.moving, strict=True) if not moves])

    @staticmethod
    def backward(ctx: Any, *cotangents: Any) -> tuple[Any, ...]:
        call, saved = ctx.call, iter(ctx.saved_tensors)
        operands = [next(saved) if x is None else x for x in ctx.others]
        wanted = [i for i, there in enumerate(ctx.needs_input_grad[1:]) if there]
        given = [g is not None for g in cotangents]
        found: list[Any] = [None] * len(operands)
        recorded = call.recorded
        if recorded is not None and not any(given[recorded.results :]) and {*call.need}.issuperset(wanted):
            try:
                _pull_kept(call, cotangents, operands, [*saved], found)
            except GradientError as error:
                if not error.payload.get("beside"):  # else a separate program may find a limit
                    raise
            else:
                return (None, *[g if i in wanted else None for i, g in enumerate(found)])
        if wanted and any(given):
            pulled = call.computed.pulled(tuple(wanted), tuple(given))
            gs = [g for g in cotangents if g is not None]
            for i, g in zip(wanted, _apply(pulled, [*operands, *gs]), strict=True):
                found[i] = g
        return (None, *found)

    @staticmethod
    def jvp(ctx: Any, _: Any, *tangents: Any) -> tuple[Any, ...]:
        saved = iter(ctx.saved_tensors)
        operands = [next(saved) if x is None else x for x in ctx.others]
        need = tuple([i for i, t in enumerate(tangents) if t is not None])
        pushed = ctx.call.computed.pushed(need)
        found = iter(_apply(pushed, [*operands, *[tangents[i] for i in need]]))
        return tuple([next(found) if moves else None for moves in ctx.moving])

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], call: TorchCall, *operands: Any) -> tuple[Any, Any]:
        found = _apply(call.computed.mapped(tuple(in_dims[1:])), operands)
        return found, (0,) * len(found)


class _PositionalSignature(Signature):
    """Signature of a function without defaults, which `torch.autograd.Function.apply` binds in each call.

    Binding arguments by name would dominate the call of a small function.
    """

    def bind(self, *args: Any, **kwargs: Any) -> Any:
        """The arguments unchanged."""
        return _BoundArguments(args, kwargs)


class _BoundArguments(NamedTuple):
    """Bound arguments, as `apply` reads them."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    def apply_defaults(self) -> None:
        """Do nothing: there are no defaults."""


_Apply.forward.__signature__ = _PositionalSignature()  # type: ignore[attr-defined]


def _pull_kept(
    call: TorchCall, cotangents: Sequence[Any], operands: list[Any], kept: list[Any], found: list[Any]
) -> None:
    """Fill in cotangents of operands from those of results and the residuals."""
    recorded = call.recorded
    assert recorded is not None, "only a recorded call has residuals"
    given = tuple([g is not None and there for g, there in zip(cotangents, recorded.active)])
    if not any(given):
        return
    second = recorded.second(given)
    at = {~k: x for k, x in zip(recorded.kept, kept, strict=True)}
    residuals = [operands[i] if i >= 0 else at[i] for i in second.sources]
    gs = [g for g, there in zip(cotangents, given) if there]
    for place, g in zip(second.places, _apply(second.operation, [*gs, *residuals]), strict=True):
        found[call.need[place]] = g


def _apart(outs: tuple[Any, ...], operands: Sequence[Any]) -> tuple[Any, ...]:
    """Copy results on an accelerator that share memory with an operand."""
    if all(x.device.type == "cpu" for x in outs):
        return outs  # `tensors_of` has copied them
    taken = [_range(x) for x in operands if isinstance(x, torch.Tensor)]
    return tuple([x.clone() if any(_overlap(_range(x), r) for r in taken) else x for x in outs])


def _range(x: Any) -> tuple[int, int]:
    storage = x.untyped_storage()
    start = storage.data_ptr()
    return start, start + storage.nbytes()


def _overlap(a: tuple[int, int], b: tuple[int, int]) -> bool:
    return a[0] < b[1] and b[0] < a[1]
