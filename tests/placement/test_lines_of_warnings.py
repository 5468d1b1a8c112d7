"""NumPy's floating-point warnings point at the user's line."""

import os
import threading
import traceback
import warnings
from io import StringIO

import numpy as np
import pytest

import tenferro_runtime as tr
from native_rooms import compiled
from tenferro_ad import grad
from tenferro_cpu.native._host import here
from tenferro_cpu.native.codegen.machine._jit import LEVEL_VARIABLE, available
from tenferro_tensor.numpy_warnings import at_user_line

pytestmark = pytest.mark.skipif(
    compiled is None or here(os.environ.get(LEVEL_VARIABLE)).level == "generic",
    reason="NumPy is called by Python functions if there are no kernels",
)

BAD, SQUARE = tr.asarray([0.0, -1.0]), tr.asarray([[0.0, -1.0], [0.0, 1.0]])
LARGE, MANY = tr.asarray([1e308, 1e308]), tr.asarray(np.zeros(100_000))
ONE, ZERO = tr.asarray([1]), tr.asarray([0])
STEPS = tr.compile(lambda x: tr.log(x) / tr.flip(x))

WARNING = {
    "number over array": lambda: 1.0 / BAD,
    "long arrays": lambda: 1.0 / MANY,
    "log": lambda: tr.log(BAD),
    "sqrt": lambda: tr.sqrt(BAD),
    "exp": lambda: tr.exp(LARGE),
    "broadcasting": lambda: SQUARE / BAD,
    "transposed operands": lambda: SQUARE.T / BAD,
    "log of transposed operands": lambda: tr.log(SQUARE.T),
    "mixed dtypes": lambda: ONE / BAD,
    "integers": lambda: ONE // ZERO,
    "integers by name": lambda: tr.floor_divide(ONE, ZERO),
    "conversion": lambda: tr.astype(LARGE, tr.float32),
    "conversion to integers": lambda: tr.astype(tr.asarray([np.nan]), tr.int32),
    "numbers": lambda: BAD[1] / 0,
    "sum": lambda: tr.sum(LARGE),
    "mean": lambda: tr.mean(LARGE),
    "gradient": lambda: grad(lambda x: tr.sum(tr.sqrt(x)))(BAD),
    "steps": lambda: STEPS(BAD),
}

BY_MACHINE_CODE = {"log of transposed operands", "mixed dtypes", "conversion", "conversion to integers"}


def seen(f):
    with warnings.catch_warnings(record=True) as record:
        warnings.simplefilter("always")
        f()
    return record


@pytest.mark.parametrize("name", WARNING)
def test_a_warning_points_at_the_users_line(name):
    if name in BY_MACHINE_CODE and not available():
        pytest.skip("Python functions call NumPy if no machine code can be made")
    f = WARNING[name]
    for _ in range(4):  # the first call, its kernels, and those that later calls take
        record = seen(f)
        assert record
        assert {(w.category, w.filename, w.lineno) for w in record} == {
            (RuntimeWarning, __file__, f.__code__.co_firstlineno)
        }
        assert len({str(w.message) for w in record}) == len(record)  # nothing is said twice


@pytest.mark.parametrize("x", [np.array([0.0, -1.0]), np.array([0.0, 1.0]), np.array([-1.0, 1.0])])
def test_the_text_is_numpys(x):
    y = tr.asarray(x)
    for own, numpys in ((lambda: tr.log(y), lambda: np.log(x)), (lambda: 1 / y, lambda: 1 / x)):
        assert [str(w.message) for w in seen(own)] == [str(w.message) for w in seen(numpys)]


def test_the_modes_of_errstate_apply():
    with np.errstate(all="ignore"):
        assert not seen(lambda: 1.0 / BAD)
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError, match="divide by zero encountered in divide"):
        1.0 / BAD
    called = []
    with np.errstate(divide="call", call=lambda kind, flag: called.append(kind)):
        (warning,) = seen(lambda: tr.log(BAD))  # one kind is called, the other warns
    assert called == ["divide by zero"]
    assert str(warning.message) == "invalid value encountered in log"
    assert warning.filename == __file__


def test_the_users_log_receives_its_kinds():
    log = StringIO()
    with np.errstate(divide="log", call=log):
        (warning,) = seen(lambda: tr.log(BAD))
        assert np.geterrcall() is log
    assert log.getvalue() == "Warning: divide by zero encountered in log\n"
    assert str(warning.message) == "invalid value encountered in log"


def test_a_filter_makes_an_exception_at_the_users_line():
    modes = np.geterr()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(RuntimeWarning, match="divide by zero encountered in log") as caught:
            WARNING["log"]()
    lines = [(f.filename, f.lineno) for f in traceback.extract_tb(caught.tb)]
    assert (__file__, WARNING["log"].__code__.co_firstlineno) in lines
    assert np.geterr() == modes
    assert np.geterrcall() is None


def test_filters_apply_to_the_users_module():
    with warnings.catch_warnings(record=True) as record:
        warnings.simplefilter("ignore")
        warnings.filterwarnings("default", module=__name__.replace(".", r"\."))
        for _ in range(3):
            1.0 / BAD
        1.0 / BAD
    first = record[0].lineno
    assert [w.lineno for w in record] == [first, first + 1]  # once for each line


def test_threads_warn_at_their_own_lines():
    def run(f):
        for _ in range(200):
            f()

    fs = [WARNING["log"], WARNING["sqrt"]]
    with warnings.catch_warnings(record=True) as record:
        warnings.simplefilter("always")
        threads = [threading.Thread(target=run, args=(f,)) for f in fs]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    expected = {"log": fs[0].__code__.co_firstlineno, "sqrt": fs[1].__code__.co_firstlineno}
    assert len(record) == 600
    assert all(w.lineno == expected[str(w.message).split()[-1]] for w in record)


def test_user_code_that_is_called_keeps_its_modes():
    def call():
        with np.errstate(all="ignore"):
            return np.log(np.zeros(1))

    assert not seen(lambda: at_user_line(call))
