"""`Derivative`: the derivative of an op for given specs, first by its rule, later by steps traced from the rule.

`_vjp` and `_jvp` implement its two modes.
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
"""Uses of a rule before it is traced; tracing costs about as much as 50 uses."""
TRACES_BEFORE_BACKOFF: Final = 64
"""Traces of one primitive after which its shapes are assumed to keep changing."""
TRACE_USES_AFTER_BACKOFF: Final = 16
"""Uses of a rule before it is traced, from then on."""
LITERAL_TRACES_MAX: Final = 8
"""Traces of one rule with a Python number as a literal; afterwards the number becomes an input."""
VARIANTS_MAX: Final = 64
"""Traces of one rule; further variants apply the rule directly."""

Variant = tuple[tuple[bool, ...], Any]
"""Which of several cotangents are nonzero, and the key of the Python numbers among the inputs."""

PLAIN: Final[Variant] = ((), ())

Run = Callable[[Any, Any], Any]


class Derivative:
    """A rule, or the steps traced from it, as a function: ``derivative(given, saved)``.

    Attributes:
        site: the op and its operand specs.
        key: key of its entry among those of the op.
        head: the function to call: the steps of the newest variant, which pass other variants on, finally to
            `by_variant`.
        steps: steps by variant; the rule itself where it cannot be traced.
        uses: number of calls that found no steps.
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
        """The op, for error messages."""
        return self.site.op

    def __call__(self, given: Any, saved: Any) -> Any:
        return self.head(given, saved)

    def by_variant(self, given: Any, saved: Any) -> Any:
        """Call the steps for these inputs, tracing them when due, or apply the rule."""
        variant = self.variant(given, saved)
        run = self.steps.get(variant)
        return (self._run_for(variant, given, saved) if run is None else run)(given, saved)

    def variant(self, given: Any, saved: Any) -> Variant:
        """The key of the steps for these inputs, besides their specs."""
        raise NotImplementedError

    def by_rule(self, given: Any, saved: Any) -> Any:
        """Apply the rule directly; works on values of every level."""
        raise NotImplementedError

    def derive(self, variant: Variant, numbers: Mapping[int, Any] | None) -> Derivation | None:
        """The rule as a program; ``None`` if the rule reads values of an enclosing trace.

        Args:
            variant: the variant.
            numbers: Python numbers by position, which become literals of the program; ``None`` to make them inputs.

        Raises:
            TracingError: the rule cannot be traced.
        """
        raise NotImplementedError

    def numbers(self, given: Any, saved: Any) -> dict[int, Any]:
        """The Python numbers among the inputs, by position."""
        raise NotImplementedError

    def entry(self, before: Entry, head: Run) -> Entry:
        """The entry that calls `head`, as a replacement of `before`."""
        raise NotImplementedError

    def _lead(self, head: Run) -> None:
        """Make `head` the function to call, also in the entries of the op."""
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
        if numbers and len(self.steps) >= LITERAL_TRACES_MAX:
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
            return self.by_rule  # symbolic sizes belong to a trace, whose values are not concrete
        self.traces[site.op.primitive] += 1
        try:
            d = self.derive(variant, numbers)
        except TracingError:
            return self.by_rule
        return self.by_rule if d is None else make_steps(site.op, d, self.otherwise(d))

    def otherwise(self, d: Derivation) -> Run | None:
        """The function that steps call for values that are not concrete; ``None`` to run the same program op by op."""
        return self.by_rule if d.numbers else None

    def _due(self) -> bool:
        backoff = self.traces[self.site.op.primitive] >= TRACES_BEFORE_BACKOFF
        return self.uses >= (TRACE_USES_AFTER_BACKOFF if backoff else TRACE_USES)


def key_of_numbers(numbers: list[Any]) -> Any:
    """A key of Python numbers that distinguishes 1, 1.0 and True, and 0.0 and -0.0."""
    return key_of(tuple(numbers)) if numbers else ()
