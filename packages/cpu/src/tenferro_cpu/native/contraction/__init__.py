"""The contraction engine: products of many tensors along a path, in one call of machine code.

The machine code is C, compiled for each dtype and vector level, and serves every shape: it interprets a plan, a table
of records. In the order of the work:

- `_kernel` (the backend's kernel), `_chains` (moves factors to small values), `_outputs` (memory of the results),
  `_bound` (of the plans that all kernels keep);
- `_plan` (all steps and what they share): `_values`, `_layout`, `_forms` of repeated steps, `_relay` (operands in
  another order), `_arena`, `_report`;
- `_step` (one step as a record): `_axes`, `_costs`, `_chunks` (for threads), `_blocks` of a batch, `_record`,
  `_tables`, with the sizes of `_microkernels` and the constants of `tuning`;
- `plan.c` (the entry from Python), `step.c` (runs the steps, in threads), `product.simd.c` (which part of a matrix
  product is packed when), `pack.simd.c`, its microkernels `tile.simd.c`; `strip.simd.c` (products without packing);
  `elementwise.simd.c`; `engine.simd.c` (the table of kernels). `dtypes.h` includes each once per dtype, with the
  operations of `vectors.h`.
"""

from tenferro_cpu.native.contraction._kernel import contraction

__all__ = ["contraction"]


def __dir__() -> list[str]:
    return __all__.copy()
