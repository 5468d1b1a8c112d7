"""Short cuts: compiled code that a backend puts in front of the interpreted ways of eager values.

A short cut does what an interpreted function does where everything is as usual, and calls that function otherwise. So
what a program means never depends on whether one is there.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn

from tenferro_tensor_core.forks import new_lock


class Plans(NamedTuple):
    """Forward plans of an operator, as its method fills them.

    Attributes:
        same: by the spec that both operands have, one and the same object.
        pairs: by what both operands are: specs, or the class of a Python number.
    """

    same: dict[Any, Any]
    pairs: dict[Any, Any]


@dataclass(frozen=True, slots=True)
class Recording:
    """What the recording of an operator reads and makes.

    Attributes:
        eager: class of recorded values, with the slots ``value, spec, level, node``.
        node: class of their nodes, with the slots ``seq, pull, parents, saved``.
        pullback: class of pullback plans, with the slot ``how``, whose second item a node calls.
        count: iterator that gives nodes their place.
        modes: namespace whose ``slow`` is 0 where nothing special is asked of recording.
        tables: entries (kernel, output spec, pullback plan) by spec: ``both`` for operands of one spec, ``mixed`` by
            both specs, ``left`` and ``right`` where only that operand is recorded, ``unary`` by op and spec.
        save: positions among (x, y, result) of what a node saves, for ``both``, ``left`` and ``right``.
    """

    eager: type
    node: type
    pullback: type
    count: Any
    modes: dict[str, Any]
    tables: Mapping[str, dict[Any, Any]]
    save: Mapping[str, Sequence[int]]


@dataclass(frozen=True, slots=True)
class Pulling:
    """A pullback as kernel calls on raw arrays, over numbered registers.

    Register 0 holds the raw cotangent, the next ones the saved values; constants and results follow.

    Attributes:
        saved: for each saved value whether it is a tensor, whose raw array the register holds.
        constants: register and raw value of each constant.
        steps: kernel, registers of its operands, and register of its result; results are consecutive.
        outs: for each cotangent that is pulled ``None`` where it is zero, the number of an operand that is passed on
            (0 the cotangent, 1 the first saved value), or register and spec of a new tensor.
    """

    saved: tuple[bool, ...]
    constants: tuple[tuple[int, Any], ...]
    steps: tuple[tuple[Callable[..., Any], tuple[int, ...], int], ...]
    outs: tuple[int | tuple[int, Any] | None, ...]


@dataclass(frozen=True, slots=True)
class Sweeping:
    """What the loop of the reverse sweep reads.

    Attributes:
        node: class of nodes, with the slots ``seq, pull, parents, saved``.
        leaf: pull of nodes where the sweep ends.
        pick: pull of nodes that select an output, for which ``collect(cotangents, node, g)`` is called.
        released: pull of nodes whose saved values are let go.
        collect: see `pick`.
        add: sum of two cotangents of any kind.
        sort: ``sort(nodes, None)`` puts a list of nodes in reverse order of recording.
        damaged: raises the error for an object that should be a node and is none, or lacks what nodes have.
    """

    node: type
    leaf: Any
    pick: Any
    released: Any
    collect: Callable[..., Any]
    add: Callable[..., Any]
    sort: Callable[..., Any]
    damaged: Callable[[Any], NoReturn]


@dataclass(frozen=True, slots=True)
class Entering:
    """What the way into a compiled function reads.

    Attributes:
        arguments: number of arguments.
        table: tuples by the spec of the only argument, or the tuple of specs. Each holds the program ``run(values,
            *raws)``, the values, the spec of the result or None, what makes the result otherwise, what says whether
            the program is still right or None, the only step or None, and the tuple of specs. A step is a tuple of the
            kernel, its operands as bytes (their number, then the position of each among raw arguments and extras),
            and the extras.
        recent: list of one item: what the call found, or None where it was handed on. Where it is not None and specs
            are the same, the next call does not look into the table.
        slow: called with the tuple of arguments in all other cases.
        tiered: class of kernels that keep their fastest form in the slot ``run``.
    """

    arguments: int
    table: dict[Any, Any]
    recent: list[Any]
    slow: Callable[[tuple[Any, ...]], Any]
    tiered: type


class Shortcuts(ABC):
    """What a backend may offer; every method may return the function that it was given."""

    @abstractmethod
    def tensor_operator(
        self, name: str, method: Callable[..., Any], plans: Plans, *, reflected: bool
    ) -> Callable[..., Any]:
        """A method of concrete tensors for an operator of two operands."""

    @abstractmethod
    def tensor_unary(self, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        """The method of concrete tensors that applies an op to a tensor alone."""

    @abstractmethod
    def op_call(self, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        """The method of ops that applies them to operands."""

    @abstractmethod
    def record_unary(self, name: str, method: Callable[..., Any], recording: Recording) -> Callable[..., Any]:
        """The method of recorded values that applies an op to a value alone."""

    @abstractmethod
    def record_operator(
        self, name: str, method: Callable[..., Any], recording: Recording, *, reflected: bool
    ) -> Callable[..., Any]:
        """A method of recorded values for an operator of two operands."""

    @abstractmethod
    def pull(self, pulling: Pulling, pull: Callable[..., Any]) -> Callable[..., Any]:
        """The function ``pull(g, saved)`` of a node, which returns one cotangent or None for each parent."""

    @abstractmethod
    def copied(self, array: Any) -> Any:
        """A copy of a large NumPy array, of its layout, in memory from where results have theirs."""

    @abstractmethod
    def entry(self, entering: Entering) -> Callable[..., Any] | None:
        """A function of positional arguments, each of any class, or None."""

    @abstractmethod
    def sweep(self, sweeping: Sweeping) -> Callable[..., None] | None:
        """A loop ``sweep(cotangents, release, where)`` that carries cotangents by node down to leaves, in place.

        `release` is None or not; ``where[0]`` is set to the node whose pull raised an error.
        """


_lock = new_lock()
_offered: Shortcuts | None = None
_waiting: list[Callable[[Shortcuts], None]] = []


def offer(shortcuts: Shortcuts) -> None:
    """Let all that may be shortened use these; the first offer of a process stays."""
    global _offered
    with _lock:
        if _offered is not None:
            return
        _offered = shortcuts
        waiting = _waiting.copy()
        _waiting.clear()
    for use in waiting:
        use(shortcuts)


def shortcuts() -> Shortcuts | None:
    """The short cuts, where some are offered by now."""
    return _offered


def when_offered(use: Callable[[Shortcuts], None]) -> None:
    """Call a function with the short cuts: now where some are offered, else when they are."""
    with _lock:
        if _offered is None:
            _waiting.append(use)
            return
    use(_offered)
