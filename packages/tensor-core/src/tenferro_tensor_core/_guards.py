"""Questions about sizes: answered by bounds, else by example sizes under a recorded guard."""

import threading
from typing import Any, Final

from ._decide import decide
from ._decisions import ACTIVE, Decisions, at_line, inconclusive
from ._dims import Dim, DimLike, as_size
from ._errors import InconclusiveDimError, ShapeError


class _Reached(threading.local):
    count = 0


_reached: Final = _Reached()


def reached() -> int:
    """Return how often this thread's questions were put to a trace, so far: bounds answer the others for all traces.

    >>> from tenferro_tensor_core import dim
    >>> with Decisions({"n": 5}):
    ...     before = reached()
    ...     ask(dim("n") + 1, ">", 0), reached() - before, ask(dim("n"), ">", 3), reached() - before
    (True, 0, True, 1)
    """
    return _reached.count


def decisions() -> Decisions | None:
    """Return the innermost active `Decisions`, which answers questions about symbolic sizes, or None.

    >>> decisions() is None
    True
    """
    _reached.count += 1
    active = ACTIVE.get()
    return active[-1] if active else None


_NO_TRACE: Final = (
    "their bounds do not decide it, and no trace that knows them is going on (a traced value that was kept longer than "
    "its trace has such sizes: return it instead)"
)


def ask(a: DimLike, op: str, b: DimLike) -> bool:
    """Answer `a op b` for sizes, op one of == != < <= > >=.

    Integers are compared; identity and bounds decide for all values; else the innermost active
    `Decisions` answers for its examples and records a guard.

    Raises:
        InconclusiveDimError: nothing decides.
        ArgumentError: `op` is no comparison.

    >>> from tenferro_tensor_core import dim
    >>> ask(2, "<", 3), ask(dim("n"), "==", dim("n")), ask(dim("n") + 1, ">", 0)
    (True, True, True)
    """
    a, b = as_size(a), as_size(b)
    if a is b and op == "==":
        return True
    known = decide(a, op, b)
    if known is not None:
        return known
    active = ACTIVE.get()
    if not active:
        raise inconclusive(a, op, b, _NO_TRACE)
    return _concerned(active, a, b).decide(a, op, b)


def _concerned(active: tuple[Decisions, ...], *dims: DimLike) -> Decisions:
    """The innermost trace that knows one of the variables."""
    _reached.count += 1
    names = {name for d in dims if isinstance(d, Dim) for name in d.variables}
    return next((d for d in reversed(active) if d.knows(names)), active[-1])


def likely(a: DimLike, op: str, b: DimLike) -> bool:
    """Answer `a op b` as the examples have it, and record nothing: for choosing which question to `ask`.

    It is False where nothing is known.

    >>> from tenferro_tensor_core import dim
    >>> with Decisions({"n": 5}) as decisions:
    ...     likely(dim("n"), "==", 1), decisions.guards
    (False, [])
    """
    known = decide(a, op, b)
    if known is not None:
        return known
    active = ACTIVE.get()
    if not active:
        _reached.count += 1
        return False
    return _concerned(active, a, b).likely(a, op, b)


def example_of(d: DimLike) -> int | None:
    """Return the example of a size, for choices that are right for all sizes; ``None`` where there is none.

    >>> from tenferro_tensor_core import dim
    >>> with Decisions({"n": 5}):
    ...     example_of(dim("n") * 2), example_of(dim("q"))
    (10, None)
    """
    if isinstance(d, int):
        return d
    active = ACTIVE.get()
    if not active:
        _reached.count += 1
        return None
    return _concerned(active, d).example_of(d)


def specialise(d: DimLike, reason: str) -> int:
    """Return a number for a size: the traced example, under a guard; `reason` says what asked for it.

    Raises:
        InconclusiveDimError: no trace is active, or the size depends on data.
        TracingError: the trace is strict about sizes.

    >>> from tenferro_tensor_core import dim
    >>> with Decisions({"n": 5}) as decisions:
    ...     specialise(dim("n") + 1, "range()")
    6
    >>> f"{decisions.guards[0].lhs} {decisions.guards[0].op} {decisions.guards[0].rhs}"
    'n + 1 == 6'
    """
    d = as_size(d)
    if isinstance(d, int):
        return d
    active = ACTIVE.get()
    if not active:
        raise InconclusiveDimError(
            f"{reason} makes a number of the symbolic size {d}{at_line()} outside of any trace; "
            "use it while the function is traced",
            size=str(d),
        )
    return _concerned(active, d).specialise(d, reason)


def traces() -> tuple[Decisions, ...]:
    """Return the active `Decisions`, outermost first.

    >>> traces()
    ()
    """
    return ACTIVE.get()


def specialise_for(known: tuple[Decisions, ...], d: DimLike, reason: str) -> DimLike:
    """Return a number for a size in a thread that its traces do not reach; the size itself once they have ended.

    >>> from tenferro_tensor_core import dim
    >>> decisions = Decisions({"n": 5})
    >>> specialise_for((decisions,), dim("n") + 1, "a thread"), len(decisions.guards)
    (6, 1)
    """
    open_ = tuple([trace for trace in known if not trace.closed])
    if not open_:
        return d
    token = ACTIVE.set(open_)
    try:
        return specialise(d, reason)
    finally:
        ACTIVE.reset(token)


def learned(d: DimLike) -> DimLike:
    """Return what the trace has learned to stand for a size: a number, once one has been made of it.

    >>> from tenferro_tensor_core import dim
    >>> with Decisions({"n": 5}):
    ...     learned(dim("n") + 1), specialise(dim("n"), "range()"), learned(dim("n") + 1)
    (n + 1, 5, 6)
    """
    active = ACTIVE.get()
    if isinstance(d, int) or not active:
        return d
    if not any(trace.equalities for trace in active):
        _reached.count += 1
        return d
    return _concerned(active, d).canonical(d)


def new_size() -> str:
    """Return a name for a size that depends on data, which the innermost trace knows from then on.

    >>> with Decisions({}):
    ...     new_size(), new_size()
    ('u0', 'u1')
    """
    _reached.count += 1
    active = ACTIVE.get()
    taken = {name for d in active for name in (*d.unknown, *d.examples)}
    name = next(f"u{i}" for i in range(len(taken) + 1) if f"u{i}" not in taken)
    if active:
        active[-1].unknown.add(name)
    return name


def assume(a: DimLike, op: str, b: DimLike) -> None:
    """Let the innermost trace rely on a condition that depends on data."""
    _concerned(ACTIVE.get(), a, b).assume(a, op, b)


def home_of(*dims: DimLike) -> Any:
    """Return where values made of these sizes alone are recorded, or ``None``.

    It is the outermost active trace that knows all of their variables.

    >>> from tenferro_tensor_core import dim
    >>> with Decisions({"n": 5}, home="outer"), Decisions({"m": 5}, home="inner"):
    ...     home_of(dim("n")), home_of(dim("n") * dim("m")), home_of(dim("q"))
    ('outer', 'inner', None)
    """
    _reached.count += 1
    wanted = {name for d in dims if isinstance(d, Dim) for name in d.variables}
    for decisions in ACTIVE.get():
        wanted -= decisions.examples.keys() | decisions.unknown
        if not wanted and decisions.home is not None:
            return decisions.home
    return None


def require_equal(a: DimLike, b: DimLike, what: str) -> None:
    """Raise unless the sizes are equal; `what` says who needs it.

    Raises:
        ShapeError: the sizes differ.
        InconclusiveDimError: nothing decides.

    >>> require_equal(3, 3, "dot_general: axis 1 of x and axis 0 of y")
    """
    if a is b or ask(a, "==", b):
        return
    raise ShapeError(
        f"{what}: sizes must be equal, got {a} and {b}; reshape, slice or broadcast one of them",
        what=what,
        sizes=(a, b),
    )
