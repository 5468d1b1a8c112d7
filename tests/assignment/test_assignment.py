"""``x[key] = values``: what it means on every kind of value, and what it leaves alone."""

import copy

import numpy as np
import pytest

import tenferro_runtime as tr
from tenferro_ad import EagerTensor, check_grads, checkpoint, grad, jvp, no_grad, taylor, value_and_grad, variable, vjp
from tenferro_tensor_core import DTypeError, GradientError, TracingError


def filled(a):
    """Uses assignments of every form; `a` has five elements."""
    y = tr.zeros(5)
    y[0] = a[1] * 2
    y[1:3] = a[3:] ** 2
    y[-1] += a[0]
    y[y > 3.0] = a[2]
    z = tr.zeros((2, 5))
    z[0] = y
    z[:, 1] *= a[4]
    z[1, [0, 3]] = a[:2]
    z[tr.asarray([False, True])] += 1.0
    return (z * z).sum() + y[2]


def filled_by_numpy(a):
    y = np.zeros(5)
    y[0] = a[1] * 2
    y[1:3] = a[3:] ** 2
    y[-1] += a[0]
    y[y > 3.0] = a[2]
    z = np.zeros((2, 5))
    z[0] = y
    z[:, 1] *= a[4]
    z[1, [0, 3]] = a[:2]
    z[np.asarray([False, True])] += 1.0
    return (z * z).sum() + y[2]


A = tr.asarray([0.3, -1.2, 0.7, 2.5, 1.4])


@pytest.mark.parametrize(
    "way", [filled, tr.compile(filled), lambda a: tr.vmap(filled)(a[None])[0]], ids=["eager", "compiled", "mapped"]
)
def test_values_are_those_of_numpy(way):
    np.testing.assert_allclose(np.asarray(way(A)), filled_by_numpy(np.asarray(A)), rtol=1e-15)


@pytest.mark.parametrize(
    "gradient",
    [
        grad(filled),
        grad(tr.compile(filled)),
        tr.compile(grad(filled)),
        lambda a: tr.vmap(grad(filled))(a[None])[0],
        lambda a: tr.stack([jvp(filled, (a,), (e,))[1] for e in tr.eye(5)]),
        lambda a: tr.stack([taylor(filled, (a,), ((e,),))[1][0] for e in tr.eye(5)]),
    ],
    ids=["eager", "of compiled", "compiled", "mapped", "forward", "taylor"],
)
def test_gradients_are_exact(gradient):
    check_grads(filled, (A,), order=1)
    a, step = np.array(A), 1e-6
    wanted = [(filled_by_numpy(a + step * e) - filled_by_numpy(a - step * e)) / (2 * step) for e in np.eye(5)]
    np.testing.assert_allclose(np.asarray(gradient(A)), wanted, rtol=1e-7, atol=1e-8)


def test_second_order():
    check_grads(filled, (A,), order=2)


def test_memory_is_reused_where_nobody_holds_it():
    x = tr.ones(1000) * 2.0
    at = x.data.ctypes.data
    x[3] = 5.0
    assert x.data.ctypes.data == at and x[3] == 5.0
    view, other = x[:10], +x
    x[4] = 7.0
    assert x.data.ctypes.data != at and view[4] == x[4] == 7.0 and other[4] == 2.0


HOLDERS = {
    "a copy of a view": lambda x: x[1:].copy(),
    "a picked part": lambda x: x[[1, 2]],
    "an alias": lambda x: +x,
    "a shallow copy": copy.copy,
    "NumPy's copy": np.array,
    "a detached value": lambda x: x.detach(),
    "a broadcast": lambda x: tr.broadcast_to(x, (3, 4)),
    "an EagerTensor": variable,
    "a memoryview": lambda x: memoryview(x.data),
}


@pytest.mark.parametrize("holder", HOLDERS.values(), ids=HOLDERS)
def test_whoever_else_holds_the_memory_sees_no_change(holder):
    x = tr.asarray([1.0, 2.0, 3.0, 4.0]) * 1.0
    held = holder(x)
    before = np.array(held.detach() if isinstance(held, EagerTensor) else held)
    x[:] = -1.0
    assert x.tolist() == [-1.0] * 4
    np.testing.assert_array_equal(held.detach() if isinstance(held, EagerTensor) else held, before)


def test_shared_memory_of_numpy_is_copied_first():
    mine = np.zeros(3)
    x = tr.asarray(mine)
    x[0] = 1.0
    assert mine.tolist() == [0, 0, 0] and x.tolist() == [1, 0, 0]
    mine[1] = 9.0
    assert x.tolist() == [1, 0, 0]


def test_the_object_is_the_same_for_all_its_names():
    x = tr.zeros(2)
    same, box = x, [x]
    x[0] = 1.0
    assert same is x and same.tolist() == box[0].tolist() == [1.0, 0.0]
    x += 1.0
    assert same is x and same.tolist() == [2.0, 1.0]
    x = x + 1.0
    assert same.tolist() == [2.0, 1.0] and x.tolist() == [3.0, 2.0]


def test_overlapping_parts():
    x = tr.arange(5) * 1.0
    x[1:] = x[:-1]
    assert x.tolist() == [0, 0, 1, 2, 3]
    x[::-1] = x
    assert x.tolist() == [3, 2, 1, 0, 0]


def test_what_a_graph_keeps_stays():
    k, x = tr.ones(3) * 2.0, tr.arange(3) * 1.0
    y, pull = vjp(lambda x: x * k * x, x)
    k[0], x[1], y[2] = 100.0, 50.0, 9.0
    assert pull(tr.ones(3))[0].tolist() == [0.0, 4.0, 8.0]
    w = variable([1.0, 2.0])
    z = (w * w).sum() + (w * 3).sum()
    v = w.detach()
    v[0] = 10.0
    z.backward()
    assert w.grad.tolist() == [5.0, 7.0] and w.tolist() == [1.0, 2.0]


def test_gradients_are_objects_of_their_own():
    a, b = variable([1.0, 2.0]), variable([3.0, 4.0])
    (a + b).sum().backward()
    a.grad[0] = 7.0
    assert (a.grad.tolist(), b.grad.tolist()) == ([7.0, 1.0], [1.0, 1.0])
    ga, gb = grad(lambda x, y: (x + y).sum(), argnums=(0, 1))(tr.ones(2), tr.ones(2))
    ga[0] = 7.0
    assert gb.tolist() == [1.0, 1.0]
    x, t = tr.ones(2), tr.ones(2)
    _, slope = jvp(lambda x: x, (x,), (t,))
    slope[0] = 9.0
    assert t.tolist() == [1.0, 1.0]


def test_copies_of_variables():
    for copied in (lambda w: w.copy(), lambda w: tr.asarray(w, copy=True), lambda w: +w):
        w = variable([1.0, 2.0])
        y = copied(w)
        y[0] = 5.0
        tr.sum(y * y).backward()
        assert (w.tolist(), y.tolist(), w.grad.tolist()) == ([1.0, 2.0], [5.0, 2.0], [0.0, 4.0])
        with pytest.raises(GradientError, match="elements of a variable"):
            w[0] = 1.0


def test_variables():
    w = variable([1.0, 2.0])
    with pytest.raises(GradientError, match=r"write y = x\.copy\(\) and assign to y, or assign inside no_grad"):
        w[0] = 3.0
    with no_grad():
        w[0] = 3.0
    assert w.is_leaf and w.tolist() == [3.0, 2.0]
    (w * w).sum().backward()
    assert w.grad.tolist() == [6.0, 4.0]


def test_a_concrete_value_becomes_a_recorded_one():
    w = variable(2.0)
    x = tr.zeros(3)
    x[1] = w * w
    assert isinstance(x, EagerTensor) and x.requires_grad
    x.sum().backward(retain_graph=True)
    assert float(w.grad) == 4.0
    x[1] = 0.0
    w.zero_grad()
    (x.sum() + w).backward()
    assert float(w.grad) == 1.0


def test_loops_assign_to_their_carry():
    def recurrence(a):
        def step(i, c):
            c[i] = c[i - 1] * 0.5 + a[i]
            return c

        first = tr.zeros(5)
        first[0] = 1.0
        out = tr.fori_loop(1, 5, step, first)
        assert first.tolist() == [1.0, 0.0, 0.0, 0.0, 0.0]
        return out.sum()

    wanted = float(recurrence(A))
    assert float(tr.compile(recurrence)(A)) == pytest.approx(wanted, rel=1e-15)
    np.testing.assert_allclose(np.asarray(grad(recurrence)(A)), [0, 1.875, 1.75, 1.5, 1.0])
    np.testing.assert_allclose(np.asarray(tr.compile(grad(recurrence))(A)), [0, 1.875, 1.75, 1.5, 1.0])
    check_grads(checkpoint(recurrence), (A,), order=1)


def changed(x):
    x[0] = 5.0
    x *= 2.0
    return x.sum()


LOCAL = {
    "grad": grad(changed),
    "vmap": lambda x: tr.vmap(changed)(x[None]),
    "jvp": lambda x: jvp(changed, (x,), (x,)),
    "vjp": lambda x: vjp(changed, x),
    "taylor": lambda x: taylor(changed, (x,), ((x,),)),
    "cond": lambda x: tr.cond(True, changed, changed, x),
    "beside grad": lambda x: value_and_grad(lambda y, x: changed(x) * y.sum())(x, x),
    "recorded cond": lambda x: tr.compile(lambda x: tr.cond(x[0] > 0, changed, changed, x * 2))(x),
    "trace": lambda x: tr.trace(changed, x).run(x),
}


@pytest.mark.parametrize("call", LOCAL.values(), ids=LOCAL)
def test_arguments_of_transforms_are_values_of_the_transform(call):
    x = tr.ones(3)
    call(x)
    assert x.tolist() == [1.0, 1.0, 1.0]
    assert grad(changed)(x).tolist() == [0.0, 2.0, 2.0]


def test_a_compiled_function_writes_what_the_eager_call_writes():
    f = tr.compile(changed)
    x, a, w = tr.ones(3), np.ones(3), tr.ones((2, 3))
    view = x[1:]
    assert float(f(x)) == 14.0 and x.tolist() == [10.0, 2.0, 2.0] and view.tolist() == [2.0, 2.0]
    assert float(f(a)) == 14.0 and a.tolist() == [10.0, 2.0, 2.0]
    assert float(f(w[1])) == 14.0 and w.tolist() == [[1.0, 1.0, 1.0], [10.0, 2.0, 2.0]]
    assert float(f(np.float64(2.0) * tr.ones(3))) == 18.0

    def twice(x):
        f(x)
        return f(x)

    x = tr.ones(3)
    assert float(twice(x)) == 18.0 and x.tolist() == [10.0, 4.0, 4.0]
    assert grad(twice)(tr.ones(3)).tolist() == grad(tr.compile(twice))(tr.ones(3)).tolist() == [0.0, 4.0, 4.0]
    assert checkpoint(changed)(x) == 26.0 and x.tolist() == [10.0, 8.0, 8.0]


def test_a_compiled_function_of_one_array_twice():
    def both(x, y):
        x[0] = 5.0
        return y * 1.0

    for way in (both, tr.compile(both)):
        x = tr.zeros(2)
        assert way(x, x).tolist() == [5.0, 0.0]
        assert way(x, x[:1]).tolist() == [5.0]


def test_a_compiled_function_does_not_assign_to_arrays_from_outside():
    count = tr.zeros(2)

    def counted(x):
        count[0] += 1.0
        return x

    def kept(x):
        count[1] = x[0]
        return x

    for f in (counted, kept):
        with pytest.raises(TracingError, match="assigns to elements of count"):
            tr.compile(f)(A)
        assert count.tolist() == [0.0, 0.0]


def test_values_from_outside_of_a_recorded_body_are_refused():
    def f(a):
        kept = a * 2

        def body(i, c):
            kept[0] = c
            return c + i

        return tr.fori_loop(0, 3, body, 0.0) + kept.sum()

    with pytest.raises(TracingError, match="make it part of the carry of the loop"):
        tr.compile(f)(A)


def test_programs_notice_what_was_assigned_to_their_constants():
    scale = tr.asarray([1.0, 2.0])
    f = tr.compile(lambda x: x * scale)
    assert [f(2.0).tolist() for _ in range(3)] == [[2.0, 4.0]] * 3
    scale[0] = 5.0
    assert [f(2.0).tolist() for _ in range(3)] == [[10.0, 4.0]] * 3
    scale[1] = 7.0
    assert f(2.0).tolist() == [10.0, 14.0]
    table = {"scale": tr.asarray([1.0])}
    g = tr.compile(lambda x: x * table["scale"])
    assert g(2.0).tolist() == [2.0]
    table["scale"][0] = 4.0
    assert g(2.0).tolist() == [8.0]


def test_a_value_used_before_and_after_within_a_program():
    def f(x):
        y = x + 0.0
        first = y * 2
        y[0] = 10.0
        return first, y * 2

    for way in (f, tr.compile(f)):
        assert [r.tolist() for r in way(tr.ones(2))] == [[2.0, 2.0], [20.0, 2.0]]


def test_precision_is_that_of_the_array():
    x = tr.zeros(2, dtype="float32")
    x[0] = np.float64(1 / 3)
    x[1] = tr.asarray(1 / 3)
    assert x.dtype == np.float32 and x.tolist() == [float(np.float32(1 / 3))] * 2
    c = tr.zeros(2, dtype="complex64")
    c[0] = 1 + 2j
    c[1] = tr.asarray(0.5)
    assert c.tolist() == [1 + 2j, 0.5]


@pytest.mark.parametrize("values", [1.5, 1j, np.ones(2), tr.ones(2)])
def test_kinds_that_do_not_fit(values):
    x = tr.zeros(2, dtype="int64")
    with pytest.raises(DTypeError, match="does not fit"):
        x[:] = values
    with pytest.raises(DTypeError, match="does not fit"):
        y = tr.zeros(2)
        y[:] = tr.asarray([1j, 2j])


@pytest.mark.parametrize("key", [5, -4, (0, 0), [0, 7], slice(None, None, 0), 1.5, "a"])
def test_wrong_keys_change_nothing(key):
    x = tr.ones(3) * 2.0
    with pytest.raises((IndexError, TypeError, ValueError)):
        x[key] = 0.0
    with pytest.raises((IndexError, TypeError, ValueError)):
        x[:] = tr.zeros(2)
    assert x.tolist() == [2.0, 2.0, 2.0]


def test_wide_integers_wrap_around():
    x = tr.zeros(3, dtype="int32")
    x[0] = tr.asarray([7], dtype="int64")[0]
    x[1:] += np.asarray([2**32 + 1, 5])
    assert x.dtype == np.int32 and x.tolist() == [7, 1, 5]
