"""The C extension of this distribution; None in a pure wheel, where NumPy's kernels serve."""

__all__ = ["compiled"]

try:
    from tenferro_cpu.native import _compiled as compiled
except ImportError:
    compiled = None  # type: ignore[assignment]  # every user asks
