"""quimb's `TNOptimizer`, with losses compiled by `tenferro_runtime.compile` and derivatives by `tenferro_ad`.

quimb takes the name of a library from a list that cannot be extended. It keeps the object that computes values and
derivatives in the attribute ``handler``, which the class here provides.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, Final

import numpy as np

from tenferro_ad._jacobian import hvp
from tenferro_ad._reverse import value_and_grad
from tenferro_runtime import asarray, compile, tree_map

__all__ = ["TNOptimizer", "TensorHandler"]

_optimize: Final[Any] = import_module("quimb.tensor.optimize")


class TensorHandler:
    """Values and derivatives of a loss, as quimb's optimizer asks for them: NumPy arrays in, NumPy arrays out.

    Args:
        jit_fn: compile the loss and its derivatives.
    """

    def __init__(self, jit_fn: bool = True) -> None:
        self._prepared: Callable[..., Any] = compile if jit_fn else lambda f: f

    def to_variable(self, x: Any) -> Any:
        """The array as a tensor that is optimized."""
        return asarray(np.asarray(x), copy=True)

    to_constant = to_variable

    def setup_fn(self, fn: Any) -> None:
        """Take the loss of the arrays, or the terms that it is the sum of."""
        loss = fn if callable(fn) else lambda arrays: sum(term(arrays) for term in fn)
        self._value = self._prepared(loss)
        self._value_and_grad = self._prepared(value_and_grad(loss))
        self._hvp = self._prepared(lambda arrays, tangents: hvp(loss, (arrays,), (tangents,)))

    def value(self, arrays: Any) -> Any:
        """The loss."""
        return np.asarray(self._value(arrays))

    def value_and_grad(self, arrays: Any) -> tuple[Any, Any]:
        """The loss, and its gradient with respect to each array."""
        value, gradient = self._value_and_grad(arrays)
        return np.asarray(value), tree_map(np.asarray, gradient)

    def hessp(self, primals: Any, tangents: Any) -> Any:
        """The Hessian at `primals` times `tangents`."""
        return tree_map(np.asarray, self._hvp(primals, tangents))


class TNOptimizer(_optimize.TNOptimizer):  # type: ignore[misc]  # quimb is not at hand for type checkers
    """quimb's optimizer of tensor networks, with derivatives of tenferro.

    Args:
        tn: the network to optimize.
        loss_fn: the loss of the network, or a list of its terms.
        jit_fn: compile the loss and its derivatives.
        options: those of quimb's class, except the choice of a library.
    """

    def __init__(self, tn: Any, loss_fn: Any, *, jit_fn: bool = True, **options: Any) -> None:
        self._tensor_handler = TensorHandler(jit_fn)
        super().__init__(tn, loss_fn, autodiff_backend="autograd", **options)
        self._autodiff_backend = "tenferro"

    @property
    def handler(self) -> TensorHandler:
        """What computes values and derivatives."""
        return self._tensor_handler

    @handler.setter
    def handler(self, other: Any) -> None:
        """Leave the handler of the listed library aside."""
