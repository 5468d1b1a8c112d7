"""The contraction engine: products of many tensors along a path, in one call of machine code.

The machine code is C, for each dtype and vector level, and serves every shape: a plan is a table of records that it
reads. In the order of the work:

- `_kernel`, the backend's kernel; `_chains`, factors put where they are small; `_outputs`, memory of the results;
  `_bound`, of the plans that all kernels keep;
- `_plan`, all steps and what they share: `_values`, `_layout`, `_forms` of steps that repeat, `_relay` of operands in
  another order, `_arena`; `_report`, what a plan tells of itself;
- `_step`, one step as a record: `_axes`, `_costs`, `_pieces` for threads, `_blocks` of a batch, `_record`, `_tables`,
  with the sizes of `_microkernels` and the constants of `tuning`;
- `plan.c`, the entry from Python; `step.c`, one step after the other, in threads; `product.simd.c`, what of a matrix
  product is packed when, `pack.simd.c`, and its microkernels, `tile.simd.c`; `strip.simd.c`, products without packing;
  `elementwise.simd.c`; `engine.simd.c`, all of them by kernel. `dtypes.h` includes each once for a dtype, with the
  operations of `vectors.h`.
"""

from tenferro_cpu.native.contraction._kernel import contraction

__all__ = ["contraction"]
