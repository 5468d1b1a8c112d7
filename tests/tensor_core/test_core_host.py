"""Host adapters against odd inputs: shared where possible, copied where allowed, typed errors else."""

import array
import ctypes
import gc
import weakref

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tenferro_tensor_core import (
    DTYPES,
    DTypeError,
    HostAdapterError,
    ShapeError,
    column_major,
    dim,
    dtype,
    exported_bfloat16,
    from_buffer,
    from_dlpack,
    from_numpy,
    row_major,
    to_numpy,
)


@st.composite
def strided(draw):
    """An array of any type as a random view: reversed, stepped, transposed."""
    dt = draw(st.sampled_from(DTYPES))
    base = draw(hnp.arrays(dt, hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)))
    index = tuple(draw(st.slices(n)) for n in base.shape)
    return base[(*index, ...)].transpose(draw(st.permutations(range(base.ndim))))


class Producer:
    """A DLPack producer with a chosen device, or a chosen way to fail."""

    def __init__(self, data, device=(1, 0), fail=None):
        self.data, self.device, self.fail = data, device, fail

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, **kwargs):
        if self.fail:
            raise self.fail
        return self.data.__dlpack__(**kwargs)


def through_dlpack(a, **options):
    return from_dlpack(Producer(a), **options)


@pytest.mark.parametrize("adapt", [from_numpy, from_dlpack, through_dlpack, to_numpy])
@given(a=strided())
def test_views_are_shared_with_their_strides(adapt, a):
    for copy in (None, False):
        got = adapt(a, copy=copy)
        np.testing.assert_array_equal(got, a)
        assert got.dtype is dtype(a.dtype) and got.shape == a.shape
        if a.size:
            assert np.shares_memory(got, a)
            assert all(n == 1 or s == t for n, s, t in zip(a.shape, got.strides, a.strides))
    copied = adapt(a, copy=True)
    np.testing.assert_array_equal(copied, a)
    assert not np.shares_memory(copied, a) and copied.flags.writeable


@given(a=strided())
def test_memory_order_is_explicit_and_copies_only_if_needed(a):
    for order, flag in ((row_major, "C_CONTIGUOUS"), (column_major, "F_CONTIGUOUS")):
        got = order(a)
        np.testing.assert_array_equal(got, a)
        assert got.flags[flag] and got.shape == a.shape and got.dtype == a.dtype  # type: ignore[index]  # a name of its list
        assert order(got) is got
        if a.flags[flag] and a.size:
            assert np.shares_memory(got, a)


@pytest.mark.parametrize("adapt", [from_numpy, from_buffer, from_dlpack, through_dlpack, to_numpy])
def test_read_only_stays_read_only(adapt):
    a = np.arange(4.0)
    a.flags.writeable = False
    assert not adapt(a).flags.writeable
    assert adapt(a, copy=True).flags.writeable


@pytest.mark.parametrize("adapt", [from_numpy, from_buffer, to_numpy])
def test_foreign_byte_order_needs_a_copy(adapt):
    a = np.arange(4, dtype=">i4")[::-1]
    np.testing.assert_array_equal(adapt(a), [3, 2, 1, 0])
    assert adapt(a).dtype is dtype("int32") and adapt(a, copy=True).dtype.isnative
    with pytest.raises(HostAdapterError) as caught:
        adapt(a, copy=False)
    assert "cannot share an array in foreign byte order ('>i4'), and copy=False forbids" in str(caught.value)


def test_fields_and_unaligned_data_need_a_copy():
    records = np.zeros(4, dtype=[("a", "f8"), ("b", "i4")])
    records["a"] = range(4)
    assert from_numpy(records["a"]).strides == (8,)
    with pytest.raises(HostAdapterError, match=r"copy=False forbids a copy; pass copy=None"):
        from_numpy(records["a"], copy=False)
    halves = np.zeros(3, dtype=[("z", "c8"), ("w", "f4")])["z"]  # aligned to 4 bytes, 8 long, 12 apart
    aligned = np.zeros(4, dtype=np.dtype([("a", "f8"), ("b", "f4")], align=True))
    assert np.shares_memory(from_numpy(aligned["a"]), aligned)
    with pytest.raises(HostAdapterError, match=r"byte strides \(12,\) are not multiples of its element size 8"):
        from_numpy(halves, copy=False)
    unaligned = np.frombuffer(bytearray(17), np.uint8)[1:].view(np.float64)
    with pytest.raises(HostAdapterError, match=r"not aligned to its element type"):
        from_numpy(unaligned, copy=False)
    assert from_numpy(unaligned).flags.aligned


def test_subclasses_lose_their_class_but_not_silently_their_mask():
    records = np.eye(2).view(np.recarray)
    assert type(from_numpy(records)) is np.ndarray and np.shares_memory(from_numpy(records), records)
    with pytest.raises(HostAdapterError, match=r"cannot carry the mask of a masked array; fill it with a.filled"):
        to_numpy(np.ma.masked_array([1.0, 2.0], [True, False]))


@pytest.mark.parametrize(
    "given_", [np.array([{}, None]), np.array(["a"]), np.array(["2020"], "M8[D]"), np.array([1], "g")]
)
@pytest.mark.parametrize("adapt", [from_numpy, to_numpy])
def test_unsupported_element_types(adapt, given_):
    with pytest.raises(DTypeError, match=r"is not supported; convert to one of bool, int8"):
        adapt(given_)


def test_c_types_that_share_a_format_become_canonical():
    assert from_numpy(np.zeros(2, np.longlong)).dtype is dtype("int64")


@pytest.mark.parametrize(
    ("given_", "expected"),
    [
        (array.array("f", [1, 2]), np.array([1, 2], np.float32)),
        (array.array("q", [-1]), np.array([-1])),
        (b"\x01\xff", np.array([1, 255], np.uint8)),
        (bytearray(b"\x01"), np.array([1], np.uint8)),
        (b"", np.array([], np.uint8)),
        (memoryview(np.arange(6.0).reshape(2, 3)[:, ::-2]), np.arange(6.0).reshape(2, 3)[:, ::-2]),  # type: ignore[arg-type]
        ((ctypes.c_double * 3)(1, 2, 3), np.array([1.0, 2, 3])),
        (memoryview(np.array([1 + 2j, 3])), np.array([1 + 2j, 3])),  # type: ignore[arg-type]
        (memoryview(np.array(2.5)), np.array(2.5)),  # type: ignore[arg-type]
        (memoryview(np.array([True, False])), np.array([True, False])),  # type: ignore[arg-type]
    ],
)
def test_buffers(given_, expected):
    for adapt in (from_buffer, to_numpy):
        got = adapt(given_)
        np.testing.assert_array_equal(got, expected)
        assert got.dtype is dtype(expected.dtype) and got.shape == expected.shape
    assert got.flags.writeable == (not memoryview(given_).readonly)


def test_a_buffer_lives_as_long_as_its_view():
    a = np.arange(3.0)
    alive = weakref.ref(a)
    view = from_buffer(memoryview(a))  # type: ignore[arg-type]
    del a
    gc.collect()
    assert alive() is not None and view[2] == 2
    del view
    gc.collect()
    assert alive() is None


def test_writes_go_through_a_shared_buffer():
    source = array.array("d", [1.0, 2.0])
    from_buffer(source)[0] = 7.0
    assert source[0] == 7.0


def released():
    view = memoryview(b"ab")
    view.release()
    return view


@pytest.mark.parametrize("wrong", [[1, 2], "text", object(), 3.5, None, released()])
def test_objects_without_a_buffer(wrong):
    with pytest.raises(HostAdapterError, match=r"from_buffer cannot read an object of type .*; pass an object with"):
        from_buffer(wrong)


@pytest.mark.parametrize(
    "wrong",
    [memoryview(b"ab").cast("c"), memoryview(np.array([1], "g")), memoryview(np.zeros(1, "S3"))],  # type: ignore[arg-type]
)
def test_buffers_of_unsupported_formats(wrong):
    with pytest.raises((DTypeError, HostAdapterError), match=r"not supported|cannot read"):
        from_buffer(wrong)


def test_dlpack_producers_on_the_host():
    a = np.arange(6.0).reshape(2, 3).T[::-1]
    got = from_dlpack(Producer(a))
    np.testing.assert_array_equal(got, a)
    assert np.shares_memory(got, a) and got.strides == a.strides
    assert np.shares_memory(to_numpy(Producer(a)), a)


@pytest.mark.parametrize(
    ("device", "name"),
    [((2, 1), "cuda:1"), ((10, 0), "rocm:0"), ((13, 0), "cuda managed:0"), ((99, 3), "DLPack device type 99:3")],
)
@pytest.mark.parametrize("adapt", [from_dlpack, to_numpy])
def test_dlpack_producers_on_a_device_are_never_touched(adapt, device, name):
    with pytest.raises(HostAdapterError) as caught:
        adapt(Producer(None, device, fail=AssertionError("must not be exported")))
    assert f"test_core_host.Producer on {name}; copy it to the host first, or hand it to the backend" in str(
        caught.value
    )
    assert caught.value.payload["device"] == device


@pytest.mark.parametrize("fail", [BufferError("requires grad"), RuntimeError("lazy"), TypeError("x"), KeyError("y")])
def test_dlpack_producers_that_refuse(fail):
    with pytest.raises(HostAdapterError, match=r"from_dlpack cannot read an object of type .*; detach or copy it") as e:
        from_dlpack(Producer(np.zeros(2), fail=fail))
    assert str(fail) in str(e.value) and e.value.__cause__ is fail


@pytest.mark.parametrize("device", [None, (1,), ("cpu", 0)])
def test_dlpack_producers_with_a_broken_device(device):
    with pytest.raises(HostAdapterError, match=r"from_dlpack cannot read"):
        from_dlpack(Producer(np.zeros(2), device))


def test_dlpack_needs_the_protocol():
    with pytest.raises(HostAdapterError, match=r"takes an object with __dlpack__ and __dlpack_device__, got .*list"):
        from_dlpack([1, 2])
    with pytest.raises(HostAdapterError, match=r"from_numpy takes a NumPy array, got an object of type builtins.list"):
        from_numpy([1, 2])  # type: ignore[arg-type]


def test_dlpack_has_narrow_floats():
    for name in ("float16", "bfloat16"):
        x = np.array([1.5, -2.0, np.inf], dtype(name))
        out = from_dlpack(Exporting(x))
        assert out.dtype == x.dtype
        assert out.tolist() == x.tolist()


class Exporting:
    """A producer of bfloat16 or of what NumPy exports by itself; it has no `dtype` that could be looked at."""

    def __init__(self, x):
        self.x = x

    def __dlpack__(self, **options):
        return exported_bfloat16(self.x, **options) if self.x.dtype.kind == "V" else self.x.__dlpack__(**options)

    def __dlpack_device__(self):
        return 1, 0


@pytest.mark.parametrize(
    ("given_", "expected"),
    [
        (3, np.array(3)),
        (True, np.array(True)),
        (2.5, np.array(2.5)),
        (1j, np.array(1j)),
        (np.float32(2), np.array(2, np.float32)),
        ([], np.array([])),
        ([[1, 2.5], [3, 4]], np.array([[1, 2.5], [3, 4]])),
        (range(3), np.arange(3)),
        ((np.ones(2), np.zeros(2)), np.array([[1.0, 1], [0, 0]])),
    ],
)
def test_python_numbers_and_sequences(given_, expected):
    got = to_numpy(given_)
    np.testing.assert_array_equal(got, expected)
    assert got.dtype is dtype(expected.dtype) and got.shape == expected.shape
    if not isinstance(given_, np.generic):
        with pytest.raises(HostAdapterError, match=r"cannot share the memory of an object of type .*pass copy=None"):
            to_numpy(given_, copy=False)


class Wrapper:
    def __init__(self, data):
        self.data = data

    def __array__(self, dtype=None, copy=None):
        if self.data is None:
            raise TypeError("implicit conversion is not allowed")
        return self.data


def test_objects_with_array():
    a = np.arange(3.0)
    assert np.shares_memory(to_numpy(Wrapper(a)), a) and np.shares_memory(to_numpy(Wrapper(a), copy=False), a)
    assert not np.shares_memory(to_numpy(Wrapper(a), copy=True), a)
    with pytest.raises(HostAdapterError, match=r"cannot read .*: implicit conversion is not allowed; convert it in"):
        to_numpy(Wrapper(None))


@pytest.mark.parametrize("wrong", [object(), {"a": 1}, {1, 2}, None, (x for x in ())])
def test_objects_that_hold_no_numbers(wrong):
    with pytest.raises(DTypeError, match=r"holds no numbers; pass numbers, nested lists of them, or an array"):
        to_numpy(wrong)


@pytest.mark.parametrize("wrong", ["text", ["a"], [None], [dim("n"), 1], 2**80, [object()]])
def test_sequences_of_other_things(wrong):
    with pytest.raises(DTypeError, match=r"is not supported; convert to one of"):
        to_numpy(wrong)


def test_ragged_sequences():
    with pytest.raises(ShapeError, match=r"does not form an array: .*; make all rows equally long"):
        to_numpy([[1, 2], [3]])


def test_zero_dimensional_arrays_stay_so():
    assert row_major(np.array(2.0)).shape == () and column_major(np.array(2.0)).shape == ()
