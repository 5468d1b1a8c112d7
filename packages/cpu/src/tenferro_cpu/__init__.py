"""The CPU backend: NumPy and SciPy kernels for every primitive."""
