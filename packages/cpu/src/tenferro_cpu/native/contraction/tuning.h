/* Constants that tune the engine's machine code; those that tune plans are in tuning.py. All were set on a Zen 5 with
 * benchmarks/einsum_networks.py and einsum_pairs.py, which compare old and new versions in one run. */
#ifndef TENFERRO_CONTRACTION_TUNING_H
#define TENFERRO_CONTRACTION_TUNING_H

enum {
    /* Bytes of a cache line. */
    CACHE_LINE = 64,
    /* Minimum summed indices for which tiles prefetch the cache lines of their result. */
    PREFETCH_RESULT_SUMS = 8,
    /* Minimum summed indices, columns and vector bytes for which tiles that read rows in place prefetch the following
     * rows. With fewer columns out-of-order execution suffices; with narrower vectors prefetches cost more than the
     * sums. */
    PREFETCH_ROWS_SUMS = 16,
    PREFETCH_ROWS_COLUMNS = 3,
    PREFETCH_ROWS_VECTOR_BYTES = 64,
    /* Packing prefetches rows this many blocks ahead. Tables are padded accordingly. */
    PREFETCH_BLOCKS_AHEAD = 4,
    /* Elements of a run that all rows and columns of inner products pass together, so that they stay in cache; and
     * products of one row and one column each, neighbours in the batch, that are done at once; and sums that are
     * collected at once at least, so that none waits for another. STRIP_CHUNK is in tuning.py as well. */
    STRIP_CHUNK = 512,
    STRIP_PAIRS = 4,
    STRIP_SUMS = 4,
};

#endif
