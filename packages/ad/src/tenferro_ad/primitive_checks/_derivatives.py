"""Checks of the derivative rule: against differences and across modes, up to a given order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import factorial
from typing import Any, Final

import numpy as np

from tenferro_ad._checking import check_grads
from tenferro_ad._forward import jvp
from tenferro_ad._reverse import vjp
from tenferro_ad._rules import rule_of
from tenferro_ad.power_series import taylor, taylor_kind
from tenferro_ad.primitive_checks._subject import Subject
from tenferro_runtime import compile
from tenferro_runtime.extension import check_rule
from tenferro_tensor import tensor
from tenferro_tensor.checking import LeftOut, close
from tenferro_tensor_core import MissingRuleError, TenferroError, real_of

DTYPES: Final = ("float64", "float32", "complex128", "complex64")

_PRECISION: Final = {2: 0.2, 4: 1e-3, 8: 1e-7}
"""Allowed difference of high derivatives relative to the largest entry, by the bytes of a real number."""


def derivatives(subject: Subject, order: int) -> Iterator[str]:
    """Check forward mode against differences, reverse against forward mode, and compiled against plain derivatives."""
    p = subject.op.primitive
    if not any(s.inexact for s in subject.specs) or not any(s.inexact for s in subject.infer(subject.specs) or ()):
        raise LeftOut("no operand or no result is a real or complex floating-point number")
    try:
        check_rule(p, rule_of(subject.op))
    except MissingRuleError as error:
        raise LeftOut(str(error)) from None
    except TenferroError as error:
        yield str(error)
        return
    for dtype in DTYPES:
        arrays = subject.cast(dtype)
        if subject.admits(arrays) is None:
            continue
        failed = False
        for text in _of_one_dtype(subject, subject.put(arrays), order):
            failed = True
            yield f"{dtype}: {text}"
        if failed:  # the other dtypes would fail for the same reason
            return
    yield from _each_alone(subject)


def _each_alone(subject: Subject) -> Iterator[str]:
    """Check derivatives by one operand, where a rule meets ``None`` as the tangents of the others."""
    names, operands = subject.op.primitive.operands, subject.operands
    moving = [i for i, s in enumerate(subject.specs) if s.inexact]

    def by(i: int) -> Callable[[Any], Any]:
        return lambda x: subject.op(*operands[:i], x, *operands[i + 1 :])

    for i in moving if len(moving) > 1 else ():
        what = f"by {names[min(i, len(names) - 1)].lstrip('*')} alone"
        try:
            check_grads(by(i), [operands[i]])
        except TenferroError as error:
            yield f"{what}: {error}"
        except Exception as error:
            yield f"{what}, the rule raises {type(error).__name__} ({error}); in the tuples of a rule, None means zero"


SERIES_ORDER: Final = 3
"""Order up to which power series are compared with nested derivatives."""


def power_series(subject: Subject) -> Iterator[str]:
    """Check Taylor mode against nested forward mode, along a curve."""
    moving = [i for i, s in enumerate(subject.specs) if s.inexact]
    if not moving or not any(s.inexact for s in subject.infer(subject.specs) or ()):
        raise LeftOut("no operand or no result is a real or complex floating-point number")
    try:
        rule_of(subject.op)
    except TenferroError as error:
        raise LeftOut(str(error)) from None
    kind = taylor_kind(subject.op.primitive)
    rng = np.random.default_rng(0)
    made = [subject.put([_random(rng, a) for a in subject.arrays]) for _ in range(SERIES_ORDER)]
    terms = [[operands[i] for operands in made] for i in moving]

    def f(*xs: Any) -> list[Any]:
        operands: list[Any] = list(subject.operands)
        for i, x in zip(moving, xs, strict=True):
            operands[i] = x
        return [y for y in subject.call(operands) if y.spec.inexact]

    def along(t: Any) -> list[Any]:
        curves = []
        for i, series in zip(moving, terms, strict=True):
            x, power = subject.operands[i], t
            for k, term in enumerate(series, 1):
                x = x + term * (power / float(factorial(k))).astype(term.dtype)
                power = power * t
            curves.append(x)
        return f(*curves)

    try:
        found = taylor(f, tuple([subject.operands[i] for i in moving]), terms)[1]
    except Exception as error:
        yield f"on power series ({kind}), the op raises {type(error).__name__} ({error}); correct the rule"
        return
    g: Callable[[Any], list[Any]] = along
    for k, derivatives in enumerate(found, 1):
        g = _pushed(g)
        for got, want in zip(derivatives, g(tensor(0.0)), strict=True):
            if not close(got.numpy(), want.numpy(), _PRECISION[real_of(got.dtype).itemsize]):
                yield f"derivative {k} along a curve ({kind}) differs from that of nested jvp; correct the Taylor rule"
                return


def _pushed(g: Callable[[Any], list[Any]]) -> Callable[[Any], list[Any]]:
    return lambda t: jvp(g, (t,), (1.0,))[1]


def _random(rng: np.random.Generator, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Random numbers with the shape and dtype of an array."""
    x: Any = rng.normal(size=array.shape)
    if array.dtype.kind == "c":
        x = x + 1j * rng.normal(size=array.shape)
    return np.asarray(x).astype(array.dtype)


def _of_one_dtype(subject: Subject, operands: list[Any], order: int) -> Iterator[str]:
    def op(*xs: Any) -> Any:
        return subject.op(*xs)

    ways: dict[str, Callable[..., Any]] = {"plain": op, "compiled": compile(op)}
    for name, f in ways.items():
        for k in range(1, order + 1):
            try:
                check_grads(f, operands, order=k)
            except TenferroError as error:
                yield f"{name}, order {k}: {error}"
                return
            except Exception as error:
                yield f"{name}, order {k}: the rule raises {type(error).__name__} ({error}); correct the rule"
                return
    yield from _compiled_derivative(op, operands)


def _compiled_derivative(op: Callable[..., Any], operands: list[Any]) -> Iterator[str]:
    """Check the compiled vjp, with symbolic sizes, against the plain one."""
    out, pull = vjp(op, *operands)
    results = out if isinstance(out, tuple) else (out,)
    ones = tuple([y * 0 + 1 if y.spec.inexact else y for y in results])
    cotangent = ones if isinstance(out, tuple) else ones[0]
    want = pull(cotangent)
    try:
        got = compile(lambda *xs: vjp(op, *xs)[1](cotangent))(*operands)
    except Exception as error:
        yield f"the compiled vjp raises {type(error).__name__} ({error}), but not in a plain call; rules must trace"
        return
    for i, (a, b) in enumerate(zip(_tuple(got), _tuple(want), strict=True)):
        if (
            a is not None
            and b is not None
            and not close(_host(a), _host(b), 1e-3 if _host(a).real.itemsize < 8 else 1e-7)
        ):
            yield f"the compiled vjp differs from the plain one at operand {i}; a rule must not branch on values"


def _tuple(x: Any) -> tuple[Any, ...]:
    return tuple(x) if isinstance(x, (tuple, list)) else (x,)


def _host(x: Any) -> np.ndarray[Any, Any]:
    return np.asarray(x._concrete())
