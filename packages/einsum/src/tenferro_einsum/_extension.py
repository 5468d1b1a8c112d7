"""Registrations of the entry point ``tenferro.extensions: einsum``."""

from tenferro_einsum import _batching, _contract, _contractions, _derivatives, _diagonal, _slices, _sparsity
from tenferro_einsum._contract import contract
from tenferro_runtime.extension import General, Registry

__all__ = ["register"]


def register(registry: Registry) -> None:
    """Register kernels, lowerings, prunings, costs, and derivative, batching and sparsity rules."""
    _diagonal.register(registry)
    registry.kernel(contract, "*", _contract.kernel)
    registry.rule(contract, General(jvp=_derivatives.jvp, vjp=_derivatives.vjp))
    registry.expansion(contract, _contract.by_pairs, keep=True)
    registry.lowering(contract, _contract.lower)
    registry.pruning(contract, _contract.prune, keeps_bits=True)
    registry.cost(contract, _contract.cost)
    _contractions.register(registry)
    _slices.register(registry)
    _batching.register(registry)
    _sparsity.register(registry)
