"""Functions of neural networks, under the names of ``jax.nn``.

All are differentiable to every order. The documentation of each function states its derivative at kinks. Nothing
overflows in the tails, and neither values nor derivatives are NaN at infinity.
"""

from typing import TYPE_CHECKING

from tenferro_runtime._absent import PARTS
from tenferro_runtime.nn._layers import glu, logmeanexp, one_hot, standardize
from tenferro_runtime.nn._rectifiers import (
    celu,
    elu,
    hard_sigmoid,
    hard_silu,
    hard_swish,
    hard_tanh,
    leaky_relu,
    relu,
    relu6,
    selu,
    sparse_plus,
    sparse_sigmoid,
)
from tenferro_runtime.nn._sigmoids import (
    gelu,
    log1mexp,
    log_sigmoid,
    mish,
    sigmoid,
    silu,
    soft_sign,
    softplus,
    squareplus,
    swish,
)
from tenferro_tensor.functions import log_softmax, logsumexp, softmax, tanh
from tenferro_tensor_core.absent import absent_from

__all__ = [
    "celu",
    "elu",
    "gelu",
    "glu",
    "hard_sigmoid",
    "hard_silu",
    "hard_swish",
    "hard_tanh",
    "leaky_relu",
    "log1mexp",
    "log_sigmoid",
    "log_softmax",
    "logmeanexp",
    "logsumexp",
    "mish",
    "one_hot",
    "relu",
    "relu6",
    "selu",
    "sigmoid",
    "silu",
    "soft_sign",
    "softmax",
    "softplus",
    "sparse_plus",
    "sparse_sigmoid",
    "squareplus",
    "standardize",
    "swish",
    "tanh",
]


def __dir__() -> list[str]:
    return __all__.copy()


if not TYPE_CHECKING:
    __getattr__ = absent_from(__name__, PARTS["nn"])
