"""`Compiled`: the programs of a compiled function, and the choice of one for given arguments."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import partial
from itertools import count
from typing import Any, Final, NamedTuple
from weakref import WeakSet

import numpy as np

from tenferro_runtime._caches import BoundedCache
from tenferro_runtime.compilers import ProgramCompiler, only_compilers, scoped_compiler
from tenferro_runtime.compiling._entry import Constant, Entrance, Signature, fast_key, is_foreign
from tenferro_runtime.compiling._environment import Slot, Snapshot, Untouched, same_data, slots_in, slots_of, snapshot
from tenferro_runtime.compiling._fallbacks import Fallback, fallback_of
from tenferro_runtime.compiling._kind import DROPPED, FIRST, Cause, Kind
from tenferro_runtime.compiling._new_sizes import NewSizes
from tenferro_runtime.compiling._retraces import NO_QUESTIONS, CacheInfo, Retraces, guard_failure
from tenferro_runtime.compiling._trace import record
from tenferro_runtime.compiling._variants import Variant, opened
from tenferro_runtime.compiling._writes import overlap, with_writes
from tenferro_runtime.ir._call import call
from tenferro_runtime.ir._data_sizes import definitions
from tenferro_runtime.ir._effects import has_effects
from tenferro_runtime.ir._sizes import open_sizes
from tenferro_runtime.ir._source import here
from tenferro_runtime.running._donation import Donation
from tenferro_runtime.running._execute import HOST_ARRAYS
from tenferro_runtime.runtime import Runtime, current_runtime
from tenferro_runtime.tracing._traced import TracedTensor
from tenferro_runtime.tracing.effects import ambient
from tenferro_runtime.tracing.expanding import with_conditions
from tenferro_runtime.trees._tree import TreeDef, flatten, unflatten
from tenferro_runtime.trees._tree_code import reader
from tenferro_tensor import HOST, REGISTRY, SCALARS, Array, ComputeDevice, Primitive, Spec, Tensor, dispatch
from tenferro_tensor.calls import ProgramEntry, state
from tenferro_tensor.dispatch import scoped_device
from tenferro_tensor.functions import asarray
from tenferro_tensor.identity import identity
from tenferro_tensor_core import ArgumentError, DimLike, TracingError, decisions, key_of
from tenferro_tensor_core.forks import new_lock

MAX_TREE_READERS: Final = 8
"""Largest number of argument structures with a rendered fast path, and of forms with a fast path for new sizes."""

_NOTHING: Final = Snapshot((), (), (), True)

_KNOWN_CLASSES: Final = frozenset({Tensor, Constant, tuple, list, dict, np.ndarray, *SCALARS})
"""Classes of arguments that need no test for being constants."""

_HOST_CLASSES: Final = frozenset({np.ndarray, *SCALARS})
"""Classes of leaves, besides `Tensor`, with a fast path into main memory."""


class Found(NamedTuple):
    """The form that a call uses.

    Attributes:
        form: the form.
        leaves: the arguments as arrays.
        sizes: values of the program's symbolic sizes.
        outer: whether an argument is differentiated or traced.
        captured: values from outside that the program takes in addition to the arguments.
        around: the data that the function reads from closures and globals.
    """

    form: Variant
    leaves: list[Any]
    sizes: tuple[DimLike, ...]
    outer: bool
    captured: tuple[Any, ...]
    around: Snapshot


_live: Final[WeakSet[Compiled]] = WeakSet()
_live_lock: Final = new_lock()


def forget_programs() -> None:
    """Drop the programs of every compiled function; called when a kernel or a rule is replaced."""
    with _live_lock:
        live = list(_live)
    for compiled in live:
        compiled.clear()


REGISTRY.changed.append(forget_programs)


class _Hits(BoundedCache[Any, ProgramEntry]):
    """Entries by key of the arguments; clearing them also clears those of the entry point."""

    __slots__ = ("_entrance",)

    def __init__(self, owner: str, bound: int, entrance: Entrance) -> None:
        super().__init__(owner, bound, recency=False)
        self._entrance = entrance

    def clear(self) -> None:
        """Drop every entry, here and in the entry point."""
        super().clear()
        self._entrance.forget()


class Compiled:
    """The state of one compiled function; users hold its entry point."""

    options: tuple[tuple[int, ...], tuple[str, ...], tuple[int, ...], bool | None, Any, bool | int | None]
    scope: AbstractContextManager[Any]
    f: Callable[..., Any]
    runtime: Runtime
    placement: Any
    signature: Signature
    retraces: Retraces
    lock: Any
    entry: Entrance
    hits: _Hits

    def __init__(
        self,
        f: Callable[..., Any],
        static_argnums: tuple[int, ...],
        static_argnames: tuple[str, ...],
        donated: tuple[int, ...] = (),
        deterministic: bool | None = None,
        placement: Any = None,
        unroll: bool | int | None = None,
        compiler: ProgramCompiler | None = None,
        scope: AbstractContextManager[Any] | None = None,
    ) -> None:
        self.options = static_argnums, static_argnames, donated, deterministic, placement, unroll
        self.compiler = compiler
        """The compiler given with ``backend=``; a function defined inside another one uses the compiler of that."""
        self.scope = nullcontext() if scope is None else scope
        """The scope in which the function is traced."""
        self.others: dict[Fallback, Compiled] = {}
        """The same function traced in other scopes, for calls that failed."""
        self.by: dict[ProgramCompiler, Compiled] = {}
        """The same function for each compiler of an enclosing scope."""
        runtime = current_runtime()
        if deterministic is not None:
            runtime = runtime.with_deterministic(deterministic)
        if unroll is not None:
            runtime = runtime.with_unroll(unroll)
        if compiler is not None:
            runtime = runtime.with_compiler(compiler)
        self.f, self.runtime, self.placement = f, runtime, placement
        self.title: str = getattr(f, "__qualname__", type(f).__name__)
        self.signature = Signature.of(f, static_argnums, static_argnames, donated)
        self.programs: BoundedCache[int, Variant] = BoundedCache(
            f"compile({self.title})", runtime.programs_per_function
        )
        self.candidates: dict[Kind, list[int]] = {}
        """Keys of `programs` for each kind of arguments, in order of tracing."""
        self.closed: dict[Kind, str] = {}
        """Kinds of arguments whose sizes must be concrete, and why."""
        self.readers: list[Callable[[tuple[Any, ...]], Any]] = []
        self.slots: tuple[Slot, ...] | None = None
        self.retraces = Retraces(self.title)
        self.last: tuple[Kind, list[Spec], tuple[Any, ...]] | None = None
        self.lock = new_lock()
        self._number = count().__next__
        self._selects = self.signature.names is not None and bool(self.signature.static_names or self.signature.donated)
        self.entry = Entrance(f, self.signature, self, runtime.kinds_per_function)
        """The callable that users hold."""
        self.hits = _Hits(f"compile({self.title}): known calls", runtime.kinds_per_function, self.entry)
        self.renewals: tuple[NewSizes, ...] = ()
        with _live_lock:
            _live.add(self)

    def __call__(self, values: tuple[Any, ...]) -> Any:
        scopes = open_scopes()
        if scopes and (here := self.scoped()) is not self:
            return here(values)
        quick = not scopes or only_compilers()
        if quick and (self._selects or scopes):
            hit = self._selected(values)
            if hit is not None:
                return self._run(hit, self._arguments(values), values)
        if not _KNOWN_CLASSES.issuperset(map(type, values)):
            values = self._with_constants(values)
        for read in self.readers:
            known = read(values) if quick else None
            if known is not None:
                hit = self.hits.table.get(known[0])
                if hit is not None and (hit.fresh is None or hit.fresh()):
                    return self._run(hit, known[1], values)
        renewed = self._renewed(values) if self.renewals and quick else None
        if renewed is not None:
            return self._run(renewed, [t._data for t in values], values)
        dynamic, static = self.signature.split(values)
        if open_scopes() and dispatch.recorder() is not None:  # the recorder is notified of each operation
            return self._called(dynamic, static)
        if in_open_trace():
            # Part of a trace with symbolic sizes: questions about them belong to that trace.
            return self._called(dynamic, static)
        leaves, treedef, constants = self.flattened(dynamic)
        found = self.find(static, leaves, treedef, constants)
        form, sizes = found.form, found.sizes
        if form.writes:
            return self._written(form, found, leaves, dynamic, static)
        effects = has_effects(form.program)
        if effects and ambient() is not None:
            return self._called(dynamic, static)  # effects belong to what is being recorded
        if found.outer or found.captured:
            try:
                return form.result(_outputs(form, found))
            except Exception as error:
                other = self._instead(error)
            return other(values)
        fresh = same_data(self.slots) if self.slots else None
        if effects:
            fresh = partial(_outside, fresh)
        made = form.ready(sizes)  # type: ignore[arg-type]
        hit = form.hit(made, tuple([leaf.spec for leaf in found.leaves]), fresh)
        if found.around.plain:
            self._remember(values, leaves, treedef, form, hit)
        given = form.donation.leaves if form.donation else ()
        return self._run(hit, [t if i in given else t._data for i, t in enumerate(found.leaves)], values)

    def _written(self, form: Variant, found: Found, leaves: list[Any], dynamic: Any, static: tuple[Any, ...]) -> Any:
        """A call of a function that writes to arguments, after which the caller's arrays have their new elements."""
        if overlap(leaves):
            return self._called(dynamic, static)
        if found.outer or found.captured or not isinstance(self.scope, nullcontext):
            written = form.result(_outputs(form, found))
        else:
            hit = form.hit(form.ready(found.sizes), tuple([leaf.spec for leaf in found.leaves]), None)  # type: ignore[arg-type]
            given = form.donation.leaves if form.donation else ()
            written = hit.finish(
                hit.run(hit.values, *[t if i in given else t._data for i, t in enumerate(found.leaves)])
            )
        return written.handed_over(leaves)

    def scoped(self) -> Compiled:
        """This function for the compiler of the enclosing scope, unless ``backend=`` names one."""
        compiler = scoped_compiler()
        if compiler is None or self.compiler is not None or self.placement is not None or self.runtime.deterministic:
            return self
        with self.lock:
            found = self.by.get(compiler)
            if found is None:
                with self.runtime:
                    found = self.by[compiler] = Compiled(self.f, *self.options, compiler)
        return found

    def _called(self, dynamic: Any, static: tuple[Any, ...]) -> Any:
        """Call the function itself, so that its operations become part of the enclosing trace or recording."""
        return self.signature.apply(self.f, dynamic, static)

    def _selected(self, values: tuple[Any, ...]) -> ProgramEntry | None:
        """The entry of a call with static or donated arguments in addition to tensors, or None."""
        try:
            hit = self.hits.table.get(fast_key(self.signature, values))
        except TypeError:  # a static argument without a hash
            return None
        return hit if hit is not None and (hit.fresh is None or hit.fresh()) else None

    def _arguments(self, values: tuple[Any, ...]) -> list[Any]:
        static, donated = self.signature.static_names, self.signature.donated
        named = zip(self.signature.names or (), values, strict=True)
        return [v if n in donated else v._data for n, v in named if n not in static]

    def _run(self, hit: ProgramEntry, raws: Iterable[Any], values: tuple[Any, ...]) -> Any:
        try:
            outs = hit.run(hit.values, *raws)
        except Exception as error:
            hit.failed(error)
            other = self._instead(error)
        else:
            return hit.finish(outs)
        return other(values)

    def _instead(self, error: BaseException) -> Compiled:
        """This function traced in the scope that handles such an error; raises the error if there is none."""
        recourse = fallback_of(error)
        if recourse is None or self.signature.donated or not isinstance(self.scope, nullcontext):
            raise error
        with self.lock:
            other = self.others.get(recourse)
            if other is None:
                with self.runtime:
                    other = self.others[recourse] = Compiled(
                        self.f, *self.options, self.compiler, recourse.scope(error)
                    )
        return other

    def _renewed(self, values: tuple[Any, ...]) -> ProgramEntry | None:
        """The entry of a call of which only the sizes are new, or None."""
        if in_open_trace():
            return None
        for new in self.renewals:
            hit = new(values)
            if hit is not None and self.programs.get(new.number) is new.form:
                self._keep(hit.key[1:], hit)
                return hit
        return None

    def _with_constants(self, values: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments; those that are neither arrays, numbers nor containers become constants of the program."""
        names = self.signature.names
        if names is None:
            return values
        static = self.signature.static_names
        return tuple(
            [
                v if v.__class__ in _KNOWN_CLASSES or n in static or not is_foreign(v) else self._constant(v, n)
                for n, v in zip(names, values, strict=True)
            ]
        )

    def flattened(self, dynamic: Any) -> tuple[list[Any], TreeDef, list[Slot]]:
        """Flatten dynamic arguments.

        Args:
            dynamic: the arguments, a tree.

        Returns:
            The leaves, their structure, and the data that the function may read from constants among the arguments.

        Raises:
            ArgumentError: an argument is neither an array, a number, a container nor hashable.
        """
        leaves, treedef = flatten(dynamic)
        if any(map(is_foreign, leaves)):
            labels = map(self.signature.label, treedef.paths())
            given = iter([self._constant(x, n) if is_foreign(x) else x for x, n in zip(leaves, labels, strict=True)])
            # One by one: unflattening an argument that is a constant already would unwrap it.
            parts = [
                part if part.__class__ is Constant else unflatten(child, [next(given) for _ in range(child.size)])
                for part, child in zip(dynamic, treedef.children, strict=True)
            ]
            leaves, treedef = flatten(tuple(parts))
        constants = [part.aux for part in treedef.parts() if part.kind is Constant]
        return leaves, treedef, [slot for c in constants for slot in slots_in(type(c.value).__name__, c.value)]

    def _constant(self, value: Any, label: str) -> Constant:
        found = Constant(value)
        if not found.hashable:
            raise ArgumentError(
                f"argument {label} of {self.title} is a {type(value).__name__}, neither an array nor a number"
                f"{here()}, and cannot be a constant of the program either, since it has no hash; pass a tuple or a "
                "frozenset, or register its class with register_dataclass or register_node",
                argument=label,
            )
        return found

    def find(
        self, static: tuple[Any, ...], leaves: list[Any], treedef: TreeDef, constants: Sequence[Slot] = ()
    ) -> Found:
        """Find the form for arguments; trace it if there is none.

        Args:
            static: names and values of the static arguments.
            leaves: leaves of the dynamic arguments.
            treedef: structure of the dynamic arguments.
            constants: data that the function may read from constants among the arguments.

        Returns:
            The form, its sizes, and the values that it takes.
        """
        ready: list[Any] = []
        kinds: list[Any] = []
        outer = False
        for leaf in leaves:
            cls = leaf.__class__
            if cls in SCALARS:
                kinds.append(cls)
                ready.append(Primitive.adopt(leaf))
                continue
            if cls is not Tensor:
                if isinstance(leaf, Array):
                    outer = outer or leaf.level > 0
                elif isinstance(leaf, HOST_ARRAYS):
                    leaf = Primitive.adopt(leaf)
                else:
                    leaf = asarray(leaf)  # a size
            spec = leaf.spec
            kinds.append((spec.ndim, spec.dtype, spec.place))
            ready.append(leaf)
        far = _accelerator(kinds)
        if far is not None:  # numbers follow the arrays, as they do from kernel to kernel
            ready = [
                Primitive.adopt(leaf, device=far) if kind in SCALARS else x
                for leaf, x, kind in zip(leaves, ready, kinds, strict=True)
            ]
        if self.slots is None:
            self.slots = slots_of(self.f)
        slots = (*self.slots, *constants)
        around = snapshot(slots) if slots else _NOTHING
        if constants:
            around = around._replace(plain=False)
        # A deterministic function calls deterministic forms of other functions.
        inside = (outer or bool(around.outer)) and in_trace()
        exact = self.runtime.deterministic or (inside and current_runtime().deterministic)
        key = Kind(treedef, tuple(kinds), self._static_key(static), scoped_device(), around.key, exact)
        specs = [leaf.spec for leaf in ready]
        if in_open_trace():
            form, captured = self._traced(key, ready, static, around, specs, None, within=True)
            return Found(form, ready, open_sizes(form.program), outer, captured, around)
        found = self._candidate(key, specs)
        if found is not None:
            form, sizes = found
            return Found(form, ready, sizes, outer, tuple([around.outer[i] for i in form.outer]), around)
        form, captured = self._trace(key, ready, static, around, specs)
        fitting = form.sizes(specs)
        assert fitting is not None, "a program fits the sizes that it was traced with"
        return Found(form, ready, fitting, outer, captured, around)

    def _candidate(self, key: Kind, specs: list[Spec]) -> tuple[Variant, tuple[int, ...]] | None:
        """The first form of this kind whose guards hold, and its sizes."""
        for number in tuple(self.candidates.get(key, ())):
            form = self.programs.table.get(number)
            if form is None:
                with self.lock, suppress(ValueError):
                    self.candidates[key].remove(number)
                continue
            sizes = form.sizes(specs)
            if sizes is not None:
                self.programs.get(number)  # marks it as recently used
                return form, sizes
        return None

    def _trace(
        self, key: Kind, ready: list[Any], static: tuple[Any, ...], around: Snapshot, specs: list[Spec]
    ) -> tuple[Variant, tuple[Any, ...]]:
        """Trace with symbolic sizes, or with concrete sizes if that fails."""
        cause = self._difference(key, specs, static)
        open_specs, examples = opened(specs)
        if key not in self.closed:
            try:
                found = self._traced(key, ready, static, around, open_specs, examples or None)
            except Exception as error:
                why = str(error).partition("\n")[0]
                if not examples or (self.runtime.strict_sizes and isinstance(error, TracingError)):
                    self.retraces.add(cause)
                    raise
                open_ = f"{type(error).__name__}: {why}"
            else:
                self.retraces.add(cause)
                self.last = key, specs, static
                return self._kept(key, found, around)
        else:
            open_ = self.closed[key]
        # With concrete sizes, a mistake of the user raises an error that shows numbers.
        found = self._traced(key, ready, static, around, specs, None)
        self.last = key, specs, static
        if len(self.closed) >= 4 * self.programs.bound:
            self.closed.clear()
        self.closed[key] = open_
        closed = f"its sizes cannot be symbolic ({open_})"
        self.retraces.add(Cause(f"{cause.text}; {closed}", closed, NO_QUESTIONS))
        return self._kept(key, found, around)

    def _kept(
        self, key: Kind, found: tuple[Variant, tuple[Any, ...]], around: Snapshot
    ) -> tuple[Variant, tuple[Any, ...]]:
        if -1 in found[0].outer:
            self.retraces.extend(
                "; not kept, because it uses a differentiated or traced value that is neither an "
                "argument nor a variable of the function: pass it as an argument"
            )
            return found
        number = self._number()
        with self.lock:
            if len(self.candidates) >= 4 * self.programs.bound:
                self.candidates = {k: n for k, n in self.candidates.items() if any(i in self.programs.table for i in n)}
            self.programs.put(number, found[0])
            self.candidates.setdefault(key, []).append(number)
        return found

    def _traced(
        self,
        key: Kind,
        ready: list[Any],
        static: tuple[Any, ...],
        around: Snapshot,
        specs: list[Spec],
        examples: dict[str, int] | None,
        within: bool = False,
    ) -> tuple[Variant, tuple[Any, ...]]:
        runtime = self.runtime.with_deterministic(key.exact)
        label = self.signature.label
        inputs = [
            (spec, label(path), kind if isinstance(kind, type) else None)
            for spec, kind, path in zip(specs, key.leaves, key.tree.paths(), strict=True)
        ]

        def body(values: list[TracedTensor]) -> Any:
            def call(values: Sequence[Any]) -> Any:
                return self.signature.apply(self.f, unflatten(key.tree, values), static)

            return with_writes(values, key.leaves, call)

        with runtime, self.scope, Untouched(self.title, self.slots or ()):  # functions inside inherit the options
            recorded = record(body, inputs, examples, strict=runtime.strict_sizes, within=within)
        if not runtime.deterministic:
            recorded = recorded._replace(program=with_conditions(recorded.program))
        where_from = {identity(v): i for i, v in enumerate(around.outer)}
        places = tuple([where_from.get(identity(v), -1) for v in recorded.captured])
        optimise = partial(runtime.optimise, placement=self.placement)
        given = Donation(self.title, self.signature.given_leaves(key.tree)) if self.signature.donated else None
        return Variant(recorded, optimise, specs, places, around.kept, given), recorded.captured

    def _remember(
        self,
        values: tuple[Any, ...],
        leaves: list[Any],
        treedef: TreeDef,
        form: Variant,
        hit: ProgramEntry,
    ) -> None:
        """Let later calls with arguments of this kind and these sizes take the fast path."""
        if not only_compilers() or self.signature.names is None:
            return
        key = fast_key(self.signature, values)
        if key is not None:
            self._keep(key, hit)
            if not self.signature.donated and not self.signature.static_names:
                self._renew(form, hit)
            return
        kinds = tuple([leaf.__class__ for leaf in leaves])
        near = all(spec.place.on_host for spec in form.program.inputs)
        if all(kind is Tensor or (near and kind in _HOST_CLASSES) for kind in kinds) and not self.signature.donated:
            self._remember_tree(values, treedef, kinds, hit)

    def _keep(self, key: tuple[Any, ...], hit: ProgramEntry) -> None:
        self.hits.put(key, hit)
        if not self.signature.donated and not self.signature.static_names:
            self.entry.follow(hit)

    def _renew(self, form: Variant, hit: ProgramEntry) -> None:
        """Let later calls with arguments of this kind take a fast path for any sizes."""
        kept = [new for new in self.renewals if new.form is not form][1 - MAX_TREE_READERS :]
        made = [NewSizes(n, form, hit.key[1:], hit.fresh) for n, f in list(self.programs.table.items()) if f is form]
        self.renewals = (*kept, *made)

    def _remember_tree(
        self, values: tuple[Any, ...], treedef: TreeDef, kinds: tuple[type, ...], hit: ProgramEntry
    ) -> None:
        for read in self.readers:
            found = read(values)
            if found is not None:
                self.hits.put(found[0], hit)
                return
        if len(self.readers) >= MAX_TREE_READERS:
            return
        places = iter(range(len(values)))
        order = tuple([None if n in self.signature.static_names else next(places) for n in self.signature.names or ()])
        borrows = self.compiler is not None and self.compiler.borrows
        read = reader(treedef, kinds, order, borrows=borrows)
        found = read(values)
        if found is not None:
            self.readers.append(read)
            self.hits.put(found[0], hit)

    def _static_key(self, static: tuple[Any, ...]) -> tuple[Any, ...]:
        keys = []
        for name, value in static:
            key = key_of(value)
            try:
                hash(key)
            except TypeError:
                raise ArgumentError(
                    f"static argument {name!r} of {self.title} must be hashable, got the {type(value).__name__} "
                    f"{value!r:.80}{here()}; pass arrays as ordinary arguments, and lists as tuples",
                    argument=name,
                ) from None
            keys.append((name, key))
        return tuple(keys)

    def _difference(self, key: Kind, specs: list[Spec], static: tuple[Any, ...]) -> Cause:
        """How arguments differ from those of the previous trace."""
        if self.last is None:
            return FIRST
        last, specs0, static0 = self.last
        if key != last:
            read = [slot.name for slot in self.slots or ()]
            return key.difference(last, specs, specs0, self.signature.label, read, static, static0)
        if key in self.closed:
            pairs = zip(key.tree.paths(), specs, specs0, strict=True)
            now = next(((p, a, b) for p, a, b in pairs if a is not b), None)
            if now is None:
                return DROPPED
            label = self.signature.label(now[0])
            return Cause(f"{label}: {now[1]!r} instead of {now[2]!r}", f"another size of {label}", NO_QUESTIONS)
        labels = [self.signature.label(path) for path in key.tree.paths()]
        for number in reversed(self.candidates.get(key, ())):
            form = self.programs.table.get(number)
            guard = None if form is None else form.failed(specs)
            if guard is not None:
                return guard_failure(guard, labels, specs)
        return DROPPED

    def info(self) -> CacheInfo:
        """Counts and reasons of traces."""
        with self.lock:
            reasons = tuple(self.retraces.reasons)
            return CacheInfo(self.retraces.count, len(self.programs), self.programs.bound, len(self.hits), reasons)

    def clear(self) -> None:
        """Drop all programs."""
        self.programs.clear()
        self.candidates.clear()
        self.closed.clear()
        self.hits.clear()
        self.renewals = ()
        self.readers.clear()
        self.others.clear()
        self.by.clear()
        self.last = None


def _accelerator(kinds: list[Any]) -> ComputeDevice | None:
    """The accelerator that all arrays are on, if there are numbers among the arguments; else None."""
    if SCALARS.isdisjoint(kinds):
        return None
    devices = {kind[2].memory_space.default_device for kind in kinds if kind.__class__ is tuple}
    return None if len(devices) != 1 or HOST.device in devices else devices.pop()


def _outside(fresh: Callable[[], bool] | None) -> bool:
    """Whether nothing is being recorded and the data that the function reads are unchanged."""
    return ambient() is None and (fresh is None or fresh())


def open_scopes() -> bool:
    """Whether any thread is inside a device scope, so that calls must look up the device."""
    return bool(state.open_scopes)


def in_trace() -> bool:
    """Whether the calling thread is tracing."""
    return decisions() is not None


def in_open_trace() -> bool:
    """Whether the calling thread traces with sizes that are symbolic or depend on data.

    Returns:
        True inside such a trace.
    """
    going_on = decisions()
    return going_on is not None and bool(going_on.examples or going_on.unknown)


def _outputs(form: Variant, found: Found) -> Any:
    """The outputs of a program on values of any level."""
    if definitions(form.program):
        return form.program.run(*found.leaves, *found.captured)
    return call(*found.leaves, *found.captured, program=form.program, sizes=found.sizes)
