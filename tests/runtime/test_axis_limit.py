"""An array of 65 axes is a typed error that says the limit, for every way to ask for one, in every mode."""

from typing import Any

import numpy as np
import pytest

import tenferro_runtime as tr
from tenferro_ad import variable
from tenferro_einsum import einsum
from tenferro_tensor import Spec
from tenferro_tensor_core import TenferroError

ONE = (1,)
X = tr.ones(ONE * 64)


def nested(depth: int) -> Any:
    value: Any = 1.0
    for _ in range(depth):
        value = [value]
    return value


CASES = {
    "reshape": lambda x: tr.reshape(x, ONE * 65),
    "method": lambda x: x.reshape(*ONE * 65),
    "expand_dims": lambda x: tr.expand_dims(x, axis=0),
    "stack": lambda x: tr.stack([x, x]),
    "stack last": lambda x: tr.stack([x], axis=64),
    "broadcast_to": lambda x: tr.broadcast_to(x, (2, *ONE * 64)),
    "broadcast_arrays": lambda x: tr.broadcast_arrays(x, tr.ones(ONE * 65)),
    "None in front": lambda x: x[None],
    "None at the end": lambda x: x[..., None],
    "many None": lambda x: x[(None,) * 65],
    "index array": lambda x: x[tr.asarray([[0]])],
    "take": lambda x: tr.take(x, tr.asarray([[0]]), axis=0),
    "outer product": lambda x: tr.tensordot(x, x, axes=0),
    "product": lambda x: tr.matmul(x[None], x),
    "einsum": lambda x: einsum(x, list(range(64)), tr.ones(2), [64], list(range(65))),
    "scan": lambda x: tr.scan(lambda c, i: (c, x * i), 0.0, tr.arange(2.0))[1],
    "tile": lambda x: tr.tile(x, ONE * 65),
    "meshgrid": lambda x: tr.meshgrid(*[tr.sum(x, axis=tuple(range(63)))] * 65),
    "ones": lambda x: tr.ones(ONE * 65),
    "zeros": lambda x: tr.zeros(ONE * 65),
    "full": lambda x: tr.full(ONE * 65, 2.0),
    "empty": lambda x: tr.empty(ONE * 65),
    "asarray": lambda x: tr.asarray(nested(65)),
}
MODES = {
    "eager": lambda f: f(X),
    "recorded": lambda f: f(variable(X)),
    "compiled": lambda f: tr.compile(f)(X),
    "traced": lambda f: tr.trace(f, X),
    "symbolic sizes": lambda f: tr.trace(f, Spec((tr.dim("n"), *ONE * 63), tr.float64), examples={"n": 1}),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("case", CASES)
def test_one_axis_too_many(case: str, mode: str) -> None:
    with pytest.raises(TenferroError, match="64"):
        MODES[mode](CASES[case])


def test_64_axes_are_not_too_many() -> None:
    assert tr.__array_namespace_info__().capabilities()["max dimensions"] == 64
    for run in (lambda f, x: f(x), lambda f, x: tr.compile(f)(x)):
        y = run(lambda x: tr.expand_dims(tr.squeeze(x + 1.0, axis=0), axis=5), X)
        assert y.shape == ONE * 64 and float(tr.sum(y)) == 2.0
    np.testing.assert_array_equal(np.asarray(tr.sum(X, axis=tuple(range(1, 64)))), [1.0])


def test_the_text_says_what_to_do() -> None:
    text = "an array cannot have 65 axes; at most 64 are supported, as in NumPy; merge axes with reshape first"
    with pytest.raises(TenferroError, match=text):
        tr.stack([X, X])
