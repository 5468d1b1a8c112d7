"""Logarithms, square roots and signs of matrices, and the terms of their derivatives; see `tenferro_linalg.functions`.

The same algorithms as the kernels, on the same chains of blocks, one matrix of a stack after the other, with XLA
loops. Roots and logarithms need Schur forms, which JAX supports only on the CPU.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tenferro_linalg.functions import _roots, _sign
from tenferro_linalg.functions._chains import Chain
from tenferro_linalg.stablehlo._equations import triangular_sylvester
from tenferro_linalg.stablehlo._factors import inv, not_finite
from tenferro_linalg.stablehlo._similarity import each, triangular
from tenferro_linalg.stablehlo._turns import adjoint

EPS = _roots.EPS


def matrix_function(library: Any, x: Any, *factors: Any, kind: str) -> Any:
    """The term of `factors` of a function at x."""
    xp, order, n = library("numpy"), len(factors), x.shape[-1]
    dtype = np.result_type(x.dtype, *[e.dtype for e in factors])
    if not x.size:
        return x.astype(dtype), xp.asarray(False)
    blocks = [e.astype(dtype) for e in (x, *factors)]
    signature = ",".join(["(n,n)"] * (order + 1)) + "->(n,n),()"
    if kind == "sign":
        out, bad = each(library, lambda *blocks: _signed(library, *blocks), signature)(*blocks)
    else:
        wide = [e.astype(np.complex128) for e in blocks]
        t, q = library("lax.linalg").schur(wide[0])
        qh = adjoint(q)
        inner = [xp.triu(t), *[qh @ e @ q for e in wide[1:]]]
        one = _logarithm if kind == "log" else _root
        out, bad = each(library, lambda *blocks: one(library, *blocks), signature)(*inner)
        out = q @ out @ qh
        if dtype.kind != "c":
            # Derivatives need no test: the value has passed it, and they may vanish up to rounding.
            if not order:
                size = xp.maximum(xp.abs(out).max(axis=(-2, -1)), 1.0 if kind == "log" else 0.0)
                bad = bad | (xp.abs(out.imag).max(axis=(-2, -1)) > EPS**0.5 * size)
            out = out.real
        out = out.astype(dtype)
    assert out.shape[-1] == n
    return out, not_finite(xp, *blocks, out) | bad.any()


def _full(library: Any, x: Any, factors: Any) -> Chain:
    """A chain with all blocks present, so that loops carry a fixed number."""
    chain = Chain.bidiagonal(x, factors)
    zero = library("numpy").zeros_like(x)
    return Chain(x, {place: chain.above.get(place, zero) for place in chain.places()}, chain.order)


def _flat(chain: Chain) -> tuple[Any, ...]:
    return (chain.diagonal, *[chain.above[place] for place in chain.places()])


def _chain(blocks: Any, order: int) -> Chain:
    empty = Chain(blocks[0], {}, order)
    return Chain(blocks[0], dict(zip(empty.places(), blocks[1:], strict=True)), order)


def _with_diagonal(xp: Any, x: Any, values: Any) -> Any:
    return xp.where(xp.eye(x.shape[-1], dtype=bool), values, x)


def _zeros(xp: Any, t: Any) -> Any:
    """Which eigenvalues of a triangular matrix vanish up to rounding."""
    return xp.abs(xp.diagonal(t)) <= len(t) * EPS * xp.abs(t).max()


def _snapped(xp: Any, values: Any, size: Any) -> Any:
    """Eigenvalues, with negative ones moved exactly to the upper side of the branch cut."""
    on = (values.real < 0) & (xp.abs(values.imag) <= len(values) * EPS * size)
    return xp.where(on, values.real + 0j, values)


def _triangular_root(library: Any, t: Any, zero: Any) -> tuple[Any, Any]:
    """The root of a triangular matrix, and whether zero eigenvalues are in a Jordan block."""
    xp, n = library("numpy"), len(t)
    size = xp.abs(t).max()
    values = xp.sqrt(xp.where(zero, 0, _snapped(xp, xp.diagonal(t), size)))
    rows, identity = xp.arange(n), xp.eye(n, dtype=t.dtype)

    def column(j: Any, state: tuple[Any, Any]) -> tuple[Any, Any]:
        root, bad = state
        # Between zero eigenvalues there is no quotient: the right-hand side must vanish there.
        free = zero & zero[j] & (rows < j)
        inside = (rows < j) & ~free
        matrix = xp.where(inside[:, None], xp.where(rows < j, root, 0) + values[j] * identity, identity)
        right = xp.where(rows < j, t[:, j], 0)
        found = triangular(library, matrix, xp.where(inside, right, 0))
        rest = xp.where(free, right - root @ found, 0)
        bad = bad | (xp.abs(rest) > 16 * n * EPS * size).any()
        return root.at[:, j].set(xp.where(rows < j, found, root[:, j])), bad

    return library("lax").fori_loop(1, n, column, (identity * values, xp.asarray(False)))


def _root_above(library: Any, x: Chain, root: Any) -> Chain:
    """The blocks above the diagonal: ``R X + X R`` is the block minus products of nearer ones."""
    out = Chain(root, {}, x.order)
    for i, j in x.places():
        known = x.above[i, j]
        for m in range(i + 1, j):
            known = known - out.above[i, m] @ out.above[m, j]
        out.above[i, j] = triangular_sylvester(library, root, root, known)[0]
    return out


def _root(library: Any, x: Any, *factors: Any) -> tuple[Any, Any]:
    xp = library("numpy")
    zero = _zeros(xp, x)
    root, bad = _triangular_root(library, x, zero)
    if not factors:
        return root, bad
    return _root_above(library, _full(library, x, factors), root).corner, bad | zero.any()


def _logarithm(library: Any, t: Any, *factors: Any) -> tuple[Any, Any]:
    xp, order, n = library("numpy"), len(factors), len(t)
    bad, identity, none = _zeros(xp, t).any(), xp.eye(n, dtype=t.dtype), xp.zeros(n, bool)
    values = _snapped(xp, xp.diagonal(t), xp.abs(t).max())

    def far(state: Any) -> Any:
        distance = xp.abs(state[1] - identity).sum(axis=0).max()
        return (distance > _roots.PADE_MAX_NORM) & (state[0] < _roots.MAX_ROOTS)

    def rooted(state: Any) -> Any:
        count, *blocks = state
        root, _ = _triangular_root(library, blocks[0], none)
        return (count + 1, *_flat(_root_above(library, _chain(blocks, order), root)))

    start = _flat(_full(library, _with_diagonal(xp, t, values), factors))
    count, *blocks = library("lax").while_loop(far, rooted, (xp.asarray(0), *start))
    less = _chain(blocks, order).plus(-identity)
    less.diagonal = _with_diagonal(xp, less.diagonal, _less_one(library, values, count))
    out: Any = None
    for node, weight in zip(*_roots._fractions(), strict=True):
        down = (less * node).plus(identity)
        part = down.solved(less, lambda right, down=down: triangular(library, down.diagonal, right)) * weight
        out = part if out is None else out + part
    out = out * xp.exp2(count.astype(np.float64))
    out.diagonal = _with_diagonal(xp, out.diagonal, xp.log(values))
    return out.corner, bad


def _less_one(library: Any, values: Any, roots: Any) -> Any:
    """``values ** (1 / 2**roots) - 1`` without cancellation (Al-Mohy 2012)."""
    xp = library("numpy")
    first = xp.sqrt(values)

    def step(k: Any, state: tuple[Any, Any]) -> tuple[Any, Any]:
        root, product = state
        root = xp.sqrt(root)
        return root, product * (1 + root)

    _, product = library("lax").fori_loop(1, xp.maximum(roots, 1), step, (first, xp.ones_like(first)))
    return xp.where(roots > 0, (first - 1) / product, values - 1)


def _signed(library: Any, *blocks: Any) -> tuple[Any, Any]:
    """The sign of a chain by Newton's iteration, scaled by norms."""
    xp, order = library("numpy"), len(blocks) - 1
    eps, identity = float(np.finfo(blocks[0].dtype).eps), xp.eye(blocks[0].shape[-1], dtype=blocks[0].dtype)
    x = _full(library, blocks[0], blocks[1:])
    whole = Chain(identity, {place: xp.zeros_like(identity) for place in x.places()}, order)

    def size(x: Any) -> Any:
        return xp.abs(x).max()

    def goes_on(state: Any) -> Any:
        return (state[1] < _sign.MAX_STEPS) & (state[0] <= 1 + order)

    def step(state: Any) -> Any:
        close, count, _, *blocks = state
        x = _chain(blocks, order)
        inner, _ = inv(library, x.diagonal, what="signm")
        inverse = x.solved(whole, lambda right: inner @ right)
        change = size(x.diagonal - inverse.diagonal)
        far = change > 0.02 * size(x.diagonal)
        scale = xp.where(far, xp.sqrt(size(inverse.diagonal) / size(x.diagonal)), 1)
        x = x * (scale / 2) + inverse * (0.5 / scale)
        near = ~far & (change <= eps**0.5 * size(x.diagonal))
        return (xp.where(near, close + 1, 0), count + 1, change, *_flat(x))

    start = x * (1 / size(blocks[0]))
    close, _, _, *found = library("lax").while_loop(
        goes_on, step, (xp.asarray(0), xp.asarray(0), size(blocks[0]), *_flat(start))
    )
    return _chain(found, order).corner, close <= 1 + order
