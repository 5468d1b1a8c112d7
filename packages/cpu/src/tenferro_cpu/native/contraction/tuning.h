/* Constants that tune the engine's machine code; those that tune plans are in tuning.py. All were set on a Zen 5 with
 * benchmarks/einsum_networks.py and einsum_pairs.py, which compare old and new in one run. */
#ifndef TENFERRO_CONTRACTION_TUNING_H
#define TENFERRO_CONTRACTION_TUNING_H

enum {
    /* Bytes that memory moves at once. */
    CACHE_LINE = 64,
    /* From so many summed indices on, tiles prefetch the lines of their result. */
    PREFETCH_RESULT_SUMS = 8,
    /* From so many summed indices and columns on, and with so wide vectors, tiles whose rows are read where they lie
     * prefetch the rows that follow. With fewer columns the processor runs ahead by itself; prefetches of narrower
     * vectors take longer than their sums. */
    PREFETCH_ROWS_SUMS = 16,
    PREFETCH_ROWS_COLUMNS = 3,
    PREFETCH_ROWS_VECTOR_BYTES = 64,
    /* Packing prefetches the rows that are so many blocks ahead. Tables go on as far. */
    PREFETCH_BLOCKS_AHEAD = 4,
    /* Elements of a run that all rows and columns of inner products pass together, so that they stay in cache; and
     * products of one row and one column each, neighbours in the batch, that are done at once; and sums that are
     * collected at once at least, so that none waits for another. STRIP_CHUNK is in tuning.py as well. */
    STRIP_CHUNK = 512,
    STRIP_PAIRS = 4,
    STRIP_SUMS = 4,
};

#endif
