"""Views of every kind of value write to their base, as NumPy's do; what is no view does not."""

import copy
import operator
import pickle
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tenferro_runtime as tr
from tenferro_ad import EagerTensor, grad, jvp, no_grad, taylor, variable, vjp
from tenferro_tensor.calls import kin
from tenferro_tensor_core import DTypeError, GradientError, ShapeError, TracingError

SHAPE = (3, 4, 2)

VIEWS = {
    "integer": lambda xp, x: x[1],
    "negative integer": lambda xp, x: x[:, -1],
    "slices": lambda xp, x: x[1:, ::2],
    "reversed": lambda xp, x: x[::-1, 3:0:-2],
    "new axis": lambda xp, x: x[None, 1, ..., None],
    "ellipsis": lambda xp, x: x[..., 1],
    "everything": lambda xp, x: x[...],
    "transpose": lambda xp, x: x.transpose(2, 0, 1),
    "all reversed": lambda xp, x: x.transpose(),
    "T": lambda xp, x: x[0].T,
    "mT": lambda xp, x: x.mT,
    "permute_dims": lambda xp, x: xp.permute_dims(x, (1, 2, 0)),
    "matrix_transpose": lambda xp, x: xp.matrix_transpose(x),
    "swapaxes": lambda xp, x: xp.swapaxes(x, 0, 2),
    "method swapaxes": lambda xp, x: x.swapaxes(0, -1),
    "moveaxis": lambda xp, x: xp.moveaxis(x, 0, 2),
    "moveaxis of several": lambda xp, x: xp.moveaxis(x, (0, 1), (1, 2)),
    "rollaxis": lambda xp, x: xp.rollaxis(x, 2),
    "reshape": lambda xp, x: xp.reshape(x, (4, -1)),
    "method reshape": lambda xp, x: x.reshape(2, 12),
    "reshape of a part": lambda xp, x: x[1].reshape(-1),
    "ravel": lambda xp, x: xp.ravel(x),
    "method ravel": lambda xp, x: x.ravel(),
    "expand_dims": lambda xp, x: xp.expand_dims(x, axis=1),
    "squeeze": lambda xp, x: xp.squeeze(x[:1], axis=0),
    "flip": lambda xp, x: xp.flip(x, axis=1),
    "flip of all": lambda xp, x: xp.flip(x),
    "flipud": lambda xp, x: xp.flipud(x),
    "rot90": lambda xp, x: xp.rot90(x),
    "atleast_2d": lambda xp, x: xp.atleast_2d(x[0, 0]),
    "split": lambda xp, x: xp.split(x, 2, axis=1)[1],
    "split at": lambda xp, x: xp.split(x, [1, 3], axis=1)[1],
    "array_split": lambda xp, x: xp.array_split(x, 2)[0],
    "unstack": lambda xp, x: xp.unstack(x, axis=1)[2],
    "iteration": lambda xp, x: list(x)[2],
    "view of views": lambda xp, x: x[1:].swapaxes(0, 2)[::-1][1].T,
}

PARTS_OF_MATRICES = {
    "diagonal": lambda xp, x: x.diagonal() if xp is tr else np.einsum("ii->i", x),
    "a diagonal above": lambda xp, x: x.diagonal(1) if xp is tr else np.einsum("ii->i", x[:-1, 1:]),
    "real": lambda xp, x: x.real,
    "imag": lambda xp, x: x.imag,
    "imag of a row": lambda xp, x: x[1].imag[::-1],
}

VALUES = {
    "an array as key": lambda x: x[tr.asarray([0, 1])],
    "a list as key": lambda x: x[[0, 1]],
    "a mask": lambda x: x[x > 3.0],
    "broadcast_to": lambda x: tr.broadcast_to(x, (2, *SHAPE)),
    "a copy": lambda x: x.copy(),
    "another copy": lambda x: tr.asarray(x, copy=True),
    "copy.copy": copy.copy,
    "copy.deepcopy": copy.deepcopy,
    "flatten": lambda x: x.flatten(),
    "reshape that copies": lambda x: tr.reshape(x, (2, 12), copy=True),
    "reshape that moves": lambda x: x.mT.reshape(-1),
    "plus": operator.pos,
    "a sum": lambda x: x + 0.0,
    "roll by nothing": lambda x: tr.roll(x, 0),
    "where": lambda x: tr.where(True, x, x),
    "take": lambda x: tr.take(x, tr.asarray([0]), axis=0),
    "astype": lambda x: x.astype(x.dtype),
    "an element": lambda x: x[0, 0, 0],
    "concat": lambda x: tr.concat([x]),
    "tile": lambda x: tr.tile(x, (1,)),
    "sum over nothing": lambda x: tr.sum(x, axis=()),
    "stop_gradient": lambda x: tr.stop_gradient(x),
}


def program(view, writes):
    """A program of `xp` that writes to a view and to its base, and shows both."""

    def run(xp, x, y):
        v = view(xp, x)
        w = view(xp, x)
        writes(xp, x, v, y)
        return x, v, w

    return run


def several_writes(xp, x, v, y):
    v += y
    v[0] = 2.0 * v[0]
    x *= 2.0
    v[...] = v * y
    x[0] += 1.0


def ways(f, x, y):
    """The results of a program by each kind of value, with a name for each way."""
    fixed = lambda x, y: f(tr, x * 1.0, y)
    yield "concrete", f(tr, tr.asarray(x, copy=True), tr.asarray(y))
    yield "concrete, NumPy's", f(tr, tr.asarray(np.array(x)), tr.asarray(y))
    yield "compiled", tr.compile(fixed)(tr.asarray(x), tr.asarray(y))
    yield "traced", tr.trace(fixed, tr.asarray(x), tr.asarray(y)).run(tr.asarray(x), tr.asarray(y))
    lanes = tr.vmap(fixed)(tr.stack([tr.asarray(x), tr.asarray(x)]), tr.stack([tr.asarray(y), tr.asarray(y)]))
    yield "mapped", [r[1] for r in lanes]
    yield "mapped values", [r[0] for r in tr.vmap(fixed, in_axes=(None, 0))(tr.asarray(x), tr.asarray(y)[None])]
    if np.iscomplexobj(x):
        return
    yield "recorded", vjp(fixed, tr.asarray(x), tr.asarray(y))[0]
    yield "recorded values", vjp(lambda y: fixed(tr.asarray(x), y), tr.asarray(y))[0]
    yield "dual", jvp(fixed, (tr.asarray(x), tr.asarray(y)), (tr.asarray(x), tr.asarray(y)))[0]
    yield "series", taylor(lambda y: fixed(tr.asarray(x), y), (tr.asarray(y),), ((tr.asarray(y),),))[0]


def assert_as_in_numpy(view, x, y):
    f = program(view, several_writes)
    want = f(np, x.copy(), y)
    for way, found in ways(f, x, y):
        for a, b in zip(found, want, strict=True):
            np.testing.assert_allclose(np.asarray(a), b, rtol=1e-13, err_msg=way)


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_writes_reach_the_base_and_its_views(view):
    x = np.arange(24.0).reshape(SHAPE) + 1.0
    assert_as_in_numpy(view, x, np.float64(1.5))


@pytest.mark.parametrize("view", PARTS_OF_MATRICES.values(), ids=PARTS_OF_MATRICES)
def test_diagonals_and_parts_of_complex_numbers(view):
    x = np.arange(9.0).reshape(3, 3) + 1j * np.arange(9.0)[::-1].reshape(3, 3)
    assert_as_in_numpy(view, x, np.float64(1.5))


@pytest.mark.parametrize("name", ["slices", "reversed", "reshape", "transpose", "view of views"])
def test_gradients_are_exact(name):
    f = program(VIEWS[name], several_writes)
    x, y = np.arange(24.0).reshape(SHAPE) / 8.0 + 0.5, np.float64(0.7)

    def total(xp, x, y):
        return sum([(a**2).sum() for a in f(xp, x * 1.0, y)])

    g = grad(lambda x, y: total(tr, x, y), argnums=(0, 1))
    gx, gy = g(tr.asarray(x), tr.asarray(y))
    h = 1e-6
    assert float(gy) == pytest.approx((total(np, x, y + h) - total(np, x, y - h)) / (2 * h), rel=1e-7)
    direction = np.cos(np.arange(24.0)).reshape(SHAPE)
    slope = (total(np, x + h * direction, y) - total(np, x - h * direction, y)) / (2 * h)
    assert float(tr.sum(gx * direction)) == pytest.approx(slope, rel=1e-7)
    push = jvp(lambda x: total(tr, x, y), (tr.asarray(x),), (tr.asarray(direction),))[1]
    assert float(push) == pytest.approx(slope, rel=1e-7)
    cx, cy = tr.compile(g)(tr.asarray(x), tr.asarray(y))
    np.testing.assert_allclose(np.asarray(cx), np.asarray(gx), rtol=1e-13)
    assert float(cy) == pytest.approx(float(gy), rel=1e-13)


@pytest.mark.parametrize("other", VALUES.values(), ids=VALUES)
@pytest.mark.parametrize("kind", ["concrete", "recorded", "traced"])
def test_other_values_never_change(other, kind):
    def run(x):
        x = x * 1.0
        v = other(x)
        assert len(kin(v)) == 1, "not linked"
        before = v + 0.0
        if v.ndim:
            v[...] = -7.0
        seen = x + 0.0
        w = other(x)
        x[...] = -9.0
        return seen, before, w

    x = np.arange(24.0).reshape(SHAPE)
    if kind != "concrete" and other in (VALUES["a mask"], copy.copy, copy.deepcopy):
        pytest.skip("only of concrete tensors")
    ways: dict[str, Callable[..., Any]] = {
        "concrete": run, "recorded": lambda x: vjp(run, x)[0], "traced": tr.compile(run),
    }  # fmt: skip
    way = ways[kind]
    seen, before, w = way(tr.asarray(x))
    np.testing.assert_array_equal(np.asarray(seen), x)
    np.testing.assert_array_equal(np.asarray(w), np.asarray(before))


def test_a_concrete_base_becomes_recorded_with_its_views():
    w = variable(2.0)
    y = tr.zeros((3, 4))
    row, part, corner, back, flat = y[1], y[:, 1::2], y.T[2:, 1:], y[::-1], y.reshape(-1)
    row[1] = w * w
    assert all(isinstance(v, EagerTensor) for v in (y, row, part, corner, back, flat))
    want = np.zeros((3, 4))
    want[1, 1] = 4.0
    for found, b in (
        (row, want[1]), (part, want[:, 1::2]), (corner, want.T[2:, 1:]), (back, want[::-1]), (flat, want.reshape(-1)),
    ):  # fmt: skip
        np.testing.assert_array_equal(np.asarray(found.detach()), b)
    flat[5] *= 3.0
    assert float(y[1, 1]) == 12.0
    y.sum().backward()
    assert float(w.grad) == 12.0


def test_views_whose_base_is_gone_still_see_each_other():
    a, b = (lambda x: (x[:3], x[2:]))(tr.arange(5) * 1.0)
    a[2] = 7.0
    assert b.tolist() == [7.0, 3.0, 4.0]
    w = variable(1.5)
    b[0] = w
    assert isinstance(a, EagerTensor) and a.tolist() == [0.0, 1.0, 1.5]
    c, d = (lambda x: (x[:2], x[1:]))(variable([1.0, 2.0, 3.0]) * 2.0)
    c *= 2.0
    assert d.tolist() == [8.0, 6.0]


def test_what_derivatives_and_programs_keep_stays():
    x = tr.arange(4) * 1.0
    v = x[1:3]
    _, pull = vjp(lambda a: (a * v).sum(), tr.ones(2))
    f = tr.compile(lambda a: a * v)
    before = f(tr.ones(2))
    x[...] = 9.0
    assert pull(1.0)[0].tolist() == before.tolist() == [1.0, 2.0]
    assert f(tr.ones(2)).tolist() == v.tolist() == [9.0, 9.0]


def test_views_of_variables():
    w = variable([1.0, 2.0, 3.0])
    v = w[1:]
    with pytest.raises(GradientError, match="elements of a variable"):
        v += 1.0
    assert w.tolist() == [1.0, 2.0, 3.0]
    with no_grad():
        u = w[:2]
        u -= 0.5
    assert w.is_leaf and w.tolist() == [0.5, 1.5, 3.0]
    (w * w).sum().backward()
    assert w.grad.tolist() == [1.0, 3.0, 6.0]


def test_a_recorded_body_does_not_write_to_a_view_from_outside():
    def f(a):
        kept = a * 2.0
        row = kept[1:]

        def body(i, c):
            row[0] = c
            return c + i

        return tr.fori_loop(0, 3, body, 0.0) + kept.sum()

    with pytest.raises(TracingError, match="make it part of the carry of the loop"):
        tr.compile(f)(tr.ones(3))


def test_views_of_a_carry():
    def body(i, c):
        inner = c[1:-1]
        inner += c[:-2]
        c.reshape(-1)[0] = inner[i]
        return c

    def f(xp, x):
        if xp is tr:
            return tr.fori_loop(0, 3, body, x * 1.0)
        x = x * 1.0
        for i in range(3):
            x = body(i, x)
        return x

    x = np.arange(5.0)
    want = f(np, x)
    for way in (lambda x: f(tr, x), tr.compile(lambda x: f(tr, x)), lambda x: vjp(lambda x: f(tr, x), x)[0]):
        np.testing.assert_array_equal(np.asarray(way(tr.asarray(x))), want)


def test_keys_of_views_keep_their_values():
    i, x = tr.asarray(0), tr.zeros((3, 2))
    row = x[i]
    i += 1
    row[...] = 5.0
    assert x.tolist() == [[5.0, 5.0], [0.0, 0.0], [0.0, 0.0]]

    def f(x, i):
        i = i + 0
        row = x[i]
        i += 1
        row *= 3.0
        return x[i] + row

    assert tr.compile(f)(tr.ones((3, 2)), tr.asarray(1)).tolist() == [4.0, 4.0]


@pytest.mark.parametrize("op", ["iadd", "isub", "imul", "itruediv", "ipow", "ifloordiv", "imod", "imatmul"])
@pytest.mark.parametrize("size", [1, 2, 300])
def test_in_place_operators(op, size):
    f = getattr(operator, op)
    a = np.linspace(1.0, 2.0, size * size).reshape(size, size)
    b = a[::-1] + 0.5
    want = f(a.copy(), b)
    x = tr.asarray(a, copy=True)
    same, view = x, x[:, :1]
    assert f(x, tr.asarray(b)) is x is same
    np.testing.assert_allclose(np.asarray(x), want, rtol=1e-12)
    np.testing.assert_allclose(np.asarray(view), want[:, :1], rtol=1e-12)
    y = vjp(lambda a: f(a * 1.0, tr.asarray(b)), tr.asarray(a))[0]
    np.testing.assert_allclose(np.asarray(y), want, rtol=1e-12)


@pytest.mark.parametrize("op", ["iand", "ior", "ixor", "ilshift", "irshift"])
def test_in_place_operators_of_integers(op):
    a, b = np.asarray([12, 7, 9]), np.asarray([1, 2, 3])
    x = tr.asarray(a, copy=True)
    view = x[1:]
    getattr(operator, op)(x, tr.asarray(b))
    want = getattr(operator, op)(a, b)
    assert x.tolist() == want.tolist() and view.tolist() == want[1:].tolist()


def test_in_place_operators_keep_dtype_and_shape():
    n, s, z = tr.arange(3), tr.ones(2, dtype="float32"), tr.ones((2, 1))
    with pytest.raises(DTypeError, match=r"cannot store float64 in int64\[3\]"):
        n += 0.5
    with pytest.raises(ShapeError, match=r"cannot make float64\[2, 1\] an array of shape \(2, 3\)"):
        z += tr.ones(3)
    s += tr.ones(2)
    s *= np.float64(2.0)
    assert s.dtype == np.float32 and s.tolist() == [4.0, 4.0]
    with pytest.raises(TypeError):
        s += "a"
    assert n.tolist() == [0, 1, 2] and z.tolist() == [[1.0], [1.0]]
    number = tr.asarray(2.0)
    same = number
    number *= 3.0
    assert same is number and float(same) == 6.0


def test_exported_memory_is_shared_and_writable():
    x = tr.arange(4) * 1.0
    view = x[1:]
    a = np.asarray(x)
    b = np.from_dlpack(view)
    a[0], x[1], view[1] = 10.0, 11.0, 12.0
    view += 1.0
    b[2] = 20.0
    want = [10.0, 12.0, 13.0, 20.0]
    assert x.tolist() == a.tolist() == want and view.tolist() == b.tolist() == want[1:]
    _, pull = vjp(lambda w: (w * x).sum(), tr.ones(4))
    a[...] = -1.0
    x[0] = 5.0
    assert pull(1.0)[0].tolist() == want and x.tolist() == [5.0, *want[1:]] and view.tolist() == want[1:]


def test_exported_memory_that_others_hold_is_a_copy():
    x = tr.arange(3) * 1.0
    held = +x
    a, b = np.asarray(x), np.asarray(x, copy=False)
    a[0] = 9.0
    assert x.tolist() == held.tolist() == [0.0, 1.0, 2.0] and not b.flags.writeable
    assert pickle.loads(pickle.dumps(x[1:])).tolist() == [1.0, 2.0]
    del held, b
    c = np.asarray(x)
    c[0] = 9.0
    assert x.tolist() == [9.0, 1.0, 2.0]


def test_memory_that_nobody_else_holds_any_more_is_owned_again():
    x = tr.arange(1000) * 1.0
    at = np.asarray(x).ctypes.data
    grad(lambda w: (w * x).sum())(tr.ones(1000))
    x[3] = 5.0
    assert x.data.ctypes.data == at


def test_numpy_functions_that_write():
    def run(xp, x):
        v = x[1:]
        np.copyto(v[0], np.asarray([9.0, 8.0, 7.0, 6.0]))
        np.copyto(v, -2.0, where=np.asarray([[True, False, False, False]] * 2))
        np.add(x[:2], 1.0, out=x[:2])
        np.minimum.accumulate(x[0][::-1], out=x[0][::-1])
        np.put_along_axis(x, np.asarray([[0], [1], [2]]), 50.0, axis=1)
        np.fill_diagonal(x, -1.0)
        np.add.at(x, (np.asarray([0, 0, 1]), np.asarray([1, 1, 2])), 2.0)
        np.divide.at(x, (0, [1, 1]), 3.0)
        np.put(x, [2, -1], [3.0, 4.0])
        np.put(v, [2, 99], 7.0, mode="clip")
        np.place(x, np.asarray(x) > 40, [0.0])
        np.putmask(x, np.asarray(x) > 8, np.asarray([-5.0, -6.0]))
        np.multiply(x, 2.0, out=x, where=np.asarray(x) > 3)
        np.sin(v[0], out=v[1])
        v[0].fill(2.0)
        v[1].sort()
        v.put([0, 5], [3.5, 4.5])
        x[0].partition(2)
        np.fill_diagonal(x.T, 8.0, wrap=True)
        return np.array(x)

    a = np.arange(12.0).reshape(3, 4)
    np.testing.assert_array_equal(run(tr, tr.asarray(a, copy=True)), run(np, a.copy()))


def test_functions_that_write_are_differentiated_and_compiled():
    def f(a):
        x = tr.zeros((3, 3))
        tr.fill_diagonal(x, a)
        tr.copyto(x[1], a * 2.0, where=tr.asarray([True, False, True]))
        tr.put_along_axis(x, tr.asarray([[2], [0], [1]]), a[:, None], 1)
        tr.putmask(x, x > 2.5, a * a)
        tr.put(x, [1], a[0])
        return (x * x).sum()

    a = tr.asarray([0.5, 1.5, 3.0])
    slopes = [float(f(a + 1e-6 * e) - f(a - 1e-6 * e)) / 2e-6 for e in tr.eye(3)]
    np.testing.assert_allclose(np.asarray(grad(f)(a)), slopes, rtol=1e-7)
    np.testing.assert_allclose(np.asarray(tr.compile(grad(f))(a)), slopes, rtol=1e-7)
    assert float(tr.compile(f)(a)) == pytest.approx(float(f(a)), rel=1e-15)


def test_threads_read_while_another_writes():
    x = tr.zeros(1000)
    views = [x[i:] for i in range(20)]
    failed = []

    def read():
        try:
            for _ in range(300):
                for v in views:
                    assert v.shape[0] == len(np.asarray(v + 0.0))
                    v[2:][0]
        except Exception as error:
            failed.append(error)

    def write():
        for i in range(300):
            views[i % 20][3] += 1.0
            if i % 50 == 0:
                held.append(+x)

    held: list[Any] = []
    threads = [threading.Thread(target=read) for _ in range(2)] + [threading.Thread(target=write)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failed and float(x.sum()) == 300.0
