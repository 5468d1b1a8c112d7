"""Names of NumPy, JAX and PyTorch that the namespace lacks on purpose, and their replacements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tenferro_tensor_core.absent import AbsentNameError, nearest

_PRINT: Final = "NumPy's function: np.set_printoptions also applies to tensors"
_LOAD: Final = "tr.asarray(np.{name}(...))"
_SAVE: Final = "np.{name}(file, np.asarray(x))"

INSTEAD: Final = {
    # Names in other libraries.
    "bmm": "tr.matmul",
    "block_until_ready": "tr.synchronize()",
    "cat": "tr.concat",
    "custom_jvp": "tr.custom_rule",
    "custom_vjp": "tr.custom_rule",
    "jacobian": "tr.jacrev, or tr.jacfwd for few inputs",
    "remat": "tr.checkpoint",
    "clamp": "tr.clip",
    "einsum_path": "tenferro_einsum.contract_path",
    "device_get": "x.numpy()",
    "device_put": "tr.to_device",
    "from_numpy": "tr.asarray",
    "jit": "tr.compile",
    "lax": "tr itself: tr.scan, tr.cond, tr.while_loop, tr.fori_loop, tr.dynamic_slice and others are functions of tr",
    "mm": "tr.matmul",
    "ndarray": "tr.Tensor",
    "numpy": "tr itself, which is the array namespace",
    "permute": "tr.permute_dims",
    "pmap": "tr.vmap for batches, or tenferro_xla for several devices",
    "tensor": "tr.asarray, or tr.variable for a value that records gradients",
    "unsqueeze": "tr.expand_dims",
    "frompyfunc": "tr.vmap, or tr.pure_callback for a function that tenferro cannot trace",
    # NumPy's former names.
    "alltrue": "tr.all",
    "asfarray": "tr.asarray(x, dtype=tr.float64)",
    "asscalar": "x.item()",
    "asmatrix": "tr.asarray",
    "bmat": "tr.block",
    "bool8": "tr.bool",
    "common_type": "tr.result_type",
    "complex_": "tr.complex128",
    "cumproduct": "tr.cumprod",
    "float_": "tr.float64",
    "in1d": "tr.isin",
    "int_": "tr.int64",
    "mat": "tr.asarray",
    "matrix": "tr.asarray",
    "msort": "tr.sort(x, axis=0)",
    "product": "tr.prod",
    "round_": "tr.round",
    "row_stack": "tr.vstack",
    "sometrue": "tr.any",
    "trapz": "tr.trapezoid",
    # Memory layouts, which values do not have.
    "asanyarray": "tr.asarray",
    "ascontiguousarray": "tr.asarray: layouts are not part of a value",
    "asarray_chkfinite": "tr.asarray, and tr.all(tr.isfinite(x))",
    "asfortranarray": "tr.asarray: layouts are not part of a value",
    "isfortran": "nothing: layouts are not part of a value",
    "require": "tr.asarray: layouts are not part of a value",
    # Text and files.
    "array2string": "np.array2string(np.asarray(x))",
    "array_repr": "repr(x)",
    "array_str": "str(x)",
    "get_printoptions": _PRINT,
    "printoptions": _PRINT,
    "set_printoptions": _PRINT,
    **{name: _SAVE.format(name=name) for name in ("save", "savetxt", "savez", "savez_compressed")},
    **{name: _LOAD.format(name=name) for name in ("fromfile", "fromregex", "fromstring", "genfromtxt", "loadtxt")},
    "base_repr": "np.base_repr(int(x), base)",
    "binary_repr": "np.binary_repr(int(x))",
    "format_float_positional": "np.format_float_positional(float(x))",
    "format_float_scientific": "np.format_float_scientific(float(x))",
    "min_scalar_type": "np.min_scalar_type(x.item())",
    # Questions about memory and errors.
    "errstate": "np.errstate, which also applies to eager calls",
    "may_share_memory": "nothing: values never share memory visibly",
    "ndindex": "np.ndindex(x.shape)",
    "nditer": "a function of whole arrays, or tr.vmap",
    "seterr": "np.seterr, which also applies to eager calls",
    "shares_memory": "nothing: values never share memory visibly",
}
"""Replacement for each name that exists under another name or in another place."""

ELSEWHERE: Final = ("linalg", "fft", "special", "random", "nn")
"""Sub-namespaces whose functions users may look for in the main namespace."""


def absent(name: str, names: Callable[[], list[str]], part: Callable[[str], Any]) -> AbsentNameError:
    """The error for a name that the namespace does not have."""
    message = f"module 'tenferro_runtime' has no attribute {name!r}"
    return AbsentNameError(message, lambda: _advice(name, names(), part), name=name)


def _advice(name: str, names: list[str], part: Callable[[str], Any]) -> str:
    instead = INSTEAD.get(name)
    if instead is not None:
        return f"write {instead}" if not instead.startswith(("nothing", "NumPy", "tr itself")) else f"use {instead}"
    for place in ELSEWHERE:
        try:
            if name in part(place).__all__:
                return f"write tr.{place}.{name}"
        except AttributeError:
            continue  # not installed
    return nearest(name, names)
