"""Signatures of compiled functions, and the callable that users hold."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import update_wrapper
from keyword import iskeyword
from types import MethodType
from typing import Any

from tenferro_runtime._generated_code import defined
from tenferro_runtime.running._execute import HOST_ARRAYS
from tenferro_runtime.running.rendering._tiers import Tiered
from tenferro_runtime.trees._containers import register_node
from tenferro_runtime.trees._tree import TreeDef, flatten
from tenferro_tensor import SCALARS, Array, Tensor, library
from tenferro_tensor.calls import ProgramEntry, ProgramsBase
from tenferro_tensor_core import ArgumentError, key_of
from tenferro_tensor_core.tracebacks import hide_frames


class Constant:
    """An argument that is a constant of the program: a tree without leaves, compared by value.

    Args:
        value: the argument, which holds no array; if it is not hashable, constants compare by identity.
    """

    __slots__ = ("hashable", "key", "value")

    def __init__(self, value: Any) -> None:
        self.value, self.key, self.hashable = value, key_of(value), True
        try:
            hash(self.key)
        except TypeError:
            self.key, self.hashable = id(self), False

    def __eq__(self, other: object) -> bool:
        return other.__class__ is Constant and other.key == self.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __repr__(self) -> str:
        return repr(self.value)


register_node(Constant, lambda constant: ((), constant), lambda constant, _: constant.value)


def is_foreign(x: Any) -> bool:
    """Whether an argument is neither an array, a number, a size nor a container."""
    if isinstance(x, (Array, *HOST_ARRAYS, *SCALARS)) or hasattr(x, "__dim__"):
        return False
    return flatten(x)[1].kind is None


def _constant(p: inspect.Parameter) -> inspect.Parameter:
    """The parameter with its default as a constant, unless the default contains arrays."""
    leaves = () if p.default is p.empty else flatten(p.default)[0]
    if not leaves or any(isinstance(leaf, (Array, *HOST_ARRAYS)) for leaf in leaves):
        return p
    return p.replace(default=Constant(p.default))


@dataclass(frozen=True, slots=True)
class Signature:
    """The parameters of a function, and which of them are static or donated.

    Attributes:
        names: parameter names in order, or ``None`` if the function takes ``*args`` or ``**kwargs``.
        positional: number of leading parameters that are passed by position.
        static_names: names of static parameters.
        static_numbers: positions of static parameters, if there are no names.
        parameters: the parameters themselves.
        donated: names of donated parameters, or their positions if there are no names.
    """

    names: tuple[str, ...] | None
    positional: int
    static_names: frozenset[str]
    static_numbers: frozenset[int]
    parameters: tuple[inspect.Parameter, ...] = ()
    donated: frozenset[str | int] = frozenset()

    @staticmethod
    def of(
        f: Callable[..., Any], numbers: tuple[int, ...], names: tuple[str, ...], donated: tuple[int, ...] = ()
    ) -> Signature:
        """Read the signature of `f`.

        Raises:
            ArgumentError: `numbers`, `names` or `donated` name no parameter, or a static parameter is donated.
        """
        title = getattr(f, "__name__", repr(f))
        try:
            parameters = tuple(inspect.signature(f).parameters.values())
        except (TypeError, ValueError):
            return Signature(None, 0, frozenset(names), frozenset(numbers), donated=frozenset(donated))
        if any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters):
            return Signature(None, 0, frozenset(names), frozenset(numbers), donated=frozenset(donated))
        positional = [p.name for p in parameters if p.kind is not p.KEYWORD_ONLY]
        every = tuple(p.name for p in parameters)
        static = set(names)
        for what, n in (*[("static_argnums", n) for n in numbers], *[("donate", n) for n in donated]):
            if not -len(positional) <= n < len(positional):
                raise ArgumentError(
                    f"{what}={n} is out of range: {title} takes {len(positional)} positional arguments, "
                    f"({', '.join(positional)})",
                    **{what: n},
                )
        static.update([positional[n] for n in numbers])
        given = frozenset([positional[n] for n in donated])
        for name in sorted(static & given):
            raise ArgumentError(f"{name} is a static argument of {title}, and cannot be donated", argument=name)
        for name in sorted(static - set(every)):
            raise ArgumentError(
                f"static_argnames={name!r} names no argument of {title}; it takes ({', '.join(every)})",
                static_argnames=name,
            )
        parameters = tuple([p if p.name in static else _constant(p) for p in parameters])
        return Signature(every, len(positional), frozenset(static), frozenset(), parameters, given)

    def given_leaves(self, treedef: TreeDef) -> tuple[int, ...]:
        """Positions of the donated leaves among those of the dynamic arguments."""
        children = treedef.children
        if self.names is not None:
            marked = [n in self.donated for n in self.names if n not in self.static_names]
        else:
            children = children[0].children if children else ()
            count = len(children) + len(self.static_numbers)
            fixed = {n % count for n in self.static_numbers} if count else set()
            wanted = {n % count for n in self.donated if n.__class__ is int} if count else set()
            marked = [i in wanted for i in range(count) if i not in fixed]
        found: list[int] = []
        start = 0
        for child, donated in zip(children, marked):
            found += range(start, start + child.size) if donated else ()
            start += child.size
        return tuple(found)

    def split(self, values: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
        """Split the values that the entry passes into a tree of dynamic arguments and a tuple of static ones."""
        if self.names is not None:
            if not self.static_names:
                return values, ()
            named = list(zip(self.names, values, strict=True))
            dynamic = tuple([v for n, v in named if n not in self.static_names])
            return dynamic, tuple([(n, v) for n, v in named if n in self.static_names])
        args, kwargs = values
        numbers = {n % len(args) if args else n for n in self.static_numbers}
        dynamic = (
            tuple([a for i, a in enumerate(args) if i not in numbers]),
            {n: a for n, a in sorted(kwargs.items()) if n not in self.static_names},
        )
        static = [(i, a) for i, a in enumerate(args) if i in numbers]
        return dynamic, (*static, *[(n, a) for n, a in sorted(kwargs.items()) if n in self.static_names])

    def apply(self, f: Callable[..., Any], dynamic: Any, static: tuple[Any, ...]) -> Any:
        """Call `f` with dynamic and static arguments as `split` returns them."""
        given = dict(static)
        if self.names is not None:
            rest = iter([v.value if v.__class__ is Constant else v for v in dynamic])
            values = [given[n] if n in self.static_names else next(rest) for n in self.names]
            return f(*values[: self.positional], **dict(zip(self.names[self.positional :], values[self.positional :])))
        rest = iter(dynamic[0])
        count = len(dynamic[0]) + sum(n.__class__ is int for n in given)
        args = [given.pop(i) if i in given else next(rest) for i in range(count)]
        return f(*args, **dynamic[1], **given)

    def label(self, path: str) -> str:
        """The name of a leaf of the dynamic arguments, as the user would write it."""
        index, _, rest = path.removeprefix("[").partition("]")
        if self.names is not None:
            return [n for n in self.names if n not in self.static_names][int(index)] + rest
        return f"args{rest}" if index == "0" else f"kwargs{rest}"


def fast_key(signature: Signature, values: tuple[Any, ...]) -> Any:
    """The key of the fast path, or ``None`` if a dynamic argument is not a concrete tensor."""
    if signature.names is None:
        return None
    parts = []
    for name, value in zip(signature.names, values, strict=True):
        if name in signature.static_names:
            parts.append(key_of(value))
        elif value.__class__ is Tensor:
            parts.append(value.spec)
        else:
            return None
    return parts[0] if len(parts) == 1 else tuple(parts)


class Entrance(ProgramsBase):
    """A compiled function as users call it: its entries are programs for concrete tensors of known specs.

    Args:
        f: the function.
        signature: its parameters.
        slow: called in all other cases, with the tuple of arguments by position, or with positional and keyword
            arguments as a pair if the function takes ``*args`` or ``**kwargs``.
        bound: largest number of entries.
    """

    __slots__ = ("__dict__", "__weakref__", "_bind", "_slow")
    __wrapped__: Callable[..., Any]
    __qualname__: str
    arity: int
    bound: int

    def __init__(
        self, f: Callable[..., Any], signature: Signature, slow: Callable[[tuple[Any, ...]], Any], bound: int
    ) -> None:
        update_wrapper(self, f)
        names = signature.names
        self.arity, self.bound, self._slow = sys.maxsize if names is None else len(names), bound, slow
        self._bind = None if names is None else _binder(signature, getattr(f, "__name__", "function"))

    def generic(self, operands: tuple[Any, ...]) -> Any:
        """Call the function with the values of all parameters by position."""
        try:
            return self._slow(operands)
        except Exception as error:
            hide_frames(error)
            raise

    evaluate = generic

    def bound_call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call the function with positional and keyword arguments."""
        try:
            return self._slow((args, kwargs)) if self._bind is None else self(*self._bind(*args, **kwargs))
        except Exception as error:
            hide_frames(error)
            raise

    def parameters(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """The values of all parameters by position; the function must have named parameters only."""
        assert self._bind is not None, "the parameters have names"
        return self._bind(*args, **kwargs)

    def follow(self, entry: ProgramEntry) -> None:
        """Store an entry, and replace it as faster forms of its program become available."""
        self.remember(entry)
        tier = entry.run if entry.step is None else entry.step
        if not isinstance(tier, Tiered):
            return

        def switch_to(form: Callable[..., Any]) -> None:
            nonlocal entry
            if self.entries.get(entry.key) is entry:
                e = entry
                run, step = (form, None) if e.step is None else (e.run, form)
                entry = ProgramEntry(e.key, run, e.out, e.values, e.finish, e.fresh, e.failed, step, e.order, e.extras)
                self.remember(entry)

        tier.on_faster(switch_to)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def __reduce__(self) -> str:
        return self.__qualname__  # pickled by name, as functions are

    def __repr__(self) -> str:
        return f"<compiled function {self.__qualname__}>"

    def _repr_html_(self) -> str:
        programs = [form.program for form in self._slow.programs.table.values()]  # type: ignore[attr-defined]
        html: str = library("tenferro_runtime.inspection").function_card(self, programs)
        return html


def _binder(signature: Signature, name: str) -> Callable[..., tuple[Any, ...]]:
    """A function with these parameters that returns their values as a tuple."""
    space: dict[str, Any] = {"__name__": "tenferro_runtime.entry"}
    title = name if name.isidentifier() and not iskeyword(name) else "function"
    values = "".join([f"{n}, " for n in signature.names or ()])
    lines = [f"def {title}({_heads(signature, space)}):", f"    return ({values})"]
    return defined(title, lines, space, "arguments")


def _heads(signature: Signature, space: dict[str, Any]) -> str:
    """The parameter list as source text; defaults become globals."""
    names = signature.names or ()
    heads = []
    for i, p in enumerate(signature.parameters):
        default = ""
        if p.default is not p.empty:
            space[f"__d{i}"] = p.default
            default = f"=__d{i}"
        if p.kind is p.KEYWORD_ONLY and i == signature.positional:
            heads.append("*")
        heads.append(p.name + default)
        if p.kind is p.POSITIONAL_ONLY and (
            i + 1 == len(names) or signature.parameters[i + 1].kind is not p.POSITIONAL_ONLY
        ):
            heads.append("/")
    return ", ".join(heads)
