"""One BLAS thread, the CPU for JAX, and deterministic, short property tests."""

import gc
import os

# Before NumPy is imported: on small matrices threads cost more than they give, and two test workers share the cores.
for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")
os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=8")  # devices for the tests of meshes
os.environ.setdefault("SCIPY_ARRAY_API", "1")  # read when SciPy is imported, for the tests of its functions on tensors
os.environ.setdefault("MPLBACKEND", "agg")

from hypothesis import settings  # noqa: E402 - it may import NumPy

from thorough import tries  # noqa: E402

settings.register_profile(
    "tenferro", max_examples=tries(20, 100), deadline=None, derandomize="CI" in os.environ, print_blob=True
)
settings.load_profile("tenferro")


def pytest_collection_finish() -> None:
    """Keep the garbage collector from going through tens of thousands of collected tests again and again."""
    gc.collect()
    gc.freeze()
