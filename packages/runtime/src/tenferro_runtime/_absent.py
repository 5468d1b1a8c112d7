"""Names of NumPy, JAX and PyTorch that the namespace lacks on purpose, and their replacements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tenferro_tensor_core.absent import AbsentNameError, advice_for, nearest

_EXPORT: Final = (
    'tr.export_library(path, {"f": tr.trace(f, *specs)}) for a C library, tr.compile(f).save(path, *args) for a file'
)
_FIT: Final = "scipy.optimize.minimize(f, x0, jac=True) with f = tr.value_and_grad(loss); tr.ravel_tree for trees"
_NAN: Final = "tr.find_nan(f, *args), which names the step and the line, also of a gradient"
_RANDOM: Final = "tr.random.{name}(tr.random.key(seed), ...)"
_STEP: Final = "tr.tree_map(lambda p, g: p - rate * g, params, grads), or an optimizer of optax, which takes such trees"
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
    "Variable": "tr.variable",
    "Parameter": "tr.variable",
    "ShapeDtypeStruct": "tr.Spec",
    "aot_compile": _EXPORT,
    "autograd": "tr.grad, tr.vjp, tr.jvp, or tr.variable for backward()",
    "config": "nothing: float64 is the default, and tr.show_config() shows what is installed",
    "contract": "tr.einsum",
    "contract_expression": "tenferro_einsum.plan",
    "contract_path": "tenferro_einsum.contract_path",
    "cuda": 'tr.compute_device("cuda:0"), or device="cuda:0" where an array is made',
    "debug_nans": _NAN,
    "debug_infs": _NAN,
    "detect_anomaly": _NAN,
    "device": "tr.compute_device(name)",
    "device_count": "len(tr.__array_namespace_info__().devices())",
    "devices": "tr.__array_namespace_info__().devices()",
    "is_available": "tr.__array_namespace_info__().devices(), which lists those that are available",
    "local_devices": "tr.__array_namespace_info__().devices()",
    "eq": "tr.equal",
    "ne": "tr.not_equal",
    "lt": "tr.less",
    "le": "tr.less_equal",
    "gt": "tr.greater",
    "ge": "tr.greater_equal",
    "div": "tr.divide",
    "mul": "tr.multiply",
    "neg": "tr.negative",
    "sub": "tr.subtract",
    "elementwise_grad": "tr.vmap(tr.grad(f))",
    "enable_x64": "nothing: float64 is the default",
    "eval_shape": "tr.trace(f, *specs).outputs",
    "export": _EXPORT,
    "get_default_dtype": "nothing: float64 is the default",
    "set_default_dtype": "nothing: float64 is the default; pass dtype= where an array is made",
    "func": "tr itself: tr.grad, tr.vjp, tr.jvp, tr.vmap and others are functions of tr",
    "functional": "tr.nn, or tr itself",
    "make_jaxpr": "tr.trace",
    "manual_seed": "tr.random.key(seed), and pass the key to each draw",
    "mesh": "tenferro_einsum.run_on(workers), or tenferro_xla.mesh for several devices",
    "minimize": _FIT,
    "optimize": _FIT,
    "scipy": "tr.special, tr.linalg, tr.fft; scipy.optimize takes tr.value_and_grad(f) with jac=True",
    "optim": _STEP,
    "primitive": "tenferro_runtime.extension.primitive",
    "pytree": "tr.tree_map, tr.tree_flatten and others",
    "rand": _RANDOM.format(name="uniform"),
    "randn": _RANDOM.format(name="normal"),
    "ravel_pytree": "tr.ravel_tree",
    "tree_ravel": "tr.ravel_tree",
    "flatten_util": "tr.ravel_tree",
    "register_primitive": "tenferro_runtime.extension.primitive",
    "custom_op": "tenferro_runtime.extension.primitive, or tr.custom_rule for a derivative",
    "register_pytree_node": "tr.register_node, or tr.register_dataclass",
    "seed": "tr.random.key(seed), and pass the key to each draw",
    "sparse": "tr.linalg.sparse_array, tr.linalg.csr_array or tr.linalg.coo_array",
    "stats": "tr.random for draws, and tr.special for distribution functions such as tr.special.ndtr",
    "tree": "tr.tree_map, tr.tree_leaves and others",
    "tree_util": "tr.tree_map, tr.tree_leaves and others",
    "xla_computation": "tenferro_xla.lower_to_stablehlo",
    "zero_grad": "x.zero_grad() of a tr.variable",
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
    "may_share_memory": "np.may_share_memory(x, y), which takes tensors",
    "ndindex": "np.ndindex(x.shape)",
    "nditer": "a function of whole arrays, or tr.vmap",
    "seterr": "np.seterr, which also applies to eager calls",
    "shares_memory": "np.shares_memory(x, y), which takes tensors",
}
"""Replacement for each name that exists under another name or in another place."""

PARTS: Final = {
    "random": {
        "PRNGKey": "tr.random.key(seed)",
        "RandomState": "tr.random.default_rng(seed), or keys",
        "manual_seed": "tr.random.key(seed), and pass the key to each draw",
        "rand": _RANDOM.format(name="uniform"),
        "randn": _RANDOM.format(name="normal"),
        "random": _RANDOM.format(name="uniform"),
        "random_sample": _RANDOM.format(name="uniform"),
        "randperm": _RANDOM.format(name="permutation"),
        "seed": "tr.random.key(seed), and pass the key to each draw",
        "shuffle": _RANDOM.format(name="permutation"),
        "standard_normal": _RANDOM.format(name="normal"),
    },
    "nn": dict.fromkeys(
        "BatchNorm Conv Conv2d Dense Dropout Embed Embedding LSTM LayerNorm Linear Module Sequential".split(),
        "a dataclass with tr.register_dataclass and a method __call__: layers are trees of arrays, as in docs/trees.md",
    )
    | {
        "Parameter": "tr.variable",
        "functional": "tr.nn itself, whose functions are those of jax.nn",
        "hardswish": "tr.nn.hard_swish",
        "initializers": "tr.random.normal(key, shape) times a scale, or tr.random.orthogonal",
    },
}
"""The same for sub-namespaces of this distribution."""

ELSEWHERE: Final = ("linalg", "fft", "special", "random", "nn")
"""Sub-namespaces whose functions users may look for in the main namespace."""


def absent(name: str, names: Callable[[], list[str]], part: Callable[[str], Any]) -> AbsentNameError:
    """The error for a name that the namespace does not have."""
    message = f"module 'tenferro_runtime' has no attribute {name!r}"
    return AbsentNameError(message, lambda: _advice(name, names(), part), name=name)


def _advice(name: str, names: list[str], part: Callable[[str], Any]) -> str:
    instead = INSTEAD.get(name)
    if instead is not None:
        return advice_for(instead)
    for place in ELSEWHERE:
        try:
            if name in part(place).__all__:
                return f"write tr.{place}.{name}"
        except AttributeError:
            continue  # not installed
    return nearest(name, names)
