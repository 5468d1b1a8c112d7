"""A program as a StableHLO module: equations in order, each by the lowering of its primitive."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

import numpy as np

from tenferro_runtime.expanding import expansion_of, has_expansion, widened
from tenferro_runtime.extension import REGISTRY, Equation, Literal, Program, call
from tenferro_runtime.fusion import fused
from tenferro_runtime.ir import instance, sizes_for
from tenferro_tensor import Spec, catalog
from tenferro_tensor.promotion import targets
from tenferro_tensor_core import ArgumentError, PlacementError, RegistryError, UnsupportedError
from tenferro_xla._emitter import Functions, HloEmitter, HloValue
from tenferro_xla._text import tensor_type
from tenferro_xla.lowerings import CORE


@dataclass(frozen=True, slots=True)
class StableHloModule:
    """A StableHLO module as text.

    Attributes:
        text: the module; its entry point is ``main``.
        fingerprint: SHA-256 of the text, the same for equal programs in every process.
        inputs: specs of the arguments of ``main``.
        outputs: specs of its results.
        platform: for which functions of JAX in it were lowered.
        checked: whether ``main`` has one result more, a boolean that says whether a step of the program failed; the
            other results are not to be used then.
        program: what was lowered.
    """

    text: str
    fingerprint: str
    inputs: tuple[Spec, ...]
    outputs: tuple[Spec, ...]
    platform: str
    checked: bool
    program: Program = field(repr=False, compare=False)

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __str__(self) -> str:
        return self.text


def lower_to_stablehlo(
    program: Program, platform: str = "cpu", *, mesh: tuple[tuple[str, int], ...] | None = None
) -> StableHloModule:
    """Write a program as a StableHLO module.

    Args:
        program: a traced program of fixed sizes.
        platform: ``"cpu"``, ``"cuda"`` or ``"rocm"``: decompositions of matrices are calls of libraries there.
        mesh: names and sizes of the axes of a mesh, ``Mesh.axes``, where the module is to run on all its devices.

    Returns:
        The module, ready for PJRT or for other tools that read StableHLO. A program with steps that may fail on bad
        numbers has a result more; see `StableHloModule`.

    Raises:
        ArgumentError: `program` is no program.
        UnsupportedError: a primitive has no lowering, or sizes are symbolic or depend on data; names the user's line.

    >>> import numpy as np
    >>> from tenferro_runtime import trace
    >>> print(lower_to_stablehlo(trace(lambda x: x + x, np.ones(3))))
    module @program {
      func.func public @main(%0: tensor<3xf64>) -> (tensor<3xf64>) {
        %1 = "stablehlo.add"(%0, %0) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
        return %1 : tensor<3xf64>
      }
    }
    """
    if not isinstance(program, Program):
        raise ArgumentError(
            f"lower_to_stablehlo takes a program, got {program!r:.80}; trace the function, tr.trace(f, *args), or take "
            "the program of a compiled one, f.program(*args)"
        )
    _refuse_late_sizes(program)
    for s in (*program.inputs, *program.outputs):
        tensor_type(s)  # refuses symbolic sizes before anything is written
    emitter = HloEmitter(Functions(platform, mesh))
    arguments = [emitter.named(s) for s in program.inputs]
    results = _inlined(emitter, program, arguments)
    checked = bool(emitter.failures)
    if checked:
        results.append(emitter.failed())
    header = ", ".join(f"{v.name}: {tensor_type(v.spec)}" for v in arguments)
    types = ", ".join(tensor_type(v.spec) for v in results)
    lines = [
        "module @program {",
        f"  func.func public @main({header}) -> ({types}) {{",
        *emitter.lines,
        f"    return {', '.join(v.name for v in results)} : {types}" if results else "    return",
        "  }",
        *emitter.functions.texts,
        "}",
    ]
    text = "\n".join(lines)
    fingerprint = hashlib.sha256(text.encode()).hexdigest()
    return StableHloModule(text, fingerprint, program.inputs, program.outputs, platform, checked, program)


def _refuse_late_sizes(program: Program) -> None:
    for eq in program.equations:
        if eq.op.primitive is catalog.define_size:
            raise UnsupportedError(
                f"{eq.op.params['size']}{_at(eq)} is a size that depends on data, but extents of StableHLO are fixed; "
                "keep the full extent, or a bound of it, and mask: where(arange(n) < k, x, 0) instead of "
                "truncate(x, k), where(mask, x, 0) instead of compress(x, mask); or run the program on the CPU backend",
                primitive=eq.op.primitive.name,
                source=eq.where,
            )


def _inlined(e: HloEmitter, program: Program, arguments: list[HloValue]) -> list[HloValue]:
    program = widened(program)
    values: dict[int, HloValue] = dict(zip(program.input_ids, arguments, strict=True))
    for v, tensor in program.constants.items():
        values[v] = e.constant(tensor._concrete(), tensor.spec)
    for eq in program.equations:
        results = _lowered(e, program, eq, values)
        values.update(zip(eq.results, results, strict=True))
    return [values[v] for v in program.output_ids]


def _lowered(e: HloEmitter, program: Program, eq: Equation, values: dict[int, HloValue]) -> list[HloValue]:
    operands = _operands(e, program, eq, values)
    p = eq.op.primitive
    if p is fused:
        return e.inline(eq.op.params["program"], operands)
    if p is call:  # of a compiled function, which has symbolic sizes of its own
        inner = eq.op.params["program"]
        sizes = sizes_for(inner, [v.spec for v in operands], eq.op.params["sizes"])
        return e.inline(instance(inner, sizes), operands)
    if p is catalog.transfer:
        raise PlacementError(
            f"transfer{_at(eq)} moves data between devices, but a StableHLO module runs on one; "
            "trace the function without to_device",
            source=eq.where,
        )
    lower = CORE.get(p) or REGISTRY.find("lowering", p)
    if lower is None:
        inner = expansion_of(eq.op, tuple([v.spec for v in operands])) if has_expansion(p) else None
        if inner is not None:
            return e.inline(inner, operands)
        raise UnsupportedError(
            f"{p.name}{_at(eq)} has no StableHLO lowering; register one with Registry.lowering, or an expansion, "
            "or run the program on the CPU backend",
            primitive=p.name,
            source=eq.where,
        )
    outs = tuple(program.specs[v] for v in eq.results)
    try:
        result = lower(e, operands, outs, **eq.op.params)
    except UnsupportedError as error:
        error.add_note(f"in the lowering of {p.name}{_at(eq)}")
        raise
    found = [result] if isinstance(result, HloValue) else result
    if (
        not isinstance(found, (list, tuple))
        or len(found) != len(outs)
        or not all(isinstance(v, HloValue) for v in found)
    ):
        raise RegistryError(
            f"the lowering of {p.name}{_at(eq)} returned {result!r:.80}; let it return the {len(outs)} value(s) that "
            "it has emitted",
            primitive=p.name,
        )
    return list(found)


def _at(eq: Equation) -> str:
    return f" ({eq.where})" if eq.where else ""


def _operands(e: HloEmitter, program: Program, eq: Equation, values: dict[int, HloValue]) -> list[HloValue]:
    """The operands as values; numbers become constants of the spec that they stand in for."""
    if not any(isinstance(v, Literal) for v in eq.operands):
        return [values[v] for v in eq.variables]
    seen = tuple(v.value.__class__ if isinstance(v, Literal) else program.specs[v] for v in eq.operands)
    found: list[HloValue] = []
    for v, spec in zip(eq.operands, targets(eq.op, seen), strict=True):
        found.append(e.constant(np.asarray(v.value, spec.dtype), spec) if isinstance(v, Literal) else values[v])
    return found


HloEmitter.inliner = staticmethod(_inlined)
