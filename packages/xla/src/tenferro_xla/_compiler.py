"""`XlaCompiler`: the compiler behind ``compile(f, backend="xla")``."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from tenferro_runtime.compilers import ProgramCompiler, compiled_by
from tenferro_runtime.extension import HOST, Place, PlacementError, Program
from tenferro_tensor import ComputeDevice
from tenferro_xla._at_host import at_host
from tenferro_xla._constants import passed
from tenferro_xla._executable import Executable, HostExecutable, Run, executable_of
from tenferro_xla._jitted import jitted, put
from tenferro_xla._lower import StableHloModule
from tenferro_xla._places import host_device, jax_device


class XlaCompiler(ProgramCompiler):
    """Compiles programs with XLA, for the device of their arguments or for a given one.

    XLA's CPU device computes on arguments in main memory, and the results are in main memory too. Other devices compute
    on arrays that are placed on them, and the results stay there.

    Args:
        device: ``"cpu"``, ``"cuda:0"`` and so on; the empty string selects the device of the arguments.

    Attributes:
        device: the given device, or ``None``.
        name: name of the compiler in reports.

    Raises:
        BackendUnavailableError: JAX is missing, or has no such device.

    >>> import tenferro_runtime as tr
    >>> tr.compile(lambda x: x * x, backend=XlaCompiler())(tr.asarray([1.0, 2.0]))
    Tensor([1., 4.])
    """

    device: ComputeDevice | None
    name: str
    borrows = True

    def __init__(self, device: str = "") -> None:
        self.device = ComputeDevice(f"xla:{device if ':' in device else f'{device}:0'}") if device else None
        self.name = "xla" if self.device is None else str(self.device)
        if self.device is not None:
            jax_device(self.device)

    def executable(self, program: Program, donated: tuple[int, ...]) -> Callable[..., tuple[Any, ...]]:
        """Compile a program; see `ProgramCompiler`.

        Args:
            program: a program of fixed sizes.
            donated: positions of donated arguments; only memory on a device is reused.

        Returns:
            A function of raw arrays that returns a tuple of raw arrays.

        Raises:
            PlacementError: the values are not all on the device that the program is compiled for.
            UnsupportedError: a primitive has no lowering.
        """
        device = self._device_of(program)
        near, large = passed(at_host(program))
        where = host_device() if device is None else jax_device(device)
        constants = tuple([put(c, where) for c in large])
        if device is None:
            return executable_of(near, "cpu", lambda m: HostExecutable(m, jitted(m, device=where), constants))
        given = usable(donated, program)

        def compiled(module: StableHloModule) -> Run:
            run: Run = jitted(module, device=where, donate=given)
            return Executable(module, run, constants) if large or module.checked else run

        # Donated memory is gone when a second run would need it.
        return executable_of(near, device.kind.partition(":")[2], compiled, optimistic=not given)

    def _device_of(self, program: Program) -> ComputeDevice | None:
        """Return the XLA device of the arguments and results of a program; ``None`` for main memory.

        Raises:
            PlacementError: they are on several devices, or on a device that this compiler does not compile for.
        """
        kinds = [("argument", s) for s in program.inputs] + [("result", s) for s in program.outputs]
        places: dict[Place, str] = {}
        for i, (what, spec) in enumerate(kinds):
            number = i if what == "argument" else i - len(program.inputs)
            places.setdefault(spec.place, f"{what} {number} is {spec!r}")
        devices = {place.device if not place.on_host else HOST.device for place in places}
        seen = "; ".join(places.values())
        if len(devices) > 1:
            raise PlacementError(
                f"XLA runs a program on one device, but {seen}; move them to one device with to_device",
                devices=sorted(map(str, devices)),
            )
        found = devices.pop() if devices else HOST.device
        wanted = self.device
        if found is HOST.device:
            if wanted is not None and wanted.kind != "xla:cpu":
                raise PlacementError(
                    f"{self.name} computes on its own memory, but {seen}, in main memory; tenferro moves nothing "
                    f"implicitly: place the arguments with .to_device({self.name!r})",
                    device=self.name,
                )
            return None
        if found.kind.partition(":")[0] != "xla" or wanted not in (None, found):
            raise PlacementError(
                f"the program is compiled by {self.name}, but {seen}; place the arguments with "
                f".to_device({str(wanted or 'xla:cpu:0')!r}), or omit backend=",
                device=str(found),
            )
        return found


def usable(donated: tuple[int, ...], program: Program) -> tuple[int, ...]:
    """Return the donated inputs whose memory some output can reuse; XLA ignores the others."""
    outputs = list(program.outputs)
    found = []
    for i in donated:
        if program.inputs[i] in outputs:
            outputs.remove(program.inputs[i])
            found.append(i)
    return tuple(found)


def make_compiler(device: str = "") -> XlaCompiler:
    """Make the compiler for a device; the entry point ``tenferro.compilers``.

    Args:
        device: ``"cpu"``, ``"cuda:0"`` and so on; the empty string selects the device of the arguments.

    Returns:
        The compiler.

    Raises:
        BackendUnavailableError: JAX is missing, or has no such device.

    >>> make_compiler("cpu").name
    'xla:cpu:0'
    """
    return XlaCompiler(device)


def compiled(device: str = "") -> AbstractContextManager[ProgramCompiler]:
    """Run compiled functions with XLA inside a ``with`` block, as with ``compile(f, backend="xla")``.

    Functions compiled with an explicit backend or placement, or as deterministic, are not affected.

    Args:
        device: ``"cpu"``, ``"cuda:0"`` and so on; by default the device of the arguments.

    Returns:
        The context manager; it yields the compiler.

    Raises:
        BackendUnavailableError: JAX is missing, or has no such device.

    >>> import tenferro_runtime as tr
    >>> double = tr.compile(lambda x: 2 * x)
    >>> with compiled():
    ...     double(tr.asarray([1.0, 2.0]))
    Tensor([2., 4.])
    """
    return compiled_by(f"xla:{device}" if device else "xla")
