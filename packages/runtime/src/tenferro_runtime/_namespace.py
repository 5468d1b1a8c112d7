"""The Array API namespace: functions, dtypes, constants and inspection.

`tenferro_runtime` re-exports everything here. Derivatives and the linear algebra, Fourier and einsum families are
separate distributions; ``grad``, ``linalg``, ``fft``, ``einsum`` and others are imported on first use if they are
installed.
"""

from __future__ import annotations

import math
from importlib import import_module
from typing import Any, Final

from tenferro_runtime._absent import absent
from tenferro_tensor import MAX_AXES, Array, ComputeDevice, available_backends, functions, get_backend
from tenferro_tensor.backends import made
from tenferro_tensor.dispatch import scoped_device
from tenferro_tensor.entry_points import EXTENSIONS, NAMESPACES, installed, own_module, usurped
from tenferro_tensor_core import (
    DTYPES,
    BackendUnavailableError,
    DType,
    RegistryError,
    TenferroError,
    complex128,
    float64,
    int64,
    isdtype,
    load_bfloat16,
)
from tenferro_tensor_core.forks import importing

ARRAY_API_VERSION: Final = "2025.12"

e: Final = math.e
inf: Final = math.inf
nan: Final = math.nan
newaxis: Final = None
pi: Final = math.pi

_STANDARD: Final = frozenset(
    {"bool", "float32", "float64", "complex64", "complex128"}
    | {f"{s}int{n}" for s in ("", "u") for n in (8, 16, 32, 64)}
)
STANDARD_DTYPES: Final = {dt.name: dt for dt in DTYPES if dt.name in _STANDARD}
"""The dtypes of the Array API standard, a subset of `DTYPES`."""

FAMILIES: Final = ("fft", "linalg")
"""Sub-namespaces of the standard that other distributions provide."""

PARTS: Final = ("nn", "random", "special")
"""Sub-namespaces of this distribution, imported on first use."""

MODULES: Final = frozenset(
    "batching callbacks compilers compiling control_flow extension ir passes progress running runtime tracing".split()
)
"""Modules of this distribution that are attributes without an import statement of their own, imported on first use."""

FORWARDED: Final = {
    "cross": "linalg",
    "einsum": "einsum",
    **dict.fromkeys(
        "EagerTensor FixedPointStatus Sparsity "
        "check_compiler check_grads check_primitive checkpoint checkpoint_name checkpoint_policies custom_linear_solve "
        "custom_root custom_rule fixed_point grad hessian hvp jacfwd jacrev jvp laplacian linear_transpose linearize "
        "no_grad record_sources sparse_hessian sparse_jacobian sparsity taylor taylor_kind value_and_grad variable "
        "vjp".split(),
        "ad",
    ),
}
"""Names that other distributions provide, all of tenferro_ad among them, and the entry points of their modules."""


class Devices(tuple[ComputeDevice, ...]):
    """A tuple, as the standard says, that also adds to lists, as NumPy's list of devices does.

    >>> devices = tr.__array_namespace_info__().devices()
    >>> devices + [None] == [*devices, None], [None] + devices == [None, *devices]
    (True, True)
    """

    __slots__ = ()

    def __add__(self, other: Any) -> Any:
        return [*self, *other] if isinstance(other, list) else super().__add__(other)

    def __radd__(self, other: Any) -> Any:
        return [*other, *self] if isinstance(other, list) else NotImplemented


class ArrayNamespaceInfo:
    """The result of ``__array_namespace_info__()``: capabilities, devices and dtypes.

    >>> tr.__array_namespace_info__().default_device()
    ComputeDevice('cpu:0')
    """

    def capabilities(self) -> dict[str, Any]:
        """Capabilities beyond the core: boolean indexing, data-dependent shapes, largest number of axes."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": MAX_AXES}

    def default_device(self) -> ComputeDevice:
        """The device of new arrays unless another one is specified."""
        return scoped_device() or ComputeDevice("cpu:0")

    def default_dtypes(self, *, device: Any = None) -> dict[str, DType]:
        """The dtypes of Python numbers and indices when they become arrays."""
        return {"real floating": float64, "complex floating": complex128, "integral": int64, "indexing": int64}

    def devices(self) -> Devices:
        """The devices that are available now."""
        found: list[ComputeDevice] = []
        for name in sorted({*available_backends(), *[backend.name for backend in made()]}):
            try:
                found.extend(get_backend(name).devices())
            except (BackendUnavailableError, RegistryError):
                continue  # installed, but it does not load, or its device or driver is missing
        return Devices(found)

    def dtypes(self, *, device: Any = None, kind: str | tuple[str, ...] | None = None) -> dict[str, DType]:
        """The dtypes of a kind of the standard by name; all dtypes by default."""
        return {n: dt for n, dt in STANDARD_DTYPES.items() if kind is None or isdtype(dt, kind)}


def __array_namespace_info__() -> ArrayNamespaceInfo:
    """Capabilities, devices and dtypes of this namespace.

    Returns:
        An `ArrayNamespaceInfo`.

    >>> sorted(tr.__array_namespace_info__().dtypes(kind="real floating"))
    ['float32', 'float64']
    """
    return ArrayNamespaceInfo()


_families: Final[dict[str, Any]] = {}
"""The families that were found."""


class MissingFamilyError(TenferroError, AttributeError):
    """The distribution of a sub-namespace is not installed; the message names it.

    It is an `AttributeError`, so that ``hasattr(namespace, "linalg")`` returns whether the family is installed.
    """


def family(name: str) -> Any:
    """The module of an operation family or of derivatives, found by its entry point.

    Raises:
        MissingFamilyError: no installed distribution provides it; the text names the one that does.
    """
    module = _module_of(name)
    if module is None:
        instead = usurped(_group_of(name), name)
        raise MissingFamilyError(
            f"the {name} functions are a distribution of their own, which is not installed here; "
            f"pip install tenferro-{name}"
            f"{f' ({instead})' if instead else ''}",
            family=name,
        )
    with importing():
        return import_module(module.partition(".")[0])


def _group_of(name: str) -> str:
    return NAMESPACES if name == "ad" else EXTENSIONS


def _module_of(name: str) -> str | None:
    group = _group_of(name)
    return own_module(group, name) or (installed(group)[name].module if name in installed(group) else None)


def reachable() -> list[str]:
    """The families and functions of other distributions that are installed; imports none of them."""
    homes = {name: _module_of(name) for name in {*FAMILIES, *FORWARDED.values()}}
    return [name for name in (*FAMILIES, *FORWARDED) if homes[FORWARDED.get(name, name)] is not None]


def export(name: str) -> Any:
    """Resolve a deferred name: a function of a module that is not imported yet, bfloat16, or a family.

    Raises:
        MissingFamilyError: the family is not installed.
        MissingDTypeError: the package that provides bfloat16 is not installed.
        AttributeError: there is no such name.
    """
    if name in functions.DEFERRED:
        found = getattr(functions, name)
        setattr(Array.namespace, name, found)
        return found
    if name == "bfloat16":
        return load_bfloat16()
    if name in FORWARDED:
        found = getattr(family(FORWARDED[name]), name)
        setattr(Array.namespace, name, found)
        return found
    if name in FAMILIES:
        found = _families[name] = _families.get(name) or family(name)
        return found
    if name in PARTS or name in MODULES:
        with importing():
            return import_module(f"tenferro_runtime.{name}")
    raise absent(name, lambda: dir(Array.namespace), lambda part: getattr(Array.namespace, part))


def register(namespace: Any) -> None:
    """Make a module the result of ``__array_namespace__``."""
    Array.namespace = namespace
