"""`from_jax`: a function of JAX arrays as a differentiable operation on tensors."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Final

import jax
import numpy as np

from tenferro_runtime import asarray, reshape
from tenferro_runtime.extension import HOST, REGISTRY, ArgumentError, BoundedCache, General, Primitive, Spec
from tenferro_xla._emitter import HloEmitter, HloValue
from tenferro_xla._jitted import wide_numbers

Flags = tuple[bool, ...]
Function = Callable[..., Any]


class FunctionOfJax:
    """A function of JAX arrays to a tuple of JAX arrays, as a parameter of the primitive; compared by identity.

    Args:
        f: the function.
        name: its name in messages.
    """

    def __init__(self, f: Function, name: str) -> None:
        self.f, self.__name__ = f, name
        self._specs: BoundedCache[Any, tuple[Spec, ...]] = BoundedCache(f"tenferro_xla: shapes of {name} of JAX", 256)
        self._derived: BoundedCache[Any, FunctionOfJax] = BoundedCache(
            f"tenferro_xla: derivatives of {name} of JAX", 64
        )

    def outs(self, specs: tuple[Spec, ...]) -> tuple[Spec, ...]:
        """Return the specs of the results."""
        return self._specs.get_or_make(specs, lambda: self._infer(specs))

    def _infer(self, specs: tuple[Spec, ...]) -> tuple[Spec, ...]:
        with wide_numbers():
            found = jax.eval_shape(self.f, *_structs(specs))
        place = specs[0].place if specs else HOST
        return tuple([Spec(tuple(x.shape), np.dtype(x.dtype), place) for x in found])

    def compiled(self, specs: Sequence[Spec]) -> Any:
        """Compile the function for operands of the given specs."""

        def apart(*arrays: Any) -> tuple[Any, ...]:
            # JAX returns an argument that is a result without a copy; it would share the memory of the operand.
            return tuple([jax.numpy.copy(y) if any(y is x for x in arrays) else y for y in self.f(*arrays)])

        with wide_numbers():
            return jax.jit(apart, keep_unused=True).lower(*_structs(specs)).compile()

    def derived(self, kind: str, *options: Any) -> FunctionOfJax:
        """Return the function ``_DERIVED[kind](f, *options)``."""
        return self._derived.get_or_make(
            (kind, options), lambda: FunctionOfJax(_DERIVED[kind](self.f, *options), f"{kind} of {self.__name__}")
        )

    def __repr__(self) -> str:
        return self.__name__


def _structs(specs: Sequence[Spec]) -> list[Any]:
    return [jax.ShapeDtypeStruct(s.shape, s.dtype) for s in specs]


def _jvp(f: Function, need: Flags, floating: Flags) -> Function:
    """Map operands, and tangents of the operands in `need`, to the tangents of the floating-point results."""

    def tangents(*arrays: Any) -> tuple[Any, ...]:
        primals, ts = arrays[: len(need)], arrays[len(need) :]
        moved = [x for x, there in zip(primals, need, strict=True) if there]
        found = jax.jvp(_of_some(f, primals, need), tuple(moved), tuple(ts))[1]
        return tuple([t for t, there in zip(found, floating, strict=True) if there])

    return tangents


def _vjp(f: Function, need: Flags, active: Flags) -> Function:
    """Map operands, and cotangents of the results in `active`, to the cotangents of the operands in `need`."""

    def cotangents(*arrays: Any) -> tuple[Any, ...]:
        primals, given = arrays[: len(need)], arrays[len(need) :]
        moved = [x for x, there in zip(primals, need, strict=True) if there]

        def some(*xs: Any) -> tuple[Any, ...]:
            return tuple([y for y, there in zip(_of_some(f, primals, need)(*xs), active, strict=True) if there])

        _, pull = jax.vjp(some, *moved)
        # JAX pairs cotangents and tangents without conjugation.
        return tuple([jax.numpy.conj(g) for g in pull(tuple([jax.numpy.conj(g) for g in given]))])

    return cotangents


def _of_some(f: Function, operands: Sequence[Any], need: Flags) -> Function:
    def of_some(*xs: Any) -> Any:
        rest = iter(xs)
        return f(*[next(rest) if there else x for x, there in zip(operands, need, strict=True)])

    return of_some


def _vmap(f: Function, batched: Flags) -> Function:
    mapped: Function = jax.vmap(f, in_axes=tuple([0 if there else None for there in batched]))
    return mapped


_DERIVED: Final[dict[str, Any]] = {"jvp": _jvp, "vjp": _vjp, "vmap": _vmap}


def _jax_function(*xs: Spec, function: FunctionOfJax) -> tuple[Spec, ...]:
    """Apply a function of JAX arrays."""
    return function.outs(xs)


_jax_function.__name__ = "jax_function"
jax_function = Primitive(_jax_function)


def _kernel(ins: tuple[Spec, ...], outs: tuple[Spec, ...], *, function: FunctionOfJax) -> Function:
    run = function.compiled(ins)

    def kernel(*raws: Any) -> tuple[Any, ...]:
        with wide_numbers():
            found = run(*raws)
        return tuple([np.asarray(x) for x in found])  # wait for all results: until then JAX reads the operands

    return kernel


def _tangents(
    primals: tuple[Any, ...], tangents: tuple[Any, ...], outs: tuple[Any, ...], *, function: FunctionOfJax
) -> tuple[Any, ...]:
    need = tuple([t is not None for t in tangents])
    floating = tuple([y.spec.inexact for y in outs])
    if not any(floating):
        return (None,) * len(outs)
    made = function.derived("jvp", need, floating)
    found = iter(jax_function(*primals, *[t for t in tangents if t is not None], function=made))
    return tuple([next(found) if there else None for there in floating])


def _cotangents(
    primals: tuple[Any, ...], outs: tuple[Any, ...], cotangents: tuple[Any, ...], *, function: FunctionOfJax
) -> tuple[Any, ...]:
    need = tuple([x.spec.inexact for x in primals])
    active = tuple([g is not None for g in cotangents])
    if not any(active):
        return (None,) * len(primals)
    made = function.derived("vjp", need, active)
    found = iter(jax_function(*primals, *[g for g in cotangents if g is not None], function=made))
    return tuple([next(found) if there else None for there in need])


def _batched(size: Any, values: tuple[Any, ...], batched: Flags, /, *, function: FunctionOfJax) -> tuple[Any, ...]:
    found: tuple[Any, ...] = jax_function(*values, function=function.derived("vmap", batched))
    return found


def _lowered(
    e: HloEmitter, operands: Sequence[HloValue], outs: Sequence[Spec], *, function: FunctionOfJax
) -> tuple[HloValue, ...]:
    return e.traced(_applied, operands, outs, hosted=function)


def _applied(library: Any, *arrays: Any, hosted: FunctionOfJax) -> Any:
    return hosted.f(*arrays)


REGISTRY.kernel(jax_function, "cpu", _kernel)
REGISTRY.rule(jax_function, General(jvp=_tangents, vjp=_cotangents))
REGISTRY.batching(jax_function, _batched)
REGISTRY.lowering(jax_function, _lowered)


def from_jax(g: Function) -> Function:
    """Convert a function of JAX arrays to a function of tensors, differentiable in both modes and at any order.

    The operation runs the function compiled by ``jax.jit``: eagerly, in compiled programs on the CPU, where it shares
    the memory of its operands and results, and inline in programs that XLA compiles. JAX computes its derivatives and
    its batches under ``vmap``, with tenferro's convention for complex numbers. Inside it JAX keeps 64-bit numbers,
    whatever its settings, which are not changed.

    Args:
        g: a pure function of JAX arrays to JAX arrays, both in any JAX pytrees. All arguments must be arrays.

    Returns:
        The function of tensors. JAX compiles it for each shape, so a program with symbolic sizes is specialized to the
        sizes of each call.

    Raises:
        ArgumentError: `g` is not a function, or returned no arrays.

    See also:
        `as_jax`, the opposite direction.

    >>> import jax
    >>> import tenferro_runtime as tr
    >>> from tenferro_ad import grad
    >>> from tenferro_ad.adapters.jax import from_jax
    >>> smooth = from_jax(lambda x: jax.nn.softplus(x).sum())
    >>> grad(smooth)(tr.zeros(2)), tr.compile(grad(smooth))(tr.zeros(2))
    (Tensor([0.5, 0.5]), Tensor([0.5, 0.5]))
    """
    if not callable(g):
        raise ArgumentError(f"from_jax takes a function, got {g!r:.80}")
    name = str(getattr(g, "__name__", type(g).__name__))
    known: BoundedCache[Any, _Flat] = BoundedCache(f"tenferro_xla: argument structures of {name} of JAX", 64)

    @functools.wraps(g)
    def hosted(*args: Any, **kwargs: Any) -> Any:
        leaves, tree = jax.tree.flatten((args, kwargs))
        values = [_of_fixed_sizes(asarray(x)) for x in leaves]
        flat = known.get_or_make(tree, lambda: _Flat(g, name, tree))
        return flat(values)

    return hosted


class _Flat:
    """A function for one structure of its arguments.

    Args:
        g: the function.
        name: its name in messages.
        tree: structure of the arguments.
    """

    def __init__(self, g: Function, name: str, tree: Any) -> None:
        self._trees: BoundedCache[Any, Any] = BoundedCache(f"tenferro_xla: result structures of {name} of JAX", 256)

        def f(*arrays: Any) -> tuple[Any, ...]:
            args, kwargs = jax.tree.unflatten(tree, arrays)
            return tuple([jax.numpy.asarray(x) for x in jax.tree.leaves(g(*args, **kwargs))])

        def structure(*arrays: Any) -> Any:
            args, kwargs = jax.tree.unflatten(tree, arrays)
            return g(*args, **kwargs)

        self._function, self._structure = FunctionOfJax(f, name), structure

    def __call__(self, values: list[Any]) -> Any:
        specs = tuple([v.spec for v in values])
        tree = self._trees.get_or_make(specs, lambda: self._result(specs))
        return jax.tree.unflatten(tree, jax_function(*values, function=self._function))

    def _result(self, specs: tuple[Spec, ...]) -> Any:
        with wide_numbers():
            tree = jax.tree.structure(jax.eval_shape(self._structure, *_structs(specs)))
        if not tree.num_leaves:
            raise ArgumentError(f"{self._function!r} returned no arrays to from_jax; it must return at least one")
        return tree


def _of_fixed_sizes(x: Any) -> Any:
    return reshape(x, tuple([int(n) for n in x.shape])) if x.spec.symbolic else x
