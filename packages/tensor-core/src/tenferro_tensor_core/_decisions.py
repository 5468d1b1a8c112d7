"""`Decisions`: who answers questions about sizes while a function is traced, and the guards that answers rely on."""

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
    """A fact about sizes that a decision relied on, and the place that asked.

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
    """The operation that made a number of a size, such as ``range()``; empty for comparisons."""

    def holds(self, bindings: Mapping[str, int]) -> bool:
        """Tell whether the fact is true for these sizes."""
        return COMPARISONS[self.op](evaluate(self.lhs, bindings), evaluate(self.rhs, bindings))

    def __str__(self) -> str:
        why = ", ".join(filter(None, (self.reason, self.where)))
        return f"{self.lhs} {self.op} {self.rhs}" + (f" ({why})" if why else "")


_STATE: Final = ("_canonical", "equalities", "examples", "facts", "guards", "unknown")


class Decisions:
    """Decides by example sizes what bounds leave open, and records a `Guard` for each answer.

    Inside `with decisions:`, `ask` turns to it. An equality that held is learned: later questions
    see both sides as one size, so that they need no guard of their own.

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
        self.home = home
        """Where a value is recorded that is made of these sizes alone; see `home_of`."""
        self.strict = strict
        """Whether making a number of a size is an error."""
        self.closed = False
        """Whether the trace has ended, so that an answer would come too late to be a guard of it."""
        self.examples = dict(examples)
        """Example size of each variable, in order of definition; may grow while tracing."""
        self.guards: list[Guard] = []
        """Guards that the answers rely on, in the order asked, over the sizes as asked."""
        self.equalities: dict[str, DimLike] = {}
        """Learned equalities: variable name to the size that stands for it."""
        self.unknown: set[str] = set()
        """Sizes that depend on data: known only when the program runs."""
        self.facts: Facts = Facts()
        """Facts of the guards beyond these equalities."""
        self._canonical: dict[Dim, DimLike] = {}
        self._lock = new_lock()

    def __enter__(self) -> "Decisions":
        # The stack travels in the context variable: tokens would break when one object is
        # entered twice or from several threads.
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
        """The questions and answers so far, for `restore`."""
        return tuple([copy(getattr(self, name)) for name in _STATE])

    def restore(self, state: tuple[Any, ...]) -> None:
        """Forget what has been asked and learned since."""
        for name, kept in zip(_STATE, state, strict=True):
            setattr(self, name, kept)

    def canonical(self, d: DimLike) -> DimLike:
        """Return the size after the learned equalities."""
        if not self.equalities or isinstance(d, int):
            return d
        memo = self._canonical  # taken first: another thread may learn an equality meanwhile, and start another one
        found = memo.get(d)
        if found is None:
            found = memo[d] = d.substitute(self.equalities)
        return found

    def knows(self, names: Iterable[str]) -> bool:
        """Tell whether one of the variables is a size of this trace."""
        return any(name in self.examples or name in self.unknown for name in names)

    def decide(self, a: DimLike, op: str, b: DimLike) -> bool:
        """Answer `a op b`: by learned equalities and bounds, else by the examples with a guard.

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
        """Let later questions be answered by what is known to hold."""
        if op == "==":
            self._learn(a, b)
        elif op != "!=":
            low, high = (b, a) if op[0] == ">" else (a, b)
            self.facts.add(self.canonical(high - low - (0 if op.endswith("=") else 1)))
        elif nonnegative(a - b):
            self.facts.add(self.canonical(a - b - 1))

    def _answer(self, a: DimLike, op: str, b: DimLike) -> bool | None:
        """The answer from bounds, learned equalities and the equations of guards."""
        a, b = self.canonical(a), self.canonical(b)
        known = decide(a, op, b)
        if known is None:
            known = self._by_facts(a, op, b)
        if known is None and op in ("==", "!=") and self.facts.imply_zero(a - b):
            return op == "=="
        return known

    def _by_facts(self, a: DimLike, op: str, b: DimLike) -> bool | None:
        """The answer from sizes that are known not to be negative."""
        if op in ("==", "!="):
            apart = self.facts.imply(a - b - 1) or self.facts.imply(b - a - 1)
            return op == "!=" if apart else None
        d = a - b if op[0] == ">" else b - a
        if len(op) == 1:
            d -= 1
        return True if self.facts.imply(d) else False if self.facts.imply(-d - 1) else None

    def assume(self, a: DimLike, op: str, b: DimLike) -> None:
        """Rely on a condition from now on; it becomes a guard, which the program checks."""
        self.guards.append(Guard(a, op, b, _caller(), "assume()"))
        self._rely(a, op, b)

    def likely(self, a: DimLike, op: str, b: DimLike) -> bool:
        """Answer `a op b` as the examples have it, and record nothing; False where there is no example."""
        known = self._answer(a, op, b)
        if known is not None:
            return known
        left, right = self.example_of(a), self.example_of(b)
        return left is not None and right is not None and COMPARISONS[op](left, right)

    def example_of(self, d: DimLike) -> int | None:
        """Return the example of a size; ``None`` where there is none."""
        examples = self._known_examples()
        if isinstance(d, Dim) and any(n not in examples for n in d.variables):
            return None
        return evaluate(d, examples)

    def specialise(self, d: DimLike, reason: str) -> int:
        """Return the example of a size as a number, under the guard that it has this value.

        Raises:
            TracingError: sizes are not to be specialised (`strict`).
            InconclusiveDimError: a variable has no example size.
        """
        d = self.canonical(d)
        if isinstance(d, int):
            return d
        if self.strict:
            raise TracingError(
                f"{reason} makes a number of the size {d}{at_line()}, for which the program would be traced for each "
                "value of it; keep the size as it is, pass the number as a static argument, or allow it "
                "(strict_sizes=False)",
                size=str(d),
            )
        examples = self._known_examples()
        missing = sorted(n for n in d.variables if n not in examples)
        if missing:
            raise InconclusiveDimError(
                f"{reason} makes a number of the size {d}{at_line()}, but {', '.join(missing)} is known only when the "
                "program runs; keep the size as it is, or give the code a fixed bound and a mask",
                size=str(d),
            )
        n = evaluate(d, examples)
        self._decide(d, "==", n, reason)
        return n

    def _known_examples(self) -> Mapping[str, int]:
        """Examples of this trace and of those around it."""
        around = [d.examples for d in reversed(ACTIVE.get()) if d is not self]
        return ChainMap(self.examples, *around) if around else self.examples

    def _learn(self, a: DimLike, b: DimLike) -> None:
        a, b = _solved(self.canonical(a), self.canonical(b))
        sides = [(v, other) for v, other in ((a, b), (b, a)) if (name := _name_of(v)) and not _occurs(name, other)]
        if not sides:
            self.facts.add_zero(a - b)
            return
        if len(sides) > 1:
            # The later variable gives way: sizes of earlier arguments name the program's sizes.
            order = {name: i for i, name in enumerate(self._known_examples())}
            sides.sort(key=lambda side: order.get(str(side[0]), len(order)))
        v, other = sides[-1]
        name = str(v)
        known = {n: d.substitute({name: other}) if _occurs(name, d) else d for n, d in self.equalities.items()}  # type: ignore[union-attr]
        self.equalities = {**known, name: other}
        self._canonical = {}
        self.facts.rewrite(name, self.canonical)


ACTIVE: Final[ContextVar[tuple[Decisions, ...]]] = ContextVar("tenferro_decisions", default=())
"""The traces that are going on, the innermost last."""


def inconclusive(a: DimLike, op: str, b: DimLike, why: str, data: bool = False) -> InconclusiveDimError:
    if data:
        return InconclusiveDimError(
            f"cannot decide {a} {op} {b}{at_line()}: {why}; state it with tr.assume({a} {op} {b}), branch with "
            "tr.cond, or compute on all entries with a mask",
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
    """Return the name of a bare variable, else an empty text."""
    if isinstance(d, Dim) and len(d.terms) == 1:
        (monomial, coefficient), *_ = d.terms
        if coefficient == 1 and len(monomial) == 1:
            return monomial[0].name
    return ""


def _solved(a: DimLike, b: DimLike) -> tuple[DimLike, DimLike]:
    """Return n and 5 for 2*n + 1 and 11, an equation of one variable; other sides as they are."""
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
    """Return file:line of the innermost frame outside tenferro."""
    frame = sys._getframe(1)
    while frame is not None and str(frame.f_globals.get("__name__", "")).startswith("tenferro_"):
        if frame.f_back is None:
            return ""
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"
