"""The interface for operation families, those of tenferro and of third parties alike.

A family declares an entry point ``tenferro.extensions`` that names a function ``register(registry)``, defines its
primitives with `primitive`, and registers kernels per backend name, rule records, lowerings and prunings, or an
expansion, a composition of other operations that replaces all of them::

    from tenferro_runtime.extension import Linear, Spec, family_id, primitive

    FAMILY = family_id("mycompany-waves", "hilbert", 1)

    @primitive(family=FAMILY, extension="waves")
    def hilbert(x: Spec, *, axis: int) -> Spec:
        '''Hilbert transform along `axis`.'''
        return x

    def register(registry):
        registry.kernel(hilbert, "cpu", make_hilbert)
        registry.rule(hilbert, Linear(x=lambda g, axis: -hilbert(g, axis=axis)))

``python3 -m tenferro_runtime.extension new my-ops`` writes a package to begin with.
"""

from __future__ import annotations

from tenferro_runtime import _programs  # noqa: F401 - before a part of it
from tenferro_runtime._caches import BoundedCache, caches
from tenferro_runtime._rules import General, Inactive, Linear, Rule, Slopes, Within
from tenferro_runtime.extension._index_maps import IndexEntries, IndexForm, IndexMap, SparsityStep, index_map
from tenferro_runtime.extension._providers import ProviderRegistration, Providers
from tenferro_runtime.extension._rule_check import check_rule
from tenferro_runtime.ir._call import call
from tenferro_runtime.ir._interpret import interpret
from tenferro_runtime.ir._program import Equation, Literal, Program, ProgramError
from tenferro_runtime.ir._spec_check import check_program
from tenferro_runtime.passes import optimise
from tenferro_runtime.running.rendering._render import render
from tenferro_runtime.tracing._builder import Builder
from tenferro_runtime.tracing._traced import TracedTensor, is_traced
from tenferro_runtime.trees._tree import flatten, unflatten
from tenferro_tensor import (
    HOST,
    REGISTRY,
    Array,
    Cost,
    Op,
    Place,
    Primitive,
    Registration,
    Registry,
    Spec,
    Tensor,
    catalog,
    get_backend,
    library,
    next_level,
    primitive,
    sized,
    tensor,
)
from tenferro_tensor.families import check_family_id
from tenferro_tensor_core import (
    ArgumentError,
    AxisError,
    BackendUnavailableError,
    DimLike,
    DTypeError,
    GradientError,
    HostAdapterError,
    InconclusiveDimError,
    LayoutError,
    MissingRuleError,
    NumericalError,
    PlacementError,
    RegistryError,
    ShapeError,
    TenferroError,
    TracingError,
    UnsupportedError,
    ask,
    complex_of,
    dim_min,
    inexact_of,
    promote,
    real_of,
    require_equal,
)

__all__ = [
    "HOST",
    "REGISTRY",
    "ArgumentError",
    "Array",
    "AxisError",
    "BackendUnavailableError",
    "BoundedCache",
    "Builder",
    "Cost",
    "DTypeError",
    "DimLike",
    "Equation",
    "General",
    "GradientError",
    "HostAdapterError",
    "Inactive",
    "InconclusiveDimError",
    "IndexEntries",
    "IndexForm",
    "IndexMap",
    "LayoutError",
    "Linear",
    "Literal",
    "MissingRuleError",
    "NumericalError",
    "Op",
    "Place",
    "PlacementError",
    "Primitive",
    "Program",
    "ProgramError",
    "ProviderRegistration",
    "Providers",
    "Registration",
    "Registry",
    "RegistryError",
    "Rule",
    "ShapeError",
    "Slopes",
    "SparsityStep",
    "Spec",
    "TenferroError",
    "Tensor",
    "TracedTensor",
    "TracingError",
    "UnsupportedError",
    "Within",
    "ask",
    "caches",
    "call",
    "catalog",
    "check_family_id",
    "check_program",
    "complex_of",
    "dim_min",
    "check_rule",
    "family_id",
    "flatten",
    "get_backend",
    "index_map",
    "inexact_of",
    "interpret",
    "is_traced",
    "library",
    "next_level",
    "optimise",
    "primitive",
    "promote",
    "real_of",
    "render",
    "require_equal",
    "sized",
    "tensor",
    "unflatten",
]


def __dir__() -> list[str]:
    return __all__.copy()


def family_id(distribution: str, op: str, major: int) -> str:
    """The id of a family: its distribution, its operation, and the version that saved programs depend on.

    Args:
        distribution: name of the distribution.
        op: name of the operation.
        major: major version.

    Returns:
        The id ``"<distribution>.<op>.v<major>"``.

    >>> family_id("tenferro-fft", "rfft", 1)
    'tenferro-fft.rfft.v1'
    """
    return check_family_id(f"{distribution}.{op}.v{major}")
