"""Constants that tune plans; those of the machine code are in `tuning.h`.

Costs are nanoseconds on one core of a Zen 5, fitted to single steps of `benchmarks/einsum_pairs.py`; everything else
was chosen with `benchmarks/einsum_networks.py` and `einsum_families.py`, which compare old and new versions in turn.
"""

from typing import Final

CACHE_LINE_BYTES: Final = 64
"""Bytes of a cache line."""

NEAR_MAX_BYTES, CACHED_MAX_BYTES = 1 << 20, 2 << 20
"""Bytes that stay in the nearest caches, and in any cache. (einsum_pairs.py)"""

# Costs of steps.

FLOP_COST: Final = 0.02
"""Multiplication or addition of 8-byte real numbers."""

RUN_COSTS, TRANSPOSE_COSTS = (0.15, 0.5), (0.35, 1.0)
"""Per element read or written in a run, or transposed during packing; for operands in near caches, and others."""

COPY_COSTS: Final = (0.35, 0.45)
"""Per element of a copy with another innermost axis; for operands in near caches, and others."""

SINGLE_COSTS: Final = (0.3, 0.45, 2.5)
"""Per element moved individually: in near caches; with cache lines that stay cached while in use; otherwise."""

TILE_COST: Final = 10.0
"""Per tile, besides its sums; per packed block, besides its elements."""

LANE_SUM_COST: Final = 3.0
"""Adding up the lanes of a vector."""

BLOCK_COST: Final = 40.0
"""Per block of the batch, besides its steps."""

FAR_BLOCK_COST: Final = 0.25
"""Per element of operands and results outside the near caches, in blocks of the batch."""

# When other methods are considered: an estimate takes tens of microseconds. (einsum_families.py)

COMPARE_MIN_WORK: Final = 20_000
"""Smallest number of multiplications for which several methods are compared."""

SETTLED_FACTOR, SETTLED_MARGIN = 1.25, 2000.0
"""A step is settled if its cost exceeds that of its arithmetic by at most this factor, or this margin."""

LAYOUT_MIN_ELEMENTS: Final = 1 << 15
"""Smallest intermediate result for which layouts are compared."""

FREE_OUTPUT_MIN_ELEMENTS, FREE_OUTPUT_FACTOR = 1 << 14, 0.97
"""Smallest output laid out in another order than its labels, if that takes at most this fraction of the time."""

SCALING_FACTOR: Final = 64
"""An operand smaller than the result by this factor counts as a scaling."""

REPEAT_BLOCK_ELEMENTS: Final = 512
"""Innermost block along which a small operand of an element-wise step is repeated in advance."""

SIMILAR_MIN_STEPS: Final = 5
"""Smallest network (in steps) that is searched for steps of the same form."""

REMEMBERED_MAX_ENTRIES: Final = 2048
"""Largest tables (in entries) of a step that is cached."""

# Blocks of the batch. (einsum_pairs.py, batches inside cache lines)

BLOCKS_MIN_COST: Final = 30_000.0
"""Smallest cost of a product for which blocks of the batch are tried."""

BLOCKS_MAX_BYTES: Final = 512 << 10
"""Maximum size of the copies of the operands of one block."""

# Order of scaling factors. (einsum_networks.py, graphical models)

CHAIN_MIN_ELEMENTS: Final = 4096
"""Smallest value considered for moving its factors to smaller values."""

CHAIN_SIZE_FACTOR: Final = 8
"""A factor is moved if its product is smaller by this factor than the value that is saved."""

CHAIN_STRIDED_FACTOR: Final = 3
"""Relative cost of reading an element if a factor has another order than the product."""

CHAIN_GAIN: Final = 0.8
"""Another order of products must touch at most this fraction of the elements."""

CHAIN_MAX_PRODUCTS: Final = 24
"""Larger trees of products keep their order."""

# Layouts of intermediate results. (einsum_networks.py, circuits and trees)

LONG_RUN_ELEMENTS: Final = 96
"""An innermost run of this length need not consist of whole vectors."""

SMALL_PARTNER_ELEMENTS: Final = 4096
"""Largest partner that is repeated along whatever the result has innermost."""

# Packing and tables. (einsum_pairs.py, square and thin products)

ROW_BLOCK_BYTES: Final = 192 * 8
INNER_BLOCK: Final = 256
COLUMN_BLOCK: Final = 2048
"""Amount packed at once: bytes of each row (times rows), summed indices, and columns."""

TABLE_MAX_ROWS, TABLE_MAX_COLUMNS, TABLE_MAX_INNER = 1 << 14, 1 << 16, 1 << 16
"""Maximum entries of tables; further outer axes become part of the batch."""

DIRECT_MAX_COLUMNS: Final = 32
"""Contiguous rows are read in place if there are at most this many columns."""

DIRECT_MAX_ROW_BYTES: Final = 128 << 10
"""They are also read in place if all rows take at most this many bytes,"""

DIRECT_MAX_COLUMN_BYTES: Final = 8 << 10
"""and columns if they take at most this many."""

ROWS_NEAR_BYTES: Final = 16 << 10
"""Bytes of rows that meet all columns before the next rows."""

PREFETCH_BATCH_MIN_BYTES: Final = 32 << 10
"""Prefetch the operands of the next batch if those of one batch exceed this many bytes."""

PREFETCH_MIN_BYTES: Final = 4 << 20
"""Prefetch rows before packing when an operand exceeds this many bytes; smaller operands are already in cache."""

TILE_MIN_ELEMENTS: Final = 64
"""Smaller outer products are computed element by element."""

STRIP_CHUNK: Final = 512
"""Elements of a run that all rows and columns of inner products process together; must equal `tuning.h`."""

# Runs of element-wise steps, and results past the caches. (einsum_pairs.py, scalings and outer products)

RUN_ELEMENTS: Final = 4096
"""Elements of a run that are processed at once."""

STREAM_MIN_RUN_BYTES: Final = 512
"""Shortest run that may be written past the caches."""

STREAM_MIN_BYTES: Final = 4 << 20
"""Smallest result of a product that may be written past the caches."""

# Threads. (einsum_pairs.py with two threads)

THREAD_MIN_FLOPS: Final = 100_000
THREAD_MIN_BYTES: Final = 128 << 10
"""Work that pays for one more thread, in operations and in bytes."""

UNLOCKED_MIN_WORK: Final = 100_000
"""Multiply-adds above which the interpreter's lock is released."""

# Memory. (einsum_gradients.py)

OUTPUT_BLOCK_BYTES: Final = 1 << 18
"""Largest shared block of small outputs; it lives as long as any of its parts."""

SHARED_MIN_OUTPUTS: Final = 4
"""Smallest number of small outputs of one shape that share blocks; individually each would use fresh pages."""

MAX_PLANS: Final = 16
"""Maximum number of plans per kernel, one per layout of operands and result."""

MAX_PLAN_BYTES: Final = 256 << 20
"""Bound of the plans of all kernels; shapes that change with every call leave plans behind."""
