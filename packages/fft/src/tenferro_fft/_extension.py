"""What the entry point ``tenferro.extensions: fft`` registers."""

from tenferro_fft._primitives import register

__all__ = ["register"]
