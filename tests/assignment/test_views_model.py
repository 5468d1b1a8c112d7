"""The executable specification of views agrees with NumPy, and its derivatives with differences."""

import numpy as np
import pytest

import tenferro_runtime as tr
import views_model as model
from fuzzing import views
from fuzzing.worker import rng_of
from tenferro_ad import jvp
from views_programs import PROGRAMS

F = model.Functions(np)


def test_views_follow_their_base_and_writes_reach_it():
    x = model.value(np.arange(6.0))
    v, rows = x[::-1], F.reshape(x, (2, 3))
    column = rows[:, 1]
    column += 10.0
    assert x.read().tolist() == [0, 11, 2, 3, 14, 5] and v.read().tolist() == [5, 14, 3, 2, 11, 0]
    v[0] = -1.0
    assert rows.read().tolist() == [[0, 11, 2], [3, 14, -1]]
    assert column.base is x.base and x.base.version == 2


def test_values_of_their_own():
    x = model.value(np.arange(4.0))
    kept = [x.copy(), x + 0.0, x[[0, 1, 2, 3]], F.where(x > -1, x, 0.0), x[:2].copy()]
    element = x[1]
    x[...] = 9.0
    assert [k.read().tolist() for k in kept] == [[0, 1, 2, 3]] * 4 + [[0, 1]] and element.read() == 1.0


def test_elements_that_somebody_kept_stay():
    x = model.value(np.zeros(3))
    before = x.read()
    x[1:] += 1.0
    assert before.tolist() == [0, 0, 0] and x.read().tolist() == [0, 1, 1]


def test_updates_keep_dtype_and_shape():
    x = model.value(np.arange(3))
    same = x
    x += 2
    assert same is x and x.read().tolist() == [2, 3, 4]
    with pytest.raises(TypeError, match="does not fit"):
        x += 0.5
    with pytest.raises(ValueError):
        x += np.zeros((2, 3), int)
    assert same is x and x.read().tolist() == [2, 3, 4]


def test_random_programs():
    """As NumPy runs them, with every kind of array."""
    names = 0
    for number in range(200):
        case = views.draw(rng_of(2, number), "model")
        assert views.by_numpy(case) is not None, "drawn programs run"
        views.run_model(case)
        names += len(case["lines"])
    assert names > 200 * 10


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_programs(program):
    def modelled(xp):
        functions = model.Functions(xp)

        def f(*arrays):
            scope = dict(program.run.__globals__) | {"np": functions}
            run = type(program.run)(program.run.__code__, scope)
            return model.read(run(functions, *[model.value(a) for a in arrays]))

        return f

    arguments = program.arguments
    wanted = program.run(np, *arguments)
    np.testing.assert_allclose(modelled(np)(*arguments), wanted, rtol=1e-13, atol=1e-13)
    operands, along = (
        [tr.asarray(a) for a in arguments],
        [np.cos(np.arange(a.size)).reshape(a.shape) for a in arguments],
    )
    value, tangent = jvp(
        modelled(tr), tuple(operands), tuple([tr.asarray(d + 0 * a) for a, d in zip(arguments, along)])
    )
    np.testing.assert_allclose(np.asarray(value), wanted, rtol=1e-13, atol=1e-13)
    ends = [program.run(np, *[a + s * 1e-6 * d for a, d in zip(arguments, along)]) for s in (1, -1)]
    np.testing.assert_allclose(np.asarray(tangent), (ends[0] - ends[1]) / 2e-6, rtol=1e-6, atol=1e-7)


def test_programs_mean_what_their_names_say():
    """The programs are right, so that agreeing with NumPy means something."""

    def run(name):
        return PROGRAMS[name].run(np, *PROGRAMS[name].arguments), *PROGRAMS[name].arguments

    found, z = run("butterflies")
    np.testing.assert_allclose(found, np.fft.fft(z), rtol=1e-12, atol=1e-12)
    found, a = run("LU")
    lower, upper = np.tril(found, -1) + np.eye(4), np.triu(found)
    np.testing.assert_allclose(lower @ upper, a[[2, 1, 0, 3]], rtol=1e-12)
    found, a = run("Cholesky")
    np.testing.assert_allclose(found, np.linalg.cholesky(a), rtol=1e-12, atol=1e-13)
    found, a = run("Householder")
    np.testing.assert_allclose(found.T @ found, a.T @ a, rtol=1e-12, atol=1e-13)
    found, lower, d, upper, b = run("tridiagonal")
    np.testing.assert_allclose((np.diag(d) + np.diag(lower, -1) + np.diag(upper, 1)) @ found, b, rtol=1e-12)
    found, x, kernel = run("overlap and add")
    np.testing.assert_allclose(found, np.convolve(x, kernel), rtol=1e-12, atol=1e-13)
    found, a, angle = run("rotation")
    turn = np.eye(3)
    turn[[0, 0, 2, 2], [0, 2, 0, 2]] = np.cos(angle), -np.sin(angle), np.sin(angle), np.cos(angle)
    np.testing.assert_allclose(found, turn @ a @ turn.T, rtol=1e-12, atol=1e-13)
