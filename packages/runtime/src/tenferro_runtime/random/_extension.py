"""The entry point ``tenferro.extensions: random``: what the primitives of random numbers are in terms of others."""

from tenferro_runtime.random import _rejection, _stream
from tenferro_tensor import Registry, random_streams


def register(registry: Registry) -> None:
    """Expansions, which programs run, and backends without kernels of their own."""
    registry.expansion(random_streams.random_bits, _stream.bits)
    registry.expansion(random_streams.random_uniform, _stream.uniform)
    registry.expansion(random_streams.random_normal, _stream.normal)
    registry.expansion(random_streams.random_exponential, _stream.exponential)
    registry.expansion(random_streams.random_loggamma, _rejection.log_gamma)
