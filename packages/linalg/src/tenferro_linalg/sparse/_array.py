"""`SparseArray`: a matrix that stores only the entries at given positions."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

import tenferro_runtime as tr
from tenferro_linalg._operands import common, inexact, show
from tenferro_linalg.sparse._contractions import contract
from tenferro_linalg.sparse._primitives import product_, solve_
from tenferro_linalg.sparse._structure import RowStructure, beside, device_of, structure_of
from tenferro_runtime.extension import ArgumentError, ShapeError, library
from tenferro_tensor import Array
from tenferro_tensor.contractible import Labels
from tenferro_tensor_core import require_equal
from tenferro_tensor_core.tracebacks import boundary


class SparseArray:
    """A sparse matrix in compressed rows: entries that may be differentiated, traced or mapped, at fixed positions.

    It is a pytree whose only leaf is the entries: transforms accept it as an argument, the gradient with respect to it
    is a sparse matrix with the same positions, and a compiled function makes one program per structure. Under ``vmap``
    all lanes share the positions.

    Args:
        data: the entries, row by row with ascending columns.
        structure: their positions.
    """

    __slots__ = ("data", "structure")

    def __init__(self, data: Any, structure: RowStructure) -> None:
        self.data: Any = data
        self.structure: RowStructure = structure

    @property
    def shape(self) -> tuple[int, int]:
        """Extents of the matrix."""
        return self.structure.shape

    @property
    def ndim(self) -> int:
        """Number of axes, always 2."""
        return 2

    @property
    def dtype(self) -> np.dtype[Any]:
        """Dtype of the entries."""
        return self.data.dtype

    @property
    def nnz(self) -> int:
        """Number of stored entries."""
        return self.structure.count

    @property
    def coords(self) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """Row and column indices of the entries, as NumPy arrays."""
        return self.structure.rows, self.structure.columns

    @property
    def T(self) -> SparseArray:
        """The transpose."""
        turned, order = self.structure.transposed
        data = inexact(self.data)
        return SparseArray(tr.take(data, beside(data, order)), turned)

    @property
    def mH(self) -> SparseArray:
        """The adjoint."""
        turned = self.T
        return SparseArray(tr.conj(turned.data), turned.structure)

    def todense(self) -> Array:
        """Convert to a dense matrix.

        Returns:
            Tensor (m, n) of the dtype of the entries.
        """
        data = inexact(self.data)
        whole = tr.zeros(self.shape, dtype=self.dtype, device=device_of(data))
        return whole.at[beside(data, *self.coords)].set(data)

    def to_scipy(self) -> Any:
        """Convert to SciPy; the entries must have concrete values.

        Returns:
            A ``scipy.sparse.csr_array``.
        """
        from scipy.sparse import csr_array

        return csr_array((np.asarray(self.data), self.structure.columns, self.structure.starts), shape=self.shape)

    def with_data(self, data: Any) -> SparseArray:
        """Replace the entries and keep their positions.

        Args:
            data: the new entries (nnz,).

        Returns:
            The new matrix.

        Raises:
            ShapeError: the number of entries differs.
        """
        data = inexact(data)
        require_equal(data.shape[-1], self.nnz, f"the structure has {self.nnz} entries, got {show(data.spec.shape)}")
        return SparseArray(data, self.structure)

    def sum(self, axis: int | None = None) -> Array:
        """Sum all entries, or along an axis.

        Args:
            axis: 0 for sums of columns, 1 for sums of rows, ``None`` for all entries.

        Returns:
            A 0-d tensor, or a tensor (n,) or (m,).
        """
        if axis is None:
            return tr.sum(self.data)
        if axis in (1, -1):
            return self @ tr.ones((self.shape[1],), dtype=self.dtype, device=device_of(inexact(self.data)))
        return self.T.sum(1)

    def diagonal(self) -> Array:
        """Extract the main diagonal; positions without an entry are zero.

        Returns:
            Tensor (min(m, n),).
        """
        rows, columns = self.coords
        (on,) = np.nonzero(rows == columns)
        data = inexact(self.data)
        whole = tr.zeros((min(self.shape),), dtype=self.dtype, device=device_of(data))
        return whole.at[beside(data, rows[on])].set(tr.take(data, beside(data, on)))

    def __matmul__(self, x: Any) -> Any:
        if isinstance(x, SparseArray):
            return NotImplemented
        x = inexact(x)
        if x.ndim not in (1, 2):
            raise ShapeError(
                f"a sparse matrix is multiplied with a vector or a matrix, got shape {show(x.spec.shape)}; use vmap "
                "for a batch",
                shape=x.spec.shape,
            )
        structure = self.structure
        if x.shape[0] != structure.shape[1]:
            require_equal(
                x.shape[0], self.shape[1], f"a {self!r} cannot be multiplied with an array of {show(x.spec.shape)}"
            )
        data = self.data if hasattr(self.data, "spec") else inexact(self.data)
        if data.spec.dtype != x.spec.dtype:
            data, x = common(data, x)
        return product_(data, x, structure=structure)

    def __rmatmul__(self, x: Any) -> Any:
        x = inexact(x)
        return self.T @ x if x.ndim == 1 else tr.matrix_transpose(self.T @ tr.matrix_transpose(x))

    def __tenferro_contract__(self, labels: Labels, other: Any, of_other: Labels, out: Labels) -> Any:
        if not isinstance(other, SparseArray):
            return contract(self, labels, other, of_other, out)
        # One of two sparse matrices is made dense: that with fewer elements.
        if prod(self.shape) < prod(other.shape):
            return contract(other, of_other, self.todense(), labels, out)
        return contract(self, labels, other.todense(), of_other, out)

    def __array_ufunc__(self, ufunc: Any, method: str, /, *inputs: Any, **kwargs: Any) -> Any:
        if method != "__call__" or kwargs or len(inputs) != 2:
            return NotImplemented
        if ufunc is np.matmul:
            return tr.matmul(*inputs)
        return self * inputs[inputs[0] is self] if ufunc is np.multiply else NotImplemented

    def __mul__(self, x: Any) -> SparseArray:
        """Multiply by a number, or by the elements of a dense matrix at the positions of the entries."""
        if isinstance(x, SparseArray):
            return NotImplemented
        if getattr(x, "ndim", 0) == 0:
            return SparseArray(self.data * x, self.structure)
        x = inexact(x)
        return SparseArray(self.data * tr.broadcast_to(x, self.shape)[beside(x, *self.coords)], self.structure)

    __rmul__ = __mul__

    def __truediv__(self, x: Any) -> SparseArray:
        return self * (1 / x)

    def __neg__(self) -> SparseArray:
        return SparseArray(-self.data, self.structure)

    def __add__(self, other: Any) -> SparseArray:
        if not isinstance(other, SparseArray):
            return NotImplemented
        if self.structure == other.structure:
            return SparseArray(self.data + other.data, self.structure)
        require_equal(self.shape[0], other.shape[0], f"a {self!r} and a {other!r} cannot be added")
        require_equal(self.shape[1], other.shape[1], f"a {self!r} and a {other!r} cannot be added")
        places = [np.concatenate(p) for p in zip(self.coords, other.coords, strict=True)]
        return coo_array((tr.concat(common(self.data, other.data)), (places[0], places[1])), self.shape)

    def __sub__(self, other: Any) -> SparseArray:
        return self + -other

    def __repr__(self) -> str:
        return f"SparseArray({self.structure!r}, {getattr(self.data, 'dtype', self.data)})"

    def _repr_html_(self) -> str:
        markup = library("tenferro_tensor.markup")
        share = self.nnz / max(1, self.shape[0] * self.shape[1])
        head = markup.joined([markup.element("b", repr(self)), f" · {share:.3g} of all elements"])
        html: str = markup.card(head, markup.pattern(*self.coords, self.shape))
        return html


tr.register_node(SparseArray, lambda a: ((a.data,), a.structure, ("data",)), lambda s, parts: SparseArray(parts[0], s))


@boundary
def coo_array(entries: tuple[Any, tuple[Any, Any]], shape: tuple[int, int]) -> SparseArray:
    """Create a sparse matrix from entries with row and column indices, in any order; duplicates are added.

    Args:
        entries: the triple ``(data, (rows, columns))``; the data may be differentiated, traced or mapped.
        shape: extents of the matrix.

    Returns:
        The sparse matrix.

    Raises:
        ArgumentError: the indices are not integer vectors of the same length.
        ShapeError: a position is outside the matrix, or the number of entries differs.

    >>> a = tr.linalg.coo_array(([1.0, 2.0, 3.0], ([0, 1, 0], [1, 0, 1])), (2, 2))
    >>> a.todense()
    Tensor([[0., 4.],
            [2., 0.]])
    """
    data, (rows, columns) = entries
    data = inexact(data)
    structure, order, target = structure_of(rows, columns, (int(shape[0]), int(shape[1])))
    require_equal(data.shape[0], order.size, f"there are {order.size} places for {show(data.spec.shape)} entries")
    data = tr.take(data, beside(data, order))
    if target is not None:
        whole = tr.zeros((structure.count,), dtype=data.dtype, device=device_of(data))
        data = whole.at[beside(data, target)].add(data)
    return SparseArray(data, structure)


@boundary
def csr_array(entries: tuple[Any, Any, Any], shape: tuple[int, int]) -> SparseArray:
    """Create a sparse matrix from compressed rows, in the format of ``scipy.sparse.csr_array``.

    Args:
        entries: ``(data, columns, starts)``; the entries of row i are those from ``starts[i]`` to ``starts[i + 1]``.
        shape: extents of the matrix.

    Returns:
        The sparse matrix.

    Raises:
        ShapeError: a column is outside the matrix, or the number of rows differs.

    >>> a = tr.linalg.csr_array(([1.0, 2.0], [1, 0], [0, 1, 2]), (2, 2))
    >>> a @ tr.asarray([1.0, 10.0])
    Tensor([10.,  2.])
    """
    data, columns, starts = entries
    starts = np.asarray(starts)
    if starts.shape != (shape[0] + 1,) or (np.diff(starts) < 0).any():
        raise ShapeError(f"a matrix of {shape[0]} rows needs {shape[0] + 1} ascending starts, got {starts!r:.80}")
    return coo_array((data, (np.repeat(np.arange(shape[0]), np.diff(starts)), columns)), shape)


@boundary
def sparse_array(A: Any) -> SparseArray:
    """Convert a sparse matrix of SciPy, in any format.

    Args:
        A: the matrix; a `SparseArray` is returned as it is.

    Returns:
        The sparse matrix.

    Raises:
        ArgumentError: `A` is not a sparse matrix.

    >>> import scipy.sparse
    >>> tr.linalg.sparse_array(scipy.sparse.eye_array(3))
    SparseArray(3x3, 3 entries, float64)
    """
    if isinstance(A, SparseArray):
        return SparseArray(A.data, A.structure)
    if not is_scipy(A):
        raise ArgumentError(f"sparse_array takes a sparse matrix of SciPy, got {A!r:.80}; use coo_array for entries")
    coo = A.tocoo()
    return coo_array((np.array(coo.data), (coo.row, coo.col)), coo.shape)


def is_scipy(A: Any) -> bool:
    """Whether an object is a sparse matrix of SciPy; does not import SciPy."""
    return type(A).__module__.startswith("scipy.sparse") and hasattr(A, "tocoo")


@boundary
def spsolve(A: Any, b: Any) -> Array:
    """Solve ``A x = b`` for a sparse matrix, by SuperLU's sparse LU factors.

    The derivatives with respect to the entries of `A` and to `b` are those of the equation, in both modes and to any
    order; each solves the equation or its adjoint.

    Args:
        A: a square `SparseArray`, or a sparse matrix of SciPy.
        b: a vector (n,), or a matrix (n, k) whose columns are right-hand sides.

    Returns:
        Tensor of the shape of `b` and the promoted dtype.

    Raises:
        NumericalError: the matrix is singular, or has an entry that is not finite.
        ShapeError: the matrix is not square, or `b` has a different number of rows.

    See also: `cg`, `gmres`, `lsqr`.

    >>> a = tr.linalg.coo_array(([2.0, 4.0, 1.0], ([0, 1, 1], [0, 1, 0])), (2, 2))
    >>> tr.linalg.spsolve(a, [2.0, 5.0])
    Tensor([1., 1.])
    """
    A, b = sparse_array(A), inexact(b)
    if A.shape[0] != A.shape[1]:
        raise ShapeError(f"spsolve takes a square matrix, got {A!r}; lsqr finds least-squares solutions", shape=A.shape)
    if b.ndim not in (1, 2):
        raise ShapeError(f"spsolve takes a vector or a matrix, got shape {show(b.spec.shape)}", shape=b.spec.shape)
    require_equal(b.shape[0], A.shape[0], f"a {A!r} does not fit the right-hand side of shape {show(b.spec.shape)}")
    data, b = common(A.data, b)
    found = solve_(data, tr.reshape(b, (-1, 1)) if b.ndim == 1 else b, structure=A.structure)
    return tr.reshape(found, (-1,)) if b.ndim == 1 else found
