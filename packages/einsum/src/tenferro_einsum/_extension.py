"""What the entry point ``tenferro.extensions: einsum`` registers."""

from tenferro_einsum._diagonal import register

__all__ = ["register"]
