"""`sparse_jacobian` and `sparse_hessian`: derivatives as arrays of `scipy.sparse`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import update_wrapper
from typing import Any, Final, NamedTuple

import numpy as np

from tenferro_ad._jacobian import require_floats, require_kind
from tenferro_ad._reverse import grad
from tenferro_ad._trees import as_value, require_convention, split_aux
from tenferro_ad.sparse._entries import EntryWriter, scipy_sparse
from tenferro_ad.sparse._flat import Arguments, FlatFunction, require_concrete, split_arguments
from tenferro_ad.sparse._patterns import relations_of
from tenferro_ad.sparse._plan import Compression, plan_hessian, plan_jacobian, require_mode
from tenferro_ad.sparse._products import Products, SeededGroup, seeded
from tenferro_runtime.costs import plan_memory
from tenferro_runtime.extension import REGISTRY, GradientError, Program
from tenferro_runtime.trees import TreeDef, unflatten
from tenferro_tensor import Spec
from tenferro_tensor_core import computing_type

STRUCTURES_MAX: Final = 32
"""Bound of the cache of argument structures of a sparse derivative."""

DEFAULT_BUDGET: Final = 1 << 28
"""Default memory budget of one batch of products, in bytes."""

PLANS_MAX: Final = 32
"""Bound of the cache of plans of a program, by sizes."""


class _Block(NamedTuple):
    """The part of a pattern that belongs to one value and one argument.

    Attributes:
        shape: number of elements of the value and of the argument.
        indices: column indices, as in a `csr_array`.
        starts: row starts, the ``indptr`` of a `csr_array`.
        entries: indices of its entries in the whole pattern; ``None`` for all of them.
        cplx: whether the value or the argument is complex.
    """

    shape: tuple[int, int]
    indices: np.ndarray[Any, Any]
    starts: np.ndarray[Any, Any]
    entries: np.ndarray[Any, Any] | None
    cplx: bool


class _Prepared(NamedTuple):
    """The plan of a sparse derivative for given sizes.

    Attributes:
        groups: the products.
        compression: their number.
        dtype: dtype of the entries.
        blocks: the parts of the pattern, by value and argument.
    """

    groups: tuple[SeededGroup, ...]
    compression: Compression
    dtype: np.dtype[Any]
    blocks: tuple[tuple[_Block, ...], ...]


class _Structure:
    """The compiled functions for one structure of arguments."""

    def __init__(self, f: Callable[..., Any], given: Arguments) -> None:
        self.flat = FlatFunction(f, given)
        self.products = Products(self.flat, given.chosen)


class SparseDerivative:
    """A function that returns a sparse derivative of another function; made by `sparse_jacobian` and `sparse_hessian`.

    The pattern and the products that fill it are cached for each kind and size of arguments.
    """

    f: Callable[..., Any]
    argnums: int | Sequence[int]
    mode: str | None
    has_aux: bool
    memory_budget: int
    holomorphic: bool
    convention: str

    def __init__(
        self,
        f: Callable[..., Any],
        argnums: int | Sequence[int],
        mode: str | None,
        holomorphic: bool = False,
        convention: str = "tenferro",
        memory_budget: int | None = None,
        has_aux: bool = False,
    ) -> None:
        self.f, self.argnums, self.mode, self.has_aux = f, argnums, mode, has_aux
        self.memory_budget = DEFAULT_BUDGET if memory_budget is None else memory_budget
        self.holomorphic, self.convention = holomorphic, convention
        self._structures: dict[Any, _Structure] = {}
        update_wrapper(self, f, updated=())

    @property
    def _what(self) -> str:
        return "sparse_hessian" if self.mode is None else "sparse_jacobian"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The derivative at given arguments: a `csr_array` for each value and argument, in their containers."""
        given, structure, prepared, tree = self._prepared(args, kwargs)
        data = self._data(given, structure, prepared)
        csr = scipy_sparse().csr_array
        rows = []
        for row in prepared.blocks:
            made = []
            for b in row:
                values = data if b.entries is None else data[b.entries]
                values = values if b.cplx or values.dtype.kind != "c" else values.real.copy()
                values = values.astype(computing_type(values.dtype), copy=False)  # SciPy has no narrow floats
                made.append(csr((values, b.indices.copy(), b.starts.copy()), shape=b.shape))
            rows.append(unflatten(given.tree, made))
        found = unflatten(tree, rows)
        return (found, split_aux(self.f(*args, **kwargs), True, self._what)[1]) if self.has_aux else found

    def compression(self, *args: Any, **kwargs: Any) -> Compression:
        """Count the products that the derivative takes.

        Args:
            args: positional arguments, as for the derivative itself.
            kwargs: keyword arguments.

        Returns:
            The numbers of products with tangents and with cotangents, and of entries.
        """
        return self._prepared(args, kwargs)[2].compression

    def _prepared(self, args: tuple[Any, ...], kwargs: Any) -> tuple[Arguments, _Structure, _Prepared, TreeDef]:
        given = split_arguments(args, kwargs, self.argnums, self._what)
        require_concrete(given.leaves)
        structure = self._structures.get(given.key)
        if structure is None:
            if len(self._structures) >= STRUCTURES_MAX:
                self._structures.clear()
            f = _value_of(self.f, self._what) if self.has_aux else self.f
            structure = self._structures[given.key] = _Structure(f, given)
        program, tree, sizes = structure.flat.traced(given.leaves)
        assert sizes is not None, "the sizes of arrays are known"
        kept: dict[Any, _Prepared] = program.memo.setdefault("sparse derivatives", {})
        key = (REGISTRY.count, self._what, self.mode, self.memory_budget, given.chosen, tuple(sizes.items()))
        found = kept.get(key)
        if found is None:
            if len(kept) >= PLANS_MAX:
                kept.clear()
            found = kept[key] = self._prepare(program, given, sizes)
        return given, structure, found, tree

    def _prepare(self, program: Program, given: Arguments, sizes: dict[str, int]) -> _Prepared:
        """The pattern of a program, colored."""
        writer = EntryWriter(sizes)
        outs = tuple([s.with_(shape=tuple(map(writer.number, s.shape))) for s in program.outputs])
        ins = [as_value(x).spec for x in given.leaves[: given.chosen]]
        require_floats(outs, self._what)
        for x in ins:
            if self.mode is None and x.cplx:
                raise GradientError(
                    f"sparse_hessian needs real arguments, but one is {x!r}; split it into real and imaginary parts"
                )
            require_kind(outs, x, self.holomorphic, self._what)
        found = relations_of(program, tuple(range(given.chosen)), sizes)
        writer = EntryWriter(sizes, [r for v in program.output_ids for r in found[v] if r is not None])
        sparse = scipy_sparse()
        grid = []
        for v, out in zip(program.output_ids, outs, strict=True):
            row = []
            for r, x in zip(found[v], ins, strict=True):
                zero = sparse.csr_array((int(out.size), int(x.size)), dtype=np.bool_)  # type: ignore[arg-type]
                row.append(zero if r is None else writer.matrix(r))
            grid.append(row)
        single = len(outs) == len(ins) == 1
        pattern = grid[0][0] if single else sparse.csr_array(sparse.block_array(grid, format="csr"))
        if self.mode is None:
            # Second derivatives are symmetric, so intersect the pattern with its transpose.
            pattern = sparse.csr_array(pattern.multiply(pattern.T.tocsr()).tocsr())
        pattern.sum_duplicates()
        rows, columns = ([tuple(s.shape) for s in specs] for specs in (outs, ins))
        # A derivative takes about twice the memory of the differentiated program.
        each = 2 * plan_memory(program).peak(sizes) + 8 * sum(pattern.shape)
        step = max(1, self.memory_budget // max(1, each))
        if self.mode is None:
            plan = plan_hessian(pattern, columns, step)
        else:
            mode = self.mode
            if any(s.cplx for s in (*outs, *ins)) and mode == "auto":
                mode = "columns"
            plan = plan_jacobian(pattern, mode, rows, columns, step)
        groups = tuple([seeded(group, ins if group.forward else outs) for group in plan.groups])
        dtype = np.result_type(*[s.dtype for s in (*outs, *ins)])
        return _Prepared(groups, plan.compression, dtype, _blocks(pattern, outs, ins))

    def _data(self, given: Arguments, structure: _Structure, prepared: _Prepared) -> np.ndarray[Any, Any]:
        data = np.zeros(prepared.compression.entries, prepared.dtype)
        for group in prepared.groups:
            turned = not group.forward and (self.holomorphic or self.convention == "jax")
            part = np.zeros_like(data) if turned else data
            structure.products.fill(part, group, given.leaves)
            if turned:
                data += part.conj()
            if group.cplx and not self.holomorphic:
                other = np.zeros_like(data)
                structure.products.fill(other, group, given.leaves, imaginary=True)
                data += (-1j if self.convention == "jax" and group.forward else 1j) * other
        return data


def _value_of(f: Callable[..., Any], what: str) -> Callable[..., Any]:
    """The function without its auxiliary result."""
    return lambda *args, **kwargs: split_aux(f(*args, **kwargs), True, what)[0]


def _blocks(pattern: Any, outs: Sequence[Spec], ins: Sequence[Spec]) -> tuple[tuple[_Block, ...], ...]:
    """The parts of a pattern, with the indices of their entries."""
    if len(outs) == len(ins) == 1:
        cplx = outs[0].cplx or ins[0].cplx
        return ((_Block(pattern.shape, pattern.indices, pattern.indptr, None, cplx),),)
    numbered = type(pattern)((np.arange(pattern.nnz), pattern.indices, pattern.indptr), shape=pattern.shape)
    found, a = [], 0
    for out in outs:
        row, b = [], 0
        for x in ins:
            height, width = int(out.size), int(x.size)  # type: ignore[arg-type]
            part = numbered[a : a + height, b : b + width]
            row.append(_Block((height, width), part.indices, part.indptr, part.data, out.cplx or x.cplx))
            b += width
        found.append(tuple(row))
        a += height
    return tuple(found)


def sparse_jacobian(
    f: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    *,
    mode: str = "auto",
    has_aux: bool = False,
    holomorphic: bool = False,
    convention: str = "tenferro",
    memory_budget: int | None = None,
) -> SparseDerivative:
    """Make a function that returns the Jacobian of `f` as a sparse array.

    The pattern follows from the program of `f`. Columns without a common row share a color and one tangent, rows
    without a common column share one cotangent (Curtis, Powell and Reid, 1974); no dense array of the full size is
    made. Pattern and colors are cached for each kind and size of arguments.

    Args:
        f: a traceable function of pytrees of arrays to a pytree of arrays.
        argnums: position of the argument to differentiate, or several positions.
        mode: ``"columns"`` uses tangents, ``"rows"`` cotangents, ``"both"`` some of each, and ``"auto"`` whichever
            needs the fewest products.
        has_aux: `f` returns a pair ``(value, aux)``; the result is then ``(jacobian, aux)``, at the cost of one more
            run.
        holomorphic: `f` is holomorphic; required if both argument and value are complex.
        convention: ``"tenferro"``, or ``"jax"``, which conjugates derivatives of real values by complex arguments.
        memory_budget: limit, in bytes, on the estimated memory of one batch of products; by default 256 MiB.

    Returns:
        A function of concrete arguments. For a value of shape s and an argument of shape t it returns a
        `scipy.sparse.csr_array` with a row for each element of the value and a column for each element of the argument,
        in row-major order, and their common dtype; containers nest as in `jacfwd`. Its method ``compression`` counts
        the products.

    Raises:
        ArgumentError: `mode` or `convention` is unknown, `argnums` names no argument, or the pattern has too many
            entries.
        GradientError: as in `jacfwd`.
        UnsupportedError: an argument is traced or differentiated, or a size depends on data.
        BackendUnavailableError: SciPy is not installed.

    See also:
        sparsity: the pattern alone.
        jacfwd, jacrev: dense Jacobians.

    >>> import numpy as np
    >>> from tenferro_ad import sparse_jacobian
    >>> jacobian = sparse_jacobian(lambda x: x[1:] * x[:-1])
    >>> jacobian(np.array([1.0, 2.0, 3.0])).toarray()
    array([[2., 1., 0.],
           [0., 3., 2.]])
    >>> jacobian.compression(np.ones(1000))
    Compression(forward=2, reverse=0, entries=1998)
    """
    require_mode(mode)
    require_convention(convention)
    return SparseDerivative(f, argnums, mode, holomorphic, convention, memory_budget, has_aux)


def sparse_hessian(
    f: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    *,
    has_aux: bool = False,
    memory_budget: int | None = None,
) -> SparseDerivative:
    """Make a function that returns the Hessian of a real function as a sparse array.

    The pattern follows from the program of the gradient. By a star coloring of the symmetric pattern (Coleman and
    Moré, 1984), elements of one color share a tangent, and each color takes one Hessian-vector product.

    Args:
        f: a traceable function of pytrees of arrays to one real number.
        argnums: position of the argument to differentiate, or several positions.
        has_aux: `f` returns a pair ``(value, aux)``; the result is then ``(hessian, aux)``, at the cost of one more
            run.
        memory_budget: limit, in bytes, on the estimated memory of one batch of products; by default 256 MiB.

    Returns:
        A function of concrete, real arguments that returns a `scipy.sparse.csr_array` with a row and a column for each
        element of the argument, and its dtype; for several arguments or containers, blocks nest as in `hessian`. Its
        method ``compression`` counts the products.

    Raises:
        ArgumentError: `argnums` names no argument, or the pattern has too many entries.
        GradientError: as in `hessian`; or an argument is complex.
        UnsupportedError: an argument is traced or differentiated, or a size depends on data.
        BackendUnavailableError: SciPy is not installed.

    See also:
        hvp: a single Hessian-vector product.
        laplacian: the sum of the diagonal.

    >>> import numpy as np
    >>> from tenferro_ad import sparse_hessian
    >>> hessian = sparse_hessian(lambda x: (x[1:] * x[:-1]).sum())
    >>> hessian(np.ones(3)).toarray()
    array([[0., 1., 0.],
           [1., 0., 1.],
           [0., 1., 0.]])
    """
    gradient = grad(f, argnums, has_aux=has_aux)
    return SparseDerivative(gradient, argnums, None, memory_budget=memory_budget, has_aux=has_aux)
