"""Proofs that accesses are inside their buffers, and planted accesses without one, at extents of 0 as well."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenferro_tensor import Spec, catalog
from tenferro_tensor.loop_interpreter import interpret
from tenferro_tensor.loop_ir import (
    INDEX,
    Affine,
    Buffer,
    Call,
    Case,
    For,
    Let,
    Literal,
    Load,
    LoopFunction,
    LoopIRError,
    Order,
    Position,
    Reg,
    Requirement,
    Role,
    Store,
    Switch,
    View,
    unproved,
    verify,
)
from tenferro_tensor_core import ShapeError, dim, dim_max, floordiv

F8, BOOL = np.dtype("float64"), np.dtype("bool")
N, M = dim("n"), dim("m")
I, J, R, P, Q, LAST = (Reg(k, INDEX) for k in range(6))
A, B, C = (Reg(k, BOOL) for k in range(6, 9))
V = Reg(9, F8)
X, Y = Buffer(0, F8, (N,), Role.INPUT), Buffer(1, F8, (M,), Role.INPUT)
OUT, KEY = Buffer(2, F8, (N, M), Role.OUTPUT), Buffer(3, INDEX, (), Role.INPUT)
FUNCTION = LoopFunction(("n", "m"), (X, Y, KEY), (OUT,), (), (), ())
ONE = Literal(1.0, F8)
READ_KEY = Load(R, KEY, Affine())


def whole(number):
    return Literal(number, INDEX)


def at(index):
    """A read of X at an index."""
    return Load(V, X, Affine.of(index))


def of(*body, requires=()):
    return replace(FUNCTION, body=body, requires=tuple(requires))


def clamped(low=0):
    """Q is R between a number and the last position of X."""
    return (
        READ_KEY,
        Position(LAST, Affine(N - 1)),
        Let(P, catalog.maximum.op(), (R, whole(low))),
        Let(Q, catalog.minimum.op(), (P, LAST)),
    )


def remainder(by=N):
    """Q is R modulo an extent."""
    return (READ_KEY, Position(P, Affine(by)), Let(Q, catalog.remainder.op(), (R, P)))


def between(low, high, body):
    """A branch that is taken where ``low <= R < high``."""
    number = Reg(20, INDEX)
    return (
        READ_KEY,
        Position(P, Affine(high)),
        Let(A, catalog.ge.op(), (R, whole(low))),
        Let(B, catalog.lt.op(), (R, P)),
        Let(C, catalog.bitwise_and.op(), (A, B)),
        Let(number, catalog.convert.op(dtype=INDEX), (C,)),
        Switch(number, (Case(()), Case(body))),
    )


def negated(first):
    """A call that reads N elements of X, and writes as many of OUT."""
    operand, result = View(X, Affine(first), (N,), (1,)), View(OUT, Affine(), (N,), (1,))
    return Call(catalog.neg.op(), (operand,), (result,), (Spec((N,), F8),))


SOME, HALVES = Requirement(N - 1), Requirement(N - floordiv(N, 2) - 2 * floordiv(N, 4))

PROVED = {
    "a counter": of(For(I, N, (at(I),))),
    "rows and columns": of(For(I, N, (For(J, M, (Store(OUT, Affine.of(I) * M + J, ONE),)),))),
    "in reverse": of(For(I, N, (at(Affine(N - 1) - I),))),
    "a neighbour of all but the last": of(For(I, dim_max(N - 1, 0), (at(Affine.of(I) + 1),))),
    "every other one": of(For(I, floordiv(N + 1, 2), (at(Affine.of(I) * 2),))),
    "halves of quarters": of(For(I, floordiv(N, 4), (at(Affine.of(I) * 2 + floordiv(N, 2)),)), requires=[HALVES]),
    "the first where there is one": of(For(I, N, (at(0),))),
    "the first of some": of(at(0), requires=[SOME]),
    "clamped to some": of(*clamped(), at(Q), requires=[SOME]),
    "clamped in a loop over as many": of(For(I, N, (*clamped(), at(Q)))),
    "a remainder by some": of(*remainder(), at(Q), requires=[SOME]),
    "a window that fits": of(For(I, M, (at(I),)), requires=[Requirement(N - M)]),
    "a requirement for loops that run": of(For(I, M, (at(0),)), requires=[Requirement(N - 1, (M,))]),
    "where a condition holds": of(*between(0, N, (at(R),))),
    "where a stronger condition holds": of(*between(3, N - 2, (at(Affine.of(R) + 1),))),
    "in the other branch": of(
        READ_KEY,
        Position(P, Affine(N)),
        Let(A, catalog.lt.op(), (R, whole(0))),
        Let(B, catalog.ge.op(), (R, P)),
        Let(C, catalog.bitwise_or.op(), (A, B)),
        Switch(C, (Case((at(R),)), Case(()))),
    ),
    "one of two": of(
        READ_KEY,
        Let(A, catalog.lt.op(), (R, whole(0))),
        For(I, N, (Let(Q, catalog.select.op(), (A, I, whole(0))), at(Q))),
    ),
    "a view": of(negated(0), requires=[Requirement(M - 1, (N,))]),
}  # fmt: skip


@pytest.mark.parametrize("name", PROVED)
def test_proved(name):
    assert [*unproved(PROVED[name])] == []


PLANTED = {
    "no bound at all": of(READ_KEY, at(R)),
    "the first of none": of(at(0)),
    "the neighbour of the last": of(For(I, N, (at(Affine.of(I) + 1),))),
    "the neighbour of the first": of(For(I, N, (at(Affine.of(I) - 1),))),
    "a remainder by none": of(*remainder(), at(Q)),
    "a remainder by another extent": of(*remainder(M), at(Q), requires=[SOME, Requirement(M - 1)]),
    "a clamp to -1": of(*clamped(), at(Q)),
    "a clamp from -1": of(*clamped(-1), at(Q), requires=[SOME]),
    "a clamp from below only": of(*clamped()[:-1], at(P), requires=[SOME]),
    "a window of one element": of(*clamped(), For(I, 1, (at(Affine.of(Q) + I),))),
    "a loop over another extent": of(For(I, M, (at(I),))),
    "a requirement for other loops": of(at(0), For(I, M, ()), requires=[Requirement(N - 1, (M,))]),
    "where a weaker condition holds": of(*between(0, N + 1, (at(R),))),
    "where a negative number passes": of(*between(-1, N, (at(R),))),
    "in the wrong branch": of(*between(0, N, ()), at(R)),
    "more than a quarter of quarters": of(For(I, floordiv(N, 4) + 1, (at(Affine.of(I) * 4),))),
    "a row of another matrix": of(For(I, M, (Store(OUT, Affine.of(I) * M, ONE),))),
    "a view": of(negated(1), requires=[Requirement(M - 1)]),
}  # fmt: skip


@pytest.mark.parametrize("name", PLANTED)
def test_planted(name):
    assert [*unproved(PLANTED[name])]
    with pytest.raises(LoopIRError, match="may leave"):
        verify(PLANTED[name])


@pytest.mark.parametrize("name", [name for name in PLANTED if name != "in the wrong branch"])
def test_planted_accesses_do_leave(name):
    """Each refused function has sizes and a key at which the interpreter sees it leave its buffer."""
    f, left = PLANTED[name], 0
    for n in range(4):
        for m in range(4):
            sizes = {"n": n, "m": m}
            for key in range(-2, 4) if f.accepts(sizes) else ():
                try:
                    interpret(f, [np.zeros(n), np.zeros(m), np.array(key)], (n, m))
                except LoopIRError as error:
                    assert "leaves" in str(error)
                    left += 1
    assert left


@pytest.mark.parametrize("name", PROVED)
@given(n=st.integers(0, 9), m=st.integers(0, 9), key=st.integers(-12, 12))
def test_proved_accesses_stay(name, n, m, key):
    f = PROVED[name]
    if f.accepts({"n": n, "m": m}):
        interpret(f, [np.zeros(n), np.zeros(m), np.array(key)], (n, m))


def test_requirements():
    f = of(requires=[Requirement(N - 2, (M,))])
    assert f.accepts({"n": 2, "m": 1}) and f.accepts({"n": 0, "m": 0}) and not f.accepts({"n": 1, "m": 1})
    assert "requires n - 2 >= 0 where m > 0" in str(f)
    with pytest.raises(ShapeError, match=r"requires n - 2 >= 0 where m > 0, and the sizes are \{'n': 1, 'm': 1\}"):
        f.refuse({"n": 1, "m": 1})


def test_the_statement_is_named():
    text = r"r9: float64 = b0\[r2\] may leave input b0: float64\[n\].*plus r2, which is not kept in bounds"
    with pytest.raises(LoopIRError, match=text):
        verify(of(READ_KEY, at(R)))
    with pytest.raises(LoopIRError, match=r"it has the positions 0 to m - 1$"):
        verify(of(For(I, M, (at(I),), order=Order.GIVEN)))
