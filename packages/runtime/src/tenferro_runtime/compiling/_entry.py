"""The entry of a compiled function, rendered for its signature: from the call to the kernels without detours.

Where every argument that is not static is a concrete tensor, the specs and static values are looked up in one plain
dictionary. Everything else goes the long way.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from tenferro_runtime.rendering._render import Direct, blame, explain_failure
from tenferro_runtime.rendering._tiers import Tiered
from tenferro_runtime.trees._tree import TreeDef
from tenferro_tensor import Spec, Tensor
from tenferro_tensor import dispatch as _select
from tenferro_tensor._shortcuts import Entering, shortcuts
from tenferro_tensor_core import ArgumentError, key_of


class Hit(NamedTuple):
    """What the dictionary of an entry holds.

    Attributes:
        run: rendered program over `values` and raw arrays; of one bare output where `spec` is given.
        values: what the program needs of the sizes.
        spec: spec of the result, if it is one tensor.
        finish: makes the result of the raw outputs otherwise.
        fresh: tells whether the data that the function reads besides its arguments is still the same, or ``None``.
        direct: the only step of the program, or ``None``.
        specs: specs of the arguments, where all of them are tensors.
    """

    run: Callable[..., Any]
    values: tuple[Any, ...]
    spec: Any
    finish: Callable[[Any], Any]
    fresh: Callable[[], bool] | None
    direct: Direct | None
    specs: tuple[Spec, ...]


@dataclass(frozen=True, slots=True)
class Signature:
    """How the arguments of a function are told apart.

    Attributes:
        names: parameter names in order, or ``None`` where the function takes ``*args`` or ``**kwargs``.
        positional: number of leading parameters that are passed by position.
        static_names: names of static parameters.
        static_numbers: positions of static parameters, where there are no names.
        donated: names of parameters that are given away; their positions, where there are no names.
        parameters: the parameters themselves.
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
            ArgumentError: `numbers`, `names` or `donated` name no parameter, or a static parameter is given away.
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
        return Signature(every, len(positional), frozenset(static), frozenset(), parameters, given)

    def given_leaves(self, treedef: TreeDef) -> tuple[int, ...]:
        """Positions of the leaves of the dynamic arguments that are given away."""
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
        """What the entry passes on, taken apart into a tree of dynamic arguments and a tuple of static ones."""
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
        """Call `f` with what `split` took apart."""
        given = dict(static)
        if self.names is not None:
            rest = iter(dynamic)
            values = [given[n] if n in self.static_names else next(rest) for n in self.names]
            return f(*values[: self.positional], **dict(zip(self.names[self.positional :], values[self.positional :])))
        rest = iter(dynamic[0])
        count = len(dynamic[0]) + sum(n.__class__ is int for n in given)
        args = [given.pop(i) if i in given else next(rest) for i in range(count)]
        return f(*args, **dynamic[1], **given)

    def label(self, path: str) -> str:
        """A leaf of the dynamic arguments as the user would write it."""
        index, _, rest = path.removeprefix("[").partition("]")
        if self.names is not None:
            return [n for n in self.names if n not in self.static_names][int(index)] + rest
        return f"args{rest}" if index == "0" else f"kwargs{rest}"


def fast_key(signature: Signature, values: tuple[Any, ...]) -> Any:
    """The key that a rendered entry looks up, or ``None`` where a dynamic argument is no concrete tensor."""
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


def make_entry(signature: Signature, table: dict[Any, Hit], slow: Callable[..., Any]) -> Callable[..., Any]:
    """The function that users call.

    Args:
        signature: its parameters.
        table: hits by `fast_key`.
        slow: called with the tuple of arguments in all other cases.
    """
    space: dict[str, Any] = {
        "__name__": "tenferro_runtime.entry",
        "T": Tensor,
        "new": object.__new__,
        "get": table.get,
        "key": key_of,
        "scopes": _select,
        "slow": slow,
        "failed": explain_failure,
    }
    if signature.names is None:
        exec("def entry(*args, **kwargs):\n    return slow((args, kwargs))\n", space)
    else:
        exec(_entry_source(signature, space), space)
    entry: Callable[..., Any] = space["entry"]
    return entry


def shorten(
    entry: Callable[..., Any],
    signature: Signature,
    table: dict[Any, Hit],
    recent: list[Any],
    slow: Callable[..., Any],
) -> bool:
    """Let machine code do what `entry` does, where some is offered; false where that may come later."""
    offered = shortcuts()
    if offered is None:
        return False
    names = signature.names
    if names and not signature.static_names:
        enter = offered.entry(Entering(len(names), table, recent, slow, Tiered))
        if enter is not None:
            space = entry.__globals__
            space.update(__enter=enter, __recent=recent, __explain=_explain)
            local: dict[str, Any] = {}
            exec(_short_source(signature, space), space, local)
            entry.__code__ = local["entry"].__code__
    return True


def _explain(error: BaseException, hit: Hit | None) -> None:
    explain_failure(error)
    if hit is not None and hit.direct is not None:
        blame(error, hit.direct.equation)


def _short_source(signature: Signature, space: dict[str, Any]) -> str:
    return f"""\
def entry({_heads(signature, space)}):
    try:
        return __enter({", ".join(signature.names or ())})
    except Exception as __error:
        __explain(__error, __recent[0])
        raise
"""


def _heads(signature: Signature, space: dict[str, Any]) -> str:
    """The parameters as text; defaults become globals."""
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


def _entry_source(signature: Signature, space: dict[str, Any]) -> str:
    """Text of the entry; parameter names are the user's own, so that everything else has names they cannot have.

    Programs are called with tensors in the place of raw arrays where these are given away.
    """
    names = signature.names or ()
    for name in ("T", "new", "get", "key", "scopes", "slow", "failed"):
        space[f"__{name}"] = space.pop(name)
    dynamic = [n for n in names if n not in signature.static_names]
    parts = [f"__key({n})" if n in signature.static_names else f"{n}.spec" for n in names]
    key = parts[0] if len(parts) == 1 else f"({', '.join(parts)})"
    raws = [n if n in signature.donated else f"{n}._data" for n in dynamic]
    tests = [f"{n}.__class__ is __T" for n in dynamic]
    return f"""\
def entry({_heads(signature, space)}):
    if {" and ".join((*tests, "not __scopes.open_scopes"))}:
        try:
            __hit = __get({key})
        except TypeError:
            __hit = None
        if __hit is not None:
            __run, __values, __spec, __finish, __fresh, *_ = __hit
            if __fresh is None or __fresh():
                try:
                    if __spec is None:
                        return __finish(__run({", ".join(["__values", *raws])}))
                    __z = __new(__T)
                    __z._data = __run({", ".join(["__values", *raws])})
                    __z.spec = __spec
                    return __z
                except Exception as __error:
                    __failed(__error)
                    raise
    return __slow(({"".join(f"{n}, " for n in names)}))
"""
