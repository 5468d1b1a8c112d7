"""`trace`: record a Python function as a program."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, overload

import numpy as np

from tenferro_runtime._counters import COUNTERS
from tenferro_runtime.ir._data_sizes import names_in
from tenferro_runtime.ir._program import Program
from tenferro_runtime.ir._sizes import variables
from tenferro_runtime.ir._source import here, tell_line
from tenferro_runtime.runtime import current_runtime
from tenferro_runtime.tracing._builder import OPENED, Builder
from tenferro_runtime.tracing._traced import TracedTensor
from tenferro_runtime.trees._tree import TreeDef, flatten, unflatten
from tenferro_tensor import SCALARS, Array, Size, Spec, tensor
from tenferro_tensor.dispatch import scoped_device
from tenferro_tensor.functions import matrix_trace
from tenferro_tensor_core import ArgumentError, Decisions, Dim, DimLike, TracingError
from tenferro_tensor_core import decisions as active
from tenferro_tensor_core.tracebacks import hiding

FIRST_EXAMPLE: Final = 5
"""Smallest example of a symbolic size: larger than 0 and 1, which have special meanings."""


class Recorded(NamedTuple):
    """The result of tracing a function.

    Attributes:
        program: the program; its last inputs stand for `captured`.
        tree: structure of the result.
        fixed: results that are plain numbers, by position among the leaves of the result.
        captured: values of outer transformations that the function read from closures or globals.
        equalities: symbolic sizes that the trace found equal to others, by name.
    """

    program: Program
    tree: TreeDef
    fixed: dict[int, Any]
    captured: tuple[Any, ...]
    equalities: dict[str, DimLike]


def record(
    f: Callable[[list[TracedTensor]], Any],
    inputs: Sequence[tuple[Spec, str | None, type | None]],
    examples: Mapping[str, int] | None = None,
    *,
    strict: bool = False,
    within: bool = False,
) -> Recorded:
    """Run `f` on traced values.

    Args:
        f: called with one traced value for each input.
        inputs: spec, name, and for Python scalars their class, which makes the value weak.
        examples: example values of symbolic sizes.
        strict: raise an error where a symbolic size is converted to a number.
        within: the sizes belong to the enclosing trace, which also receives the guards.

    Returns:
        The program and the structure of the result.
    """
    outermost = OPENED.set((scoped_device(),)) if OPENED.get() is None else None
    builder = Builder()
    going_on = active() if within else None
    decisions = Decisions(examples or {}, builder, strict=strict) if going_on is None else going_on
    try:
        values = [builder.input(spec, name, weak) for spec, name, weak in inputs]
        with decisions:
            leaves, tree = flatten(f(values))
            leaves = [leaf.value() if leaf.__class__ is Size else leaf for leaf in leaves]
            fixed = {i: leaf for i, leaf in enumerate(leaves) if leaf.__class__ in SCALARS}
            arrays = [leaf for i, leaf in enumerate(leaves) if i not in fixed]
            _require_arrays(leaves, tree)
            guards = tuple(dict.fromkeys(decisions.guards))
            program = builder.close(arrays, guards=guards, examples=decisions.examples)
    except Exception as error:
        tell_line(error, builder.source)
        raise
    finally:
        builder.closed = True
        if going_on is None:
            decisions.closed = True
        if outermost is not None:
            OPENED.reset(outermost)
    COUNTERS.traces += 1
    captured = tuple([v for v, _ in builder.captured])
    return Recorded(program, tree, fixed, captured, decisions.equalities)


def _require_arrays(leaves: list[Any], tree: TreeDef) -> None:
    for leaf, path in zip(leaves, tree.paths(), strict=True):
        if leaf.__class__ not in SCALARS and not isinstance(leaf, (Array, np.ndarray, np.generic)):
            raise ArgumentError(
                f"a traced function returned a {type(leaf).__name__} at result{path}; it may return arrays and numbers "
                "in lists, tuples, dicts, deques, namedtuples and objects of classes registered with "
                "register_dataclass or register_node",
                path=path,
            )


@overload
def trace(
    f: Callable[..., Any], /, *args: Any, examples: Mapping[str, int] | None = None, **kwargs: Any
) -> Program: ...
@overload
def trace(f: Array, /, offset: int = 0, axis1: int = 0, axis2: int = 1, *, dtype: Any = None) -> Array: ...
@hiding
def trace(f: Any, /, *args: Any, examples: Mapping[str, int] | None = None, **kwargs: Any) -> Program | Array:
    """Record `f` as a `Program`, without running it on any data.

    An array in place of a function has NumPy's meaning: ``trace(x, offset, axis1, axis2)`` is the sum of a diagonal.

    Args:
        f: the function, which receives traced values for arrays, numbers and specs in `args` and `kwargs`.
        args: positional arguments, pytrees of `Spec`s (symbolic sizes come from `dim`), arrays or numbers.
        examples: values that decide questions about symbolic sizes; each answer becomes a guard of the program.
        kwargs: keyword arguments.

    Returns:
        The program. Its inputs are the leaves of the arguments in order, its outputs the leaves of the result.

    Raises:
        TracingError: the function asked for the elements of a traced value, or used a traced or differentiated value
            from outside.
        ArgumentError: an example is given for a size that does not occur, or a leaf is not an array.

    See also: `compile`, which also runs the program; `matrix_trace`, the sum of a diagonal in the Array API standard.

    >>> import tenferro_runtime as tr
    >>> n = tr.dim("n")
    >>> program = tr.trace(lambda x: x * x + 1, Spec((n,), np.dtype("float64")))
    >>> program.outputs
    (float64[n],)
    >>> program.run(np.arange(3.0))
    (Tensor([1., 2., 5.]),)
    >>> tr.trace(tr.eye(3))
    Tensor(3.)
    """
    if isinstance(f, Array):
        return _diagonal_sum(f, *args, **kwargs)
    leaves, treedef = flatten((args, kwargs))
    inputs: list[tuple[Spec, str | None, type | None]] = []
    for leaf, path in zip(leaves, treedef.paths(), strict=True):
        spec, weak = leaf_spec(leaf, path)
        inputs.append((spec, None, weak))

    def call(values: list[TracedTensor]) -> Any:
        positional, named = unflatten(treedef, values)
        return f(*positional, **named)

    sizes = example_sizes([spec for spec, _, _ in inputs], examples)
    recorded = record(call, inputs, sizes, strict=current_runtime().strict_sizes)
    if recorded.captured:
        value = recorded.captured[0]
        raise TracingError(
            f"the traced function uses {value.spec!r} of class {type(value).__name__} from outside{here()}; a program "
            "stands alone: pass the value as an argument, or use compile, which passes such values along",
            spec=repr(value.spec),
        )
    own = names_in(tuple([spec.shape for spec, _, _ in inputs]))
    foreign = [name for name in variables(recorded.program) if name not in own]
    if foreign:
        raise TracingError(
            f"the traced function uses the size {foreign[0]} from outside{here()}, an extent of no argument; a program "
            "stands alone: pass an array that has this extent as an argument, or use compile, which passes such sizes "
            "along",
            size=foreign[0],
        )
    if recorded.fixed:
        raise TracingError(
            f"the traced function returned the number {next(iter(recorded.fixed.values()))!r}, which does not depend "
            "on its arguments; return asarray() of it to make it a constant of the program"
        )
    return recorded.program


def _diagonal_sum(x: Array, offset: int = 0, axis1: int = 0, axis2: int = 1, *, dtype: Any = None) -> Array:
    return matrix_trace(x, offset=offset, axis1=axis1, axis2=axis2, dtype=dtype)


def leaf_spec(leaf: Any, path: str) -> tuple[Spec, type | None]:
    """The spec of an argument, and its class if it is a Python scalar."""
    if isinstance(leaf, Spec):
        return leaf, None
    if isinstance(leaf, Array):
        return leaf.spec, None
    if leaf.__class__ in SCALARS:
        return tensor(leaf).spec, leaf.__class__
    if isinstance(leaf, (np.ndarray, np.generic)):
        return tensor(leaf).spec, None
    raise ArgumentError(
        f"a {type(leaf).__name__} is not an array, a number or a Spec (at argument {path}){here()}; "
        "convert it, or close over it",
        path=path,
    )


def example_sizes(specs: Sequence[Spec], given: Mapping[str, int] | None) -> dict[str, int] | None:
    """Example values of the symbolic sizes in order of appearance: the given ones, else distinct values within bounds.

    Raises:
        ArgumentError: an example is given for a size that does not occur.
    """
    atoms: dict[str, Any] = {}
    for spec in specs:
        for d in spec.shape:
            if isinstance(d, Dim):
                atoms.update((a.name, a) for a in d.atoms() if a.kind == "var")
    unknown = sorted(set(given or ()) - set(atoms))
    if unknown:
        raise ArgumentError(
            f"examples name the sizes {unknown}, but the symbolic sizes are {sorted(atoms)}; correct the names"
        )
    if not atoms:
        return None
    sizes: dict[str, int] = {}
    candidate = FIRST_EXAMPLE
    for name, atom in atoms.items():
        if given and name in given:
            sizes[name] = given[name]
            continue
        low, high = atom.lower or 0, atom.upper
        size = max(low, candidate) if high is None else min(max(low, candidate), high)
        sizes[name] = size
        candidate = max(candidate, size) + 2
    return sizes
