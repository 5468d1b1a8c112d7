"""The law of `LoopIR`: what it accepts, and a planted violation of each of its sentences."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from tenferro_tensor import Spec, catalog
from tenferro_tensor.loop_ir import (
    INDEX,
    Affine,
    Buffer,
    Call,
    Carried,
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
    Role,
    Store,
    Switch,
    View,
    While,
)
from tenferro_tensor.loop_ir import verify as verify_all
from tenferro_tensor_core import dim, dim_max, floordiv

verify = partial(verify_all, bounded=False)
"""The law without that of bounds, which `test_loop_bounds.py` shows."""

F8, F4, BOOL = np.dtype("float64"), np.dtype("float32"), np.dtype("bool")
N, M = dim("n"), dim("m")
ADD, LT, NEG = catalog.add.op(), catalog.lt.op(), catalog.neg.op()
I, J, K = (Reg(n, INDEX) for n in range(3))
X = Buffer(0, F8, (N, M), Role.INPUT)
OUT = Buffer(1, F8, (N, M), Role.OUTPUT)
A, B, C = (Buffer(n, F8, (N, M)) for n in (2, 3, 4))
TABLE = Buffer(5, INDEX, (2,), Role.CONSTANT)
SHORT, SINGLE = Buffer(6, F8, (N,)), Buffer(7, F4, (N, M))
AT = Affine(0)


def f8(number):
    return Reg(number, F8)


def real(value):
    return Literal(value, F8)


def whole(value):
    return Literal(value, INDEX)


FUNCTION = LoopFunction(
    ("n", "m"), (X,), (OUT,), ((TABLE, np.array([1, 2])),), (A, B, C, SHORT, SINGLE), ()
)  # fmt: skip
LOAD, STORE = Load(f8(10), X, AT), Store(A, AT, real(1.0))
LOOP, CASE, TRUE = For(I, N, ()), Case((), (real(1.0),)), Literal(True, BOOL)
CARRY = Carried(f8(10), real(0.0), real(1.0), f8(11))
REPEAT = While((), TRUE, I, ())
ROW, OTHER = View(X, AT, (M,), (1,)), View(A, AT, (M,), (1,))
CALL = Call(NEG, (ROW,), (OTHER,), (Spec((M,), F8),))
SUM = For(J, M, (Load(f8(12), X, Affine.of(J)), Let(f8(13), ADD, (f8(10), f8(12)))), order=Order.GROUPED)
SUM = replace(SUM, carries=(Carried(f8(10), real(0.0), f8(13), f8(11)),))


def of(*body, **parts):
    return replace(FUNCTION, body=body, **parts)


def test_a_lawful_function():
    test = (Store(C, AT, real(1.0)), Load(f8(20), C, AT), Let(Reg(21, BOOL), LT, (f8(20), f8(22))))
    repeat = While(test, Reg(21, BOOL), K, (Store(A, AT, f8(20)),), (Carried(f8(22), real(0.0), f8(20), f8(23)),))
    switch = Switch(Reg(24, INDEX), (CASE, Case((Let(f8(25), NEG, (real(1.0),)),), (f8(25),))), (f8(26),))
    f = of(
        SUM,
        replace(repeat, most=4, swaps=((A, B),)),
        Position(Reg(24, INDEX), Affine(N)),
        switch,
        Store(OUT, Affine.of(Reg(24, INDEX)), f8(26)),
        CALL,
    )
    assert verify(f) is f


FORM = {
    "stands among the outputs": of(outputs=(A,)),
    "is declared twice": of(temporaries=(A, A)),
    "no extent of sizes": of(temporaries=(Buffer(9, F8, (dim("q"),)),)),
    r"holds int64\[3\]": of(constants=((TABLE, np.array([1, 2, 3])),)),
    "r10 is not set there": of(Store(A, AT, f8(10))),
    "r10 is float64 there": of(LOAD, Store(SINGLE, AT, Reg(10, F4))),
    "r10 is set twice": of(LOAD, LOAD),
    "r0 is set twice": of(LOOP, LOOP),
    "r12 is not set there": of(replace(LOOP, body=(replace(LOAD, result=f8(12)),)), Store(A, AT, f8(12))),
    "r0 is not set there": of(LOOP, Store(A, Affine.of(I), real(1.0))),
    "r11 is not set there": of(replace(LOOP, carries=(CARRY,), body=(Store(A, AT, f8(11)),))),
    "r14 is not set there": of(Switch(TRUE, (Case((Load(f8(14), X, AT),), (f8(14),)), Case((), (f8(14),))), (f8(15),))),
    "but its value is bool": of(Let(f8(10), LT, (real(1.0), real(2.0)))),
    "inference refuses it": of(Let(f8(10), ADD, (real(1.0), whole(2)))),
    "reduce_sum is not element-wise": of(Let(f8(10), catalog.reduce_sum.op(axes=()), (real(1.0),))),
    "r10 is float32, but its value is float64": of(Load(Reg(10, F4), X, AT)),
    "but an index is int64": of(LOAD, Store(A, Affine.of(f8(10)), real(1.0))),
    "is int64, but what temporary b2": of(Store(A, AT, whole(1))),
    "True is no int64": of(Store(A, AT, Literal(True, INDEX))),
    "300 is no int8": of(Let(Reg(10, np.dtype("int8")), NEG, (Literal(300, np.dtype("int8")),))),
    "1.5 is no int64": of(Position(I, AT), Let(J, ADD, (I, Literal(1.5, INDEX)))),
    "is not canonical": of(Position(I, AT), Position(J, AT), Store(A, Affine(0, ((J, 1), (I, 1))), real(1.0))),
    "no coefficient is 0": of(Position(I, AT), Store(A, Affine(0, ((I, 0),)), real(1.0))),
    "has sizes besides": of(Store(A, Affine(dim("q")), real(1.0))),
    "q has sizes besides": of(replace(LOOP, extent=dim("q"))),
    "its extent -1 is negative": of(replace(LOOP, extent=-1)),
    "r0 is float64, but its value is int64": of(replace(LOOP, index=f8(0))),
    "is not declared": of(Load(f8(10), replace(A, number=99), AT)),
    "b2: float64.* is not declared": of(Load(f8(10), replace(A, shape=(M, N)), AT)),
    "b0: float64.* is read only": of(Store(X, AT, real(1.0))),
    "b5: int64.* is read only": of(Store(TABLE, AT, whole(1))),
    "is read only": of(replace(LOOP, swaps=((A, X),))),
    "are swapped, but differ": of(replace(LOOP, swaps=((A, SHORT),))),
    "b7: float32.* are swapped, but differ": of(replace(LOOP, swaps=((A, SINGLE),))),
    "swapped twice": of(replace(LOOP, swaps=((A, B), (B, C)))),
    "b2 or b2 is swapped twice": of(replace(LOOP, swaps=((A, A),))),
    "but the carry r10 is float64": of(replace(LOOP, carries=(replace(CARRY, first=whole(0)),))),
    r"int64\(2\)|2.* is int64, but the carry": of(replace(LOOP, carries=(replace(CARRY, following=whole(2)),))),
    "r11 is float32, but its value": of(replace(LOOP, carries=(replace(CARRY, result=Reg(11, F4)),))),
    "but a condition is bool": of(replace(REPEAT, condition=whole(1))),
    "at most -1 iterations": of(replace(REPEAT, most=-1)),
    r"its test writes b2, which 'r12: float64 = b2\[0\]' mentions": of(
        replace(REPEAT, test=(STORE,), body=(Load(f8(12), A, AT),))
    ),
    "its test writes output": of(replace(REPEAT, test=(Store(OUT, AT, real(1.0)),))),
    "its test swaps": of(replace(REPEAT, test=(replace(LOOP, index=J, swaps=((A, B),)),))),
    "which are swapped": of(replace(REPEAT, test=(STORE,), swaps=((A, B),))),
    "neither an integer nor a boolean": of(Switch(real(1.0), (CASE,), (f8(10),))),
    "it has no case": of(Switch(TRUE, ())),
    "case 1 has 0 values for 1": of(Switch(TRUE, (CASE, Case(())), (f8(10),))),
    "but the result r10 is float32": of(Switch(TRUE, (CASE,), (Reg(10, F4),))),
    "it has 0 operands for 1": of(replace(CALL, operands=())),
    "it has 2 results for 1": of(replace(CALL, results=(OTHER, View(B, AT, (M,), (1,))))),
    "one of its operands, b0, is not": of(replace(CALL, operands=(replace(ROW, shape=(M + 1,)),))),
    "one of its results, b7, is not": of(replace(CALL, results=(replace(OTHER, buffer=SINGLE),))),
    "has gaps": of(replace(CALL, results=(replace(OTHER, strides=(2,)),))),
    "2 strides for 1 axes": of(replace(CALL, operands=(replace(ROW, strides=(2, 1)),))),
    "b0: .* is read only": of(replace(CALL, results=(replace(ROW, at=AT + M),))),
    "shares memory": of(replace(CALL, operands=(replace(OTHER, at=AT + 1),))),
}


@pytest.mark.parametrize("text", FORM)
def test_a_planted_violation_of_the_form(text):
    with pytest.raises(LoopIRError, match=text):
        verify(FORM[text])


def test_a_call_may_take_and_give_parts_of_one_buffer():
    verify(of(replace(CALL, operands=(replace(OTHER, at=Affine(M)),))))


def at(index):
    return Affine.of(index)


def store(index, buffer=A):
    return Store(buffer, index, real(1.0))


def load(index, number=10, buffer=A):
    return Load(f8(number), buffer, index)


def within(*body, extent=M, index=J, order=Order.GIVEN):
    return For(index, extent, body, order=order)


INNER = dim_max(M - 2, 0)
CELL = at(I) * M + J
INDEPENDENT = {
    "elements": [store(at(I))],
    "reversed": [store(Affine(N - 1) - I)],
    "update in place": [load(at(I) + 3), store(at(I) + 3)],
    "two columns": [store(at(I) * 2), load(at(I) * 2 + 1), store(at(I) * 2 + 1)],
    "rows": [within(store(CELL))],
    "columns": [For(K, 3, (store(at(I) + at(K) * N),))],
    "transposed": [within(store(at(J) * N + I))],
    "inner part of rows": [within(store(CELL + 1), load(CELL + 1), extent=INNER)],
    "row and its last element": [within(store(CELL), extent=dim_max(M - 1, 0)), store(at(I) * M + (M - 1))],
    "three axes": [within(within(store((at(I) * M + J) * 5 + K), index=K, extent=5))],
    "another half": [load(at(I) + N), store(at(I))],
    "positions": [Position(J, at(I) * 2), load(at(I) * 2), store(at(J))],
    "other buffers": [load(at(I) + 1, buffer=B), store(at(I))],
    "rows of calls": [Call(NEG, (View(X, at(I) * M, (M,), (1,)),), (View(A, at(I) * M, (M,), (1,)),), CALL.ins)],
    "inner sums": [SUM, Store(SHORT, at(I), f8(11))],
    "in a branch": [Switch(TRUE, (Case((store(at(I)),)), Case((load(at(I)),))))],
}
DEPENDENT = {
    "one place": [store(AT)],
    "neighbours": [load(at(I) + 1), store(at(I))],
    "a neighbour behind": [store(at(I) + 1), load(at(I))],
    "reversed view": [load(Affine(N - 1) - I), store(at(I))],
    "overlapping rows": [within(store(at(I) * (M - 1) + J))],
    "diagonals": [within(store(at(I) + J))],
    "the whole row": [within(load(at(J)), index=J), store(at(I))],
    "row and the next": [within(store(CELL), extent=M + 1)],
    "column and row": [within(store(CELL), load(at(J) * M + I))],
    "computed": [Load(J, TABLE, AT), store(at(J))],
    "read at a computed place": [Load(J, TABLE, AT), load(at(J)), store(at(I))],
    "position of a computed place": [Load(J, TABLE, AT), Position(K, at(J) * 2), store(at(K))],
    "stride of unknown sign": [store(at(I) * (N - M))],
    "stride that may be nothing": [within(store(at(I) * (M - 1)), extent=1)],
    "rows of calls": [Call(NEG, (View(A, at(I) * M + M, (M,), (1,)),), (View(A, at(I) * M, (M,), (1,)),), CALL.ins)],
    "in a branch": [Switch(TRUE, (Case((store(at(I)),)), Case((load(at(I) + 1),))))],
    "in a loop of unknown length": [While((), TRUE, J, (store(at(I) * M + J),))],
}


@pytest.mark.parametrize("name", INDEPENDENT)
@pytest.mark.parametrize("order", [Order.ANY, Order.GROUPED])
def test_independent_iterations(name, order):
    verify(of(within(*INDEPENDENT[name], extent=N, index=I, order=order)))


@pytest.mark.parametrize("name", DEPENDENT)
@pytest.mark.parametrize("order", [Order.ANY, Order.GROUPED])
def test_dependent_iterations(name, order):
    verify(of(within(*DEPENDENT[name], extent=N, index=I)))
    with pytest.raises(LoopIRError, match="iterations may depend on each other"):
        verify(of(within(*DEPENDENT[name], extent=N, index=I, order=order)))


def test_indices_from_outside_cancel():
    body = (load(at(J) + at(K) * M, 20), store(at(J) + at(K) * M))
    row = (Load(K, TABLE, AT), within(*body, order=Order.ANY))
    verify(of(*row))
    other = replace(body[0], at=at(J) + at(I) * M)
    with pytest.raises(LoopIRError, match="depend on each other"):
        verify(of(Load(I, TABLE, Affine(1)), row[0], within(other, body[1], order=Order.ANY)))


def test_groups_at_places_of_which_only_a_factor_is_known():
    first = (Load(J, TABLE, AT), Load(K, TABLE, Affine(1)))

    def group(*places, extent=4):
        return of(*first, within(*map(store, places), extent=extent, index=I, order=Order.ANY))

    verify(group(at(I) + at(J) * 4, at(I) + at(J) * 4 + at(K) * 8))
    verify(group(at(I) + at(J) * 4 + 4, at(I) + at(K) * 4))
    for places, extent in (
        ((at(I) + at(J) * 4, at(I) + at(K) * 4), 5),
        ((at(I) + at(J) * 4, at(I) + at(K) * 6), 4),
        ((at(I) + at(J) * 4, at(I) + at(K) * 4 + 1), 4),
        ((at(I) + at(J) * 4, at(I) + at(K) * M), 4),
        ((at(I) * 4 + at(J) * 4, at(I) * 4 + at(K) * 4), 4),
    ):
        with pytest.raises(LoopIRError, match="depend on each other"):
            verify(group(*places, extent=extent))


def test_loops_around_an_access_run():
    rows = within(within(store(at(K) * 4 + at(I) * M + J), index=J, extent=4), index=I, extent=N)
    rows = replace(rows, order=Order.ANY)
    verify(of(within(rows, index=K, extent=floordiv(M, 4))))
    with pytest.raises(LoopIRError, match="depend on each other"):
        verify(of(within(rows, index=K, extent=N)))


def test_one_iteration_depends_on_nothing():
    verify(of(within(store(AT), extent=1, index=I, order=Order.ANY)))


def test_parallel_loops_neither_carry_nor_swap():
    with pytest.raises(LoopIRError, match="iterations in any order carry r10"):
        verify(of(replace(SUM, order=Order.ANY)))
    for order in (Order.ANY, Order.GROUPED):
        with pytest.raises(LoopIRError, match="iterations in any order swap b2 and b3"):
            verify(of(replace(LOOP, order=order, swaps=((A, B),))))
        with pytest.raises(LoopIRError, match="iterations in any order swap b2 and b3"):
            verify(
                of(replace(LOOP, order=order, body=(within(extent=3, index=J).__class__(J, 3, (), swaps=((A, B),)),)))
            )


def grouped(*body, following, **parts):
    carry = Carried(f8(10), real(0.0), following, f8(11))
    return of(For(J, M, (Load(f8(12), X, at(J)), *body), (carry,), Order.GROUPED, **parts))


def let(number, op, *args):
    return Let(f8(number), op, args)


def test_what_accumulates():
    mul = catalog.mul.op()
    verify(grouped(let(13, ADD, f8(12), f8(10)), following=f8(13)))
    verify(grouped(let(13, mul, f8(12), f8(12)), let(14, ADD, f8(10), f8(13)), following=f8(14)))
    verify(grouped(let(13, ADD, f8(10), f8(12)), let(14, ADD, f8(13), f8(12)), following=f8(14)))
    inner = For(K, N, (let(16, ADD, f8(15), f8(12)),), (Carried(f8(15), f8(10), f8(16), f8(17)),), Order.GROUPED)
    verify(grouped(inner, following=f8(17)))
    carry = Carried(J, whole(0), Reg(21, INDEX), Reg(22, INDEX))
    verify(of(For(I, N, (Position(Reg(21, INDEX), at(J) + at(I) * 2),), (carry,), Order.GROUPED)))
    bad = {
        "two ops": ((let(13, ADD, f8(10), f8(12)), let(14, mul, f8(13), f8(12))), 14),
        "no associative op": ((let(13, catalog.sub.op(), f8(10), f8(12)),), 13),
        "twice": ((let(13, ADD, f8(10), f8(10)),), 13),
        "depends": ((let(13, mul, f8(10), f8(12)), let(14, ADD, f8(10), f8(13))), 14),
        "read": ((let(13, ADD, f8(10), f8(12)), Store(OUT, at(J), f8(10))), 13),
        "read after": ((let(13, ADD, f8(10), f8(12)), Store(OUT, at(J), f8(13))), 13),
        "replaced": ((), 12),
        "ordered inside": ((replace(inner, order=Order.GIVEN),), 17),
    }
    for body, following in bad.values():
        with pytest.raises(LoopIRError, match="r10 is not accumulated by one associative op"):
            verify(grouped(*body, following=f8(following)))
    with pytest.raises(LoopIRError, match="r1 is not accumulated by one associative op"):
        verify(of(For(I, N, (Position(Reg(21, INDEX), at(J) * 2),), (carry,), Order.GROUPED)))
