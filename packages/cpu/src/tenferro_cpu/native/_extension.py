"""The C extension of this distribution; None in a pure wheel, where NumPy's kernels run instead."""

__all__ = ["compiled"]

try:
    import tenferro_cpu.native._compiled as compiled
except ModuleNotFoundError:
    compiled = None  # type: ignore[assignment]  # every user asks
