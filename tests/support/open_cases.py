"""For each primitive with kernels for all sizes: operands and metadata over the sizes n, m and k."""

import inspect
from typing import Any, NamedTuple

import numpy as np

import tenferro_runtime as tr
from tenferro_ad._checkpoint import checkpointed
from tenferro_einsum import _diagonal as einsum
from tenferro_fft import _primitives as fft
from tenferro_fft._trigonometric import trigonometric
from tenferro_linalg import (
    RowStructure,
    _algebra,
    _apart,
    _cholesky,
    _degeneracy,
    _det,
    _divided,
    _eig,
    _eigh,
    _masks,
    _nonnormal,
    _norms,
    _pinv,
    _prefixes,
    _qr,
    _solve,
    _spectral,
    _svd,
    _tridiagonal,
)
from tenferro_linalg.equations import _riccati, _schur_factors, _stein, _sylvester
from tenferro_linalg.factors import _ldl, _lstsq, _lu, _polar, _reflections, _subspaces
from tenferro_linalg.functions import _general, _parlett, _terms
from tenferro_linalg.krylov import _convergence
from tenferro_linalg.similarity import _hessenberg, _rotations, _schur
from tenferro_linalg.sparse import _primitives as sparse
from tenferro_linalg.structured import _banded, _toeplitz
from tenferro_linalg.truncation import _coupling, _ranks, _sketch
from tenferro_linalg.truncation import _eigh as _truncated_eigh
from tenferro_runtime.control_flow import rows
from tenferro_runtime.control_flow.primitives import cond, scan, while_loop
from tenferro_runtime.extension import call
from tenferro_runtime.tracing.elementwise import recorded
from tenferro_tensor import HOST, REGISTRY, Primitive, Spec
from tenferro_tensor import catalog as c
from tenferro_tensor.random_streams import (
    random_bits,
    random_exponential,
    random_loggamma,
    random_normal,
    random_uniform,
)
from tenferro_tensor_core import DTypeError, dim, dim_max, dim_min, floordiv

N, M, K = dim("n"), dim("m"), dim("k")
F8, C16, I8, B1 = (np.dtype(t) for t in ("float64", "complex128", "int64", "bool"))


class Case(NamedTuple):
    """One call: specs of operands with symbolic extents, and metadata with symbolic sizes."""

    primitive: Primitive
    ins: tuple[Spec, ...]
    params: dict[str, Any]


def of(*shape: Any, dtype: Any = F8) -> Spec:
    return Spec(shape, np.dtype(dtype))


def elementwise(p: Primitive) -> list[Case]:
    """On arrays of two axes, of each dtype that it takes."""
    params = dict.fromkeys(p.metadata, 1)
    if p is c.convert:
        params = {"dtype": np.dtype("float32")}
    found = []
    for dtype in (F8, C16, I8, B1):
        ins = tuple([of(N, M, dtype=B1 if i == p.chooser else dtype) for i in range(len(p.operands))])
        try:
            p.infer(*ins, **params)
        except DTypeError:
            continue
        found.append(Case(p, ins, params))
    assert found, p
    return found


def _bodies() -> dict[str, Any]:
    vector = of(N)
    double, square = (tr.trace(f, vector) for f in (lambda x: x + x, lambda x: x * x))
    return {
        "cond": {"branches": (double, square)},
        "while": {
            "cond": tr.trace(lambda i, x: i < 3, of(dtype=I8), vector),
            "body": tr.trace(lambda i, x: (i + 1, x * 0.5), of(dtype=I8), vector),
            "consts": 0,
            "max_steps": None,
        },
        "scan": {
            "body": tr.trace(lambda s, x: (s + x, s * 2.0), vector, vector),
            "consts": 0,
            "carry": 1,
            "length": M,
            "reverse": True,
        },
        "call": {"program": tr.trace(lambda x, y: tr.sin(x) * y, of(N, M), of(N, M)), "sizes": (N, M)},
    }


def _table() -> list[Case]:
    a, tall, square = of(N, M), of(3, N, M), of(3, N, N)
    small, big = dim_min(N, M), dim_max(N, M)
    vector, stack = of(N), of(3, N)
    bodies = _bodies()
    out = [
        Case(c.broadcast_in_dim, (of(N),), {"shape": (M, N), "dims": (1,)}),
        Case(c.broadcast_in_dim, (of(N, M),), {"shape": (M, 2, N), "dims": (2, 0)}),
        Case(c.reshape, (a,), {"shape": (N * M,)}),
        Case(c.transpose, (tall,), {"permutation": (2, 0, 1)}),
        Case(c.pad, (a, of()), {"low": (1, M), "high": (N, 0), "interior": (0, 2)}),
        Case(c.concatenate, (a, of(K, M), a), {"axis": 0}),
        Case(c.concatenate, (a,), {"axis": 0}),
        Case(c.reverse, (a,), {"axes": (1,)}),
        Case(c.slice_, (of(N + M, M + 1),), {"start": (N, 1), "limit": (N + M, M + 1), "stride": (1, 2)}),
        Case(c.update_slice, (of(N + M, M + 3), of(M, 2)), {"start": (N, 1), "stride": (1, 2), "mode": "set"}),
        Case(c.update_slice, (of(2 * N, M), of(N, M)), {"start": (0, 0), "stride": (2, 1), "mode": "add"}),
        Case(c.iota, (), {"shape": (N, M), "dtype": F8, "axis": 1, "place": HOST}),
        Case(c.dim_value, (), {"size": N * M, "place": HOST}),
        Case(c.define_size, (of(dtype=I8),), {"size": dim("u")}),
        Case(c.transfer, (a,), {"place": HOST}),
        Case(c.sort, (a,), {"axis": 0, "descending": True}),
        Case(c.argsort, (a,), {"axis": 1, "descending": False}),
        Case(c.argmax, (of(N + 1, M),), {"axis": 0}),
        Case(c.argmin, (of(N + 1, M),), {"axis": 0}),
        Case(c.searchsorted, (vector, a), {"side": "left"}),
        Case(rows, (of(4, N, M),), {}),
        Case(cond, (of(dtype=I8), vector), bodies["cond"]),
        Case(while_loop, (of(dtype=I8), vector), bodies["while"]),
        Case(scan, (vector, of(M, N)), bodies["scan"]),
        Case(call, (a, a), bodies["call"]),
        Case(checkpointed, (a, a), bodies["call"]),
        Case(einsum.take_diagonal, (of(N, M, N),), {"axes": (0, 2)}),
        Case(einsum.embed_diagonal, (a,), {"axes": (1, 2)}),
        Case(fft.r2c, (of(N, M + 1),), {"axis": 1}),
        Case(fft.c2r, (of(floordiv(N + 1, 2) + 1, M, dtype=C16),), {"axis": 0, "n": N + 1}),
        Case(fft.c2c, (of(N, M + 1),), {"axes": (0, 1), "sign": 1}),
        Case(
            trigonometric, (of(N, M + 1),),
            {"kind": "cosine", "type": 2, "axes": (0, 1), "scale": "ortho", "orthogonal": True},
        ),
        *[Case(fft.c2c, (of(N, M + 1, dtype=C16),), {"axes": (1,), "sign": sign}) for sign in (-1, 1)],
    ]  # fmt: skip
    for p in (c.reduce_sum, c.reduce_prod, c.reduce_max, c.reduce_min, c.reduce_all, c.reduce_any):
        spec = of(N + 1, M, dtype=B1 if p in (c.reduce_all, c.reduce_any) else F8)
        out += [Case(p, (spec,), {"axes": axes}) for axes in ((), (0,), (0, 1))[: 3 if p is c.reduce_sum else 2]]
    for p in (c.cumsum, c.cumprod, c.cummax, c.cummin, c.cumlogsumexp):
        out += [Case(p, (a,), {"axis": 0, "reverse": back}) for back in (False, True)]
    out += _products() + _indexing()

    def linalg(primitive: Primitive, *ins: Spec, **params: Any) -> None:
        out.append(Case(primitive, ins, params))

    for keep in _masks.KEPT:
        linalg(_algebra.part_, tall, keep=keep)
    linalg(_algebra.identity_like_, square)
    linalg(_norms.power_norm_, tall, axes=(0, 2), p=3.0)
    linalg(_cholesky.cholesky_, square)
    for p in (_det.det_, _det.slogdet_, _eigh.eigvalsh_, _solve.lu_factor_):
        linalg(p, square)
    linalg(_det.adjugate_, square)
    linalg(_det.adjugate_change_, square, square)
    linalg(_eigh.eigh_, square, basis="generic")
    linalg(_eigh.eigh_adapted_, square, square)
    linalg(_eig.eig_, square)
    linalg(_eig.eigvals_, square)
    complex_square, complex_stack = (s.with_(dtype=tr.complex128) for s in (square, stack))
    linalg(_nonnormal.eig_inverse_, complex_square)
    linalg(_nonnormal.eig_checked_, complex_square, complex_stack, of(3), of(3), role="cotangent")
    linalg(_nonnormal.eig_quotient_, complex_square, complex_stack, of(3), strict=False)
    linalg(_nonnormal.eig_certified_, complex_stack, complex_stack, of(3), of(3), vectors=False)
    for rtol in ((), (of(3),)):
        linalg(_pinv.pinv_, tall, *rtol)
        linalg(_pinv.pinv_ranked_, of(3, M, N), of(3, small), *rtol, what="pinv")
        linalg(_lstsq.lstsq_, tall, of(3, M, N), of(3, small), *rtol, of(3, N, K), adjoint=False)
    for mode, k in (("reduced", small), ("complete", N)):
        linalg(_qr.qr_, tall, mode=mode, basis="generic")
        q, r = of(3, N, k), of(3, k, M)
        linalg(_qr.qr_prefix_, r, size=big)
        linalg(_qr.qr_full_rank_, r, size=big)
        linalg(_qr.qr_rows_, r, r, of(3, k), size=big)
        linalg(_qr.qr_frame_, q, q, of(3, k), size=big, k=small)
        linalg(_prefixes.kept_, q, q, of(3, k))
        linalg(_prefixes.masked_, q, of(3, k), along="columns")
    linalg(_prefixes.leading_, square, stack)
    for odd in (False, True):
        linalg(_prefixes.across_, square, square, square, stack, flipped=odd)
        linalg(_prefixes.beyond_, square, square, stack, inner=odd)
        linalg(_algebra.hermitian_, square, transposed=odd)
    linalg(_qr.qr_r_, tall)
    linalg(_solve.solve_, square, tall)
    linalg(_solve.lu_solve_, square, square, of(3, N, dtype=I8), tall, adjoint=False)
    linalg(_solve.solve_triangular_, square, tall, lower=True, unit=False, adjoint=True)
    linalg(_solve.inv_, square, what="inv")
    for full in (False, True):
        linalg(_svd.svd_, tall, full=full, basis="generic", cut=None)
        linalg(_svd.svd_adapted_, tall, tall, full=full)
    linalg(_svd.svdvals_, tall)
    linalg(_apart.eigh_apart_, square, side=0)
    linalg(_apart.svd_apart_, tall, side=1)
    linalg(_apart.eig_apart_, square, side=1)
    linalg(_divided.groups_, stack)
    program, _ = recorded(tr.exp, stack, "the cases")
    nodes = of(3, 2, N, _divided.NODES)
    told_f: dict[str, Any] = {"program": program, "captured": 0}
    linalg(_spectral.spectral_value_, square, stack, square, stack, order=0, **told_f)
    both = of(3, 2, N)
    linalg(_spectral.spectral_term_, square, stack, square, stack, both, both, nodes, square, order=1, **told_f)
    linalg(_degeneracy.cotangent_scale_, stack, tall, stack)
    told: dict[str, Any] = {"what": "svd", "size": big}
    for kind in ("difference", "sum", "column"):
        ins = square, stack
        linalg(_degeneracy.checked_, *ins, of(3), kind=kind, role="cotangent", cut=None, **told)
        for strict in (False, True):
            linalg(_degeneracy.quotient_, *ins, kind=kind, strict=strict, **told)
    linalg(_degeneracy.certified_, stack, stack, tall, cut=N, **told)
    linalg(_degeneracy.unrotated_, tall, tall, of(3), **told)
    linalg(_degeneracy.unsigned_, square, square, stack, of(3), size=big)
    linalg(_lstsq.least_squares_, tall, of(3, N, K))
    linalg(_lu.lu_, tall)
    linalg(_lu.plu_, tall)
    linalg(_lu.lu_pivoted_, of(3, small, small), rows=N, columns=M)
    linalg(_lu.permutation_, of(3, N, dtype=I8), rows=N)
    linalg(_banded.banded_solve_, of(3, 4, N), of(3, N, K), lower=2, upper=1, positive=False)
    linalg(_toeplitz.toeplitz_solve_, of(3, 1, N + N + 1), of(3, N + 1, K))
    linalg(_toeplitz.circulant_solve_, of(3, 1, N), of(3, N, K))
    linalg(_toeplitz.circulant_product_, of(3, 1, N), of(3, N, K))
    for kind, x in (("svd", tall), ("eigh", square), ("qr", tall)):
        linalg(_ranks.rank_, x, of(3), of(3), kind=kind, what=kind)
    linalg(_truncated_eigh.one_sided_, tall, stack, k=N)
    linalg(_truncated_eigh.one_sided_change_, tall, stack, k=N)
    linalg(_subspaces.frame_, tall, full=True, what="orth")
    linalg(_coupling.coupled_, tall, of(3, 2), of(3, N, 2), of(3, M, 2))
    linalg(_sketch.svd_sketched_, of(3, N + 4, M + 4), of(3, M + 4, 4), k=3, iterations=1, basis="generic")
    linalg(_ldl.ldl_, square, lower=True, hermitian=True)
    linalg(_ldl.ldl_regular_, square)
    linalg(_polar.unitary_factor_, of(3, N + M, N))
    linalg(_polar.anticommutator_, square, square)
    linalg(_reflections.column_order_, tall)
    linalg(_subspaces.basis_, tall, of(3, N, K), of(3, M, N), of(3, small), what="orth")
    linalg(_subspaces.independent_, of(3, N + M, N), of(3, N), columns=N)
    linalg(_lu.rows_taken_, tall, of(3, N, dtype=I8), back=False)
    places = RowStructure((2, 3), np.array([0, 2, 3], np.int32), np.array([0, 2, 1], np.int32))
    for columns in ((), (K,)):
        linalg(sparse.product_, of(3), of(3, *columns), structure=places)
        linalg(sparse.sampled_, of(2, *columns), of(3, *columns), structure=places)
    out += _equations(tall, square, stack) + _random()
    return out


_NAMED: dict[str, Any] = {"what": "cg", "degenerate": False}


def _equations(tall: Spec, square: Spec, stack: Spec) -> list[Case]:
    """Equations, similarity, and functions of matrices."""
    other, cplx = of(3, M, M), of(3, N, N, dtype=C16)
    points = of(3, N, 1 + _parlett.RADII * _parlett.POINTS, dtype=C16)
    program, _ = recorded(tr.exp, of(N, dtype=C16), "the cases")
    known = square, cplx, cplx, stack, of(3, N, _parlett.RADII), points, points
    return [
        Case(_riccati.continuous_are_, (square, tall, square, other), {}),
        Case(_riccati.discrete_are_, (square, tall, square, other), {}),
        Case(_schur_factors.schur_factors_, (square,), {"what": "solve_sylvester", "triangular": False}),
        Case(_stein.stein_, (square,) * 4, {"turned": False, "what": "solve_discrete_lyapunov"}),
        Case(
            _sylvester.sylvester_,
            (square, square, square, other, other, other, tall),
            {"left": True, "right": False, "what": "solve_sylvester"},
        ),
        Case(_tridiagonal.eigvalsh_tridiagonal_, (of(3, N + 1), stack), {}),
        Case(_hessenberg.hessenberg_, (square,), {}),
        Case(_rotations.hessenberg_rotation_, (square, square), {"turned": False}),
        Case(_rotations.schur_rotation_, (square, square), {"turned": True}),
        Case(_schur.schur_, (square,), {}),
        Case(_schur.schur_phases_, (cplx, cplx, of(3)), {}),
        Case(_terms.matrix_function_, (square, square), {"function": "exp", "order": 1}),
        Case(_general.funm_points_, (square,), {}),
        Case(_convergence.converged_, (stack, of(3, dtype=B1), of(3, dtype=I8), of(3)), _NAMED),
        Case(_general.funm_term_, known, {"program": program, "order": 0, "captured": 0, "sizes": ()}),
    ]


def _random() -> list[Case]:
    streams = of(3, dtype="uint64"), of(3, dtype="uint64")
    drawn = (random_bits, "uint32"), (random_uniform, "float64"), (random_normal, "float32"), (random_exponential, F8)
    found = [Case(p, streams, {"shape": (N, M), "dtype": np.dtype(dtype)}) for p, dtype in drawn]
    return [*found, Case(random_loggamma, (*streams, of(3, N)), {})]


def _products() -> list[Case]:
    return [
        Case(c.dot_general, (x, y), {"contract": contract, "batch": batch})
        for x, y, contract, batch in [
            (of(N, M), of(M, K), ((1,), (0,)), ((), ())),
            (of(M, N), of(M, K), ((0,), (0,)), ((), ())),
            (of(N, M), of(K, M), ((1,), (1,)), ((), ())),
            (of(M, N), of(K, M), ((0,), (1,)), ((), ())),
            (of(N), of(N), ((0,), (0,)), ((), ())),
            (of(N, M), of(M), ((1,), (0,)), ((), ())),
            (of(N), of(N, M), ((0,), (0,)), ((), ())),
            (of(3, N, M), of(3, M, K), ((2,), (1,)), ((0,), (0,))),
            (of(K, 2, M), of(K, 2, M), ((2,), (2,)), ((0,), (0,))),
            (of(N, K, M), of(M, K, 2), ((1, 2), (1, 0)), ((), ())),
            (of(N, K, M), of(2, M, K), ((2, 1), (1, 2)), ((), ())),
            (of(N, M, K), of(M, N), ((1, 0), (0, 1)), ((), ())),
            (of(N, M), of(K, 2), ((), ()), ((), ())),
            (of(N, M, dtype=C16), of(M, K, dtype=C16), ((1,), (0,)), ((), ())),
            (of(N, M, dtype=C16), of(K, M, dtype=C16), ((1,), (1,)), ((), ())),
            (of(2, N, M, dtype=C16), of(2, M, K, dtype=C16), ((2,), (1,)), ((0,), (0,))),
            (of(N, M, dtype="float32"), of(K, M, dtype="float32"), ((1,), (1,)), ((), ())),
            (of(N, M, dtype=I8), of(M, K, dtype=I8), ((1,), (0,)), ((), ())),
        ]
    ]


def _indexing() -> list[Case]:
    whole = {"offset_dims": (0,), "collapsed_dims": (1,), "start_index_map": (1,), "slice_sizes": (N, 1)}
    wide = {"offset_dims": (1, 2), "collapsed_dims": (), "start_index_map": (1, 0), "slice_sizes": (2, M)}
    none = {"offset_dims": (0, 2), "collapsed_dims": (), "start_index_map": (), "slice_sizes": (1, M)}
    each = {"update_window_dims": (), "inserted_dims": (0, 1), "scatter_dims": (0, 1)}
    lines = {"update_window_dims": (1,), "inserted_dims": (0,), "scatter_dims": (0,)}
    blocks = {"update_window_dims": (1, 2), "inserted_dims": (), "scatter_dims": (1, 0)}
    grid = of(N + 2, M + 1)
    return [
        Case(c.gather, (of(N, M + 1), of(K, 1, dtype=I8)), whole),
        Case(c.gather, (grid, of(K, 2, dtype=I8)), wide),
        Case(c.gather, (of(1, M), of(K, 0, dtype=I8)), none),
        Case(c.dynamic_slice, (grid, of(dtype=I8), of(dtype=I8)), {"sizes": (N, 1)}),
        Case(c.dynamic_update_slice, (grid, of(N, M), of(dtype=I8), of(dtype=I8)), {}),
        *[Case(c.scatter, (grid, of(K, 2, dtype=I8), of(K)), {**each, "mode": mode}) for mode in c.SCATTER_MODES],
        Case(c.scatter, (grid, of(K, 1, dtype=I8), of(K, M + 1)), {**lines, "mode": "add"}),
        Case(c.scatter, (grid, of(K, 2, dtype=I8), of(K, N, M)), {**blocks, "mode": "add"}),
    ]  # fmt: skip


def marked() -> dict[Primitive, Any]:
    """The primitives of tenferro whose kernels on the CPU are made once for all sizes, and their makers.

    Special functions are left out: theirs are SciPy's, which take arrays of any shape.
    """
    REGISTRY.load_extension("linalg")
    found = {}
    for (p, backend), make in REGISTRY._tables["kernel"].items():
        ours = inspect.getmodule(p.infer) is not None and (p.family is None or p.family.startswith("tenferro-"))
        if (
            p.extension != "special"
            and backend in ("cpu", "*")
            and ours
            and (getattr(make, "any_size", False) or hasattr(make, "sizes"))
        ):
            found[p] = make
    return found


CASES = _table()
