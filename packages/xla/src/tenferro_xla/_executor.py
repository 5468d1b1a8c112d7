"""Compiling and running StableHLO modules by PJRT, through jaxlib."""

from __future__ import annotations

from typing import Any

import numpy as np

from tenferro_runtime.extension import BoundedCache, NumericalError, Program, ProgramError, Tensor, tensor
from tenferro_runtime.ir import concrete
from tenferro_tensor_core import BackendUnavailableError, PlacementError
from tenferro_xla._lower import StableHloModule, lower_to_stablehlo


class XlaExecutor:
    """Runs programs by XLA on one device of a platform.

    Executables are kept by the fingerprint of their module, in a bounded cache of this executor.

    Args:
        platform: PJRT platform, ``"cpu"``, ``"cuda"`` or ``"rocm"``.
        index: number of the device on it.

    Raises:
        BackendUnavailableError: jaxlib is missing, or it has no such device.

    >>> from tenferro_runtime import trace
    >>> square = trace(lambda x: x * x, np.arange(3.0))
    >>> XlaExecutor().run(square, np.arange(3.0))
    (Tensor([0., 1., 4.]),)
    """

    def __init__(self, platform: str = "cpu", index: int = 0) -> None:
        self._platform, self._device = platform, _device(platform, index)
        self.cache: BoundedCache[str, Any] = BoundedCache(f"tenferro_xla: executables for {platform}:{index}", 256)

    def compile(self, program: Program | StableHloModule) -> XlaExecutable:
        """The executable of a program or module, from the cache where it has been compiled before.

        Raises:
            ArgumentError: it is neither.
            PlacementError: its inputs or outputs are not in main memory.
        """
        module = program if isinstance(program, StableHloModule) else lower_to_stablehlo(program, self._platform)
        _require_main_memory(module)
        loaded = self.cache.get_or_make(module.fingerprint, lambda: self._load(module))
        return XlaExecutable(module, loaded, self._device)

    def run(self, program: Program | StableHloModule, *values: Any) -> tuple[Tensor, ...]:
        """Compile (once) and run on tensors or host arrays of the program's specs.

        A program with symbolic sizes is compiled for those of the values.
        """
        if isinstance(program, Program) and program.symbolic:
            values = tuple([v if isinstance(v, Tensor) else tensor(v) for v in values])
            program = concrete(program, [v.spec for v in values])
        return self.compile(program)(*values)

    def _load(self, module: StableHloModule) -> Any:
        from jaxlib import xla_client

        client = self._device.client
        devices = xla_client._xla.DeviceList((self._device,))
        options = xla_client.CompileOptions()
        # Else XLA leaves out the rounding of narrow floats between the steps that it fuses.
        options.env_option_overrides = [("xla_allow_excess_precision", False)]
        return client.compile_and_load(module.text, devices, options)


class XlaExecutable:
    """A compiled module; call it with tensors or host arrays.

    Attributes:
        module: what was compiled.
    """

    __slots__ = ("_device", "_loaded", "module")

    def __init__(self, module: StableHloModule, loaded: Any, device: Any) -> None:
        self.module, self._loaded, self._device = module, loaded, device

    def __call__(self, *values: Any) -> tuple[Tensor, ...]:
        """Run; the arguments must have the specs that the program was traced for.

        Where a step fails, the program runs once more on the CPU backend, whose error says what is wrong, and where.

        Raises:
            ProgramError: the arguments are not those of the program.
            NumericalError: a step failed here, but not on the CPU backend.
        """
        expected = self.module.inputs
        if len(values) != len(expected):
            raise ProgramError(
                f"the module takes {len(expected)} arrays, got {len(values)}", expected=len(expected), given=len(values)
            )
        arrays = [v if isinstance(v, Tensor) else tensor(v) for v in values]
        for i, (x, s) in enumerate(zip(arrays, expected, strict=True)):
            if x.spec is not s:
                raise ProgramError(
                    f"argument {i} of the module is {s!r}, got {x.spec!r}; convert it, or trace the function for it",
                    argument=i,
                )
        results = self._loaded.execute_sharded([_put(x._concrete(), self._device) for x in arrays])
        parts = results.disassemble_into_single_device_arrays()
        if self.module.checked and bool(np.asarray(parts.pop()[0])):
            self.module.program.run(*arrays)
            raise NumericalError(
                "a step of the program failed in XLA, though the CPU backend runs it: a matrix is at the edge of being "
                "singular, indefinite or degenerate, and rounding decides"
            )
        return tuple(Tensor.wrap(np.asarray(p[0]), s) for p, s in zip(parts, self.module.outputs, strict=True))


def _require_main_memory(module: StableHloModule) -> None:
    """Arguments and results pass through main memory, whatever device XLA computes on."""
    for what, specs in (("argument", module.inputs), ("result", module.outputs)):
        for i, spec in enumerate(specs):
            if not spec.place.on_host:
                raise PlacementError(
                    f"{what} {i} of the program is {spec!r}, but XlaExecutor takes and returns tensors in main memory; "
                    "move the arrays there with .to_device('cpu:0') and trace the function for them",
                    device=str(spec.place.device),
                )


def _put(array: np.ndarray[Any, Any], device: Any) -> Any:
    """A device array with exactly these bytes: jax's own ``device_put`` would narrow float64."""
    from jax.core import ShapedArray
    from jax.sharding import SingleDeviceSharding
    from jaxlib import xla_client

    aval = ShapedArray(array.shape, array.dtype)
    put = xla_client._xla.batched_device_put
    return put(aval, SingleDeviceSharding(device), [np.ascontiguousarray(array)], [device], enable_x64=True)


def _device(platform: str, index: int) -> Any:
    try:
        import jax
    except ImportError as cause:
        raise BackendUnavailableError(
            "running StableHLO needs jaxlib's PJRT client, which is not installed; pip install tenferro-xla",
            platform=platform,
        ) from cause
    try:
        devices = jax.local_devices(backend=platform)
    except RuntimeError as cause:
        raise BackendUnavailableError(
            f"jaxlib has no {platform!r} devices here ({cause}); install jax with that platform, or use platform='cpu'",
            platform=platform,
        ) from cause
    if not 0 <= index < len(devices):
        raise BackendUnavailableError(
            f"there is no device {platform}:{index}; jaxlib sees {len(devices)} of them", platform=platform, index=index
        )
    return devices[index]
