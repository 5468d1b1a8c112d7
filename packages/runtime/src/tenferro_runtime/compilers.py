"""Compilers of whole programs: the door behind ``compile(f, backend=...)``, for tenferro's own and for third parties.

A distribution names a function ``make(device: str) -> ProgramCompiler`` by an entry point of the group
``tenferro.compilers``. For ``backend="xla:cuda:0"`` that of the name ``xla`` is called with ``"cuda:0"``, for
``backend="xla"`` with an empty text. An instance may be passed as `backend`, too.
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

MAX_EXECUTABLES: Final = 32
"""Number of sizes for which a program keeps what a compiler made of it."""

_INSTALL: Final = {"xla": "pip install tenferro-xla"}


class ProgramCompiler(ABC):
    """Makes executables of whole programs; how programs are traced and differentiated stays tenferro's.

    Attributes:
        name: how ``compile(f, backend=...)`` names it, and what `explain` says.
    """

    name: str

    @abstractmethod
    def executable(self, program: Program, donated: tuple[int, ...]) -> Callable[..., tuple[Any, ...]]:
        """A program of fixed sizes as a function of raw arrays that returns the tuple of raw outputs.

        Called once for each combination of sizes; the least recently used executables are dropped. Raw arrays are
        those of the backends at the places of the program's inputs and outputs: NumPy arrays (NumPy scalars where there
        are no axes) in main memory, which nobody writes to.

        Args:
            program: the program.
            donated: positions of inputs whose memory the executable may take over, because nobody else holds them.

        Raises:
            UnsupportedError: a step has no form here; names the primitive and the user's line.
            PlacementError: the inputs are where the executable cannot read them; nothing is moved.
        """

    def __repr__(self) -> str:
        return f"<compiler {self.name}>"


_made: dict[str, ProgramCompiler] = {}
_lock = new_lock()
_open = 0
"""Number of scopes of `compiled_by` that are open in any thread."""
_scoped: ContextVar[ProgramCompiler | None] = ContextVar("tenferro compiler", default=None)


def find_compiler(backend: str | ProgramCompiler) -> ProgramCompiler:
    """The compiler of a name, made on first use; an instance is its own.

    Raises:
        BackendUnavailableError: nothing installed offers it, or its device is missing; the text says what to install.
        RegistryError: what is installed cannot be loaded, or makes no compiler; the text names the distribution.
        ArgumentError: `backend` is neither a name nor a compiler.
    """
    if isinstance(backend, ProgramCompiler):
        return backend
    if not isinstance(backend, str) or not backend:
        raise ArgumentError(
            f"backend={backend!r:.80} is no compiler; pass a name such as 'xla', a ProgramCompiler, or leave it out"
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
            f"{_INSTALL.get(name, 'install the distribution that offers it')}, or leave backend= out, so that programs "
            "run on the devices of their arguments",
            backend=backend,
        )
    make, who = entry_points.load(COMPILERS, name), entry_points.owner(offered[name])
    made = entry_points.made_by(partial(make, device), f"the compiler {backend!r} of {who}", backend=backend)
    if not isinstance(made, ProgramCompiler):
        raise RegistryError(
            f"{who} was asked for the compiler {backend!r}, but made {made!r:.80}, which is no ProgramCompiler",
            backend=backend,
        )
    return made


@contextmanager
def compiled_by(backend: str | ProgramCompiler) -> Iterator[ProgramCompiler]:
    """Context manager: compiled functions that are called inside run by a compiler.

    Functions with a `backend` of their own keep it. As every scope, this one belongs to its thread or task.
    """
    with selecting(_scoped, find_compiler(backend)) as compiler:
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
    """The compiler of the enclosing scope, if any."""
    return _scoped.get() if _open else None


def only_compilers() -> bool:
    """Whether no scope is open in any thread but those of `compiled_by`."""
    return bool(state.open_scopes == _open)
