"""`Primitive` and `Op`: the vocabulary, and the one rule of dispatch.

A primitive is written as its inference rule::

    @primitive
    def reverse(x: Spec, *, axes: tuple[int, ...]) -> Spec:
        '''Reverse the order of the elements along `axes`.'''
        return x

Positional parameters are array operands, keyword-only parameters are hashable metadata, the docstring is the
documentation. A primitive with its metadata fixed is an `Op`, interned: equations, plans and caches hold ops.
"""

from __future__ import annotations

import inspect
import pickle
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Any, ClassVar, Final, NoReturn, TypedDict, Unpack, overload
from weakref import WeakSet, WeakValueDictionary, ref

import numpy as np

from tenferro_tensor._foreign import class_of
from tenferro_tensor._owners import in_house
from tenferro_tensor._spec import Spec, common_place
from tenferro_tensor.calls import SCALARS, Entry, OpBase, state
from tenferro_tensor.families import claim
from tenferro_tensor_core import ArgumentError, Dim, DTypeError, RegistryError, ShapeError, as_size, key_of, kind_of
from tenferro_tensor_core.forks import new_lock
from tenferro_tensor_core.tracebacks import hide_frames

DOMAINS: Final = {
    "any": ("biufc", "everything"),
    "number": ("iufc", "integers, real or complex floating point, but not booleans"),
    "real_number": ("iuf", "integers or real floating point"),
    "real": ("biuf", "booleans, integers or real floating point, but not complex numbers"),
    "inexact": ("fc", "real or complex floating point"),
    "floating": ("f", "real floating point"),
    "bits": ("biu", "booleans or integers"),
    "integer": ("iu", "integers"),
    "bool": ("b", "booleans"),
}
"""Domains of element-wise primitives: NumPy's kind letters, and the text for errors."""

_PLAIN: Final = frozenset({int, str})
"""Classes of metadata that need no conversion."""

LIVE_OPS: Final = 2048
"""Largest number of recently created ops that one primitive keeps alive, with their plans."""

_lock = new_lock()
_all: WeakSet[Primitive] = WeakSet()


def _freeze(value: Any) -> Any:
    """Hashable canonical form of metadata: lists become tuples, NumPy scalars and integer enums numbers."""
    cls = value.__class__
    if cls is int or cls is str:
        return value
    if cls is tuple or cls is list:
        return tuple(value) if _PLAIN.issuperset(map(type, value)) else tuple([_freeze(v) for v in value])
    value = as_size(value)
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, int) and cls is not bool:
        return int(value)
    return value


def is_open(value: Any) -> bool:
    if value.__class__ is tuple:
        return not _PLAIN.issuperset(map(type, value)) and any(map(is_open, value))
    return isinstance(value, Dim)


class _Planned(OpBase):
    """Is in `PLANNED` while it has plans."""

    __slots__ = ("__weakref__",)

    def remember(self, entry: Entry, /) -> Entry:
        kept = super().remember(entry)
        PLANNED.add(ref(self, PLANNED.discard))  # last: who forgets all plans meanwhile may not see this one
        return kept


PLANNED: Final[set[ref[_Planned]]] = set()
"""The ops that have plans: few of those that are alive, most of which stand in programs."""


class Op(_Planned):
    """A primitive with fixed metadata; calling it applies it to array operands.

    Attributes:
        primitive: the primitive.
        params: the metadata by name, in declared order.
        symbolic: whether the metadata contain symbolic sizes.
        entries: how to run it, by specs of the operands; see `OpBase`.
    """

    __slots__ = ("params", "primitive", "symbolic")

    def __init__(self, primitive: Primitive, params: dict[str, Any]) -> None:
        self.primitive: Primitive = primitive
        self.params: Mapping[str, Any] = MappingProxyType(params)
        self.symbolic: bool = any(map(is_open, params.values()))

    def generic(self, operands: tuple[Any, ...]) -> Any:
        """Apply the op to operands of any kind; the one of the highest level interprets it.

        Args:
            operands: values, NumPy arrays, numbers and sizes.

        Returns:
            The result, or a tuple of results.
        """
        bind: Any = None
        level = -1
        try:
            for a in operands:
                if a.__class__ in SCALARS:
                    continue
                try:
                    if a.level > level:
                        bind, level = a._bind, a.level
                except AttributeError:
                    if hasattr(a, "_bind"):  # a damaged value
                        raise
                    return self.generic(_adopted(self, operands))
            return state.tensor.evaluate(self, operands) if bind is None else bind(self, operands)
        except Exception as error:
            hide_frames(error)
            raise

    def evaluate(self, operands: tuple[Any, ...]) -> Any:
        """Run the op on concrete operands.

        Args:
            operands: tensors and Python scalars.

        Returns:
            The result, or a tuple of results.
        """
        try:
            return state.tensor.evaluate(self, operands)
        except Exception as error:
            hide_frames(error)
            raise

    def infer(self, *specs: Spec) -> Spec | tuple[Spec, ...]:
        """Infer the output specs.

        Args:
            specs: specs of the operands.

        Returns:
            The output spec, or a tuple of them if the primitive has several outputs.
        """
        return self.primitive.infer(*specs, **self.params)

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (self.primitive, dict(self.params))

    def __copy__(self) -> Op:
        return self

    def __deepcopy__(self, memo: object) -> Op:
        return self

    def __repr__(self) -> str:
        shown = {k: str(v) for k, v in self.params.items()}
        inner = ", ".join(f"{k}={repr(self.params[k]) if chr(10) in v else v}" for k, v in shown.items())
        return f"{self.primitive.name}[{inner}]" if inner else self.primitive.name


def _rebuild(primitive: Primitive, params: dict[str, Any]) -> Op:
    return primitive.op(**params)


class Primitive:
    """An immutable operation of the vocabulary; make one with the decorator `primitive`.

    Attributes:
        name: the name, as in ``dot_general``.
        operands: names of the array operands; a variadic one is last and starts with ``*``.
        metadata: names of the keyword-only metadata, in declared order.
        elementwise: whether operands and output have one shape.
        domain: domain of an element-wise primitive, a key of `DOMAINS`; integer operands are converted to float64 for
            the domains ``"inexact"`` and ``"floating"``.
        chooser: index of a boolean operand that is excluded from promotion, or ``None``.
        family: ``"<distribution>.<op>.v<major>"`` for a primitive of an operation family, else ``None``.
        extension: entry-point name in ``tenferro.extensions`` that provides its kernels and rules, or ``None``.
        widens: whether kernels run in float32 for narrow operands (float16, bfloat16), with conversions around; by
            default true for element-wise primitives. Others only move elements, or run programs.
        work: time for an element of an element-wise primitive, in additions. A compiler computes what is cheap again
            rather than store it.
    """

    anywhere: ClassVar[bool] = False
    """Whether operands may be in several places, because the op contains programs that name their devices."""

    @staticmethod
    def adopt(x: Any, **how: Any) -> Any:
        """Convert host data to a concrete tensor; see `Tensor.adopt`.

        Args:
            x: host data.
            how: options of `Tensor.adopt`.

        Returns:
            The tensor.
        """
        try:
            return state.tensor.adopt(x, **how)
        except Exception as error:
            hide_frames(error)
            raise

    def __init__(
        self,
        infer: Callable[..., Spec | tuple[Spec, ...]],
        *,
        elementwise: bool = False,
        domain: str = "any",
        chooser: int | None = None,
        family: str | None = None,
        extension: str | None = None,
        widens: bool | None = None,
        work: int = 1,
    ) -> None:
        if domain not in DOMAINS:
            raise ArgumentError(f"there is no domain {domain!r}; use one of {', '.join(DOMAINS)}", domain=domain)
        parameters = inspect.signature(infer).parameters.values()
        self.name: str = infer.__name__.rstrip("_")
        self.__name__: str = self.name
        self.__doc__ = infer.__doc__
        self.operands: tuple[str, ...] = tuple(
            f"*{p.name}" if p.kind is p.VAR_POSITIONAL else p.name for p in parameters if p.kind is not p.KEYWORD_ONLY
        )
        keywords = [p for p in parameters if p.kind is p.KEYWORD_ONLY]
        self.metadata: tuple[str, ...] = tuple(p.name for p in keywords)
        self._defaults = {p.name: p.default for p in keywords if p.default is not p.empty}
        self._rule = infer
        self.elementwise: bool = elementwise
        self.domain: str = domain
        self.chooser: int | None = chooser
        self.family: str | None = family
        self.extension: str | None = extension
        self.widens: bool = elementwise if widens is None else widens
        self.work: int = work
        if family is not None:
            claim(self)
        self._interned: WeakValueDictionary[Any, Op] = WeakValueDictionary()
        self._alive: dict[Any, Op] = {}
        self.bare: Op | None = None if self.metadata else Op(self, {})
        with _lock:
            _all.add(self)

    @property
    def kinds(self) -> str:
        """Kinds of dtypes that kernels of an element-wise primitive receive.

        NumPy's letters of its domain, and ``"n"`` for narrow floats where they are not widened.

        >>> from tenferro_tensor import catalog
        >>> catalog.exp.kinds, catalog.conj.kinds
        ('fc', 'biufcn')
        """
        return DOMAINS[self.domain][0] + ("" if self.widens else "n")

    def __call__(self, *args: Any, **params: Any) -> Any:
        """Apply to array operands; the operand of the highest level interprets the call."""
        try:
            if self.bare is not None and not params:
                return self.bare(*args)
            return self.op(**params)(*args)
        except Exception as error:
            hide_frames(error)
            raise

    def op(self, **params: Any) -> Op:
        """Return the op with the given metadata; equal metadata yield the same object."""
        if self.bare is not None and not params:
            return self.bare
        given = {**self._defaults, **params} if len(params) != len(self.metadata) else params
        try:
            values = tuple([_freeze(given[name]) for name in self.metadata])
        except KeyError:
            self._refuse(params)
        if len(given) != len(values):
            self._refuse(params)
        key = key_of(values)
        try:
            op = self._alive.get(key)
        except TypeError:
            raise ArgumentError(
                f"{self.name} metadata must be hashable, got {dict(zip(self.metadata, values, strict=True))}; "
                "arrays are operands, which also have derivatives",
                primitive=self.name,
            ) from None
        return op if op is not None else self._intern(key, values)

    def _refuse(self, params: dict[str, Any]) -> NoReturn:
        extra = [name for name in params if name not in self.metadata]
        missing = [name for name in self.metadata if name not in params and name not in self._defaults]
        wrong = f"has no argument {', '.join(extra)}" if extra else f"needs the keyword argument {', '.join(missing)}"
        if extra and {*extra} <= {*self.operands}:
            wrong = f"takes operands by position only, not {', '.join(extra)} by name"
        raise ArgumentError(f"{self.name} {wrong}; it takes {self.signature}", primitive=self.name)

    def _intern(self, key: Any, values: tuple[Any, ...]) -> Op:
        with _lock:
            op = self._interned.get(key)
            if op is None:
                op = self._interned[key] = Op(self, dict(zip(self.metadata, values, strict=True)))
            if len(self._alive) >= LIVE_OPS:
                self._alive.clear()
            self._alive[key] = op
        return op

    def infer(self, *specs: Spec, **params: Any) -> Spec | tuple[Spec, ...]:
        """Infer the output specs.

        Args:
            specs: specs of the operands.
            params: the metadata.

        Returns:
            The output spec, or a tuple of them.

        Raises:
            ArgumentError: the number of operands is wrong.
            ShapeError, DTypeError, AxisError: the operands do not fit.
            RegistryError: the inference function did not return specs.
        """
        variadic = bool(self.operands) and self.operands[-1].startswith("*")
        if len(specs) < len(self.operands) - variadic or (len(specs) > len(self.operands) and not variadic):
            raise ArgumentError(
                f"{self.name} takes {len(self.operands)} array operand(s) "
                f"({', '.join(self.operands)}), got {len(specs)}",
                primitive=self.name,
            )
        if self.elementwise:
            _require_uniform(self, specs)
        for s in () if self.anywhere else specs[1:]:
            if s.place is not specs[0].place:
                place = common_place(self.name, specs)
                specs = tuple([s.with_(place=place) for s in specs])
                break
        out = self._rule(*specs, **params)
        if out.__class__ is not Spec and (out.__class__ is not tuple or not all(o.__class__ is Spec for o in out)):
            raise RegistryError(
                f"the inference function of {self.name} returned {out!r:.80}, neither a Spec nor a tuple of Specs; "
                "correct the function under @primitive",
                primitive=self.name,
            )
        return out

    @property
    def in_house(self) -> bool:
        """Whether one of tenferro's own distributions defines it."""
        return in_house(self._rule.__module__ or "")

    @property
    def signature(self) -> str:
        """The call as source code, ``name(x, y, *, axes)``."""
        return f"{self.name}({', '.join(self.operands + (('*', *self.metadata) if self.metadata else ()))})"

    def live_ops(self) -> Iterator[Op]:
        """Iterate over the ops that are alive, to inspect and clear their plans."""
        if self.bare is not None:
            yield self.bare
        # Other threads may create ops: `valuerefs` copies atomically, iteration over values does not.
        yield from [op for ref in self._interned.valuerefs() if (op := ref()) is not None]

    def __repr__(self) -> str:
        return f"<primitive {self.signature}>"

    def __reduce__(self) -> tuple[Any, ...]:
        module, name = self._rule.__module__, self._rule.__name__
        if getattr(import_module(module), name, None) is not self:
            raise pickle.PicklingError(
                f"{self!r} cannot be pickled: it is not {name} of module {module}; "
                "define the primitive at the top of an importable module, under the name of its function"
            )
        return _lookup, (module, name)

    def __copy__(self) -> Primitive:
        return self

    def __deepcopy__(self, memo: object) -> Primitive:
        return self


def primitives() -> list[Primitive]:
    """Return all primitives of the process.

    Returns:
        The primitives, sorted by name.

    >>> [p.name for p in primitives() if p.name.startswith("reduce_a")]
    ['reduce_all', 'reduce_any']
    """
    with _lock:
        return sorted(_all, key=lambda p: p.name)


def _lookup(module: str, name: str) -> Any:
    return getattr(import_module(module), name)


def _require_uniform(p: Primitive, specs: tuple[Spec, ...]) -> None:
    """The law of element-wise primitives: one shape, and one dtype except for the chooser."""
    ruled = specs if p.chooser is None else (*specs[: p.chooser], *specs[p.chooser + 1 :])
    for s in specs[1:]:
        if s.shape != specs[0].shape:
            raise ShapeError(
                f"{p.name} is element-wise and needs operands of one shape, got {', '.join(map(repr, specs))}; "
                "broadcast them first",
                shapes=tuple(s.shape for s in specs),
            )
    for s in ruled:
        if s.dtype == ruled[0].dtype:
            continue
        raise DTypeError(
            f"{p.name} needs operands of one dtype, got {', '.join(map(repr, specs))}; convert them first",
            dtypes=tuple(str(s.dtype) for s in specs),
        )
    kinds, takes = DOMAINS[p.domain]
    if kind_of(ruled[0].dtype) not in kinds:
        raise DTypeError(
            f"{p.name} is not defined for {ruled[0].dtype.name}; it takes {takes}",
            dtype=str(ruled[0].dtype),
            primitive=p.name,
        )


def _adopted(op: Op, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Convert host arrays to concrete tensors and sizes to values; anything else is a typed error."""
    adopted = []
    for i, a in enumerate(args):
        if a.__class__ in SCALARS or hasattr(a, "_bind"):
            adopted.append(a)
        elif hasattr(a, "__dim__"):
            adopted.append(a.as_operand(args))
        elif isinstance(a, (np.ndarray, np.generic)):
            adopted.append(Primitive.adopt(a))
        else:
            raise ArgumentError(
                f"{op.primitive.name}: operand {i} is a {class_of(a)}, "
                "neither a tensor, a NumPy array nor a number; "
                "make it one with asarray()",
                primitive=op.primitive.name,
                operand=i,
            )
    return tuple(adopted)


class _Kind(TypedDict, total=False):
    elementwise: bool
    domain: str
    chooser: int | None
    family: str | None
    extension: str | None
    widens: bool | None
    work: int


@overload
def primitive(infer: Callable[..., Any], /, **kind: Unpack[_Kind]) -> Primitive: ...
@overload
def primitive(**kind: Unpack[_Kind]) -> Callable[[Callable[..., Any]], Primitive]: ...
def primitive(infer: Callable[..., Any] | None = None, /, **kind: Any) -> Any:
    """Create a `Primitive` from an inference function; usable as a decorator.

    Args:
        infer: maps operand specs and metadata to an output spec, or to a tuple of them.
        kind: ``elementwise``, ``domain``, ``chooser``, ``family``, ``extension``, ``widens``, ``work`` of `Primitive`.

    Returns:
        The primitive; without `infer`, a decorator.

    >>> from tenferro_tensor import Spec
    >>> @primitive
    ... def mirrored(x: Spec, *, axes: tuple[int, ...]) -> Spec:
    ...     '''Reverse the order of the elements along axes.'''
    ...     return x
    >>> mirrored.signature
    'mirrored(x, *, axes)'
    """
    if infer is not None:
        return Primitive(infer, **kind)
    return lambda f: Primitive(f, **kind)
