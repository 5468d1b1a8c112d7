"""`XlaBackend`: values on XLA devices, and eager operations on them, each compiled as a program of one step."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import numpy as np

from tenferro_runtime.extension import HOST, REGISTRY, BoundedCache, Builder, Op, Program, Spec, catalog
from tenferro_runtime.ir import ProgramPrimitive
from tenferro_tensor import SCALARS, Backend, ComputeDevice, HostKernel, falling_back
from tenferro_tensor.expansions import Expansion
from tenferro_tensor.reference import placement
from tenferro_tensor_core import BackendUnavailableError, UnsupportedError
from tenferro_xla._at_host import op_at_host
from tenferro_xla._executable import Executable, Run, executable_of
from tenferro_xla._jax_modules import library, wide_numbers
from tenferro_xla._jitted import jitted, put
from tenferro_xla._lower import StableHloModule, lower_to_stablehlo
from tenferro_xla._places import jax_device, jax_devices
from tenferro_xla.lowerings import CORE

_SINGLE_OPS: Final[BoundedCache[Any, Run]] = BoundedCache("tenferro_xla: operations compiled one by one", 1024)

_SHARED_ALIGNMENT: Final = 64
"""JAX shares the memory of NumPy arrays with this alignment in bytes instead of copying them."""


class XlaBackend(Backend):
    """The devices ``xla:<platform>:<i>``; raw arrays are JAX arrays with exactly the dtypes of the tensors.

    `XlaCompiler` compiles whole programs; this backend runs an eager operation as a program of one step.

    Args:
        platform: ``"cpu"``, ``"cuda"``, ``"rocm"`` or ``"tpu"``.

    Raises:
        BackendUnavailableError: JAX is missing, or has no devices of this platform.
    """

    name: str
    platform: str

    def __init__(self, platform: str) -> None:
        self.name, self.platform = f"xla:{platform}", platform
        jax_devices(platform)

    def devices(self) -> tuple[ComputeDevice, ...]:
        """The devices that this process computes on."""
        return tuple([ComputeDevice(f"{self.name}:{i}") for i in range(len(jax_devices(self.platform)))])

    def info(self) -> dict[str, Any]:
        """The version of JAX and its devices."""
        jax = library()
        return {"jax": jax.__version__, "devices": ", ".join(d.device_kind for d in jax_devices(self.platform))}

    def upload(self, array: np.ndarray[Any, Any], device: ComputeDevice) -> Any:
        """Copy an array to a device, with its dtype unchanged whatever JAX's default is.

        Args:
            array: host array of any shape and dtype.
            device: the destination.

        Returns:
            The ``jax.Array`` of the same shape and dtype, ready to be read.

        Raises:
            BackendUnavailableError: JAX has no such device.
        """
        host = np.asarray(array)
        if not host.ctypes.data % _SHARED_ALIGNMENT:
            host = host.copy()
        raw = put(host, jax_device(device))
        raw.block_until_ready()  # JAX reads from `host` until then
        return raw

    def download(self, raw: Any) -> np.ndarray[Any, Any]:
        """Return the elements in main memory; on the platform ``cpu`` without a copy.

        Args:
            raw: a ``jax.Array`` of any shape and dtype.

        Returns:
            The host array of the same shape and dtype.
        """
        return np.asarray(raw)

    def synchronize(self) -> None:
        """Wait for all arrays of the platform."""
        for array in library().live_arrays(self.platform):
            array.block_until_ready()

    def compiler(self, device: ComputeDevice) -> str | None:
        """The name of the compiler for a device: XLA for this device.

        Args:
            device: the device.

        Returns:
            The device as text, for example ``"xla:cpu:0"``.
        """
        return str(device)

    def kernel(
        self, op: Op, ins: tuple[Spec, ...], outs: tuple[Spec, ...], device: ComputeDevice
    ) -> Callable[..., Any]:
        """Return the kernel of an op: the op compiled as a program of one step, or its generic kernel.

        Args:
            op: the op.
            ins: specs of its operands.
            outs: specs of its results.
            device: the device to compute on.

        Returns:
            A function of raw arrays that returns a raw array, or a tuple of them.

        Raises:
            PlacementError: JAX has no such device.
            UnsupportedError: the op has neither a lowering nor a generic kernel.
        """
        p = op.primitive
        if p is catalog.transfer:
            return placement.transfer(ins, outs, **op.params)
        self.require(device)
        generic = REGISTRY.find("kernel", p, self.name)
        if isinstance(p, ProgramPrimitive) and generic is not None:
            return generic(ins, outs, **op.params)  # type: ignore[no-any-return]
        if p not in CORE:
            try:
                self._module(op, ins)
            except UnsupportedError as cause:
                if generic is not None and not isinstance(generic, Expansion):
                    return generic(ins, outs, **op.params)  # type: ignore[no-any-return]
                here = REGISTRY.find("kernel", p, "cpu")
                if here is None or not falling_back():
                    raise
                refusal = partial(UnsupportedError, str(cause), primitive=p.name, device=str(device))
                return HostKernel(self, device, here, ins, outs, op.params, refusal)
        return OneStep(self, op, ins, device, many=isinstance(op.infer(*ins), tuple))

    def step(self, op: Op, operands: tuple[Spec, ...], device: ComputeDevice) -> Run:
        """Compile one op for operands of the given specs.

        Args:
            op: the op.
            operands: specs of its operands.
            device: the device to compute on.

        Returns:
            The executable.

        Raises:
            UnsupportedError: the op has no lowering.
        """
        where = jax_device(device)
        return executable_of(
            one_step(op, operands), self.platform, lambda module: Executable(module, jitted(module, device=where))
        )

    def _module(self, op: Op, operands: tuple[Spec, ...]) -> StableHloModule:
        return lower_to_stablehlo(one_step(op, operands), self.platform)


class OneStep:
    """The kernel of an op: one executable per combination of shapes, since element-wise operands broadcast.

    Args:
        backend: compiles it.
        op: the op.
        ins: specs of the operands; operands of element-wise ops may have smaller shapes or be numbers.
        device: the device to compute on.
        many: whether the op returns a tuple.
    """

    __slots__ = ("_backend", "_device", "_dtypes", "_many", "_op")

    def __init__(
        self, backend: XlaBackend, op: Op, ins: tuple[Spec, ...], device: ComputeDevice, *, many: bool
    ) -> None:
        self._backend, self._op, self._device, self._many = backend, op, device, many
        self._dtypes = tuple([s.dtype for s in ins])

    def __call__(self, *raws: Any) -> Any:
        if SCALARS.isdisjoint([x.__class__ for x in raws]):
            out = self._run(raws)
        else:
            pairs = zip(raws, self._dtypes, strict=True)
            given = tuple([np.asarray(x, dtype) if x.__class__ in SCALARS else x for x, dtype in pairs])
            with wide_numbers():
                out = self._run(given)
        return out if self._many else out[0]

    def _run(self, given: tuple[Any, ...]) -> tuple[Any, ...]:
        key = (self._op, self._device, tuple([x.shape for x in given]), self._dtypes)
        run = _SINGLE_OPS.get(key)
        if run is None:
            specs = tuple([Spec(x.shape, dtype) for x, dtype in zip(given, self._dtypes, strict=True)])
            run = _SINGLE_OPS.put(key, self._backend.step(self._op, specs, self._device))
        return run(*given)


def one_step(op: Op, operands: tuple[Spec, ...]) -> Program:
    """Return an op as a program of one equation, placed in main memory."""
    builder = Builder()
    values = tuple([builder.input(s.with_(place=HOST)) for s in operands])
    out = builder.bind(op_at_host(op), values)
    return builder.close(list(out) if isinstance(out, tuple) else [out])


def make_backend(platform: str = "") -> XlaBackend:
    """Make the backend of a platform; the entry point ``tenferro.backends``.

    Args:
        platform: the second part of the device's name: ``"cpu"``, ``"cuda"``, ``"rocm"`` or ``"tpu"``.

    Returns:
        The backend.

    Raises:
        BackendUnavailableError: no platform is named, JAX is missing, or it has no devices of the platform.

    >>> make_backend("cpu").name
    'xla:cpu'
    """
    if not platform:
        raise BackendUnavailableError(
            "the name of an XLA device includes its platform: use 'xla:cpu:0', 'xla:cuda:0', 'xla:rocm:0' or "
            "'xla:tpu:0'",
            backend="xla",
        )
    return XlaBackend(platform)
