"""The registry of kernels, derivative rules and lowerings of primitives, and of their owners.

One object holds plain tables. The core and guests fill them by the same calls. Guests are found through the entry
points ``tenferro.extensions`` when an entry for one of their primitives is first missing.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tenferro_tensor import entry_points
from tenferro_tensor._owners import calling, in_house
from tenferro_tensor._primitive import Primitive
from tenferro_tensor._registration import Registration
from tenferro_tensor.entry_points import EXTENSIONS
from tenferro_tensor.expansions import Expansion
from tenferro_tensor.hooks import require_hook
from tenferro_tensor_core import DimLike, RegistryError, TenferroError
from tenferro_tensor_core.forks import importing, new_lock

if TYPE_CHECKING:
    pass

KernelMaker = Callable[..., Callable[..., Any]]
"""``make(ins, outs, **params)``: a callable on raw arrays, specialised for concrete operand and output specs.

If the attribute ``blas`` of a maker is true, its kernels spend their time in BLAS or LAPACK, and a backend may limit
their threads. Two more attributes let programs with symbolic sizes run without new kernels for each size:

- ``any_size = True``: for symbolic specs, the maker returns a kernel for all sizes; it never looks at extents.
- ``sizes = f``: for symbolic specs, the maker returns a kernel that takes sizes as trailing arguments, and
  ``f(ins, outs, **params)`` returns them as a tuple of extents and tuples of extents. If ``f`` returns ``None``,
  kernels are specialised to concrete sizes, as for a maker without these attributes.

A maker with ``large = g`` creates faster kernels with the same bits for concrete sizes; ``g(ins, outs, **params)`` is a
pair of sizes: a program uses such kernels if the first exceeds the second."""


class Codec(NamedTuple):
    """Conversion of metadata to plain data and back."""

    encode: Callable[[dict[str, Any]], dict[str, Any]]
    decode: Callable[[dict[str, Any]], dict[str, Any]]


class Pruning(NamedTuple):
    """The replacement of an op with unused outputs, and whether the remaining outputs keep their bits."""

    prune: Callable[..., Any]
    keeps_bits: bool


class Cost(NamedTuple):
    """Cost of one application of a primitive; sizes may be symbolic.

    Attributes:
        flops: floating-point operations, with complex ones counted as their real ones; ``None`` if unknown.
        bytes: bytes read and written; ``None`` for those of the operands and results.
        workspace: bytes allocated temporarily, besides the outputs.
    """

    flops: DimLike | None
    bytes: DimLike | None = None
    workspace: DimLike = 0


class Registry:
    """Tables of kernels, rules and lowerings by primitive.

    A second, different entry for a key is a `RegistryError`, unless ``replace=True``. A replacement is logged, appears
    in `replacements` and in the output of ``explain``, and is undone by its `Registration`. Eager calls and compiled
    functions follow at once; a `Program` that has run before keeps the kernels that it was prepared with.
    """

    def __init__(self) -> None:
        self._tables: dict[str, dict[Any, Any]] = {
            name: {}
            for name in (
                "kernel",
                "rule",
                "lowering",
                "pruning",
                "codec",
                "cost",
                "expansion",
                "loops",
                "batching",
                "taylor",
                "sparsity",
            )
        }
        self._live: dict[tuple[str, Any], list[Registration]] = {}
        self._loaded: set[str] = set()
        self._registering: list[str] = []
        self._registrant: int | None = None
        self._guest: str | None = None
        self._guest_words = ""
        self._journal: list[Registration] = []
        self.count: int = 0
        """Number of changes so far: part of the keys of caches that depend on several entries."""
        self.changed: list[Callable[[], None]] = []
        """Called after an entry was replaced or undone, to invalidate everything derived from the old one."""
        # Two locks: one thread may import an extension, filling tables, while another waits to load it.
        self._lock = new_lock()
        self._loading = new_lock()

    def kernel(self, primitive: Primitive, backend: str, make: KernelMaker, *, replace: bool = False) -> Registration:
        """Register the kernel of a primitive for a backend.

        Args:
            primitive: the primitive.
            backend: backend name, as in ``"cpu"`` or ``"cuda"``.
            make: called as ``make(ins, outs, **params)`` with concrete specs; returns a callable on raw arrays.
            replace: replace an earlier entry.

        Returns:
            The registration, which can be undone.
        """
        return self._put("kernel", primitive, backend, make, replace)

    def rule(self, primitive: Primitive, record: Any, *, replace: bool = False) -> Registration:
        """Register the derivative rule of a primitive.

        Args:
            primitive: the primitive.
            record: a record of ``tenferro_runtime.extension``.
            replace: replace an earlier entry.

        Returns:
            The registration, which can be undone.
        """
        return self._put("rule", primitive, None, record, replace)

    def taylor(self, primitive: Primitive, rule: Callable[..., Any], *, replace: bool = False) -> Registration:
        """Register how a primitive acts on power series, instead of the recurrence derived from its derivative rule.

        Args:
            primitive: the primitive.
            rule: ``rule(*operands, **metadata)``, a generator that yields the coefficients of the output (tuples of
                them for several outputs), one order after the other, endlessly. ``x[k]`` is coefficient ``x^(k)(0) /
                k!`` of an operand; coefficient k of the output may use those up to k. ``None`` is zero, for operands
                and outputs.
            replace: replace an earlier entry.

        Returns:
            The registration, which can be undone.
        """
        return self._put("taylor", primitive, None, rule, replace)

    def lowering(self, primitive: Primitive, lower: Callable[..., Any], *, replace: bool = False) -> Registration:
        """Register the StableHLO lowering of a primitive, used by ``tenferro_xla``.

        Args:
            primitive: the primitive.
            lower: ``lower(emitter, operands, outs, **metadata)``.
            replace: replace an earlier entry.

        Returns:
            The registration, which can be undone.
        """
        return self._put("lowering", primitive, None, lower, replace)

    def loops(self, primitive: Primitive, rule: Callable[..., Any], *, replace: bool = False) -> Registration:
        """Register how a primitive becomes loop nests when a whole program becomes one native function.

        There, primitives without such a rule and without an expansion are calls of their kernels.

        Args:
            primitive: the primitive.
            rule: ``rule(step)``, with a `tenferro_runtime.lowering.Step`, emits statements and returns the results.
            replace: replace an earlier entry.

        Returns:
            The registration, which can be undone.
        """
        return self._put("loops", primitive, None, rule, replace)

    def batching(self, primitive: Primitive, rule: Callable[..., Any], *, replace: bool = False) -> Registration:
        """Register how a primitive is applied to all lanes of a batch at once, for ``vmap``.

        Element-wise primitives need no rule. Without a rule, the expansion of a primitive is used, unless the primitive
        has derivative rules; else it is applied to the lanes one after the other.

        Args:
            primitive: the primitive.
            rule: ``rule(size, values, batched, **metadata)`` with the number of lanes, the operands, and flags for
                those with a leading lane axis; returns the output, or the tuple of outputs, with that axis. See
                `tenferro_runtime.batching` for rules of common kinds.
            replace: replace an earlier entry.

        Returns:
            The registration, which can be undone.
        """
        return self._put("batching", primitive, None, rule, replace)

    def sparsity(self, primitive: Primitive, rule: Callable[..., Any], *, replace: bool = False) -> Registration:
        """Register which elements of its operands each output of a primitive depends on, for sparse derivatives.

        Without such a rule, an element-wise primitive depends on the elements at the same indices, a primitive with an
        expansion on those of the expansion, and any other on all elements of each operand.

        Args:
            primitive: the primitive.
            rule: ``rule(step)``, with a `tenferro_runtime.extension.SparsityStep`, returns for each output and each
                operand a tuple of `IndexMap`, or ``None`` where the derivative is zero everywhere.
            replace: replace an earlier entry.

        Returns:
            The registration, which can be undone.
        """
        return self._put("sparsity", primitive, None, rule, replace)

    def pruning(
        self, primitive: Primitive, prune: Callable[..., Any], *, keeps_bits: bool = False, replace: bool = False
    ) -> Registration:
        """Register the replacement of an op of which only some outputs are used.

        Args:
            primitive: the primitive.
            prune: ``prune(op, used)``, with a flag for each output, returns ``(new_op, outputs)``, where ``outputs[i]``
                is the index of old output ``i`` among the new ones, or ``None`` if it is gone; or returns ``None`` to
                keep the op.
            keeps_bits: whether the remaining outputs have the same bits as before; deterministic programs are pruned
                only then.
            replace: replace an earlier entry.

        Returns:
            The registration, which can be undone.
        """
        return self._put("pruning", primitive, None, Pruning(prune, keeps_bits), replace)

    def codec(
        self,
        primitive: Primitive,
        encode: Callable[[dict[str, Any]], dict[str, Any]],
        decode: Callable[[dict[str, Any]], dict[str, Any]],
        *,
        replace: bool = False,
    ) -> Registration:
        """Register how the metadata of a primitive are stored in program files, if they are more than plain data.

        Args:
            primitive: the primitive.
            encode: maps the metadata to a dictionary of numbers, strings, tuples, dtypes, sizes, specs and programs.
            decode: maps such a dictionary back; raises `ValueError` if the contents of the file are invalid.
            replace: replace an earlier entry.

        Returns:
            The registration, which can be undone.
        """
        return self._put("codec", primitive, None, Codec(encode, decode), replace)

    def cost(self, primitive: Primitive, model: Callable[..., Any], *, replace: bool = False) -> Registration:
        """Register the cost model of a primitive.

        Args:
            primitive: the primitive.
            model: ``model(ins, outs, **params)`` returns a `Cost`; sizes may be symbolic.
            replace: replace an earlier entry.

        Returns:
            The registration, which can be undone.
        """
        return self._put("cost", primitive, None, model, replace)

    def expansion(
        self, primitive: Primitive, f: Callable[..., Any], *, keep: bool = False, replace: bool = False
    ) -> Registration:
        """Register the expansion of a primitive in terms of other operations.

        Programs run these operations instead of the primitive, so that they fuse with their neighbours. By default, the
        expansion is also the kernel on every backend, the StableHLO lowering, and the definition of derivatives.
        Deterministic programs keep the primitive, and thereby the bits of its eager calls.

        Args:
            primitive: a primitive of an operation family.
            f: ``f(*operands, **metadata)``, written with traceable array functions; returns what the inference of the
                primitive says, a tuple if that is one.
            keep: keep the primitive in programs if a kernel is registered for their backend.
            replace: replace an earlier entry.

        Returns:
            The registration, which can be undone.

        Raises:
            RegistryError: `f` does not take these arguments, or the primitive is a core primitive, in which expansions
                are written.
        """
        if primitive.in_house and primitive.family is None:
            raise RegistryError(
                f"{primitive.name} is a core primitive, in which expansions are written, and has none itself; register "
                "a kernel for it, or make a primitive of your own",
                primitive=primitive.name,
            )
        return self._put("expansion", primitive, None, Expansion(primitive, f, keep), replace)

    def find(self, table: str, primitive: Primitive, key: Any = None) -> Any | None:
        """Return the entry for a primitive, after loading the extension that provides it if necessary.

        A kernel registered for the backend ``"*"`` serves every backend without its own, and the expansion of a
        primitive replaces a missing kernel.

        Args:
            table: name of the table, as in ``"kernel"``.
            primitive: the primitive.
            key: backend name in the table of kernels, else None.

        Returns:
            The entry, or None.
        """
        found = self._look_up(table, primitive, key)
        if found is None and primitive.extension is not None:
            # If kernels are registered already, and the extension is not installed, missing expansions and other
            # optional entries are not an error.
            optional = table in ("expansion", "loops", "batching", "sparsity", "taylor") and self.backends_of(primitive)
            spared = optional and primitive.extension not in entry_points.installed(EXTENSIONS)
            if primitive.extension not in self._loaded and not spared:
                self.load_extension(primitive.extension)
            # Also if it is loaded: another thread may have done so since the first look-up.
            found = self._look_up(table, primitive, key)
        return found

    def _look_up(self, table: str, primitive: Primitive, key: Any) -> Any | None:
        entries = self._tables[table]
        if key is None:
            return entries.get(primitive)
        found = entries.get((primitive, key))
        if found is None:
            found = entries.get((primitive, "*"))
        return self._tables["expansion"].get(primitive) if found is None else found

    def backends_of(self, primitive: Primitive) -> tuple[str, ...]:
        """Names of the backends for which a kernel of the primitive is registered now.

        Args:
            primitive: the primitive.

        Returns:
            The sorted names.
        """
        return tuple(sorted(b for p, b in self._tables["kernel"] if p is primitive))

    def load_extension(self, name: str) -> None:
        """Run the registration function of an installed extension, once.

        Args:
            name: name of the extension.

        Raises:
            RegistryError: no installed distribution offers the extension, several do, or it fails to load; its
                registrations are then undone.
        """
        with self._loading:
            if name in self._loaded or name in self._registering:
                return
            own = entry_points.own(EXTENSIONS, name)
            offered = {} if own else entry_points.installed(EXTENSIONS)
            if own is None and name not in offered:
                instead = entry_points.usurped(EXTENSIONS, name)
                raise RegistryError(
                    f"no installed distribution offers the extension {name!r}; installed: {sorted(offered) or 'none'}; "
                    f"install the distribution that declares it under [project.entry-points.{EXTENSIONS!r}]"
                    f"{f' ({instead})' if instead else ''}",
                    extension=name,
                )
            # Naming the owner of an entry point reads a file: not for each registration.
            register, words = own or (entry_points.load(EXTENSIONS, name), entry_points.owner(offered[name]))
            start, outer, around = len(self._journal), self._registrant, (self._guest, self._guest_words)
            self._registering.append(name)
            self._registrant = threading.get_ident()
            self._guest, self._guest_words = register.__module__ if own else offered[name].module, words
            try:
                with importing():
                    register(self)
                # Last: other threads that see the name rely on its entries.
                self._loaded.add(name)
            except BaseException as cause:  # a guest that calls sys.exit must not end the program
                self._undo(start)
                if isinstance(cause, (TenferroError, KeyboardInterrupt)):
                    raise
                raise RegistryError(
                    f"the extension {name!r} of {words} cannot be registered: "
                    f"{type(cause).__name__}: {cause}; reinstall or remove that distribution",
                    extension=name,
                ) from cause
            finally:
                del self._journal[start:]
                self._registering.pop()
                self._registrant, (self._guest, self._guest_words) = outer, around

    def _undo(self, start: int) -> None:
        """Undo the registrations of an extension that failed, so that it can be tried again."""
        for made in reversed(self._journal[start:]):
            made.undo()

    def extensions(self) -> dict[str, bool]:
        """Names of the installed extensions, and whether each has been loaded."""
        return {name: name in self._loaded for name in sorted(entry_points.installed(EXTENSIONS))}

    def registration(self, table: str, primitive: Primitive, key: Any = None) -> Registration | None:
        """The registration of the entry that `find` would return, without loading anything.

        Args:
            table: name of the table, as in ``"kernel"``.
            primitive: the primitive.
            key: backend name in the table of kernels, else None.

        Returns:
            The registration, or None.
        """
        for wanted in [primitive] if key is None else [(primitive, key), (primitive, "*")]:
            made = self._live.get((table, wanted))
            if made and wanted in self._tables[table]:
                return made[-1]
        return None

    def is_replaced(self, primitive: Primitive, backend: str) -> bool:
        """Whether the kernel for a backend replaced another one; code written for the original must then not be used.

        Args:
            primitive: the primitive.
            backend: backend name.

        Returns:
            True if it did.
        """
        made = self.registration("kernel", primitive, backend)
        return made is not None and made.replaced is not None

    def replacements(self) -> tuple[Registration, ...]:
        """The valid entries that replaced others, in the order of their registration."""
        with self._lock:
            return tuple([made[-1] for made in self._live.values() if made and made[-1].replaced is not None])

    def _put(self, table: str, primitive: Primitive, backend: str | None, entry: Any, replace: bool) -> Registration:
        guest = self._guest if self._registrant == threading.get_ident() else None
        owner = calling(2, "" if guest is None else self._guest_words)
        if not owner.ours:
            for hook, function in _hooks(table, entry):
                require_hook(hook, primitive, function)
        with self._lock:
            entries, key = self._tables[table], primitive if backend is None else (primitive, backend)
            live = self._live.setdefault((table, key), [])
            if key not in entries:
                live.clear()
            before = live[-1] if live else None
            if before is not None and (before.entry is entry or (table == "expansion" and before.entry == entry)):
                return before
            if before is not None and not replace:
                raise RegistryError(
                    f"a {table} for {key!r} is registered already; pass replace=True to replace it", key=repr(key)
                )
            made = Registration(table, primitive, backend, entry, owner, before, self._take_back)
            live.append(made)
            entries[key] = entry
            # Registrations of tenferro itself, imported first by a guest, are kept even if the guest fails.
            if guest is not None and (in_house(guest) or not owner.ours):
                self._journal.append(made)
            self.count += 1
            # Plans that used the expansion become stale when an entry is added, and vice versa.
            stale = primitive in self._tables["expansion"] and any(op.entries for op in primitive.live_ops())
        if before is not None:
            _log_replacement(made, before)
        if before is not None or stale:
            self._invalidate()
        return made

    def _take_back(self, made: Registration) -> None:
        with self._lock:
            live = self._live.get((made.table, made.key), [])
            if made not in live:
                return
            live.remove(made)
            self.count += 1
            for later in live:
                if later.replaced is made:
                    later.replaced = made.replaced
            entries = self._tables[made.table]
            if live:
                entries[made.key] = live[-1].entry
            else:
                entries.pop(made.key, None)
        self._invalidate()

    def _invalidate(self) -> None:
        for forget in self.changed:
            forget()


def _hooks(table: str, entry: Any) -> list[tuple[str, Any]]:
    """The functions of an entry, by hook; `tenferro_runtime` checks rules, which are records."""
    if isinstance(entry, (Pruning, Codec)):
        return [(name, f) for name, f in entry._asdict().items() if name != "keeps_bits"]
    if isinstance(entry, Expansion):
        return [(table, entry.function)]
    return [] if table == "rule" else [(table, entry)]


def _log_replacement(made: Registration, before: Registration) -> None:
    """A guest that replaces the entry of another distribution is logged as a warning, of its own as information."""
    import logging  # deferred: rarely needed

    same = before.owner.module.partition(".")[0] == made.owner.module.partition(".")[0]
    level = logging.INFO if same else logging.WARNING
    logging.getLogger("tenferro").log(level, "%r; REGISTRY.replacements() lists such entries", made)


REGISTRY: Final = Registry()
"""The registry of the process."""
