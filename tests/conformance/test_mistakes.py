"""Calls that the standard forbids raise, on every kind of tensor, the exception that it or NumPy names.

`T` of a vector is the vector, as in NumPy: the standard would have an error.
"""

import builtins

import numpy as np
import pytest

import tenferro_runtime as tr
from array_kinds import KINDS

M, I = np.arange(12.0).reshape(3, 4), np.arange(4)

TABLE = """
IndexError: xp.sum(m, axis=2); xp.sum(m, axis=(0, -3)); xp.max(m, axis=5); xp.mean(m, axis=-3); xp.argmax(m, axis=2)
IndexError: xp.concat([m, m], axis=2); xp.stack([m, m], axis=3); xp.expand_dims(m, axis=3); xp.expand_dims(m, axis=-4)
IndexError: xp.expand_dims(m, axis=(0, 5)); xp.flip(m, axis=2); xp.roll(m, 1, axis=-3); xp.sort(m, axis=2)
IndexError: xp.moveaxis(m, 0, 2); xp.permute_dims(m, (0, 2)); xp.unstack(m, axis=2); xp.squeeze(m, axis=2)
IndexError: xp.cumulative_sum(m, axis=2); xp.count_nonzero(m, axis=2); xp.diff(m, axis=2); xp.take(m, i, axis=2)
IndexError: xp.repeat(m, 2, axis=2); xp.all(m, axis=3); xp.take_along_axis(m, i[None], axis=3); xp.argsort(m, axis=7)
IndexError: xp.permute_dims(m, (0, 0)); xp.expand_dims(m, axis=(0, 0)); m[1.5]; m[m]; m[3]; m[0, -5]; m[0, 0, 0]
IndexError: m[xp.asarray([3])]; m[xp.ones(4, dtype=xp.bool)]; m[:, xp.ones(3, dtype=xp.bool)]
IndexError: m[xp.ones((3, 4, 1), dtype=xp.bool)]; xp.fft.fft(m, axis=2); xp.linalg.vector_norm(m, axis=2)
ValueError: xp.reshape(m, (5, -1)); xp.reshape(m, (3, 3)); xp.reshape(m, (-1, -1)); xp.broadcast_to(m, (3, 5))
ValueError: xp.broadcast_to(m, (4,)); m + i[:3]; xp.matmul(m, m); xp.matmul(m, i[:3]); xp.concat([m, m.T])
ValueError: xp.concat([m, i]); xp.stack([m, m.T]); xp.squeeze(m, axis=0); xp.tril(i); xp.permute_dims(m, (0,))
ValueError: xp.cumulative_sum(m); xp.cumulative_prod(m); xp.take(m, i); xp.linalg.det(m); xp.linalg.inv(m)
ValueError: xp.linalg.cholesky(i); xp.linalg.eig(m); xp.linalg.solve(m, i); xp.linalg.cross(m, m)
ValueError: xp.tensordot(m, m, axes=1); xp.vecdot(m, i[:3]); xp.matrix_transpose(i); i.mT; xp.nonzero(m[0, 0])
ValueError: xp.meshgrid(m); xp.searchsorted(m, i); xp.broadcast_shapes((2, 3), (4,)); xp.argmax(m[:0])
ValueError: xp.max(m[:, :0]); xp.roll(m, (1, 2), axis=0); xp.repeat(i, -1); xp.astype(i, xp.int8) + 300
ValueError: xp.astype(i, xp.uint8) - 256; xp.astype(i, xp.uint8) * -1
TypeError: m & m; ~m; m << 1; xp.bitwise_invert(m); xp.floor(m * 1j); m < 1j; xp.atan2(m, 1j); m % 1j
TypeError: xp.astype(m * 1j, xp.float64); xp.max(m * 1j); xp.linalg.cross(m, "x"); len(m[0, 0]); iter(m[0, 0]); m @ 2
TypeError: -(m < 1); xp.signbit(m * 1j); xp.trunc(m * 1j); xp.asarray([object()]); i + object()
TypeError: xp.zeros(2, dtype="no such dtype")
"""


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("error", ["IndexError", "ValueError", "TypeError"])
def test_what_is_refused(error: str, kind: str) -> None:
    for line in TABLE.strip().split("\n"):
        name, _, rest = line.partition(": ")
        for expression in rest.split("; ") if name == error else ():
            with pytest.raises(getattr(builtins, error)):
                KINDS[kind](lambda m, i, e=expression: eval(e, {"xp": tr, "m": m, "i": i}), M, I)
                pytest.fail(f"{expression} was accepted")


def test_reshape_without_a_copy() -> None:
    x = tr.asarray(M)
    with pytest.raises(ValueError, match="cannot be reshaped .* without a copy"):
        tr.reshape(x.T, (12,), copy=False)
    assert tr.reshape(x, (12,), copy=False).shape == (12,)
