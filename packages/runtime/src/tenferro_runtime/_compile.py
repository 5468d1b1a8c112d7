"""`compile`: a function traced once for each kind of arguments, then replayed."""

from __future__ import annotations

import functools
import threading
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from os import PathLike
from typing import Any, Final, Protocol, overload

from tenferro_runtime._caches import BoundedCache
from tenferro_runtime._call import call
from tenferro_runtime._compiled_tools import Traced, equip
from tenferro_runtime._data_sizes import definitions
from tenferro_runtime._entry import Hit, Signature, fast_key, make_entry, static_key
from tenferro_runtime._environment import Slot, Snapshot, slots_of, snapshot
from tenferro_runtime._execute import HOST_ARRAYS, executable, lowered
from tenferro_runtime._program import Program
from tenferro_runtime._render import explain_failure, render
from tenferro_runtime._runtime import current_runtime
from tenferro_runtime._source import here, user_line, where
from tenferro_runtime._trace import record
from tenferro_runtime._traced import TracedTensor
from tenferro_runtime._tree import TreeDef, flatten, unflatten
from tenferro_runtime._tree_code import builder, reader
from tenferro_runtime.reports import BadStep, Explanation, Profile
from tenferro_tensor import SCALARS, Array, Spec, Tensor, _select, tensor
from tenferro_tensor._select import scoped_device
from tenferro_tensor_core import ArgumentError

REASONS: Final = 64
"""Number of retraces whose reasons are remembered."""

READERS: Final = 8
"""Number of argument structures that have a rendered short way."""

_NOTHING: Final = Snapshot((), (), (), True)


@dataclass(frozen=True, slots=True)
class CacheInfo:
    """What a compiled function has done so far.

    Attributes:
        traces: number of times that the function was traced.
        size: number of programs kept now.
        bound: largest number of programs kept.
        fast: number of argument kinds that take the short way now.
        reasons: why it was traced, latest last, with the line of the call.
    """

    traces: int
    size: int
    bound: int
    fast: int
    reasons: tuple[str, ...]


class CompiledFunction(Protocol):
    """A function that `compile` made."""

    __name__: str
    __wrapped__: Callable[..., Any]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the program for these arguments, tracing it first where there is none."""

    def cache_info(self) -> CacheInfo:
        """Traces, sizes and the reason of each retrace."""

    def clear(self) -> None:
        """Forget all programs."""

    def program(self, *args: Any, **kwargs: Any) -> Program:
        """The program that these arguments are run with; traced where there is none, but not run."""

    def save(self, path: str | PathLike[str], *args: Any, **kwargs: Any) -> str:
        """Write the program for these arguments to a file; `load` gives a function of the same trees."""

    def explain(self, *args: Any, **kwargs: Any) -> Explanation:
        """What each step of the program costs for these arguments."""

    def profile(self, *args: Any, **kwargs: Any) -> Profile:
        """The time that each step takes for these arguments, measured."""

    def draw(self, path: str | PathLike[str], *args: Any, **kwargs: Any) -> str:
        """Write the program for these arguments as a graph, to a file ``.dot`` or ``.html``."""

    def find_nan(self, *args: Any, **kwargs: Any) -> BadStep | None:
        """The first step that makes a NaN or an infinity of these arguments."""


class _Form:
    """A traced form of the function: program, structure of the result, and where captured values come from."""

    __slots__ = ("_finish", "arrays", "fixed", "kept", "outer", "program", "tree")

    def __init__(
        self, program: Program, tree: TreeDef, fixed: dict[int, Any], outer: tuple[int, ...], kept: tuple[Any, ...]
    ) -> None:
        self.program, self.tree, self.fixed, self.outer, self.kept = program, tree, fixed, outer, kept
        self._finish: Callable[[tuple[Any, ...]], Any] | None = None
        self.arrays = [i for i in range(tree.size) if i not in fixed]

    def result(self, values: Iterable[Any]) -> Any:
        if not self.fixed:
            return unflatten(self.tree, tuple(values))
        leaves = [self.fixed.get(i) for i in range(self.tree.size)]
        for i, value in zip(self.arrays, values, strict=True):
            leaves[i] = value
        return unflatten(self.tree, leaves)

    def finish(self) -> Callable[[tuple[Any, ...]], Any]:
        """Makes the result of the raw outputs."""
        if self._finish is None:
            self._finish = builder(self.tree, self.fixed, self.program.outputs)
        return self._finish


class _Compiled:
    """State of one compiled function; users hold its rendered entry."""

    def __init__(
        self,
        f: Callable[..., Any],
        static_argnums: tuple[int, ...],
        static_argnames: tuple[str, ...],
        deterministic: bool | None = None,
    ) -> None:
        runtime = current_runtime()
        self.f, self.runtime, self.deterministic = f, runtime, deterministic
        self.title: str = getattr(f, "__qualname__", type(f).__name__)
        self.signature = Signature.of(f, static_argnums, static_argnames)
        self.programs: BoundedCache[Any, _Form] = BoundedCache(f"compile({self.title})", runtime.programs_per_function)
        self.hits: BoundedCache[Any, Hit] = BoundedCache(
            f"compile({self.title}): short way", runtime.kinds_per_function, recency=False
        )
        self.readers: list[Callable[[tuple[Any, ...]], Any]] = []
        self.slots: tuple[Slot, ...] | None = None
        self.reasons: deque[str] = deque(maxlen=REASONS)
        self.traces = 0
        self.last: Any = None
        self.lock = threading.Lock()

    def __call__(self, values: tuple[Any, ...]) -> Any:
        for read in self.readers:
            found = None if open_scopes() else read(values)
            if found is not None:
                hit = self.hits.table.get(found[0])
                if hit is not None and (hit.fresh is None or hit.fresh()):
                    return self._run(hit.run, found[1], hit.finish)
        dynamic, static = self.signature.split(values)
        leaves, treedef = flatten(dynamic)
        form, ready, outer, captured, around = self.find(dynamic, static, leaves, treedef)
        if definitions(form.program):
            return form.result(form.program.run(*ready, *captured))
        if outer or captured:
            return form.result(call(*ready, *captured, program=form.program))
        run = executable(form.program)
        if around.plain:
            self._remember(values, leaves, treedef, form)
        return self._run(run, [t.data for t in ready], form.finish())

    def _run(self, run: Callable[..., Any], raws: Iterable[Any], finish: Callable[[Any], Any]) -> Any:
        try:
            outs = run(*raws)
        except Exception as error:
            explain_failure(error)
            raise
        return finish(outs)

    def find(
        self, dynamic: Any, static: tuple[Any, ...], leaves: list[Any], treedef: TreeDef
    ) -> tuple[_Form, list[Any], bool, tuple[Any, ...], Snapshot]:
        """The form for these arguments; the leaves as arrays, whether some are not concrete, and captured values."""
        ready: list[Any] = []
        kinds: list[Any] = []
        outer = False
        for i, leaf in enumerate(leaves):
            cls = leaf.__class__
            if cls is Tensor:
                kinds.append(leaf.spec)
            elif cls in SCALARS:
                leaf = tensor(leaf)
                kinds.append(cls)
            elif isinstance(leaf, Array):
                kinds.append(leaf.spec)
                outer = outer or leaf.level > 0
            elif isinstance(leaf, HOST_ARRAYS):
                leaf = tensor(leaf)
                kinds.append(leaf.spec)
            else:
                self._refuse_leaf(leaf, list(treedef.paths())[i])
            ready.append(leaf)
        if self.slots is None:
            self.slots = slots_of(self.f)
        around = snapshot(self.slots) if self.slots else _NOTHING
        key = (treedef, tuple(kinds), self._static_key(static), scoped_device(), around.key)
        form = self.programs.get(key)
        if form is not None:
            return form, ready, outer, tuple([around.outer[i] for i in form.outer]), around
        return self._trace(key, ready, static, around, outer)

    def _trace(
        self, key: Any, ready: list[Any], static: tuple[Any, ...], around: Snapshot, outer: bool
    ) -> tuple[_Form, list[Any], bool, tuple[Any, ...], Snapshot]:
        treedef, kinds = key[0], key[1]
        label = self.signature.label
        inputs = [
            (leaf.spec, label(path), None if isinstance(kind, Spec) else kind)
            for leaf, kind, path in zip(ready, kinds, treedef.paths(), strict=True)
        ]

        def body(values: list[TracedTensor]) -> Any:
            return self.signature.apply(self.f, unflatten(treedef, values), static)

        with self.lock:
            self.reasons.append(self._reason(key))
            self.traces += 1
            self.last = key
        recorded = record(body, inputs)
        program = self.runtime.optimise(recorded.program, deterministic=self.deterministic)
        where_from = {id(v): i for i, v in enumerate(around.outer)}
        places = tuple([where_from.get(id(v), -1) for v in recorded.captured])
        form = _Form(program, recorded.tree, recorded.fixed, places, around.kept)
        if -1 in places:
            with self.lock:
                self.reasons[-1] += "; not kept, because it uses a differentiated or traced value that is neither an "
                self.reasons[-1] += "argument nor a variable of the function: pass it as an argument"
        else:
            self.programs.put(key, form)
        return form, ready, outer, recorded.captured, around

    def _remember(self, values: tuple[Any, ...], leaves: list[Any], treedef: TreeDef, form: _Form) -> None:
        """Let later calls with arguments of this kind take the short way."""
        if open_scopes() or self.signature.names is None:
            return
        fresh = _same_data(self.slots) if self.slots else None
        key = fast_key(self.signature, values)
        if key is None:
            kinds = tuple([leaf.__class__ for leaf in leaves])
            if all(kind is Tensor or kind in SCALARS for kind in kinds):
                hit = Hit(executable(form.program), None, form.finish(), fresh)
                self._remember_tree(values, treedef, kinds, hit)
        elif form.tree.kind is None and not form.fixed:
            run = form.program.memo.get("bare")
            if run is None:
                run = form.program.memo["bare"] = render(lowered(form.program), "raw", bare=True)
            self.hits.put(key, Hit(run, form.program.outputs[0], _itself, fresh))
        else:
            self.hits.put(key, Hit(executable(form.program), None, form.finish(), fresh))

    def _remember_tree(self, values: tuple[Any, ...], treedef: TreeDef, kinds: tuple[type, ...], hit: Hit) -> None:
        for read in self.readers:
            found = read(values)
            if found is not None:
                self.hits.put(found[0], hit)
                return
        if len(self.readers) >= READERS:
            return
        places = iter(range(len(values)))
        order = tuple([None if n in self.signature.static_names else next(places) for n in self.signature.names or ()])
        read = reader(treedef, kinds, order)
        found = read(values)
        if found is not None:
            self.readers.append(read)
            self.hits.put(found[0], hit)

    def _static_key(self, static: tuple[Any, ...]) -> tuple[Any, ...]:
        keys = []
        for name, value in static:
            try:
                keys.append((name, static_key(value)))
            except TypeError:
                raise ArgumentError(
                    f"static argument {name!r} of {self.title} must be hashable, got the {type(value).__name__} "
                    f"{value!r:.80}{here()}; pass arrays as ordinary arguments, and lists as tuples",
                    argument=name,
                ) from None
        return tuple(keys)

    def _refuse_leaf(self, leaf: Any, path: str) -> None:
        label = self.signature.label(path)
        raise ArgumentError(
            f"argument {label} of {self.title} is a {type(leaf).__name__}, neither an array nor a number{here()}; "
            "name it in static_argnames if it is to be a constant of the program, or register its class with "
            "register_dataclass",
            argument=label,
        )

    def _reason(self, key: Any) -> str:
        """What is new about a key, compared with the key of the trace before."""
        at = where(user_line())
        return f"{self._difference(key)}{f' ({at})' if at else ''}"

    def _difference(self, key: Any) -> str:
        if self.last is None:
            return "first call"
        (tree, kinds, static, device, data), (tree0, kinds0, static0, device0, data0) = key, self.last
        if tree is not tree0:
            return f"structure {tree.show()} instead of {tree0.show()}"
        for path, now, before in zip(tree.paths(), kinds, kinds0, strict=True):
            if now is not before:
                shown = [k.__name__ if isinstance(k, type) else repr(k) for k in (now, before)]
                return f"{self.signature.label(path)}: {shown[0]} instead of {shown[1]}"
        for (name, now), (_, before) in zip(static, static0, strict=False):
            if now != before:
                return f"static {name} has changed"
        if static != static0:
            return "other static arguments"
        if device is not device0:
            return f"runs on {device} instead of {device0}"
        if data != data0:
            return f"data outside the arguments has changed: {', '.join(s.name for s in self.slots or ())}"
        return "its program had been dropped"

    def info(self) -> CacheInfo:
        with self.lock:
            return CacheInfo(self.traces, len(self.programs), self.programs.bound, len(self.hits), tuple(self.reasons))

    def clear(self) -> None:
        self.programs.clear()
        self.hits.clear()
        self.readers.clear()
        self.last = None


def open_scopes() -> bool:
    """Whether some thread is inside a device scope, so that the device has to be asked for."""
    return bool(_select.open_scopes)


def _itself(x: Any) -> Any:
    return x


def _same_data(slots: tuple[Slot, ...]) -> Callable[[], bool]:
    pairs = [(slot.read, slot.read()) for slot in slots]

    def fresh() -> bool:
        for read, value in pairs:
            if read() is not value:
                return False
        return True

    return fresh


@overload
def compile(f: Callable[..., Any], /) -> CompiledFunction: ...
@overload
def compile(
    f: None = None,
    /,
    *,
    static_argnums: int | Iterable[int] = ...,
    static_argnames: str | Iterable[str] = ...,
    donate: int | Iterable[int] = ...,
    deterministic: bool | None = ...,
) -> Callable[[Callable[..., Any]], CompiledFunction]: ...
@overload
def compile(
    f: Callable[..., Any],
    /,
    *,
    static_argnums: int | Iterable[int] = ...,
    static_argnames: str | Iterable[str] = ...,
    donate: int | Iterable[int] = ...,
    deterministic: bool | None = ...,
) -> CompiledFunction: ...
def compile(
    f: Callable[..., Any] | None = None,
    /,
    *,
    static_argnums: int | Iterable[int] = (),
    static_argnames: str | Iterable[str] = (),
    donate: int | Iterable[int] = (),
    deterministic: bool | None = None,
) -> Any:
    """Make a function that is traced once for each kind of arguments, and replayed from then on.

    The function sees traced values, which have shape and dtype but no elements: Python code in it runs while tracing
    only. Arguments and results are pytrees of arrays; Python numbers among the arguments are weak 0-d arrays, so that
    a new number is no new program. The result may be differentiated, and called while another function is traced.

    A rebound global or closure variable makes a new trace; so does one that has become a differentiated value. What is
    changed inside an object, or read from a module, is not noticed.

    Args:
        f: the function; without it, a decorator is returned.
        static_argnums: positions of arguments that are constants of the program: any hashable values.
        static_argnames: the same by name.
        donate: positions of arguments that the caller will not use any more; a hint, which backends may use for
            memory and may ignore.
        deterministic: whether only passes run that keep every bit, so that the compiled function gives what its
            operations give one by one, with any number of threads; by default what the runtime says.

    Returns:
        A function with the signature of `f`, and with ``cache_info()``, ``clear()`` and ``program(*args)``.

    Raises:
        ArgumentError: an argument is no array, number or container of them and not static; or the result is not.
        TracingError: the function asked for the elements of a traced value.

    >>> import tenferro_runtime as tr
    >>> from tenferro_tensor import tensor
    >>> @tr.compile
    ... def f(x, y):
    ...     return {"sum": x + y, "double": 2 * x}
    >>> f(tensor([1.0, 2.0]), 1)
    {'sum': Tensor([2., 3.]), 'double': Tensor([2., 4.])}
    >>> f(tensor([5.0, 6.0]), 3)["sum"], f.cache_info().traces
    (Tensor([8., 9.]), 1)
    """
    numbers = (static_argnums,) if isinstance(static_argnums, int) else tuple(static_argnums)
    names = (static_argnames,) if isinstance(static_argnames, str) else tuple(static_argnames)
    donated = (donate,) if isinstance(donate, int) else tuple(donate)
    if f is None:
        return lambda g: _compile(g, numbers, names, donated, deterministic)
    return _compile(f, numbers, names, donated, deterministic)


def _compile(
    f: Any, numbers: tuple[int, ...], names: tuple[str, ...], donated: tuple[int, ...], deterministic: bool | None
) -> Any:
    if not callable(f):
        raise ArgumentError(f"compile takes a function, got {f!r:.80}")
    Signature.of(f, donated, ())  # the same check of positions
    state = _Compiled(f, numbers, names, deterministic)
    entry: Any = make_entry(state.signature, state.hits.table, state, explain_failure)

    def traced(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Traced:
        signature = state.signature
        dynamic, static = signature.split((args, kwargs) if signature.names is None else _bound(f, args, kwargs))
        leaves, treedef = flatten(dynamic)
        form, ready, _, captured, _ = state.find(dynamic, static, leaves, treedef)
        names = signature.names and tuple([n for n in signature.names if n not in signature.static_names])
        return Traced(state.title, names, form.program, treedef, form.tree, form.fixed, ready, captured)

    functools.update_wrapper(entry, f)
    entry.cache_info, entry.clear = state.info, state.clear
    equip(entry, traced)
    return entry


def _bound(f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    import inspect

    bound = inspect.signature(f).bind(*args, **kwargs)
    bound.apply_defaults()
    return tuple(bound.arguments.values())
