"""Functions with a direct form give what they give without it: values, dtypes, shapes and errors."""

import inspect
import pickle
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import tenferro_runtime as tr
from tenferro_tensor import Array, Tensor, functions
from tenferro_tensor.direct import DIRECT
from tenferro_tensor.dispatch import recording
from tenferro_tensor.functions import _numpy_forms
from tenferro_tensor_core.tracebacks import refused

Call = Callable[..., Any]

for _name in tr.__all__:
    getattr(tr, _name)  # modules that are imported when they are needed have forms, too

FORMS = [f for f in DIRECT if getattr(f.form, "__module__", "") != _numpy_forms.__name__]
"""Those of the other module are compared in `tests/runtime/test_numpy_calls.py`."""

IDX, NEG, WRONG = tr.asarray([1, 0, 1]), tr.asarray([-1, 0], dtype=tr.int8), tr.asarray([0, 99])
COUNTS = tr.asarray([2, 0, 1])
FLAT = tr.asarray([0, 5, 2])


def _zeros(x: Any) -> Any:
    """Elements with zeros of both signs, NaN and infinities in place of some, where the dtype has them."""
    if x.dtype.kind not in "fc":
        return x
    return tr.where(x == 1, float("inf"), tr.where(x == -1, float("nan"), tr.where(x == 2, -0.0, x)))


CALLS: dict[str, list[Call]] = {
    "take": [
        lambda x: tr.take(x, IDX, axis=0),
        lambda x: tr.take(x, NEG, axis=-1),
        lambda x: tr.take(x, [1, 0], axis=1),
        lambda x: tr.take(x, tr.asarray([[0, 1]]), axis=1),
        lambda x: tr.take(x, 1, axis=0),
        lambda x: tr.take(x, WRONG, axis=0),
        lambda x: tr.take(x, IDX),
        lambda x: tr.take(x, IDX, axis=2),
        lambda x: tr.take(x, tr.asarray([True, False, True]), axis=0),
        lambda x: tr.take(x, tr.asarray([0.5]), axis=0),
        lambda x: x.take(IDX, axis=0),
        lambda x: tr.take(tr.reshape(x, (-1,)), FLAT),
    ],
    "take_along_axis": [
        lambda x: tr.take_along_axis(x, tr.asarray([[1], [0], [1]]), axis=1),
        lambda x: tr.take_along_axis(x, tr.asarray([[1, 0]]), axis=0),
        lambda x: tr.take_along_axis(x, tr.asarray([[-1, 0]])),
        lambda x: tr.take_along_axis(x, IDX),
        lambda x: tr.take_along_axis(x, tr.asarray([[7]]), axis=0),
    ],
    "concat": [
        lambda x: tr.concat([x, x]),
        lambda x: tr.concat((x, x), axis=1),
        lambda x: tr.concat([x, x, x], axis=-1),
        lambda x: tr.concat([x], axis=0),
        lambda x: tr.concat([x, x], axis=None),
        lambda x: tr.concat([x, tr.ones(x.shape, dtype=tr.float32)]),
        lambda x: tr.concat([x, tr.ones(x.shape, dtype=tr.int16)]),
        lambda x: tr.concat([x, tr.ones(x.shape, dtype=tr.uint64)]),
        lambda x: tr.concat([x, tr.ones((2, 7))]),
        lambda x: tr.concat([x, x], axis=3),
        lambda x: tr.concat(x),
        lambda x: tr.concat([x, 1.0]),
    ],
    "stack": [
        lambda x: tr.stack([x, x]),
        lambda x: tr.stack((x, x), axis=1),
        lambda x: tr.stack([x, x, x], axis=-1),
        lambda x: tr.stack([x, x], axis=4),
        lambda x: tr.stack([x, tr.ones(x.shape, dtype=tr.complex64)]),
        lambda x: tr.stack([x, tr.ones((4,))]),
        lambda x: tr.stack(x),
    ],
    "unstack": [
        tr.unstack,
        lambda x: tr.unstack(x, axis=1),
        lambda x: tr.unstack(x, axis=-2),
        lambda x: tr.unstack(x, axis=5),
    ],
    "repeat": [
        lambda x: tr.repeat(x, 2),
        lambda x: tr.repeat(x, 3, axis=1),
        lambda x: tr.repeat(x, COUNTS, axis=0),
        lambda x: tr.repeat(x, tr.asarray(2), axis=-1),
        lambda x: tr.repeat(x, -1),
        lambda x: tr.repeat(x, 1.5),
        lambda x: tr.repeat(x, True),
        lambda x: tr.repeat(x, tr.asarray([True, False, True]), axis=0),
        lambda x: tr.repeat(x, COUNTS, axis=1),
        lambda x: x.repeat(2, axis=0),
    ],
    "split": [
        lambda x: tr.split(x, 2),
        lambda x: tr.split(x, 3),
        lambda x: tr.split(x, 2, axis=1),
        lambda x: tr.split(x, 1, axis=-1),
        lambda x: tr.split(x, 0),
        lambda x: tr.split(x, [1, 2]),
        lambda x: tr.split(x, 2, axis=2),
    ],
    "tile": [
        lambda x: tr.tile(x, (2,)),
        lambda x: tr.tile(x, 3),
        lambda x: tr.tile(x, (2, 1)),
        lambda x: tr.tile(x, (2, 1, 3)),
        lambda x: tr.tile(x, (0, 2)),
        lambda x: tr.tile(x, (-1, 2)),
        lambda x: tr.tile(x, ()),
        lambda x: tr.tile(x, [2, 2]),
    ],
    "pad": [
        lambda x: tr.pad(x, 1),
        lambda x: tr.pad(x, ((1, 0), (2, 3))),
        lambda x: tr.pad(x, (1, 2)),
        lambda x: tr.pad(x, 2, constant_values=3),
        lambda x: tr.pad(x, 2, constant_values=1.5),
        lambda x: tr.pad(x, 1, constant_values=1000),
        lambda x: tr.pad(x, -1),
        lambda x: tr.pad(x, ((1, 0),)),
        lambda x: tr.pad(x, 1, mode="edge"),
    ],
    "permute_dims": [
        lambda x: tr.permute_dims(x, (1, 0)),
        lambda x: tr.permute_dims(x, [-1, 0]),
        lambda x: tr.permute_dims(x, (0, 1)),
        lambda x: tr.permute_dims(x, (0, 0)),
        lambda x: tr.permute_dims(x, (0,)),
        lambda x: tr.permute_dims(x, 1),  # type: ignore[arg-type]
    ],
    "moveaxis": [
        lambda x: tr.moveaxis(x, 0, 1),
        lambda x: tr.moveaxis(x, -1, 0),
        lambda x: tr.moveaxis(x, (0, 1), (1, 0)),
        lambda x: tr.moveaxis(x, 0, 2),
    ],
    "squeeze": [
        lambda x: tr.squeeze(x[None], 0),
        lambda x: tr.squeeze(x[:, None, :, None], axis=(1, 3)),
        lambda x: x[..., None].squeeze(-1),
        lambda x: tr.squeeze(x, axis=()),
        lambda x: tr.squeeze(x, axis=0),
        lambda x: tr.squeeze(x[None], axis=(0, 0)),
    ],
    "expand_dims": [
        tr.expand_dims,
        lambda x: tr.expand_dims(x, axis=2),
        lambda x: tr.expand_dims(x, axis=-2),
        lambda x: tr.expand_dims(x, axis=(0, 1)),
        lambda x: tr.expand_dims(x, axis=7),
    ],
    "broadcast_to": [
        lambda x: tr.broadcast_to(x, (2, *x.shape)),
        lambda x: tr.broadcast_to(x[:, None], (x.shape[0], 4, x.shape[1])),
        lambda x: tr.broadcast_to(x, x.shape),
        lambda x: tr.broadcast_to(x, (5, 5, 5)),
        lambda x: tr.broadcast_to(x, (-1,)),
    ],
    "flip": [tr.flip, lambda x: tr.flip(x, axis=0), lambda x: tr.flip(x, axis=(0, -1)), lambda x: tr.flip(x, axis=9)],
    "roll": [
        lambda x: tr.roll(x, 1),
        lambda x: tr.roll(x, -7),
        lambda x: tr.roll(x, 1, axis=1),
        lambda x: tr.roll(x, 5, axis=-2),
        lambda x: tr.roll(x, (1, -1), axis=(0, 1)),
        lambda x: tr.roll(x, 2, axis=(0, 1)),
        lambda x: tr.roll(x, (1, 2), axis=(1, 1)),
        lambda x: tr.roll(x, tr.asarray(2), axis=0),
        lambda x: tr.roll(x, 1, axis=3),
        lambda x: tr.roll(x, 0.5, axis=0),
    ],
    "reshape": [
        lambda x: tr.reshape(x, (-1,)),
        lambda x: tr.reshape(x, (2, -1)),
        lambda x: tr.reshape(x, [3, 2]),
        lambda x: tr.reshape(x, 6),
        lambda x: tr.reshape(x, (-2, 3)),
        lambda x: tr.reshape(x, (-1, -1)),
        lambda x: tr.reshape(x, (4, 2)),
        lambda x: tr.reshape(x, x.shape),
        lambda x: tr.reshape(x, (-1,), copy=True),
        lambda x: tr.reshape(x.T, (-1,)),
        lambda x: tr.reshape(x[:, 0], (3, 1, 1)),
        lambda x: x.reshape(-1, 2),
        lambda x: x.reshape((1, -1)),
        lambda x: x.reshape(),
        lambda x: x.reshape(2.0, 3),
        lambda x: x.reshape(1 << 70),
    ],
    "ravel": [tr.ravel, lambda x: tr.ravel(x.T), lambda x: x.flatten()],
    "T": [lambda x: x.T, lambda x: x[0].T, lambda x: x[None].T],
    "mT": [lambda x: x.mT, lambda x: x[0].mT, lambda x: x[None].mT],
    "copy": [lambda x: x.copy(), lambda x: x.T.copy(), lambda x: x[0, 0].copy()],
    "matrix_transpose": [
        tr.matrix_transpose,
        lambda x: tr.matrix_transpose(x[:, None]),
        lambda x: tr.matrix_transpose(x[0]),
    ],
    "diagonal": [
        lambda x: tr.diagonal(x),
        lambda x: tr.diagonal(x, 1, axis1=1, axis2=0),
        lambda x: x.diagonal(-1),
        lambda x: tr.diagonal(x[None], axis1=0),
        lambda x: tr.diagonal(x, 9),
        lambda x: tr.diagonal(x, 0.5),  # type: ignore[arg-type]
        lambda x: tr.diagonal(x, axis1=0, axis2=0),
        lambda x: tr.diagonal(x[0]),
    ],
    "imag": [lambda x: tr.imag(x), lambda x: x.imag, lambda x: tr.imag(x * (1.0 + 1.0j))],
    "real": [lambda x: tr.real(x), lambda x: x.real, lambda x: tr.real(x * (1.0 + 1.0j))],
    "swapaxes": [
        lambda x: tr.swapaxes(x, 0, 1),
        lambda x: x.swapaxes(-1, -2),
        lambda x: tr.swapaxes(x, 0, 2),
        lambda x: tr.swapaxes(x, 0.0, 1),  # type: ignore[arg-type]
    ],
    "broadcast_arrays": [
        lambda x: tr.broadcast_arrays(x, x[:1]),
        lambda x: tr.broadcast_arrays(x[:, None], x),
        lambda x: tr.broadcast_arrays(x, tr.ones((4, 4))),
        lambda x: tr.broadcast_arrays(x, 1.0),
    ],
    "tril": [
        tr.tril,
        lambda x: tr.tril(x, k=1),
        lambda x: tr.tril(x[None], k=-1),
        lambda x: tr.tril(x[0]),
        lambda x: tr.tril(x, k=0.5),  # type: ignore[arg-type]
    ],
    "triu": [tr.triu, lambda x: tr.triu(x, k=1), lambda x: tr.triu(x[None], k=-1), lambda x: tr.triu(x[0])],
    "count_nonzero": [
        tr.count_nonzero,
        lambda x: tr.count_nonzero(x, axis=0),
        lambda x: tr.count_nonzero(x, keepdims=True),
        lambda x: tr.count_nonzero(x > 1),
        lambda x: tr.count_nonzero(x[0, 0]),
    ],
    "median": [
        tr.median,
        lambda x: tr.median(x, axis=0),
        lambda x: tr.median(x, (0, 1), keepdims=True),
        lambda x: tr.median(tr.sqrt(x)),
        lambda x: tr.median(x, axis=2),
    ],
    "nanmedian": [tr.nanmedian, lambda x: tr.nanmedian(x, axis=1), lambda x: tr.nanmedian(tr.sqrt(x))],
    "quantile": [
        lambda x: tr.quantile(x, 0.3),
        lambda x: tr.quantile(x, 0.75, axis=1, keepdims=True),
        lambda x: tr.quantile(x, 0.4, (0, 1), method="median_unbiased"),
        lambda x: tr.quantile(x, 0.3, method="lower"),
        lambda x: tr.quantile(x, 0.3, method="best"),
        lambda x: tr.quantile(x, 1.3),
        lambda x: tr.quantile(tr.log(tr.abs(x)), 0.5),
        lambda x: tr.quantile(x, [0.3]),
    ],
    "nanmax": [tr.nanmax, lambda x: tr.nanmax(x, axis=1), lambda x: tr.nanmax(tr.sqrt(x), axis=0, keepdims=True)],
    "nanmin": [tr.nanmin, lambda x: tr.nanmin(x, axis=(0, 1)), lambda x: tr.nanmin(tr.sqrt(x)), lambda x: x[0, 0]],
    "bincount": [
        lambda x: tr.bincount(tr.ravel(x)),
        lambda x: tr.bincount(tr.abs(x[:, 0]), minlength=9),
        lambda x: tr.bincount(COUNTS, x[:, 1]),
        lambda x: tr.bincount(COUNTS, x[:, 1], length=2),
        lambda x: tr.bincount(x),
    ],
    "digitize": [
        lambda x: tr.digitize(x, [0.5, 1.5]),
        lambda x: tr.digitize(x, [2, 1, -1], right=True),
        lambda x: tr.digitize(x, tr.asarray([0.0, 2.0, 1.0])),
        lambda x: tr.digitize(x[0, 0], [1.0, 2.0]),
    ],
    "histogram": [
        tr.histogram,
        lambda x: tr.histogram(x, 3, (-1, 2)),
        lambda x: tr.histogram(x, tr.asarray([-1.0, 0.0, 5.0])),
        lambda x: tr.histogram(x, 3, density=True),
        lambda x: tr.histogram(x, 3, weights=x),
        lambda x: tr.histogram(x, 0),
        lambda x: tr.histogram(x, "auto"),
    ],
    "gcd": [
        lambda x: tr.gcd(COUNTS, 4),
        lambda x: tr.gcd(x, 4),
        lambda x: tr.gcd(x, x[:1]),
        lambda x: tr.gcd(x, tr.asarray(6, dtype=tr.int16)),
    ],
    "lcm": [
        lambda x: tr.lcm(COUNTS, 4),
        lambda x: tr.lcm(x, 4),
        lambda x: tr.lcm(x[:, :1], x),
        lambda x: tr.lcm(6, x[0, 0]),
    ],
    "transpose": [tr.transpose, lambda x: tr.transpose(x, (1, 0)), lambda x: tr.transpose(x, (0, 0))],
    "diff": [
        tr.diff,
        lambda x: tr.diff(x, axis=0),
        lambda x: tr.diff(x, n=2, axis=-2),
        lambda x: tr.diff(x, n=5),
        lambda x: tr.diff(x, n=0),
        lambda x: tr.diff(x, n=-1),
        lambda x: tr.diff(x, n=1.5),  # type: ignore[arg-type]
        lambda x: tr.diff(x, axis=2),
        lambda x: tr.diff(x, prepend=x, append=x),
        lambda x: tr.diff(x, axis=0, prepend=tr.ones((1, x.shape[1]), dtype=x.dtype)),
        lambda x: tr.diff(x, append=tr.ones((x.shape[0], 2))),
        lambda x: tr.diff(x, append=1),
        lambda x: tr.diff(tr.sum(x)),
    ],
    "cumulative_sum": [
        lambda x: tr.cumulative_sum(x, axis=0),
        lambda x: tr.cumulative_sum(x, axis=1, include_initial=True),
        lambda x: tr.cumulative_sum(x, axis=-2, include_initial=True),
        lambda x: tr.cumulative_sum(tr.reshape(x, (-1,)), include_initial=True),
        lambda x: tr.cumulative_sum(x, include_initial=True),
        lambda x: tr.cumulative_sum(x, axis=2, include_initial=True),
        lambda x: tr.cumulative_sum(x, axis=0, dtype=tr.float32, include_initial=True),
    ],
    "cumulative_prod": [
        lambda x: tr.cumulative_prod(x, axis=0),
        lambda x: tr.cumulative_prod(x, axis=1, include_initial=True),
        lambda x: tr.cumulative_prod(tr.reshape(x, (-1,)), include_initial=True),
    ],
    "unique_values": [
        lambda x: tr.unique_values(x),
        lambda x: tr.unique_values(_zeros(x)),
        lambda x: tr.unique_values(tr.sum(x)),
    ],
    "unique_counts": [
        lambda x: tr.unique_counts(x),
        lambda x: tr.unique_counts(_zeros(x)),
        lambda x: tr.unique_counts(tr.sum(x)),
    ],
    "unique_inverse": [tr.unique_inverse, lambda x: tr.unique_inverse(_zeros(x))],
    "unique_all": [tr.unique_all, lambda x: tr.unique_all(_zeros(x)), lambda x: tr.unique_all(tr.sum(x))],
    "isin": [
        lambda x: tr.isin(x, x[:1]),
        lambda x: tr.isin(x, x, invert=True),
        lambda x: tr.isin(x, tr.asarray([1, 2])),
        lambda x: tr.isin(x, tr.asarray([0.5, 2.0])),
        lambda x: tr.isin(x, 1),
        lambda x: tr.isin(tr.sum(x), x),
        lambda x: tr.isin(tr.tile(x, (40, 40)), tr.repeat(x, 6)),
        lambda x: tr.isin(tr.tile(_zeros(x), (40, 40)), tr.repeat(_zeros(x), 6), invert=True),
    ],
    "nonzero": [
        tr.nonzero,
        lambda x: tr.nonzero(tr.reshape(x, (-1,))),
        lambda x: tr.nonzero(x > 1),
        lambda x: tr.nonzero(tr.sum(x)),
    ],
}
"""Calls on a matrix by function; also those that are refused."""

KEYS: list[Any] = [
    0, -1, 2, 99, slice(None), slice(1, None), slice(None, None, -1), slice(5, 1, -2), None, Ellipsis, (), (..., None),
    (0, 1), (slice(None), 1), (slice(1, 2), slice(None, None, -1)), (0, 0, 0), slice(None, None, 0), True, (0, False),
    IDX, NEG, WRONG, [1, 0], [0, -1, 1], [], [True, False, True], [[0, 1]], (IDX, tr.asarray([0, 1, 1])),
    (slice(None), NEG),
    (1, NEG), (NEG, slice(1, None)), (NEG, None), (tr.asarray([[0], [1]]), NEG), tr.asarray(1), (tr.asarray(-1), 0),
    tr.asarray([True, False, True]), (slice(None), tr.asarray([True, False])), (tr.asarray([True, False, True]), 1),
    tr.asarray([[True, False], [False, True], [True, True]]), tr.asarray(True), tr.asarray([0.5]), 1.5, "a",
    (NEG, ..., NEG),
    (..., NEG), np.int64(1), np.asarray([0, 1]), (0, NEG, None),
]  # fmt: skip
DTYPES = ("bool", "int8", "uint16", "int64", "float32", "float64", "complex128")


def matrices() -> Iterator[Any]:
    """Matrices of three rows and two columns in several layouts, and others of few elements."""
    for number, dtype in enumerate(DTYPES):
        base = np.arange(12).reshape(3, 4) % 5 - (dtype.startswith(("i", "f", "c"))) * 2
        base = np.asarray(base + 1j * base[::-1] if dtype.startswith("c") else base, dtype)
        yield tr.asarray(base[:, :2].copy())
        if number % 2:
            yield tr.asarray(base)[:, ::2]
            yield tr.asarray(np.asfortranarray(base[:, 1:3]))
            yield tr.asarray(base[:, :2].copy())[::-1, ::-1]
        yield tr.asarray(base)[:, :0]
        yield tr.asarray(base)[:0, :2]
        yield tr.asarray(base)[:1, 3:]
    yield tr.broadcast_to(tr.asarray([1.0, 2.0]), (3, 2))


def outcome(call: Call, x: Any) -> tuple[Any, ...]:
    """What a call comes to: results as dtypes, shapes and bytes, or the error."""
    try:
        found = call(x)
    except Exception as error:
        return type(error), str(error)
    several = isinstance(found, (tuple, list))
    results = list(found) if several else [found]
    assert all(type(r) is Tensor for r in results)
    return type(found), [(r.dtype, r.shape, r.spec, np.asarray(r).dtype, np.asarray(r).tobytes()) for r in results]


def differs(call: Call) -> list[tuple[Any, ...]]:
    """The matrices for which a call differs from what it is on the slow path."""
    found = []
    for x in matrices():
        seen = outcome(call, x)
        with recording(lambda decision: None):
            wanted = outcome(call, x)
        if seen != wanted:
            found.append((x, x._data.strides, seen, wanted))
    return found


def test_every_function_with_a_form_is_compared() -> None:
    assert {f.__name__ for f in FORMS} == set(CALLS)  # a method and a function of one name share their calls


@pytest.mark.parametrize("name", sorted(CALLS))
def test_direct_forms_agree_with_the_functions(name: str) -> None:
    for number, call in enumerate(CALLS[name]):
        assert not differs(call), f"call {number} of {name}"


@pytest.mark.parametrize("number", range(len(KEYS)))
def test_indexing_agrees_with_the_slow_path(number: int) -> None:
    assert not differs(lambda x: x[KEYS[number]])


@pytest.mark.parametrize("f", FORMS, ids=lambda f: f.__qualname__)
def test_the_form_takes_some_calls(f: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    taken = [0]

    def form(*args: Any, **named: Any) -> Any:
        result = f.form(*args, **named)
        taken[0] += result is not None
        return result

    watched = type(f)(f.function, form, refused, f.most, f.views)
    if f.__qualname__.startswith("Array."):
        monkeypatch.setattr(Array, f.__name__, property(watched) if f.__name__ in ("T", "mT") else watched)
    else:
        monkeypatch.setattr(tr, f.__name__, watched)
    for call in CALLS[f.__name__]:
        outcome(call, tr.asarray(np.arange(6.0).reshape(3, 2)))
    assert taken[0], "no call was left to the direct form"


LONG = tr.asarray(np.random.default_rng(0).standard_normal((40, 40)))
FAR = tr.asarray(np.random.default_rng(1).integers(-1600, 1600, (1600,)))
FLAT_LONG = tr.reshape(LONG, (-1,))


LONGER: list[Call] = [
    lambda x: FLAT_LONG[FAR],
    lambda x: FLAT_LONG[::-1][FAR],
    lambda x: FLAT_LONG[FAR + 1],
    lambda x: LONG[FAR[:300] // 40],
    lambda x: LONG[:, tr.asarray([[3, -1], [0, 2]])],
    lambda x: LONG[FLAT_LONG[:40] > 0],
    lambda x: LONG[LONG > 0],
    lambda x: LONG.T[LONG > 0],
    lambda x: LONG[LONG.T > 0],
    lambda x: FLAT_LONG[FLAT_LONG > 0],
    lambda x: FLAT_LONG[::-1][FLAT_LONG > 0],
    lambda x: FLAT_LONG[FLAT_LONG[1:] > 0],
    lambda x: LONG[:, :30][LONG[:, :30] > 0],
]


@pytest.mark.parametrize("number", range(len(LONGER)))
def test_longer_arrays_are_indexed_alike(number: int) -> None:
    seen = outcome(LONGER[number], LONG)
    with recording(lambda decision: None):
        assert seen == outcome(LONGER[number], LONG)


def test_other_values_go_to_the_function() -> None:
    seen = []
    compiled: Any = tr.compile(lambda x: tr.concat([tr.flip(x), x]))
    assert np.array_equal(compiled(tr.arange(3.0)), [2, 1, 0, 0, 1, 2])
    with recording(seen.append):
        tr.roll(tr.arange(3.0), 1)
    assert seen
    own = tr.arange(3.0).with_compute_device("cpu:0")
    assert tr.flip(own).spec.place is own.spec.place and own[1:].spec.place is own.spec.place


def test_public_functions_behave_as_functions() -> None:
    for f in (tr.sum, tr.exp, tr.interp, tr.polyfit):
        assert pickle.loads(pickle.dumps(f)) is f and inspect.isroutine(f)
        assert f.__doc__ and str(inspect.signature(f)).startswith(("(x", "(p")) and repr(f).startswith("<function ")
    assert tr.Array.sum is tr.sum and vars(functions.reductions)["sum"] is tr.sum


def test_a_function_that_only_calls_an_op_is_that_call() -> None:
    """The op refuses operands, and the function other numbers of them."""
    found = {name: f for name in dir(functions) if getattr(f := getattr(tr, name, None), "arity", -1) > 0}
    assert len(found) > 60 and {"exp", "add", "isnan", "multiply"} <= {*found} and "sum" not in found
    assert all(f.form is inspect.unwrap(f).__globals__[inspect.unwrap(f).__code__.co_names[0]] for f in found.values())
    with pytest.raises(TypeError, match=r"exp\(\) takes 1 positional argument but 2 were given"):
        tr.exp(1.0, 2.0)  # type: ignore[call-arg]
