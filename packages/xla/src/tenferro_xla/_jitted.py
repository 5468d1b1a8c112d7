"""StableHLO modules as functions that JAX has compiled: the one way in which this package runs anything.

- `jitted` compiles a module for a device, or for shardings over several, and keeps what it has compiled.
- `bind` calls a module inside of a function that JAX traces (under ``jax.jit``, ``shard_map``, ``jax.export``).
- `put` makes arrays of JAX out of host arrays, bit by bit; `wide_numbers` is the scope in which JAX keeps 64 bits.

What is called with arrays of JAX needs no scope: their dtypes are what they are. NumPy arrays may be passed, too, but
only inside of `wide_numbers`, else JAX narrows them. Nothing here changes a setting of the process.

Execution is asynchronous: a call returns before the results are computed, and reads its arguments meanwhile. JAX shares
the memory of NumPy arrays that are aligned to 64 bytes, with `put` as in calls. Whoever passes memory that others may
write to copies it before, or waits for the results, as `numpy.asarray` of them does. Results never share memory with
arguments that are not donated.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from tenferro_runtime.extension import BoundedCache
from tenferro_tensor_core.forks import importing
from tenferro_xla._jax_modules import library, wide_numbers
from tenferro_xla._lower import StableHloModule

__all__ = ["bind", "compiled", "jitted", "put", "wide_numbers"]

_COMPILED: Final[BoundedCache[Any, Any]] = BoundedCache("tenferro_xla: modules compiled by JAX", 512)

# Else XLA leaves out the rounding of narrow floats between the steps that it fuses.
_COMPILER_OPTIONS: Final = {"xla_allow_excess_precision": False}


def jitted(
    module: StableHloModule,
    *,
    device: Any = None,
    donate: Sequence[int] = (),
    in_shardings: Sequence[Any] | None = None,
    out_shardings: Sequence[Any] | None = None,
) -> Any:
    """The executable of a module, from a bounded cache where it has been compiled before.

    Args:
        module: the module; with shardings, its shapes are those of whole arrays.
        device: a device of JAX that holds all arguments and results; by default the first one of the platform for
            which the module was lowered. It is ignored where `in_shardings` is given.
        donate: positions of the arguments whose memory the results may take over; these arrays are gone afterwards.
        in_shardings: a `jax.sharding.Sharding` for each argument.
        out_shardings: one for each result of ``main``, the failure flag included, or ``None`` where XLA chooses; by
            default all are on `device`, or XLA chooses, where `in_shardings` is given.

    Returns:
        A ``jax.stages.Compiled``: call it with arrays of JAX that are placed as said, and it returns a tuple of them,
        with the failure flag of a `checked` module as the last one.
    """
    key = (module.fingerprint, module.checked, device, tuple(donate), _key(in_shardings), _key(out_shardings))
    return _COMPILED.get_or_make(
        key,
        lambda: compiled(module, device=device, donate=donate, in_shardings=in_shardings, out_shardings=out_shardings),
    )


def compiled(
    module: StableHloModule,
    *,
    device: Any = None,
    donate: Sequence[int] = (),
    in_shardings: Sequence[Any] | None = None,
    out_shardings: Sequence[Any] | None = None,
) -> Any:
    """As `jitted`, without a cache."""
    jax = library()
    where: Any
    if in_shardings is None:
        where = jax.sharding.SingleDeviceSharding(device or jax.local_devices(backend=module.platform)[0])
        # Results are where the arguments are; to say it of both takes XLA a third longer to compile.
        placed: dict[str, Any] = {"in_shardings" if module.inputs else "out_shardings": where}
    else:
        placed = {"in_shardings": tuple(in_shardings)}
    if out_shardings is not None:
        placed["out_shardings"] = tuple(out_shardings)

    def tenferro_program(*arrays: Any) -> tuple[Any, ...]:
        return bind(module, *arrays)

    with wide_numbers():
        # All arguments are kept: whoever calls passes all of them.
        function = jax.jit(
            tenferro_program,
            donate_argnums=tuple(donate),
            keep_unused=True,
            compiler_options=_COMPILER_OPTIONS,
            **placed,
        )
        return function.lower(*[jax.ShapeDtypeStruct(s.shape, s.dtype) for s in module.inputs]).compile()


def bind(module: StableHloModule, *arrays: Any) -> tuple[Any, ...]:
    """Call ``main`` of a module inside of a function that JAX traces.

    The results are those of ``main``, with the failure flag of a `checked` module as the last one. JAX can neither
    differentiate nor batch this call.

    Args:
        module: the module.
        arrays: arrays or tracers of JAX, of exactly the shapes and dtypes of the module's inputs.
    """
    with importing():
        from tenferro_xla import _stablehlo_primitive

    return _stablehlo_primitive.bind(module, *arrays)


def put(array: Any, where: Any) -> Any:
    """An array of JAX with exactly these elements; it may share their memory, which must not change afterwards.

    Args:
        array: a NumPy array, or an array of JAX.
        where: a device of JAX, or a sharding.
    """
    with wide_numbers():
        return library().device_put(array, where)


def _key(shardings: Sequence[Any] | None) -> Any:
    return None if shardings is None else tuple(shardings)
