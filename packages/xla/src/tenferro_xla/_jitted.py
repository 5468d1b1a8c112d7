"""StableHLO modules as functions compiled by JAX; this package runs everything through them.

- `jitted` compiles a module for a device, or for shardings over several devices, and caches the executable.
- `bind` calls a module inside a function that JAX traces (under ``jax.jit``, ``shard_map``, ``jax.export``).
- `put` makes JAX arrays from host arrays, bit by bit; in the scope of `wide_numbers` JAX keeps 64-bit numbers.

Calls with JAX arrays need no scope. Calls with NumPy arrays must be inside `wide_numbers`; otherwise JAX narrows them.
Nothing here changes a setting of the process.

Execution is asynchronous: a call returns before the results are computed and reads its arguments in the meantime. JAX
shares the memory of NumPy arrays that are aligned to 64 bytes, in `put` and in calls. A caller whose memory others may
write to must copy it first or wait for the results, for example with `numpy.asarray`. Results share memory only with
donated arguments.
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

# By default XLA omits the rounding of narrow floats between fused steps.
_COMPILER_OPTIONS: Final = {"xla_allow_excess_precision": False}


def jitted(
    module: StableHloModule,
    *,
    device: Any = None,
    donate: Sequence[int] = (),
    in_shardings: Sequence[Any] | None = None,
    out_shardings: Sequence[Any] | None = None,
) -> Any:
    """Compile a module, or return its executable from a bounded cache.

    Args:
        module: the module; with shardings, its shapes are those of whole arrays.
        device: the JAX device that holds all arguments and results; by default the first device of the platform that
            the module was lowered for. Ignored with `in_shardings`.
        donate: positions of the arguments whose memory the results may reuse; these arrays are invalid afterwards.
        in_shardings: a `jax.sharding.Sharding` for each argument.
        out_shardings: a sharding for each result of ``main``, including the failure flag; ``None`` lets XLA choose. By
            default all results are on `device`, or, with `in_shardings`, XLA chooses.

    Returns:
        A ``jax.stages.Compiled``, which takes JAX arrays in these placements and returns a tuple of JAX arrays; the
        last result of a `checked` module is the failure flag.
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
    """Compile a module like `jitted`, without a cache."""
    jax = library()
    where: Any
    if in_shardings is None:
        where = jax.sharding.SingleDeviceSharding(device or jax.local_devices(backend=module.platform)[0])
        # The results are placed like the arguments; specifying both makes compilation a third slower.
        placed: dict[str, Any] = {"in_shardings" if module.inputs else "out_shardings": where}
    else:
        placed = {"in_shardings": tuple(in_shardings)}
    if out_shardings is not None:
        placed["out_shardings"] = tuple(out_shardings)

    def tenferro_program(*arrays: Any) -> tuple[Any, ...]:
        return bind(module, *arrays)

    with wide_numbers():
        # Unused arguments are kept, since callers pass all of them.
        function = jax.jit(
            tenferro_program,
            donate_argnums=tuple(donate),
            keep_unused=True,
            compiler_options=_COMPILER_OPTIONS,
            **placed,
        )
        return function.lower(*[jax.ShapeDtypeStruct(s.shape, s.dtype) for s in module.inputs]).compile()


def bind(module: StableHloModule, *arrays: Any) -> tuple[Any, ...]:
    """Call ``main`` of a module inside a function that JAX traces.

    JAX can neither differentiate nor batch this call.

    Args:
        module: the module.
        arrays: JAX arrays or tracers of exactly the shapes and dtypes of the module's inputs.

    Returns:
        The results of ``main``; the last one of a `checked` module is the failure flag.
    """
    with importing():
        from tenferro_xla import _stablehlo_primitive

    return _stablehlo_primitive.bind(module, *arrays)


def put(array: Any, where: Any) -> Any:
    """Make a JAX array of the same elements; it may share their memory, which must not change afterwards.

    Args:
        array: a NumPy or JAX array.
        where: a JAX device or sharding.

    Returns:
        The ``jax.Array``, of the same shape and dtype.
    """
    with wide_numbers():
        return library().device_put(array, where)


def _key(shardings: Sequence[Any] | None) -> Any:
    return None if shardings is None else tuple(shardings)
