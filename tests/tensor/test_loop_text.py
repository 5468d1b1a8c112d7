"""The text of `LoopIR`: complete, exact, and the same in every process."""

import os
import struct
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from tenferro_tensor import Spec, catalog, primitive
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
    Order,
    Reg,
    Role,
    Store,
    Switch,
    View,
    While,
    show,
)
from tenferro_tensor_core import dim, dim_max

F8, BOOL = np.dtype("float64"), np.dtype("bool")
N = dim("n")
X = Buffer(0, F8, (N, 3), Role.INPUT)
TABLE = Buffer(1, INDEX, (2,), Role.CONSTANT)
OUT = Buffer(2, F8, (N,), Role.OUTPUT)
A, B = Buffer(3, F8, (dim_max(N - 1, 0),)), Buffer(4, F8, (dim_max(N - 1, 0),))


def f8(number):
    return Reg(number, F8)


def f64(value):
    return Literal(value, F8)


def sample() -> LoopFunction:
    i, j, w = Reg(0, INDEX), Reg(5, INDEX), Reg(10, INDEX)
    rows = For(
        j,
        3,
        (Load(f8(6), X, Affine.of(i) * 3 + j), Let(f8(7), catalog.add.op(), (f8(8), f8(6)))),
        (Carried(f8(8), f64(-0.0), f8(7), f8(9)),),
        Order.GROUPED,
    )
    each = For(i, N, (rows, Store(OUT, Affine.of(i), f8(9))), order=Order.ANY)
    test = (Let(Reg(11, BOOL), catalog.lt.op(), (w, Literal(5, INDEX))),)
    repeat = While(test, Reg(11, BOOL), w, (Store(A, Affine(0), f64(0.1)),), (), 7, ((A, B),))
    cases = (Case((), (f64(1.0),)), Case((Let(f8(12), catalog.neg.op(), (f64(2.0),)),), (f8(12),)))
    views = (View(X, Affine(N * 3 - 1), (N,), (-3,)),)
    sort = Call(
        catalog.sort.op(axis=0, descending=False),
        views,
        (View(A, Affine(0), (N,), (1,)),),
        (Spec((N,), F8),),
        "user.py:3",
    )
    body = (each, repeat, Switch(Literal(True, BOOL), cases, (f8(13),)), sort)
    return LoopFunction(("n",), (X,), (OUT,), ((TABLE, np.array([1, 2])),), (A, B), body)


def test_the_whole_text():
    assert str(sample()).splitlines() == """\
function(n)
  input b0: float64[n, 3]
  constant b1: int64[2] = f59df9f51bfcb52f7ae49756810ec78b
  output b2: float64[n]
  temporary b3: float64[max(0, n - 1)]
  temporary b4: float64[max(0, n - 1)]
  for r0 < n parallel:
    for r5 < 3 reduce:
      carry r8: float64 = float64(-0.0)
      r6: float64 = b0[r0*3 + r5]
      r7: float64 = add(r8, r6)
      next r8 = r7
    r9: float64 = last r8
    b2[r0] = r9
  while r10 < 7:
    r11: bool = lt(r10, int64(5))
    if r11:
      b3[0] = float64(0.1)
      swap b3, b4
  switch bool(True):
    case 0:
      r13: float64 = float64(1.0)
    case 1:
      r12: float64 = neg(float64(2.0))
      r13: float64 = r12
  b3[0 : [n] by [1]] = call sort[axis=0, descending=False](b0[3*n - 1 : [n] by [-3]]) of float64[n]  # user.py:3
""".splitlines()  # fmt: skip


def test_lines_of_users_can_be_left_out():
    assert show(sample(), where=False) == str(sample()).replace("  # user.py:3", "")


def test_other_processes_write_the_same():
    code = "import sys; sys.path.insert(0, sys.argv[1]); import test_loop_text; print(test_loop_text.sample())"
    for seed in ("1", "2"):
        run = subprocess.run(
            [sys.executable, "-c", code, os.path.dirname(__file__)],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        )
        assert run.stdout.rstrip("\n") == str(sample())


def of(*body, **parts):
    return str(replace(sample(), body=body, **parts))


def test_every_part_shows():
    """Functions that differ in one part have different text."""
    at, i, op = Affine(0), Reg(0, INDEX), catalog.add.op()
    loop, case = For(i, N, ()), Case((), (f64(1.0),))
    view = View(X, at, (N,), (1,))
    call = Call(catalog.neg.op(), (view,), (view,), (Spec((N,), F8),))
    carry = Carried(f8(1), f64(0.0), f64(1.0), f8(2))
    repeat = While((), Literal(True, BOOL), i, ())
    odd = struct.unpack("<d", struct.pack("<Q", 0x7FF8000000000001))[0]
    nan, two = float("nan"), (case, case)
    bodies = [
        (), (Load(f8(1), X, at),), (Load(f8(2), X, at),), (Load(f8(1), A, at),), (Load(f8(1), X, at + 1),),
        (Load(f8(1), X, at + N),), (Load(f8(1), X, at + i),), (Load(f8(1), X, Affine.of(i) * N),),
        (Load(Reg(1, np.dtype("float32")), X, at),),
        *[(Store(A, at, f64(v)),) for v in (0.0, -0.0, 1.0, 1.0 + 2**-52, nan, -nan, odd, float("inf"))],
        *[(Store(A, at, Literal(v, np.dtype("complex128"))),) for v in (0j, complex(0, -0.0), complex(-0.0, 0), 1j)],
        (Store(A, at, Literal(1.0, np.dtype("float32"))),), (Store(A, at, Literal(1, F8)),),
        (Let(f8(1), op, (f8(2), f8(3))),), (Let(f8(1), op, (f8(3), f8(2))),),
        (Let(f8(1), catalog.sub.op(), (f8(2), f8(3))),),
        (Let(f8(1), catalog.convert.op(dtype=F8), (f8(2),)),),
        (Let(f8(1), catalog.convert.op(dtype=np.dtype("int8")), (f8(2),)),),
        (loop,), (replace(loop, extent=3),), (replace(loop, order=Order.ANY),), (replace(loop, order=Order.GROUPED),),
        (replace(loop, swaps=((A, B),)),), (replace(loop, swaps=((B, A),)),), (replace(loop, carries=(carry,)),),
        *[(replace(loop, carries=(replace(carry, **{part: f8(8)}),)),) for part in Carried.__slots__],
        (replace(loop, body=(Store(A, at, f64(1.0)),)),), (loop, Store(A, at, f64(1.0))),
        (repeat,), (replace(repeat, most=3),), (replace(repeat, test=(Load(f8(1), X, at),)),),
        (replace(repeat, body=(Load(f8(1), X, at),)),), (replace(repeat, condition=Reg(9, BOOL)),),
        (replace(repeat, swaps=((A, B),)),),
        (Switch(f8(1), (case,), (f8(2),)),), (Switch(f8(1), two, (f8(2),)),), (Switch(f8(3), (case,), (f8(2),)),),
        (Switch(f8(1), (case,), (f8(4),)),), (Switch(f8(1), (Case((loop,), (f64(1.0),)),), (f8(2),)),),
        (call,), (replace(call, op=catalog.abs.op()),), (replace(call, where="here"),),
        (replace(call, ins=(Spec((3,), F8),)),), (replace(call, operands=(replace(view, at=at + 1),)),),
        (replace(call, operands=(replace(view, shape=(3,)),)),),
        (replace(call, results=(replace(view, strides=(2,)),)),),
        (replace(call, results=()),), (replace(call, operands=()),),
    ]  # fmt: skip
    texts = [of(*body) for body in bodies]
    texts += [of(sizes=()), of(inputs=()), of(outputs=()), of(constants=()), of(temporaries=(A,)), of(inputs=(OUT,))]
    texts += [of(constants=((TABLE, np.array([1, 3])),)), of(temporaries=(B, A)), of(outputs=(X,))]
    for text, other in zip(texts, bodies, strict=False):
        assert texts.count(text) == 1, other
    assert len(set(texts)) == len(texts)


def test_long_extents_are_written_in_full():
    shape, other = N, N
    for k in range(1, 40):
        shape, other = dim_max(shape // 2 + k, 3 - shape), dim_max(other // 2 + k, 4 - other)
    texts = [of(temporaries=(Buffer(5, F8, (d,)),)) for d in (shape, other)]
    assert texts[0] != texts[1]
    assert "..." not in texts[0]


def test_metadata_are_written_exactly():
    @primitive
    def weighted(x: Spec, *, by):
        return x

    def body(by):
        return of(Let(f8(1), weighted.op(by=by), (f8(2),)))

    def shift(x):
        return x

    values = [0.0, -0.0, 1, 1.0, True, None, "1", (1,), ((1,),), (1, 1), N, N + 1, F8, INDEX, slice(1), slice(0, 1)]
    values += [
        Spec((3,), F8),
        Spec((N,), F8),
        catalog.add.op(),
        catalog.add,
        frozenset({1, 2}),
        shift,
        lambda x: x,
        b"1",
    ]
    texts = [body(v) for v in values]
    assert len(set(texts)) == len(texts)
    assert texts == [body(v) for v in values]


@pytest.mark.parametrize("dtype", ["float32", "int16", "bool", "complex64"])
def test_constants_by_content(dtype):
    table = Buffer(1, np.dtype(dtype), (2, 2), Role.CONSTANT)
    a = np.array([[0, 1], [1, 1]], dtype)
    assert of(constants=((table, a),)) == of(constants=((table, np.asfortranarray(a)),))
    assert of(constants=((table, a),)) != of(constants=((table, a.T[::-1]),))
