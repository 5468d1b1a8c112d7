"""Array functions on traced values: compiled, and traced with symbolic sizes; others raise with a way out."""

import numpy as np
import pytest

import tenferro_runtime as tr
from array_cases import CASES, matrix
from array_oracles import assert_same
from tenferro_tensor import Spec
from tenferro_tensor_core import ShapeError, TenferroError, TracingError

F8 = np.dtype("float64")


@pytest.mark.parametrize("name", sorted(CASES))
def test_compiled_agrees(name):
    f = CASES[name].f
    x = matrix()
    assert_same(tr.compile(f)(tr.asarray(x)), f(tr.asarray(x)).numpy())


@pytest.mark.parametrize("name", sorted(n for n, c in CASES.items() if c.open))
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_open_sizes(name):
    """One trace serves several sizes, or says under which condition it was made."""
    f = CASES[name].f
    n, m = tr.dim("n"), tr.dim("m")
    programs = [tr.trace(f, Spec((n, m), F8), examples={"n": 3, "m": 4})]
    for rows, columns in [(3, 4), (4, 5), (5, 7), (2, 2), (1, 4), (3, 1), (1, 1), (0, 3), (2, 0)]:
        x = matrix(rows, columns, seed=rows)
        try:
            want = f(tr.asarray(x)).numpy()
        except (TenferroError, ValueError, IndexError):
            continue  # not defined there
        for program in programs:
            try:
                (got,) = program.run(tr.asarray(x))
                break
            except ShapeError as error:
                assert "traced under the condition" in str(error)
        else:
            programs.append(tr.trace(f, Spec((n, m), F8), examples={"n": rows, "m": columns}))
            (got,) = programs[-1].run(tr.asarray(x))
        assert_same(got, want)


@pytest.mark.parametrize(
    ("f", "text"),
    [
        (
            lambda x: tr.nonzero(x),
            r"nonzero has a result whose size depends on the elements.*count with count_nonzero, or",
        ),
        (
            lambda x: tr.unique_values(x),
            "unique has a result whose size depends .*; sort the elements and compare neigh",
        ),
        (
            lambda x: x[x > 1],
            r"indexing with a mask has a result whose size .*; select elements by where\(mask, x, fill\)",
        ),
        (
            lambda x: tr.repeat(x, tr.astype(x[0], tr.int64), axis=1),
            "repeat has a result whose size depends on `repeats`",
        ),
    ],
)
def test_sizes_that_depend_on_elements(f, text):
    with pytest.raises(TracingError, match=text):
        tr.compile(f)(tr.asarray(matrix()))


def test_traced_indices_are_clamped():
    f = tr.compile(lambda x, i: (x[i], x.at[i].set(0.0)))
    x = tr.asarray([1.0, 2.0, 3.0])
    got, put = f(x, tr.asarray([5, -1, -9]))
    assert_same(got, np.asarray([3.0, 3.0, 1.0]))
    assert_same(put, np.asarray([1.0, 2.0, 0.0]))  # updates out of bounds are dropped


@pytest.mark.parametrize("key", [slice(1, -1), slice(None, None, 2), slice(2, None), slice(None, None, -1), None])
def test_common_keys_of_open_sizes_need_no_condition(key):
    n = tr.dim("n", min=2)
    program = tr.trace(lambda x: x[key], Spec((n,), F8))
    assert program.guards == ()
    for size in (2, 3, 8):
        assert_same(program.run(np.arange(float(size)))[0], np.arange(float(size))[key])
