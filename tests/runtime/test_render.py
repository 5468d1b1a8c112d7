"""The renderer: what the generated functions do, hold and let go; that both renderings agree is shown elsewhere."""

import weakref

import numpy as np
import pytest

import tenferro_runtime as tr
from tenferro_runtime.extension import Builder, check_program, interpret, optimise, render
from tenferro_runtime.running.rendering import aliases, raw_steps
from tenferro_runtime.running.rendering._render import CHUNK
from tenferro_tensor import Spec, catalog, tensor
from tenferro_tensor_core import ArgumentError

F8 = np.dtype("float64")
X = Spec((3,), F8)
FLAG = Spec((), np.dtype(bool))


def test_a_bare_function_returns_the_only_output_itself() -> None:
    program = tr.trace(lambda x: x + 1, X)
    assert render(program, "raw", bare=True)(np.ones(3)).tolist() == [2.0] * 3
    assert isinstance(render(program, "raw")(np.ones(3)), tuple)
    with pytest.raises(ArgumentError, match="bare=True needs a program of one output, this one has 2"):
        render(tr.trace(lambda x: (x, x), X), "raw", bare=True)


def test_values_of_any_level_run_through_the_value_rendering() -> None:
    program = tr.trace(lambda x: tr.sum(x * 2 + tensor([1.0, 2.0, 3.0])), X)
    f = render(program, "value", bare=True)
    assert float(f(tensor([0.0, 0.0, 0.0]))) == 6.0
    again = check_program(tr.trace(f, X))
    assert [eq.op for eq in again.equations] == [eq.op for eq in program.equations]


def test_open_sizes_cannot_be_rendered_over_raw_arrays() -> None:
    program = tr.trace(lambda x: x + 1, Spec((tr.dim("n"),), F8))
    with pytest.raises(
        ArgumentError, match="kernels need numbers as sizes; render_open returns a function for all sizes"
    ):
        render(program, "raw")
    assert render(program, "value", bare=True)(tensor([1.0])).tolist() == [2.0]


def test_odd_literals() -> None:
    program = tr.trace(lambda x: (x + float("inf"), x * float("nan"), x * 1j, -(-0.0) * x, x + True), X)
    for run, value in ((render(program, "raw"), np.ones(3)), (render(program, "value"), tensor(np.ones(3)))):
        outs = run(value)
        for got, want in zip(outs, interpret(program, [tensor(np.ones(3))]), strict=True):
            np.testing.assert_array_equal(np.asarray(getattr(got, "data", got)), want.data)


def test_broadcasts_beside_a_full_operand_are_not_carried_out() -> None:
    row, column, scalar = Spec((3,), F8), Spec((2,), F8), Spec((), F8)

    def f(x, r, c, s):
        return x * r + c[:, None] - s

    program = tr.trace(f, Spec((2, 3), F8), row, column, scalar)
    steps, _ = aliases(raw_steps(optimise(program)))
    assert "broadcast_in_dim" in [eq.op.primitive.name for eq in optimise(program).equations]
    # the column is read through a reshape; nothing else is left beside the arithmetic
    assert [s.equation.op.primitive.name for s in steps] == ["mul", "broadcast_in_dim", "add", "sub"]
    x, r, c, s = np.ones((2, 3)), np.arange(3.0), np.arange(2.0), 5.0
    np.testing.assert_allclose(program.run(x, r, c, s)[0].data, x * r + c[:, None] - s)


@pytest.mark.parametrize(
    ("f", "specs"),
    [
        (lambda x: catalog.broadcast_in_dim(x, shape=(2, 3), dims=(1,)), [X]),  # an output
        (lambda x: catalog.tanh(catalog.broadcast_in_dim(x, shape=(2, 3), dims=(1,))), [X]),  # no full operand beside
        (lambda x: catalog.mul(*[catalog.broadcast_in_dim(x, shape=(2, 3), dims=(1,))] * 2), [X]),
        (lambda x, y: x[:, None] * y[None, :], [X, Spec((2,), F8)]),  # full together, neither alone
        (lambda x, y: x + y, [Spec((), F8), Spec((1,), F8)]),
        (lambda x: catalog.add(catalog.broadcast_in_dim(x, shape=(1,), dims=()), 1.0), [Spec((), F8)]),
        (lambda x: catalog.select(catalog.broadcast_in_dim(x, shape=(2,), dims=()), 1.0, 2.0), [FLAG]),
        (lambda x: catalog.reduce_sum(catalog.broadcast_in_dim(x, shape=(2, 3), dims=(1,)), axes=(0,)), [X]),
        (lambda x, y: catalog.transpose(x * y, permutation=(1, 0)), [Spec((2, 3), F8), X]),
    ],
)  # fmt: skip
def test_broadcasts_are_carried_out_where_the_shape_needs_them(f, specs) -> None:
    program = check_program(tr.trace(f, *specs))
    rng = np.random.default_rng(0)
    values = [tensor(rng.normal(size=s.shape).astype(s.dtype)) for s in specs]
    (want,) = interpret(program, values)
    (got,) = program.run(*values)
    assert np.shape(got.data) == got.spec.shape == want.spec.shape
    np.testing.assert_array_equal(np.asarray(got.data), np.asarray(want.data))


def chain(length: int) -> tr.Program:
    def f(x, w):
        for _ in range(length // 2):
            x = tr.tanh(x * w)
        return x, tr.sum(x)

    return check_program(tr.trace(f, X, X))


@pytest.mark.parametrize("length", [CHUNK - 2, CHUNK, CHUNK + 2, 799, 1200])
def test_long_programs_become_several_functions(length: int) -> None:
    program = chain(length)
    x, w = tensor([0.1, 0.2, 0.3]), tensor([1.0, 2.0, 0.5])
    for got, want in zip(program.run(x, w), interpret(program, (x, w)), strict=True):
        np.testing.assert_array_equal(np.asarray(got.data), np.asarray(want.data))
    run = render(program, "raw")
    parts = [name for name in run.__globals__ if name.startswith("part")] or ["program"]
    assert len(parts) == -(-len(program.equations) // CHUNK)
    assert max(run.__globals__[p].__code__.co_nlocals for p in parts) <= 3  # names are registers


def test_values_that_skip_functions_are_passed_through() -> None:
    def f(x, w):
        early = tr.sin(x)
        for _ in range(CHUNK):
            x = tr.tanh(x * w)
        return early, x, w

    program = check_program(tr.trace(f, X, X))
    x, w = tensor([0.1, 0.2, 0.3]), tensor([1.0, 2.0, 0.5])
    for got, want in zip(program.run(x, w), interpret(program, (x, w)), strict=True):
        np.testing.assert_array_equal(got.data, want.data)


def test_intermediate_values_are_freed_as_the_program_runs() -> None:
    alive, most = [], []

    def kernel(x):
        y = x + 1
        alive.append(weakref.ref(y))
        most.append(sum(r() is not None for r in alive))
        return y

    from tenferro_runtime.extension import REGISTRY, primitive

    @primitive
    def tracked(x: Spec) -> Spec:
        """One more."""
        return x

    REGISTRY.kernel(tracked, "cpu", lambda ins, outs: kernel)

    def f(x):
        for _ in range(10):
            x = tracked(x)
        return x

    (y,) = tr.trace(f, X).run(np.zeros(3))
    assert y.tolist() == [10.0] * 3
    assert max(most) <= 2


def test_inputs_and_constants_can_be_outputs() -> None:
    b = Builder()
    x = b.input(X, "x")
    k = b.constant(tensor([1.0]))
    program = check_program(b.close([x, k, x, x + 1]))
    outs = program.run(np.zeros(3))
    assert [o.tolist() for o in outs] == [[0.0] * 3, [1.0], [0.0] * 3, [1.0] * 3]
    nothing = Builder().close([])
    assert nothing.run() == ()


def test_rendering_does_not_disturb_concrete_operators() -> None:
    """Kernels are shared with eager operations, by their entries."""
    spec = Spec((11,), F8)
    tr.trace(lambda x, y: x * y, spec, spec).run(np.ones(11), np.ones(11))
    assert (0, spec, spec) in catalog.mul.op().entries
