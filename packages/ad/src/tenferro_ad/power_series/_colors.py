"""Colors variables so that those without a common second derivative share a direction.

For a direction s that is 1 at the variables of one color, ``s H s`` is the sum of ``H_ii`` over them, if no entry
``H_ij`` couples two of them. So the trace of a sparse Hessian needs as many directions as its graph has colors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from tenferro_ad._reverse import grad
from tenferro_ad._trees import as_value
from tenferro_ad.sparse._coloring import Coloring, color_columns
from tenferro_ad.sparse._entries import EntryWriter, scipy_sparse
from tenferro_ad.sparse._flat import Arguments, FlatFunction, split_arguments
from tenferro_ad.sparse._patterns import relations_of
from tenferro_runtime import imag, real
from tenferro_runtime import sum as sum_of
from tenferro_runtime.ir import here
from tenferro_runtime.tracing import staged
from tenferro_tensor import SCALARS, Spec
from tenferro_tensor_core import ArgumentError

COLORINGS_MAX: Final = 32
"""Bound of the cache of colorings of one function."""


class VariableColors:
    """Colors of the variables of a function, cached for each kind and size of arguments."""

    def __init__(self, f: Callable[..., Any], argnums: int | Sequence[int], has_aux: bool) -> None:
        self.f = (lambda *args, **kwargs: f(*args, **kwargs)[0]) if has_aux else f
        self.argnums = argnums
        self._kept: dict[Any, Coloring] = {}

    def of(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Coloring:
        """The colors of all variables, in the order of the leaves of the chosen arguments.

        Raises:
            ArgumentError: a size is symbolic.
            TracingError: the function cannot be traced.
            UnsupportedError: a size depends on data.
            BackendUnavailableError: SciPy is not installed.
        """
        given = split_arguments(args, kwargs, self.argnums, "laplacian")
        specs = tuple([x if x.__class__ in SCALARS else as_value(x).spec for x in given.leaves])
        if any(isinstance(s, Spec) and s.symbolic for s in specs):
            raise ArgumentError(
                f"laplacian with sparse=True needs sizes that are numbers{here()}; leave it out, or trace with numbers "
                "for the sizes"
            )
        key = (given.key, *[(s.__class__, s) for s in specs])
        found = self._kept.get(key)
        if found is None:
            if len(self._kept) >= COLORINGS_MAX:
                self._kept.clear()
            found = self._kept[key] = self._colored(given, specs)
        return found

    def _colored(self, given: Arguments, specs: tuple[Any, ...]) -> Coloring:
        flat = FlatFunction(self.f, given)

        def total(*leaves: Any) -> Any:
            parts = [part for y in flat(*leaves) for part in ((real(y), imag(y)) if y.spec.cplx else (y,))]
            return sum([sum_of(part) for part in parts if part.spec.inexact], as_value(0.0))

        # Values that the function closes over, also of other differentiations, become inputs after the leaves.
        program = staged(grad(total, tuple(range(given.chosen))), specs).program
        chosen = specs[: given.chosen]
        pattern = _pattern(program, [int(s.size) for s in chosen])
        upper = scipy_sparse().triu(pattern, k=1).tocoo()
        # One row for each pair of coupled variables, which must have different colors.
        ends = np.stack([upper.row, upper.col], axis=1).reshape(-1)
        pairs = scipy_sparse().csr_array(
            (np.ones(len(ends), np.bool_), ends, np.arange(0, len(ends) + 1, 2)), shape=(upper.nnz, pattern.shape[0])
        )
        found = color_columns(pairs, [tuple(s.shape) for s in chosen])
        return found._replace(number=max(found.number, 1))


def _pattern(program: Any, sizes: Sequence[int]) -> Any:
    """The symmetric pattern of second derivatives, from the dependences of the gradient's elements."""
    sparse, writer = scipy_sparse(), EntryWriter({})
    relations = relations_of(program, tuple(range(len(sizes))), {})
    grid = [
        [
            sparse.csr_array((m, n), dtype=np.bool_) if r is None else writer.matrix(r)
            for r, n in zip(relations[v], sizes, strict=True)
        ]
        for v, m in zip(program.output_ids, sizes, strict=True)
    ]
    pattern = sparse.csr_array(sparse.block_array(grid, format="csr"))
    return pattern.multiply(pattern.T.tocsr()).tocsr()
