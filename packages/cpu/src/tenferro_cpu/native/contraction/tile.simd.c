/* Microkernels of matrix products: a tile of the result, held in registers over the whole sum.
 *
 * Rows of the tile are lanes of vectors, columns are numbers repeated over a vector. Of complex numbers, rows are kept
 * as they lie in memory: times the real part of the column, then times i, times the imaginary part. */
#ifndef BODY
#define BODY "tile.simd.c"
#include "tile.h"
#include "tuning.h"
#include "dtypes.h"
#else

/* A contiguous vector of rows, in every column. */
INLINE void TYPED(scatter_vector)(const char *held, int64_t step, int64_t columns, char *row, const int64_t *column_c,
                                  mask lanes, int64_t adds)
{
    ROLLED for (int64_t j = 0; j < columns; j++, held += step) {
        char *c = row + column_c[j];
        const vec x = load(held);
        masked_store(c, adds ? x + masked_load(c, lanes) : x, lanes);
    }
}

/* Single elements of `count` rows, in every column. */
INLINE void TYPED(scatter_rows)(const char *held, int64_t step, int64_t columns, char *c, const int64_t *row_c,
                                const int64_t *column_c, const int count, const int adds)
{
    char *row_at[WIDTH];
    UNROLL for (int r = 0; r < count; r++) {
        row_at[r] = c + row_c[r];
        KEEP(row_at[r]);
    }
    ROLLED for (int64_t j = 0; j < columns; j++, held += step) {
        const int64_t column = column_c[j];
        UNROLL for (int r = 0; r < count; r++)
            UNROLL for (int part = 0; part < PARTS; part++) {
                real *z = (real *)(row_at[r] + column) + part;
                const REAL x = ((const REAL *)held)[r * PARTS + part];
                *z = adds ? x + *z : x;
            }
    }
}

/* The tile goes from the stack to where its rows lie, `step` bytes between its columns. */
ALONE static void TYPED(scatter)(const char *held, int64_t step, int64_t columns, const struct tile *given)
{
    const struct tile t = *given;
    for (int64_t first = 0; first < t.rows; first += WIDTH, held += BYTES) {
        const int64_t count = smaller(t.rows - first, WIDTH);
        const int64_t *const rows = t.row_c + first;
        if (t.flags & CONTIGUOUS << first / WIDTH)
            TYPED(scatter_vector)(held, step, columns, t.c + rows[0], t.column_c, first_lanes(count * PARTS),
                                  t.flags & ACCUMULATE);
        else if (count < WIDTH)
            for (int64_t r = 0; r < count; r++)
                TYPED(scatter_rows)(held + r * ITEM, step, columns, t.c, rows + r, t.column_c, 1, t.flags & ACCUMULATE);
        else if (t.flags & ACCUMULATE)
            TYPED(scatter_rows)(held, step, columns, t.c, rows, t.column_c, WIDTH, 1);
        else
            TYPED(scatter_rows)(held, step, columns, t.c, rows, t.column_c, WIDTH, 0);
    }
}

INLINE void TYPED(store_tile)(const int vectors, const int columns, const int flags, vec sums[VECTORS][COLUMNS],
                              const struct tile *t)
{
    const int64_t *const column_c = t->column_c;
    char *row_at[VECTORS];
    UNROLL for (int r = 0; r < vectors; r++)
        row_at[r] = t->c + t->row_c[r * WIDTH];
    UNROLL for (int j = 0; j < columns; j++) {
        const int64_t column = column_c[j];
        UNROLL for (int r = 0; r < vectors; r++) {
            char *c = row_at[r] + column;
            if (flags == STREAM)
                stream_store(c, sums[r][j]);
            else
                store(c, flags == ACCUMULATE ? sums[r][j] + load(c) : sums[r][j]);
        }
    }
}

INLINE void TYPED(tile)(const int vectors, const int columns, const int way, const struct tile *t)
{
    const int direct_a = way != PACKED, direct_b = way == DIRECT;
    const int follow = direct_a && columns >= PREFETCH_ROWS_COLUMNS && BYTES >= PREFETCH_ROWS_VECTOR_BYTES;
    const int64_t k = t->k, far = t->far;
    const int64_t *const inner_a = t->inner_a, *const inner_b = t->inner_b;
    const char *a = t->a, *b = t->b, *next = t->next, *row_at[VECTORS], *column_at[COLUMNS];
    vec sums[VECTORS][COLUMNS];
    UNROLL for (int r = 0; r < vectors; r++)
        UNROLL for (int j = 0; j < columns; j++)
            sums[r][j] = all_lanes(0);
    UNROLL for (int r = 0; direct_a && r < vectors; r++) {
        row_at[r] = a + t->row_a[r * WIDTH];
        KEEP(row_at[r]);
    }
    UNROLL for (int j = 0; direct_b && j < columns; j++) {
        column_at[j] = b + t->column_b[j];
        KEEP(column_at[j]);
    }
    /* Rows that are read where they lie: those of the next tile, unless the next summed index lies there. Nothing
     * stays in the nearest cache where lines of all summed indices compete for the same place. */
    int64_t following = 0, near = 0;
    if (follow && k >= PREFETCH_ROWS_SUMS) {
        const int64_t after = t->row_a[t->rows - 1] - t->row_a[0] + ITEM, step = inner_a[1] - inner_a[0];
        following = step == after ? 0 : after;
        near = step % 4096 == 0 ? 0 : following;
    }
    const mask last = first_lanes((t->rows - (vectors - 1) * WIDTH) * PARTS);
    if (t->flags < STREAM && k >= PREFETCH_RESULT_SUMS)
        ROLLED for (int j = 0; j < columns; j++)
            UNROLL for (int r = 0; r < vectors; r++)
                __builtin_prefetch(t->c + t->row_c[r * WIDTH] + t->column_c[j], 1, 3);
    ROLLED for (int64_t i = 0; i < k; i++) {
        vec x[VECTORS];
        __builtin_prefetch(next, 0, 2);
        next += far;
        UNROLL for (int r = 0; r < vectors; r++) {
            const char *p = direct_a ? row_at[r] + inner_a[i] : a + r * BYTES;
            if (follow) {
                __builtin_prefetch(p + following, 0, 2);
                __builtin_prefetch(p + near, 0, 3);
            }
            x[r] = direct_a && MASKS && r == vectors - 1 ? masked_load(p, last) : load(p);
        }
        UNROLL for (int part = 0; part < PARTS; part++) {
            UNROLL for (int j = 0; j < columns; j++) {
                const char *p = direct_b ? column_at[j] + inner_b[i] : b + j * ITEM;
                const vec y = all_lanes(((const real *)p)[part]);
                UNROLL for (int r = 0; r < vectors; r++)
                    sums[r][j] = fused(x[r], y, sums[r][j]);
                SETTLE;
            }
            UNROLL for (int r = 0; part + 1 < PARTS && r < vectors; r++) {
                KEEP_VECTOR(x[r]);
                x[r] = times_i(x[r]);
            }
        }
        a += vectors * BYTES;
        b += columns * ITEM;
    }
    if (t->flags == 0)
        TYPED(store_tile)(vectors, columns, 0, sums, t);
    else if (t->flags == ACCUMULATE)
        TYPED(store_tile)(vectors, columns, ACCUMULATE, sums, t);
    else if (t->flags == STREAM)
        TYPED(store_tile)(vectors, columns, STREAM, sums, t);
    else {
        vec held[COLUMNS][VECTORS];
        UNROLL for (int j = 0; j < columns; j++)
            UNROLL for (int r = 0; r < vectors; r++)
                held[j][r] = sums[r][j];
        TYPED(scatter)((const char *)held, sizeof held[0], columns, t);
    }
}

#define TILE(way, r, j) \
    static void TYPED(tile_##way##_##r##_##j)(const struct tile *t) { TYPED(tile)(r, j, way, t); }
#define FUNCTION(way, r, j) TYPED(tile_##way##_##r##_##j),
#define FOUR(f, way, r) f(way, r, 1) f(way, r, 2) f(way, r, 3) f(way, r, 4)
#if COLUMNS == 8
#define EACH_COLUMN(f, way, r) FOUR(f, way, r) f(way, r, 5) f(way, r, 6) f(way, r, 7) f(way, r, 8)
#else
#define EACH_COLUMN(f, way, r) FOUR(f, way, r)
#endif
#if VECTORS == 3
#define EACH(f, way) EACH_COLUMN(f, way, 1) EACH_COLUMN(f, way, 2) EACH_COLUMN(f, way, 3)
#else
#define EACH(f, way) EACH_COLUMN(f, way, 1) EACH_COLUMN(f, way, 2)
#endif

EACH(TILE, PACKED)
EACH(TILE, DIRECT_ROWS)
EACH(TILE, DIRECT)

/* By way, vectors and columns, both less one. */
tile_function *const TYPED(contraction_tiles)[WAYS][VECTORS * COLUMNS] = {
    {EACH(FUNCTION, PACKED)},
    {EACH(FUNCTION, DIRECT_ROWS)},
    {EACH(FUNCTION, DIRECT)},
};

#undef TILE
#undef FUNCTION
#undef FOUR
#undef EACH_COLUMN
#undef EACH
#endif
