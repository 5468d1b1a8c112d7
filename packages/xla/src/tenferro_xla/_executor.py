"""Compiling and running StableHLO modules with XLA, on tensors in main memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from tenferro_runtime.extension import BoundedCache, NumericalError, Program, ProgramError, Tensor, tensor
from tenferro_runtime.ir import concrete
from tenferro_tensor_core import BackendUnavailableError, PlacementError
from tenferro_xla._jax_modules import library, wide_numbers
from tenferro_xla._jitted import compiled
from tenferro_xla._lower import StableHloModule, lower_to_stablehlo


class XlaExecutor:
    """Runs programs with XLA on one device of a platform.

    The executor caches executables by the fingerprint of their module, in a bounded cache.

    Args:
        platform: PJRT platform, ``"cpu"``, ``"cuda"`` or ``"rocm"``.
        index: index of the device on the platform.

    Attributes:
        cache: the executables.

    Raises:
        BackendUnavailableError: JAX is missing, or has no such device.

    >>> from tenferro_runtime import trace
    >>> square = trace(lambda x: x * x, np.arange(3.0))
    >>> XlaExecutor().run(square, np.arange(3.0))
    (Tensor([0., 1., 4.]),)
    """

    def __init__(self, platform: str = "cpu", index: int = 0) -> None:
        self._platform, self._device = platform, _device(platform, index)
        self.cache: BoundedCache[str, Any] = BoundedCache(f"tenferro_xla: executables for {platform}:{index}", 256)

    def compile(self, program: Program | StableHloModule) -> XlaExecutable:
        """Compile a program or module, or return its cached executable.

        Args:
            program: a program of fixed sizes, or a module.

        Returns:
            The executable.

        Raises:
            ArgumentError: `program` is neither a program nor a module.
            PlacementError: an input or output is not in main memory.
            UnsupportedError: a primitive has no lowering, or a size is symbolic.
        """
        module = program if isinstance(program, StableHloModule) else lower_to_stablehlo(program, self._platform)
        _require_main_memory(module)
        found = self.cache.get_or_make(module.fingerprint, lambda: compiled(module, device=self._device))
        return XlaExecutable(module, found)

    def run(self, program: Program | StableHloModule, *values: Any) -> tuple[Tensor, ...]:
        """Compile a program once and run it; symbolic sizes take the values of the arguments.

        Args:
            program: a program or a module.
            values: tensors or host arrays with the shapes and dtypes of its inputs.

        Returns:
            Its results, with the shapes and dtypes of its outputs.

        Raises:
            ProgramError: the arguments do not have the specs of the inputs.
            NumericalError: a step failed in XLA, though the CPU backend runs it.
        """
        if isinstance(program, Program) and program.symbolic:
            values = tuple([v if isinstance(v, Tensor) else tensor(v) for v in values])
            program = concrete(program, [v.spec for v in values])
        return self.compile(program)(*values)


class XlaExecutable:
    """A compiled module, made by `XlaExecutor.compile`; call it with tensors or host arrays.

    Attributes:
        module: the module that was compiled.
    """

    __slots__ = ("_compiled", "module")

    module: StableHloModule

    def __init__(self, module: StableHloModule, compiled: Any) -> None:
        self.module, self._compiled = module, compiled

    def __call__(self, *values: Any) -> tuple[Tensor, ...]:
        """Run the module; the arguments must have the specs that the program was traced for.

        When a step fails, the program runs again on the CPU backend, whose error names the step and the line.

        Raises:
            ProgramError: the arguments do not have the specs of the inputs.
            NumericalError: a step failed in XLA, though the CPU backend runs it.
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
        with wide_numbers():
            # The call is asynchronous and shares the arguments' memory; reading the results below waits for it.
            results = self._compiled(*[x._concrete() for x in arrays])
        found = [np.asarray(y) for y in results]
        if self.module.checked and found.pop():
            self.module.program.run(*arrays)
            raise NumericalError(
                "a step of the program failed in XLA, though the CPU backend runs it: a matrix is so close to being "
                "singular, indefinite or degenerate that rounding decides"
            )
        return tuple([Tensor.wrap(y, s) for y, s in zip(found, self.module.outputs, strict=True)])


def _require_main_memory(module: StableHloModule) -> None:
    """Raise unless all arguments and results are in main memory; XLA copies them to its device."""
    for what, specs in (("argument", module.inputs), ("result", module.outputs)):
        for i, spec in enumerate(specs):
            if not spec.place.on_host:
                raise PlacementError(
                    f"{what} {i} of the program is {spec!r}, but XlaExecutor takes and returns tensors in main memory; "
                    "move the arrays there with .to_device('cpu:0') and trace the function for them",
                    device=str(spec.place.device),
                )


def _device(platform: str, index: int) -> Any:
    try:
        jax = library()
    except ImportError as cause:
        raise BackendUnavailableError(
            "running StableHLO requires JAX, which is not installed; pip install tenferro-xla",
            platform=platform,
        ) from cause
    try:
        devices = jax.local_devices(backend=platform)
    except RuntimeError as cause:
        raise BackendUnavailableError(
            f"JAX has no {platform!r} devices here ({cause}); install jax with that platform, or use platform='cpu'",
            platform=platform,
        ) from cause
    if not 0 <= index < len(devices):
        raise BackendUnavailableError(
            f"no device {platform}:{index}; JAX has {len(devices)} devices of this platform",
            platform=platform,
            index=index,
        )
    return devices[index]
