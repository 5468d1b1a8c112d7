"""The JAX primitive of a program, with rules for shapes, compilation, derivatives and batches.

The rules bind the primitive again, with the program of the tangents, of the cotangents or of a batch. Hence every JAX
transformation applies, at any order. Derived programs are kept in one bounded cache.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

import jax
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from tenferro_runtime import trace, vmap
from tenferro_runtime.extension import BoundedCache, MissingRuleError, Program
from tenferro_xla._jitted import bind as bind_module
from tenferro_xla._jitted import wide_numbers
from tenferro_xla._lower import StableHloModule, lower_to_stablehlo
from tenferro_xla.inside_jax._varying import together, types_of

PLATFORMS: Final = ("cpu", "cuda", "rocm", "tpu")

Places = tuple[int, ...]


class Derivatives(NamedTuple):
    """How programs are differentiated, as functions of programs.

    Attributes:
        jvp: ``jvp(program, need)`` maps the inputs, and tangents of the inputs at the positions `need`, to the tangents
            of the floating-point outputs.
        vjp: ``vjp(program, need, active)`` maps the inputs, and cotangents of the outputs at the positions `active`, to
            the cotangents of the inputs at the positions `need`.
        transpose: ``transpose(program, need, active)`` does so for a program that is linear in the inputs `need`, from
            the other inputs and the cotangents. Cotangents pair without conjugation.
    """

    jvp: Callable[[Program, Places], Program]
    vjp: Callable[[Program, Places, Places], Program]
    transpose: Callable[[Program, Places, Places], Program]


_installed: list[Derivatives] = []
_DERIVED: Final[BoundedCache[Any, Any]] = BoundedCache("tenferro_xla: derivatives and batches inside of JAX", 1024)


def differentiate_with(rules: Derivatives) -> None:
    """Install the derivatives of programs; called by `tenferro_ad.adapters.jax`.

    Args:
        rules: the functions that differentiate programs.
    """
    _installed[:] = [rules]


class Guest:
    """A program as the parameter of the primitive, compared by identity.

    Args:
        program: a program of fixed sizes.
        tangents_of: for a program that computes tangents, the program of the values and the inputs with tangents.
    """

    __slots__ = ("_modules", "_run", "program", "tangents_of")

    def __init__(self, program: Program, tangents_of: tuple[Guest, Places] | None = None) -> None:
        self.program, self.tangents_of = program, tangents_of
        self._modules: dict[str, StableHloModule] = {}
        self._run = jax.jit(partial(_PROGRAM.bind, guest=self))

    def module(self, platform: str) -> StableHloModule:
        """Return the program lowered for a platform."""
        found = self._modules.get(platform)
        if found is None:
            found = self._modules[platform] = lower_to_stablehlo(self.program, platform)
        return found

    def run(self, *arrays: Any) -> Any:
        """Run on arrays outside ``jax.jit``."""
        with jax.disable_jit(False):
            return self._run(*arrays)

    def __repr__(self) -> str:
        return repr(self.program)


_PROGRAM: Final[Any] = Primitive("tenferro_program")
_PROGRAM.multiple_results = True
_PROGRAM.def_impl(lambda *arrays, guest: guest.run(*arrays))


def bind(guest: Guest, arrays: Sequence[Any]) -> list[Any]:
    """Call a program on JAX arrays or tracers of its shapes and dtypes."""
    return list(_PROGRAM.bind(*together(arrays), guest=guest))


@_PROGRAM.def_abstract_eval  # type: ignore[untyped-decorator]  # JAX has no types here
def _results(*operands: Any, guest: Guest) -> list[Any]:
    return types_of(guest.program.outputs, operands)


def _lowered(context: Any, *operands: Any, guest: Guest, platform: str) -> Any:
    module = guest.module(platform)

    def run(*arrays: Any) -> Sequence[Any]:
        found = bind_module(module, *arrays)
        if not module.checked:
            return found
        *outs, failed = found
        return [_or_nan(x, failed) for x in outs]

    with wide_numbers():
        return mlir.lower_fun(run, multiple_results=True)(context, *operands)


def _or_nan(x: Any, failed: Any) -> Any:
    """Replace the result of a failed step by NaN, JAX's convention, since devices cannot raise errors."""
    if not jax.numpy.issubdtype(x.dtype, jax.numpy.inexact):
        return x
    return jax.lax.select(failed, jax.lax.full_like(x, float("nan")), x)


for _platform in PLATFORMS:
    mlir.register_lowering(_PROGRAM, partial(_lowered, platform=_platform), platform=_platform)


def _batched(operands: Sequence[Any], axes: Sequence[int | None], *, guest: Guest) -> tuple[list[Any], list[int]]:
    size = next(x.shape[a] for x, a in zip(operands, axes, strict=True) if a is not None)
    lanes = tuple([None if a is None else 0 for a in axes])
    made = _derived(guest, ("vmap", lanes, size), lambda: Guest(_program_of_lanes(guest.program, lanes, size)))
    moved = [x if a is None else jax.numpy.moveaxis(x, a, 0) for x, a in zip(operands, axes, strict=True)]
    found = bind(made, moved)
    return found, [0] * len(found)


def _program_of_lanes(program: Program, lanes: Sequence[int | None], size: int) -> Program:
    inputs = [s if a is None else s.with_(shape=(size, *s.shape)) for s, a in zip(program.inputs, lanes, strict=True)]
    return trace(vmap(program.run, in_axes=tuple(lanes)), *inputs)


def _pushed(primals: Sequence[Any], tangents: Sequence[Any], *, guest: Guest) -> tuple[list[Any], list[Any]]:
    outs = bind(guest, primals)
    need = tuple(
        [
            i
            for i, (s, t) in enumerate(zip(guest.program.inputs, tangents, strict=True))
            if s.inexact and not isinstance(t, ad.Zero)
        ]
    )
    found: Any = iter(())
    if need and any(s.inexact for s in guest.program.outputs):
        made = _derived(guest, ("jvp", need), lambda: Guest(_rules().jvp(guest.program, need), (guest, need)))
        found = iter(bind(made, [*primals, *[tangents[i] for i in need]]))
    moving = [bool(need) and s.inexact for s in guest.program.outputs]
    return outs, [
        next(found) if there else ad.Zero(jax.typeof(y).to_tangent_aval())
        for y, there in zip(outs, moving, strict=True)
    ]


def _pulled(cotangents: Sequence[Any], *operands: Any, guest: Guest) -> list[Any]:
    need = tuple([i for i, x in enumerate(operands) if ad.is_undefined_primal(x)])
    active = tuple([i for i, c in enumerate(cotangents) if not isinstance(c, ad.Zero)])
    result = [ad.Zero(x.aval) if ad.is_undefined_primal(x) else None for x in operands]
    if not active:
        return result
    given = [cotangents[i] for i in active]
    known = [x for x in operands if not ad.is_undefined_primal(x)]
    made = _derived(guest, ("transpose", need, active), lambda: Guest(_program_of_cotangents(guest, need, active)))
    for i, found in zip(need, bind(made, [*known, *given]), strict=True):
        result[i] = found
    return result


def _program_of_cotangents(guest: Guest, need: Places, active: Places) -> Program:
    """Return the transpose; the transpose of a program of tangents in all tangents is the vjp."""
    if guest.tangents_of is not None:
        values, moved = guest.tangents_of
        count = len(values.program.inputs)
        if need == tuple(range(count, count + len(moved))):
            floating = [i for i, s in enumerate(values.program.outputs) if s.inexact]
            return _rules().vjp(values.program, moved, tuple([floating[i] for i in active]))
    return _rules().transpose(guest.program, need, active)


def _derived(guest: Guest, what: Any, make: Callable[[], Guest]) -> Guest:
    found: Guest = _DERIVED.get_or_make((guest, what), make)
    return found


def _rules() -> Derivatives:
    if not _installed:
        raise MissingRuleError(
            "derivatives of programs inside JAX require tenferro-ad: import tenferro_ad.adapters.jax"
        )
    return _installed[0]


batching.primitive_batchers[_PROGRAM] = _batched
ad.primitive_jvps[_PROGRAM] = _pushed
ad.primitive_transposes[_PROGRAM] = _pulled
