"""Memory handed to NumPy: writes go both ways while the tensor and its views hold it, and other values never change."""

import copy

import numpy as np
import pytest

import tenferro_runtime as tr
from tenferro_ad import grad, jvp, variable, vjp

EXPORTS = {"asarray": np.asarray, "dlpack": np.from_dlpack, "memoryview": lambda x: np.asarray(memoryview(x))}
VIEWS = {
    "itself": lambda x: x, "a slice": lambda x: x[1:, ::2], "a transpose": lambda x: x.T, "flipped": lambda x: x[::-1],
    "reshaped": lambda x: x.reshape(-1), "a row": lambda x: x[1],
}  # fmt: skip


def tensor():
    return tr.asarray(np.arange(12.0).reshape(3, 4), copy=True)


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
@pytest.mark.parametrize("export", [np.asarray, np.from_dlpack], ids=["asarray", "dlpack"])
def test_writes_go_both_ways(export, view):
    x, mine = tensor(), np.arange(12.0).reshape(3, 4)
    if export is np.from_dlpack and min(view(mine).strides) < 0:
        pytest.skip("not all consumers of DLPack know negative strides, so that such views are copied")
    e, wanted = export(view(x)), view(mine)
    assert e.flags.writeable
    e[...] = -1.0
    wanted[...] = -1.0
    np.testing.assert_array_equal(np.asarray(x), mine)
    x[0] = 5.0
    x.T[2] += 1.0
    np.add.at(x, [1, 1], np.ones((2, 4)))
    mine[0] = 5.0
    mine.T[2] += 1.0
    np.add.at(mine, [1, 1], np.ones((2, 4)))
    np.testing.assert_array_equal(e, wanted)
    np.testing.assert_array_equal(np.asarray(x), mine)


OTHERS = {
    "+x": lambda x: +x, "copy": lambda x: x.copy(), "copy.copy": copy.copy, "copy.deepcopy": copy.deepcopy,
    "detach": lambda x: x.detach(), "x * 1": lambda x: x * 1,
    "astype": lambda x: tr.astype(x, x.dtype), "picked": lambda x: x[[0, 1, 2]], "np.array": np.array,
    "where": lambda x: tr.where(x > -1.0, x, 0.0), "variable": variable,
    "asarray copy": lambda x: tr.asarray(x, copy=True),
    "concat": lambda x: tr.concat([x]),
}  # fmt: skip
"""Values of their own."""


@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS)
@pytest.mark.parametrize("first", [True, False], ids=["made first", "made later"])
def test_other_values_never_change(other, first):
    x = tensor()
    if first:
        kept = other(x)
        e = np.asarray(x)
    else:
        e = np.asarray(x)
        kept = other(x)
    value = kept.detach() if hasattr(kept, "detach") and kept is not x else kept
    before = np.array(value)
    e[...] = 100.0
    x[1] = 50.0
    x += 1.0
    np.testing.assert_array_equal(np.array(kept.detach() if hasattr(kept, "detach") else kept), before)


def test_what_derivatives_keep():
    """A derivative that was taken before or after the memory was handed out has the values of that time."""
    x, k = tensor(), tensor() * 1.0
    e, f = np.asarray(x), np.asarray(k)
    y, pull = vjp(lambda x: x * k * x, x)
    e[...], f[...] = 7.0, 7.0
    x[0], k[0] = 9.0, 9.0
    wanted = np.arange(12.0).reshape(3, 4)
    np.testing.assert_array_equal(np.asarray(pull(tr.ones((3, 4)))[0]), 2 * wanted**2)
    np.testing.assert_array_equal(np.asarray(y), wanted**3)


@pytest.mark.parametrize("part", [lambda x: x, lambda x: x[1]], ids=["a tensor", "a view"])
def test_programs_own_what_they_keep(part):
    """A program copies what it keeps of memory that was handed out, and so does the tensor."""
    scale = part(tensor())
    e = np.asarray(scale)
    f = tr.compile(lambda x: x * scale)
    before = np.array(scale)
    np.testing.assert_array_equal(np.asarray(f(1.0)), before)
    result = f(2.0)
    e[...] = 10.0
    np.testing.assert_array_equal(np.asarray(f(1.0)), np.asarray(scale))
    np.testing.assert_array_equal(np.asarray(result), 2 * before)
    scale[...] = 5.0
    assert (np.asarray(f(1.0)) == 5.0).all()


def test_a_read_only_view_of_column_major_memory():
    """NumPy's diagonals are read-only, and of memory that was handed out no flag says otherwise."""
    x = tr.concat([tensor().T, tensor().T])
    e, d = np.asarray(x), tr.diagonal(x)
    d[...] += 0.5
    assert d.tolist() == np.diagonal(e).tolist() == [0.5, 5.5, 10.5]


def test_memory_outlives_the_tensor():
    x = tensor()
    e = np.asarray(x[1:])
    del x
    e += 1.0
    assert e[0].tolist() == [5.0, 6.0, 7.0, 8.0]


def test_asked_for_without_a_copy():
    x = tensor()
    e = np.asarray(x, copy=False)
    assert np.shares_memory(e, np.asarray(x))
    held = +x
    assert np.array(x, copy=True).flags.writeable
    before = np.array(held)
    e = np.asarray(x, copy=False)
    if e.flags.writeable:
        e[...] = 3.0
    np.testing.assert_array_equal(np.asarray(held), before)


def test_transforms_leave_memory_of_others_alone():
    x = tensor()
    e = np.asarray(x)

    def f(x):
        x[0] = 1.0
        x *= 2.0
        return (x * x).sum()

    wanted = e.copy()
    grad(f)(x), jvp(f, (x,), (x,)), tr.vmap(f)(x)
    np.testing.assert_array_equal(e, wanted)


def test_memory_of_a_buffer_is_not_ours() -> None:
    buffer = bytearray(np.arange(3.0).tobytes())
    raw = np.frombuffer(buffer, np.float64)
    x = tr.Tensor.wrap(raw, tr.Spec(raw.shape, raw.dtype))
    a = np.asarray(x)
    a[0] = 9.0
    x[1] = 8.0
    assert x.tolist() == [0.0, 8.0, 2.0] and np.frombuffer(buffer, np.float64).tolist() == [0.0, 1.0, 2.0]
