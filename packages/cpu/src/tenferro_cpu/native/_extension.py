"""The C extension of this distribution; None where there is none or it cannot run, and NumPy's kernels serve."""

__all__ = ["absent", "compiled"]

absent: str | None = None
"""The reason why there is no C extension, or None."""

try:
    import tenferro_cpu.native._compiled as compiled
except ModuleNotFoundError:
    compiled = None  # type: ignore[assignment]  # every user asks
    absent = "a pure wheel, built without a C compiler or with TENFERRO_PURE=1; NumPy kernels serve"
except ImportError as error:  # code for another processor
    import logging

    compiled, absent = None, f"{error}; NumPy kernels serve"  # type: ignore[assignment]
    logging.getLogger("tenferro").warning("%s", absent)
