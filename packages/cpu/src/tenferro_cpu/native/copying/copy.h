/* Copies between two layouts: the plan that a kernel receives, and the kernels of one vector level. */
#ifndef TENFERRO_COPY_H
#define TENFERRO_COPY_H

#include "levels.h"

#include <stdint.h>

/* The loops of a copy, outermost first; all offsets and strides are in bytes.
 *
 * A kernel moves blocks: some rows, neighbours in the target, by some columns, neighbours in the source. Each axis is
 * cut into groups of `step` rows or columns; the block covers those from `at` on. A last group that would be
 * partial begins earlier: copying an element twice is harmless. */
struct copy {
    int64_t repeat, repeat_source, repeat_target; /* the longest outer axis; it has no tables */
    int64_t outer;                                /* all other outer axes as one */
    const int64_t *outer_source, *outer_target;
    int64_t rows, row_step, row_at, row_tile;
    const int64_t *row_source, *row_target;
    int64_t columns, column_step, column_at, column_tile;
    const int64_t *column_source, *column_target;
    int64_t run;    /* contiguous bytes, for `run` kernels */
    int64_t stream; /* whether stores bypass the caches; the target must be aligned then */
};

typedef void copy_kernel(const struct copy *plan, const char *source, char *target);

enum { COPY_ITEMS = 6, COPY_WIDTH = 16, COPY_STREAMS = 7, COPY_RUNS = 7 };

/* NULL if a level has no such kernel. Items and vectors of a run are indexed by the logarithms of their bytes. */
struct copy_kernels {
    int vector_bytes;
    copy_kernel *tile[COPY_ITEMS][COPY_WIDTH + 1][COPY_WIDTH + 1]; /* by rows and columns of a block */
    copy_kernel *interleave[COPY_ITEMS][COPY_STREAMS + 1];   /* by number of rows */
    copy_kernel *deinterleave[COPY_ITEMS][COPY_STREAMS + 1];
    copy_kernel *run[COPY_RUNS];                             /* by bytes of a vector */
};

TENFERRO_DECLARE(const struct copy_kernels, copy_kernels)

#endif
