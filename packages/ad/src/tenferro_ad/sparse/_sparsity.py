"""`sparsity`: which elements of the arguments each element of the value of a function depends on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from tenferro_ad.sparse._entries import EntryWriter, scipy_sparse
from tenferro_ad.sparse._flat import FlatFunction, split_arguments
from tenferro_ad.sparse._patterns import relations_of
from tenferro_ad.sparse._relation import Relation, Shape
from tenferro_ad.sparse._text import shown
from tenferro_runtime.extension import Program
from tenferro_runtime.ir import filled
from tenferro_runtime.trees import unflatten
from tenferro_tensor import library
from tenferro_tensor_core import ArgumentError, evaluate

if TYPE_CHECKING:
    from tenferro_ad._signatures import Leaf
    from tenferro_tensor import Array, Spec


class Sparsity:
    """The sparsity pattern of one value with respect to one argument.

    It follows from the program, so it is a superset of the nonzero derivatives for all values of the arguments. It
    prints as relations between indices, if these are known for symbolic sizes.

    Attributes:
        shape: shape of the value.
        source: shape of the argument.
    """

    __slots__ = ("_program", "_sizes", "_variable", "_wanted", "_which", "shape", "source")

    def __init__(
        self, program: Program, variable: int, wanted: tuple[int, ...], which: int, sizes: Mapping[str, int] | None
    ) -> None:
        self._program, self._variable, self._wanted, self._which = program, variable, wanted, which
        self._sizes = sizes
        self.shape: Shape = filled(program.specs[variable].shape, sizes or {})
        self.source: Shape = filled(program.inputs[wanted[which]].shape, sizes or {})

    def matrix(self, **sizes: int) -> Any:
        """The pattern as a boolean `scipy.sparse.csr_array` over flat, row-major indices.

        Args:
            sizes: values of the symbolic sizes by name; not needed if the pattern is that of arrays.

        Returns:
            A matrix with a row for each element of the value and a column for each element of the argument.

        Raises:
            ArgumentError: a size is missing, or the pattern has too many entries.
            BackendUnavailableError: SciPy is not installed.
        """
        known = self._known(sizes)
        relation = self._relation(known)
        if relation is None:
            shape = (EntryWriter(known).extent(self.shape), EntryWriter(known).extent(self.source))
            return scipy_sparse().csr_array(shape, dtype=np.bool_)
        return EntryWriter(known, [relation]).matrix(relation)

    def inputs_of(self, index: int | tuple[int, ...], **sizes: int) -> np.ndarray[Any, Any]:
        """Indices of the elements of the argument that one element of the value depends on.

        Args:
            index: index of the element of the value.
            sizes: values of the symbolic sizes by name.

        Returns:
            An integer array with one index per row, of shape (number of elements, rank of the argument).

        Raises:
            ArgumentError: `index` is out of range, or a size is missing.
            BackendUnavailableError: SciPy is not installed.
        """
        known = self._known(sizes)
        shape, source = (tuple([evaluate(n, known) for n in s]) for s in (self.shape, self.source))
        where = index if isinstance(index, tuple) else (index,)
        if len(where) != len(shape) or not all(-n <= i < n for i, n in zip(where, shape, strict=True)):
            raise ArgumentError(f"{index} is not an index into a value of shape {shape}", index=index)
        row = (
            int(np.ravel_multi_index(tuple([i % n for i, n in zip(where, shape, strict=True)]), shape)) if shape else 0
        )
        flat = self.matrix(**sizes)[[row]].indices
        return np.stack(np.unravel_index(np.sort(flat), source), axis=-1) if source else np.zeros((len(flat), 0), int)

    def _known(self, sizes: Mapping[str, int]) -> dict[str, int]:
        known = {**(self._sizes or {}), **sizes}
        needed = {name for n in (*self.shape, *self.source) if not isinstance(n, int) for name in n.variables}
        missing = sorted(needed - known.keys())
        if missing:
            raise ArgumentError(
                f"the pattern has symbolic sizes, of which {missing} have no value; pass them by name, as in "
                f"matrix({missing[0]}=100)"
            )
        return known

    def _relation(self, sizes: Mapping[str, int] | None) -> Relation | None:
        return relations_of(self._program, self._wanted, sizes)[self._variable][self._which]

    def __str__(self) -> str:
        relation = self._relation(None)
        return "no dependence" if relation is None else shown(relation)

    def __repr__(self) -> str:
        return f"Sparsity({self.shape} <- {self.source})"

    def _repr_html_(self) -> str:
        markup = library("tenferro_tensor.markup")
        parts = [markup.preformatted(str(self))]
        with suppress(ArgumentError):  # sizes are open, or there are too many entries
            entries = self.matrix().tocoo()
            parts.append(markup.pattern(entries.row, entries.col, entries.shape))
        html: str = markup.card(markup.element("b", repr(self)), *parts)
        return html


def program_sparsity(
    program: Program, inputs: Sequence[int] | None = None, sizes: Mapping[str, int] | None = None
) -> dict[int, tuple[Sparsity, ...]]:
    """Sparsity patterns of all variables of a program, including intermediate ones.

    Args:
        program: the program.
        inputs: positions of inputs; by default all inexact inputs.
        sizes: values of the symbolic sizes by name, if they are known.

    Returns:
        For each variable, a `Sparsity` for each of these inputs.

    Raises:
        UnsupportedError: the program has data-dependent sizes.

    >>> import numpy as np
    >>> import tenferro_runtime as tr
    >>> from tenferro_tensor import Spec
    >>> program = tr.trace(lambda x: tr.sum(x[1:] * x[:-1]), Spec((4,), np.dtype("float64")))
    >>> for (found,) in program_sparsity(program).values():
    ...     print(found.shape, found.matrix().nnz)
    (4,) 4
    (3,) 3
    (3,) 3
    (3,) 6
    () 4
    """
    chosen = [i for i, s in enumerate(program.inputs) if s.inexact] if inputs is None else inputs
    wanted = tuple(chosen)
    found = relations_of(program, wanted, sizes)
    return {v: tuple([Sparsity(program, v, wanted, j, sizes) for j in range(len(wanted))]) for v in found}


@overload
def sparsity(f: Callable[..., Array], *args: Leaf | Spec, argnums: int = ..., **kwargs: Any) -> Sparsity: ...
@overload
def sparsity(f: Callable[..., Any], *args: Any, argnums: int | Sequence[int] = ..., **kwargs: Any) -> Any: ...
def sparsity(f: Callable[..., Any], *args: Any, argnums: int | Sequence[int] = 0, **kwargs: Any) -> Any:
    """Find which elements of the arguments each element of a function's value depends on.

    The function is traced, not run. An index computed from data counts as all possible positions.

    Args:
        f: a traceable function of pytrees of arrays to a pytree of arrays.
        args: its arguments; a `Spec`, also with symbolic sizes, may stand for an array.
        argnums: position of the argument of interest, or several positions.
        kwargs: keyword arguments.

    Returns:
        A `Sparsity` for each value and argument, nested as in `jacfwd`.

    Raises:
        ArgumentError: `argnums` names no argument.
        GradientError: a chosen argument holds integers or booleans.
        TracingError: `f` cannot be traced.

    See also:
        sparse_jacobian: the derivatives in this pattern.

    >>> import numpy as np
    >>> import tenferro_runtime as tr
    >>> from tenferro_ad import sparsity
    >>> from tenferro_tensor import Spec
    >>> found = sparsity(lambda x: x[1:] - x[:-1], Spec((tr.dim("n"),), np.dtype("float64")))
    >>> print(found)
    out[i] <- in[i + 1] for 0 <= i < n - 1
    out[i] <- in[i] for 0 <= i < n - 1
    >>> found.matrix(n=4).toarray().astype(int)
    array([[1, 1, 0, 0],
           [0, 1, 1, 0],
           [0, 0, 1, 1]])
    """
    given = split_arguments(args, kwargs, argnums, "sparsity")
    flat = FlatFunction(f, given)
    program, out_tree, sizes = flat.traced(given.leaves)
    wanted = tuple(range(given.chosen))
    rows = [[Sparsity(program, v, wanted, j, sizes) for j in wanted] for v in program.output_ids]
    return unflatten(out_tree, [unflatten(given.tree, row) for row in rows])
