"""Attributes of other libraries' arrays that values deliberately lack, and their replacements.

For other missing attributes, Python itself suggests the nearest name, at no cost for existing ones.
"""

from __future__ import annotations

from typing import Any, Final, NoReturn

from tenferro_tensor_core.absent import AbsentNameError, advice_for

_LAYOUT: Final = "nothing: layouts of memory are not part of a value"
_MEMORY: Final = f"{_LAYOUT}, and only concrete values have memory"
_UPDATE: Final = "x[key] = values"

INSTEAD: Final = {
    # NumPy
    "base": "nothing: a view keeps its base to itself",
    "byteswap": _LAYOUT,
    "ctypes": "x.numpy().ctypes",
    "dump": "np.save(file, x.numpy())",
    "dumps": "pickle.dumps(x)",
    "flags": _MEMORY,
    "itemset": _UPDATE,
    "newbyteorder": _LAYOUT,
    "ptp": "tr.ptp(x)",
    "resize": "tr.reshape(x, shape), or tr.pad for more elements",
    "setfield": _UPDATE,
    "setflags": _LAYOUT,
    "strides": _MEMORY,
    "tobytes": "x.numpy().tobytes()",
    "tofile": "x.numpy().tofile(file)",
    # PyTorch and JAX
    "backward": "tr.variable(x) and compute with it, or use tr.grad",
    "block_until_ready": "tr.synchronize()",
    "clamp": "x.clip(low, high)",
    "clone": "x.copy()",
    "contiguous": _LAYOUT,
    "cpu": 'tr.to_device(x, "cpu")',
    "cuda": 'tr.to_device(x, "cuda:0")',
    "double": "x.astype(tr.float64)",
    "expand": "tr.broadcast_to(x, shape)",
    "float": "x.astype(tr.float32)",
    "grad": "tr.variable(x) and compute with it, or use tr.grad",
    "long": "x.astype(tr.int64)",
    "norm": "tr.linalg.vector_norm(x)",
    "numel": "x.size",
    "permute": "x.transpose(axes)",
    "register_hook": "tr.custom_rule on a function of x",
    "requires_grad_": "tr.variable(x)",
    "retain_grad": "tr.vjp or tr.grad with respect to x",
    "to": "x.astype(dtype), or tr.to_device(x, device)",
    "type": "x.astype(dtype)",
    "unsqueeze": "tr.expand_dims(x, axis=axis)",
    "zero_grad": "tr.variable(x) for a value that has a gradient",
}
"""Replacement by name of the attribute."""


class Absent:
    """A missing attribute: reading it raises an error that names the replacement, so that `hasattr` is false."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, value: Any, owner: type) -> NoReturn:
        raise AbsentNameError(
            f"{owner.__name__!r} object has no attribute {self._name!r}", self._advice, name=self._name
        )

    def _advice(self) -> str:
        return advice_for(INSTEAD[self._name])
