"""Lowers a program to a StableHLO module: its equations in order, each with the lowering of its primitive."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

import numpy as np

from tenferro_runtime.extension import REGISTRY, Equation, Literal, Program, call
from tenferro_runtime.ir import instance, sizes_for
from tenferro_runtime.tracing.expanding import expansion_of, has_expansion, widened
from tenferro_tensor import Spec, catalog
from tenferro_tensor.promotion import targets
from tenferro_tensor_core import ArgumentError, PlacementError, RegistryError, UnsupportedError
from tenferro_xla._emitter import Functions, HloEmitter, HloValue
from tenferro_xla._text import tensor_type
from tenferro_xla.lowerings import CORE


@dataclass(frozen=True, slots=True)
class StableHloModule:
    """A StableHLO module as text, made by `lower_to_stablehlo`.

    Attributes:
        text: the module; its entry point is ``main``.
        fingerprint: SHA-256 of the text, equal for equal programs in every process.
        inputs: specs of the arguments of ``main``.
        outputs: specs of its results.
        platform: the platform that JAX lowered functions for.
        checked: whether ``main`` has an additional last result, a boolean scalar that is true if a step of the program
            failed; the other results are invalid then.
        program: the lowered program.
        optimistic: whether that result is true for rare values, too, which the module leaves out.
    """

    text: str
    fingerprint: str
    inputs: tuple[Spec, ...]
    outputs: tuple[Spec, ...]
    platform: str
    checked: bool
    program: Program = field(repr=False, compare=False)
    optimistic: bool = False

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __str__(self) -> str:
        return self.text


def lower_to_stablehlo(
    program: Program, platform: str = "cpu", *, mesh: tuple[tuple[str, int], ...] | None = None
) -> StableHloModule:
    """Lower a program to a StableHLO module.

    Args:
        program: a traced program of fixed sizes.
        platform: ``"cpu"``, ``"cuda"`` or ``"rocm"``; matrix decompositions call libraries of the platform.
        mesh: names and sizes of the axes of the mesh to run on, ``Mesh.axes``; by default one device runs the module.

    Returns:
        The module, for PJRT or other tools that read StableHLO. If a step may fail numerically, it has an additional
        result; see `StableHloModule`.

    Raises:
        ArgumentError: `program` is not a program.
        UnsupportedError: a primitive has no lowering, or a size is symbolic or depends on data; the message names the
            source line.

    See also:
        `export`, which makes portable artifacts, and `import_stablehlo`, the inverse.

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
            f"lower_to_stablehlo takes a program, got {program!r:.80}; trace the function with tr.trace(f, *args), or "
            "use f.program(*args) of a compiled function"
        )
    return lowered(program, platform, mesh)


def lowered(
    program: Program, platform: str, mesh: tuple[tuple[str, int], ...] | None = None, *, optimistic: bool = False
) -> StableHloModule:
    """As `lower_to_stablehlo`; if `optimistic`, lowerings may leave out what only rare values need."""
    _refuse_computed_sizes(program)
    for s in (*program.inputs, *program.outputs):
        tensor_type(s)  # rejects symbolic sizes before anything is emitted
    emitter = HloEmitter(Functions(platform, mesh), optimistic)
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
    misses = emitter.functions.misses
    return StableHloModule(text, fingerprint, program.inputs, program.outputs, platform, checked, program, misses)


def _refuse_computed_sizes(program: Program) -> None:
    for eq in program.equations:
        if eq.op.primitive is catalog.define_size:
            raise UnsupportedError(
                f"the size {eq.op.params['size']}{_at(eq)} depends on data, but StableHLO has fixed sizes; keep the "
                "full extent or an upper bound and mask: where(arange(n) < k, x, 0) instead of truncate(x, k), "
                "where(mask, x, 0) instead of compress(x, mask); or run the program on the CPU backend",
                primitive=eq.op.primitive.name,
                source=eq.where,
            )


def _inlined(e: HloEmitter, program: Program, arguments: list[HloValue]) -> list[HloValue]:
    """Append the equations of a program; see `HloEmitter.inline`.

    Args:
        e: the emitter.
        program: a program of fixed sizes.
        arguments: values with the specs of its inputs.

    Returns:
        Its outputs.
    """
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
    if p is call:  # of a compiled function, which has its own symbolic sizes
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
            f"the lowering of {p.name}{_at(eq)} returned {result!r:.80}; it must return the {len(outs)} value(s) that "
            "it emits",
            primitive=p.name,
        )
    return list(found)


def _at(eq: Equation) -> str:
    return f" ({eq.where})" if eq.where else ""


def _operands(e: HloEmitter, program: Program, eq: Equation, values: dict[int, HloValue]) -> list[HloValue]:
    """Return the operands as values; numbers become constants with the spec of the operand."""
    if not any(isinstance(v, Literal) for v in eq.operands):
        return [values[v] for v in eq.variables]
    seen = tuple(v.value.__class__ if isinstance(v, Literal) else program.specs[v] for v in eq.operands)
    found: list[HloValue] = []
    for v, spec in zip(eq.operands, targets(eq.op, seen), strict=True):
        found.append(e.constant(np.asarray(v.value, spec.dtype), spec) if isinstance(v, Literal) else values[v])
    return found


HloEmitter.inliner = staticmethod(_inlined)
