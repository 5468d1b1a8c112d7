"""What a kernel returns is held against the inference the first time that it runs."""

import numpy as np
import pytest

from tenferro_tensor import REGISTRY, Spec, primitive, tensor
from tenferro_tensor_core import RegistryError

X = tensor(np.ones(3, np.float32))


@primitive
def mistaken(x: Spec) -> Spec:
    """As its operand, says the inference."""
    return x


@primitive
def mistaken_pair(x: Spec) -> tuple[Spec, Spec]:
    """Two of its operand, says the inference."""
    return x, x


@pytest.mark.parametrize(
    ("op", "kernel", "text"),
    [
        (
            mistaken,
            lambda x: x.astype(np.float64)[:1],
            r"returned float64\[1\], but its inference says float32\[3\]",
        ),
        (mistaken, lambda x: [1.0], r"mistaken returned list, but its inference says float32\[3\]"),
        (
            mistaken_pair,
            lambda x: (x, x[:2]),
            r"returned float32\[3\], float32\[2\], but its inference says float32",
        ),
        (mistaken_pair, lambda x: x, r"returned float32\[3\], but its inference says float32\[3\], float32\[3\]"),
    ],
)
def test_a_wrong_result_is_named(op, kernel, text):
    REGISTRY.kernel(op, "cpu", lambda ins, outs: kernel, replace=True)
    for _ in range(2):
        with pytest.raises(RegistryError, match=text):
            op(X)


def test_a_right_result_passes():
    REGISTRY.kernel(mistaken, "cpu", lambda ins, outs: lambda x: x * x.dtype.type(2), replace=True)
    assert mistaken(X).tolist() == [2.0, 2.0, 2.0]
