"""Programs with symbolic sizes: one trace, many sizes, 0 and 1 included; guards and what their failure says."""

import numpy as np
import pytest

import tenferro_runtime as tr
from tenferro_runtime.extension import check_program
from tenferro_tensor import Spec, tensor
from tenferro_tensor_core import ArgumentError, ShapeError

F8 = np.dtype("float64")
n, m = tr.dim("n"), tr.dim("m")

SIZES = [(5, 3), (0, 3), (3, 0), (1, 1), (0, 0), (7, 2), (1, 4)]


@pytest.mark.parametrize(("a", "b"), SIZES)
def test_one_program_runs_at_every_size(a: int, b: int) -> None:
    def f(x, y, z):
        return tr.sum(x * y + z, axis=0), tr.matmul(x, tr.matrix_transpose(y))

    program = check_program(tr.trace(f, Spec((n, m), F8), Spec((n, m), F8), Spec((m,), F8)))
    assert not program.guards
    rng = np.random.default_rng(0)
    x, y, z = rng.normal(size=(a, b)), rng.normal(size=(a, b)), rng.normal(size=b)
    total, product = program.run(x, y, z)
    np.testing.assert_allclose(total.data, (x * y + z).sum(0), atol=1e-12)
    np.testing.assert_allclose(product.data, x @ y.T, atol=1e-12)
    again, _ = program.run(x, y, z)
    np.testing.assert_array_equal(again.data, total.data)


def test_sizes_that_turn_out_equal_are_one_guard() -> None:
    program = check_program(
        tr.trace(lambda x, y: (x + y) * y, Spec((n,), F8), Spec((m,), F8), examples={"n": 4, "m": 4})
    )
    assert [str(g).partition(" (")[0] for g in program.guards] == ["n == m"]
    for k in (0, 1, 6):
        (z,) = program.run(np.ones(k), 2 * np.ones(k))
        assert z.tolist() == [6.0] * k
    with pytest.raises(
        ShapeError, match=r"traced under the condition n == m \(.*does not hold for n=3, m=2; trace the"
    ):
        program.run(np.ones(3), np.ones(2))


def test_a_branch_on_a_size_is_a_guard() -> None:
    from tenferro_tensor_core import ask

    def f(x):
        return x * 2 if ask(x.shape[0], ">", 3) else x

    program = tr.trace(f, Spec((n,), F8))
    assert program.run(np.ones(4))[0].tolist() == [2.0] * 4
    with pytest.raises(ShapeError, match=f"condition n > 3 .*{__file__}.* does not hold for n=2"):
        program.run(np.ones(2))
    small = tr.trace(f, Spec((n,), F8), examples={"n": 2})
    assert small.run(np.ones(3))[0].tolist() == [1.0] * 3


def test_sizes_must_fit() -> None:
    program = tr.trace(lambda x, y: tr.sum(x) + tr.sum(y), Spec((n, n), F8), Spec((n + 1,), F8))
    assert float(program.run(np.ones((2, 2)), np.ones(3))[0]) == 7.0
    with pytest.raises(
        ShapeError, match=r"axis 1 of input 0 \(v0\) has extent 3, but the program needs n = 2 with n=2"
    ):
        program.run(np.ones((2, 3)), np.ones(3))
    with pytest.raises(ShapeError, match=r"axis 0 of input 1 .* has extent 5, but the program needs n \+ 1 = 3 with"):
        program.run(np.ones((2, 2)), np.ones(5))
    with pytest.raises(
        tr.ProgramError, match=r"of the program is float64\[n, n\], got float64\[2\]; only sizes are sy"
    ):
        program.run(np.ones(2), np.ones(3))
    fixed = tr.trace(lambda x: x, Spec((n, 3), F8))
    with pytest.raises(ShapeError, match="axis 1 of input 0 .* has extent 2, but the program needs 3; pass an operand"):
        fixed.run(np.ones((2, 2)))


def test_bounds_are_checked() -> None:
    k = tr.dim("k", min=2, max=4)
    program = tr.trace(lambda x: x + 1, Spec((k,), F8))
    assert program.run(np.ones(3))[0].shape == (3,)
    with pytest.raises(ShapeError, match=r"size 'k' is 5, outside its bounds \[2, 4\]"):
        program.run(np.ones(5))


def test_examples_must_name_sizes() -> None:
    with pytest.raises(ArgumentError, match=r"examples name the sizes \['q'\], but the symbolic sizes are \['n'\]"):
        tr.trace(lambda x: x, Spec((n,), F8), examples={"q": 3})


def test_open_sizes_inside_metadata_are_filled_in() -> None:
    program = check_program(tr.trace(lambda x: tr.reshape(tr.concat([x, x], axis=0), (2 * n * 3,)), Spec((n, 3), F8)))
    assert program.outputs == (Spec((6 * n,), F8),)
    for k in (0, 1, 4):
        assert program.run(np.ones((k, 3)))[0].shape == (6 * k,)


def test_a_program_with_open_sizes_can_be_called_in_a_trace() -> None:
    program = tr.trace(lambda x: x * 2, Spec((n,), F8))
    outer = tr.trace(lambda x: program.run(x)[0] + 1, Spec((3,), F8))
    check_program(outer)
    assert outer.outputs == (Spec((3,), F8),)
    assert outer.run(np.ones(3))[0].tolist() == [3.0] * 3
    inlined = tr.compile(lambda x: program.run(x)[0] + 1)
    assert inlined(tensor([1.0])).tolist() == [3.0]


def test_passes_keep_open_sizes() -> None:
    from tenferro_runtime.extension import optimise

    program = tr.trace(lambda x: tr.sin(x) + tr.sin(x), Spec((n,), F8))
    small = check_program(optimise(program))
    assert len(small.equations) == 2 and small.run(np.zeros(2))[0].tolist() == [0.0, 0.0]
