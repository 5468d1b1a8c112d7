"""One BLAS thread, the CPU for JAX, and deterministic, short property tests."""

import os

# Before NumPy is imported: on small matrices threads cost more than they give, and two test workers share the cores.
for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")
os.environ.setdefault("JAX_PLATFORMS", "cpu")

from hypothesis import settings  # noqa: E402 - it may import NumPy

settings.register_profile("tenferro", max_examples=30, deadline=None, derandomize="CI" in os.environ, print_blob=True)
settings.load_profile("tenferro")
