"""`Derivative`: the derivative of an op for given specs, by its rule at first, then by steps traced from it.

`_vjp` and `_jvp` are the two modes of it: what they trace, and what they call inputs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Final

from tenferro_ad._apply import CallSite
from tenferro_ad._steps import Derivation, make_steps
from tenferro_tensor import Primitive, Spec
from tenferro_tensor.calls import Entry, Steps, state
from tenferro_tensor.tables import TABLES, EntryTable
from tenferro_tensor_core import TracingError, key_of

TRACE_USES: Final = 2
"""A rule is traced when it is used for so many times, which costs about 50 uses as it is written."""
MANY_TRACES: Final = 64
"""With so many traces of one primitive, the shapes that it meets are taken to be ever new..."""
TRACE_USES_OF_MANY: Final = 16
"""...and a rule is traced only when it is used for so many times."""
LITERAL_TRACES: Final = 8
"""Number of values of Python numbers for which one rule is traced with the number as a literal."""
VARIANTS_MAX: Final = 64
"""Number of traces of one rule; what differs from all of them goes by the rule as it is written."""

Variant = tuple[tuple[bool, ...], Any]
"""Which of several cotangents are there, and the key of the Python numbers among the inputs."""

PLAIN: Final[Variant] = ((), ())

Run = Callable[[Any, Any], Any]


class Derivative:
    """Calls of a rule, or of steps traced from it: ``derivative(given, saved)``.

    Attributes:
        site: the op and its circumstances.
        key: key of its entry among those of the op.
        head: what is called: the steps of one variant, which hand on what they are not for, at last to `by_variant`.
        steps: steps by variant; the rule itself where it cannot be traced.
        uses: how often it was called while there were no steps.
    """

    __slots__ = ("head", "key", "site", "steps", "uses")
    traces: ClassVar[Counter[Primitive]]
    """Number of traces by primitive, in this mode."""

    def __init__(self, site: CallSite, key: tuple[Any, ...]) -> None:
        self.site, self.key = site, key
        self.head: Run = self.by_variant
        self.steps: dict[Variant, Run] = {}
        self.uses = 0

    @property
    def op(self) -> Any:
        """The op, which errors name."""
        return self.site.op

    def __call__(self, given: Any, saved: Any) -> Any:
        return self.head(given, saved)

    def by_variant(self, given: Any, saved: Any) -> Any:
        """Call the steps for these inputs, which are traced when they are due, or apply the rule."""
        variant = self.variant(given, saved)
        run = self.steps.get(variant)
        return (self._run_for(variant, given, saved) if run is None else run)(given, saved)

    def variant(self, given: Any, saved: Any) -> Variant:
        """What the steps for these inputs depend on besides specs."""
        raise NotImplementedError

    def by_rule(self, given: Any, saved: Any) -> Any:
        """Apply the rule as it is written; works on values of every kind."""
        raise NotImplementedError

    def derive(self, variant: Variant, numbers: Mapping[int, Any] | None) -> Derivation | None:
        """The rule as a program; ``None`` for a rule that reads values of a trace outside of it.

        Args:
            variant: which inputs there are.
            numbers: Python numbers by position, which are literals of the program; or ``None``, where they are inputs.

        Raises:
            TracingError: the rule cannot be traced.
        """
        raise NotImplementedError

    def numbers(self, given: Any, saved: Any) -> dict[int, Any]:
        """The Python numbers among the inputs, by position."""
        raise NotImplementedError

    def entry(self, before: Entry, head: Run) -> Entry:
        """The entry that calls `head`; it replaces another."""
        raise NotImplementedError

    def _lead(self, head: Run) -> None:
        """Call `head` from now on, and let entries call it straight away."""
        before, self.head = self.head, head
        for table in (self.site.op, *[t for t in TABLES if isinstance(t, EntryTable)]):
            entry = table.entries.get(self.key)
            if entry is not None and any(f is self or f is before for f in (entry.vjp, entry.run)):
                table.remember(self.entry(entry, head))

    def _run_for(self, variant: Variant, given: Any, saved: Any) -> Run:
        self.uses += 1
        if state.open_scopes or not self._due():
            return self.by_rule
        numbers = self.numbers(given, saved)
        literals: Mapping[int, Any] | None = numbers
        if numbers and len(self.steps) >= LITERAL_TRACES:
            variant, literals = (variant[0], None), None
        run = self.steps.get(variant)
        if run is None:
            run = self.by_rule if len(self.steps) >= VARIANTS_MAX else self._traced(variant, literals)
            self.steps[variant] = run
            if isinstance(run, Steps) and literals is not None and not self.site.many:
                self._lead(
                    Steps(run.op, run.inputs, run.constants, run.calls, run.outputs, self.head) if numbers else run
                )
        return run

    def _traced(self, variant: Variant, numbers: Mapping[int, Any] | None) -> Run:
        site = self.site
        if any(isinstance(s, Spec) and s.symbolic for s in (*site.specs, *site.outs)):
            return self.by_rule  # extents belong to a trace, whose values are not concrete
        self.traces[site.op.primitive] += 1
        try:
            d = self.derive(variant, numbers)
        except TracingError:
            return self.by_rule
        return self.by_rule if d is None else make_steps(site.op, d, self.otherwise(d))

    def otherwise(self, d: Derivation) -> Run | None:
        """What steps call for values that are not concrete; ``None`` for the same program, op by op."""
        return self.by_rule if d.numbers else None

    def _due(self) -> bool:
        few = self.traces[self.site.op.primitive] < MANY_TRACES
        return self.uses >= (TRACE_USES if few else TRACE_USES_OF_MANY)


def key_of_numbers(numbers: list[Any]) -> Any:
    """The key of Python numbers, which tells 1, 1.0 and True apart, and 0.0 and -0.0."""
    return key_of(tuple(numbers)) if numbers else ()
