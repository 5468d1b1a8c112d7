"""`laplacian`: the sum of second derivatives, in one forward run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np

from tenferro_ad._basis import bytes_of_one
from tenferro_ad._trees import Picked, as_values, split_aux
from tenferro_ad._zeros import zeros_like
from tenferro_ad.power_series._coefficients import Term
from tenferro_ad.power_series._colors import VariableColors
from tenferro_ad.power_series._mean import first_lane, mean_over_lanes
from tenferro_ad.power_series._series import Collapse
from tenferro_ad.power_series._slotted import SlotPlans, run_slotted
from tenferro_ad.power_series._taylor import SeriesRun
from tenferro_ad.sparse._coloring import Coloring
from tenferro_runtime import asarray, concat, eye, vmap
from tenferro_runtime.extension import optimise
from tenferro_runtime.ir import here
from tenferro_runtime.tracing import staged
from tenferro_runtime.trees import flatten, unflatten
from tenferro_tensor import Array, Spec, catalog
from tenferro_tensor_core import ArgumentError, GradientError

if TYPE_CHECKING:
    from tenferro_ad._signatures import F, P, R


@overload
def laplacian(
    f: F, argnums: int | Sequence[int] = ..., *, has_aux: Literal[False] = ..., with_jacobian: Literal[False] = ...,
    sparse: bool = ..., memory_budget: int | None = ...,
) -> F: ...  # fmt: skip
@overload
def laplacian(
    f: Callable[P, R], argnums: int | Sequence[int] = ..., *, has_aux: Literal[False] = ...,
    with_jacobian: Literal[True], sparse: bool = ..., memory_budget: int | None = ...,
) -> Callable[P, tuple[R, Any, R]]: ...  # fmt: skip
@overload
def laplacian(
    f: Callable[P, Any], argnums: int | Sequence[int] = ..., *, has_aux: bool, with_jacobian: bool = ...,
    sparse: bool = ..., memory_budget: int | None = ...,
) -> Callable[P, Any]: ...  # fmt: skip
def laplacian(
    f: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    *,
    has_aux: bool = False,
    with_jacobian: bool = False,
    sparse: bool = False,
    memory_budget: int | None = None,
) -> Callable[..., Any]:
    """Make a function that returns the Laplacian of `f`: the sum of its second derivatives in each real variable.

    One forward run propagates each intermediate value with its Jacobian and its Laplacian (Li et al., "A computational
    framework for neural network-based variational Monte Carlo with Forward Laplacian", 2023): the second-order Taylor
    series along all unit vectors, whose second coefficients, which enter linearly, are averaged after every operation.

    Args:
        f: a function of pytrees of arrays to a pytree of arrays.
        argnums: position of the argument that holds the variables, or several positions.
        has_aux: `f` returns a pair ``(value, aux)``; aux is then the last result.
        with_jacobian: return ``(value, jacobian, laplacian)``, which the run computes anyway.
        sparse: exploit the sparsity of derivatives, found once for each kind and size of arguments by tracing `f`.
            Variables without a common second derivative share a direction: two suffice for a chain of any length. If
            that does not help, each element keeps derivatives only in the variables that it depends on, if they are
            few. Index arrays that `f` closes over must not change after the first call.
        memory_budget: limit, in bytes, on the memory of one batch of directions; by default all are one batch.

    Returns:
        A function with the arguments of `f`. The Laplacian has the structure, shapes and dtypes of the value. The
        Jacobian's arrays have the axes of the value, then those of an argument, as in `jacfwd`.

    Raises:
        ArgumentError: with `memory_budget` or `sparse`, a size is symbolic.
        GradientError: an argument is not real floating point, or a value is not floating point.
        MissingRuleError: an operation has no derivative rule.
        TracingError: with `sparse`, `f` cannot be traced.

    See also:
        hessian: all second derivatives.
        taylor: derivatives of any order along a curve.

    >>> import tenferro_runtime as tr
    >>> from tenferro_ad import laplacian
    >>> laplacian(lambda x: tr.sum(x**3))(tr.asarray([1.0, 2.0]))
    Tensor(18.)
    """
    colors, plans = (VariableColors(f, argnums, has_aux), SlotPlans()) if sparse else (None, None)

    @wraps(f)
    def summed(*args: Any, **kwargs: Any) -> Any:
        picked = Picked(args, argnums, "laplacian")
        coloring = None if colors is None else colors.of(args, kwargs)
        count: Any = sum([x.spec.size for x in picked.values])
        shared = coloring is not None and not with_jacobian and 2 * coloring.number <= count
        run = _Directions(f, picked, kwargs, has_aux, coloring if shared else None)
        if plans is None or shared or memory_budget is not None:
            found = run.on_all(memory_budget)
        else:
            found = run.in_slots(plans)
        results = [run.unflattened(found)] if not with_jacobian else run.with_jacobian(found)
        results += [run.aux] if has_aux else []
        return results[0] if len(results) == 1 else tuple(results)

    return summed


class _Directions:
    """Runs a function with series along many directions.

    Attributes:
        values: leaves of the chosen arguments.
        outs: leaves of the function's value.
        tree: structure of the function's value.
        aux: the auxiliary result of the function.
    """

    outs: list[Any]
    tree: Any
    aux: Any

    def __init__(
        self, f: Callable[..., Any], picked: Picked, kwargs: dict[str, Any], has_aux: bool, colors: Coloring | None
    ) -> None:
        for x in picked.values:
            if x.spec.cplx:
                raise GradientError(
                    f"laplacian sums second derivatives in real variables{here()}, but an argument is {x.spec!r}; pass "
                    "its real and imaginary parts as arguments"
                )
        self.picked, self.values, self.has_aux, self.colors = picked, picked.values, has_aux, colors
        self.f: Callable[..., Any] = lambda *leaves: picked.call(f, leaves, kwargs)
        self.leaves = flatten(tuple(picked.values))[1]

    def on_all(self, memory_budget: int | None) -> list[tuple[Any, Any]]:
        """For each leaf of the value, its derivatives along all directions (leading axis), and its Laplacian."""
        count: Any = sum([x.spec.size for x in self.values]) if self.colors is None else self.colors.number
        if memory_budget is None:
            return self._along(0, count)
        if any(x.spec.symbolic for x in self.values):
            raise ArgumentError(
                f"a memory_budget needs sizes that are numbers{here()}; leave the budget out, or trace with numbers "
                "for the sizes"
            )
        most = max(1, memory_budget // max(1, self._bytes_of_one()))
        parts = [self._along(start, min(most, count - start)) for start in range(0, max(count, 1), most)]
        if len(parts) == 1:
            return parts[0]
        return [
            (concat([rows for rows, _ in leaf]), sum([term for _, term in leaf[1:]], leaf[0][1]))
            for leaf in zip(*parts, strict=True)
        ]

    def in_slots(self, plans: SlotPlans) -> list[tuple[Any, Any]]:
        """`on_all`, with derivatives only in the variables that each element depends on."""
        outs: Any = None
        others: Any = None
        other_tree: Any = None

        def outputs(*xs: Any) -> list[Any]:
            nonlocal outs, others, other_tree
            out, aux = split_aux(self.f(*xs), self.has_aux, "laplacian")
            outs, self.tree = flatten(out)
            others, other_tree = flatten(aux)
            arrays = [x for x in others if isinstance(x, Array)]
            return [*as_values(outs, self.tree, "the result of the function"), *arrays]

        made = staged(outputs, [x.spec for x in self.values])
        program = optimise(made.program)
        plan = plans.of(program, tuple([int(x.spec.size) for x in self.values]))
        found = run_slotted(program, plan, [*self.values, *made.captured])
        self.outs = [z for z, _, _ in found[: len(outs)]]
        self._require_floats()
        rest = iter([z for z, _, _ in found[len(outs) :]])
        self.aux = unflatten(other_tree, [next(rest) if isinstance(x, Array) else x for x in others])
        return [(rows, term) for _, rows, term in found[: len(outs)]]

    def _bytes_of_one(self) -> int:
        def push(*directions: Any) -> list[Any]:
            terms = self._series(directions, None)
            return [t for pair in terms for t in pair if t is not None]

        return bytes_of_one(push, [x.spec for x in self.values])

    def _along(self, start: Any, count: Any) -> list[tuple[Any, Any]]:
        """`on_all` for `count` directions from `start` on."""
        if isinstance(count, int):
            count = max(count, 1)  # without variables, use one zero direction
        directions, offset = [], 0
        for x in self.values:
            rows = self._rows(x.spec, offset, start, count)
            directions.append(catalog.reshape(rows, shape=(count, *x.spec.shape)))
            offset += x.spec.size

        def lanes(*directions: Any) -> Any:
            level = directions[0].level
            terms = self._series(directions, lambda term: mean_over_lanes(term, level))
            self.outs = [first_lane(z, level) for z in self.outs]
            pairs = [*zip(self.outs, terms, strict=True)]
            first = [zeros_like(z) if t is None else t for z, (t, _) in pairs]
            second = [zeros_like(z) if t is None else mean_over_lanes(t, level) for z, (_, t) in pairs]
            return first, second

        first, second = vmap(lanes, out_axes=(0, None))(*directions)
        return [(rows, term * (2 * count)) for rows, term in zip(first, second, strict=True)]

    def _rows(self, spec: Spec, offset: Any, start: Any, count: Any) -> Any:
        """The components of directions in a leaf, one direction per row."""
        if self.colors is None:
            return eye(count, spec.size, k=start - offset, dtype=spec.dtype, device=spec.place.device)
        own = self.colors.colors[offset : offset + spec.size]
        return asarray(own == np.arange(start, start + count)[:, None], dtype=spec.dtype, device=spec.place.device)

    def _series(self, directions: Sequence[Any], collapse: Collapse | None) -> list[tuple[Term, Term]]:
        curves = [[x, d] for x, d in zip(self.values, directions, strict=True)]
        found = SeriesRun(self.f, self.leaves, 2, "laplacian", self.has_aux, collapse).run(curves)
        self.outs, self.tree, self.aux = found.outs, found.tree, found.aux
        self._require_floats()
        return [(x[1], x[2]) for x in found.terms]

    def _require_floats(self) -> None:
        for z in self.outs:
            if not z.spec.inexact:
                raise GradientError(
                    f"laplacian needs a function with real or complex floating-point values, but one value is "
                    f"{z.spec!r}; leave it out of the result"
                )

    def unflattened(self, found: list[tuple[Any, Any]]) -> Any:
        """The Laplacians in the containers of the value."""
        return unflatten(self.tree, [term for _, term in found])

    def with_jacobian(self, found: list[tuple[Any, Any]]) -> list[Any]:
        """Value, Jacobian and Laplacian."""
        jacobian = [unflatten(self.picked.tree, self._columns(rows)) for rows, _ in found]
        return [unflatten(self.tree, self.outs), unflatten(self.tree, jacobian), self.unflattened(found)]

    def _columns(self, rows: Any) -> list[Any]:
        """The derivatives in each leaf, with the leaf's axes after those of the value."""
        turned = catalog.transpose(rows, permutation=(*range(1, rows.spec.ndim), 0))
        shape, columns, start = turned.spec.shape[:-1], [], 0
        for x in self.values:
            n = x.spec.size
            part = catalog.slice_(
                turned, start=(*[0] * len(shape), start), limit=(*shape, start + n), stride=(1,) * (len(shape) + 1)
            )
            columns.append(catalog.reshape(part, shape=(*shape, *x.spec.shape)))
            start += n
        return columns
