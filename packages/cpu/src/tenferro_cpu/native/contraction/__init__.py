"""The contraction engine: products of many tensors along a path, in one call of machine code.

One module of machine code for each dtype serves every shape: a plan is a table of records that it interprets. Pages in
the order of the work: `_kernel` (the backend's kernel), `_plan` (layouts of intermediates, memory), `_relay` (copies of
operands), `_blocks` (steps for each block of a batch), `_step` (one step as a record), `_costs` (what it takes), then
the text of the machine code: `_module`, `_product_text`, `_pack_text`, `_tile_text`, `_strip_text`,
`_elementwise_text`, `_blocks_text`.
"""

from tenferro_cpu.native.contraction._kernel import contraction

__all__ = ["contraction"]
