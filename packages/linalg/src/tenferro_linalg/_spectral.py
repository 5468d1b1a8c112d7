"""Functions of Hermitian matrices that expose no vectors: exact derivatives of any order at every spectrum.

For ``F = V diag(f(w)) V*``, with ``M_k = V* E_k V`` (Daleckii and Krein 1965)::

    D^p F [E_1, ..., E_p] = sum over orders of V S(M_1, ..., M_p) V*
    S(M_1, ..., M_p)_il = sum_jk.. f[w_i, w_j, w_k, ..., w_l] (M_1)_ij (M_2)_jk ... (M_p)_.l

with divided differences of f. One primitive computes the term of one order, and this family is closed: differentiating
by the matrix inserts another factor, in each position; and since divided differences do not depend on the order of
their points, the cotangent of a factor is the term of the others and of the outer cotangent, in cyclic order. The
operands w and V are constants; all derivatives by the matrix go through the matrix itself.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from tenferro_linalg._algebra import adjoint, block, cj, mm, re, scaled, sym, to, total
from tenferro_linalg._divided import SpectralSums, data
from tenferro_linalg._eigh import eigh_
from tenferro_linalg._operands import matrices, show
from tenferro_runtime.batching import all_with_lanes, lane_by_lane
from tenferro_runtime.extension import General, Program, Registry, ShapeError, Spec, primitive
from tenferro_runtime.tracing.elementwise import along_captured, recorded
from tenferro_tensor import Array
from tenferro_tensor.catalog import pad, reduce_sum, stop_gradient
from tenferro_tensor_core import promote
from tenferro_tensor_core.tracebacks import boundary


@boundary
def spectral_function(x: Any, f: Callable[[Any], Any], /) -> Array:
    """Apply an element-wise function to the eigenvalues of Hermitian matrices: ``V @ diag(f(w)) @ V*``.

    Differentiable to any order and at full precision, at equal eigenvalues too, whatever the loss; the same product
    written with `eigh` is differentiated as a limit (Daleckii and Krein 1965).

    Args:
        x: Hermitian matrices (..., n, n); of other matrices, the Hermitian part.
        f: element-wise function of real arrays, real or complex valued, made of differentiable operations.

    Returns:
        Matrices (..., n, n); complex if `x` or the values of `f` are.

    Raises:
        ShapeError: `f` changes the shape.
        NumericalError: an entry is not finite, or LAPACK does not converge.

    See also: `funm` for general matrices, `singular_function`.

    >>> spectral_function([[2.0, 0.0], [0.0, 9.0]], lambda w: w * w)
    Tensor([[ 4.,  0.],
            [ 0., 81.]])
    """
    x = matrices("spectral_function", x, square=True)
    w, v = eigh_(stop_gradient(x), basis="plain")
    if not x.level:  # f may capture differentiated values
        return _product(v, _applied(f, w))
    program, captured = recorded(f, w.spec, "spectral_function")
    return _term(x, w, v, program, captured, ())


@boundary
def singular_function(x: Any, f: Callable[[Any], Any], /) -> Array:
    """Apply an odd element-wise function to the singular values of matrices: ``U @ diag(f(S)) @ Vh``.

    Differentiable to any order and at full precision, at equal and at zero singular values too, whatever the loss; the
    same product written with `svd` is differentiated as a limit. Computed as ``f`` of the Hermitian matrix ``[[0, A],
    [A*, 0]]``, whose eigenvalues are S, -S and 0.

    Args:
        x: matrices (..., m, n), real or complex.
        f: element-wise function of real arrays of both signs, such as ``s**3`` or ``sin``; of a function that is not
            odd, the odd part ``(f(s) - f(-s)) / 2`` is applied.

    Returns:
        Matrices (..., m, n) of the dtype of `x`.

    Raises:
        ShapeError: `f` changes the shape.
        NumericalError: an entry is not finite, or LAPACK does not converge.

    >>> singular_function([[2.0, 0.0], [0.0, 3.0]], lambda s: s * s * s)[1, 1].round()
    Tensor(27.)
    """
    x = matrices("singular_function", x)
    m, n = x.spec.shape[-2:]
    zero = (0,) * (x.ndim - 2)
    corner = pad(x, 0.0, low=(*zero, 0, m), high=(*zero, n, 0), interior=(0,) * x.ndim)
    # `spectral_function` takes the Hermitian part, which halves the corner and mirrors it.
    return block(spectral_function(corner * 2.0, f), row=(0, m), column=(m, m + n))


def _applied(f: Callable[[Any], Any], w: Any) -> Any:
    g = f(w)
    if g.spec.shape != w.spec.shape:
        raise ShapeError(
            f"spectral_function: f maps numbers element by element, but took shape {show(w.shape)} "
            f"to {show(g.shape)}; reduce the result instead",
            shapes=(w.shape, g.shape),
        )
    return g


def _product(v: Any, values: Any) -> Any:
    return mm(scaled(v, values), adjoint(v))


def _term(x: Any, w: Any, v: Any, program: Program, captured: tuple[Any, ...], factors: Sequence[Any]) -> Any:
    """``V S(M_1, ..., M_p) V*`` for the factors E."""
    given = data(w, program, tuple([stop_gradient(c) for c in captured]), len(factors))
    order, count = len(factors), len(captured)
    if not order:
        return spectral_value_(x, w, v, *given, *captured, program=program, order=0, captured=count)
    return spectral_term_(x, w, v, *given, *captured, *factors, program=program, order=order, captured=count)


@primitive(family="tenferro-linalg.spectral_value.v1", extension="linalg")
def spectral_value_(
    x: Spec,
    w: Spec,
    v: Spec,
    values: Spec,
    *captured_: Spec,
    program: Program,
    order: int,
    captured: int,
    sizes: tuple[()] = (),
) -> Spec:
    """The term of order 0, ``V diag(values) V*``."""
    return x.with_(dtype=promote(x.dtype, values.dtype))


@primitive(family="tenferro-linalg.spectral_term.v1", extension="linalg")
def spectral_term_(
    x: Spec,
    w: Spec,
    v: Spec,
    values: Spec,
    *more: Spec,
    program: Program,
    order: int,
    captured: int,
    sizes: tuple[()] = (),
) -> Spec:
    """``V S V*``; `more` are the other data of the sums, the captured values of f, and the factors E.

    `program` is f, of a vector and the captured values. It has its own symbolic sizes, so `sizes` is empty. Data are
    constants of differentiation: derivatives go through x, the captured values and the factors.
    """
    return x.with_(dtype=promote(x.dtype, values.dtype, *[e.dtype for e in more[len(more) - order :]]))


def _value_kernel(la: Any, ins: Any, outs: Any, **_: Any) -> Any:
    return lambda x, w, v, values, *captured: (v * values[..., None, :]) @ v.conj().swapaxes(-1, -2)


def _term_kernel(la: Any, ins: Any, outs: Any, *, order: int, captured: int, **_: Any) -> Any:
    dtype = outs[0].dtype

    def run(x: Any, w: Any, v: Any, values: Any, *more: Any) -> Any:
        vh = v.conj().swapaxes(-1, -2)
        group, place, *derivatives = more[: 2 + order]
        sums = SpectralSums(la.xp, w, values, group, place, derivatives)
        inner = sums.of([vh @ e @ v for e in more[2 + order + captured :]])
        return (v @ inner @ vh).astype(dtype, copy=False)

    return run


class _Parts(NamedTuple):
    """The operands of a term by role; `data` is the number of unnamed ones."""

    x: Any
    w: Any
    v: Any
    captured: tuple[Any, ...]
    factors: tuple[Any, ...]
    data: int


def _parts(operands: Any, order: int, captured: int) -> _Parts:
    count = 1 if not order else 3 + order
    rest = operands[3 + count :]
    return _Parts(operands[0], operands[1], operands[2], tuple(rest[:captured]), tuple(rest[captured:]), count)


def _jvp(primals: Any, tangents: Any, outs: Any, *, program: Any, order: int, captured: int, sizes: Any) -> tuple[Any]:
    x, w, v, given, factors, _ = _parts(primals, order, captured)
    dx, _, _, dgiven, dfactors, _ = _parts(tangents, order, captured)
    found = []
    if dx is not None:
        h = sym(dx)
        found += [_term(x, w, v, program, given, (*factors[:k], h, *factors[k:])) for k in range(order + 1)]
    if any(d is not None for d in dgiven):
        moved = tuple([c * 0.0 if d is None else d for c, d in zip(given, dgiven) if c.spec.inexact])
        found.append(_term(x, w, v, along_captured(program), (*given, *moved), factors))
    for k, e in enumerate(dfactors):
        if e is not None:
            found.append(_term(x, w, v, program, given, (*factors[:k], e, *factors[k + 1 :])))
    change = total(*found)
    return (None if change is None else to(change, outs[0].dtype),)


def _vjp(
    primals: Any, outs: Any, cotangents: Any, *, program: Any, order: int, captured: int, sizes: Any
) -> tuple[Any, ...]:
    x, w, v, given, factors, count = _parts(primals, order, captured)
    g = cotangents[0]
    back = adjoint(g)

    def turned(*chain: Any) -> Any:
        return adjoint(_term(x, w, v, program, given, chain))

    by_x = total(*[turned(*factors[k:], back, *factors[:k]) for k in range(order + 1)])
    by_factors = [_fitting(turned(*factors[k + 1 :], back, *factors[:k]), e) for k, e in enumerate(factors)]
    by_captured = [_by_captured(g, x, w, v, program, given, factors, k) for k in range(captured)]
    return (_fitting(sym(by_x), x), *[None] * (2 + count), *by_captured, *by_factors)


def _by_captured(
    g: Any, x: Any, w: Any, v: Any, program: Any, given: tuple[Any, ...], factors: tuple[Any, ...], k: int
) -> Any:
    """The cotangent of a captured scalar: inner product of the result's cotangent with the term of f's derivative."""
    if not given[k].spec.inexact:
        return None
    along = along_captured(program)

    def rate(unit: complex) -> Any:
        units = tuple([c * 0.0 + (unit if i == k else 0.0) for i, c in enumerate(given) if c.spec.inexact])
        moved = _term(x, w, v, along, (*given, *units), factors)
        return reduce_sum(re(cj(g) * moved), axes=tuple(range(g.ndim)))

    found = to(rate(1.0), given[k].dtype)
    return found + to(rate(1j), given[k].dtype) * 1j if given[k].spec.cplx else found


def _fitting(x: Any, like: Any) -> Any:
    """A cotangent for an operand: its real part if the operand is real."""
    return to(x if like.spec.cplx else re(x), like.dtype)


def _lanes(size: Any, values: Any, batched: tuple[bool, ...], /, **metadata: Any) -> Any:
    """Matrices of all lanes form one stack; lanes that differ in captured values run one by one."""
    op = (spectral_term_ if metadata["order"] else spectral_value_).op(**metadata)
    first = 4 if not metadata["order"] else 6 + metadata["order"]
    captured = slice(first, first + metadata["captured"])
    if any(batched[captured]):
        return lane_by_lane(op, size, values, batched)
    stacked = all_with_lanes(size, values, batched)
    stacked[captured] = values[captured]
    return op(*stacked)


def register(registry: Registry) -> None:
    """Kernels and rules of the primitives of this module."""
    from tenferro_linalg._providers import kernels

    kernels(registry, spectral_value_, _value_kernel)
    kernels(registry, spectral_term_, _term_kernel)
    registry.expansion(spectral_value_, lambda x, w, v, values, *captured, **_: _product(v, values), keep=True)
    for p in (spectral_value_, spectral_term_):
        registry.rule(p, General(jvp=_jvp, vjp=_vjp))
        registry.batching(p, _lanes)
