/* The parts of a contraction plan: records of steps, written by Python (_record.py has the same fields), and engines,
 * the code that runs them for one dtype at one vector level. */
#ifndef TENFERRO_CONTRACTION_STEP_H
#define TENFERRO_CONTRACTION_STEP_H

#include <stddef.h>
#include <stdint.h>

/* Kernels by number, as in KERNELS of _record.py. */
enum {
    GEMM, /* products of packed panels */
    GEMM_DIRECT_ROWS, /* rows are read in place, columns are packed */
    GEMM_DIRECT, /* both operands are read in place */
    ELEMENTWISE, /* products of two runs */
    SCALING, /* products of a run and a number */
    GATHER, /* products of single elements */
    DOT, /* inner products of runs */
    LANES_OF_BATCH, /* products whose batch is a run */
    TRANSPOSE, /* a copy with another innermost axis */
    FILL, /* zeros */
    BLOCKS, /* separate steps for each block of the batch */
    KERNELS
};

/* The record of one step: 64-bit words. All offsets are in bytes, including those in tables. */
struct step {
    int64_t kernel;
    int64_t a, b, c; /* indices of the base pointers of operands and result */
    int64_t a_at, b_at, c_at; /* offsets from them */
    int64_t split; /* the range that threads share: 0 the batch, 1 rows, 2 columns */
    int64_t unit, units; /* entries per unit, and number of units */
    int64_t pieces; /* chunks that the work pays for */
    int64_t scratch; /* bytes of the packed panels of each chunk */
    int64_t batch, sums; /* entries of the batch; how many consecutive ones accumulate into one result */
    const int64_t *batch_a, *batch_b, *batch_c;
    int64_t rows, columns, inner; /* sizes of the product; inner indices are summed */
    const int64_t *row_a, *row_c, *inner_a, *inner_b, *column_b, *column_c, *row_b, *inner_c;
    const uint8_t *row_flags, *row_inner_flags, *column_flags, *column_inner_flags; /* blocks that are contiguous */
    const uint8_t *tile_flags; /* how the result of each tile of rows is stored */
    int64_t far_rows, far_columns; /* PREFETCHED for operands whose rows or columns are prefetched before packing */
    int64_t row_block, inner_block, column_block; /* sizes packed at once */
    int64_t ahead; /* bytes of the next batch that a tile prefetches with each summed index */
    int64_t stream; /* STREAM if the result may be written past the caches, else 0 */
    const struct step *records; /* steps of each block, */
    int64_t parts, room; /* their number, and bytes of their copies */
    int64_t run; /* elements of contiguous runs; of a transposed copy, bytes between the runs that it writes */
};

/* Flags of tiles. */
enum {
    ACCUMULATE = 1, /* add to the previous contents of the result */
    SCATTER = 2, /* rows are not full contiguous vectors */
    CONTIGUOUS = 4, /* with SCATTER: the first vector is contiguous; twice that for the second, and so on */
    STREAM = 1 << 16 /* full vectors on whole cache lines are written past the caches */
};

/* Flags of blocks to be packed. */
enum { CONTIGUOUS_ROWS = 1, PREFETCHED = 2 };

struct engine;

/* A running step: the data that all its chunks share. */
struct job {
    const struct engine *engine;
    const struct step *step;
    char *const *bases;
    char *scratch;
    int64_t pieces;
};

typedef void step_function(const struct job *job, int64_t piece);

/* The code for one dtype at one vector level, and the sizes that plans depend on. */
struct engine {
    char dtype; /* NumPy's letter */
    const char *level;
    int64_t item; /* bytes of an element */
    int64_t width; /* elements of a vector */
    int64_t vectors, columns; /* of a full tile */
    int64_t dot_rows, dot_columns, lanes_rows, lanes_columns; /* of full strips */
    int64_t masks; /* whether one instruction loads or stores some lanes of a vector */
    const void *one; /* the number, as an element */
    step_function *steps[KERNELS];
};

enum { DTYPES = 4 };

struct engines {
    const struct engine *of[DTYPES];
};

/* The engine for a dtype at a level, or the best one if `level` is NULL; NULL if this processor has none. */
const struct engine *contraction_engine(char dtype, const char *level);

/* Run all steps in order, each in as many chunks as there are threads. */
void contraction_run(const struct engine *engine, const struct step *steps, int64_t count, char *const *bases,
                     char *scratch, int64_t threads);

void contraction_blocks(const struct job *job, int64_t piece);

struct range {
    int64_t start, end;
};

static inline int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* The part of a range of `size` entries that a chunk covers; all of it if another range is split. */
static inline struct range share(const struct job *job, int64_t piece, int64_t split, int64_t size)
{
    const struct step *d = job->step;
    if (d->split != split)
        return (struct range){0, size};
    const int64_t start = d->units * piece / job->pieces, end = d->units * (piece + 1) / job->pieces;
    return (struct range){start * d->unit, smaller(end * d->unit, size)};
}

enum { OF_BATCH, OF_ROWS, OF_COLUMNS };

/* Start address of an operand or of the result. */
#define BASE(job, operand) ((job)->bases[(job)->step->operand] + (job)->step->operand##_at)

#endif
