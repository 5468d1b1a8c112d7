"""The way into a compiled function in machine code: it does what the interpreted one does, and knows when not to."""

import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tenferro_runtime as tr
from tenferro_ad import grad, jvp
from tenferro_cpu.native import available
from tenferro_runtime.running.fusion import wait
from tenferro_tensor import Tensor, tensor
from tenferro_tensor_core import ShapeError, TenferroError

pytestmark = pytest.mark.skipif(not available(), reason="native kernels are off")


def shortened(f: Callable[..., Any], *args: Any) -> Any:
    """Compiled and called, so that the short way is there."""
    tr.compile(lambda x: tr.exp(x))(ones(2))  # short cuts are offered with the first native kernel
    compiled: Any = tr.compile(f)
    compiled(*args)
    assert compiled.entries, "the program is not among the entries"
    return compiled


def ones(*shape: int, dtype: str = "float64") -> Tensor:
    return tensor(np.ones(shape, dtype))


CONSTANT = tensor([1.0, 2.0, 3.0])

FUNCTIONS: list[tuple[Callable[..., Any], int]] = [
    (lambda x: x * x, 1),
    (lambda x: x + 1.5, 1),
    (lambda x: 2.0 - x, 1),
    (lambda x, y: y - x, 2),
    (lambda x, y: y, 2),
    (lambda x, y, z: tr.where(x > 0, z, y), 3),
    (lambda x: x + CONSTANT, 1),
    (lambda x, y: tr.tanh(x * y + 1.0) * 2.0 - y, 2),
    (lambda x, y: {"sum": x + y, "same": x, "number": 3}, 2),
    (lambda x: tr.sum(x), 1),
    (lambda x: tr.zeros((3,)) + 1.0, 1),
]


@given(st.sampled_from(FUNCTIONS), st.data())
def test_it_gives_what_the_function_gives(case: tuple[Callable[..., Any], int], data: Any) -> None:
    f, count = case
    dtypes = st.sampled_from(("float64", "float32", "int64", "complex128"))
    lead = data.draw(st.lists(st.integers(0, 3), max_size=2))
    compiled = tr.compile(f)
    for _ in range(data.draw(st.integers(2, 5))):
        lead, dtype = data.draw(st.permutations(lead)), data.draw(dtypes)
        args = [tensor(np.random.default_rng(i).normal(size=(*lead, 3)).astype(dtype)) for i in range(count)]
        try:
            expected = f(*args)
        except TenferroError as error:
            with pytest.raises(type(error)):
                compiled(*args)
            continue
        for got in (compiled(*args), compiled(*args)):
            want = expected
            if isinstance(expected, dict):
                assert got.keys() == expected.keys() and got["number"] == 3
                got, want = got["sum"], expected["sum"]
            assert got.spec is want.spec
            np.testing.assert_allclose(got.data, want.data, rtol=1e-6)


def test_names_defaults_and_keyword_arguments_stay() -> None:
    @tr.compile
    def f(x, /, y=CONSTANT, *, z=CONSTANT):
        return x * y - z

    x = tensor([2.0, 2.0, 2.0])
    for _ in range(2):
        assert f(x).tolist() == [1.0, 2.0, 3.0]
        assert f(x, z=x).tolist() == [0.0, 2.0, 4.0]
        assert f(x, x, z=x).tolist() == f(x, y=x, z=x).tolist() == [2.0, 2.0, 2.0]
    assert f.entries  # type: ignore[attr-defined]
    with pytest.raises(TypeError, match="positional-only|positional"):
        f(x=x)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="unexpected keyword"):
        f(x, w=x)  # type: ignore[call-arg]


def test_other_values_and_scopes_go_the_long_way() -> None:
    f = shortened(lambda x, y: x * y + 1.0, ones(2), ones(2))
    assert f(2.0, 3.0).tolist() == 7.0
    assert f(np.ones(2), ones(2)).tolist() == [2.0, 2.0]
    assert grad(lambda x: tr.sum(f(x, x)))(ones(2)).tolist() == [2.0, 2.0]
    assert jvp(lambda x: f(x, x), (ones(2),), (ones(2),))[1].tolist() == [2.0, 2.0]
    with tr.compute_device("cpu:0"):
        assert f(ones(2), ones(2)).tolist() == [2.0, 2.0]
    inner = tr.compile(lambda x: f(x, x) * 2.0)
    assert inner(ones(2)).tolist() == inner(ones(2)).tolist() == [4.0, 4.0]
    with pytest.raises(TenferroError, match="neither an array nor a number"):
        f({"text"}, ones(2))
    with pytest.raises(ShapeError):
        f(ones(2), ones(3))
    assert f(ones(2), ones(2)).tolist() == [2.0, 2.0]


def test_sizes_and_dtypes_alternate() -> None:
    f = shortened(lambda x, y: x + y, ones(2), ones(2))
    for _ in range(3):
        for n in (0, 1, 2, 5):
            for dtype in ("float64", "int32"):
                out = f(ones(n, dtype=dtype), ones(n, dtype=dtype))
                assert out.spec is tr.Spec((n,), np.dtype(dtype)) and out.tolist() == [2] * n


def test_emptied_tables_and_rebound_values_are_noticed() -> None:
    factor = 2.0
    f = shortened(lambda x: x * factor, ones(2))
    assert f(ones(2)).tolist() == [2.0, 2.0]
    factor = 3.0
    assert [f(ones(2)).tolist() for _ in range(3)] == [[3.0, 3.0]] * 3
    f.clear()
    assert f.cache_info().fast == 0 and f(ones(2)).tolist() == [3.0, 3.0] and f.cache_info().fast == 1


def test_more_arguments_than_it_takes() -> None:
    for count in (16, 17):
        f = tr.compile(eval(f"lambda {', '.join(f'a{i}' for i in range(count))}: a{count - 1} - a0"))
        args = [tensor(float(i)) for i in range(count)]
        assert f(*args).tolist() == f(*args).tolist() == count - 1


def test_an_error_of_the_function_does_not_blame_the_step_before() -> None:
    x = tensor([2, 3])
    f = shortened(lambda x, y: tr.pow(x, y), x, x)
    assert f(x, x).tolist() == [4, 27]
    with pytest.raises(TenferroError) as caught:
        f(x, {"text"})
    assert not getattr(caught.value, "__notes__", ())
    with pytest.raises(ValueError, match="negative") as caught:
        f(x, tensor([-1, -1]))
    assert any("= pow(v0, v1), traced at" in note for note in caught.value.__notes__)


def test_nothing_is_kept_and_nothing_lost() -> None:
    x, y, kept = ones(3), ones(3), CONSTANT
    for f in (
        lambda x, y: x * y,
        lambda x, y: tr.tanh(x * y) + kept,
        lambda x, y: (x, x + y),
        lambda x, y: x @ y + 1.0,
        lambda x, y: y,
    ):
        g = shortened(f, x, y)
        wait()
        watched = (x, y, x.data, y.data, x.spec, Tensor, None, False, kept.data)
        for _ in range(20):
            g(x, y)
        before = [sys.getrefcount(o) for o in watched]
        for _ in range(1000):
            g(x, y)
        after = [sys.getrefcount(o) for o in watched]
        assert max(abs(a - b) for a, b in zip(before, after, strict=True)) < 20


def test_threads_call_while_kernels_are_swapped_and_tables_emptied() -> None:
    f = tr.compile(lambda x, y: tr.exp(tr.sin(x * y) * 0.5) + x)
    inputs = {n: (ones(n), tensor(np.arange(float(n)))) for n in (1, 3, 8, 50_000)}
    expected = {n: np.exp(np.sin(y.data) * 0.5) + 1.0 for n, (_, y) in inputs.items()}
    wrong: list[object] = []
    stop = threading.Event()

    def work(n: int) -> None:
        while not stop.is_set():
            try:
                if not np.allclose(f(*inputs[n]).data, expected[n], rtol=1e-12):
                    wrong.append(n)
            except Exception as error:
                wrong.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in inputs]
    for t in threads:
        t.start()
    for _ in range(5):
        wait()
        f.clear()
    stop.set()
    for t in threads:
        t.join()
    assert not wrong
