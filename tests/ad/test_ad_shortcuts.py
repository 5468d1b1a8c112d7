"""Short cuts of eager values: the same results, nodes and errors as the interpreted ways behind them."""

import gc
import sys
import threading
from typing import Any

import numpy as np
import pytest

import tenferro_runtime as tr
from tenferro_ad import EagerTensor, grad, no_grad, record_sources, variable
from tenferro_tensor import Tensor, catalog, clear_plans, tensor
from tenferro_tensor.calls import state
from tenferro_tensor_core import ArgumentError, GradientError, ShapeError

X = np.linspace(0.5, 2.0, 8)
Y = np.linspace(1.5, 2.5, 8)


OPERANDS = {
    "same": lambda: tensor(Y),
    "row": lambda: tensor(Y[None]),
    "single": lambda: tensor(2.5),
    "float32": lambda: tensor(Y.astype("float32")),
    "complex": lambda: tensor(Y + 1j),
    "integers": lambda: tensor(np.arange(1, 9)),
    "recorded": lambda: variable(Y),
    "recorded row": lambda: variable(Y[None]),
    "array": lambda: Y,
    "NumPy number": lambda: np.float64(2.5),
    "float": lambda: 2.5,
    "int": lambda: 3,
    "bool": lambda: True,
    "complex number": lambda: 1 + 2j,
}
OPERATORS = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "**": lambda a, b: a**b,
    "reflected -": lambda a, b: b - a,
    "reflected /": lambda a, b: b / a,
}


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("operand", OPERANDS)
@pytest.mark.parametrize("left", ["concrete", "recorded"])
def test_results_and_gradients(left: str, operand: str, operator: str) -> None:
    f, y = OPERATORS[operator], OPERANDS[operand]()
    raw = y.detach().data if isinstance(y, EagerTensor) else y.data if isinstance(y, Tensor) else y
    want = f(X, raw)
    for _ in range(4):  # the long way, then the short one, then rendered pullbacks
        x = variable(X) if left == "recorded" else tensor(X)
        z = f(x, y)
        inner = z.detach() if isinstance(z, EagerTensor) else z
        assert isinstance(z, EagerTensor) == (left == "recorded" or isinstance(y, EagerTensor))
        assert inner.dtype == want.dtype
        np.testing.assert_allclose(inner.data, want, rtol=1e-14)
        if isinstance(z, EagerTensor):
            assert z.spec is inner.spec
            seed = tensor(np.ones(want.shape, want.dtype))
            z.backward(seed)
            if left == "recorded":
                step = 1e-6
                slope = (f(X + step, raw) - f(X - step, raw)) / (2 * step)
                slope = np.real(np.conj(slope)).reshape(-1, 8).sum(0)
                np.testing.assert_allclose(x.grad.data, slope, rtol=1e-7)


def test_ops_are_called_as_before() -> None:
    x, y = tensor(X), tensor(Y)
    for _ in range(3):
        np.testing.assert_array_equal(catalog.mul.op()(x, y).data, X * Y)
        np.testing.assert_array_equal(catalog.mul.op()(x, 2.0).data, X * 2)
        np.testing.assert_array_equal(catalog.mul.op()(x, tensor(Y[:, None])).data, X * Y[:, None])
        np.testing.assert_array_equal(catalog.neg.op()(2.0).data, -2)
        np.testing.assert_array_equal(catalog.neg.op()(X).data, -X)
        np.testing.assert_array_equal(catalog.select.op()(x < y, x, y).data, np.minimum(X, Y))
        assert isinstance(catalog.neg.op()(variable(X)), EagerTensor)
        assert isinstance(catalog.mul.op()(x, variable(X)), EagerTensor)
        stacked = catalog.concatenate.op(axis=0)(*[x] * 40)
        np.testing.assert_array_equal(stacked.data, np.tile(X, 40))
        q = catalog.reduce_sum.op(axes=(0,))(x)
        np.testing.assert_allclose(q.data, X.sum())
    for wrong in ((), (x, y, x, y), ("text",), (object(), x)):
        with pytest.raises((TypeError, ValueError)):
            catalog.mul.op()(*wrong)
    with pytest.raises(TypeError):
        catalog.mul.op()(x, y, out=x)  # type: ignore[call-arg]


def test_ops_of_tensors_and_numbers() -> None:
    x, y, chosen = tensor(X), tensor(Y), tensor(X > 1)
    select, power = catalog.select.op(), catalog.atan2.op()
    for _ in range(3):  # made, remembered, short
        np.testing.assert_array_equal(select(chosen, x, y).data, np.where(X > 1, X, Y))
        np.testing.assert_array_equal(select(chosen, x, 0.5).data, np.where(X > 1, X, 0.5))
        np.testing.assert_array_equal(select(chosen, 0.5, y).data, np.where(X > 1, 0.5, Y))
        np.testing.assert_allclose(power(x, 2.0).data, np.arctan2(X, 2.0), rtol=1e-15)
        np.testing.assert_allclose(power(2.0, y).data, np.arctan2(2.0, Y), rtol=1e-15)
        assert select(chosen, x, y).spec is x.spec
        assert isinstance(select(chosen, variable(X), y), EagerTensor)
        with pytest.raises(ShapeError):
            select(chosen, x, tensor(Y[:3]))
        with pytest.raises(ArgumentError, match="operand 2 is a str"):
            select(chosen, x, "y")
        with pytest.raises(ArgumentError):
            catalog.add.op()(tensor(np.arange(3, dtype="int8")), 1000)


def test_ops_of_three_operands_leak_nothing() -> None:
    x, y, chosen, select = tensor(X), tensor(Y), tensor(X > 1), catalog.select.op()
    number = 123.25
    watched = [x, y, chosen, x.spec, x.data, number, select]
    select(chosen, x, y), select(chosen, x, number)
    gc.collect()
    before = [sys.getrefcount(o) for o in watched]
    for _ in range(50_000):
        select(chosen, x, y)
        select(chosen, x, number)
    gc.collect()
    assert max(abs(a - sys.getrefcount(o)) for a, o in zip(before, watched, strict=True)) < 10


def test_scopes_and_modes_are_obeyed() -> None:
    v, x = variable(X), tensor(X)
    for _ in range(3):
        _ = v * x
    with no_grad():
        assert isinstance(v * x, Tensor)
        assert isinstance(2.0 * v, Tensor)
    with tr.compute_device("cpu:0"):
        assert isinstance(v * x, EagerTensor)
        assert (x * x).spec is x.spec
    assert state.open_scopes == 0
    with record_sources():
        z = v * x
        assert z.node.where.endswith(f":{sys._getframe().f_lineno - 1}")  # type: ignore[attr-defined]
    np.testing.assert_array_equal((v * x).detach().data, X * X)


def test_tables_that_are_cleared_are_filled_again() -> None:
    x, v = tensor(X), variable(X)
    for _ in range(3):
        np.testing.assert_array_equal((x * 2.0 - x).data, X * 2.0 - X)
        np.testing.assert_array_equal((v * v).detach().data, X * X)
        clear_plans()


def test_errors_are_those_of_the_long_way() -> None:
    x, v = tensor(X), variable(X)
    _ = x * x, v * v
    for a in (x, v):
        with pytest.raises(ShapeError, match="do not broadcast"):
            a * tensor(np.ones(3))
        with pytest.raises(TypeError):
            a * "text"
    for _ in range(2):
        with pytest.raises(ArgumentError, match="convert the array to a wider dtype"):
            tensor(np.zeros(3, "int8")) + 1000
    assert x.__mul__(object()) is NotImplemented
    with pytest.raises(TypeError):
        Tensor.__mul__(x)  # type: ignore[call-arg]


def test_warnings_reach_the_user() -> None:
    x, zero = tensor(X), tensor(np.zeros(8))
    for _ in range(3):
        with pytest.warns(RuntimeWarning, match="divide by zero"):
            _ = x / zero
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
        _ = x / zero


def test_sweeps() -> None:
    def f(x: Any, y: Any) -> Any:
        for _ in range(5):
            x = x * y + tr.tanh(x) * 0.5
            y = y - x / 7.0
        return (x * y).sum()

    want = None
    for _ in range(5):
        x, y = variable(X), variable(Y)
        f(x, y).backward()
        got = x.grad.data, y.grad.data
        if want is not None:
            for a, b in zip(got, want):
                np.testing.assert_allclose(a, b, rtol=1e-13)
        want = got


def test_released_and_retained_graphs() -> None:
    x = variable(X)
    z = (x * x * x).sum()
    z.backward(retain_graph=True)
    z.backward()
    np.testing.assert_allclose(x.grad.data, 6 * X * X)
    with pytest.raises(GradientError, match="released the saved values"):
        z.backward()


def test_derivatives_of_derivatives_take_the_long_way() -> None:
    def f(x: Any) -> Any:
        return (x * x * x + 2.0 * x).sum()

    second = grad(lambda x: grad(f)(x).sum())
    for _ in range(4):
        np.testing.assert_allclose(second(tensor(X)).data, 6 * X)


def test_an_error_in_a_pullback_names_the_op() -> None:
    x = variable(X)
    y = variable(Y)
    for _ in range(4):
        (x * y).backward(tensor(np.ones(8)))
    z = x * y
    z.node.saved = (tensor(np.ones(3)), tensor(np.ones(4)))  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match="broadcast") as caught:
        z.backward(tensor(np.ones(8)))
    assert any("pulling a cotangent back through mul" in note for note in caught.value.__notes__)
    z = x * y
    z.node.saved = "nonsense"  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match="zip|inputs|operand"):
        z.backward(tensor(np.ones(8)))


def test_saved_values_of_another_shape_are_not_read_out_of_bounds() -> None:
    x, y = variable(X), variable(Y)
    for _ in range(4):
        z = x * y
        z.backward(tensor(X))
    small = tensor(np.ones(2))
    z = x * y
    z.node.saved = (small, small)  # type: ignore[attr-defined]
    with pytest.raises((ShapeError, ValueError)):
        z.backward(tensor(X))


def test_no_leaks() -> None:
    x, y, c = variable(X), variable(Y), tensor(X)

    def step() -> None:
        z = x * y + c
        z = 2.0 * z - y * 3.0
        z = tr.tanh(-z) / 1.5
        z.backward(c)
        x.zero_grad()
        y.zero_grad()
        try:
            x * "text"
        except TypeError:
            pass

    for _ in range(20):
        step()
    gc.collect()
    watched = [x, y, c, x.spec, x.value, x.node, x.level, Tensor, EagerTensor, type(x.node), None, c.data]
    before, blocks = [sys.getrefcount(o) for o in watched], sys.getallocatedblocks()
    for _ in range(5000):
        step()
    gc.collect()
    grown = [sys.getrefcount(o) - b for o, b in zip(watched, before)]
    assert max(map(abs, grown)) < 50, grown
    assert sys.getallocatedblocks() - blocks < 500


def test_many_threads_at_once() -> None:
    wrong: list[Any] = []

    def work(seed: int) -> None:
        for n in (8, 40_000) * 8:
            x = variable(np.full(n, float(seed)))
            z = x * x + 1.0
            z.backward(tensor(np.ones(n)))
            if n == 8 and seed == 0:
                clear_plans()
            if not (x.grad.data == 2 * seed).all():
                wrong.append((seed, n))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
