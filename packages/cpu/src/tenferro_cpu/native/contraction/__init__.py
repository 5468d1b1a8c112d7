"""The contraction engine: products of many tensors along a path, in one call of machine code.

One module of machine code for each dtype serves every shape: a plan is a table of records that it interprets. Pages in
the order of the work:

- `_kernel`, the backend's kernel; `_chains`, factors put where they are small; `_outputs`, memory of the results;
  `_bound`, of the plans that all kernels keep;
- `_plan`, all steps and what they share: `_values`, `_layout`, `_forms` of steps that repeat, `_relay` of operands in
  another order, `_arena`; `_report`, what is told of it;
- `_step`, one step as a record: `_axes`, `_costs`, `_pieces` for threads, `_blocks` of a batch, `_record`, `_tables`;
- the text of the machine code: `_code`, `_module`, `_entry_text`, `_product_text`, `_pack_text`, `_tile_text`,
  `_strip_text`, `_elementwise_text`, `_blocks_text`.
"""

from tenferro_cpu.native.contraction._kernel import contraction

__all__ = ["contraction"]
