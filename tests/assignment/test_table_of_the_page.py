"""The rows of the table in docs/assignment.md: what each library does with a write."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tenferro_runtime as tr
from tenferro_ad import grad, vjp

PAGE = Path(__file__).parents[2] / "docs" / "assignment.md"


def ones(xp: Any) -> Any:
    return xp.asarray(np.ones((4, 2)))


def to_a_view(x: Any) -> None:
    v = x[1:]
    v[0] = 9.0


def in_place(x: Any) -> None:
    v = x[1:]
    v += 1.0


def rows(x: Any) -> None:
    for row in x:
        row *= 2.0


def temporary(x: Any) -> None:
    x[1:][0] = 9.0


def transposed(x: Any) -> None:
    x.T[0] = 9.0


def picked(x: Any) -> None:
    x[np.asarray([0, 1])][0] = 9.0


def under_every_name(x: Any) -> None:
    y = x
    y += 1.0


def out_argument(x: Any) -> None:
    np.add(x[:2], 1.0, out=x[:2])


WRITES: dict[str, tuple[Callable[[Any], None], bool]] = {
    "`v = x[1:]; v[0] = 9.0`": (to_a_view, True),
    "`v = x[1:]; v += 1.0`": (in_place, True),
    "`for row in m: row *= 2.0`": (rows, True),
    "`x[1:][0] = 9.0`": (temporary, True),
    "`m.T[0] = 9.0`": (transposed, True),
    "`m[[0, 1]][0] = 9.0`": (picked, False),
    "`x += 1.0` under every name of `x`": (under_every_name, True),
    "`np.add(a, b, out=x[:2])`": (out_argument, True),
}
"""Each row with a program, and whether it changes the array."""


def table() -> dict[str, list[str]]:
    lines = [line.split("|") for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("|")]
    return {cells[1].strip(): [c.strip() for c in cells[2:-1]] for cells in lines[2:]}


def test_every_row_is_a_test() -> None:
    derivatives = [row for row in table() if row.startswith(("gradient", "the same"))]
    assert {*table()} == {*WRITES, *derivatives} and len(derivatives) == 3


@pytest.mark.parametrize("row", WRITES)
def test_writes_to_the_array_or_not(row: str) -> None:
    write, writes = WRITES[row]
    a, x = np.ones((4, 2)), ones(tr)
    write(a)
    write(x)
    np.testing.assert_array_equal(np.asarray(x), a)
    assert (a != 1.0).any() == writes
    numpy, ours = table()[row][:2]
    assert numpy == ours == ("no effect" if not writes else numpy) and (numpy != "no effect") == writes


@pytest.mark.parametrize("row", WRITES)
def test_what_jax_does(row: str) -> None:
    jnp = pytest.importorskip("jax.numpy")
    x = ones(jnp)
    said = table()[row][3]
    try:
        WRITES[row][0](x)
    except TypeError:
        assert said == "TypeError"
    else:
        assert re.search("does not change|^no$", said) and (np.asarray(x) == 1.0).all()


def test_gradients() -> None:
    def overwritten(x: Any) -> Any:
        y = x * x
        x[0] = 0.0
        return y.sum()

    def through_a_view(a: Any) -> Any:
        y = tr.ones(3)
        part = y[1:]
        part += a
        return (y * y).sum()

    x = tr.asarray([1.0, 2.0, 3.0])
    assert grad(overwritten)(x).tolist() == [2.0, 4.0, 6.0]
    a = tr.asarray([1.0, 2.0])
    assert grad(through_a_view)(a).tolist() == tr.compile(grad(through_a_view))(a).tolist() == [4.0, 6.0]
    assert vjp(through_a_view, a)[0] == tr.compile(through_a_view)(a)
