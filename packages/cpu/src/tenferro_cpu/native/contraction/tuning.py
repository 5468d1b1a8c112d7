"""Constants that tune plans; those of the machine code are in `tuning.h`.

Costs are nanoseconds on one core of a Zen 5, fitted to single steps of `benchmarks/einsum_pairs.py`; everything else
was chosen by `benchmarks/einsum_networks.py` and `einsum_families.py`, which run old and new in turn.
"""

from typing import Final

CACHE_LINE_BYTES: Final = 64
"""Bytes that memory moves at once."""

NEAR_MAX_BYTES, CACHED_MAX_BYTES = 1 << 20, 2 << 20
"""Bytes that stay in near caches, and in some cache. (einsum_pairs.py)"""

# What steps cost.

FLOP_COST: Final = 0.02
"""A multiplication or addition of real numbers of eight bytes."""

RUN_COSTS, TRANSPOSE_COSTS = (0.15, 0.5), (0.35, 1.0)
"""An element that is read or written in a run, or transposed while it is packed; of near operands, and of others."""

COPY_COSTS: Final = (0.35, 0.45)
"""An element of a copy with another innermost axis; of near operands, and of others."""

SINGLE_COSTS: Final = (0.3, 0.45, 2.5)
"""An element that is moved alone: of near operands; of others whose lines stay in cache while in use; of the rest."""

TILE_COST: Final = 10.0
"""A tile besides its sums, or a packed block besides its elements."""

LANE_SUM_COST: Final = 3.0
"""Adding up the lanes of a vector."""

BLOCK_COST: Final = 40.0
"""A block of the batch besides its steps."""

FAR_BLOCK_COST: Final = 0.25
"""An element of far operands and results that are done in blocks of the batch."""

# When other ways to do a step are considered: to estimate one takes tens of microseconds. (einsum_families.py)

COMPARE_MIN_WORK: Final = 20_000
"""Compare several ways from this many multiplications on."""

SETTLED_FACTOR, SETTLED_MARGIN = 1.25, 2000.0
"""A step is settled if it costs at most so many times what its numbers alone cost, or so much more."""

LAYOUT_MIN_ELEMENTS: Final = 1 << 15
"""Compare layouts of intermediate results from this size on."""

FREE_OUTPUT_MIN_ELEMENTS, FREE_OUTPUT_FACTOR = 1 << 14, 0.97
"""Outputs from this size on may have another order than that of their labels, where this part of the time is enough."""

SCALING_FACTOR: Final = 64
"""An operand that is so many times smaller than the result only scales it."""

REPEAT_BLOCK_ELEMENTS: Final = 512
"""Innermost block along which a small operand of an element-wise step is repeated beforehand."""

SIMILAR_MIN_STEPS: Final = 5
"""Look for steps of the same form in networks of so many steps."""

REMEMBERED_MAX_ENTRIES: Final = 2048
"""Steps are remembered if their tables have at most so many entries."""

# Blocks of the batch. (einsum_pairs.py, batches inside of lines of memory)

BLOCKS_MIN_COST: Final = 30_000.0
"""Try blocks of the batch for products that cost so much."""

BLOCKS_MAX_BYTES: Final = 512 << 10
"""Copies of the operands of one block."""

# Order of scaling factors. (einsum_networks.py, graphical models)

CHAIN_MIN_ELEMENTS: Final = 4096
"""Smallest value considered for moving factors of it to smaller values."""

CHAIN_SIZE_FACTOR: Final = 8
"""A factor moves where its product is so many times smaller than the value that is saved."""

CHAIN_STRIDED_FACTOR: Final = 3
"""Reading an element takes so many times longer where a factor has another order than the product."""

CHAIN_GAIN: Final = 0.8
"""Another order of products has to touch at most this part."""

CHAIN_MAX_PRODUCTS: Final = 24
"""Trees of more products keep their order."""

# Layouts of intermediate results. (einsum_networks.py, circuits and trees)

LONG_RUN_ELEMENTS: Final = 96
"""An innermost run of this length need not fill whole vectors."""

SMALL_PARTNER_ELEMENTS: Final = 4096
"""A partner of at most this size is repeated along whatever the result has innermost."""

# Packing and tables. (einsum_pairs.py, square and thin products)

ROW_BLOCK_BYTES: Final = 192 * 8
INNER_BLOCK: Final = 256
COLUMN_BLOCK: Final = 2048
"""Packed at once: so many bytes of each row (times rows), summed indices, and columns."""

TABLE_MAX_ROWS, TABLE_MAX_COLUMNS, TABLE_MAX_INNER = 1 << 14, 1 << 16, 1 << 16
"""Entries of tables; outer axes beyond become part of the batch."""

DIRECT_MAX_COLUMNS: Final = 32
"""Read contiguous rows where they lie if there are at most so many columns."""

DIRECT_MAX_ROW_BYTES: Final = 128 << 10
"""Read them where they lie also if all take at most so much,"""

DIRECT_MAX_COLUMN_BYTES: Final = 8 << 10
"""and columns where they take at most so much."""

ROWS_NEAR_BYTES: Final = 16 << 10
"""Rows that are passed by all columns before the next ones."""

PREFETCH_BATCH_MIN_BYTES: Final = 32 << 10
"""Prefetch the operands of the next batch when those of one take this many bytes."""

PREFETCH_MIN_BYTES: Final = 4 << 20
"""Prefetch rows before packing when an operand exceeds this many bytes; smaller operands are already in cache."""

TILE_MIN_ELEMENTS: Final = 64
"""Outer products below this size are done element by element."""

STRIP_CHUNK: Final = 512
"""Elements of a run that all rows and columns of inner products pass together; `tuning.h` has the same."""

# Runs of element-wise steps, and results past the caches. (einsum_pairs.py, scalings and outer products)

RUN_ELEMENTS: Final = 4096
"""Elements of a run that are done at once."""

STREAM_MIN_RUN_BYTES: Final = 512
"""Runs from this length on may be written past the caches."""

STREAM_MIN_BYTES: Final = 4 << 20
"""Results of products from this size on may be written past the caches."""

# Threads. (einsum_pairs.py with two threads)

THREAD_MIN_FLOPS: Final = 100_000
THREAD_MIN_BYTES: Final = 128 << 10
"""Work that pays for one more thread."""

UNLOCKED_MIN_WORK: Final = 100_000
"""With at least this many multiplications and additions, other Python threads may run meanwhile."""

# Memory. (einsum_gradients.py)

OUTPUT_BLOCK_BYTES: Final = 1 << 18
"""Largest common block of small outputs; it is kept while one of its parts is."""

SHARED_MIN_OUTPUTS: Final = 4
"""So many small outputs of one shape share blocks: single ones would be cut from fresh pages each time."""

MAX_PLANS: Final = 16
"""Plans that a kernel keeps, one for each way in which operands and result have been laid out."""

MAX_PLAN_BYTES: Final = 256 << 20
"""The plans of all kernels: shapes that change with every call leave plans behind."""
