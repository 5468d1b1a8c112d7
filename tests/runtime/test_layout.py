"""Steps that only move, repeat or convert elements are merged and undone, with symbolic sizes too; every bit stays."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tenferro_runtime as tr
from tenferro_runtime.extension import Builder, check_program, interpret
from tenferro_runtime.passes import rearrange_layout, remove_dead_code
from tenferro_runtime.passes.layout import _is_one_step
from tenferro_tensor import Spec, catalog, tensor
from tenferro_tensor_core import load_bfloat16

F8 = np.dtype("float64")
N, M = tr.dim("n"), tr.dim("m")


def after(f, *specs, **examples):
    program = tr.trace(f, *specs, **({"examples": examples} if examples else {}))
    return program, check_program(remove_dead_code(rearrange_layout(program)))


def names(program):
    return [eq.op.primitive.name for eq in program.equations]


def t(x, *permutation):
    return catalog.transpose(x, permutation=permutation)


CASES = {
    "transposed twice": (lambda x: t(t(x, 1, 2, 0), 2, 0, 1), []),
    "transposed there and on": (lambda x: t(t(x, 1, 2, 0), 1, 0, 2), ["transpose"]),
    "only an axis of extent 1 moves": (
        lambda x: t(catalog.reshape(x, shape=(1, *x.shape)), 1, 2, 0, 3),
        ["reshape"],
    ),
    "reshaped twice": (
        lambda x: catalog.reshape(catalog.reshape(x, shape=(x.size, 1)), shape=(1, x.size)),
        ["reshape"],
    ),
    "reversed twice": (lambda x: catalog.reverse(catalog.reverse(x, axes=(0, 1)), axes=(0, 1)), []),
    "reversed and partly back": (lambda x: catalog.reverse(catalog.reverse(x, axes=(0, 1)), axes=(1,)), ["reverse"]),
    "reversed along an axis of extent 1": (
        lambda x: catalog.reverse(catalog.reshape(x, shape=(1, *x.shape)), axes=(0,)),
        ["reshape"],
    ),
    "broadcast twice": (
        lambda x: catalog.broadcast_in_dim(
            catalog.broadcast_in_dim(x, shape=(2, *x.shape), dims=(1, 2, 3)), shape=(2, *x.shape, 3), dims=(0, 1, 2, 3)
        ),
        ["broadcast_in_dim"],
    ),
    "broadcast, then transposed": (
        lambda x: t(catalog.broadcast_in_dim(x, shape=(2, *x.shape), dims=(1, 2, 3)), 1, 0, 2, 3),
        ["broadcast_in_dim"],
    ),
    "one number reshaped": (
        lambda x: catalog.reshape(catalog.broadcast_in_dim(x[0, 0, 0], shape=(2, 3), dims=()), shape=(6,)),
        ["slice", "reshape", "broadcast_in_dim"],
    ),
    "converted twice": (
        lambda x: tr.real(catalog.convert(catalog.convert(x, dtype=tr.complex128), dtype=tr.complex64)),
        ["convert", "real"],
    ),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("symbolic", [False, True])
def test_it_becomes_less(name: str, symbolic: bool) -> None:
    f, expected = CASES[name]
    spec = Spec((N, M, 4) if symbolic else (2, 3, 4), F8)
    program, less = after(f, spec)
    assert names(less) == expected and len(names(program)) >= len(expected)
    x = tensor(np.arange(24.0).reshape(2, 3, 4))
    np.testing.assert_array_equal(less.run(x)[0].data, program.run(x)[0].data)


def test_slices_of_slices_are_one() -> None:
    for a, b, s, a2, b2, s2 in itertools.product((0, 2), (7, 10), (1, 3), (0, 1), (1, 2), (1, 2)):
        program, less = after(lambda x: x[a:b:s][a2:b2:s2], Spec((10,), F8))  # noqa: B023 - called at once
        assert len(less.equations) <= 1 <= len(program.equations)
        x = tensor(np.arange(10.0))
        np.testing.assert_array_equal(less.run(x)[0].data, np.arange(10.0)[a:b:s][a2:b2:s2])


@pytest.mark.parametrize("swap", [False, True])
def test_a_contraction_with_a_number_is_a_product(swap: bool) -> None:
    def f(x, s):
        return catalog.dot_general(*((s, x) if swap else (x, s)), contract=((), ()), batch=((), ()))

    program, less = after(f, Spec((2, 3), F8), Spec((), F8))
    assert (names(program), names(less)) == (["dot_general"], ["broadcast_in_dim", "mul"])
    assert less.run(np.ones((2, 3)), np.asarray(3.0))[0].numpy().tolist() == [[3.0] * 3] * 2


def test_a_broadcast_that_permutes_stays() -> None:
    def f(x):
        return catalog.broadcast_in_dim(x, shape=(2, 2), dims=(1, 0))

    program, less = after(f, Spec((2, 2), F8))
    assert names(less) == names(program)
    assert less.run(np.asarray([[1.0, 2.0], [3.0, 4.0]]))[0].numpy().tolist() == [[1.0, 3.0], [2.0, 4.0]]


@pytest.mark.parametrize(("start", "limit"), [(0, 0), (2, 2), (3, 3), (1, 3), (2, 3)])
def test_slices_of_strided_slices_are_one_even_if_empty(start: int, limit: int) -> None:
    def f(x):
        every_other = catalog.slice_(x, start=(1,), limit=(9,), stride=(2,))
        return catalog.slice_(every_other, start=(start,), limit=(limit,), stride=(1,))

    _, less = after(f, Spec((12,), F8))
    x = np.arange(12.0)
    assert len(less.equations) == 1
    assert less.run(x)[0].numpy().tolist() == x[1:9:2][start:limit].tolist()


def test_slices_with_open_limits_are_one() -> None:
    k = tr.dim("k", min=6)
    b = Builder()
    x = b.input(Spec((k,), F8))
    y = catalog.slice_(x, start=(1,), limit=(k - 1,), stride=(1,))
    program = b.close([catalog.slice_(y, start=(2,), limit=(k - 3,), stride=(1,))])
    less = check_program(remove_dead_code(rearrange_layout(program)))
    assert names(less) == ["slice"] and less.equations[0].op.params["start"] == (3,)
    assert less.run(np.arange(8.0))[0].tolist() == [3.0, 4.0, 5.0]


def test_a_slice_of_everything_is_the_operand() -> None:
    _, less = after(lambda x: catalog.slice_(x, start=(0,), limit=(N,), stride=(1,)), Spec((N,), F8))
    assert names(less) == []
    _, kept = after(lambda x: catalog.slice_(x, start=(0,), limit=(1,), stride=(2,)), Spec((1,), F8))
    assert len(names(kept)) <= 1


def test_work_on_repeated_elements_is_done_before_they_are_repeated() -> None:
    def f(x, y):
        wide = [catalog.broadcast_in_dim(v, shape=(6, *v.shape), dims=(1,)) for v in (x, y)]
        return wide[0] * 2.0 + wide[1]

    _, less = after(f, Spec((N,), F8), Spec((N,), F8))
    assert names(less) == ["mul", "add", "broadcast_in_dim"]
    assert less.run(np.ones(3), np.ones(3))[0].spec.shape == (6, 3)


def test_functions_that_round_by_their_place_in_a_vector_stay_where_they_are() -> None:
    program, less = after(lambda x: tr.sin(catalog.broadcast_in_dim(x, shape=(6, 3), dims=(1,))), Spec((3,), F8))
    assert less is program


@given(*[st.sampled_from("bool int8 uint8 int32 uint64 int64 float32 float64 complex64 complex128".split())] * 3)
def test_conversions_in_a_row_are_one_where_nothing_is_lost(a: str, b: str, to: str) -> None:
    rng = np.random.default_rng(3)
    values = [0, 1, -1, 7, 100, 127, 128, 255, 256, 2**31 - 1, 2**31, 2**53 + 1, -(2**63), 2**63 - 1]
    with np.errstate(all="ignore"):
        x = np.asarray(values + list(rng.integers(-(2**62), 2**62, 20)), np.int64)
        x = x.astype(a) if np.dtype(a).kind in "biu" else (x / 3 * (1 + 1j if "c" in a else 1)).astype(a)
        spec = Spec(x.shape, np.dtype(a))

        def f(x):
            return catalog.convert(catalog.convert(x, dtype=np.dtype(b)), dtype=np.dtype(to))

        program, less = after(f, spec)
        assert len(less.equations) <= len(program.equations)
        np.testing.assert_array_equal(
            np.asarray(interpret(less, [tensor(x)])[0].data), np.asarray(interpret(program, [tensor(x)])[0].data)
        )


def test_lossless_chains_are_told_from_lossy_ones() -> None:
    def one_step(*names):
        return _is_one_step(*map(np.dtype, names))

    assert one_step("float32", "float64", "float32")
    assert one_step("int32", "float64", "float32")
    assert one_step("int64", "int32", "int8")
    assert one_step("bool", "int8", "complex128")
    assert not one_step("float64", "float32", "float64")
    assert not one_step("int64", "float64", "int64")
    assert not one_step("int64", "int32", "int64")
    assert not one_step("float32", "float64", "int32")
    assert not one_step("int8", "uint8", "int32")
    assert one_step("float16", "float32", "float16")
    assert one_step("uint8", "float16", "float32") and not one_step("uint16", "float16", "float32")
    assert one_step("int16", "float32", "float64") and not one_step("int32", "float32", "float64")
    assert not one_step("float16", "int32", "float64")
    assert one_step("int8", "int16", "uint64") and not one_step("int8", "float32", "uint64")
    bfloat16 = np.dtype(load_bfloat16())
    assert _is_one_step(bfloat16, np.dtype("float32"), bfloat16)
    assert _is_one_step(np.dtype("uint8"), bfloat16, np.dtype("float32"))
    assert not _is_one_step(np.dtype("int16"), bfloat16, np.dtype("float32"))
    for other in ("float16", "int64"):
        assert not _is_one_step(bfloat16, np.dtype(other), bfloat16)
    assert not _is_one_step(np.dtype("float16"), bfloat16, np.dtype("float32"))


BLOCKS = {
    "read after write": (lambda x, k: x.at[k].set(x[0] * 2)[k], 0, 0),
    "write twice": (lambda x, k: x.at[k].set(x[0]).at[k].set(x[1]), 0, 1),
    "write what is there": (lambda x, k: x.at[k].set(x[k]), 0, 0),
    "write what is elsewhere": (lambda x, k: x.at[k].set(x[1 - k]), 1, 1),
    "write a part": (lambda x, k: x.at[k].set(1.0).at[k, 0].set(2.0), 0, 2),
    "constant columns": (lambda x, k: x.at[k, 2].set(1.0).at[k, 2].set(3.0)[k, 2], 0, 0),
    "read elsewhere": (lambda x, k: x.at[k].set(1.0)[1 - k], 1, 1),
}


@pytest.mark.parametrize("name", BLOCKS)
def test_blocks_at_one_place(name):
    f, reads, writes = BLOCKS[name]
    program, better = after(lambda x, i: f(x, i & 1), Spec((2, 3), F8), Spec((), np.dtype("int64")))
    assert names(better).count("dynamic_slice") == reads
    assert names(better).count("dynamic_update_slice") + names(better).count("scatter") == writes
    x = np.arange(6.0).reshape(2, 3)
    for i in (0, 1, 5):
        want = program.run(tensor(x), tensor(i))
        np.testing.assert_array_equal(better.run(tensor(x), tensor(i))[0], want[0])
