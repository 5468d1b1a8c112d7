"""`export`: a program as something that other processes and other tools run without tenferro."""

from __future__ import annotations

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
"""Platforms that programs are exported for."""


class ExportedProgram:
    """A program as portable StableHLO, and as an exported function of JAX; made by `export`.

    A program with steps that may fail has a result more than `outputs`: a boolean that says whether one of them did.

    Attributes:
        program: what was exported.
        platforms: for which platforms.
        version: the version of StableHLO of `bytes`.
        inputs: specs of the arrays that the entry point ``main`` takes, in order.
        outputs: specs of its results.
        in_tree: structure of the arguments, a pair of the positional ones and those by name.
        out_tree: structure of the result.
        checked: whether there is a result that says whether a step failed.
    """

    def __init__(self, program: Program, platforms: tuple[str, ...], version: str, in_tree: Any, out_tree: Any) -> None:
        self.program, self.platforms, self.version = program, platforms, version
        self.inputs: tuple[Spec, ...] = program.inputs
        self.outputs: tuple[Spec, ...] = program.outputs
        self.in_tree, self.out_tree = in_tree, out_tree
        self._modules = {p: lower_to_stablehlo(program, p) for p in platforms}
        self.checked: bool = any(m.checked for m in self._modules.values())

    @cached_property
    def bytes(self) -> bytes:
        """A portable artifact: StableHLO of `version` in MLIR bytecode, with the entry point ``main``.

        Raises:
            UnsupportedError: the module is another one on each platform, or an operation is newer than `version`.
        """
        texts = {m.text for m in self._modules.values()}
        if len(texts) != 1:
            raise UnsupportedError(
                f"the program calls libraries of one platform, so that it has no artifact for all of {self.platforms}; "
                "export it for one platform"
            )
        return portable(texts.pop(), self.version)

    @cached_property
    def exported(self) -> Any:
        """The ``jax.export.Exported``: its ``call`` takes and returns the containers of the function.

        Where the program is `checked`, it returns a pair of the result and whether a step failed.
        """
        jax = library()
        library("export")
        with wide_numbers():
            arguments, named = unflatten(self.in_tree, [jax.ShapeDtypeStruct(s.shape, s.dtype) for s in self.inputs])
            function = jax.jit(self._function(jax))
            return jax.export.export(function, platforms=self.platforms)(*arguments, **named)

    def serialize(self, vjp_order: int = 0) -> Any:
        """Bytes from which ``jax.export.deserialize`` makes a function, in a process without tenferro.

        Args:
            vjp_order: how many derivatives JAX adds. It can differentiate what it knows: export the gradient of
                tenferro as a program of its own, or export ``as_jax(f)`` by ``jax.export.export``.

        Raises:
            BackendUnavailableError: the library ``flatbuffers``, which JAX writes with, is missing.
            UnsupportedError: JAX has no format for a container, or guarantees no compatibility of a library's function.
        """
        try:
            return bytes(self.exported.serialize(vjp_order))
        except ImportError as cause:
            raise BackendUnavailableError(
                "JAX writes exported functions with the library flatbuffers, which is not installed; "
                "pip install 'tenferro-xla[export]'"
            ) from cause
        except ValueError as cause:
            raise UnsupportedError(f"JAX cannot write this function: {cause}") from cause

    def save(self, path: str | os.PathLike[str], vjp_order: int = 0) -> Path:
        """Write what `serialize` returns to a file, whole or not at all; returns its path."""
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

        # JAX has an order of its own for the leaves of containers.
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
    """A program or a function for arguments as portable StableHLO, and as an exported function of JAX.

    Args:
        f: a program of fixed sizes, or a function, which is traced for the arguments; a gradient is one, too.
        args: arguments of the function: arrays, numbers or specs, in any containers.
        platforms: ``"cpu"``, ``"cuda"``, ``"rocm"``, ``"tpu"``; a program with decompositions of matrices calls
            libraries of each.
        version: the version of StableHLO of the portable artifact; by default one that readers of the last twelve
            weeks know.
        kwargs: arguments by name.

    Raises:
        ArgumentError: a platform is unknown, arguments are given for a program, or the version cannot be written.
        UnsupportedError: sizes are open, or a step has no lowering.

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
                "export of a program takes no arguments: its specs are known; pass the function to trace it"
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

    def noted(*args: Any, **kwargs: Any) -> Any:
        result = f(*args, **kwargs)
        trees.append(flatten(result)[1])
        return result

    program = tr.trace(noted, *args, **kwargs)
    return program, flatten((args, kwargs))[1], trees[-1]
