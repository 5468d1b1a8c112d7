"""`XlaCompiler`: what ``compile(f, backend="xla")`` runs programs by."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from tenferro_runtime.compilers import ProgramCompiler, compiled_by
from tenferro_runtime.extension import HOST, Place, PlacementError, Program
from tenferro_tensor import ComputeDevice
from tenferro_xla._at_host import at_host
from tenferro_xla._constants import passed
from tenferro_xla._executable import Executable
from tenferro_xla._jitted import jitted, put
from tenferro_xla._lower import lower_to_stablehlo
from tenferro_xla._places import jax_device


class XlaCompiler(ProgramCompiler):
    """Compiles programs by XLA: for the device that their arguments are on, or for one that is given.

    Arguments in main memory are computed on by XLA's CPU device, and results come back there. Other devices compute on
    arrays that are placed on them, and results stay.

    Args:
        device: ``"cpu"``, ``"cuda:0"`` and so on; an empty text leaves it to the arguments.

    Raises:
        BackendUnavailableError: there is no such device.

    >>> import tenferro_runtime as tr
    >>> tr.compile(lambda x: x * x, backend=XlaCompiler())(tr.asarray([1.0, 2.0]))
    Tensor([1., 4.])
    """

    def __init__(self, device: str = "") -> None:
        self.device = ComputeDevice(f"xla:{device if ':' in device else f'{device}:0'}") if device else None
        self.name = "xla" if self.device is None else str(self.device)
        if self.device is not None:
            jax_device(self.device)

    def executable(self, program: Program, donated: tuple[int, ...]) -> Callable[..., tuple[Any, ...]]:
        """As the contract says; memory is taken over where arrays are on a device."""
        device = self._device_of(program)
        near = device is None
        home = device or self.device or ComputeDevice("xla:cpu:0")
        lowered, large = passed(at_host(program))
        module, where = lower_to_stablehlo(lowered, home.kind.partition(":")[2]), jax_device(home)
        run = jitted(module, device=where, donate=() if near else usable(donated, program))
        if not (near or large or module.checked):
            return run  # type: ignore[no-any-return]
        return Executable(module, run, tuple([put(c, where) for c in large]), near=near)

    def _device_of(self, program: Program) -> ComputeDevice | None:
        """The device of XLA that arguments and results of a program are on; ``None`` for main memory.

        Raises:
            PlacementError: they are elsewhere, or on several devices, or not on that of this compiler.
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
                f"XLA runs a program on one device, but {seen}; bring them together with to_device",
                devices=sorted(map(str, devices)),
            )
        found = devices.pop() if devices else HOST.device
        wanted = self.device
        if found is HOST.device:
            if wanted is not None and wanted.kind != "xla:cpu":
                raise PlacementError(
                    f"{self.name} computes on memory of its own, but {seen}, in main memory; nothing is moved "
                    f"implicitly: place the arguments with .to_device({self.name!r})",
                    device=self.name,
                )
            return None
        if found.kind.partition(":")[0] != "xla" or wanted not in (None, found):
            raise PlacementError(
                f"the program is compiled by {self.name}, but {seen}; place the arguments with "
                f".to_device({str(wanted or 'xla:cpu:0')!r}), or leave backend= out",
                device=str(found),
            )
        return found


def usable(donated: tuple[int, ...], program: Program) -> tuple[int, ...]:
    """Those of the donated inputs whose memory some output fits into; XLA has no use for others."""
    outputs = list(program.outputs)
    found = []
    for i in donated:
        if program.inputs[i] in outputs:
            outputs.remove(program.inputs[i])
            found.append(i)
    return tuple(found)


def make_compiler(device: str = "") -> XlaCompiler:
    """The entry point ``tenferro.compilers``."""
    return XlaCompiler(device)


def compiled(device: str = "") -> AbstractContextManager[ProgramCompiler]:
    """Context manager: compiled functions that are called inside run by XLA, as with ``compile(f, backend="xla")``.

    Functions that were compiled with a backend or a placement of their own, or to be deterministic, keep to that.

    Args:
        device: ``"cpu"``, ``"cuda:0"`` and so on; by default that of the arguments.

    Raises:
        BackendUnavailableError: JAX is missing, or it has no such device.

    >>> import tenferro_runtime as tr
    >>> double = tr.compile(lambda x: 2 * x)
    >>> with compiled():
    ...     double(tr.asarray([1.0, 2.0]))
    Tensor([2., 4.])
    """
    return compiled_by(f"xla:{device}" if device else "xla")
