"""Arguments of a wrong kind, and sizes that no memory has: typed errors that say what was asked, seen and wanted."""

import re

import numpy as np
import pytest

import tenferro_runtime as tr
from tenferro_ad import check_grads
from tenferro_einsum import einsum, tensordot
from tenferro_linalg import cross, svd_trunc, vector_norm
from tenferro_tensor import tensor
from tenferro_tensor_core import ArgumentError, AxisError, DTypeError, HostAdapterError, PlacementError, ShapeError

x = tr.asarray(np.arange(6.0).reshape(2, 3))
z = np.asarray([1 + 2j])

MISTAKES = {
    "eye": (lambda: tr.eye(2.5), ArgumentError, "eye takes an integer as n_rows, got 2.5"),
    "eye of negative size": (lambda: tr.eye(2, -1), ArgumentError, "extents of at least 0, got (2, -1)"),
    "diagonal of eye": (lambda: tr.eye(2, k="x"), ArgumentError, "eye takes an integer as k, got 'x'"),  # type: ignore[arg-type]
    "linspace": (lambda: tr.linspace(0, 1, 2.5), ArgumentError, "linspace takes an integer as num, got 2.5"),
    "roll": (lambda: tr.roll(x, 1.5), ArgumentError, "roll takes an integer as shift, got 1.5"),
    "permute_dims": (lambda: tr.permute_dims(x, 1), ArgumentError, "the axes in their new order, as a tuple, got 1"),  # type: ignore[arg-type]
    "stack": (lambda: tr.stack(3), ArgumentError, "stack takes a list or tuple of arrays, got a int"),  # type: ignore[arg-type]
    "concat": (lambda: tr.concat(tr.asarray(1.0)), ArgumentError, "concat takes a list or tuple of arrays"),  # type: ignore[arg-type]
    "split": (lambda: tr.split(x, 1.5, axis=1), ArgumentError, "number of parts or a list of cut indices, got 1.5"),
    "split at": (lambda: tr.split(x, [0.5], axis=1), ArgumentError, "split takes an integer as cut index, got 0.5"),
    "diff": (lambda: tr.diff(x, n=1.0), ArgumentError, "diff takes an integer as n, got 1.0"),  # type: ignore[arg-type]
    "diagonal": (lambda: tr.diagonal(x, offset="1"), ArgumentError, "diagonal takes an integer as offset, got '1'"),  # type: ignore[arg-type]
    "tensordot": (lambda: tr.tensordot(x, x, axes=1.5), ArgumentError, "tensordot takes an integer as axes, got 1.5"),
    "pad": (lambda: tr.pad(x, 0.5), ArgumentError, "pad takes an integer as width, got 0.5"),
    "shape": (
        lambda: tr.broadcast_to(x, "ab"),
        ArgumentError,
        "a shape consists of integers or symbolic sizes, not 'ab'",
    ),
    "shape of fractions": (lambda: tr.reshape(x, (1.5, 4)), ArgumentError, "symbolic sizes, not 1.5"),
    "axis": (lambda: tr.sum(x, axis="x"), ArgumentError, "sum takes an integer as axis, got 'x'"),
    "axis that is not there": (lambda: tr.sum(x, axis=2), AxisError, "its axes go from -2 to 1"),
    "huge broadcast": (lambda: tr.broadcast_to(x, (2**62, 2, 3)), ShapeError, "more than the address space"),
    "huge repeat": (lambda: tr.repeat(x, 2**62), ShapeError, "use smaller extents"),
    "huge tile": (lambda: tr.tile(x, (2**40, 2**40)), ShapeError, "use smaller extents"),
    "huge pad": (lambda: tr.pad(x, 2**62), ShapeError, "use smaller extents"),
    "huge zeros": (lambda: tr.zeros((2**40, 2**40)), ArgumentError, "array is too big"),
    "empty but huge": (lambda: tr.broadcast_to(tr.zeros((0, 1)), (0, 2**70)), ShapeError, "use smaller extents"),
    "complex to real": (
        lambda: tr.asarray(z, dtype=tr.float64),
        DTypeError,
        "would drop the imaginary part; take real",
    ),
    "tensor to real": (
        lambda: tensor(tensor(z), dtype=tr.float32),
        DTypeError,
        "from complex128 to float32 would drop",
    ),
    "full": (lambda: tr.full(2, 1j, dtype=tr.float64), DTypeError, "full from complex128 to float64 would drop"),
    "full_like": (lambda: tr.full_like(x, 1j), DTypeError, "full from complex128 to float64 would drop"),
    "range of a vector": (lambda: tr.arange(np.array([1, 2])), ArgumentError, "arange counts from, to and by single"),
    "range of text": (lambda: tr.arange("3"), ArgumentError, "single numbers, got '3'"),
    "range of nothing": (lambda: tr.arange(None), ArgumentError, "single numbers, got None"),
    "complex range": (lambda: tr.arange(1j), DTypeError, "arange counts real numbers, got arange(0, 1j, 1)"),
    "complex steps": (lambda: tr.linspace(0, 1j, 3, dtype=tr.float64), DTypeError, "linspace from complex128 to"),
    "object": (lambda: tr.asarray([{}]), DTypeError, "is not supported"),
    "text": (lambda: tr.asarray(["a"]), DTypeError, "is not supported"),
    "extended": (lambda: tr.zeros(2, dtype=np.longdouble), DTypeError, "is not supported"),
    "mask": (lambda: tr.asarray(np.ma.masked_array([1.0], [True])), HostAdapterError, "fill it with a.filled(value)"),
    "None": (lambda: tr.sum(None), ArgumentError, "a NoneType is neither a tensor, a NumPy array nor a number"),
    "device": (lambda: tr.asarray(1.0, device="cpu:9"), PlacementError, "or use one of cpu:0"),
    "device that is no name": (
        lambda: tr.zeros(1, device=3),
        ArgumentError,
        "is not of the form 'kind' or 'kind:index'",
    ),
    "einsum": (lambda: einsum(x), ArgumentError, "einsum takes subscripts as a string"),
    "einsum of no string": (lambda: einsum(x, [0, 1], x), ArgumentError, "the last of type Tensor"),
    "einsum path": (lambda: einsum("ij->i", x, optimize=3), ArgumentError, "a tree or an optimizer, got 3"),
    "einsum axes": (lambda: tensordot(x, x, axes=(1,)), ArgumentError, "an integer or as two sequences of axes"),
    "einsum axis": (lambda: tensordot(x, x, axes=([0.0], [0])), ArgumentError, "takes an integer as axis, got 0.0"),
    "cross": (
        lambda: cross(np.ones(3), np.ones(3), axis="x"),  # type: ignore[arg-type]
        ArgumentError,
        "cross takes an integer as axis, got 'x'",
    ),
    "norm": (lambda: vector_norm(x, axis=1.0), ArgumentError, "vector_norm takes an integer as axis, got 1.0"),  # type: ignore[arg-type]
    "rank": (lambda: svd_trunc(x, 1.0), ArgumentError, "svd_trunc takes an integer as k, got 1.0"),
    "polygamma": (lambda: tr.polygamma(0.5, x), ArgumentError, "polygamma takes an integer as order, got 0.5"),  # type: ignore[arg-type]
    "huge eye": (lambda: tr.eye(2**70), ShapeError, "use smaller extents"),
    "huge linspace": (lambda: tr.linspace(0, 1, 2**63), ShapeError, "more than the address space"),
    "order": (lambda: check_grads(tr.sin, (1.0,), order=1.5), ArgumentError, "order=1 or higher, got 1.5"),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_named(name):
    call, kind, text = MISTAKES[name]
    with pytest.raises(kind, match=re.escape(text)):
        call()


def test_what_looks_like_a_mistake_and_is_none():
    assert tr.eye(np.int64(2), k=-(2**70)).tolist() == [[0.0, 0.0], [0.0, 0.0]]
    assert tr.permute_dims(x, range(2)).shape == (2, 3)
    assert tr.broadcast_to(x, np.asarray([2, 2, 3])).shape == (2, 2, 3)
    assert tr.zeros(tr.asarray(2)).shape == (2,) == tr.zeros(np.asarray(2)).shape
    assert tr.asarray(z, dtype=tr.bool).tolist() == [True]
    assert tensordot(x, x, axes=(1, 1)).shape == (2, 2)
    assert tr.stack(np.ones((2, 2))).shape == (2, 2)  # type: ignore[arg-type]
    assert tr.broadcast_to(tr.zeros((0, 1)), (0, 2**40)).shape == (0, 2**40)


ODD = {
    "reversed": np.arange(6.0)[::-1],
    "stepped": np.arange(24.0).reshape(4, 6)[::-3, ::2],
    "transposed": np.arange(24.0).reshape(2, 3, 4).transpose(2, 0, 1),
    "broadcast": np.broadcast_to(np.float64(2.0), (3, 2)),
    "overlapping": np.lib.stride_tricks.sliding_window_view(np.arange(6.0), 3),
    "big-endian": np.arange(6, dtype=">f8").reshape(2, 3),
    "unaligned": np.frombuffer(bytearray(49), np.uint8)[1:].view(np.float64),
    "no elements": np.zeros((2, 0, 3)),
    "no axes": np.array(1.5),
    "subclass": np.arange(6.0).view(np.recarray),
    "a field": np.zeros(3, dtype=[("a", "f8"), ("b", "i1")])["a"],
}


def read_only(a: np.ndarray) -> np.ndarray:
    a = a[...]
    a.flags.writeable = False
    return a


@pytest.mark.parametrize("name", ODD)
def test_odd_memory_computes_as_plain_memory_does(name):
    """Strides, byte order, alignment and writability of host arrays change no result and are left as they were."""
    from tenferro_ad import grad

    given = ODD[name]
    before, plain = given.copy(), np.array(given, dtype=np.float64, order="C")
    for a in (given, read_only(given)):
        t = tr.asarray(a)
        for got, want in (
            (t + t * 2.0, plain * 3.0),
            (tr.sum(t), plain.sum()),
            (tr.flip(t), np.flip(plain)),
            (tr.reshape(t, (-1,)) if plain.size else t, plain.ravel() if plain.size else plain),
            (grad(lambda v: tr.sum(v * v))(a), 2.0 * plain),
            (tr.compile(lambda v: v - 1.0)(a), plain - 1.0),
            (tr.sort(tr.ravel(t)), np.sort(plain.ravel())),
            (np.from_dlpack(t + 0.0), plain),
        ):
            np.testing.assert_array_equal(np.asarray(got), want)
        assert (a == before).all()


def nested(depth: int) -> list:
    out: list = [1.0]
    for _ in range(depth):
        out = [out]
    return out


@pytest.mark.parametrize("depth", [70, 100_000])
def test_deep_nesting_is_refused(depth):
    with pytest.raises((ArgumentError, ShapeError, DTypeError, RecursionError)):
        tr.asarray(nested(depth))


def test_long_chains_need_no_stack():
    """Ten thousand operations in a row are traced, run and differentiated without recursion."""
    from tenferro_ad import grad

    def chain(v):
        for _ in range(10_000):
            v = v * 1.0 + 0.0001
        return tr.sum(v)

    np.testing.assert_allclose(np.asarray(grad(chain)(np.ones(2))), 1.0)
    assert float(tr.compile(chain)(np.zeros(2))) == pytest.approx(2.0)


@pytest.mark.parametrize("numbers", [[0, 2**64 - 1], [2**53 + 1, 0.5], [[2**63 + 1], [0]]])
def test_large_integers_of_a_list_do_not_pass_through_floats(numbers):
    assert tr.asarray(numbers, dtype=tr.uint64).numpy().tolist() == np.asarray(numbers, "uint64").tolist()


@pytest.mark.parametrize("number", [float("nan"), float("inf"), 1e30, 2**64 + 0.0])
def test_a_number_that_an_integer_dtype_cannot_hold_is_an_error(number):
    with pytest.raises(ArgumentError, match="int64 cannot hold a number of the sequence.*pass a wider dtype"):
        tr.asarray([number], dtype=tr.int64)
