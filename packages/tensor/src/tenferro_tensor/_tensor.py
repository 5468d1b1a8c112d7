"""`Tensor`: the concrete value, and the short way from an operator to a kernel."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import numpy as np

from tenferro_tensor import catalog
from tenferro_tensor import dispatch as _select
from tenferro_tensor import transfers as _ledger
from tenferro_tensor._array import Array
from tenferro_tensor._place import HOST, ComputeDevice, Place
from tenferro_tensor._plan import Plan, device_of, make_plan, remember
from tenferro_tensor._primitive import SCALARS, Op, Primitive
from tenferro_tensor._shortcuts import Plans, Shortcuts, when_offered
from tenferro_tensor._spec import Spec
from tenferro_tensor.backends import get_backend, place_of
from tenferro_tensor.functions.linear_algebra import PRODUCTS
from tenferro_tensor.functions.reading import getitem, key_token
from tenferro_tensor.operators import BINARY_OPERATORS, UNARY_OPERATORS
from tenferro_tensor.origins import EVERYWHERE, line_of, made_at, noted
from tenferro_tensor.ownership import PASSING_MAX_BYTES, borrowed, copied, read_only
from tenferro_tensor.promotion import describe, keep_imaginary, materialised
from tenferro_tensor.tables import Table
from tenferro_tensor_core import (
    ArgumentError,
    Dim,
    TracingError,
    dtype,
    from_numpy,
    home_of,
)

_new = object.__new__


class Tensor(Array):
    """A concrete array: raw data in some memory, and its `Spec`.

    The slot ``_data`` holds the raw array of the backend: a NumPy array (a NumPy scalar where there are no axes), or a
    CuPy array. It is for this library and its machine code; `data` is for everybody.

    Attributes:
        spec: shape, dtype and place.

    >>> tensor([1.0, 2.0]) * 2 + 1
    Tensor([3., 5.])
    """

    __slots__ = ("__weakref__", "_data", "spec")
    _data: Any
    spec: Spec
    level = 0

    def __init__(self) -> None:
        raise ArgumentError("a Tensor is made by asarray(...), tensor(...) or Tensor.wrap(raw, spec)")

    @staticmethod
    def wrap(raw: Any, spec: Spec) -> Tensor:
        """A tensor of raw data that is known to agree with `spec`; nothing is copied or checked.

        The tensor takes a NumPy array over: nobody writes to it from here on.
        """
        z = _new(Tensor)
        z._data, z.spec = raw, spec
        return z

    def _bind(self, op: Op, args: tuple[Any, ...]) -> Any:
        return bind(op, args)  # `_install_operators` puts `bind` itself here

    @property
    def data(self) -> Any:
        """The raw array of the backend; a NumPy array is read-only, a CuPy array must not be written to."""
        raw = self._data
        return read_only(raw) if raw.__class__ is np.ndarray else raw

    def _unary(self, op: Op) -> Any:
        if not _select.open_scopes:
            plan = op.one.get(self.spec)
            if plan is not None:
                z = _new(Tensor)
                z._data, z.spec = plan.run(self._data), plan.out
                return z
        return bind(op, (self,))

    def _concrete(self) -> np.ndarray[Any, Any]:
        spec = self.spec
        if spec.place is HOST:
            return np.asarray(self._data)
        if _ledger.watching and not spec.place.on_host:
            _ledger.book(spec.size * spec.dtype.itemsize, spec.place.memory_space, HOST.memory_space)  # type: ignore[arg-type]
        return get_backend(spec.place.device.kind).download(self._data)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        raw = self._data
        if dtype is None and not copy and self.spec.place is HOST and raw.__class__ is np.ndarray:
            return read_only(raw)
        return super().__array__(dtype, copy)

    def _raw(self) -> Any:
        return self._data

    def _copied(self) -> Tensor:
        if self.spec.place.on_host:
            return Tensor.wrap(self._data.copy(), self.spec)
        return catalog.select(True, self, self)  # type: ignore[no-any-return]  # new memory on every device

    def _origin(self) -> str:
        return made_at(line_of(self))

    def __matmul__(self, other: Any) -> Any:
        if other.__class__ is not Tensor or _select.open_scopes:
            return super().__matmul__(other)
        spec, key = self.spec, (self.spec, other.spec)
        plan = _SQUARES.get(spec) if other.spec is spec else _PAIRS.get(key)
        if plan is None:
            return _first_product(self, other)
        z = _new(Tensor)
        z._data, z.spec = plan.run(self._data, other._data), plan.out
        return z

    def __getitem__(self, key: Any) -> Any:
        spec = self.spec
        if spec.place is HOST and not _select.open_scopes:
            cls = key.__class__
            view: Any
            if cls is int:
                view = (spec, key)
            elif cls is slice:  # four parts, so that no integer and no tuple has the same
                view = (spec, key.start, key.stop, key.step)
            else:
                token = key_token(key) if cls is tuple or key is None else None
                view = None if token is None else (spec, token)
            try:
                out = _VIEWS.get(view)
                if out is not None:
                    z = _new(Tensor)
                    z._data, z.spec = self._data[key], out
                    return z
            except TypeError:  # bounds that are no integers
                pass
            z = getitem(self, key)
            if view is not None and spec.ndim and (cls is not slice or key_token(key) is not None):
                # One number at a negative distance is rounded otherwise: `getitem` does not reverse it.
                if z.spec.shape != (1,) or self._data[key].strides[0] >= 0:
                    _VIEWS.remember(view, z.spec)
            return z
        return getitem(self, key)

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (self.numpy(), self.spec)

    def detach(self) -> Tensor:
        """This tensor: nothing is being differentiated."""
        return self

    def __copy__(self) -> Tensor:
        return self

    def __deepcopy__(self, memo: object) -> Tensor:
        return self._copied()


_VIEWS: Final = Table("specs of views by keys of integers and slices")
"""Such a key makes a view of a NumPy array by itself; only its errors and the spec of the result are ours."""


_COPIED: Final = (list, tuple, np.generic, *SCALARS)
"""What NumPy makes an array of its own from; from anything else it may make a view."""


def _rebuild(array: np.ndarray[Any, Any], spec: Spec) -> Tensor:
    return _from_host(array, None, spec.place, None)


_SQUARES: Final = Table("matrix products of one spec")
_PAIRS: Final = Table("matrix products of two specs")
"""Plans of ``@`` where it is one `dot_general` of two tensors as they stand."""


def _first_product(x: Tensor, y: Tensor) -> Any:
    """``x @ y`` the long way; its plan is remembered where there is one."""
    z = Array.__matmul__(x, y)
    key = (x.spec, y.spec)
    op = PRODUCTS.get(key)
    plan = None if op is None else op.plans.get(key)
    if plan is not None:
        if x.spec is y.spec:
            _SQUARES.remember(x.spec, plan)
        else:
            _PAIRS.remember(key, plan)
    return z


def bind(op: Op, args: tuple[Any, ...]) -> Any:
    """Run an op on concrete operands."""
    key = tuple([a.spec if a.__class__ is Tensor else a.__class__ for a in args])
    plan = op.plans.get(_scoped(key) if _select.open_scopes else key)
    if plan is None:
        if op.symbolic:
            return _join(op, args)
        args, plan = _planned(op, args)
    try:
        out = plan.run(*[a._data if a.__class__ is Tensor else a for a in args])
    except OverflowError as cause:
        raise ArgumentError(
            f"{op.primitive.name}: {cause}; convert the array to a wider dtype or the number to an array first",
            primitive=op.primitive.name,
        ) from cause
    if _select.open_scopes:
        return _observed(op, args, plan, out)
    if plan.many:
        return tuple([Tensor.wrap(raw, spec) for raw, spec in zip(out, plan.out, strict=True)])
    z = _new(Tensor)
    z._data, z.spec = out, plan.out
    return z


def _observed(op: Op, args: tuple[Any, ...], plan: Plan, out: Any) -> Any:
    """The results of an op, told to whoever watches: decisions of this context, lines everywhere."""
    record = _select.recorder()
    if record is not None:
        device_of(op, [a for a in args if a.__class__ not in SCALARS], record)
    made = [Tensor.wrap(raw, spec) for raw, spec in zip(*((out, plan.out) if plan.many else ([out], [plan.out])))]
    if EVERYWHERE:
        for z in made:
            noted(z)
    return tuple(made) if plan.many else made[0]


def _join(op: Op, args: tuple[Any, ...]) -> Any:
    """Record an op whose metadata hold open sizes with the trace that knows these sizes."""
    sizes = list(_open_sizes(op.params.values()))
    home = home_of(*sizes)
    if home is None:
        raise TracingError(
            f"{op!r} of concrete operands has the open sizes {', '.join(sorted(map(str, sizes)))}, which have no "
            "number outside of the trace that they belong to; use them while the function is traced",
            primitive=op.primitive.name,
        )
    return home.bind(op, args)


def _open_sizes(values: Iterable[Any]) -> Iterator[Dim]:
    for value in values:
        if isinstance(value, Dim):
            yield value
        elif value.__class__ is tuple:
            yield from _open_sizes(value)


def _scoped(key: tuple[Any, ...]) -> tuple[Any, ...]:
    """The key of a plan, with the device that an open scope of this context names."""
    device = _select.scoped_device()
    return key if device is None else (device, *key)


def _planned(op: Op, args: tuple[Any, ...]) -> tuple[tuple[Any, ...], Plan]:
    """The operands with those numbers made tensors that the kernel cannot take, and their plan, made and remembered."""
    values = [a for a in args if a.__class__ not in SCALARS]
    if values:
        device_of(op, values)  # before specs are all that is known: the error names the values' lines
    if not op.primitive.elementwise:
        args = materialised(args)
    elif args and all(a.__class__ in SCALARS for a in args):
        args = (adopted(args[0]), *args[1:])
    operands = describe(args)
    key = _scoped(operands)
    plan = op.plans.get(key)
    if plan is None:
        plan = remember(op.plans, key, make_plan(op, operands))
        if key is operands and not plan.many:
            if len(args) == 1:
                remember(op.one, key[0], plan)
            elif len(args) == 2 and key[0] is key[1] and isinstance(key[0], Spec):
                remember(op.same, key[0], plan)
    return args, plan


def tensor(x: Any, *, dtype: Any = None, device: str | ComputeDevice | None = None, copy: bool | None = None) -> Tensor:
    """A concrete tensor of host data: numbers, nested sequences, NumPy arrays, buffers.

    Args:
        x: the data; a `Tensor` is returned as it is where nothing has to change.
        dtype: dtype of the result; by default that of the data, float64 for Python floats.
        device: where it goes; by default main memory, or the device of the enclosing scope.
        copy: ``True`` always copies, ``False`` raises where a copy would be needed, ``None`` copies when needed.

    Raises:
        DTypeError: the data are not numbers or booleans, or they are complex and `dtype` is not.

    >>> tensor([[1, 2], [3, 4]]).shape
    (2, 2)
    """
    z = adopted(x, dtype=dtype, device=device, copy=copy, share=True)
    return z if z is x else noted(z)  # type: ignore[no-any-return]


def adopted(
    x: Any,
    *,
    dtype: Any = None,
    device: str | ComputeDevice | None = None,
    copy: bool | None = None,
    share: bool = False,
) -> Tensor:
    """As `tensor`, for data that enter in passing: their line is that of the operation.

    Small arrays are copied, unless `share` says that somebody may look for their memory.
    """
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
    # Views and mere changes of the compute device share memory.
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
        if _ledger.watching and array.ndim:  # numbers are arguments of kernels
            _ledger.book(array.nbytes, HOST.memory_space, place.memory_space)
        raw = get_backend(place.device.kind).upload(array, place.device)
    return Tensor.wrap(raw, Spec(array.shape, array.dtype, place))


def _stacked(x: list[Any], wanted: Any) -> np.ndarray[Any, Any]:
    """Nested sequences as one array; straight to an integer dtype where NumPy would take a way through floats."""
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
    """Nested sequences with tensors inside become nested sequences of host arrays."""
    if isinstance(x, (list, tuple)):
        return [_stackable(v) for v in x]
    return np.asarray(x) if isinstance(x, Array) else x  # which refuses to drop derivatives, or to transfer


def _fast_reflected(op: Op, general: Callable[[Any, Any], Any]) -> Callable[[Tensor, Any], Any]:
    """The method for a Python scalar on the left."""
    plans = op.plans

    def method(self: Tensor, other: Any) -> Any:
        plan = plans.get((other.__class__, self.spec))
        if plan is None or _select.open_scopes:
            return general(self, other)
        z = _new(Tensor)
        try:
            z._data, z.spec = plan.run(other, self._data), plan.out
        except OverflowError:
            return general(self, other)
        return z

    return method


def _fast_binary(op: Op) -> Callable[[Tensor, Any], Any]:
    """An operator method: one spec test and one table lookup between the operator and the kernel."""
    same = op.same
    plans = op.plans

    def method(self: Tensor, other: Any) -> Any:
        spec = self.spec
        if other.__class__ is Tensor:
            if not _select.open_scopes:
                plan = same.get(spec) if other.spec is spec else plans.get((spec, other.spec))
                if plan is not None:
                    z = _new(Tensor)
                    z._data, z.spec = plan.run(self._data, other._data), plan.out
                    return z
            return bind(op, (self, other))
        if other.__class__ in SCALARS:
            plan = plans.get((spec, other.__class__))
            if plan is None or _select.open_scopes:
                return bind(op, (self, other))
            z = _new(Tensor)
            try:
                z._data, z.spec = plan.run(self._data, other), plan.out
            except OverflowError:
                return bind(op, (self, other))
            return z
        if isinstance(other, (Array, np.ndarray, np.generic)):
            return op(self, other)
        return NotImplemented

    return method


def _install_operators() -> None:
    for name, op in BINARY_OPERATORS.items():
        method = _fast_binary(op)
        method.__name__ = name
        setattr(Tensor, name, method)
        reflected = getattr(Array, f"__r{name[2:]}", None)
        if reflected is not None:
            setattr(Tensor, reflected.__name__, _fast_reflected(op, reflected))
    for name, op in UNARY_OPERATORS.items():
        setattr(Tensor, name, lambda self, _op=op: self._unary(_op))
    Tensor._bind = staticmethod(bind)  # type: ignore[method-assign, assignment]  # one call less
    Primitive.concrete = Tensor
    Primitive.bind_concrete = staticmethod(bind)
    Primitive.adopt = staticmethod(adopted)
    Primitive.wrap = staticmethod(Tensor.wrap)
    when_offered(_shorten_operators)


def _shorten_operators(shortcuts: Shortcuts) -> None:
    """Put short cuts in front of the operators."""
    Tensor._unary = shortcuts.tensor_unary("_unary", Tensor._unary)  # type: ignore[method-assign]
    Op.__call__ = shortcuts.op_call("__call__", Op.__call__)  # type: ignore[method-assign]
    for name, op in BINARY_OPERATORS.items():
        plans = Plans(op.same, op.plans)
        setattr(Tensor, name, shortcuts.tensor_operator(name, getattr(Tensor, name), plans, reflected=False))
        other = f"__r{name[2:]}"
        if other in Tensor.__dict__:
            setattr(Tensor, other, shortcuts.tensor_operator(other, getattr(Tensor, other), plans, reflected=True))
    product = shortcuts.tensor_operator("__matmul__", Tensor.__matmul__, Plans(_SQUARES, _PAIRS), reflected=False)
    Tensor.__matmul__ = product  # type: ignore[method-assign]


_install_operators()
