"""Every line that random functions are made of, and random functions, on the simulated accelerator and on the CPU."""

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings

import tenferro_runtime as tr
from rule_cases import CASES
from simulated.installed import simulated
from tenferro_ad import grad
from tenferro_tensor import catalog
from tenferro_tensor_core import TenferroError
from written_programs import GROUPS, Written, arguments, narrow, written_functions

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
PAIRS = [("x", "y"), ("x", "v"), ("z", "x"), ("v", "t"), ("k", "k"), ("b", "b"), ("k", "v"), ("x", "b")]


@pytest.fixture(autouse=True)
def sim():
    with simulated() as runtime:
        yield runtime


def moved(args, device="sim:2"):
    return [x.to_device(device) for x in args]


def close(got, want, device="sim:2", slack=1.0):
    for g, w in zip(got, want, strict=True):
        assert str(g.device) == device and g.spec.shape == w.spec.shape and g.spec.dtype == w.spec.dtype
        tolerance = 1e-3 if w.spec.dtype.itemsize // (1 + w.spec.cplx) < 8 else 1e-9 * slack
        np.testing.assert_allclose(np.asarray(g.to_device("cpu:0")), np.asarray(w), rtol=tolerance, atol=tolerance)


def fitting(line):
    """The line as a function, with the first operands that it runs for."""
    for a, b in PAIRS:
        names = tuple(dict.fromkeys((a, b)))
        f = Written(names, (f"r = {line.format(a, b)}",), ("r",))
        try:
            f(*arguments(names, 3, 4))
        except (TenferroError, TypeError, ValueError, IndexError, ArithmeticError):
            continue
        return f
    raise AssertionError(f"no operands fit {line}")


@pytest.mark.parametrize("group", GROUPS)
def test_every_line_agrees(group):
    for line in GROUPS[group]:
        f = fitting(line)
        args = arguments(f.inputs, 3, 4)
        with tr.compute_device("sim:2"):  # what the line creates goes there, too
            got = f(*moved(args))
        close(got, f(*args))


def programs_and_gradients(lines):
    for line in lines:
        f = fitting(line)
        args = arguments(f.inputs, 3, 4)
        want = f(*args)
        loss = lambda x, *rest, f=f: tr.sum(tr.real(f(x, *rest)[0] * 1.0))
        slope = grad(loss)(*args) if args[0].spec.inexact and want[0].spec.inexact else None
        with tr.compute_device("sim:2"):
            close(tr.compile(f)(*moved(args)), want)
            if slope is not None:
                close([grad(loss)(*moved(args)), tr.compile(grad(loss))(*moved(args))], [slope, slope])


@pytest.mark.parametrize("group", GROUPS)
def test_programs_and_gradients_of_some_lines_agree(group):
    programs_and_gradients(GROUPS[group][::5])


@pytest.mark.slow
@pytest.mark.parametrize("group", GROUPS)
def test_programs_and_gradients_of_all_lines_agree(group):
    programs_and_gradients(GROUPS[group])


@settings(max_examples=10, suppress_health_check=list(HealthCheck))
@example(f=Written(("w", "x"), ("v0 = tr.tanh(w) * x",), ("v0",)))  # single precision in a result of double
@given(f=written_functions())
def test_random_functions_agree(f):
    args = arguments(f.inputs, 3, 4)
    want = f(*args)
    with tr.compute_device("sim:2"):
        close(f(*moved(args)), want, slack=narrow(f))
        close(tr.compile(f)(*moved(args)), want, slack=narrow(f))


def own_tensors(f):
    """Whether a function closes over tensors in main memory."""
    return any(isinstance(cell.cell_contents, tr.Tensor) for cell in getattr(f, "__closure__", None) or ())


RULES = [case for case in CASES if case.xs and case.primitive is not catalog.transfer and not own_tensors(case.f)]


@pytest.mark.parametrize("start", range(8))
def test_every_differentiable_primitive_agrees(start):
    assert len(RULES) > 80
    for case in RULES[start::8]:
        xs = [tr.asarray(x) for x in case.xs]

        def loss(*xs, case=case):
            out = case.f(*xs)
            return tr.sum(tr.real(out[0] if isinstance(out, tuple) else out))

        want = grad(loss)(*xs)
        with tr.compute_device("sim:2"):
            close([grad(loss)(*moved(xs))], [want])
