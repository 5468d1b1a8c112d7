"""`MeshExecutable`: a program compiled for all devices of a mesh."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final, NamedTuple, NoReturn

from tenferro_runtime.extension import ArgumentError, NumericalError, Program
from tenferro_xla._jitted import compiled
from tenferro_xla._lower import StableHloModule, lower_to_stablehlo
from tenferro_xla.distributed import losses_named
from tenferro_xla.mesh._array import ShardedArray
from tenferro_xla.mesh._mesh import Mesh
from tenferro_xla.mesh._spec import PartitionSpec, local_shape

COLLECTIVES: Final = ("all-reduce", "all-gather", "reduce-scatter", "collective-permute", "all-to-all")
"""XLA's names of the collective operations."""


class DeviceMemory(NamedTuple):
    """Memory that an executable needs on one device, in bytes, by XLA's analysis.

    Attributes:
        arguments: bytes of its parts of the arguments.
        results: bytes of its parts of the results.
        temporaries: bytes of intermediate values.
        donated: bytes of results in the memory of donated arguments.
    """

    arguments: int
    results: int
    temporaries: int
    donated: int

    @property
    def total(self) -> int:
        """Total number of bytes."""
        return self.arguments + self.results + self.temporaries - self.donated


class MeshExecutable:
    """A program compiled by XLA's partitioner for all devices of a mesh.

    Args:
        mesh: the mesh.
        program: a program of fixed sizes.
        in_specs: how to split each argument.
        out_specs: how to split each result; ``None`` lets XLA choose.
        donate: positions of donated arguments.

    Attributes:
        mesh: the mesh.
        program: the program.
        in_specs: how each argument is split.
        out_specs: how each result is split.
        module: the StableHLO module that was compiled.

    Raises:
        AxisError: a spec names an axis that the mesh or the array does not have.
        ShapeError: an extent is not divisible by the number of parts.
        UnsupportedError: a primitive has no lowering.
    """

    mesh: Mesh
    program: Program
    in_specs: tuple[PartitionSpec, ...]
    out_specs: tuple[PartitionSpec, ...]
    module: StableHloModule

    def __init__(
        self,
        mesh: Mesh,
        program: Program,
        in_specs: Sequence[PartitionSpec],
        out_specs: Sequence[PartitionSpec | None],
        donate: Sequence[int] = (),
    ) -> None:
        for what, specs, splits in (("argument", program.inputs, in_specs), ("result", program.outputs, out_specs)):
            for i, (s, p) in enumerate(zip(specs, splits, strict=True)):
                if p is not None:
                    name = f"{what} {i}, {s!r},"
                    local_shape(s.shape, p.split(s.ndim, mesh.axes, name), mesh.axes, name)
        self.mesh, self.program = mesh, program
        self.module = lower_to_stablehlo(program, mesh.platform, mesh=mesh.axes)
        wanted = [None if p is None else mesh.sharding(p) for p in out_specs]
        if self.module.checked:
            wanted.append(mesh.sharding(PartitionSpec()))
        placed = [mesh.sharding(p) for p in in_specs]
        self._run = compiled(self.module, donate=donate, in_shardings=placed, out_shardings=wanted)
        found = self._run.output_shardings
        self.in_specs = tuple(in_specs)
        self.out_specs = tuple(
            [_read(found[i], s.ndim) if p is None else p for i, (s, p) in enumerate(zip(program.outputs, out_specs))]
        )

    def __call__(self, *values: ShardedArray) -> tuple[ShardedArray, ...]:
        """Run on arrays with the specs and shardings of the executable; the results stay on the devices.

        Raises:
            ArgumentError: an argument has another mesh, sharding, shape or dtype.
            ProcessLostError: another process of the run is lost.
            NumericalError: a step failed, for example the inversion of a singular matrix.
        """
        inputs = self.program.inputs
        if len(values) != len(inputs):
            raise ArgumentError(f"the program takes {len(inputs)} arrays, got {len(values)}")
        for i, (x, s, p) in enumerate(zip(values, inputs, self.in_specs, strict=True)):
            if (
                not isinstance(x, ShardedArray)
                or x.mesh != self.mesh
                or x.spec != p
                or (x.shape, x.dtype) != (s.shape, s.dtype)
            ):
                raise ArgumentError(f"argument {i} of the executable is {s!r} split as {p!r}, got {x!r:.120}")
        with losses_named():
            parts = list(self.mesh.in_turn(self._run, *[x.array for x in values]))
            failed = self.module.checked and bool(parts.pop())
        if failed:
            self._fail(values)
        return tuple([ShardedArray(self.mesh, p, x) for p, x in zip(self.out_specs, parts, strict=True)])

    def _fail(self, values: Sequence[ShardedArray]) -> NoReturn:
        """Run the program again on the CPU backend, if this process has the arguments; its error names the step."""
        if len(self.mesh.processes) == 1 and not any(x.array.is_deleted() for x in values):
            self.program.run(*[x.gather() for x in values])
        raise NumericalError(
            "a step of the program failed on a device of the mesh, for example the inversion of a singular matrix; "
            "gather the arguments and run the function on the CPU backend, which names the step and the line"
        )

    def memory(self) -> DeviceMemory:
        """Return the memory that each device needs.

        Returns:
            Numbers of bytes by purpose.
        """
        m = self._run.memory_analysis()
        return DeviceMemory(
            m.argument_size_in_bytes, m.output_size_in_bytes, m.temp_size_in_bytes, m.alias_size_in_bytes
        )

    def collectives(self) -> dict[str, int]:
        """Count the collective operations.

        Returns:
            The number of operations of each kind, by XLA's names; operations in a loop count once.
        """
        text = self.hlo()
        found = Counter(re.findall(rf" ({'|'.join(COLLECTIVES)})(?:-start)?\(", text))
        return {name: found[name] for name in COLLECTIVES if found[name]}

    def hlo(self) -> str:
        """Return the compiled program of one device.

        Returns:
            XLA's text of the optimized HLO.
        """
        return str(self._run.as_text())

    def explain(self) -> str:
        """Explain the shardings of arguments and results, the memory per device and the collectives.

        Returns:
            The text.
        """
        m = self.memory()
        lines = [f"program for {self.mesh!r}"]
        for what, specs, splits in (
            ("argument", self.program.inputs, self.in_specs),
            ("result", self.program.outputs, self.out_specs),
        ):
            for i, (s, p) in enumerate(zip(specs, splits, strict=True)):
                part = local_shape(s.shape, p.split(s.ndim, self.mesh.axes), self.mesh.axes)
                lines.append(f"  {what} {i}: {s!r} as {p!r}, of which each device has {part}")
        lines.append(
            f"  bytes on each device: {m.total} = {m.arguments} arguments + {m.results} results "
            f"+ {m.temporaries} temporaries - {m.donated} donated"
        )
        exchanged = ", ".join(f"{k} {name}" for name, k in self.collectives().items())
        lines.append(f"  exchanges: {exchanged or 'none'}")
        return "\n".join(lines)


def _read(sharding: Any, ndim: int) -> PartitionSpec:
    """Return the spec that XLA chose for a result."""
    entries = list(sharding.spec)[:ndim]
    return PartitionSpec(*[e if e is None or isinstance(e, str) else tuple(e) or None for e in entries])
