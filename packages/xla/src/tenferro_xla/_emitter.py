"""The printer of StableHLO: each call appends one operation in generic form and names its results."""

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
    """A value of a StableHLO module.

    Attributes:
        name: its name in the text, for example ``"%3"``.
        spec: its shape and dtype.
    """

    name: str
    spec: Spec


class Functions:
    """The functions of a module besides its entry point, shared by the emitters of all its regions.

    Args:
        platform: the platform that JAX lowers functions for.
        mesh: names and sizes of the axes of the mesh that the module runs on, or ``None``.

    Attributes:
        texts: texts of the functions.
        channels: number of collective operations so far; each has its own channel.
        misses: whether a lowering has called `HloEmitter.miss`.
    """

    platform: str
    mesh: tuple[tuple[str, int], ...] | None
    texts: list[str]
    channels: int
    misses: bool

    def __init__(self, platform: str, mesh: tuple[tuple[str, int], ...] | None = None) -> None:
        self.platform, self.mesh = platform, mesh
        self.texts = []
        self.channels = 0
        self.misses = False
        self._prefixes: dict[Any, str] = {}

    def entry(self, function: Callable[..., Any], operands: Any, outs: Any, static: dict[str, Any]) -> str:
        """Return the name of a function of JAX arrays, which is added at its first use."""
        found = traced(function, operands, outs, static, self.platform)
        if found not in self._prefixes:
            label = str(static.get("name", function.__name__)).strip("_")
            self._prefixes[found] = f"{label}_{len(self._prefixes)}_"
            self.texts.append(found.renamed(self._prefixes[found]))
        return f"{self._prefixes[found]}main"


class HloEmitter:
    """Appends operations to a region of a module; a lowering is a function of an emitter and operand values.

    Args:
        functions: the other functions of the module.
        optimistic: whether lowerings may leave out what only rare values need; see `miss`.

    Attributes:
        functions: the other functions of the module.
        optimistic: whether lowerings may leave out what only rare values need; see `miss`.
        failures: boolean scalars that are true if a step of this region has failed; see `fail`.
        lines: the operations so far, as text.
        inliner: appends the equations of a program; set by `_lower`, which finds the lowerings.

    See also:
        `Registry.lowering`, which registers a lowering of a primitive.
    """

    inliner: ClassVar[Callable[[HloEmitter, Program, list[HloValue]], list[HloValue]]]
    functions: Functions
    optimistic: bool
    failures: list[HloValue]
    lines: list[str]

    def __init__(self, functions: Functions, optimistic: bool = False) -> None:
        self.functions, self.optimistic = functions, optimistic
        self.failures = []
        self.lines = []
        self._count = 0
        self._indent = "    "

    def op(
        self, name: str, operands: Sequence[HloValue], out: Spec, attributes: str = "", regions: Sequence[str] = ()
    ) -> HloValue:
        """Append an operation with one result.

        Args:
            name: dialect and operation, for example ``stablehlo.add``; the dialect defaults to ``stablehlo``.
            operands: its operands.
            out: spec of the result.
            attributes: text of the attributes, without braces.
            regions: texts made by `region`.

        Returns:
            The result.
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
        """Append an operation with any number of results.

        Args:
            name: dialect and operation; the dialect defaults to ``stablehlo``.
            operands: its operands.
            outs: specs of the results.
            attributes: text of the attributes, without braces.
            regions: texts made by `region`.

        Returns:
            The results.
        """
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
        """Append a call of a function of JAX arrays, which JAX lowers for the platform of the module.

        Args:
            function: ``function(library, *arrays, **static)``, defined at module level, which returns one array or
                several; ``library("numpy")`` is ``jax.numpy`` and ``library("lax.linalg")`` is ``jax.lax.linalg``.
            operands: its arrays.
            outs: specs of its results.
            static: hashable values; a value called `name` names the function in the text of the module.

        Returns:
            The results.

        Raises:
            UnsupportedError: JAX cannot lower the function for the platform.
            RegistryError: the results have other shapes or dtypes than `outs`.
        """
        try:
            name = self.functions.entry(function, tuple([v.spec for v in operands]), tuple(outs), static)
        except NotImplementedError as cause:  # for example Schur forms, which JAX computes on the CPU only
            raise UnsupportedError(
                f"{function.__name__} has no StableHLO lowering for platform {self.functions.platform!r}, because JAX "
                f"has none: {str(cause).partition(chr(10))[0]}; lower for 'cpu', or run the program on the CPU backend",
                function=function.__name__,
                platform=self.functions.platform,
            ) from cause
        return self.ops("func.call", operands, outs, f"callee = @{name}")

    def fail(self, where: HloValue) -> None:
        """Record a failure condition: the run raises if any element is true.

        Args:
            where: boolean value of any shape.
        """
        axes = range(where.spec.ndim)
        self.failures.append(self.reduce("or", where, False, axes) if where.spec.ndim else where)

    def miss(self, where: HloValue) -> None:
        """Record where the values are that this lowering, of an optimistic emitter, does not handle.

        If any element is true, the program is lowered and run again by an emitter that is not optimistic. Most programs
        are compiled in less time without the handling of values that never occur.

        Args:
            where: boolean value of any shape.
        """
        self.functions.misses = True
        self.fail(where)

    def failed(self) -> HloValue:
        """Return whether any step of this region has failed, as a boolean scalar."""
        found = self.constant(False, Spec((), bool_))
        for each in self.failures:
            found = self.op("or", (found, each), found.spec)
        return found

    def can_fail(self, arguments: Sequence[Spec], body: Callable[..., Sequence[HloValue]]) -> bool:
        """Return whether any step of a region may fail; the operations of `body` are discarded.

        Args:
            arguments: specs of the arguments of the region.
            body: ``body(emitter, *values)``.

        Returns:
            Whether `body` records a failure.
        """
        inner = HloEmitter(Functions(self.functions.platform, self.functions.mesh), self.optimistic)
        inner._count = self._count
        body(inner, *[inner.named(s) for s in arguments])
        return bool(inner.failures)

    def region(self, arguments: Sequence[Spec], body: Callable[..., Sequence[HloValue]], end: str = "return") -> str:
        """Emit a region that maps its arguments to the values that `body` returns.

        A failure recorded inside is not recorded outside: a body that can fail also returns ``inner.failed()``.

        Args:
            arguments: specs of the arguments.
            body: ``body(inner, *values)``, which appends to the emitter of the region and returns the results.
            end: the operation that returns from the region.

        Returns:
            The text of the region.
        """
        inner = HloEmitter(self.functions, self.optimistic)
        inner._count, inner._indent = self._count, self._indent + "  "
        values = [inner.named(s) for s in arguments]
        results = body(inner, *values)
        header = ", ".join(f"{v.name}: {tensor_type(v.spec)}" for v in values)
        inner.ops(end, results, ())
        self._count = inner._count
        return "\n".join(["{", f"{self._indent}^bb0({header}):", *inner.lines, f"{self._indent}}}"])

    def inline(self, program: Program, arguments: Sequence[HloValue]) -> list[HloValue]:
        """Append the equations of a program.

        Args:
            program: a program of fixed sizes.
            arguments: values with the specs of its inputs.

        Returns:
            Its outputs.
        """
        return HloEmitter.inliner(self, program, list(arguments))

    def jax_function(
        self,
        name: str,
        operands: Sequence[HloValue],
        out: Spec,
        orders: Sequence[int] = (),
        pick: int | None = None,
    ) -> HloValue:
        """Append a call of a function of `jax.scipy.special`, or of a derivative of one.

        Args:
            name: name of the function.
            operands: its operands.
            out: spec of the result.
            orders: order of differentiation with respect to each of the first operands.
            pick: index of the result, of a function that returns several.

        Returns:
            The result.

        Raises:
            UnsupportedError: JAX lacks the function or the derivative.
        """
        try:
            return self.traced(derivative_of_special, operands, (out,), name=name, orders=tuple(orders), pick=pick)[0]
        except Exception as cause:  # JAX raises many kinds of errors
            raise unsupported(name, [v.spec for v in operands], orders, cause) from cause

    def constant(self, array: Any, spec: Spec) -> HloValue:
        """Append a constant; a scalar is broadcast to the shape, since XLA stores constants in full.

        Args:
            array: a scalar, or an array of the shape of `spec`.
            spec: spec of the constant.

        Returns:
            The constant.
        """
        a = np.asarray(array, spec.dtype)
        if spec.size == 0:
            return self.op("constant", (), spec, f"value = dense<> : {tensor_type(spec)}")
        if not a.shape and spec.shape:
            return self.broadcast(self.constant(a, spec.with_(shape=())), spec.shape, ())
        text = dense(a if a.shape == spec.shape else a.reshape(()))
        return self.op("constant", (), spec, f"value = {text} : {tensor_type(spec)}")

    def compare(self, direction: str, x: HloValue, y: HloValue) -> HloValue:
        """Append an element-wise comparison.

        Args:
            direction: ``"EQ"``, ``"NE"``, ``"LT"``, ``"LE"``, ``"GT"`` or ``"GE"``.
            x: left operand.
            y: right operand, of the same spec.

        Returns:
            A boolean value of the same shape.
        """
        out = x.spec.with_(dtype=np.dtype(bool))
        return self.op("compare", (x, y), out, f"comparison_direction = #stablehlo<comparison_direction {direction}>")

    def select(self, pred: HloValue, x: HloValue, y: HloValue) -> HloValue:
        """Append an element-wise selection.

        Args:
            pred: boolean value of the shape of `x`, or a scalar.
            x: elements where `pred` is true.
            y: elements where it is false, of the same spec.

        Returns:
            A value of the spec of `x`.
        """
        return self.op("select", (pred, x, y), x.spec)

    def transpose(self, x: HloValue, permutation: Sequence[int]) -> HloValue:
        """Append a permutation of the axes.

        Args:
            x: a value.
            permutation: for each axis of the result, the axis of `x`.

        Returns:
            A value of the same dtype with permuted axes.
        """
        out = x.spec.with_(shape=tuple(x.spec.shape[a] for a in permutation))
        return self.op("transpose", (x,), out, f"permutation = {i64s(permutation)}")

    def broadcast(self, x: HloValue, shape: tuple[Any, ...], dims: Sequence[int]) -> HloValue:
        """Append a broadcast.

        Args:
            x: a value.
            shape: shape of the result.
            dims: for each axis of `x`, the axis of the result.

        Returns:
            A value of the given shape and the dtype of `x`.
        """
        out = x.spec.with_(shape=shape)
        return self.op("broadcast_in_dim", (x,), out, f"broadcast_dimensions = {i64s(dims)}")

    def iota(self, spec: Spec, axis: int) -> HloValue:
        """Append an array of indices along an axis.

        Args:
            spec: spec of the result.
            axis: axis along which the elements count from 0.

        Returns:
            A value of the given spec.
        """
        return self.op("iota", (), spec, f"iota_dimension = {axis} : i64")

    def reduce(self, name: str, x: HloValue, start: Any, axes: Sequence[int]) -> HloValue:
        """Append a reduction.

        Args:
            name: the associative operation, for example ``"add"`` or ``"maximum"``.
            x: a value.
            start: neutral element of the operation, a scalar.
            axes: axes to reduce.

        Returns:
            A value of the dtype of `x` without these axes.
        """
        s = x.spec.with_(shape=())
        out = x.spec.with_(shape=tuple(d for a, d in enumerate(x.spec.shape) if a not in axes))
        neutral = self.constant(start, s)
        body = self.region((s, s), lambda inner, a, b: (inner.op(name, (a, b), s),))
        return self.op("reduce", (x, neutral), out, f"dimensions = {i64s(axes)}", (body,))

    def convert(self, x: HloValue, dtype: Any) -> HloValue:
        """Append a conversion to another dtype, with StableHLO's semantics.

        Args:
            x: a value.
            dtype: the dtype of the result.

        Returns:
            A value of the shape of `x`; `x` itself if it has this dtype.
        """
        wanted = np.dtype(dtype)
        return x if x.spec.dtype == wanted else self.op("convert", (x,), x.spec.with_(dtype=wanted))

    def named(self, spec: Spec) -> HloValue:
        """Make a new name: for an argument of the function or of a region, or for a result.

        Args:
            spec: spec of the value.

        Returns:
            The value.
        """
        self._count += 1
        return HloValue(f"%{self._count - 1}", spec)
