"""The ways to run and to differentiate one function, each compared with calls on concrete values."""

from __future__ import annotations

import tempfile
import types
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import tenferro_runtime as tr
from tenferro_ad import grad, jvp, variable
from tenferro_cpu import threads
from tenferro_runtime.extension import Literal, check_program, interpret, render
from tenferro_runtime.ir import definitions
from tenferro_runtime.passes import PASSES
from tenferro_runtime.running import fusion
from tenferro_tensor import Spec, Tensor, tensor
from tenferro_tensor.reference import kernels
from tenferro_tensor_core import NumericalError, TenferroError, UnsupportedError
from tenferro_xla import XlaExecutor
from written_programs import INPUTS, MANY_OPERANDS, Written, arguments, narrow

XLA = XlaExecutor()
OTHER_EXTENTS = ((1, 4), (3, 1), (1, 1), (0, 4), (3, 0), (0, 0), (6, 2), (4, 4))


def _special() -> types.ModuleType:
    import scipy.special

    return scipy.special


PLAIN = kernels(np, _special)


def by_numpy(program: tr.Program, values: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Run a program of fixed sizes with the reference kernels, whatever the backend has; other ops as they are."""
    env: dict[int, Any] = dict(program.constants)
    env.update(zip(program.input_ids, values, strict=True))
    for eq in program.equations:
        operands = [tensor(v.value) if isinstance(v, Literal) else env[v] for v in eq.operands]
        make = PLAIN.get(eq.op.primitive)
        if make is None or not eq.operands:
            out = eq.op(*operands)
        else:
            outs = tuple([program.specs[i] for i in eq.results])
            raw = make(tuple([v.spec for v in operands]), outs, **eq.op.params)(*[np.asarray(v.data) for v in operands])
            parts = raw if len(outs) > 1 else (raw,)
            out = tuple([tensor(np.asarray(r), dtype=s.dtype) for r, s in zip(parts, outs, strict=True)])
        env.update(zip(eq.results, out if isinstance(out, tuple) else (out,), strict=True))
    return tuple([env[v] for v in program.output_ids])


def outcome(run: Callable[..., Any], *args: Any) -> Any:
    """The result, or the error as an outcome of its own."""
    try:
        return run(*args)
    except (TenferroError, ValueError, TypeError, IndexError, ArithmeticError) as error:
        return error


def same(got: Any, want: Any, exact: bool = False, slack: float = 1.0) -> None:
    """Assert that two outcomes agree: equal structure and specs and near elements, or errors of one built-in class."""
    if isinstance(want, Exception):
        kinds = [c for c in (IndexError, ValueError, TypeError, ArithmeticError) if isinstance(want, c)]
        assert isinstance(got, type(want)) or isinstance(got, tuple(kinds)), (got, want)
        return
    if isinstance(got, Exception):
        raise AssertionError(f"raised, but calls on concrete values did not: {got!r}") from got
    if isinstance(want, tuple):
        assert len(got) == len(want)
        for g, w in zip(got, want, strict=True):
            same(g, w, exact, slack)
        return
    assert got.spec is want.spec, (got.spec, want.spec)
    g, w = np.asarray(got.numpy()), np.asarray(want.numpy())
    if exact or w.dtype.kind in "iub":
        np.testing.assert_array_equal(g, w)
        return
    narrow = w.dtype.itemsize // (2 if w.dtype.kind == "c" else 1) < 8
    tolerance = (2e-4 if narrow else 1e-9) * slack
    np.testing.assert_allclose(g, w, rtol=tolerance, atol=tolerance)


def values(f: Written) -> None:
    """Concrete, recorded, traced, by the reference kernels, pass by pass, and rendered."""
    args, slack = arguments(f.inputs, 3, 4), narrow(f)
    want = f(*args)
    recorded = f(*[variable(a) if a.spec.inexact else a for a in args])
    same(tuple(r.detach() if hasattr(r, "detach") else r for r in recorded), want, slack=slack)
    program = check_program(tr.trace(f, *args))
    same(program.run(*args), want, slack=slack)
    for run in PASSES:
        same(check_program(run(program)).run(*args), want, slack=slack)
    with tr.Runtime(check=True) as runtime:
        best = runtime.optimise(program)
    same(best.run(*args), want, slack=slack)
    if definitions(program):  # sizes that depend on data are known to the replay only
        return
    same(interpret(program, args), want, slack=slack)
    same(by_numpy(program, args), want, slack=slack)
    same(tuple(render(program, "value")(*args)), want, slack=slack)
    same(interpret(best, args), want, slack=slack)


def sizes(f: Written) -> None:
    """Compiled: at first, again, with fused kernels; and for arrays of other extents and strides."""
    args, slack = arguments(f.inputs, 3, 4), narrow(f)
    with tr.Runtime(check=True):
        compiled, plain = tr.compile(f), tr.compile(f.function)
    want = f(*args)
    for _ in range(3):
        same(compiled(*args), want, slack=slack)
    fusion.wait()
    same(compiled(*args), want, slack=slack)
    for n, m in OTHER_EXTENTS:
        for strided in (False, True):
            other = arguments(f.inputs, n, m, seed=1, strided=strided)
            want = outcome(f, *other)
            if isinstance(want, NumericalError):  # of a value that no result uses, perhaps
                want = outcome(f.used, *other)
            for run in (compiled, compiled, plain):
                same(outcome(run, *other), want, slack=slack)
    same(compiled(*args), f(*args), slack=slack)


def bits(f: Written) -> None:
    """Deterministic programs give the bits of single operations on concrete values, with one thread and with two.

    The operations of what they call as well: a function that was compiled elsewhere may round otherwise by itself.
    """
    compiled, single = tr.compile(f, deterministic=True), f.single

    def strictly(*args: Any) -> Any:  # a checkpoint is a compiled function too
        with tr.Runtime(deterministic=True):
            return single(*args)

    # The order in which many operands are contracted is chosen for the extents of the trace.
    for n, m in ((3, 4),) if MANY_OPERANDS in f.text else ((3, 4), (5, 2), (1, 1), (0, 3)):
        args = arguments(f.inputs, n, m)
        want = outcome(strictly, *args)
        for _ in range(2):
            same(outcome(compiled, *args), want, exact=True)
        fusion.wait()
        same(outcome(compiled, *args), want, exact=True)
        for count in (1, 2):
            with threads(count):
                same(outcome(strictly, *args), want, exact=True)
                same(outcome(compiled, *args), want, exact=True)


def files(f: Written) -> None:
    """Saved, loaded, run at other extents and differentiated."""
    args, slack = arguments(f.inputs, 3, 4), narrow(f)
    n, m = tr.dim("n"), tr.dim("m")
    specs = [Spec(tuple({"n": n, "m": m}[a] for a in INPUTS[i][1]), np.dtype(INPUTS[i][0])) for i in f.inputs]
    used = {a for i in f.inputs for a in INPUTS[i][1]}
    program = check_program(tr.trace(f, *specs, examples={k: v for k, v in (("n", 3), ("m", 4)) if k in used} or None))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "f.tenferro"
        saved = program.save(path)
        assert saved == program.content_hash
        loaded = tr.load(path, expected_hash=saved)
        assert tr.compile(f).save(path, *args) is not None
        again = tr.load(path)
    assert loaded.content_hash == saved
    same(loaded.run(*args), f(*args), slack=slack)
    same(again(*args), f(*args), slack=slack)
    for extents in ((5, 2), (1, 4), (2, 0)):
        other = arguments(f.inputs, *extents, seed=2)
        want = outcome(f, *other)
        got = outcome(program.run, *other)
        if isinstance(got, TenferroError):  # a guard on sizes; the loaded program has the same one
            same(outcome(loaded.run, *other), got)
            continue
        same(got, want, slack=slack)
        same(loaded.run(*other), want, slack=slack)
    moving, loss = loss_of(f)
    xs = [a for i, a in enumerate(args) if i in moving]
    _, of_loaded = loss_of(f, loaded.run)
    same(outcome(gradient(of_loaded(args), xs), *xs), outcome(gradient(loss(args), xs), *xs), slack=1e3 * slack)


def loss_of(f: Written, run: Any = None) -> tuple[list[int], Callable[[Sequence[Any]], Callable[..., Any]]]:
    """Positions of the inputs that can move, and for all arguments a real number as a function of those."""
    moving = [i for i, name in enumerate(f.inputs) if INPUTS[name][0] not in ("int64", "bool")]
    run = run or f

    def loss(args: Sequence[Any]) -> Callable[..., Any]:
        def of_moving(*xs: Any) -> Any:
            full = list(args)
            for i, x in zip(moving, xs, strict=True):
                full[i] = x
            total = tr.asarray(0.0)
            for y in run(*full):
                if y.spec.inexact:
                    total = total + tr.sum(tr.sin(tr.real(y * (0.5 - 0.25j if y.spec.cplx else 0.5))) + tr.abs(y) * 0.1)
            return total

        return of_moving

    return moving, loss


def gradient(loss: Callable[..., Any], xs: Sequence[Any]) -> Callable[..., Any]:
    return grad(loss, tuple(range(len(xs))))


def derivatives(f: Written) -> None:
    """Reverse, by leaves, forward; of compiled functions and compiled, also at other extents."""
    moving, loss = loss_of(f)
    slack = 1e3 * narrow(f)
    outer = tr.compile(lambda args, xs: gradient(loss(args), xs)(*xs))
    compiled = tr.compile(f)
    _, loss_compiled = loss_of(f, compiled)
    forward = tr.compile(lambda args, xs, ts: jvp(loss(args), xs, ts))
    for extents in ((3, 4), (5, 2), (1, 3), (3, 0)):
        args = arguments(f.inputs, *extents)
        xs = tuple(args[i] for i in moving)
        want = outcome(gradient(loss(args), xs), *xs)
        for _ in range(2):
            same(outcome(outer, args, xs), want, slack=slack)
        same(outcome(gradient(loss_compiled(args), xs), *xs), want, slack=slack)
        if isinstance(want, Exception):
            continue
        leaves = [variable(x) for x in xs]
        value = loss(args)(*leaves)
        if hasattr(value, "backward"):
            value.backward()
            made = tuple(tr.zeros_like(g) if v.grad is None else v.grad for v, g in zip(leaves, want, strict=True))
            same(made, want, slack=slack)
        ts = tuple(arguments(f.inputs, *extents, seed=5)[i] for i in moving)
        primal, slope = jvp(loss(args), xs, ts)
        same(primal, loss(args)(*xs), slack=slack)
        terms = [np.real(np.conj(np.asarray(g)) * np.asarray(t)) for g, t in zip(want, ts, strict=True)]
        scale = 1 + sum(float(np.sum(np.abs(x))) for x in terms)
        if not np.isfinite(float(primal)):  # a mean over no elements
            continue
        assert abs(float(slope) - sum(float(np.sum(x)) for x in terms)) <= 1e-7 * slack / 1e3 * scale
        same(forward(args, xs, ts), (primal, slope), slack=slack * scale)
        fusion.wait()
        same(outer(args, xs), want, slack=slack)


def xla(f: Written) -> None:
    """Values, the gradient and the lanes of a batch by XLA, as one module; sizes that depend on data are refused."""
    args, slack = arguments(f.inputs, 3, 4), narrow(f)
    program = tr.trace(f, *args)
    if definitions(program):
        assert isinstance(outcome(XLA.compile, program), UnsupportedError)
        return
    moving, loss = loss_of(f)
    pairs = list(zip(args, arguments(f.inputs, 3, 4, seed=7), strict=True))
    slopes = outcome(gradient(loss(args), [args[i] for i in moving]), *[args[i] for i in moving])
    known = not isinstance(slopes, Exception)

    def whole(args: Sequence[Any], lanes: Sequence[Any]) -> Any:
        xs = [args[i] for i in moving]
        return f(*args), gradient(loss(args), xs)(*xs) if known else (), tr.vmap(f.function)(*lanes)

    lanes = [tr.stack(list(pair)) for pair in pairs]
    found = list(XLA.run(tr.trace(whole, args, lanes), *args, *lanes))
    want = f(*args)
    same(tuple(found[: len(want)]), want, slack=slack)
    rest = tuple(found[len(want) :])
    if known:
        same(rest[: len(moving)], slopes, slack=1e3 * slack)
        rest = rest[len(moving) :]
    each = [f(*[pair[k] for pair in pairs]) for k in (0, 1)]
    same(rest, tuple([tr.stack(list(ys)) for ys in zip(*each, strict=True)]), slack=slack)


WAYS = (values, sizes, bits, files, derivatives, xla)
