"""Readers of an array move before the step that updates it, so that the update can run in place."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tenferro_runtime as tr
from tenferro_runtime.extension import check_program, interpret
from tenferro_runtime.passes import put_off_updates
from tenferro_runtime.passes.updates import MAX_DISTANCE
from tenferro_tensor import catalog, tensor

ARRAYS = [tensor(np.random.default_rng(5).normal(size=shape)) for shape in ((6, 4), (2, 4), (6, 4))]
ZERO = tensor(0)


def sliced(x: Any, u: Any, row: int = 1) -> Any:
    return catalog.update_slice(x, u, start=(row, 0), stride=(1, 1), mode="set")


def scattered(x: Any, u: Any) -> Any:
    params = {"update_window_dims": (1, 2), "inserted_dims": (), "scatter_dims": (0, 1), "mode": "add"}
    return catalog.scatter(x, tensor(np.asarray([[1, 0]])), catalog.reshape(u, shape=(1, 2, 4)), **params)


def block(x: Any, u: Any) -> Any:
    return catalog.dynamic_update_slice(x, u, ZERO, ZERO)


def looped(x: Any, u: Any) -> Any:
    return tr.scan(lambda s, r: (s * 0.5 + r[0], None), x, u)[0]


def order(f: Callable[..., Any]) -> tuple[str, str]:
    """Names of the steps before and after the pass, apart from reshapes; values agree."""
    program = check_program(tr.trace(f, *ARRAYS))
    less = check_program(put_off_updates(program))
    for got, want in zip(interpret(less, ARRAYS), interpret(program, ARRAYS), strict=True):
        np.testing.assert_array_equal(got.data, want.data)
    before, after = (
        " ".join(eq.op.primitive.name for eq in p.equations if eq.op.primitive.name != "reshape")
        for p in (program, less)
    )
    assert (less is program) == (before == after)
    return before, after


@pytest.mark.parametrize("update", [sliced, scattered, block])
def test_readers_come_first(update: Any) -> None:
    before, after = order(lambda x, u, y: (update(x, u), tr.sin(x), tr.cos(y)))
    name = before.split()[0]
    assert (before, after) == (f"{name} sin cos", f"sin {name} cos")


MOVED: dict[str, tuple[Any, str]] = {
    "with what they depend on": (
        lambda x, u, y: (sliced(x, u), tr.exp(tr.cos(y)) * x, tr.tanh(y)),
        "cos exp mul update_slice tanh",
    ),
    "two updates of one array": (
        lambda x, u, y: (sliced(x, u), sliced(x, 2 * u, 3), tr.sin(x)),
        "sin update_slice mul update_slice",
    ),
    "some readers only": (
        lambda x, u, y: (lambda z: (z, tr.sin(x), tr.cos(z) * x))(sliced(x, u)),
        "sin update_slice cos mul",
    ),
    "updates of two arrays": (
        lambda x, u, y: (sliced(x, u), sliced(y, u), tr.sin(x), tr.cos(y)),
        "sin update_slice cos update_slice",
    ),
}


@pytest.mark.parametrize("name", MOVED)
def test_they_move_alone(name: str) -> None:
    f, expected = MOVED[name]
    _, after = order(f)
    assert sorted(after.split()) == sorted(expected.split())
    assert after == expected


def test_loops_overwrite_their_starts_but_not_their_constants_and_rows() -> None:
    def loop(start: Any, constant: Any, rows: Any) -> Any:
        return tr.scan(lambda s, r: (s * constant + r[0], None), start, rows)[0]

    _, after = order(lambda x, u, y: (loop(x, y, u), tr.sin(x)))
    assert after.endswith("sin scan")
    for f in (lambda x, u, y: (loop(y, x, u), tr.sin(x)), lambda x, u, y: (loop(y, x, u), tr.sin(u))):
        before, after = order(f)
        assert after == before and after.endswith("scan sin")


STAY: dict[str, Any] = {
    "no reader": lambda x, u, y: (sliced(x, u), tr.sin(y)),
    "readers of the update": lambda x, u, y: (lambda z: (z, tr.sin(z) * x))(sliced(x, u)),
    "readers of the window": lambda x, u, y: (sliced(x, u), tr.sin(u)),
    "readers before it": lambda x, u, y: (lambda z: (sliced(x, u), z))(tr.sin(x)),
    "steps that are no update": lambda x, u, y: (tr.cos(x), tr.sin(x)),
}


@pytest.mark.parametrize("name", STAY)
def test_others_stay(name: str) -> None:
    before, after = order(STAY[name])
    assert before == after


def test_distant_readers_stay() -> None:
    for distance, moved in ((MAX_DISTANCE - 1, True), (MAX_DISTANCE, False)):

        def f(x, u, y):
            z = sliced(x, u)
            for _ in range(distance - 1):  # noqa: B023 - traced at once
                y = -y
            return z, y, tr.sin(x)

        program = tr.trace(f, *ARRAYS)
        assert program.equations[distance].op.primitive is catalog.sin
        assert (put_off_updates(program) is not program) == moved
