"""Constants that tune products; `benchmarks/native_blas.py` measures what they decide. Work is counted in
multiplications and additions."""

from typing import Final

BLAS_ONE_THREAD_WORK: Final = 1 << 18
"""Work of one matrix up to which OpenBLAS multiplies in the calling thread by itself."""

ENGINE_MIN_WORK: Final = 1_000_000
"""Work of one real product above which stacks, and products by transposed matrices, go to the contraction engine: it
prefetches the next matrices meanwhile, threads share the stack, and columns are transposed in registers. Below, BLAS
does not pack either."""

UNLOCKED_MIN_WORK: Final = 1 << 15
"""Products of more work run without the interpreter's lock."""

MAX_LARGE_KERNELS: Final = 64
"""Sizes of large products for which a kernel of symbolic sizes keeps kernels."""
