"""The registry: which kernels, derivative rules and lowerings exist for a primitive, and who brings them.

One object holds plain tables. Core parts and guests fill them by the same calls; guests are found through the
entry points ``tenferro.extensions`` when a primitive of theirs first misses something.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Final

from tenferro_tensor import _entry_points
from tenferro_tensor._primitive import Primitive
from tenferro_tensor_core import RegistryError

KernelMaker = Callable[..., Callable[..., Any]]
"""``make(ins, outs, **params)``: a callable on raw arrays, specialised for concrete operand and output specs."""

EXTENSIONS: Final = "tenferro.extensions"


class Registry:
    """Tables of kernels, rules and lowerings by primitive.

    Each registration says who wins only by being the only one: a second, different entry for a key is a
    `RegistryError`, unless ``replace=True``.
    """

    def __init__(self) -> None:
        self._tables: dict[str, dict[Any, Any]] = {"kernel": {}, "rule": {}, "lowering": {}, "pruning": {}}
        self._loaded: set[str] = set()
        self._lock = threading.RLock()

    def kernel(self, primitive: Primitive, backend: str, make: KernelMaker, *, replace: bool = False) -> None:
        """Register the kernel of a primitive for a backend name.

        Args:
            primitive: the primitive.
            backend: backend name, as in ``"cpu"`` or ``"cuda"``.
            make: called as ``make(ins, outs, **params)`` with concrete specs; returns a callable on raw arrays.
            replace: take the place of an earlier entry.
        """
        self._put("kernel", (primitive, backend), make, replace)

    def rule(self, primitive: Primitive, record: Any, *, replace: bool = False) -> None:
        """Register the derivative rule of a primitive, one of the records of ``tenferro_runtime.extension``."""
        self._put("rule", primitive, record, replace)

    def lowering(self, primitive: Primitive, lower: Callable[..., Any], *, replace: bool = False) -> None:
        """Register the StableHLO lowering of a primitive, read by ``tenferro_xla``."""
        self._put("lowering", primitive, lower, replace)

    def pruning(self, primitive: Primitive, prune: Callable[..., Any], *, replace: bool = False) -> None:
        """Register what replaces an op of which only some outputs are used; ``prune(op, used)`` -> op or ``None``."""
        self._put("pruning", primitive, prune, replace)

    def find(self, table: str, primitive: Primitive, key: Any = None) -> Any | None:
        """The entry for a primitive, loading the extension that brings it if there is one; else ``None``.

        A kernel registered for the backend ``"*"`` serves every backend that has none of its own.
        """
        found = self._look_up(table, primitive, key)
        if found is None and primitive.extension is not None and primitive.extension not in self._loaded:
            self.load_extension(primitive.extension)
            found = self._look_up(table, primitive, key)
        return found

    def _look_up(self, table: str, primitive: Primitive, key: Any) -> Any | None:
        entries = self._tables[table]
        if key is None:
            return entries.get(primitive)
        found = entries.get((primitive, key))
        return entries.get((primitive, "*")) if found is None else found

    def backends_of(self, primitive: Primitive) -> tuple[str, ...]:
        """Names of the backends that have a kernel of the primitive registered now."""
        return tuple(sorted(b for p, b in self._tables["kernel"] if p is primitive))

    def load_extension(self, name: str) -> None:
        """Run the registration function of an installed extension, once.

        Raises:
            RegistryError: no installed distribution offers the extension, or it fails to load.
        """
        with self._lock:
            if name in self._loaded:
                return
            offered = _entry_points.installed(EXTENSIONS)
            if name not in offered:
                raise RegistryError(
                    f"no installed distribution offers the extension {name!r}; installed: {sorted(offered) or 'none'}; "
                    f"install the distribution that declares it under [project.entry-points.{EXTENSIONS!r}]",
                    extension=name,
                )
            register = _entry_points.load(EXTENSIONS, name)
            self._loaded.add(name)
            try:
                register(self)
            except BaseException:
                self._loaded.discard(name)
                raise

    def extensions(self) -> dict[str, bool]:
        """Installed extensions by name, and whether each has been loaded."""
        return {name: name in self._loaded for name in sorted(_entry_points.installed(EXTENSIONS))}

    def _put(self, table: str, key: Any, entry: Any, replace: bool) -> None:
        with self._lock:
            entries = self._tables[table]
            if not replace and entries.setdefault(key, entry) is not entry:
                raise RegistryError(
                    f"a {table} for {key!r} is registered already; pass replace=True to take its place", key=repr(key)
                )
            entries[key] = entry


REGISTRY: Final = Registry()
"""The registry of the process."""
