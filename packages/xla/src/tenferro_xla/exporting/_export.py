"""`export`: a program as an artifact that other processes and tools run without tenferro."""

from __future__ import annotations

import builtins
import os
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np

import tenferro_runtime as tr
from tenferro_runtime.extension import (
    ArgumentError,
    BackendUnavailableError,
    Program,
    Spec,
    UnsupportedError,
    flatten,
    unflatten,
)
from tenferro_xla._jax_modules import library, wide_numbers
from tenferro_xla._jitted import bind
from tenferro_xla._lower import StableHloModule, lower_to_stablehlo
from tenferro_xla.exporting._portable import portable, target_version

PLATFORMS: Final = ("cpu", "cuda", "rocm", "tpu")
"""Platforms that programs can be exported for."""


class ExportedProgram:
    """A program as portable StableHLO and as an exported JAX function; made by `export`.

    If a step of the program may fail, ``main`` has an additional last result after `outputs`: a boolean scalar that is
    true if a step failed.

    Attributes:
        program: the exported program.
        platforms: platforms of the artifact.
        version: StableHLO version of `bytes`.
        inputs: specs of the arguments of the entry point ``main``, in order.
        outputs: specs of its results.
        in_tree: structure of the arguments, a pair of the positional and the keyword arguments.
        out_tree: structure of the result.
        checked: whether ``main`` returns the failure flag.
    """

    program: Program
    platforms: tuple[str, ...]
    version: str
    inputs: tuple[Spec, ...]
    outputs: tuple[Spec, ...]
    in_tree: Any
    out_tree: Any
    checked: bool

    def __init__(self, program: Program, platforms: tuple[str, ...], version: str, in_tree: Any, out_tree: Any) -> None:
        self.program, self.platforms, self.version = program, platforms, version
        self.inputs = program.inputs
        self.outputs = program.outputs
        self.in_tree, self.out_tree = in_tree, out_tree
        self._modules = {p: lower_to_stablehlo(program, p) for p in platforms}
        self.checked = any(m.checked for m in self._modules.values())

    @cached_property
    def bytes(self) -> bytes:
        """The portable artifact: StableHLO of `version` in MLIR bytecode, with the entry point ``main``.

        Raises:
            UnsupportedError: the platforms need different modules, or an operation is newer than `version`.
        """
        texts = {m.text for m in self._modules.values()}
        if len(texts) != 1:
            raise UnsupportedError(
                "the program calls platform libraries, so one artifact cannot serve all platforms "
                f"{self.platforms}; export it for one platform"
            )
        return portable(texts.pop(), self.version)

    @cached_property
    def exported(self) -> Any:
        """The ``jax.export.Exported``; its ``call`` takes and returns the containers of the function.

        If `checked`, the call returns a pair: the result and the failure flag.
        """
        jax = library()
        library("export")
        with wide_numbers():
            arguments, named = unflatten(self.in_tree, [jax.ShapeDtypeStruct(s.shape, s.dtype) for s in self.inputs])
            function = jax.jit(self._function(jax))
            return jax.export.export(function, platforms=self.platforms)(*arguments, **named)

    def serialize(self, vjp_order: int = 0) -> builtins.bytes:
        """Serialize the function for ``jax.export.deserialize``, which needs no tenferro.

        Args:
            vjp_order: number of derivatives that JAX includes. JAX cannot differentiate tenferro's operations: export
                the gradient as another program, or export ``as_jax(f)`` with ``jax.export.export``.

        Returns:
            The bytes.

        Raises:
            BackendUnavailableError: the library ``flatbuffers``, which JAX requires for this, is missing.
            UnsupportedError: JAX has no format for a container, or does not guarantee compatibility of a library call.
        """
        try:
            return bytes(self.exported.serialize(vjp_order))
        except ImportError as cause:
            raise BackendUnavailableError(
                "to write exported functions, JAX requires the library flatbuffers, which is not installed; "
                "pip install 'tenferro-xla[export]'"
            ) from cause
        except ValueError as cause:
            raise UnsupportedError(f"JAX cannot write this function: {cause}") from cause

    def save(self, path: str | os.PathLike[str], vjp_order: int = 0) -> Path:
        """Write the bytes of `serialize` to a file, atomically.

        Args:
            path: the file to write.
            vjp_order: number of derivatives that JAX includes; see `serialize`.

        Returns:
            The path of the file.

        Raises:
            BackendUnavailableError: the library ``flatbuffers`` is missing.
            UnsupportedError: JAX cannot serialize the function.
        """
        target = Path(path)
        content = self.serialize(vjp_order)
        partial = target.with_name(f"{target.name}.{os.getpid()}.part")
        partial.write_bytes(content)
        partial.replace(target)
        return target

    def __repr__(self) -> str:
        return f"<exported {self.program!r} for {', '.join(self.platforms)}, StableHLO {self.version}>"

    def _function(self, jax: Any) -> Callable[..., Any]:
        modules = self._modules
        first = modules[self.platforms[0]]
        one = all(m.text == first.text for m in modules.values())

        def calling(module: StableHloModule) -> Callable[..., Any]:
            return lambda *arrays: bind(module, *arrays)

        # JAX orders the leaves of containers differently.
        order = jax.tree.leaves(unflatten(self.in_tree, list(range(len(self.inputs)))))

        def function(*args: Any, **kwargs: Any) -> Any:
            found = dict(zip(order, jax.tree.leaves((args, kwargs)), strict=True))
            arrays = [found[i] for i in range(len(order))]
            results = (
                bind(first, *arrays)
                if one
                else jax.lax.platform_dependent(*arrays, **{p: calling(m) for p, m in modules.items()})
            )
            if not self.checked:
                return unflatten(self.out_tree, list(results))
            return unflatten(self.out_tree, list(results[:-1])), results[-1]

        return function


def export(
    f: Program | Callable[..., Any],
    /,
    *args: Any,
    platforms: Sequence[str] = ("cpu",),
    version: str | None = None,
    **kwargs: Any,
) -> ExportedProgram:
    """Export a program, or a function traced for arguments, as portable StableHLO and as a JAX function.

    Args:
        f: a program of fixed sizes, or a function, which is traced for the arguments; for example a gradient function.
        args: positional arguments of the function: arrays, numbers or specs, in any containers.
        platforms: ``"cpu"``, ``"cuda"``, ``"rocm"``, ``"tpu"``; a program with matrix decompositions calls libraries
            of each platform.
        version: StableHLO version of the portable artifact; by default one that readers released within the last twelve
            weeks support.
        kwargs: keyword arguments of the function.

    Returns:
        The exported program.

    Raises:
        ArgumentError: a platform is unknown, a program is combined with arguments, or the version cannot be written.
        UnsupportedError: a size is symbolic, or a primitive has no lowering.

    See also:
        `lower_to_stablehlo`, which returns the text, and `import_stablehlo`, which reads an artifact.

    >>> exported = export(lambda x: {"square": x * x}, np.arange(3.0), version="1.0.0")
    >>> exported
    <exported <program (float64[3]) -> (float64[3]), 1 equations> for cpu, StableHLO 1.0.0>
    >>> exported.bytes[:19]
    b'ML\\xefR\\rStableHLO_v1.0'
    """
    chosen = tuple(platforms) if not isinstance(platforms, str) else (platforms,)
    unknown = [p for p in chosen if p not in PLATFORMS]
    if unknown or not chosen:
        raise ArgumentError(f"export takes platforms among {', '.join(PLATFORMS)}, got {chosen}", platforms=chosen)
    target = target_version(version)
    if isinstance(f, Program):
        if args or kwargs:
            raise ArgumentError(
                "export of a program takes no arguments, since its specs are known; pass the function to trace it"
            )
        program = f
        in_tree = flatten((tuple(np.zeros(len(program.inputs))), {}))[1]
        out_tree = flatten(tuple(np.zeros(len(program.outputs))))[1]
    else:
        program, in_tree, out_tree = _traced(f, args, kwargs)
    if program.symbolic:
        raise UnsupportedError(
            f"export needs fixed sizes, but the program takes ({', '.join(map(repr, program.inputs))}); "
            "trace the function for arrays, or export one program for each size"
        )
    return ExportedProgram(program, chosen, target, in_tree, out_tree)


def _traced(f: Callable[..., Any], args: Any, kwargs: Any) -> tuple[Program, Any, Any]:
    trees: list[Any] = []

    def recording(*args: Any, **kwargs: Any) -> Any:
        result = f(*args, **kwargs)
        trees.append(flatten(result)[1])
        return result

    program = tr.trace(recording, *args, **kwargs)
    return program, flatten((args, kwargs))[1], trees[-1]
