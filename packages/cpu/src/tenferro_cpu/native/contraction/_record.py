"""The record of one step: 64-bit words that the interpreter reads, addresses of tables among them."""

from typing import Final

FIELDS: Final = (
    "kernel",  # one of `KERNELS`
    "a", "b", "c",  # numbers of the operands' and the result's base pointers
    "a_at", "b_at", "c_at",  # bytes from there
    "split",  # what pieces are cut from: 0 the batch, 1 rows, 2 columns
    "unit",  # how many of these stay together
    "units", "pieces",  # number of units; pieces that the work pays for
    "scratch",  # bytes of packed panels of one piece
    "batch", "sums",  # entries of the batch; how many of them in a row add up into one result
    "batch_a", "batch_b", "batch_c",  # tables of byte offsets
    "rows", "columns", "inner",  # sizes of the product
    "row_a", "row_c", "inner_a", "inner_b", "column_b", "column_c", "row_b", "inner_c",
    "row_flags", "row_inner_flags", "column_flags", "column_inner_flags",  # which blocks lie together, as bytes
    "tile_flags",  # for each tile of rows, how its result is written
    "row_block", "inner_block", "column_block",  # what is packed at once
    "stream",  # flag of tiles whose full vectors are whole lines of memory, 0 where these are better kept near
    "run",  # length of the runs that lie together; of a copy, bytes between the runs that it writes
)  # fmt: skip
PLACE: Final = {name: number for number, name in enumerate(FIELDS)}
WORDS: Final = len(FIELDS)

KERNELS: Final = (
    "gemm", "gemm direct rows", "gemm direct", "elementwise", "scaling", "gather", "dot", "lanes", "turn", "fill",
)  # fmt: skip
"""Kernels by number: products of packed panels, of rows or of both operands where they lie; products of runs, of a
run and a number, of single elements; inner products of runs; products whose batch is a run; a copy in
another order; zeros."""
