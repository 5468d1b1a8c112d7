"""compile: what is traced again and why, what is refused, and that captured values are never stale."""

import gc
import threading
import weakref
from collections import namedtuple
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pytest

import tenferro_runtime as tr
from tenferro_ad import grad, variable
from tenferro_runtime.extension import Builder
from tenferro_tensor import Spec, tensor
from tenferro_tensor_core import (
    ArgumentError,
    BackendUnavailableError,
    DTypeError,
    PlacementError,
    ShapeError,
    TracingError,
)

F8 = np.dtype("float64")


@pytest.fixture(autouse=True)
def checked():
    """Every program of these tests is checked after tracing and after each pass."""
    with tr.Runtime(check=True):
        yield


def counted(f, **options):
    """A compiled function and the list of its traces."""
    calls = []

    def traced(*args, **kwargs):
        calls.append(1)
        return f(*args, **kwargs)

    return tr.compile(traced, **options), calls


def X(*values, dtype="float64"):
    return tensor(np.asarray(values, dtype=dtype))


def test_one_trace_for_one_kind_of_arguments() -> None:
    f, calls = counted(lambda x, y: x * y + 1)
    assert f(X(1, 2), X(3, 4)).tolist() == [4.0, 9.0]
    assert f(X(5, 6), X(1, 1)).tolist() == [6.0, 7.0]
    assert len(calls) == 1
    f(X(5), X(1))
    f(X(5, 6, dtype="float32"), X(1, 1))
    assert len(calls) == 2 and f.cache_info().traces == 2


def test_the_short_way_and_the_long_way_agree() -> None:
    @tr.compile
    def f(x, y=2.0, *, z):
        return x * y - z

    a, b = X(1, 2), X(3, 4)
    long_way = f(a, z=b)
    assert f(a, 2.0, z=b).tolist() == f(a, 2.0, z=b).tolist() == long_way.tolist() == [-1.0, 0.0]
    first, second = f(a, b, z=a), f(a, b, z=a)
    assert first.tolist() == second.tolist() == [2.0, 6.0]
    assert f.cache_info().fast == 3 and f(y=b, x=a, z=a).tolist() == [2.0, 6.0]
    assert f.cache_info().traces == 3  # y left out, a number, an array


def test_a_default_is_a_constant_as_it_stands() -> None:
    """As everywhere in Python: it may decide a branch, an extent or an axis, be a function, or have no hash."""
    x = X(1.0, 2.0, 3.0)
    assert tr.compile(tr.sum)(x).tolist() == 6.0 and tr.compile(tr.logsumexp)(x).ndim == 0
    assert [tr.compile(lambda v, i=i: v[:i])(x).tolist() for i in (1, 2)] == [[1.0], [1.0, 2.0]]
    assert tr.compile(lambda v, g=tr.negative, *, twice=False: g(g(v)) if twice else g(v))(x).tolist() == [-1, -2, -3]
    assert tr.compile(lambda v, shape=(3, 1), names=["a"], **_: tr.reshape(v, shape))(x).shape == (3, 1)
    assert tr.compile(lambda v, axes=[0]: tr.sum(v, axis=tuple(axes)))(x).tolist() == 6.0

    @tr.compile
    def power(v, p=2.0):
        assert p.__class__ is float or p.dtype == tr.float64
        return v**p

    for _ in range(3):
        assert power(x).tolist() == [1.0, 4.0, 9.0] and power(x, 3.0).tolist() == power(x, p=3.0).tolist() == [1, 8, 27]
    assert power.cache_info().traces == 2 and "Constant(2.0)" in power.cache_info().reasons[1]
    assert grad(lambda v: tr.sum(power(v)))(x).tolist() == [2.0, 4.0, 6.0]
    assert tr.compile(lambda v: power(v) + power(v, 1.0))(x).tolist() == [2.0, 6.0, 12.0]
    assert "float64[3]" in str(power.explain(x))


def test_a_default_that_is_an_array_is_an_argument() -> None:
    w = np.ones(3)
    f = tr.compile(lambda v, scale=w: v * scale)
    assert f(X(1.0, 2.0, 3.0)).tolist() == [1.0, 2.0, 3.0]
    w *= 2
    assert f(X(1.0, 2.0, 3.0)).tolist() == [2.0, 4.0, 6.0]


def test_positional_only_and_keyword_only_parameters() -> None:
    @tr.compile
    def f(a, b, /, c, *, d):
        return a + 2 * b + 3 * c + 4 * d

    for _ in range(2):
        assert f(X(1), X(1), c=X(1), d=X(1)).tolist() == [10.0]
    with pytest.raises(TypeError, match="positional-only"):
        f(a=X(1), b=X(1), c=X(1), d=X(1))  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="missing 1 required"):
        f(X(1), X(1), d=X(1))  # type: ignore[call-arg]


def test_variadic_functions() -> None:
    f, calls = counted(lambda *xs, scale, **rest: sum(xs) * scale + rest["k"])
    for _ in range(2):
        assert f(X(1), X(2), k=X(1), scale=2.0).tolist() == [7.0]
    assert f(X(1), X(2), X(3), k=X(1), scale=2.0).tolist() == [13.0]
    assert len(calls) == 2


def test_python_numbers_are_weak_and_do_not_retrace() -> None:
    f, calls = counted(lambda x, c: x * c)
    assert f(X(1, dtype="float32"), 2.5).dtype == "float32"
    assert f(X(1, dtype="float32"), 3.5).tolist() == [3.5]
    assert len(calls) == 1
    assert f(X(1, dtype="int64"), 2.5).dtype == "float64"
    assert f(X(1, dtype="float32"), 1j).dtype == "complex64"
    assert f(X(1, dtype="int64"), True).dtype == "int64"
    assert f(2, 3).dtype == "int64" and f(2, 1.5).tolist() == 3.0


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int32", "int64", "float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("c", [True, 2, 0.5, 1j], ids=str)
def test_weak_arithmetic_is_that_of_python_numbers(c, dtype) -> None:
    x = X(0, 1, dtype=dtype)
    g = lambda x, c: (x + c, c * x, x * (c + 1), tr.where(x == c, x, c))
    for got, expected in zip(tr.compile(g)(x, c), g(x, c), strict=True):
        assert got.spec is expected.spec
        np.testing.assert_array_equal(got.data, expected.data)


def test_static_arguments_are_told_apart_by_class_and_value() -> None:
    f, calls = counted(lambda x, n: x * n if isinstance(n, bool) else x + n, static_argnums=1)
    assert f(X(3), 1).tolist() == [4.0]
    assert f(X(3), True).tolist() == [3.0]
    assert f(X(3), 1.0).tolist() == [4.0]
    assert f(X(3), 1).tolist() == [4.0]
    assert len(calls) == 3


def test_static_arguments_by_name_and_by_position_on_the_short_way() -> None:
    calls = []

    @tr.compile(static_argnames=("axis",))
    def f(x, axis):
        calls.append(axis)
        return tr.sum(x, axis=axis)

    x = tensor([[1.0, 2.0], [3.0, 5.0]])
    for _ in range(3):
        assert f(x, 0).tolist() == [4.0, 7.0]
        assert f(x, axis=1).tolist() == [3.0, 8.0]
        assert f(x, (0, 1)).tolist() == 11.0
    assert calls == [0, 1, (0, 1)] and f.cache_info().fast == 3


def test_a_static_argument_must_be_hashable_and_exist() -> None:
    f = tr.compile(lambda x, n: x, static_argnames="n")
    for _ in range(2):
        with pytest.raises(ArgumentError, match=r"static argument 'n' of .*must be hashable, got the list \[1\] at "):
            f(X(1), [1])
    with pytest.raises(ArgumentError, match=r"static_argnames='m' names no argument of <lambda>; it takes \(x, n\)"):
        tr.compile(lambda x, n: x, static_argnames="m")
    with pytest.raises(ArgumentError, match="static_argnums=2 is out of range: <lambda> takes 2 positional arguments"):
        tr.compile(lambda x, n: x, static_argnums=2)
    with pytest.raises(ArgumentError, match="donate=5 is out of range"):
        tr.compile(lambda x: x, donate=5)
    with pytest.raises(ArgumentError, match="x is a static argument of <lambda>, and cannot be donated"):
        tr.compile(lambda x, y: x, donate=0, static_argnums=-2)
    with pytest.raises(ArgumentError, match="compile takes a function, got 3"):
        tr.compile(3)  # type: ignore[call-overload]


def test_whatever_is_no_array_is_a_constant_of_the_program() -> None:
    @tr.compile
    def f(x, how="sin", op=tr.negative, options=None):
        y = op(x) if how == "neg" else getattr(tr, how)(x)
        return y * options["scale"] if options and options["mode"] == "scaled" else y

    x = tensor([0.5, 2.0])
    for _ in range(3):
        assert f(x).tolist() == tr.sin(x).tolist()
        assert f(x, "cos").tolist() == f(x, how="cos").tolist() == tr.cos(x).tolist()
        assert f(x, "neg").tolist() == [-0.5, -2.0] and f(x, "neg", op=tr.square).tolist() == [0.25, 4.0]
        assert f(x, "neg", options={"mode": "scaled", "scale": 3.0}).tolist() == [-1.5, -6.0]
    assert f.cache_info().traces == 5
    assert tr.compile(lambda x, t: tr.astype(x, t))(x, np.float32).dtype == np.float32
    assert tr.compile(partial(f.__wrapped__, how="cos"))(x).tolist() == tr.cos(x).tolist()
    assert tr.compile(lambda *xs, **kw: xs[0] if kw["a"] == "b" else -xs[0])(x, a="b").tolist() == x.tolist()


def test_methods_follow_the_attributes_of_their_object() -> None:
    class Layer:
        def __init__(self, w: Any) -> None:
            self.w, self.shift = w, 1.0

        @tr.compile
        def __call__(self, x):
            return x * self.w + self.shift

    a, b, x = Layer(tensor(2.0)), Layer(tensor(3.0)), tensor([1.0, 2.0])
    for _ in range(2):
        assert a(x).tolist() == [3.0, 5.0] and b(x).tolist() == [4.0, 7.0]
    assert Layer.__call__.cache_info().traces == 2
    a.w = tensor(5.0)
    assert a(x).tolist() == [6.0, 11.0]
    a.w[...] = 7.0
    assert a(x).tolist() == [8.0, 15.0]
    a.shift = 0.0
    assert a(x).tolist() == [7.0, 14.0]
    a.w = variable(3.0)
    a(x).sum().backward()
    assert float(a.w.grad) == 3.0
    assert tr.compile(b.__call__)(x).tolist() == [4.0, 7.0]


def test_other_arguments_are_refused_by_name() -> None:
    @tr.compile
    def f(x, options):
        return x

    with pytest.raises(ArgumentError, match=r"argument options\['mode'\] of .*f is a set, neither an array nor a num"):
        f(X(1), {"mode": {1}})
    g = tr.compile(lambda *xs, **kw: xs[0])
    with pytest.raises(ArgumentError, match=r"argument args\[1\]\[0\] of .* is a bytearray"):
        g(X(1), [bytearray()])
    with pytest.raises(ArgumentError, match=r"argument kwargs\['a'\] of .* is a set.*has no hash; pass a tuple"):
        g(X(1), a={1})


def test_results_of_unknown_containers_are_refused() -> None:
    with pytest.raises(ArgumentError, match=r"returned a generator at result; it may return arrays and numbers in lis"):
        tr.compile(lambda x: (v for v in [x]))(X(1))
    with pytest.raises(ArgumentError, match=r"returned a str at result\[1\]"):
        tr.compile(lambda x: (x, "ok"))(X(1))


Pair = namedtuple("Pair", "left right")


@tr.register_dataclass
@dataclass
class Layer:
    w: Any
    b: Any


def test_trees_go_in_and_come_out() -> None:
    f, calls = counted(
        lambda p, layer: {"a": [p.left + layer.w, None], "b": Pair(p.right * 2, (layer,)), "n": 3, "e": ()}
    )
    for _ in range(2):
        out = f(Pair(X(1), X(2)), Layer(X(3), X(4)))
        assert out["a"][0].tolist() == [4.0] and out["a"][1] is None
        assert out["b"].left.tolist() == [4.0] and isinstance(out["b"], Pair)
        assert isinstance(out["b"].right[0], Layer) and out["b"].right[0].b.tolist() == [4.0]
        assert out["n"] == 3 and out["e"] == () and list(out) == ["a", "b", "n", "e"]
    assert len(calls) == 1


def test_results_that_do_not_depend_on_arguments() -> None:
    k = tensor([7.0])
    f = tr.compile(lambda x: (k, 2.5, x))
    for _ in range(2):
        a, b, c = f(X(1))
        assert a.tolist() == [7.0] and b == 2.5 and c.tolist() == [1.0]
    nothing = tr.compile(lambda x: None)
    assert nothing(X(1)) is None and nothing(X(1)) is None
    constant = tr.compile(lambda: k * 2)
    assert constant().tolist() == constant().tolist() == [14.0]


def test_arrays_of_other_libraries_are_arguments() -> None:
    f, calls = counted(lambda x, y: x + y)
    assert f(np.ones(2), X(1, 2)).tolist() == [2.0, 3.0]
    assert f(X(1, 2), np.float64(1)).tolist() == [2.0, 3.0]
    assert len(calls) == 2


def test_zero_dimensional_and_empty_arguments() -> None:
    f, _ = counted(lambda x: (tr.sum(x), x * 2))
    for value in (1.5, np.ones((0, 3)), tensor(2.0)):
        for _ in range(2):
            total, double = f(value)
            assert total.shape == () and float(total) == np.sum(np.asarray(value))
            assert double.shape == np.shape(value)


def test_numpy_arrays_are_arguments_of_the_fast_path_that_nobody_keeps() -> None:
    f = tr.compile(lambda state, k: (state["x"], state["x"] * k))
    x = np.arange(6.0).reshape(2, 3)
    layouts = (x, x.copy(order="F"), x[::-1], x.astype(">f8"), np.broadcast_to(x[0], (2, 3)))
    kept = []
    for k in (1, 2, 3):
        for given in layouts:
            kept.append((f({"x": given}, k), np.array(given), k))
        x += 1.0
    for (same, scaled), before, k in kept:
        np.testing.assert_array_equal(same, before)
        np.testing.assert_array_equal(scaled, before * k)
    assert (f.cache_info().traces, f.cache_info().fast) == (1, 1)
    with pytest.raises(DTypeError, match="datetime64"):
        f({"x": np.zeros((2, 3), "M8[s]")}, 2)


def test_a_rebound_closure_variable_is_noticed() -> None:
    w = tensor([1.0])
    calls = []

    @tr.compile
    def f(x):
        calls.append(1)
        return x * w

    assert f(X(2)).tolist() == f(X(2)).tolist() == [2.0] and f.cache_info().fast == 1
    w = tensor([5.0])
    assert f(X(2)).tolist() == f(X(2)).tolist() == [10.0]
    assert len(calls) == 2
    assert "data outside the arguments has changed: calls, w" in f.cache_info().reasons[-1]


SCALE = 2.0


def scaled(x):
    return x * SCALE


def test_a_rebound_global_is_noticed_also_in_functions_that_are_called(monkeypatch) -> None:
    f = tr.compile(lambda x: scaled(x) + 1)
    assert f(X(1)).tolist() == f(X(1)).tolist() == [3.0] and f.cache_info().fast == 1
    monkeypatch.setitem(globals(), "SCALE", 10.0)
    assert f(X(1)).tolist() == f(X(1)).tolist() == [11.0]
    assert f.cache_info().traces == 2


def test_arrays_in_containers_and_objects_are_noticed() -> None:
    params = {"w": tensor([1.0])}

    class Model:
        w: Any = None

        def __call__(self, x):
            return x * self.w

    model = Model()
    model.w = tensor([1.0])
    f = tr.compile(lambda x: x * params["w"])
    g = tr.compile(model)
    h = tr.compile(partial(lambda w, x: x * w["w"], params))
    m = tr.compile(model.__call__)
    for k in (f, g, h, m):
        assert k(X(3)).tolist() == k(X(3)).tolist() == [3.0]
        assert k.cache_info().traces == 1
    params["w"] = model.w = tensor([2.0])
    for k in (f, g, h, m):
        assert k(X(3)).tolist() == k(X(3)).tolist() == [6.0]
        assert k.cache_info().traces == 2


def test_an_outer_traced_value_is_captured_and_refreshed() -> None:
    def outer(w, x):
        inner = tr.compile(lambda y: y * w)
        return inner(x) + inner(x + 1)

    for _ in range(2):
        assert tr.compile(outer)(X(3), X(2)).tolist() == [15.0]
    w = None
    calls = []

    @tr.compile
    def shared(x):
        calls.append(1)
        return x * w

    def using(v, x):
        nonlocal w
        w = v
        return shared(x)

    for value in (2.0, 3.0):
        assert tr.compile(using)(X(value), X(10)).tolist() == [10 * value]
    assert len(calls) == 2  # each time a part of the outer trace, whose sizes are open
    w = tensor([7.0])
    assert shared(X(10)).tolist() == [70.0]


def test_values_that_are_nowhere_to_be_found_say_so() -> None:
    class Holder:
        value: Any = None

    class Deep:
        def __init__(self):
            self.a = {"b": Holder()}

        def __call__(self):
            return [self.a["b"].value]

    deep = Deep()
    inner = tr.compile(lambda x: x * deep()[0])

    def outer(w, x):
        deep.a["b"].value = w
        return inner(x)

    for value in (2.0, 3.0):
        assert grad(lambda w: tr.sum(outer(w, X(10))))(X(value)).tolist() == [10.0]
    info = inner.cache_info()
    assert info.traces == 2 and info.size == 0
    assert "not kept, because it uses a differentiated or traced value that is neither an argument" in info.reasons[-1]


def test_compiled_functions_nest_and_trace() -> None:
    inner, calls = counted(lambda x: tr.sin(x) * 2)
    outer = tr.compile(lambda x: inner(x) + inner(x))
    assert outer(X(0.5)).tolist() == outer(X(0.5)).tolist() == [4 * np.sin(0.5)]
    assert len(calls) == 2
    assert [eq.op.primitive.name for eq in outer.program(X(0.5)).equations] == ["sin", "mul", "add"]


def test_reasons_name_what_is_new() -> None:
    @tr.compile(static_argnames="n")
    def f(x, n=1):
        return tr.asarray(0.0) + (x["a"] if isinstance(x, dict) else x) * n

    f(X(1))
    f(X(1, 2))
    f(tensor([[1.0, 2.0]]))
    f(X(1, 2))
    f(X(1, 2, dtype="float32"))
    f(X(1, 2, dtype="float32"), 2)
    f({"a": X(1, 2)}, 2)
    f({"a": 2.0}, 2)
    reasons = [r.partition(" (/")[0] for r in f.cache_info().reasons]
    assert reasons == [
        "first call",
        "x: float64[1, 2] instead of float64[1]",
        "x: float32[2] instead of float64[1, 2]",
        "static n is 2 instead of 1",
        "structure ({'a': *},) instead of (*,)",
        "x['a']: float instead of float64[2]",
    ]
    assert all(f"({__file__}:" in r for r in f.cache_info().reasons)


def test_the_number_of_programs_is_bounded() -> None:
    with tr.Runtime(check=True, programs_per_function=2, kinds_per_function=2):
        f = tr.compile(lambda x: x + 1)
    for n in (1, 2, 3, 4):
        x = np.zeros((2,) * n)
        np.testing.assert_array_equal(f(tensor(x)).data, x + 1)
    info = f.cache_info()
    assert info.size == 2 and info.bound == 2 and info.fast <= 2 and info.traces == 4
    f.clear()
    assert f.cache_info().size == 0 and f(tensor(np.zeros(2))).tolist() == [1.0, 1.0]


def test_errors_of_the_function_pass_through_and_leave_nothing_behind() -> None:
    @tr.compile
    def f(x):
        return x + tr.asarray([1.0, 2.0, 3.0])

    with pytest.raises(ShapeError, match="do not broadcast"):
        f(X(1, 2))
    assert f.cache_info().size == 0
    with pytest.raises(TracingError, match="static_argnames"):
        tr.compile(lambda x: 1 if x > 0 else 2)(tensor(1.0))


def test_an_error_in_a_kernel_names_the_equation_on_both_ways() -> None:
    f = tr.compile(lambda x, y: tr.pow(x, y))
    assert f(X(2, dtype="int64"), X(2, dtype="int64")).tolist() == [4]
    for _ in range(2):
        with pytest.raises(ValueError, match="negative") as caught:
            f(X(2, dtype="int64"), X(-1, dtype="int64"))
        assert any(f"= pow(v0, v1), traced at {__file__}:" in note for note in caught.value.__notes__)


def test_a_scope_that_names_a_device_is_part_of_the_key() -> None:
    f, calls = counted(lambda x: x + 1)
    f(X(1))
    with tr.compute_device("cpu:0"):
        assert f(X(1)).tolist() == [2.0]
    assert f(X(1)).tolist() == [2.0]
    assert len(calls) == 2
    with tr.compute_device("cuda:0"), pytest.raises((PlacementError, BackendUnavailableError)):
        f(X(1))


def test_methods_and_metadata() -> None:
    class Model:
        @partial(tr.compile, static_argnums=0)
        def forward(self, x):
            """Doc."""
            return x * 2

    assert Model().forward(X(1)).tolist() == [2.0]  # type: ignore[call-arg]
    assert Model.forward.__doc__ == "Doc." and Model.forward.__name__ == "forward"


def test_threads_share_one_compiled_function() -> None:
    f, calls = counted(lambda x: tr.sum(x * 2))
    results, errors = [], []

    def work(n):
        try:
            for _ in range(50):
                results.append(float(f(tensor(np.ones(n)))) == 2 * n)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in (1, 2, 3, 4) * 2]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors and all(results) and len(results) == 400
    assert 1 <= len(calls) <= 8


def test_programs_are_freed_with_the_function() -> None:
    k = tensor(np.ones(3))
    f = tr.compile(lambda x: x * k)
    f(X(1, 2, 3))
    program = weakref.ref(f.program(X(1, 2, 3)))
    del f
    gc.collect()
    assert program() is None


def test_a_program_called_elsewhere_is_freed_too() -> None:
    program = tr.trace(lambda x: x + 1, Spec((1,), F8))
    b = Builder()
    from tenferro_runtime.extension import call

    b.close(list(call(b.input(Spec((1,), F8)), program=program)))
    gone = weakref.ref(program)
    del program, b
    gc.collect()
    assert gone() is None


def test_low_level_classes() -> None:
    program = tr.trace(lambda x: tr.sin(x) + tr.sin(x), Spec((1,), F8))
    executor = tr.GraphCompiler(tr.Runtime(check=True)).compile(program)
    assert [eq.op.primitive.name for eq in executor.program.equations] == ["sin", "add"]
    assert executor.run(X(0.0))[0].tolist() == [0.0]
    assert repr(executor).startswith("GraphExecutor(<program (float64[1])")


def test_structures_that_look_alike_are_told_apart() -> None:
    f, calls = counted(lambda p: {k: v if v is None else v * 2 for k, v in p.items()})
    for _ in range(3):
        assert f({"a": None, "b": X(1)})["a"] is None
        assert f({"c": 5.0, "b": X(1)})["c"].tolist() == 10.0
        assert f({"c": X(5), "b": X(1)})["c"].tolist() == [10.0]
        assert f({"b": X(1)})["b"].tolist() == [2.0]
        assert f({"c": True, "b": X(1)})["c"].tolist() == 2
    assert len(calls) == 5
    g, calls = counted(lambda p: p[0] + p[1])
    for _ in range(2):
        assert g([X(1), X(2)]).tolist() == g((X(1), X(2))).tolist() == g(Pair(X(1), X(2))).tolist() == [3.0]
        assert g([1, 2]).tolist() == 3 and g([2**62, 2**62 - 1]).tolist() == 2**63 - 1
        with pytest.raises(DTypeError, match="is not supported"):
            g([2**70, 1])
    assert len(calls) == 4


shape = {"a global whose name is also that of an attribute": object()}


def test_attributes_are_not_taken_for_globals(monkeypatch) -> None:
    f = tr.compile(lambda x: x * x.shape[0])
    assert f(X(1, 2)).tolist() == f(X(1, 2)).tolist() == [2.0, 4.0]
    monkeypatch.setitem(globals(), "shape", {})
    f(X(1, 2))
    assert f.cache_info().traces == 1


def test_numbers_do_not_disturb_what_arrays_hold() -> None:
    """Fixed results, donated arguments and arrays with strides come out right on every way."""
    f = tr.compile(lambda x, y: (x, 3, y.T, {"k": 2.5}), donate=0)
    y = tensor(np.arange(6.0).reshape(2, 3)[:, ::2])
    for _ in range(3):
        a, b, c, d = f(X(1, 2), y)
        assert a.tolist() == [1.0, 2.0] and b == 3 and c.tolist() == [[0.0, 3.0], [2.0, 5.0]] and d == {"k": 2.5}


def test_the_order_of_a_dict_counts_also_when_its_keys_are_known() -> None:
    """Eager code sees the first entry of the dict that it was given, and so do warm calls of a compiled function."""
    first = tr.compile(lambda d: next(iter(d.values())))
    a, b = tr.asarray([1.0]), tr.asarray([2.0])
    for _ in range(3):
        assert first({"a": a, "b": b}).tolist() == [1.0]
        assert first({"b": b, "a": a}).tolist() == [2.0]


def test_nan_as_a_static_argument_is_traced_once() -> None:
    f = tr.compile(lambda x, s: x * s, static_argnames="s")
    for nan in (float("nan"), np.float64("nan")):
        before = f.cache_info().traces
        for _ in range(4):
            f(tr.ones(2), type(nan)("nan"))
        assert f.cache_info().traces == before + 1


def test_a_slice_may_be_static_whatever_the_version_of_python() -> None:
    part = tr.compile(lambda x, s: x[s], static_argnames="s")
    x = tr.asarray([1.0, 2.0, 3.0])
    assert part(x, slice(1)).tolist() == [1.0] and part(x, slice(1, None)).tolist() == [2.0, 3.0]
