"""`Array`: the operators and methods that concrete, differentiated and traced values share.

Every kind of value has a ``spec`` and a ``level``, and interprets an op by ``_bind(op, args)``. All methods are written
in terms of ops, so that they mean the same for all kinds.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from operator import index
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self

import numpy as np

from tenferro_tensor import catalog, functions
from tenferro_tensor._assignment import assign, augment
from tenferro_tensor._export import Exported
from tenferro_tensor._foreign import require_no_array
from tenferro_tensor._known import Interval, LinearForm
from tenferro_tensor._numpy_calls import NumpyCalls
from tenferro_tensor._numpy_methods import NumpyMethods
from tenferro_tensor._place import ComputeDevice, MemorySpace, Place
from tenferro_tensor._primitive import Op
from tenferro_tensor._size import Size, sized, sized_shape
from tenferro_tensor.backends import get_backend
from tenferro_tensor.calls import (
    SCALARS,
    ValueBase,
    augmented,
    copied,
    operator,
    reflected,
    reshaped,
    swapped,
    transposed,
    unary,
)
from tenferro_tensor.direct import ANY_SIZE, direct
from tenferro_tensor.functions.linear_algebra import MATMUL
from tenferro_tensor.functions.reading import view_item
from tenferro_tensor.functions.reinterpretation import view
from tenferro_tensor.functions.updating import At
from tenferro_tensor.identity import aliased
from tenferro_tensor.origins import noted
from tenferro_tensor_core import (
    ArgumentError,
    BackendUnavailableError,
    Dim,
    DimLike,
    DTypeError,
    ShapeError,
)
from tenferro_tensor_core.forks import importing
from tenferro_tensor_core.tracebacks import hide_frames


class Array(ValueBase, Exported, NumpyCalls, NumpyMethods):
    """Operators, methods and attributes that all kinds of values share."""

    __slots__ = ()
    __hash__: ClassVar[None] = None  # type: ignore[assignment]
    level: int
    opaque: ClassVar[bool] = False
    """Whether elements cannot be inspected: they are unknown in a trace, and one per lane in a batch."""

    @abstractmethod
    def _bind(self, op: Op, args: tuple[Any, ...]) -> Any:
        """Interpret an op, with this value the operand of the highest level."""

    def _origin(self) -> str:
        """Where the value was created, as a clause for messages about operands."""
        inside = getattr(self, "value", None)
        return "of unknown origin" if inside is None else inside._origin()

    def _number_class(self) -> type | None:
        """Class of the Python number that this value represents, if it is weakly typed like one."""
        inside = getattr(self, "value", None)
        return None if inside is None else inside._number_class()

    def _interval(self) -> Interval:
        """Bounds that integer elements satisfy for all inputs of a program."""
        inside = getattr(self, "value", None)
        return Interval(None, None) if inside is None else inside._interval()

    def _linear_form(self) -> LinearForm | None:
        """A 0-d integer as a constant plus multiples of program variables; ``None`` if unknown."""
        inside = getattr(self, "value", None)
        return None if inside is None else inside._linear_form()

    def _as_extent(self, most: DimLike | None) -> DimLike:
        """A 0-d integer as an extent: its value, or a new size of at most `most` while tracing."""
        return index(self)

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents of the axes: integers, and `Size`s where they are symbolic."""
        spec = self.spec
        return sized_shape(spec.shape) if spec.symbolic else spec.shape  # type: ignore[return-value]

    @property
    def dtype(self) -> np.dtype[Any]:
        """Dtype of the elements."""
        return self.spec.dtype

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return self.spec.ndim

    @property
    def size(self) -> int:
        """Number of elements: an integer or a `Size`."""
        return sized(self.spec.size)

    @property
    def device(self) -> ComputeDevice:
        """The device that computes on this value by default."""
        return self.spec.place.device

    @property
    def compute_device(self) -> ComputeDevice | None:
        """The value's own compute device, which results inherit; ``None`` if it is inferred, as for new arrays."""
        return self.spec.place.compute_device

    @property
    def memory_space(self) -> MemorySpace:
        """The memory space of the value, fixed when it is created."""
        return self.spec.place.memory_space

    if TYPE_CHECKING:  # of some kinds only: concrete values, and those that are being differentiated
        _data: Any

        @property
        def data(self) -> Any: ...
        @property
        def strides(self) -> tuple[int, ...]: ...
        @property
        def flags(self) -> Any: ...
        @property
        def grad(self) -> Array | Any: ...
        @grad.setter
        def grad(self, value: Any) -> None: ...
        @property
        def is_leaf(self) -> bool: ...
        def backward(self, gradient: Any = None, retain_graph: bool = False) -> None: ...
        def zero_grad(self) -> None: ...

    sum: Final = functions.sum
    prod: Final = functions.prod
    mean: Final = functions.mean
    var: Final = functions.var
    std: Final = functions.std
    max: Final = functions.max
    min: Final = functions.min
    all: Final = functions.all
    any: Final = functions.any
    argmax: Final = functions.argmax
    argmin: Final = functions.argmin
    argsort: Final = functions.argsort
    squeeze: Final = functions.squeeze
    swapaxes: Final = functions.swapaxes
    ravel: Final = functions.ravel
    take: Final = functions.take
    repeat: Final = functions.repeat
    diagonal: Final = functions.diagonal
    trace: Final = functions.matrix_trace
    astype: Final = functions.astype
    clip: Final = functions.clip
    round: Final = functions.round
    conj: Final = functions.conj
    nonzero: Final = functions.nonzero
    to_device: Final = functions.to_device

    def with_compute_device(self, device: str | ComputeDevice | None) -> Array:
        """The same value with its own compute device, which results inherit.

        Nothing moves: the device must be able to compute on the memory space of the value.

        Args:
            device: device or its name; None removes the compute device.

        Returns:
            A value that shares the data.

        Raises:
            ArgumentError: the device cannot compute on this memory space.
            PlacementError: there is no such device.

        >>> with tr.compute_device("cpu"):
        ...     tr.arange(2).with_compute_device("cpu").spec.place
        Place(host, cpu:0)
        """
        chosen = None if device is None else ComputeDevice(device)
        place = Place(self.spec.place.memory_space, chosen)
        if chosen is not None:
            get_backend(chosen.kind).require(chosen)
        return aliased(self) if place is self.spec.place else noted(catalog.transfer(self, place=place))

    view = view

    @direct(reshaped, ANY_SIZE, views=True)
    def reshape(self, *shape: Any) -> Array:
        """Arrange the elements, in row-major order, in another shape.

        Args:
            shape: extents, as one tuple or as several integers; one may be -1.

        Returns:
            Array of the given shape.

        Raises:
            ShapeError: the number of elements differs.

        >>> tr.arange(6).reshape(2, -1).shape
        (2, 3)
        """
        return functions.reshape(self, shape[0] if len(shape) == 1 else shape)

    def transpose(self, *axes: Any) -> Array:
        """Permute the axes.

        Args:
            axes: the new order, as one tuple or as several integers; by default reversed.

        Returns:
            Array of the dtype of the value.

        Raises:
            AxisError: an axis is out of range or repeated.

        >>> tr.zeros((2, 3, 4)).transpose(1, 0, 2).shape
        (3, 2, 4)
        """
        order = axes[0] if len(axes) == 1 and (axes[0] is None or isinstance(axes[0], (tuple, list))) else axes or None
        return functions.permute_dims(self, range(self.spec.ndim)[::-1] if order is None else order)

    @property
    @direct(transposed, ANY_SIZE, views=True)
    def T(self) -> Array:
        """The transpose of a matrix, and a vector as it is; see `mT` for stacks and `transpose` for other orders."""
        if self.spec.ndim < 2:
            return self[...]
        if self.spec.ndim != 2:
            raise ShapeError(
                f"T is the transpose of a matrix, got {self.spec!r}; use mT for stacks of matrices, "
                "or transpose() to reverse all axes",
                shape=self.spec.shape,
            )
        return functions.matrix_transpose(self)

    @property
    @direct(swapped, ANY_SIZE, views=True)
    def mT(self) -> Array:
        """The transposes of a stack of matrices."""
        return functions.matrix_transpose(self)

    @property
    def H(self) -> Array:
        """The conjugate transposes of a stack of matrices; of a vector its conjugate."""
        out = self.T if self.spec.ndim < 2 else functions.matrix_transpose(self)
        return catalog.conj(out) if self.spec.cplx else out

    @property
    def flat(self) -> Array:
        """The elements in row-major order: a view with one axis.

        >>> tr.asarray([[1.0, 2.0], [3.0, 4.0]]).flat[2]
        Tensor(3.)
        """
        return self.reshape(-1)

    @property
    def real(self) -> Array:
        """The real parts: a view."""
        return functions.real(self)

    @real.setter
    def real(self, values: Any) -> None:
        functions.real(self)[...] = values

    @property
    def imag(self) -> Array:
        """The imaginary parts: a view; zeros for real numbers."""
        return functions.imag(self)

    @imag.setter
    def imag(self, values: Any) -> None:
        if not self.spec.cplx:
            raise DTypeError(f"the imaginary parts of {self.spec!r} are 0; convert it with astype(complex128) first")
        functions.imag(self)[...] = values

    @property
    def at(self) -> At:
        """Functional updates: ``x.at[key].set(values)`` returns `x` with a part replaced; also ``add``, ``multiply``,
        ``subtract``, ``min`` and ``max``.
        """
        return At(self)

    @property
    def requires_grad(self) -> bool:
        """Whether this value takes part in differentiation."""
        return False

    def detach(self) -> Array:
        """The same data, as a constant of every differentiation.

        While tracing it is a primitive of the program, so that the program stops the gradient when it is differentiated
        later.
        """
        return catalog.stop_gradient(self)

    def flatten(self) -> Array:
        """A copy in row-major order, as a vector; `ravel` is a view where that is possible."""
        return functions.ravel(self).copy()

    @direct(copied)
    def copy(self, order: str = "C") -> Array:
        """A copy in its own memory; `order` is one of NumPy's, and has no effect: layouts are not part of a value."""
        if order not in ("C", "F", "A", "K"):
            raise ArgumentError(f"the order of a copy is 'C', 'F', 'A' or 'K', got {order!r}", order=repr(order))
        return functions.asarray(self, copy=True)

    def __copy__(self) -> Any:
        return +self

    def _copied(self) -> Any:
        """The same value in its own memory, if it has memory."""
        return self._alias()

    def _assign(self, key: Any, values: Any) -> None:
        """The slow path of ``self[key] = values``."""
        try:
            assign(self, key, values)
        except Exception as error:
            hide_frames(error)
            raise

    def _augment(self, op: Any, other: Any) -> Any:
        """The slow path of an in-place operator."""
        try:
            return augment(self, op, other)
        except Exception as error:
            hide_frames(error)
            raise

    def _go_over(self, updated: Any) -> None:
        """Become the result of an assignment to elements of this value."""
        self._stand_for(updated)

    if TYPE_CHECKING:  # the operators below, for editors and type checkers

        def __add__(self, other: Any, /) -> Array: ...
        def __neg__(self) -> Array: ...
        def __getitem__(self, key: Any, /) -> Array: ...
        def __eq__(self, other: Any, /) -> Array: ...  # type: ignore[override]
        def __ne__(self, other: Any, /) -> Array: ...  # type: ignore[override]

        def __radd__(self, other: Any, /) -> Array: ...
        def __sub__(self, other: Any, /) -> Array: ...
        def __rsub__(self, other: Any, /) -> Array: ...
        def __mul__(self, other: Any, /) -> Array: ...
        def __rmul__(self, other: Any, /) -> Array: ...
        def __truediv__(self, other: Any, /) -> Array: ...
        def __rtruediv__(self, other: Any, /) -> Array: ...
        def __pow__(self, other: Any, /) -> Array: ...
        def __rpow__(self, other: Any, /) -> Array: ...
        def __floordiv__(self, other: Any, /) -> Array: ...
        def __rfloordiv__(self, other: Any, /) -> Array: ...
        def __mod__(self, other: Any, /) -> Array: ...
        def __rmod__(self, other: Any, /) -> Array: ...
        def __and__(self, other: Any, /) -> Array: ...
        def __rand__(self, other: Any, /) -> Array: ...
        def __or__(self, other: Any, /) -> Array: ...
        def __ror__(self, other: Any, /) -> Array: ...
        def __xor__(self, other: Any, /) -> Array: ...
        def __rxor__(self, other: Any, /) -> Array: ...
        def __lshift__(self, other: Any, /) -> Array: ...
        def __rlshift__(self, other: Any, /) -> Array: ...
        def __rshift__(self, other: Any, /) -> Array: ...
        def __rrshift__(self, other: Any, /) -> Array: ...
        def __matmul__(self, other: Any, /) -> Array: ...
        def __rmatmul__(self, other: Any, /) -> Array: ...
        def __lt__(self, other: Any, /) -> Array: ...
        def __le__(self, other: Any, /) -> Array: ...
        def __gt__(self, other: Any, /) -> Array: ...
        def __ge__(self, other: Any, /) -> Array: ...
        def __abs__(self) -> Array: ...
        def __invert__(self) -> Array: ...
        def __iadd__(self, other: Any, /) -> Self: ...
        def __isub__(self, other: Any, /) -> Self: ...
        def __imul__(self, other: Any, /) -> Self: ...
        def __itruediv__(self, other: Any, /) -> Self: ...
        def __ipow__(self, other: Any, /) -> Self: ...
        def __ifloordiv__(self, other: Any, /) -> Self: ...
        def __imod__(self, other: Any, /) -> Self: ...
        def __iand__(self, other: Any, /) -> Self: ...
        def __ior__(self, other: Any, /) -> Self: ...
        def __ixor__(self, other: Any, /) -> Self: ...
        def __ilshift__(self, other: Any, /) -> Self: ...
        def __irshift__(self, other: Any, /) -> Self: ...
        def __imatmul__(self, other: Any, /) -> Self: ...
    else:
        __add__, __radd__ = operator(catalog.add.op()), reflected(catalog.add.op())
        __sub__, __rsub__ = operator(catalog.sub.op()), reflected(catalog.sub.op())
        __mul__, __rmul__ = operator(catalog.mul.op()), reflected(catalog.mul.op())
        __truediv__, __rtruediv__ = operator(catalog.div.op()), reflected(catalog.div.op())
        __pow__, __rpow__ = operator(catalog.pow.op()), reflected(catalog.pow.op())
        __floordiv__, __rfloordiv__ = operator(catalog.floor_divide.op()), reflected(catalog.floor_divide.op())
        __mod__, __rmod__ = operator(catalog.remainder.op()), reflected(catalog.remainder.op())
        __and__, __rand__ = operator(catalog.bitwise_and.op()), reflected(catalog.bitwise_and.op())
        __or__, __ror__ = operator(catalog.bitwise_or.op()), reflected(catalog.bitwise_or.op())
        __xor__, __rxor__ = operator(catalog.bitwise_xor.op()), reflected(catalog.bitwise_xor.op())
        __lshift__, __rlshift__ = operator(catalog.shift_left.op()), reflected(catalog.shift_left.op())
        __rshift__, __rrshift__ = operator(catalog.shift_right.op()), reflected(catalog.shift_right.op())
        __matmul__, __rmatmul__ = operator(MATMUL), reflected(MATMUL)
        __eq__ = operator(catalog.eq.op())
        __ne__ = operator(catalog.ne.op())
        __lt__ = operator(catalog.lt.op())
        __le__ = operator(catalog.le.op())
        __gt__ = operator(catalog.gt.op())
        __ge__ = operator(catalog.ge.op())
        __neg__ = unary(catalog.neg.op())
        __abs__ = unary(catalog.abs.op())
        __invert__ = unary(catalog.bitwise_not.op())
        __getitem__ = view_item

        __iadd__ = augmented(catalog.add.op(), np.add)
        __isub__ = augmented(catalog.sub.op(), np.subtract)
        __imul__ = augmented(catalog.mul.op(), np.multiply)
        __itruediv__ = augmented(catalog.div.op(), np.true_divide)
        __ipow__ = augmented(catalog.pow.op())
        __ifloordiv__ = augmented(catalog.floor_divide.op())
        __imod__ = augmented(catalog.remainder.op())
        __iand__ = augmented(catalog.bitwise_and.op())
        __ior__ = augmented(catalog.bitwise_or.op())
        __ixor__ = augmented(catalog.bitwise_xor.op())
        __ilshift__ = augmented(catalog.shift_left.op())
        __irshift__ = augmented(catalog.shift_right.op())
        __imatmul__ = augmented(MATMUL)

    def _operate(self, op: Any, x: Any, y: Any) -> Any:
        """``op(x, y)`` for an operator, where this value is one operand; `NotImplemented` if the other is
        unsupported.
        """
        other = y if x is self else x
        try:
            if other.__class__ in SCALARS or isinstance(other, (Array, np.ndarray, np.generic)):
                return op.generic((x, y))
            if isinstance(other, Dim):
                size = Size(other).as_operand((self,))
                return op(self, size) if x is self else op(size, self)
            require_no_array(other, op is MATMUL)
        except Exception as error:
            hide_frames(error)
            raise
        return NotImplemented

    def __pos__(self) -> Array:
        return self._alias()

    def __len__(self) -> int:
        if not self.spec.ndim:
            raise TypeError("len() of a tensor without axes")
        return index(self.shape[0])

    def __iter__(self) -> Iterator[Any]:
        if not self.spec.ndim:
            raise TypeError("iteration over a tensor without axes")
        return (self[i] for i in range(len(self)))

    namespace: ClassVar[Any] = None
    """The module of the Array API functions, set by the package that defines it."""

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        if self.namespace is None:
            raise BackendUnavailableError(
                "the Array API namespace is in tenferro_runtime; pip install tenferro-runtime, and import it"
            )
        known = self.namespace.__array_api_version__
        if api_version is not None and api_version not in [f"{year}.12" for year in range(2021, int(known[:4]) + 1)]:
            raise ArgumentError(
                f"Array API version {api_version!r} is not supported; this is version {known}, which includes the "
                "functions of those since 2021.12",
                version=api_version,
            )
        return self.namespace

    def __repr__(self) -> str:
        name = type(self).__name__
        body = np.array2string(self._concrete(), separator=", ", prefix=f"{name}(", threshold=200)
        known = self.spec.dtype.name in ("float64", "int64", "bool", "complex128") and self.spec.size != 0
        extra = "" if known else f", dtype={self.spec.dtype.name}"
        extra += "" if self.spec.size != 0 else f", shape={self.spec.shape}"
        return f"{name}({body}{extra})"

    def _repr_html_(self) -> str:
        with importing():
            from tenferro_tensor.markup import html_of
        return html_of(self)
