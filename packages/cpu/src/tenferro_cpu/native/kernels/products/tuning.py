"""Constants that tune products; `benchmarks/native_blas.py` measures their effect. Work is counted in multiply-adds."""

from typing import Final

BLAS_ONE_THREAD_WORK: Final = 1 << 18
"""Maximum work of one matrix for which OpenBLAS itself stays in the calling thread."""

ENGINE_MIN_WORK: Final = 1_000_000
"""Smallest real product whose stacks, and products by transposed matrices, go to the contraction engine.

It prefetches the next matrices meanwhile, threads share the stack, and columns are transposed in registers. For smaller
ones BLAS does not pack either.
"""

UNLOCKED_MIN_WORK: Final = 1 << 15
"""Larger products release the interpreter's lock."""

MAX_LARGE_KERNELS: Final = 64
"""Maximum number of sizes of large products for which a kernel of symbolic sizes caches kernels."""
