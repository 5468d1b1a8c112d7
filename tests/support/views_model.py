"""The law of views and assignment as an executable specification.

A value that was computed owns its elements, in order, and counts how often they were written. A view is its base, the
places of its elements there, and, of complex elements, a part. Reading a view takes the elements at its places, again
if its base was written since; writing one makes new elements of the base. Elements are never changed: whoever kept
them keeps them, and a derivative of all this is that of ``take`` and ``at[places].set``.

Elements are arrays of NumPy or values of the library; `Functions` is the namespace that programs use for ``np``.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

Places = np.ndarray[Any, np.dtype[np.intp]]


class Base:
    """Elements of a computed value in row-major order, and the number of writes."""

    def __init__(self, elements: Any) -> None:
        self.elements, self.version = elements, 0

    def write(self, places: Places, new: Any) -> None:
        self.elements = put(self.elements, places, new)
        self.version += 1


class Array:
    """The object that names are bound to."""

    def __init__(self, base: Base, places: Places, part: str = "") -> None:
        self.base, self.places, self.part = base, places, part
        self.version, self.elements = -1, None
        self.shape, self.ndim, self.size = places.shape, places.ndim, places.size

    @property
    def dtype(self) -> Any:
        return self.read().dtype

    def read(self) -> Any:
        """The elements now: derived again if the base was written since they were derived."""
        if self.version != self.base.version:
            taken = self.base.elements[self.places]
            self.elements = getattr(taken, self.part) if self.part else taken
            self.version = self.base.version
        return self.elements

    def write(self, new: Any) -> Array:
        """Elements take the dtype and shape that are here; what NumPy's rule ``same_kind`` forbids is an error."""
        dtype = self.dtype
        if isinstance(new, (bool, int, float, complex)):
            new = np.asarray(new, np.result_type(dtype, new))
        if not np.can_cast(new.dtype, dtype, "same_kind"):
            raise TypeError(f"{new.dtype} does not fit {dtype}")
        new = namespace(new).broadcast_to(new, self.shape).astype(dtype)
        if self.part:
            whole = self.base.elements[self.places]
            new = new + 1j * whole.imag if self.part == "real" else whole.real + 1j * new
        self.base.write(self.places, new)
        return self

    def view(self, places: Any, part: str = "") -> Any:
        """A view of the base; what has no axes, or has been copied, is a value."""
        shared = np.may_share_memory(places, self.places) or not self.size
        if not isinstance(places, np.ndarray) or not shared:
            return value(Array(self.base, np.asarray(places), part or self.part).read())
        return Array(self.base, places, part or self.part)

    def __getitem__(self, key: Any) -> Any:
        return self.view(self.places[key]) if basic(key) else value(self.read()[read(key)])

    def __setitem__(self, key: Any, values: Any) -> None:
        """A write to the view that basic indexing gives; an advanced key names its elements."""
        target = np.asarray(self.places[read(key)])
        Array(self.base, target, self.part).write(read(values))

    def __iter__(self) -> Iterator[Array]:
        return (self[i] for i in range(self.shape[0]))

    @property
    def T(self) -> Any:
        return self.view(self.places.T)

    @property
    def mT(self) -> Any:
        return self.view(self.places.mT)

    @property
    def real(self) -> Any:
        return self.view(self.places, "real")

    @property
    def imag(self) -> Any:
        return self.view(self.places, "imag")

    def ravel(self) -> Any:
        """NumPy's is contiguous, which parts of complex elements are not."""
        copied = self.part and self.size > 1
        return value(self.read().reshape((self.size,))) if copied else self.view(self.places.ravel())

    def copy(self) -> Any:
        return value(self.read())

    def __copy__(self) -> Any:
        return value(self.read())

    def __deepcopy__(self, memo: Any) -> Any:
        return value(self.read())

    def fill(self, number: Any) -> None:
        self.write(number)

    def sort(self, axis: int = -1) -> None:
        self.write(namespace(self.read()).sort(self.read(), axis=axis))


def value(elements: Any) -> Any:
    """A computed value: the base of itself."""
    shape = tuple(np.shape(elements))
    count = int(np.prod(shape, dtype=int))
    return Array(Base(elements.reshape((count,))), np.arange(count).reshape(shape))


def read(x: Any) -> Any:
    """Elements in place of arrays, also in containers."""
    if isinstance(x, (tuple, list)):
        return type(x)([read(part) for part in x])
    return x.read() if isinstance(x, Array) else x


def basic(key: Any) -> bool:
    """Whether a key has integers, slices, new axes and an ellipsis only."""
    parts = key if isinstance(key, tuple) else (key,)
    return all(isinstance(p, (int, np.integer, slice)) or p is None or p is Ellipsis for p in parts)


def put(elements: Any, places: Places, new: Any) -> Any:
    """New elements with some at these places; the given ones stay."""
    if hasattr(elements, "at"):
        return elements.at[places].set(new)
    if hasattr(new, "at"):  # elements of NumPy meet values of the library
        return namespace(new).asarray(elements, copy=True).at[places].set(new)
    made = elements.copy()
    made[places] = new
    return made


def namespace(elements: Any) -> Any:
    return elements.__array_namespace__() if hasattr(elements, "__array_namespace__") else np


def _operator(f: Callable[..., Any]) -> tuple[Callable[..., Any], ...]:
    """A computed value; the same with operands exchanged; an update in place, visible to all names."""
    return (
        lambda x, y: value(f(x.read(), read(y))),
        lambda x, y: value(f(read(y), x.read())),
        lambda x, y: x.write(f(x.read(), read(y))),
    )


for name in ("add", "sub", "mul", "truediv", "floordiv", "pow", "matmul", "and", "or", "xor"):
    forms = _operator(getattr(operator, f"__{name}__"))
    for prefix, method in zip(("", "r", "i"), forms, strict=True):
        setattr(Array, f"__{prefix}{name}__", method)
for name in ("lt", "le", "gt", "ge", "eq", "ne"):
    setattr(Array, f"__{name}__", _operator(getattr(operator, name))[0])
for name in ("neg", "pos", "invert", "abs"):
    setattr(Array, f"__{name}__", lambda x, name=name: value(getattr(operator, name)(x.read())))

VIEWS = frozenset(
    "swapaxes moveaxis permute_dims matrix_transpose transpose reshape expand_dims squeeze flip diagonal split "
    "unstack".split()
)
"""Functions whose results are views: of the places they are what they are of the elements."""

for name in ("transpose", "swapaxes", "reshape", "squeeze"):
    setattr(Array, name, lambda x, *args, name=name: x.view(getattr(x.places, name)(*args)))


class Functions:
    """A namespace over models: views, functions that write, and everything else, which computes values."""

    def __init__(self, library: Any) -> None:
        self.library = library

    def __getattr__(self, name: str) -> Any:
        if name in VIEWS:
            return lambda x, *args, **options: _views(x, getattr(np, name)(x.places, *args, **options))
        f = getattr(self.library, name, None) or getattr(np, name)
        return Function(f) if callable(f) and not isinstance(f, type) else f

    def asarray(self, x: Any, dtype: Any = None, copy: bool | None = None) -> Any:
        if isinstance(x, Array):
            return x.copy() if copy else x
        return np.asarray(x, dtype)

    def ravel(self, x: Array) -> Any:
        return x.ravel()

    def copyto(self, x: Array, values: Any, where: Any = True) -> None:
        Function(lambda v: v)(values, out=x, where=where)

    def put(self, x: Array, indices: Any, values: Any) -> None:
        x.write(put(x.read().reshape((-1,)), np.asarray(indices), read(values)).reshape(x.shape))

    def putmask(self, x: Array, mask: Any, values: Any) -> None:
        """Elements of ``values``, repeated, that lie where the mask is true."""
        Function(lambda v: v)(np.resize(np.asarray(values), x.shape), out=x, where=mask)

    def place(self, x: Array, mask: Any, values: Any) -> None:
        """The first elements of ``values``, repeated, one for each true element of the mask."""
        count = int(np.sum(np.asarray(read(mask))))
        x[mask] = np.resize(np.asarray(values), count)

    def put_along_axis(self, x: Array, indices: Any, values: Any, axis: int) -> None:
        grid: Any = list(np.indices(np.shape(indices), sparse=True))
        grid[axis] = np.asarray(indices)
        x[tuple(grid)] = values

    def fill_diagonal(self, x: Array, number: Any) -> None:
        x.view(np.einsum("ii->i", x.places[: x.shape[1], : x.shape[0]])).write(read(number))


def _views(x: Array, places: Any) -> Any:
    return type(places)([x.view(p) for p in places]) if isinstance(places, (tuple, list)) else x.view(places)


class Function:
    """A function that computes values, or writes them to ``out``, only ``where`` a mask is true."""

    def __init__(self, f: Callable[..., Any]) -> None:
        self.f = f

    def __call__(self, *args: Any, out: Array | None = None, where: Any = True, **options: Any) -> Any:
        found = self.f(*read(args), **options)
        if out is None:
            return value(found)
        if where is not True:
            found = namespace(out.read()).where(read(where), found, out.read())
        return out.write(found)

    def at(self, x: Array, indices: Any, values: Any) -> None:
        """``add.at``: an index that is named twice counts twice."""
        for i, v in zip(np.asarray(indices).tolist(), read(values), strict=True):
            x[i : i + 1 or None] += v

    def accumulate(self, x: Array, axis: int = 0, out: Array | None = None) -> Any:
        rows = [x.read()[(slice(None),) * axis + (k,)] for k in range(x.shape[axis])]
        for k in range(1, len(rows)):
            rows[k] = self.f(rows[k - 1], rows[k])
        found = namespace(rows[0]).stack(rows, axis=axis) if rows else x.read()
        return value(found) if out is None else out.write(found)
