"""`Tensor`: the concrete value, and the generic way to run an op on such values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tenferro_tensor import catalog, transfers
from tenferro_tensor._array import Array
from tenferro_tensor._known import Interval, LinearForm
from tenferro_tensor._memory_flags import MemoryFlags
from tenferro_tensor._place import HOST, ComputeDevice, Place
from tenferro_tensor._primitive import Op
from tenferro_tensor._spec import Spec
from tenferro_tensor.backends import get_backend, place_of
from tenferro_tensor.calls import SCALARS, TensorBase, spec_of_raw, state
from tenferro_tensor.entries import evaluate
from tenferro_tensor.functions.reading import view_item
from tenferro_tensor.origins import line_of, made_at, noted
from tenferro_tensor.ownership import (
    PASSING_MAX_BYTES,
    borrowed,
    copied,
    handed_out,
    is_owned,
    is_plain,
    read_only,
    received,
)
from tenferro_tensor.promotion import keep_imaginary
from tenferro_tensor.results import arrived
from tenferro_tensor_core import (
    ArgumentError,
    dtype,
    from_numpy,
)

_new = object.__new__


INTERVAL_MAX_SIZE: Final = 1 << 14
"""Largest integer array, in elements, whose bounds are computed."""


class Tensor(TensorBase, Array):
    """A concrete array: raw data in a memory space, and its `Spec`.

    The slot ``_data`` holds the raw array of the backend: a NumPy array (a NumPy scalar if there are no axes) or a CuPy
    array. It is private to this library and its machine code; `data` is public.

    Attributes:
        spec: shape, dtype and place.

    >>> tensor([1.0, 2.0]) * 2 + 1
    Tensor([3., 5.])
    """

    __slots__ = ()
    level = 0

    def __init__(self, *data: Any, **options: Any) -> None:
        raise ArgumentError("Tensor has no public constructor; use asarray(...), tensor(...) or Tensor.wrap(raw, spec)")

    @staticmethod
    def wrap(raw: Any, spec: Spec) -> Tensor:
        """Create a tensor from raw data that matches `spec`; nothing is copied or checked.

        The tensor takes over a NumPy array: nobody may write to it afterwards.

        Args:
            raw: raw array of the backend.
            spec: its spec.

        Returns:
            The tensor.
        """
        z = _new(Tensor)
        z._data, z.spec = raw, spec
        return z

    @staticmethod
    def adopt(x: Any, **how: Any) -> Tensor:
        """Convert host data to a tensor without attributing a source line; see `adopted`.

        Args:
            x: host data.
            how: options of `adopted`.

        Returns:
            The tensor.
        """
        return adopted(x, **how)

    evaluate: Final = staticmethod(evaluate)

    def _bind(self, op: Op, args: tuple[Any, ...]) -> Any:
        return evaluate(op, args)

    @property
    def data(self) -> Any:
        """The raw array of the backend; a NumPy array is read-only, a CuPy array must not be written to."""
        raw = self._data
        return read_only(raw) if raw.__class__ is np.ndarray else raw

    def _concrete(self) -> np.ndarray[Any, Any]:
        spec = self.spec
        if spec.place is HOST:
            return np.asarray(self._data)
        if transfers.watching and not spec.place.on_host:
            transfers.book(spec.size * spec.dtype.itemsize, spec.place.memory_space, HOST.memory_space)  # type: ignore[arg-type]
        backend = get_backend(spec.place.device.kind)
        return arrived(backend.download(self._data), spec.with_(place=HOST), backend)

    if TYPE_CHECKING:  # in the base class, where that is in C

        def __buffer__(self, flags: int, /) -> memoryview: ...

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        if self.spec.place is not HOST:
            return super().__array__(dtype, copy)
        if self._data.__class__ is not np.ndarray:
            return np.array(self._data, dtype=dtype)  # NumPy's scalars do not share their memory
        if copy or (dtype is not None and np.dtype(dtype) != self.spec.dtype):
            return np.array(read_only(self._data), dtype=dtype, copy=copy)
        return self._shared(copy)

    def _shared(self, copy: bool | None) -> np.ndarray[Any, Any]:
        """The elements of a tensor in main memory: shared and writable where nobody else holds them, else a copy."""
        found = handed_out(self)
        if found is None:
            found = read_only(self._data) if copy is False else copied(self._data)
        return found

    def numpy(self) -> np.ndarray[Any, Any]:
        """The elements as a writable NumPy array; it shares memory with the value if nothing else holds that.

        Returns:
            The array; a copy where another value, a derivative or a program holds the memory, and from an accelerator.
        """
        return self._shared(None) if self._data.__class__ is np.ndarray else np.array(self._concrete())

    def _raw(self) -> Any:
        return self._data

    @property
    def strides(self) -> tuple[int, ...]:
        """Bytes between neighbours along each axis of the memory as it is now; a write may move the value."""
        return self._data.strides  # type: ignore[no-any-return]

    @property
    def flags(self) -> MemoryFlags:
        """The layout of the memory as it is now, under the names of NumPy's flags."""
        return MemoryFlags(self._data)

    def _copied(self) -> Tensor:
        if self.spec.place.on_host:
            return Tensor.wrap(self._data.copy(), self.spec)
        return catalog.select(True, self, self)  # type: ignore[no-any-return]  # new memory on every device

    def _origin(self) -> str:
        return made_at(line_of(self))

    def _interval(self) -> Interval:
        spec = self.spec
        if spec.dtype.kind not in "iu" or not spec.place.on_host or not 0 < spec.size <= INTERVAL_MAX_SIZE:  # type: ignore[operator]
            return Interval(None, None)
        return Interval(int(self._data.min()), int(self._data.max()))

    def _linear_form(self) -> LinearForm | None:
        spec = self.spec
        return (
            LinearForm({}, int(self._data))
            if spec.dtype.kind in "iu" and spec.place.on_host and not spec.ndim
            else None
        )

    _item = view_item

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (read_only(self._concrete()), self.spec)

    def detach(self) -> Tensor:
        """The tensor itself: it is not being differentiated."""
        return +self

    def __pos__(self) -> Tensor:
        raw = self._data
        if raw.__class__ is not np.ndarray or (is_owned(raw) and raw.flags.forc):
            return self._alias()  # type: ignore[no-any-return]
        return self._copied()  # others may write to the memory, or a reshape would copy

    def __deepcopy__(self, memo: object) -> Tensor:
        return self._copied()


_COPIED: Final = (list, tuple, np.generic, *SCALARS)
"""Classes that NumPy copies into a new array; for any other it may create a view."""


def _rebuild(array: np.ndarray[Any, Any], spec: Spec) -> Tensor:
    return _from_host(array, None, spec.place, None)


def tensor(x: Any, *, dtype: Any = None, device: str | ComputeDevice | None = None, copy: bool | None = None) -> Tensor:
    """Create a concrete tensor from host data.

    Args:
        x: numbers, nested sequences, NumPy arrays or buffers; a `Tensor` is returned itself if nothing changes.
        dtype: dtype of the result; by default that of the data, float64 for Python floats.
        device: device or its name; by default that of the enclosing scope, else main memory.
        copy: True always copies, False raises where a copy is needed, None copies only there.

    Returns:
        The tensor.

    Raises:
        DTypeError: the data are not numbers or booleans, or they are complex and `dtype` is not.
        ArgumentError: sequences are ragged, or a copy is needed and `copy` is False.

    >>> tensor([[1, 2], [3, 4]]).shape
    (2, 2)
    """
    z = adopted(x, dtype=dtype, device=device, copy=copy, share=True)
    return z if z is x else noted(z)


def adopted(
    x: Any,
    *,
    dtype: Any = None,
    device: str | ComputeDevice | None = None,
    copy: bool | None = None,
    share: bool = False,
) -> Tensor:
    """As `tensor`, for data that operations convert implicitly: their source line is that of the operation.

    Small arrays are copied, unless `share` says that the caller may rely on shared memory.
    """
    if x.__class__ is np.ndarray and dtype is None and device is None and copy is None and not share:
        if not state.open_scopes and is_plain(x):  # fast path
            return Tensor.wrap(received(x), spec_of_raw(x))
    if isinstance(x, Tensor):
        return _adapted(x, dtype, device, copy)
    if copy is None and not share and isinstance(x, np.ndarray) and x.nbytes <= PASSING_MAX_BYTES:
        copy = True
    return _from_host(x, dtype, place_of(device), copy)


def _adapted(x: Tensor, wanted: Any, device: str | ComputeDevice | None, copy: bool | None) -> Tensor:
    place = x.spec.place if device is None else place_of(device)
    goal = Spec(x.spec.shape, x.spec.dtype if wanted is None else dtype(wanted), place)
    keep_imaginary("a tensor", x.spec.dtype, goal.dtype)
    moved = place.memory_space is not x.spec.place.memory_space
    if copy is False and (moved or goal.dtype != x.spec.dtype):
        raise ArgumentError(f"{x.spec!r} cannot become {goal!r} without a copy, which copy=False forbids")
    out = x if goal.dtype == x.spec.dtype else catalog.convert(x, dtype=goal.dtype)
    out = out if goal.place is out.spec.place else catalog.transfer(out, place=goal.place)
    # Views and changes of the compute device share memory.
    return out if not copy or moved or goal.dtype != x.spec.dtype else out._copied()


def _from_host(x: Any, wanted: Any, place: Place, copy: bool | None) -> Tensor:
    shared = x.__class__ is np.ndarray or not isinstance(x, _COPIED)
    if isinstance(x, (list, tuple)):
        x = _stacked(_stackable(x), wanted)
    elif not isinstance(x, np.ndarray):
        x = np.asarray(x)
    array = from_numpy(x, copy=None if copy and shared else copy)
    if wanted is not None:
        goal = dtype(wanted)
        keep_imaginary("a tensor", array.dtype, goal)
        array = array.astype(goal, copy=False)
    raw: Any = array
    if shared and place.on_host and (array is x or array.base is not None):
        raw = copied(array) if copy else borrowed(array)
    if not place.on_host:
        if transfers.watching and array.ndim:  # 0-d arrays are kernel arguments, not transfers
            transfers.book(array.nbytes, HOST.memory_space, place.memory_space)
        backend, spec = get_backend(place.device.kind), Spec(array.shape, array.dtype, place)
        return Tensor.wrap(arrived(backend.upload(array, place.device), spec, backend), spec)
    return Tensor.wrap(raw, Spec(array.shape, array.dtype, place))


def _stacked(x: list[Any], wanted: Any) -> np.ndarray[Any, Any]:
    """Nested sequences as one array; converted directly to an integer dtype where NumPy would go through floats."""
    try:
        array = np.asarray(x)
    except ValueError as cause:
        raise ArgumentError(f"nested sequences must have one length per level: {cause}") from cause
    goal = array.dtype if wanted is None else dtype(wanted)
    if array.dtype.kind != "f" or goal.kind not in "iu":
        return array
    try:
        return np.asarray(x, goal)
    except (ValueError, OverflowError) as cause:
        raise ArgumentError(f"{goal} cannot hold a number of the sequence: {cause}; pass a wider dtype") from cause


def _stackable(x: Any) -> Any:
    """Replace tensors in nested sequences by host arrays."""
    if isinstance(x, (list, tuple)):
        return [_stackable(v) for v in x]
    return np.asarray(x) if isinstance(x, Array) else x  # which refuses to drop derivatives, or to transfer


state.tensor, state.spec, state.host = Tensor, Spec, HOST
