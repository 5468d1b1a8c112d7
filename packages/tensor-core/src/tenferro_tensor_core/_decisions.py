"""`Decisions` answers questions about sizes while a function is traced, and records the guards that answers rely on."""

import sys
from collections import ChainMap
from collections.abc import Iterable, Mapping
from contextvars import ContextVar
from copy import copy
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final

from tenferro_tensor_core.forks import new_lock

from ._decide import COMPARISONS, decide
from ._dims import Dim, DimLike, evaluate, nonnegative
from ._errors import InconclusiveDimError, TracingError
from ._facts import Facts

_NEGATED: Final = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}


@dataclass(frozen=True, slots=True)
class Guard:
    """A comparison of sizes that a decision relied on.

    Attributes:
        lhs: left size.
        op: one of == != < <= > >=.
        rhs: right size.
        where: file and line that asked, or an empty text.
        reason: the operation that specialised a size, such as ``range()``; empty for comparisons.

    >>> from tenferro_tensor_core import dim
    >>> guard = Guard(dim("n"), ">", 3, "model.py:12")
    >>> print(guard, guard.holds({"n": 4}), guard.holds({"n": 3}), sep="; ")
    n > 3 (model.py:12); True; False
    """

    lhs: DimLike
    op: str
    rhs: DimLike
    where: str = ""
    reason: str = ""

    def holds(self, bindings: Mapping[str, int]) -> bool:
        """Whether the comparison is true for given values of the variables.

        Args:
            bindings: value of each variable by name.

        Returns:
            The result of the comparison.
        """
        return COMPARISONS[self.op](evaluate(self.lhs, bindings), evaluate(self.rhs, bindings))

    def __str__(self) -> str:
        why = ", ".join(filter(None, (self.reason, self.where)))
        return f"{self.lhs} {self.op} {self.rhs}" + (f" ({why})" if why else "")


_STATE: Final = ("_canonical", "equalities", "examples", "facts", "guards", "unknown")


class Decisions:
    """Decides by example sizes whatever bounds leave undecided, and records a `Guard` for each answer.

    Inside `with decisions:`, `ask` uses it. It learns equalities: later questions treat both sides
    as one size and need no further guard.

    Args:
        examples: example value of each variable by name.
        home: the trace where values that depend on these sizes alone are recorded; see `home_of`.
        strict: whether specialising a size is an error.

    >>> from tenferro_tensor_core import ask, dim
    >>> n, m = dim("n"), dim("m")
    >>> with Decisions({"n": 5, "m": 5}) as decisions:
    ...     ask(n, ">", 3), ask(n, "==", m), ask(n + 1, "==", m + 1)
    (True, True, True)
    >>> [f"{g.lhs} {g.op} {g.rhs}" for g in decisions.guards]
    ['n > 3', 'n == m']
    """

    __slots__ = (
        "_canonical", "_lock", "closed", "equalities", "examples", "facts", "guards", "home", "strict", "unknown",
    )  # fmt: skip

    def __init__(self, examples: Mapping[str, int], home: Any = None, *, strict: bool = False) -> None:
        self.home: Any = home
        """The trace where values that depend on these sizes alone are recorded; see `home_of`."""
        self.strict: bool = strict
        """Whether specialising a size is an error."""
        self.closed: bool = False
        """Whether the trace has ended, so that guards can no longer be added."""
        self.examples: dict[str, int] = dict(examples)
        """Example size of each variable, in order of definition; may grow while tracing."""
        self.guards: list[Guard] = []
        """Guards that the answers rely on, in the order asked, with the sizes as asked."""
        self.equalities: dict[str, DimLike] = {}
        """Learned equalities: the size that replaces each variable, by name."""
        self.unknown: set[str] = set()
        """Names of data-dependent sizes, known only when the program runs."""
        self.facts: Facts = Facts()
        """Inequalities and equations from guards that are not substitutions of variables."""
        self._canonical: dict[Dim, DimLike] = {}
        self._lock = new_lock()

    def __enter__(self) -> "Decisions":
        # The context variable holds the whole stack: tokens would break if one object were entered twice or from
        # several threads.
        ACTIVE.set((*ACTIVE.get(), self))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        ACTIVE.set(ACTIVE.get()[:-1])

    def state(self) -> tuple[Any, ...]:
        """Return a snapshot of all questions and answers, for `restore`.

        Returns:
            The snapshot.
        """
        return tuple([copy(getattr(self, name)) for name in _STATE])

    def restore(self, state: tuple[Any, ...]) -> None:
        """Return to a snapshot; later questions and answers are forgotten.

        Args:
            state: a result of `state`.
        """
        for name, kept in zip(_STATE, state, strict=True):
            setattr(self, name, kept)

    def canonical(self, d: DimLike) -> DimLike:
        """Return a size after substituting the learned equalities.

        Args:
            d: the size.

        Returns:
            An equal size.
        """
        if not self.equalities or isinstance(d, int):
            return d
        memo = self._canonical  # read once: another thread may learn an equality meanwhile and replace the memo
        found = memo.get(d)
        if found is None:
            found = memo[d] = d.substitute(self.equalities)
        return found

    def knows(self, names: Iterable[str]) -> bool:
        """Whether one of the variables is a size of this trace.

        Args:
            names: names of the variables.

        Returns:
            True if this trace knows one of them.
        """
        return any(name in self.examples or name in self.unknown for name in names)

    def decide(self, a: DimLike, op: str, b: DimLike) -> bool:
        """Answer `a op b` by learned facts and bounds, else by the examples under a guard.

        Args:
            a: left size.
            op: one of == != < <= > >=.
            b: right size.

        Returns:
            The answer.

        Raises:
            InconclusiveDimError: a variable has no example size.
        """
        return self._decide(a, op, b, "")

    def _decide(self, a: DimLike, op: str, b: DimLike, reason: str) -> bool:
        known = self._answer(a, op, b)
        if known is not None:
            return known
        examples = self._known_examples()
        missing = sorted({n for d in (a, b) if isinstance(d, Dim) for n in d.variables if n not in examples})
        if missing:
            raise inconclusive(a, op, b, f"{', '.join(missing)} known only when the program runs", data=True)
        answer = COMPARISONS[op](evaluate(a, examples), evaluate(b, examples))
        guard = Guard(a, op if answer else _NEGATED[op], b, _caller(), reason)
        with self._lock:
            self.guards.append(guard)
            self._rely(a, guard.op, b)
        return answer

    def _rely(self, a: DimLike, op: str, b: DimLike) -> None:
        """Learn a fact, which may answer later questions."""
        if op == "==":
            self._learn(a, b)
        elif op != "!=":
            low, high = (b, a) if op[0] == ">" else (a, b)
            self.facts.add(self.canonical(high - low - (0 if op.endswith("=") else 1)))
        elif nonnegative(a - b):
            self.facts.add(self.canonical(a - b - 1))

    def _answer(self, a: DimLike, op: str, b: DimLike) -> bool | None:
        """Answer by bounds and learned facts, or None."""
        a, b = self.canonical(a), self.canonical(b)
        known = decide(a, op, b)
        if known is None:
            known = self._by_facts(a, op, b)
        if known is None and op in ("==", "!=") and self.facts.imply_zero(a - b):
            return op == "=="
        return known

    def _by_facts(self, a: DimLike, op: str, b: DimLike) -> bool | None:
        """Answer by learned inequalities, or None."""
        if op in ("==", "!="):
            apart = self.facts.imply(a - b - 1) or self.facts.imply(b - a - 1)
            return op == "!=" if apart else None
        d = a - b if op[0] == ">" else b - a
        if len(op) == 1:
            d -= 1
        return True if self.facts.imply(d) else False if self.facts.imply(-d - 1) else None

    def assume(self, a: DimLike, op: str, b: DimLike) -> None:
        """Assume `a op b`; it becomes a guard, which the program checks.

        Args:
            a: left size.
            op: one of == != < <= > >=.
            b: right size.
        """
        self.guards.append(Guard(a, op, b, _caller(), "assume()"))
        self._rely(a, op, b)

    def likely(self, a: DimLike, op: str, b: DimLike) -> bool:
        """Answer `a op b` by the examples without recording a guard.

        Args:
            a: left size.
            op: one of == != < <= > >=.
            b: right size.

        Returns:
            The answer; False if there is no example.
        """
        known = self._answer(a, op, b)
        if known is not None:
            return known
        left, right = self.example_of(a), self.example_of(b)
        return left is not None and right is not None and COMPARISONS[op](left, right)

    def example_of(self, d: DimLike) -> int | None:
        """Return the example value of a size.

        Args:
            d: the size.

        Returns:
            The value, or None if there is no example.
        """
        examples = self._known_examples()
        if isinstance(d, Dim) and any(n not in examples for n in d.variables):
            return None
        return evaluate(d, examples)

    def specialise(self, d: DimLike, reason: str) -> int:
        """Return the example value of a size, under the guard that it has this value.

        Args:
            d: the size.
            reason: the operation that needs a number, for error texts and the guard.

        Returns:
            The example value.

        Raises:
            TracingError: the trace is `strict`.
            InconclusiveDimError: a variable has no example size.
        """
        d = self.canonical(d)
        if isinstance(d, int):
            return d
        if self.strict:
            raise TracingError(
                f"{reason} needs the value of the symbolic size {d}{at_line()}, which would specialise the program to "
                "each value; keep the size symbolic, pass the number as a static argument, or allow it "
                "(strict_sizes=False)",
                size=str(d),
            )
        examples = self._known_examples()
        missing = sorted(n for n in d.variables if n not in examples)
        if missing:
            raise InconclusiveDimError(
                f"{reason} needs the value of the symbolic size {d}{at_line()}, but {', '.join(missing)} is known only "
                "when the program runs; keep the size symbolic, or use a fixed bound and a mask",
                size=str(d),
            )
        n = evaluate(d, examples)
        self._decide(d, "==", n, reason)
        return n

    def _known_examples(self) -> Mapping[str, int]:
        """Examples of this trace and of the enclosing ones."""
        around = [d.examples for d in reversed(ACTIVE.get()) if d is not self]
        return ChainMap(self.examples, *around) if around else self.examples

    def _learn(self, a: DimLike, b: DimLike) -> None:
        a, b = _solved(self.canonical(a), self.canonical(b))
        sides = [(v, other) for v, other in ((a, b), (b, a)) if (name := _name_of(v)) and not _occurs(name, other)]
        if not sides:
            self.facts.add_zero(a - b)
            return
        if len(sides) > 1:
            # Replace the later variable: sizes of earlier arguments name the sizes of the program.
            order = {name: i for i, name in enumerate(self._known_examples())}
            sides.sort(key=lambda side: order.get(str(side[0]), len(order)))
        v, other = sides[-1]
        name = str(v)
        known = {n: d.substitute({name: other}) if _occurs(name, d) else d for n, d in self.equalities.items()}  # type: ignore[union-attr]
        self.equalities = {**known, name: other}
        self._canonical = {}
        self.facts.rewrite(name, self.canonical)


ACTIVE: Final[ContextVar[tuple[Decisions, ...]]] = ContextVar("tenferro_decisions", default=())
"""The active traces, innermost last."""


def inconclusive(a: DimLike, op: str, b: DimLike, why: str, data: bool = False) -> InconclusiveDimError:
    if data:
        return InconclusiveDimError(
            f"cannot decide {a} {op} {b}{at_line()}: {why}; state it with tr.assume({a} {op} {b}), branch with "
            "tr.cond, or compute on all elements with a mask",
            lhs=a,
            op=op,
            rhs=b,
            where=_caller(),
        )
    return InconclusiveDimError(
        f"cannot decide {a} {op} {b}{at_line()}: {why}; give the sizes bounds "
        "(dim(name, min=, max=)), supply example sizes, or write the code without this branch",
        lhs=a,
        op=op,
        rhs=b,
        where=_caller(),
    )


def at_line() -> str:
    where = _caller()
    return f" at {where}" if where else ""


def _name_of(d: DimLike) -> str:
    """Return the name of a size that is a single variable, else an empty text."""
    if isinstance(d, Dim) and len(d.terms) == 1:
        (monomial, coefficient), *_ = d.terms
        if coefficient == 1 and len(monomial) == 1:
            return monomial[0].name
    return ""


def _solved(a: DimLike, b: DimLike) -> tuple[DimLike, DimLike]:
    """Solve an equation in one variable: (2*n + 1, 11) becomes (n, 5); other equations are returned unchanged."""
    d = a - b
    if isinstance(d, Dim) and all(not monomial for monomial, _ in d.terms[1:]):
        (monomial, coefficient), *number = d.terms
        value = -sum(c for _, c in number)
        if len(monomial) == 1 and monomial[0].kind == "var" and value % coefficient == 0:
            return next(d.bare()), value // coefficient
    return a, b


def _occurs(name: str, d: DimLike) -> bool:
    return isinstance(d, Dim) and name in d.variables


def _caller() -> str:
    """Return file:line of the innermost frame outside tenferro, or an empty text."""
    frame = sys._getframe(1)
    while frame is not None and str(frame.f_globals.get("__name__", "")).startswith("tenferro_"):
        if frame.f_back is None:
            return ""
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"
