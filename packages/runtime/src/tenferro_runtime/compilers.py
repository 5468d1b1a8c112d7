"""Compilers of whole programs, selected with ``compile(f, backend=...)``: tenferro's own and those of third parties.

A distribution declares a function ``make(device: str) -> ProgramCompiler`` as an entry point of the group
``tenferro.compilers``. ``backend="xla:cuda:0"`` calls the entry point ``xla`` with ``"cuda:0"``, and ``backend="xla"``
calls it with an empty string. An instance may also be passed as `backend`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from tenferro_tensor import entry_points
from tenferro_tensor.calls import state
from tenferro_tensor.dispatch import selecting
from tenferro_tensor.entry_points import COMPILERS
from tenferro_tensor_core import ArgumentError, BackendUnavailableError, RegistryError
from tenferro_tensor_core.forks import new_lock

if TYPE_CHECKING:
    from tenferro_runtime.ir._program import Program

__all__ = ["MAX_EXECUTABLES", "ProgramCompiler", "compiled_by", "find_compiler", "only_compilers", "scoped_compiler"]


def __dir__() -> list[str]:
    return __all__.copy()


MAX_EXECUTABLES: Final = 32
"""Number of combinations of sizes for which a program keeps an executable."""

_DEVICES: Final = ("cpu", "cuda", "rocm")
_INSTALL: Final = {"xla": "pip install tenferro-xla, or "} | dict.fromkeys(_DEVICES, "")
_MOVE: Final = ", as after x = tr.to_device(x, '{}:0')"


class ProgramCompiler(ABC):
    """Makes executables of whole programs; tenferro traces and differentiates them.

    Attributes:
        name: the name for ``compile(f, backend=...)``, and in reports.
        borrows: whether executables neither keep arguments in main memory after a call nor return their memory. Arrays
            of NumPy, which others may write to later, are then passed to them without a copy.
    """

    name: str
    borrows: bool = False

    @abstractmethod
    def executable(self, program: Program, donated: tuple[int, ...]) -> Callable[..., tuple[Any, ...]]:
        """Compile a program with concrete sizes to a function of raw arrays.

        Called once for each combination of sizes; the least recently used executables are dropped. Raw arrays are
        those of the backends at the places of the program's inputs and outputs: in main memory, NumPy arrays (NumPy
        scalars for rank 0), which must not be written to.

        Args:
            program: the program.
            donated: positions of inputs whose memory the executable may reuse, because there are no other references.

        Returns:
            A function that takes the inputs and returns the tuple of outputs.

        Raises:
            UnsupportedError: the compiler does not support a step; the text names the primitive and the user's line.
            PlacementError: the inputs are where the executable cannot read them; nothing is moved.
        """

    def __repr__(self) -> str:
        return f"<compiler {self.name}>"


_made: dict[str, ProgramCompiler] = {}
_lock = new_lock()
_open = 0
"""Number of open scopes of `compiled_by` in all threads."""
_scoped: ContextVar[ProgramCompiler | None] = ContextVar("tenferro compiler", default=None)


def find_compiler(backend: str | ProgramCompiler) -> ProgramCompiler:
    """The compiler with a given name, made on first use.

    Args:
        backend: a name such as ``"xla:cuda:0"``, or a `ProgramCompiler`, which is returned as it is.

    Returns:
        The compiler.

    Raises:
        BackendUnavailableError: no installed distribution offers it, or its device is missing; the text says what to
            install.
        RegistryError: the entry point cannot be loaded or does not return a compiler; the text names the distribution.
        ArgumentError: `backend` is neither a name nor a compiler.
    """
    if isinstance(backend, ProgramCompiler):
        return backend
    if not isinstance(backend, str) or not backend:
        raise ArgumentError(
            f"backend={backend!r:.80} is not a compiler; pass a name such as 'xla', a ProgramCompiler, or leave it out"
        )
    found = _made.get(backend)
    if found is None:
        with _lock:
            found = _made.get(backend)
            if found is None:
                found = _made[backend] = _make(backend)
    return found


def _make(backend: str) -> ProgramCompiler:
    name, _, device = backend.partition(":")
    offered = entry_points.installed(COMPILERS)
    if name not in offered:
        have = ", ".join(sorted(offered)) or "none"
        raise BackendUnavailableError(
            f"no compiler of programs called {name!r} is installed (installed: {have}); "
            f"{_INSTALL.get(name, 'install the distribution that offers it, or ')}leave backend= out, so that programs "
            f"run on the devices of their arguments{_MOVE.format(name) if name in _DEVICES else ''}",
            backend=backend,
        )
    make, who = entry_points.load(COMPILERS, name), entry_points.owner(offered[name])
    made = entry_points.made_by(partial(make, device), f"the compiler {backend!r} of {who}", backend=backend)
    if not isinstance(made, ProgramCompiler):
        raise RegistryError(
            f"{who} was requested the compiler {backend!r}, but made {made!r:.80}, which is not a ProgramCompiler",
            backend=backend,
        )
    return made


@contextmanager
def compiled_by(backend: str | ProgramCompiler) -> Iterator[ProgramCompiler]:
    """Context manager: a compiler runs the compiled functions that are called inside.

    Functions with their own `backend` keep it. The scope belongs to the current thread or task.

    Args:
        backend: a name such as ``"xla"``, or a `ProgramCompiler`.

    Returns:
        The context manager.
    """
    compiler = find_compiler(backend)
    with selecting(_scoped, compiler):
        _count(1)
        try:
            yield compiler
        finally:
            _count(-1)


def _count(step: int) -> None:
    global _open
    with _lock:
        _open += step


def scoped_compiler() -> ProgramCompiler | None:
    """The compiler of the enclosing scope.

    Returns:
        The compiler, or ``None`` outside all scopes.
    """
    return _scoped.get() if _open else None


def only_compilers() -> bool:
    """Whether all open scopes, in any thread, are scopes of `compiled_by`.

    Returns:
        True if no other scope is open.
    """
    return bool(state.open_scopes == _open)
