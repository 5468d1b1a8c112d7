"""The printer: each call appends one operation in StableHLO's generic form and names its results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from tenferro_runtime.extension import Program
from tenferro_tensor import Spec
from tenferro_tensor_core import UnsupportedError, bool_
from tenferro_xla._jax_functions import derivative_of_special, unsupported
from tenferro_xla._text import dense, i64s, tensor_type
from tenferro_xla._traced import traced


class HloValue(NamedTuple):
    """A value of the module: its name and spec."""

    name: str
    spec: Spec


class Functions:
    """The functions of a module beside its entry point, shared by the emitters of all its regions.

    Args:
        platform: for which JAX lowers functions.
        mesh: names and sizes of the axes of the mesh that the module runs on, if it runs on one.

    Attributes:
        texts: their texts.
        channels: the number of exchanges between devices, each of which has a number of its own.
    """

    def __init__(self, platform: str, mesh: tuple[tuple[str, int], ...] | None = None) -> None:
        self.platform, self.mesh = platform, mesh
        self.texts: list[str] = []
        self.channels = 0
        self._prefixes: dict[Any, str] = {}

    def entry(self, function: Callable[..., Any], operands: Any, outs: Any, static: dict[str, Any]) -> str:
        """The name of a function of JAX arrays, added at its first use."""
        found = traced(function, operands, outs, static, self.platform)
        if found not in self._prefixes:
            label = str(static.get("name", function.__name__)).strip("_")
            self._prefixes[found] = f"{label}_{len(self._prefixes)}_"
            self.texts.append(found.renamed(self._prefixes[found]))
        return f"{self._prefixes[found]}main"


class HloEmitter:
    """Writes operations; lowerings are functions of an emitter and values.

    Args:
        functions: those of the module.

    Attributes:
        failures: scalars that are true where a step of this region has failed; see `fail`.
    """

    inliner: ClassVar[Callable[[HloEmitter, Program, list[HloValue]], list[HloValue]]]
    """Writes the equations of a program; set by `_lower`, which finds the lowerings."""

    def __init__(self, functions: Functions) -> None:
        self.functions = functions
        self.failures: list[HloValue] = []
        self.lines: list[str] = []
        self._count = 0
        self._indent = "    "

    def op(
        self, name: str, operands: Sequence[HloValue], out: Spec, attributes: str = "", regions: Sequence[str] = ()
    ) -> HloValue:
        """Append an operation of one result.

        Args:
            name: dialect and operation, as in ``stablehlo.add``; the dialect ``stablehlo`` may be left out.
            operands: its operands.
            out: spec of the result.
            attributes: text of the attributes, without braces.
            regions: texts made by `region`.
        """
        return self.ops(name, operands, (out,), attributes, regions)[0]

    def ops(
        self,
        name: str,
        operands: Sequence[HloValue],
        outs: Sequence[Spec],
        attributes: str = "",
        regions: Sequence[str] = (),
    ) -> tuple[HloValue, ...]:
        """Append an operation of several results."""
        results = tuple(self.named(s) for s in outs)
        full = name if "." in name else f"stablehlo.{name}"
        left = f"{', '.join(r.name for r in results)} = " if results else ""
        types = ", ".join(tensor_type(v.spec) for v in operands)
        out = ", ".join(tensor_type(s) for s in outs)
        self.lines.append(
            f'{self._indent}{left}"{full}"({", ".join(v.name for v in operands)})'
            + (f" ({', '.join(regions)})" if regions else "")
            + (f" {{{attributes}}}" if attributes else "")
            + f" : ({types}) -> {out if len(outs) == 1 else f'({out})'}"
        )
        return results

    def traced(
        self, function: Callable[..., Any], operands: Sequence[HloValue], outs: Sequence[Spec], **static: Any
    ) -> tuple[HloValue, ...]:
        """Append what a function of JAX arrays computes, lowered by JAX for the platform of the module.

        Args:
            function: ``function(library, *arrays, **static)``, a function of a module, where ``library("numpy")`` is
                ``jax.numpy`` and ``library("lax.linalg")`` is ``jax.lax.linalg``; it returns one array or several.
            operands: its arrays.
            outs: specs of its results.
            static: hashable values; one called `name` names the function in the text of the module.

        Raises:
            UnsupportedError: JAX cannot lower it for the platform.
        """
        try:
            name = self.functions.entry(function, tuple([v.spec for v in operands]), tuple(outs), static)
        except NotImplementedError as cause:  # as for Schur forms, which JAX has on the CPU alone
            raise UnsupportedError(
                f"{function.__name__} has no StableHLO lowering for platform {self.functions.platform!r}, because JAX "
                f"has none: {str(cause).partition(chr(10))[0]}; lower for 'cpu', or run the program on the CPU backend",
                function=function.__name__,
                platform=self.functions.platform,
            ) from cause
        return self.ops("func.call", operands, outs, f"callee = @{name}")

    def fail(self, where: HloValue) -> None:
        """Report a failure where any element of a boolean value is true: the run then ends in an exception."""
        axes = range(where.spec.ndim)
        self.failures.append(self.reduce("or", where, False, axes) if where.spec.ndim else where)

    def failed(self) -> HloValue:
        """Whether any step of this region has failed."""
        found = self.constant(False, Spec((), bool_))
        for each in self.failures:
            found = self.op("or", (found, each), found.spec)
        return found

    def can_fail(self, arguments: Sequence[Spec], body: Callable[..., Sequence[HloValue]]) -> bool:
        """Whether any step of a region may fail; what it says is not kept."""
        inner = HloEmitter(Functions(self.functions.platform, self.functions.mesh))
        inner._count = self._count
        body(inner, *[inner.named(s) for s in arguments])
        return bool(inner.failures)

    def region(self, arguments: Sequence[Spec], body: Callable[..., Sequence[HloValue]], end: str = "return") -> str:
        """The text of a region that maps arguments to what `body` returns.

        A failure inside ends nothing outside: a body that can fail returns ``inner.failed()``, too. The operation `end`
        returns from the region.
        """
        inner = HloEmitter(self.functions)
        inner._count, inner._indent = self._count, self._indent + "  "
        values = [inner.named(s) for s in arguments]
        results = body(inner, *values)
        header = ", ".join(f"{v.name}: {tensor_type(v.spec)}" for v in values)
        inner.ops(end, results, ())
        self._count = inner._count
        return "\n".join(["{", f"{self._indent}^bb0({header}):", *inner.lines, f"{self._indent}}}"])

    def inline(self, program: Program, arguments: Sequence[HloValue]) -> list[HloValue]:
        """Append what a program does with the arguments; its outputs."""
        return HloEmitter.inliner(self, program, list(arguments))

    def jax_function(
        self,
        name: str,
        operands: Sequence[HloValue],
        out: Spec,
        orders: Sequence[int] = (),
        pick: int | None = None,
    ) -> HloValue:
        """Call a function of `jax.scipy.special`, or a derivative of one, which becomes a function of the module.

        Args:
            name: the function's name.
            operands: its operands.
            out: spec of the result.
            orders: how often it is differentiated by each of its first operands.
            pick: which result is taken of a function that returns several.
        """
        try:
            return self.traced(derivative_of_special, operands, (out,), name=name, orders=tuple(orders), pick=pick)[0]
        except Exception as cause:  # JAX refuses in many ways
            raise unsupported(name, [v.spec for v in operands], orders, cause) from cause

    def constant(self, array: Any, spec: Spec) -> HloValue:
        """A constant; a scalar fills the whole shape, by a broadcast, because XLA writes constants out in full."""
        a = np.asarray(array, spec.dtype)
        if spec.size == 0:
            return self.op("constant", (), spec, f"value = dense<> : {tensor_type(spec)}")
        if not a.shape and spec.shape:
            return self.broadcast(self.constant(a, spec.with_(shape=())), spec.shape, ())
        text = dense(a if a.shape == spec.shape else a.reshape(()))
        return self.op("constant", (), spec, f"value = {text} : {tensor_type(spec)}")

    def compare(self, direction: str, x: HloValue, y: HloValue) -> HloValue:
        """Element-wise comparison; `direction` is ``EQ``, ``NE``, ``LT``, ``LE``, ``GT`` or ``GE``."""
        out = x.spec.with_(dtype=np.dtype(bool))
        return self.op("compare", (x, y), out, f"comparison_direction = #stablehlo<comparison_direction {direction}>")

    def select(self, pred: HloValue, x: HloValue, y: HloValue) -> HloValue:
        """`x` where `pred` is true, else `y`."""
        return self.op("select", (pred, x, y), x.spec)

    def transpose(self, x: HloValue, permutation: Sequence[int]) -> HloValue:
        """Axes in another order."""
        out = x.spec.with_(shape=tuple(x.spec.shape[a] for a in permutation))
        return self.op("transpose", (x,), out, f"permutation = {i64s(permutation)}")

    def broadcast(self, x: HloValue, shape: tuple[Any, ...], dims: Sequence[int]) -> HloValue:
        """`x` repeated to `shape`, its axes standing at `dims`."""
        out = x.spec.with_(shape=shape)
        return self.op("broadcast_in_dim", (x,), out, f"broadcast_dimensions = {i64s(dims)}")

    def iota(self, spec: Spec, axis: int) -> HloValue:
        """The index along `axis`."""
        return self.op("iota", (), spec, f"iota_dimension = {axis} : i64")

    def reduce(self, name: str, x: HloValue, start: Any, axes: Sequence[int]) -> HloValue:
        """Elements joined along `axes` by the operation `name`, from the neutral element `start` on."""
        s = x.spec.with_(shape=())
        out = x.spec.with_(shape=tuple(d for a, d in enumerate(x.spec.shape) if a not in axes))
        neutral = self.constant(start, s)
        body = self.region((s, s), lambda inner, a, b: (inner.op(name, (a, b), s),))
        return self.op("reduce", (x, neutral), out, f"dimensions = {i64s(axes)}", (body,))

    def convert(self, x: HloValue, dtype: Any) -> HloValue:
        """StableHLO's own conversion of dtypes."""
        wanted = np.dtype(dtype)
        return x if x.spec.dtype == wanted else self.op("convert", (x,), x.spec.with_(dtype=wanted))

    def named(self, spec: Spec) -> HloValue:
        """Name a value of the given spec: an argument of the function or of a region, or a result."""
        self._count += 1
        return HloValue(f"%{self._count - 1}", spec)
