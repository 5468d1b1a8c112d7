"""quimb's `TNOptimizer`, with losses compiled by `tenferro_runtime.compile` and derivatives by `tenferro_ad`.

Importing this module adds ``"tenferro"`` to the values of ``autodiff_backend`` that quimb's own class takes; the class
here chooses it by default, and compiles the sum of several losses as one program.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from tenferro_ad._jacobian import hvp
from tenferro_ad._reverse import value_and_grad
from tenferro_runtime import asarray, compile, tree_map

__all__ = ["TNOptimizer", "TensorHandler"]

if TYPE_CHECKING:

    class _QuimbOptimizer:  # quimb has no types
        loss: float

        def optimize(self, n: int, tol: float | None = None, **options: Any) -> Any: ...

else:
    _QuimbOptimizer = import_module("quimb.tensor.optimize").TNOptimizer


class TensorHandler:
    """Values and derivatives of a loss, in the interface of quimb's optimizer: NumPy arrays in, NumPy arrays out.

    Args:
        jit_fn: compile the loss and its derivatives.
        device: device or its name, where the arrays to optimize are; by default main memory.
    """

    def __init__(self, jit_fn: bool = True, device: Any = None) -> None:
        self._device = device
        self._prepared: Callable[..., Any] = compile if jit_fn else lambda f: f

    def to_variable(self, x: Any) -> Any:
        """Convert an array to a tensor to optimize.

        Args:
            x: an array of any library.

        Returns:
            A tensor with its shape and dtype.
        """
        return asarray(np.asarray(x), device=self._device, copy=True)

    to_constant = to_variable

    def setup_fn(self, fn: Any) -> None:
        """Set the loss.

        Args:
            fn: a function of the arrays to a number, or a sequence of such functions, whose sum is the loss.
        """
        loss = fn if callable(fn) else lambda arrays: sum(term(arrays) for term in fn)
        self._value = self._prepared(loss)
        self._value_and_grad = self._prepared(value_and_grad(loss))
        self._hvp = self._prepared(lambda arrays, tangents: hvp(loss, (arrays,), (tangents,)))

    def value(self, arrays: Any) -> Any:
        """The loss.

        Args:
            arrays: the arrays, as NumPy arrays.

        Returns:
            A 0-d NumPy array.
        """
        return np.asarray(self._value(arrays))

    def value_and_grad(self, arrays: Any) -> tuple[Any, Any]:
        """The loss, and its gradient.

        Args:
            arrays: the arrays, as NumPy arrays.

        Returns:
            The loss as a 0-d NumPy array, and a gradient with the shape and dtype of each array.
        """
        value, gradient = self._value_and_grad(arrays)
        return np.asarray(value), tree_map(np.asarray, gradient)

    def hessp(self, primals: Any, tangents: Any) -> Any:
        """The Hessian at `primals` times `tangents`.

        Args:
            primals: the arrays.
            tangents: a direction, with the shape and dtype of each array.

        Returns:
            The product, with the shape and dtype of each array.
        """
        return tree_map(np.asarray, self._hvp(primals, tangents))


if not TYPE_CHECKING:
    import_module("quimb.tensor.optimize")._BACKEND_HANDLERS["tenferro"] = TensorHandler


class TNOptimizer(_QuimbOptimizer):
    """quimb's optimizer of tensor networks, with tenferro's derivatives.

    Args:
        tn: the network to optimize.
        loss_fn: the loss of the network, or a list of its terms.
        more: further options of quimb's class by position: `norm_fn`, `loss_constants` and so on.
        jit_fn: compile the loss and its derivatives.
        options: options of quimb's class, except the choice of a library.
    """

    def __init__(self, tn: Any, loss_fn: Any, *more: Any, jit_fn: bool = True, **options: Any) -> None:
        self._tensor_handler = TensorHandler(jit_fn)
        super().__init__(tn, loss_fn, *more, autodiff_backend="autograd", **options)  # type: ignore[call-arg]
        self._autodiff_backend = "tenferro"

    @property
    def handler(self) -> TensorHandler:
        """The object that computes values and derivatives."""
        return self._tensor_handler

    @handler.setter
    def handler(self, other: Any) -> None:
        """Ignore the handler that quimb's constructor sets."""
