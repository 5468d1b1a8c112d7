"""Questions about sizes, answered by bounds, else by example sizes under a recorded guard."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from ._decide import decide
from ._decisions import ACTIVE, Decisions, at_line, inconclusive
from ._dims import Dim, DimLike, as_size
from ._errors import InconclusiveDimError, ShapeError


class _Questions(threading.local):
    count = 0


_questions: Final = _Questions()


def reached() -> int:
    """Return how many questions of this thread have consulted the active traces so far.

    Bounds answer all other questions in every trace alike, so that an unchanged count means that a
    result does not depend on a trace.

    Returns:
        The count.

    >>> from tenferro_tensor_core import dim
    >>> with Decisions({"n": 5}):
    ...     before = reached()
    ...     ask(dim("n") + 1, ">", 0), reached() - before, ask(dim("n"), ">", 3), reached() - before
    (True, 0, True, 1)
    """
    return _questions.count


def decisions() -> Decisions | None:
    """Return the innermost active `Decisions`.

    Returns:
        The decisions of the innermost trace, or None outside of any.

    >>> decisions() is None
    True
    """
    _questions.count += 1
    active = ACTIVE.get()
    return active[-1] if active else None


_NO_TRACE: Final = (
    "their bounds do not decide it, and no trace that knows them is active (a traced value that outlived its trace has "
    "such sizes: return it instead)"
)


def ask(a: DimLike, op: str, b: DimLike) -> bool:
    """Compare two sizes.

    Bounds decide if they can. Otherwise the innermost active `Decisions` that knows one of the
    variables answers by its examples and records a guard.

    Args:
        a: left size.
        op: one of == != < <= > >=.
        b: right size.

    Returns:
        The answer.

    Raises:
        InconclusiveDimError: neither bounds nor an example decides.
        ArgumentError: `op` is not a comparison.

    See also:
        `decide`, which uses bounds alone; `likely`, which records no guard.

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
    return _owning(active, a, b).decide(a, op, b)


def _owning(active: tuple[Decisions, ...], *dims: DimLike) -> Decisions:
    """The innermost trace that knows one of the variables; by default the innermost one."""
    _questions.count += 1
    names = {name for d in dims if isinstance(d, Dim) for name in d.variables}
    return next((d for d in reversed(active) if d.knows(names)), active[-1])


def likely(a: DimLike, op: str, b: DimLike) -> bool:
    """Compare two sizes by their examples without recording a guard, to choose which question to `ask`.

    Args:
        a: left size.
        op: one of == != < <= > >=.
        b: right size.

    Returns:
        The answer for the examples; False if there are none.

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
        _questions.count += 1
        return False
    return _owning(active, a, b).likely(a, op, b)


_conditional: Final[ContextVar[bool]] = ContextVar("conditional", default=False)


@contextmanager
def conditional() -> Iterator[None]:
    """Context for recording code that may not run: a branch, or the body of a loop whose condition may fail at first.

    Returns:
        The context manager.

    >>> from tenferro_tensor_core import dim
    >>> with Decisions({"n": 5}) as decisions, conditional():
    ...     expect(dim("n"), ">=", 1), decisions.guards
    (True, [])
    """
    token = _conditional.set(True)
    try:
        yield
    finally:
        _conditional.reset(token)


def expect(a: DimLike, op: str, b: DimLike) -> bool:
    """Compare two sizes for a check that only code which runs must pass.

    As `ask`, but what only a run can tell is left to it: in `conditional` code, and of sizes that depend on data, an
    undecided comparison counts as true.

    Args:
        a: left size.
        op: one of == != < <= > >=.
        b: right size.

    Returns:
        The answer.

    >>> from tenferro_tensor_core import dim
    >>> with Decisions({"n": 0}):
    ...     expect(dim("n"), ">=", 1)
    False
    """
    known = decide(a, op, b)
    if known is not None or _conditional.get():
        return known is not False
    try:
        return ask(a, op, b)
    except InconclusiveDimError:
        return True


def example_of(d: DimLike) -> int | None:
    """Return the example value of a size, for choices that affect speed only, not results.

    Args:
        d: the size.

    Returns:
        The value, or None if there is no example.

    >>> from tenferro_tensor_core import dim
    >>> with Decisions({"n": 5}):
    ...     example_of(dim("n") * 2), example_of(dim("q"))
    (10, None)
    """
    if isinstance(d, int):
        return d
    active = ACTIVE.get()
    if not active:
        _questions.count += 1
        return None
    return _owning(active, d).example_of(d)


def specialise(d: DimLike, reason: str) -> int:
    """Return the example value of a size, under the guard that it has this value.

    Args:
        d: the size.
        reason: the operation that needs a number, for error texts and the guard.

    Returns:
        The value; `d` itself if it is a number.

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
            f"{reason} needs the value of the symbolic size {d}{at_line()} outside of any trace; "
            "use the size while the function is traced",
            size=str(d),
        )
    return _owning(active, d).specialise(d, reason)


def traces() -> tuple[Decisions, ...]:
    """Return the active `Decisions`.

    Returns:
        The decisions of all active traces, outermost first.

    >>> traces()
    ()
    """
    return ACTIVE.get()


def specialise_for(known: tuple[Decisions, ...], d: DimLike, reason: str) -> DimLike:
    """Specialise a size in a thread whose context does not have its traces.

    Args:
        known: the traces that were active where the size was created.
        d: the size.
        reason: the operation that needs a number.

    Returns:
        The example value; `d` itself once all traces have ended.

    >>> from tenferro_tensor_core import dim
    >>> decisions = Decisions({"n": 5})
    >>> specialise_for((decisions,), dim("n") + 1, "a thread"), len(decisions.guards)
    (6, 1)
    """
    active = tuple([trace for trace in known if not trace.closed])
    if not active:
        return d
    token = ACTIVE.set(active)
    try:
        return specialise(d, reason)
    finally:
        ACTIVE.reset(token)


def learned(d: DimLike) -> DimLike:
    """Return a size after substituting the equalities that its trace has learned.

    Args:
        d: the size.

    Returns:
        An equal size; a number once the size has been specialised.

    >>> from tenferro_tensor_core import dim
    >>> with Decisions({"n": 5}):
    ...     learned(dim("n") + 1), specialise(dim("n"), "range()"), learned(dim("n") + 1)
    (n + 1, 5, 6)
    """
    active = ACTIVE.get()
    if isinstance(d, int) or not active:
        return d
    if not any(trace.equalities for trace in active):
        _questions.count += 1
        return d
    return _owning(active, d).canonical(d)


def new_size() -> str:
    """Define a data-dependent size in the innermost trace.

    Returns:
        Its name, unused so far.

    >>> with Decisions({}):
    ...     new_size(), new_size()
    ('u0', 'u1')
    """
    _questions.count += 1
    active = ACTIVE.get()
    taken = {name for d in active for name in (*d.unknown, *d.examples)}
    name = next(f"u{i}" for i in range(len(taken) + 1) if f"u{i}" not in taken)
    if active:
        active[-1].unknown.add(name)
    return name


def assume(a: DimLike, op: str, b: DimLike) -> None:
    """Let the trace that knows the sizes assume a condition; the program checks it at run time.

    Args:
        a: left size.
        op: one of == != < <= > >=.
        b: right size.

    >>> from tenferro_tensor_core import dim
    >>> with Decisions({}) as decisions:
    ...     n = dim(new_size())
    ...     assume(n, ">", 3)
    ...     ask(n, ">", 2), len(decisions.guards)
    (True, 1)
    """
    _owning(ACTIVE.get(), a, b).assume(a, op, b)


def home_of(*dims: DimLike) -> object:
    """Return the `home` of the outermost active trace that knows all variables of some sizes.

    Values that depend on these sizes alone are recorded there.

    Args:
        dims: the sizes.

    Returns:
        The home, or None.

    >>> from tenferro_tensor_core import dim
    >>> with Decisions({"n": 5}, home="outer"), Decisions({"m": 5}, home="inner"):
    ...     home_of(dim("n")), home_of(dim("n") * dim("m")), home_of(dim("q"))
    ('outer', 'inner', None)
    """
    _questions.count += 1
    wanted = {name for d in dims if isinstance(d, Dim) for name in d.variables}
    for decisions in ACTIVE.get():
        wanted -= decisions.examples.keys() | decisions.unknown
        if not wanted and decisions.home is not None:
            return decisions.home
    return None


def require_equal(a: DimLike, b: DimLike, what: str) -> None:
    """Raise an error unless two sizes are equal.

    Args:
        a: one size.
        b: the other size.
        what: the operation and the axes, for the error text.

    Raises:
        ShapeError: the sizes differ.
        InconclusiveDimError: neither bounds nor an example decides.

    >>> require_equal(3, 3, "dot_general: axis 1 of x and axis 0 of y")
    """
    if a is b or ask(a, "==", b):
        return
    raise ShapeError(
        f"{what}: sizes must be equal, got {a} and {b}; reshape, slice or broadcast one of them",
        what=what,
        sizes=(a, b),
    )
