"""Binding a program with symbolic sizes to numbers, by rendered functions.

`render_fit` renders the function from the shapes of the arguments to the sizes. A `Binder` collects the entries of the
tuple Z that the steps of a rendered program read (extents, shapes and kernels), and renders the function that computes
Z. A replay therefore neither computes sizes nor looks up kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from tenferro_runtime._generated_code import defined
from tenferro_tensor import Op, Spec
from tenferro_tensor.backends import OpenKernel
from tenferro_tensor.entries import OpenStep
from tenferro_tensor.kernels import followed, kernel_of
from tenferro_tensor_core import Dim, DimLike, Guard, key_of

Shapes = Sequence[tuple[DimLike, ...]]
Sizes = tuple[int, ...]


class BindingIndex(NamedTuple):
    """An index into the tuple Z."""

    at: int


class Binding(NamedTuple):
    """A program bound to sizes.

    Attributes:
        values: the tuple Z.
        outputs: concrete specs of the outputs.
        largest: bytes of the largest intermediate value that a kernel for all sizes computes.
    """

    values: tuple[Any, ...]
    outputs: tuple[Spec, ...]
    largest: int


def variable_of(d: DimLike) -> str | None:
    """The name of a size that is a single variable, else ``None``."""
    if isinstance(d, Dim) and len(d.terms) == 1:
        (monomial, coefficient), *_ = d.terms
        if coefficient == 1 and len(monomial) == 1 and monomial[0].kind == "var":
            return monomial[0].name
    return None


def render_fit(shapes: Shapes, guards: Sequence[Guard], wanted: tuple[str, ...]) -> Callable[[Any], Sizes | None]:
    """Render the function that maps concrete shapes, with the ranks of `shapes`, to the sizes `wanted`.

    It returns ``None`` if an extent differs or is out of bounds, or if a guard does not hold. Guards are evaluated in
    order, after the equalities that the shapes imply.
    """
    names: dict[str, str] = {}
    targets: list[str] = []
    tests: list[tuple[str, DimLike]] = []
    atoms: dict[str, Any] = {}
    for shape in shapes:
        parts = []
        for d in shape:
            name = variable_of(d)
            part = f"t{len(names) + len(tests)}"
            if name is not None and name not in names:
                names[name] = part
            else:
                tests.append((part, d))
            parts.append(part)
            if isinstance(d, Dim):
                atoms.update((a.name, a) for a in d.atoms() if a.kind == "var")
        targets.append(f"({''.join(f'{part}, ' for part in parts)})")
    conditions = [f"{part} == {_text(d, names)}" for part, d in tests]
    for name, atom in atoms.items():
        if atom.lower:
            conditions.append(f"{names[name]} >= {atom.lower}")
        if atom.upper is not None:
            conditions.append(f"{names[name]} <= {atom.upper}")
    conditions += [f"{_text(g.lhs, names)} {g.op} {_text(g.rhs, names)}" for g in guards]
    result = f"({''.join(f'{names[name]}, ' for name in wanted)})"
    lines = [f"{''.join(f'{t}, ' for t in targets)} = shapes"] if targets else []
    if conditions:
        lines += ["try:", f"    if not ({' and '.join(conditions)}):", "        return None"]
        lines += ["except ZeroDivisionError:", "    return None"]
    return _defined("fit(shapes)", [*lines, f"return {result}"], {})


def _text(d: DimLike, names: dict[str, str]) -> str:
    return f"({d.source(names)})" if isinstance(d, Dim) else str(d)


def _defined(head: str, lines: list[str], space: dict[str, Any]) -> Callable[..., Any]:
    """Compile a text that contains generated names only."""
    space = {"__name__": "tenferro_runtime.bound", **space}
    text = [f"def {head}:", *[f"    {line}" for line in lines]]
    return defined(head.partition("(")[0], text, space, "sizes")


class Binder:
    """Collects the entries of Z that the steps of one program read.

    Args:
        variables: names of the symbolic sizes, in the order of their values.
        fill: substitutes numbers for sizes in metadata.
    """

    def __init__(self, variables: tuple[str, ...], fill: Callable[..., Any]) -> None:
        self._names = {name: f"n{i}" for i, name in enumerate(variables)}
        self._space: dict[str, Any] = {"B": Binding, "S": Spec, "P": Op, "F": followed, "K": kernel_of, "V": fill}
        self._objects: dict[int, str] = {}
        self._lines: list[str] = []
        self._known: dict[Any, str] = {}
        self._entries: dict[str, int] = {}
        self._largest: dict[str, None] = {}

    def size(self, value: Any) -> BindingIndex:
        """The index of an extent or a tuple of extents."""
        return self._entry(self._value(value))

    def kernel(self, step: OpenStep) -> BindingIndex:
        """The index of the kernel of a step, which is made when the sizes are known."""
        return self._entry(self._kernel(step))

    def chosen(self, step: OpenStep, kernel: OpenKernel) -> BindingIndex:
        """The index of a kernel for all sizes, or of one made for the sizes if these are large."""
        plain = self._object(kernel.run)
        if kernel.sizes:
            plain = f"F({plain}, {self._value(kernel.sizes)})"
        large, limit = map(self._value, kernel.large or (0, 0))
        return self._entry(f"{self._kernel(step)} if {large} > {limit} else {plain}")

    def made(self, specs: Sequence[Spec]) -> None:
        """Register values that a kernel for all sizes computes."""
        for spec in specs:
            self._largest[self._value(spec.size * spec.dtype.itemsize)] = None

    def function(self, outputs: Sequence[Spec]) -> Callable[..., Binding]:
        """The function ``bind(*sizes)``; data-dependent extents stay symbolic in specs of outputs."""
        outs = "".join(f"{self._spec(s) if self._bound(s) else self._object(s)}, " for s in outputs)
        entries = "".join(f"{text}, " for text in self._entries)
        largest = ", ".join(self._largest)
        result = f"B(({entries}), ({outs}), {f'max({largest}, 0)' if largest else '0'})"
        return _defined(f"bind({', '.join(self._names.values())})", [*self._lines, f"return {result}"], self._space)

    def _entry(self, text: str) -> BindingIndex:
        return BindingIndex(self._entries.setdefault(text, len(self._entries)))

    def _kernel(self, step: OpenStep) -> str:
        params = step.op.params
        if is_open_op(step.op):
            given = {k: v if k == "program" and "sizes" in params else self._value(v) for k, v in params.items()}
            named = ", ".join(
                f"{self._object(k)}: {v if isinstance(v, str) else self._object(v)}" for k, v in given.items()
            )
            op = f"P({self._object(step.op.primitive)}, {{{named}}})"
        else:
            op = self._object(step.op)
        ins, outs = ("".join(f"{self._spec(s)}, " for s in specs) for specs in (step.operands, step.outputs))
        return f"K({self._object(step.backend)}, {op}, ({ins}), ({outs}), {self._object(step.device)})"

    def _bound(self, spec: Spec) -> bool:
        return all(d.__class__ is int or self._names.keys() >= d.variables for d in spec.shape)  # type: ignore[union-attr]

    def _spec(self, spec: Spec) -> str:
        if not spec.symbolic:
            return self._object(spec)
        text = f"S({self._value(spec.shape)}, {self._object(spec.dtype)}, {self._object(spec.place)})"
        return self._local(spec, text)

    def _value(self, value: Any) -> str:
        """Source text of metadata with numbers substituted for sizes."""
        if isinstance(value, Dim):
            name = variable_of(value)
            return self._names[name] if name is not None else self._local(value, value.source(self._names))
        if value.__class__ is tuple and is_open(value):
            return self._local(value, f"({''.join(f'{self._value(v)}, ' for v in value)})")
        if value.__class__ is int:
            return str(value)
        if is_open(value):  # a branch or a body: with numbers substituted for the sizes
            known = ", ".join(f"{self._object(name)}: {text}" for name, text in self._names.items())
            return self._local(value, f"V({self._object(value)}, {{{known}}})")
        return self._object(value)

    def _local(self, value: Any, text: str) -> str:
        key = key_of(value)
        name = self._known.get(key)
        if name is None:
            name = self._known[key] = f"x{len(self._known)}"
            self._lines.append(f"{name} = {text}")
        return name

    def _object(self, value: Any) -> str:
        name = self._objects.get(id(value))
        if name is None:
            name = self._objects[id(value)] = f"o{len(self._objects)}"
            self._space[name] = value
        return name


def is_open(value: Any) -> bool:
    """Whether metadata contain a symbolic size."""
    if value.__class__ is tuple:
        return any(map(is_open, value))
    return isinstance(value, Dim) or getattr(value, "symbolic", False) is True  # a program or a spec


def is_open_op(op: Op) -> bool:
    """Whether metadata of an op contain a symbolic size; sizes of a called program do not count."""
    params = op.params
    return is_open(params["sizes"]) if "sizes" in params else any(map(is_open, params.values()))
