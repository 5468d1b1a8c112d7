"""`Facts`: sizes known to be nonnegative, and sizes known to be zero.

Only facts that share a variable with a question are considered, and a proof is attempted only if no sample refutes
it, so that the cost of a question hardly depends on the number of facts.
"""

from collections.abc import Callable, Iterator
from typing import Any

from ._dims import Dim, DimLike, divisible, nonnegative
from ._poly import Samples, as_poly, samples


class Facts:
    """Inequalities and equations from the guards of a trace.

    >>> from tenferro_tensor_core import dim
    >>> n, m = dim("n"), dim("m")
    >>> facts = Facts()
    >>> facts.add(n - m - 2)
    >>> facts.imply(n - m), facts.imply(n - 2), facts.imply(m - n)
    (True, True, False)
    """

    __slots__ = ("_bounds", "_users", "_zeros")

    def __init__(self) -> None:
        self._bounds: dict[Any, tuple[Dim, Samples]] = {}
        # Keyed by the non-constant terms: of n - 2 >= 0 and n - 5 >= 0 the stronger one is kept.
        self._users: dict[str, dict[Any, None]] = {}
        # Keyed by the variable with the fewest entries: a multiple of a size contains all of its variables.
        self._zeros: dict[str, dict[Dim, Samples]] = {}

    def __copy__(self) -> "Facts":
        new = Facts()
        new._bounds = dict(self._bounds)
        new._users = {name: dict(forms) for name, forms in self._users.items()}
        new._zeros = {name: dict(zeros) for name, zeros in self._zeros.items()}
        return new

    def add(self, d: DimLike) -> None:
        """Add the fact d >= 0."""
        if isinstance(d, int):
            return
        form = tuple([term for term in d.terms if term[0]])
        known = self._bounds.get(form)
        if known is not None and not nonnegative(known[0] - d):
            return
        self._bounds[form] = d, samples(as_poly(d))
        for name in d.variables:
            self._users.setdefault(name, {})[form] = None

    def add_zero(self, d: DimLike) -> None:
        """Add the fact d == 0."""
        if isinstance(d, Dim):
            name = min(sorted(d.variables), key=lambda name: len(self._zeros.get(name, ())))
            self._zeros.setdefault(name, {})[d] = samples(as_poly(d))

    def imply(self, d: DimLike) -> bool:
        """Whether d >= 0 follows from one of the facts."""
        if isinstance(d, int):
            return d >= 0
        values = samples(as_poly(d))
        return any(
            all(x is None or y is None or x >= y for x, y in zip(values, known)) and nonnegative(d - fact)
            for fact, known in self._about(d)
        )

    def imply_zero(self, d: DimLike) -> bool:
        """Whether d == 0 follows, because d is a multiple of a size that is zero."""
        if isinstance(d, int) or not self._zeros:
            return d == 0
        values = samples(as_poly(d))
        return any(
            all(x is None or y is None or (x % y == 0 if y else x == 0) for x, y in zip(values, known))
            and divisible(d, zero)
            for name in d.variables
            for zero, known in list(self._zeros.get(name, {}).items())  # another thread may add
        )

    def rewrite(self, name: str, canonical: Callable[[DimLike], DimLike]) -> None:
        """Replace the facts that contain a variable by their canonical forms."""
        for form in list(self._users.pop(name, ())):
            fact, _ = self._bounds.pop(form, (0, ()))
            self.add(canonical(fact))
        for found in list(self._zeros.values()):
            for zero in [z for z in list(found) if name in z.variables]:
                del found[zero]
                self.add_zero(canonical(zero))

    def _about(self, d: Dim) -> Iterator[tuple[Dim, Samples]]:
        """The inequalities that share a variable with a size."""
        forms = {form: None for name in sorted(d.variables) for form in list(self._users.get(name, ()))}
        found = (self._bounds.get(form) for form in forms)
        return (known for known in found if known is not None)
