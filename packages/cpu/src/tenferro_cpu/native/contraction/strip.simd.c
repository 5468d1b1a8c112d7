/* Strips: tiles of the result whose vectors run along the sum, or along the batch, in both operands alike.
 *
 * No operand is packed or transposed: each vector of a row meets each vector of a column. Along the sum, lanes are
 * added up at the end; along the batch, they are results. */
#ifndef BODY
#define BODY "strip.simd.c"
#include "step.h"
#include "tuning.h"

struct strip {
    int64_t k; /* positions of the sum */
    const char *a, *b; /* base addresses of the offsets */
    char *c;
    const int64_t *row_a, *inner_a, *column_b, *inner_b, *row_c, *column_c;
    int64_t run; /* contiguous elements at each position */
    int64_t adds; /* whether to add to the previous contents of the result */
};

typedef void strip_function(const struct strip *strip);

/* Maximum rows or columns of a strip, and pairs. */
enum { MAX_STRIP = 4 };

#include "dtypes.h"
#else

/* Sums over one vector of each row and column, `lanes` of it unless `whole`: of all pairs, or of equal numbers. */
INLINE void TYPED(dot_vectors)(const int rows, const int columns, const int paired, const int whole, mask lanes,
                               const char *const *row_at, const char *const *column_at, int64_t at,
                               vec sums[MAX_STRIP * MAX_STRIP][PARTS])
{
    vec x[MAX_STRIP];
    UNROLL for (int r = 0; r < rows; r++)
        x[r] = whole ? load(row_at[r] + at) : masked_load(row_at[r] + at, lanes);
    UNROLL for (int j = 0; j < columns; j++) {
        const vec y = whole ? load(column_at[j] + at) : masked_load(column_at[j] + at, lanes);
        UNROLL for (int part = 0; part < PARTS; part++) {
            const vec factor = spread(y, part);
            UNROLL for (int r = 0; r < rows; r++)
                if (!paired || r == j) {
                    vec *sum = &sums[paired ? j : j * rows + r][part];
                    *sum = fused(x[r], factor, *sum);
                }
        }
    }
}

/* Add up the lanes, and store the number. */
INLINE void TYPED(finish)(const vec sum[PARTS], char *c, int64_t adds)
{
    const vec total = PARTS == 2 ? sum[0] + times_i(sum[PARTS - 1]) : sum[0];
#define SAME(l) (l)
#define UPPER_8(l) ((l) + 8)
#define UPPER_4(l) ((l) + 4)
#define UPPER_2(l) ((l) + 2)
#define HALF(x, n) (__builtin_shufflevector(x, x, LIST_##n(SAME)) + __builtin_shufflevector(x, x, LIST_##n(UPPER_##n)))
#if LANES > 8
    const __auto_type eight = HALF(total, 8);
#else
    const vec eight = total;
#endif
#if LANES > 4
    const __auto_type four = HALF(eight, 4);
#else
    const vec four = eight;
#endif
#if LANES > 2
    const __auto_type two = HALF(four, 2);
#else
    const vec two = four;
#endif
#undef SAME
#undef UPPER_8
#undef UPPER_4
#undef UPPER_2
#undef HALF
    const REAL found[2] = {PARTS == 1 ? two[0] + two[1] : two[0], two[1]};
    UNROLL for (int part = 0; part < PARTS; part++) {
        real *z = (real *)c + part;
        *z = adds ? found[part] + *z : found[part];
    }
}

/* Sums over runs at `k` positions: of each row and column, or (paired) of each row and its own column. A few sums use
 * several accumulators, to break the dependence chain; pairs are added in the same order whatever their number. */
INLINE void TYPED(dot_strip)(const int rows, const int columns, const int paired, const struct strip *t)
{
    const int count = (paired ? rows : rows * columns) * PARTS;
    const int copies = paired || count >= STRIP_SUMS ? 1 : STRIP_SUMS / count;
    const int64_t run = t->run, k = t->k, whole = (uint64_t)run / WIDTH, rest = run % WIDTH;
    const int64_t *const inner_a = t->inner_a, *const inner_b = t->inner_b;
    const mask lanes = first_lanes(rest * PARTS);
    vec sums[STRIP_SUMS][MAX_STRIP * MAX_STRIP][PARTS];
    UNROLL for (int copy = 0; copy < copies; copy++)
        UNROLL for (int n = 0; n < count / PARTS; n++)
            UNROLL for (int part = 0; part < PARTS; part++)
                sums[copy][n][part] = all_lanes(0);
    const char *rows_at[MAX_STRIP], *columns_at[MAX_STRIP];
    UNROLL for (int r = 0; r < rows; r++) {
        rows_at[r] = t->a + t->row_a[r];
        KEEP(rows_at[r]);
    }
    UNROLL for (int j = 0; j < columns; j++) {
        columns_at[j] = t->b + t->column_b[j];
        KEEP(columns_at[j]);
    }
    ROLLED for (int64_t i = 0; i < k; i++) {
        const char *row_at[MAX_STRIP], *column_at[MAX_STRIP];
        UNROLL for (int r = 0; r < rows; r++)
            row_at[r] = rows_at[r] + inner_a[i];
        UNROLL for (int j = 0; j < columns; j++)
            column_at[j] = columns_at[j] + inner_b[i];
        int64_t v = 0;
        ROLLED for (; v + copies <= whole; v += copies)
            UNROLL for (int copy = 0; copy < copies; copy++)
                TYPED(dot_vectors)(rows, columns, paired, 1, lanes, row_at, column_at, (v + copy) * BYTES, sums[copy]);
        ROLLED for (; copies > 1 && v < whole; v++)
            TYPED(dot_vectors)(rows, columns, paired, 1, lanes, row_at, column_at, v * BYTES, sums[0]);
        if (rest)
            TYPED(dot_vectors)(rows, columns, paired, 0, lanes, row_at, column_at, whole * BYTES, sums[0]);
    }
    UNROLL for (int copy = 1; copy < copies; copy++)
        UNROLL for (int n = 0; n < count / PARTS; n++)
            UNROLL for (int part = 0; part < PARTS; part++)
                sums[0][n][part] += sums[copy][n][part];
    char *const c = t->c;
    const int64_t *const row_c = t->row_c, *const column_c = t->column_c, adds = t->adds;
    UNROLL for (int j = 0; j < columns; j++)
        UNROLL for (int r = 0; r < rows; r++)
            if (!paired)
                TYPED(finish)(sums[0][j * rows + r], c + row_c[r] + column_c[j], adds);
            else if (r == j)
                TYPED(finish)(sums[0][j], c + row_c[r], adds);
}

/* Products of `run` elements of the batch, at most a vector (exactly one without masks), over `k` positions. */
INLINE void TYPED(lanes_strip_some)(const int rows, const int columns, const int whole, const struct strip *t)
{
    const mask lanes = first_lanes(t->run * PARTS);
    const int64_t k = t->k, *const inner_a = t->inner_a, *const inner_b = t->inner_b;
    vec sums[LANES_ROWS][LANES_COLUMNS];
    UNROLL for (int r = 0; r < rows; r++)
        UNROLL for (int j = 0; j < columns; j++)
            sums[r][j] = all_lanes(0);
    const char *rows_at[LANES_ROWS], *columns_at[LANES_COLUMNS];
    UNROLL for (int r = 0; r < rows; r++) {
        rows_at[r] = t->a + t->row_a[r];
        KEEP(rows_at[r]);
    }
    UNROLL for (int j = 0; j < columns; j++) {
        columns_at[j] = t->b + t->column_b[j];
        KEEP(columns_at[j]);
    }
    ROLLED for (int64_t i = 0; i < k; i++) {
        const int64_t at_a = inner_a[i], at_b = inner_b[i];
        vec x[LANES_ROWS][PARTS];
        UNROLL for (int r = 0; r < rows; r++) {
            const char *p = rows_at[r] + at_a;
            x[r][0] = whole ? load(p) : masked_load(p, lanes);
            x[r][PARTS - 1] = times_i(x[r][0]);
        }
        UNROLL for (int j = 0; j < columns; j++) {
            const char *p = columns_at[j] + at_b;
            const vec y = whole ? load(p) : masked_load(p, lanes);
            UNROLL for (int part = 0; part < PARTS; part++) {
                const vec factor = spread(y, part);
                UNROLL for (int r = 0; r < rows; r++)
                    sums[r][j] = fused(x[r][part], factor, sums[r][j]);
            }
        }
    }
    char *row_at[LANES_ROWS];
    const int64_t *const column_c = t->column_c, adds = t->adds;
    UNROLL for (int r = 0; r < rows; r++)
        row_at[r] = t->c + t->row_c[r];
    UNROLL for (int j = 0; j < columns; j++) {
        const int64_t column = column_c[j];
        UNROLL for (int r = 0; r < rows; r++) {
            char *c = row_at[r] + column;
            vec x = sums[r][j];
            if (adds)
                x += whole ? load(c) : masked_load(c, lanes);
            if (whole)
                store(c, x);
            else
                masked_store(c, x, lanes);
        }
    }
}

INLINE void TYPED(lanes_strip)(const int rows, const int columns, const struct strip *t)
{
    if (!MASKS || t->run == WIDTH)
        TYPED(lanes_strip_some)(rows, columns, 1, t);
    else
        TYPED(lanes_strip_some)(rows, columns, 0, t);
}

#define DOT_STRIP(r, j) \
    static void TYPED(dot_##r##_##j)(const struct strip *t) { TYPED(dot_strip)(r, j, 0, t); }
#define LANES_STRIP(r, j) \
    static void TYPED(lanes_##r##_##j)(const struct strip *t) { TYPED(lanes_strip)(r, j, t); }
#define DOT_FUNCTION(r, j) TYPED(dot_##r##_##j),
#define LANES_FUNCTION(r, j) TYPED(lanes_##r##_##j),
#define COLUMNS_2(f, r) f(r, 1) f(r, 2)
#define COLUMNS_3(f, r) COLUMNS_2(f, r) f(r, 3)
#define COLUMNS_4(f, r) COLUMNS_3(f, r) f(r, 4)
#define ROWS_2(f, n) COLUMNS_##n(f, 1) COLUMNS_##n(f, 2)
#define ROWS_3(f, n) ROWS_2(f, n) COLUMNS_##n(f, 3)
#define ROWS_4(f, n) ROWS_3(f, n) COLUMNS_##n(f, 4)
#if REGISTERS >= 32 && PARTS == 1
#define EACH_DOT(f) ROWS_4(f, 4)
#define EACH_LANES(f) ROWS_4(f, 4)
#elif REGISTERS >= 32
#define EACH_DOT(f) ROWS_4(f, 2)
#define EACH_LANES(f) ROWS_4(f, 4)
#elif PARTS == 1
#define EACH_DOT(f) ROWS_3(f, 3)
#define EACH_LANES(f) ROWS_3(f, 3)
#else
#define EACH_DOT(f) ROWS_2(f, 2)
#define EACH_LANES(f) ROWS_3(f, 2)
#endif

EACH_DOT(DOT_STRIP)
EACH_LANES(LANES_STRIP)

/* Products of one row and one column each, not too long, for `count` consecutive batches. */
static void TYPED(pairs)(struct strip t, int64_t count)
{
    for (; count >= STRIP_PAIRS; count -= STRIP_PAIRS, t.row_a += STRIP_PAIRS, t.column_b += STRIP_PAIRS,
                                 t.row_c += STRIP_PAIRS)
        TYPED(dot_strip)(STRIP_PAIRS, STRIP_PAIRS, 1, &t);
    for (; count > 0; count--, t.row_a++, t.column_b++, t.row_c++)
        TYPED(dot_strip)(1, 1, 1, &t);
}

INLINE void TYPED(do_strips)(const struct job *job, int64_t piece, const int dot, strip_function *const *functions,
                             const int most_rows, const int most_columns)
{
    const struct step *d = job->step;
    const struct range batch = share(job, piece, OF_BATCH, d->batch), rows = share(job, piece, OF_ROWS, d->rows);
    const struct range columns = share(job, piece, OF_COLUMNS, d->columns);
    const int64_t chunk = dot ? STRIP_CHUNK : WIDTH;
    struct strip t = {.k = d->inner, .inner_a = d->inner_a, .inner_b = d->inner_b};
    if (dot && d->rows * d->columns * d->sums == 1 && d->run <= STRIP_CHUNK) {
        t.a = BASE(job, a);
        t.b = BASE(job, b);
        t.c = BASE(job, c);
        t.run = d->run;
        t.row_a = d->batch_a + batch.start;
        t.column_b = d->batch_b + batch.start;
        t.row_c = d->batch_c + batch.start;
        TYPED(pairs)(t, batch.end - batch.start);
        return;
    }
    for (int64_t n = batch.start; n < batch.end; n++) {
        const int64_t later = n % d->sums != 0;
        for (int64_t start = 0; start < d->run; start += chunk) {
            t.a = BASE(job, a) + d->batch_a[n] + start * ITEM;
            t.b = BASE(job, b) + d->batch_b[n] + start * ITEM;
            t.c = BASE(job, c) + d->batch_c[n] + (dot ? 0 : start * ITEM);
            t.run = smaller(d->run - start, chunk);
            t.adds = later || (dot && start);
            for (int64_t i = rows.start; i < rows.end; i += most_rows) {
                t.row_a = d->row_a + i;
                t.row_c = d->row_c + i;
                strip_function *const *of_rows = functions + (smaller(rows.end - i, most_rows) - 1) * most_columns;
                for (int64_t j = columns.start; j < columns.end; j += most_columns) {
                    t.column_b = d->column_b + j;
                    t.column_c = d->column_c + j;
                    of_rows[smaller(columns.end - j, most_columns) - 1](&t);
                }
            }
        }
    }
}

/* The step DOT. */
void TYPED(contraction_dot)(const struct job *job, int64_t piece)
{
    static strip_function *const functions[] = {EACH_DOT(DOT_FUNCTION)};
    TYPED(do_strips)(job, piece, 1, functions, DOT_ROWS, DOT_COLUMNS);
}

/* The step LANES_OF_BATCH. */
void TYPED(contraction_lanes)(const struct job *job, int64_t piece)
{
    static strip_function *const functions[] = {EACH_LANES(LANES_FUNCTION)};
    TYPED(do_strips)(job, piece, 0, functions, LANES_ROWS, LANES_COLUMNS);
}

#undef DOT_STRIP
#undef LANES_STRIP
#undef DOT_FUNCTION
#undef LANES_FUNCTION
#undef COLUMNS_2
#undef COLUMNS_3
#undef COLUMNS_4
#undef ROWS_2
#undef ROWS_3
#undef ROWS_4
#undef EACH_DOT
#undef EACH_LANES
#endif
