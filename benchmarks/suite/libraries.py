"""The compared libraries under common names, so that most rows are written once.

Each is a module object, for a compiled function looks up other objects in every call. Beside the array functions of the
library it has `array_of` (from NumPy), `wait` (for a result), `compiled`, `forget` (empty all caches), and, where the
library has them, derivatives, `vmap`, loops, `einsum`, `linalg` and `fft`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

NAMES = ("tenferro", "numpy", "jax", "torch", "autograd")
TITLES = {"tenferro": "tenferro", "numpy": "NumPy", "jax": "JAX", "torch": "PyTorch", "autograd": "autograd"}


def same(x: Any) -> Any:
    return x


def tenferro() -> dict[str, Any]:
    import tenferro_ad as ad
    import tenferro_fft
    import tenferro_linalg
    import tenferro_runtime as tr
    from tenferro_einsum import einsum
    from tenferro_runtime.extension import caches
    from tenferro_runtime.running import fusion

    def forget() -> None:
        tr.current_runtime().clear()
        for cache in caches():
            cache.clear()

    transforms = ("grad", "value_and_grad", "jvp", "vjp", "hvp", "hessian", "jacrev", "jacfwd", "taylor", "laplacian",
                  "sparse_jacobian", "sparse_hessian", "variable")  # fmt: skip
    return {
        **{name: getattr(tr, name) for name in tr.__all__},
        **{name: getattr(ad, name) for name in transforms if hasattr(ad, name)},  # earlier commits have fewer
        "einsum": einsum, "linalg": tenferro_linalg, "fft": tenferro_fft, "array_of": tr.asarray, "wait": same,
        "compiled": tr.compile, "settle": fusion.wait, "forget": forget, "solve_triangular": tr.linalg.solve_triangular,
    }  # fmt: skip


def numpy() -> dict[str, Any]:
    parts = {"fft": np.fft, "linalg": np.linalg, "random": np.random}
    return {**vars(np), **parts, "array_of": same, "wait": same, "compiled": same, "forget": lambda: None}


def jax() -> dict[str, Any]:
    import jax
    from jax.scipy.linalg import solve_triangular

    jax.config.update("jax_enable_x64", True)
    lax = {name: getattr(jax.lax, name) for name in ("scan", "fori_loop", "cond", "switch", "map", "associative_scan")}
    transforms = {
        name: getattr(jax, name)
        for name in ("grad", "value_and_grad", "jvp", "vjp", "hessian", "jacrev", "jacfwd", "vmap")
    }
    return {
        **vars(jax.numpy), **lax, **transforms, "softmax": jax.nn.softmax, "logsumexp": jax.nn.logsumexp,
        "while_loop": lambda test, body, init, max_steps=None: jax.lax.while_loop(test, body, init),
        "hvp": lambda f, primals, tangents: jax.jvp(jax.grad(f), primals, tangents)[1],
        "dynamic_slice": jax.lax.dynamic_slice, "dynamic_update_slice": jax.lax.dynamic_update_slice,
        "array_of": jax.numpy.asarray, "wait": jax.block_until_ready, "compiled": jax.jit, "forget": jax.clear_caches,
        "solve_triangular": solve_triangular, "settle": lambda: None,
    }  # fmt: skip


def torch() -> dict[str, Any]:
    import torch

    torch.set_num_threads(1)
    transforms = {name: getattr(torch.func, name) for name in ("grad", "vmap", "hessian", "jacrev", "jacfwd", "jvp")}
    return {
        **vars(torch), **transforms, "array_of": torch.from_numpy, "wait": same, "compiled": same,
        "forget": lambda: None, "settle": lambda: None,
    }  # fmt: skip


def autograd() -> dict[str, Any]:
    import autograd
    import autograd.numpy as anp

    transforms = {name: getattr(autograd, name) for name in ("grad", "value_and_grad", "hessian")}
    return {**vars(anp), **transforms, "array_of": same, "wait": same, "compiled": same, "forget": lambda: None}


MAKERS: dict[str, Callable[[], dict[str, Any]]] = {
    "tenferro": tenferro, "numpy": numpy, "jax": jax, "torch": torch, "autograd": autograd,
}  # fmt: skip


def library(name: str) -> Any:
    """A library by name; `ImportError` where it is not installed."""
    made = ModuleType(f"suite.libraries.{name}")
    functions = {k: v for k, v in MAKERS[name]().items() if not k.startswith("__")}
    vars(made).update(functions | {"library": name})
    return made


def settings(level: str | None = None) -> dict[str, str]:
    """Environment variables of a measurement: one thread, no cache on disk shared with other work, fixed hashes."""
    chosen = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    chosen |= {"JAX_PLATFORMS": "cpu", "PYTHONHASHSEED": "0"}
    if level is not None:
        chosen |= {"TENFERRO_CPU_LEVEL": level, "OPENBLAS_CORETYPE": "Haswell"}
    return chosen


def one_core() -> None:
    """Keep this process on one core, where the system allows it: JAX knows no other way."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
