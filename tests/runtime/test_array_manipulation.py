"""Shapes, order, joining, splitting and creation, against NumPy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tenferro_runtime as tr
from array_oracles import ALL, NUMBERS, array, arrays, assert_same, seeds
from tenferro_tensor import Tensor
from tenferro_tensor_core import ArgumentError, AxisError, DTypeError, HostAdapterError, ShapeError

some = st.lists(st.integers(0, 4), min_size=1, max_size=3).map(tuple)


@given(x=arrays(ALL), data=st.data())
def test_reshape(x, data):
    extents = list(data.draw(st.permutations([*x.shape, 1])))
    assert_same(tr.reshape(tr.asarray(x), tuple(extents)), x.reshape(extents))
    hole = data.draw(st.integers(0, len(extents) - 1))
    if np.prod(extents[:hole] + extents[hole + 1 :]) > 0:
        extents[hole] = -1
        assert_same(tr.reshape(tr.asarray(x), tuple(extents)), x.reshape(extents))
        assert_same(tr.asarray(x).reshape(*extents), x.reshape(extents))
    assert_same(tr.ravel(tr.asarray(x)), x.ravel())
    assert_same(tr.asarray(x).flatten(), x.ravel())


@given(x=arrays(ALL), data=st.data())
def test_order_of_axes(x, data):
    order = data.draw(st.permutations(range(x.ndim)))
    t = tr.asarray(x)
    assert_same(tr.permute_dims(t, tuple(order)), x.transpose(order))
    assert_same(t.transpose(), x.transpose())
    assert_same(t.transpose(*order), x.transpose(order) if order else x)
    if x.ndim:
        a, b = (data.draw(st.integers(-x.ndim, x.ndim - 1)) for _ in range(2))
        assert_same(tr.moveaxis(t, a, b), np.moveaxis(x, a, b))
        assert_same(tr.swapaxes(t, a, b), np.swapaxes(x, a, b))
        assert_same(t.swapaxes(a, b), x.swapaxes(a, b))
        assert_same(tr.moveaxis(t, tuple(order), tuple(range(x.ndim))), np.moveaxis(x, order, range(x.ndim)))
    if x.ndim >= 2:
        assert_same(tr.matrix_transpose(t), np.matrix_transpose(x))
        assert_same(t.mT, x.mT)
        assert_same(t.H, x.mT.conj() if x.dtype.kind == "c" else x.mT)
    if x.ndim == 2:
        assert_same(t.T, x.T)


@given(x=arrays(ALL), data=st.data())
def test_new_and_dropped_axes(x, data):
    axis = data.draw(st.integers(-x.ndim - 1, x.ndim))
    wide = np.expand_dims(x, axis)
    assert_same(tr.expand_dims(tr.asarray(x), axis=axis), wide)
    assert_same(tr.squeeze(tr.asarray(wide), axis), x)
    assert_same(tr.expand_dims(tr.asarray(x), axis=(0, -1)), np.expand_dims(x, (0, -1)))
    assert_same(tr.squeeze(tr.asarray(np.expand_dims(x, (0, -1))), (0, -1)), x)


@given(x=arrays(ALL), data=st.data())
def test_flip_and_roll(x, data):
    axis = data.draw(st.none() | st.integers(-x.ndim, x.ndim - 1)) if x.ndim else None
    shift = data.draw(st.integers(-7, 7))
    assert_same(tr.flip(tr.asarray(x), axis=axis), np.flip(x, axis))
    assert_same(tr.roll(tr.asarray(x), shift, axis=axis), np.roll(x, shift, axis))
    if x.ndim >= 2:
        assert_same(tr.roll(tr.asarray(x), (shift, 1), axis=(0, -1)), np.roll(x, (shift, 1), (0, -1)))


@given(x=arrays(ALL, some), data=st.data())
def test_repeat_and_tile(x, data):
    axis = data.draw(st.none() | st.integers(-x.ndim, x.ndim - 1))
    r = data.draw(st.integers(0, 3))
    assert_same(tr.repeat(tr.asarray(x), r, axis=axis), np.repeat(x, r, axis))
    n = x.size if axis is None else x.shape[axis]
    counts = np.random.default_rng(n).integers(0, 3, n)
    assert_same(tr.repeat(tr.asarray(x), tr.asarray(counts), axis=axis), np.repeat(x, counts, axis))
    reps = tuple(data.draw(st.lists(st.integers(0, 3), max_size=4)))
    assert_same(tr.tile(tr.asarray(x), reps), np.tile(x, reps))


@given(data=st.data())
def test_concat_and_stack(data):
    shape = data.draw(some)
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    dtypes = data.draw(st.lists(st.sampled_from(ALL), min_size=1, max_size=3))
    extents = [data.draw(st.integers(0, 3)) for _ in dtypes]
    parts = []
    for dtype, n in zip(dtypes, extents, strict=True):
        own = list(shape)
        own[axis] = n
        parts.append(array(tuple(own), dtype, data.draw(seeds)))
    assert_same(tr.concat([tr.asarray(p) for p in parts], axis=axis), np.concat(parts, axis=axis))
    assert_same(tr.concat(parts, axis=None), np.concat(parts, axis=None))
    equal = [array(shape, dtype, data.draw(seeds)) for dtype in dtypes]
    place = data.draw(st.integers(-len(shape) - 1, len(shape)))
    assert_same(tr.stack([tr.asarray(p) for p in equal], axis=place), np.stack(equal, axis=place))
    assert_same(tr.unstack(tr.asarray(equal[0]), axis=axis), np.unstack(equal[0], axis=axis))


@given(x=arrays(ALL, some), data=st.data())
def test_split(x, data):
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    cuts = data.draw(st.lists(st.integers(-5, 6), max_size=4))
    assert_same(tr.split(tr.asarray(x), cuts, axis=axis), np.split(x, cuts, axis=axis))
    for parts in (1, 2):
        if x.shape[axis] % parts == 0:
            assert_same(tr.split(tr.asarray(x), parts, axis=axis), np.split(x, parts, axis=axis))


@given(x=arrays(NUMBERS), data=st.data())
def test_pad(x, data):
    widths = [(data.draw(st.integers(0, 2)), data.draw(st.integers(0, 2))) for _ in x.shape]
    fill = data.draw(st.integers(0, 5))
    want = np.pad(x, widths, constant_values=fill) if x.ndim else x
    assert_same(tr.pad(tr.asarray(x), widths if x.ndim else 0, constant_values=fill), want)
    if x.ndim:
        assert_same(tr.pad(tr.asarray(x), (1, 2)), np.pad(x, (1, 2)))


@given(x=arrays(ALL), data=st.data())
def test_broadcasting(x, data):
    narrow = x[tuple(slice(0, 1) if data.draw(st.booleans()) else slice(None) for _ in x.shape)]
    goal = (2, *(max(a, b) if b != 0 else 0 for a, b in zip(narrow.shape, x.shape, strict=True)))
    assert_same(tr.broadcast_to(tr.asarray(narrow), goal), np.broadcast_to(narrow, goal))
    got = tr.broadcast_arrays(tr.asarray(narrow), np.zeros(goal))
    assert_same(got, np.broadcast_arrays(narrow, np.zeros(goal)))
    assert tr.broadcast_shapes(narrow.shape, goal) == goal


@given(x=arrays(ALL, st.lists(st.integers(0, 4), min_size=2, max_size=3).map(tuple)), k=st.integers(-3, 3))
def test_triangles(x, k):
    assert_same(tr.tril(tr.asarray(x), k=k), np.tril(x, k))
    assert_same(tr.triu(tr.asarray(x), k=k), np.triu(x, k))


@given(dtypes=st.lists(st.sampled_from(ALL), max_size=3), indexing=st.sampled_from(["xy", "ij"]))
def test_meshgrid(dtypes, indexing):
    vectors = [array((i + 1,), dtype, i) for i, dtype in enumerate(dtypes)]
    got = tr.meshgrid(*[tr.asarray(v) for v in vectors], indexing=indexing)
    assert_same(got, list(np.meshgrid(*vectors, indexing=indexing)))


@given(start=st.integers(-5, 5), stop=st.integers(-5, 9), step=st.sampled_from([1, 2, -1, -3, 0.5, -0.3]))
def test_arange(start, stop, step):
    assert_same(tr.arange(start, stop, step), np.arange(start, stop, step))
    assert_same(tr.arange(stop), np.arange(stop))
    assert_same(tr.arange(start, stop, dtype=tr.float32), np.arange(start, stop, dtype=np.float32))


@given(n=st.integers(0, 6), endpoint=st.booleans(), dtype=st.sampled_from([None, "float32", "int64", "complex128"]))
def test_linspace(n, endpoint, dtype):
    assert_same(
        tr.linspace(-1, 2.5, n, endpoint=endpoint, dtype=dtype), np.linspace(-1, 2.5, n, endpoint=endpoint, dtype=dtype)
    )
    got = tr.linspace(tr.asarray(-1.0), 2.5, n, endpoint=endpoint)
    assert_same(got, np.linspace(-1, 2.5, n, endpoint=endpoint))


@given(n=st.integers(0, 4), m=st.none() | st.integers(0, 4), k=st.integers(-4, 4))
def test_eye(n, m, k):
    assert_same(tr.eye(n, m, k=k), np.eye(n, m, k=k))
    assert_same(tr.eye(n, dtype=tr.int8), np.eye(n, dtype=np.int8))


@pytest.mark.parametrize("fill", [True, 3, 2.5, 1j])
def test_full(fill):
    assert_same(tr.full((2, 0), fill), np.full((2, 0), fill))
    assert_same(tr.full(3, fill, dtype=tr.complex64), np.full(3, fill, np.complex64))
    assert_same(tr.full((2, 2), tr.asarray(fill)), np.full((2, 2), fill))
    assert_same(tr.full_like(tr.asarray(np.zeros((1, 2), np.complex64)), fill), np.full((1, 2), fill, np.complex64))


@pytest.mark.parametrize("dtype", [None, *ALL])
@pytest.mark.parametrize("name", ["zeros", "ones"])
def test_zeros_and_ones(name, dtype):
    assert_same(getattr(tr, name)((2, 3), dtype=dtype), getattr(np, name)((2, 3), dtype=dtype))
    x = np.zeros((0, 2), np.int32)
    assert_same(getattr(tr, f"{name}_like")(tr.asarray(x), dtype=dtype), getattr(np, f"{name}_like")(x, dtype=dtype))
    assert tr.empty((3,), dtype=dtype).shape == tr.empty_like(tr.zeros(3)).shape == (3,)


def test_asarray():
    x = tr.asarray([1, 2])
    assert tr.asarray(x) is x
    assert_same(tr.asarray(x, dtype=tr.float32), np.asarray([1, 2], np.float32))
    assert_same(tr.asarray([[1.0, 2], [3, 4]]), np.asarray([[1.0, 2], [3, 4]]))
    assert_same(tr.asarray([tr.asarray(1.0), 2.0]), np.asarray([1.0, 2.0]))
    host = np.arange(3.0)
    assert np.shares_memory(tr.asarray(host).numpy(), host)
    assert not np.shares_memory(tr.asarray(host, copy=True).numpy(), host)
    with pytest.raises(HostAdapterError):
        tr.asarray(np.arange(3.0, dtype=">f8"), copy=False)


def test_exchange_with_numpy_and_dlpack():
    host = np.arange(6.0).reshape(2, 3)
    t = tr.asarray(host)
    assert np.shares_memory(np.from_dlpack(t), host)
    assert np.shares_memory(tr.from_dlpack(t.T).numpy(), host)
    assert np.shares_memory(np.asarray(t), host) and np.asarray(t, dtype=np.float32).dtype == np.float32
    assert t.__dlpack_device__() == (1, 0)
    still = np.broadcast_to(np.asarray(1.0), (2,))
    assert np.from_dlpack(tr.asarray(still)).tolist() == [1.0, 1.0]
    assert isinstance(tr.from_dlpack(host), Tensor) and tr.from_dlpack(t) is t
    assert np.from_dlpack(tr.asarray(2.0)).shape == ()


def test_consumers_of_dlpack_never_meet_reversed_axes():
    """PyTorch 2.13 ends the process on them, so they are copied, or refused where that is forbidden."""
    t = tr.flip(tr.asarray(np.arange(6.0).reshape(2, 3)))
    assert t.numpy().strides[0] < 0, "nothing is reversed here, and the test shows nothing"
    out = np.from_dlpack(t)
    assert out.tolist() == t.tolist() and min(out.strides) > 0
    with pytest.raises(HostAdapterError, match=r"float64\[2, 3\] cannot be shared .*reversed axes; pass copy=None"):
        np.from_dlpack(t, copy=False)
    still = tr.asarray(np.broadcast_to(np.asarray(1.0), (2,)))
    with pytest.raises(HostAdapterError, match="it has read-only memory"):
        still.__dlpack__(copy=False)


@given(x=arrays(ALL), to=st.sampled_from(ALL))
def test_conversions(x, to):
    t, dt = tr.asarray(x), np.dtype(to)
    if x.dtype.kind in "fc":
        x = np.abs(x.real) if dt.kind == "u" else x
        t = tr.asarray(x)
    real = x.real if x.dtype.kind == "c" and dt.kind not in "cb" else x
    want = (real != 0) if dt.kind == "b" else real.astype(dt)
    assert_same(tr.cast(t, dt), want)
    if real is x:
        assert_same(tr.astype(t, dt), want)
        assert_same(t.astype(dt, copy=False), want)
    if np.promote_types(x.dtype, dt) == dt:
        assert_same(tr.convert(t, dt), want)
        assert tr.can_cast(t, dt)
    else:
        assert not tr.can_cast(x.dtype, dt)
        with pytest.raises(DTypeError, match=r"would lose kind or range; ask for the loss with cast\(x, dtype\)"):
            tr.convert(t, dt)


def test_limits_and_kinds():
    assert tr.finfo(tr.complex64).eps == float(np.finfo(np.float32).eps)
    assert (tr.iinfo(tr.uint8).min, tr.iinfo(tr.asarray([1])).max) == (0, 2**63 - 1)
    assert tr.isdtype(tr.int8, ("bool", "signed integer"))
    assert tr.result_type(tr.asarray([1], dtype=tr.int8), 2.0) == tr.float64
    assert tr.result_type(tr.asarray([1.0], dtype=tr.float32), 2.0) == tr.float32


def test_scalars_out():
    assert (int(tr.asarray(3)), float(tr.asarray([2.5])), complex(tr.asarray(1j))) == (3, 2.5, 1j)
    assert [10, 20][tr.asarray(1)] == 20
    assert tr.asarray([[7]]).item() == 7 and tr.asarray([[7]]).tolist() == [[7]]
    assert [float(v) for v in tr.asarray([1.0, 2.0])] == [1.0, 2.0]
    assert bool(tr.asarray([True])) and not tr.asarray(0)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (
            lambda: tr.reshape(tr.zeros(6), (4, -1)),
            ShapeError,
            r"the 6 elements of float64\[6\] as \(4, -1\): 4 does not di",
        ),
        (
            lambda: tr.reshape(tr.zeros(6), (-1, -1)),
            ShapeError,
            "one extent may be -1 and the others must leave it deter",
        ),
        (lambda: tr.reshape(tr.zeros(6), (2.0, 3)), ArgumentError, "not 2.0; divide sizes with //"),
        (lambda: tr.reshape(tr.zeros(6), (5,)), ShapeError, "cannot arrange the 6 elements"),
        (lambda: tr.permute_dims(tr.zeros((2, 3)), (0,)), ArgumentError, "needs each of the 2 axes .* once, got"),
        (
            lambda: tr.squeeze(tr.zeros((2, 3)), 0),
            ShapeError,
            r"axis 0 of float64\[2, 3\] has extent 2; index or reduce it",
        ),
        (
            lambda: tr.expand_dims(tr.zeros(2), axis=3),
            AxisError,
            "expand_dims: axis 3 is out of range for an array with 2",
        ),
        (lambda: tr.concat([]), ArgumentError, "concat needs at least one array, got an empty sequence"),
        (
            lambda: tr.concat([tr.zeros((2, 2)), tr.zeros((2, 3))]),
            ShapeError,
            "concatenate along axis 0 needs equal extents",
        ),
        (
            lambda: tr.stack([tr.zeros(2), tr.zeros(3)]),
            ShapeError,
            r"array 0 is float64\[2\] and array 1 is float64\[3\]; broad",
        ),
        (
            lambda: tr.split(tr.zeros(5), 2),
            ShapeError,
            "cannot cut extent 5 of axis 0 into 2 equal parts; give the cut",
        ),
        (lambda: tr.broadcast_to(tr.zeros(3), (2,)), ShapeError, r"float64\[3\] does not broadcast to \(2,\)"),
        (
            lambda: tr.broadcast_to(tr.zeros((2, 3)), (3,)),
            ShapeError,
            r"float64\[2, 3\] does not broadcast to \(3,\); align",
        ),
        (lambda: tr.pad(tr.zeros(2), 1, "edge"), ArgumentError, "knows mode='constant' only, got 'edge'"),
        (lambda: tr.pad(tr.zeros(2), -1), ArgumentError, "widths of at least 0, got -1; slice to crop"),
        (lambda: tr.repeat(tr.zeros(3), -1), ArgumentError, "one count or a vector of counts, integers of at least 0"),
        (
            lambda: tr.repeat(tr.zeros(3), np.asarray([1, 2])),
            ShapeError,
            "one count for each of the 3 indices .* got 2",
        ),
        (lambda: tr.tril(tr.zeros(3)), ShapeError, "tril needs at least two axes"),
        (lambda: tr.zeros((2, -1)), ArgumentError, r"cannot make an array of shape \(2, -1\).*extents of at least 0"),
        (lambda: tr.full(2, 300, dtype=tr.uint8), ArgumentError, "filled with 300: .*a number that fits the dtype"),
        (lambda: tr.arange(0, 5, 0), ArgumentError, r"a step other than 0, got arange\(0, 5, 0\)"),
        (lambda: tr.linspace(0, 1, -1), ArgumentError, "at least 0, got -1"),
        (lambda: tr.zeros((2, 2, 2)).T, ShapeError, "T is the transpose of a matrix, .* use mT for stacks"),
        (
            lambda: tr.astype(tr.asarray([1j]), tr.float64),
            DTypeError,
            r"would drop the imaginary part; take real\(x\) or im",
        ),
        (lambda: tr.zeros(2, dtype="datetime64[s]"), DTypeError, "is not supported; convert to one of"),
        (lambda: tr.finfo(tr.int8), DTypeError, "finfo needs a floating or complex type, got int8; use iinfo"),
        (lambda: tr.iinfo(tr.float32), DTypeError, "iinfo needs an integer type, got float32; use finfo"),
        (
            lambda: bool(tr.zeros(2)),
            ArgumentError,
            r"truth value of float64\[2\] is undefined.*use any\(\) or all\(\)",
        ),
        (
            lambda: float(tr.zeros(2)),
            ShapeError,
            r"float\(\) needs a tensor of one element, got float64\[2\]; index or",
        ),
        (lambda: [1][tr.asarray(0.0)], TypeError, r"only integer tensors can be an index, got float64\[\]"),
        (
            lambda: tr.to_device(tr.zeros(2), "cpu:0", stream=1),
            ArgumentError,
            "to_device takes no stream, got 1; enter a",
        ),
        (
            lambda: tr.meshgrid(tr.zeros((2, 2))),
            ShapeError,
            r"takes vectors, but operand 0 is float64\[2, 2\]; ravel it",
        ),
        (lambda: tr.asarray("text"), DTypeError, "not supported; convert to one of"),
    ],
)
def test_error_texts(call, error, text):
    with pytest.raises(error, match=text):
        call()
