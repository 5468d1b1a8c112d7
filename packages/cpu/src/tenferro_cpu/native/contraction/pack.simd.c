/* Packing: copies the rows of an operand, however laid out, so that they are adjacent for each summed index.
 *
 * If the rows of a block are contiguous, each summed index is one vector. If summed indices are contiguous, squares are
 * transposed in registers. Otherwise elements move one by one. Partial blocks are read and written under masks: nothing
 * beyond them is touched. */
#ifndef BODY
#define BODY "pack.simd.c"
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
/* GCC's generic tuning spills addresses to vector registers, which costs more than spilling to memory. */
#pragma GCC target("tune=znver3")
#endif
#include "pack.h"
#include "tuning.h"
#include "dtypes.h"
#else

/* A vector holds `SIDE(n)` elements of each row of a block of n rows: blocks of columns may be half a vector, or
 * several. */
#define SIDE(n) ((n) < WIDTH ? (n) : WIDTH)

#if WIDTH > COLUMNS
typedef REAL TYPED(half_vec) __attribute__((vector_size(BYTES / 2), aligned(1), may_alias));
#endif

/* Load the elements of a row that one vector holds: all `n` if `whole`, otherwise `count`. */
INLINE vec TYPED(load_some)(const char *p, const int n, const int whole, int64_t count)
{
    if (!whole)
        return masked_load(p, first_lanes(count * PARTS));
#if WIDTH > COLUMNS
    if (n < WIDTH) {
        const TYPED(half_vec) x = *(const TYPED(half_vec) *)p;
#define REPEATED(l) ((l) % (LANES / 2))
        return SHUFFLE(x, x, REPEATED);
#undef REPEATED
    }
#endif
    return load(p);
}

INLINE void TYPED(store_some)(char *p, vec x, const int n, const int whole, int64_t count)
{
    if (!whole)
        masked_store(p, x, first_lanes(count * PARTS));
#if WIDTH > COLUMNS
#define SAME(l) (l)
    else if (n < WIDTH)
        *(TYPED(half_vec) *)p = __builtin_shufflevector(x, x, HALF_LIST_OF_4(SAME));
#undef SAME
#endif
    else
        store(p, x);
}

/* Transpose a square of n x n elements, each row a vector: pairs at growing distances exchange halves. */
INLINE void TYPED(transpose_square)(vec x[WIDTH], const int n)
{
#define LOWER(l, d) (((l) / PARTS & (d) ? WIDTH + ((l) / PARTS ^ (d)) : (l) / PARTS) * PARTS + (l) % PARTS)
#define UPPER(l, d) (((l) / PARTS & (d) ? WIDTH + (l) / PARTS : (l) / PARTS | (d)) * PARTS + (l) % PARTS)
#define LOWER_1(l) LOWER(l, 1)
#define LOWER_2(l) LOWER(l, 2)
#define LOWER_4(l) LOWER(l, 4)
#define LOWER_8(l) LOWER(l, 8)
#define UPPER_1(l) UPPER(l, 1)
#define UPPER_2(l) UPPER(l, 2)
#define UPPER_4(l) UPPER(l, 4)
#define UPPER_8(l) UPPER(l, 8)
#define EXCHANGE(d) \
    UNROLL for (int low = 0; (d) < n && low < n; low++) \
        if (!(low & (d))) { \
            const vec lower = x[low], upper = x[low | (d)]; \
            x[low] = SHUFFLE(lower, upper, LOWER_##d); \
            x[low | (d)] = SHUFFLE(lower, upper, UPPER_##d); \
        }
#if WIDTH > 1
    EXCHANGE(1)
#endif
#if WIDTH > 2
    EXCHANGE(2)
#endif
#if WIDTH > 4
    EXCHANGE(4)
#endif
#if WIDTH > 8
    EXCHANGE(8)
#endif
#undef EXCHANGE
#undef LOWER_1
#undef LOWER_2
#undef LOWER_4
#undef LOWER_8
#undef UPPER_1
#undef UPPER_2
#undef UPPER_4
#undef UPPER_8
#undef LOWER
#undef UPPER
}

/* Rows are contiguous: vectors move as they are. */
INLINE void TYPED(pack_runs)(const int n, const int whole, const struct block p)
{
    const char *first = p.from + p.row_at[0];
    char *to = p.to;
    ROLLED for (int64_t i = 0; i < p.inner; i++, to += p.step)
        UNROLL for (int v = 0; v < n; v += SIDE(n)) {
            const int64_t count = p.rows - v;
            const vec x = TYPED(load_some)(first + p.inner_at[i] + v * ITEM, SIDE(n), whole, count);
            TYPED(store_some)(to + v * ITEM, x, SIDE(n), whole, count);
        }
}

/* Prefetch the following rows, whose addresses no hardware prefetcher predicts. */
INLINE void TYPED(prefetch_rows)(const int n, const struct block p)
{
    const int64_t step = p.inner_flags[0] ? CACHE_LINE / ITEM : 1;
    ROLLED for (int64_t i = 0; i < p.inner; i += step)
        UNROLL for (int r = 0; r < n; r++)
            __builtin_prefetch(p.from + p.row_at[PREFETCH_BLOCKS_AHEAD * n + r] + p.inner_at[i], 0, 3);
}

/* Contiguous summed indices `first` to `first + left` of all rows, at most n of them. */
INLINE void TYPED(pack_square)(const int n, const int whole, const struct block p, const char *const *rows,
                               int64_t first, int64_t left)
{
    const int64_t at = p.inner_at[first];
    ROLLED for (int k = 0; k < n; k += SIDE(n))
        ROLLED for (int v = 0; v < n; v += SIDE(n)) {
            vec x[WIDTH];
            UNROLL for (int r = 0; r < SIDE(n); r++)
                x[r] = TYPED(load_some)(rows[v + r] + at + k * ITEM, SIDE(n), left == n, left - k);
            TYPED(transpose_square)(x, SIDE(n));
            char *to = p.to + (first + k) * p.step + v * ITEM;
            UNROLL for (int i = 0; i < SIDE(n); i++)
                if (left == n || k + i < left)
                    TYPED(store_some)(to + i * p.step, x[i], SIDE(n), whole, p.rows - v);
        }
}

/* One summed index, whose elements are collected in vectors: storing each separately would take longer. */
INLINE void TYPED(pack_single)(const int n, const int whole, const struct block p, const char *const *rows, int64_t i)
{
    const int64_t at = p.inner_at[i];
    UNROLL for (int v = 0; v < n; v += SIDE(n)) {
#define ELEMENT(l) ((const real *)(rows[v + (l) / PARTS % SIDE(n)] + at))[(l) % PARTS]
        const vec x = {TENFERRO_JOIN(LIST_OF, REAL_BYTES)(ELEMENT)};
#undef ELEMENT
        TYPED(store_some)(p.to + i * p.step + v * ITEM, x, SIDE(n), whole, p.rows - v);
    }
}

INLINE void TYPED(pack_rest)(const int n, const int whole, const struct block p)
{
    const char *rows[WIDTH > COLUMNS ? WIDTH : COLUMNS];
    UNROLL for (int r = 0; r < n; r++)
        rows[r] = p.from + p.row_at[whole || r < p.rows ? r : p.rows - 1];
    ROLLED for (int64_t i = 0; i < p.inner; i += n) {
        const int64_t left = smaller(p.inner - i, n);
        if (!p.inner_flags[i / n] || left <= n / 2)
            ROLLED for (int64_t j = i; j < i + left; j++)
                TYPED(pack_single)(n, whole, p, rows, j);
        else if (left == n)
            TYPED(pack_square)(n, whole, p, rows, i, n);
        else
            TYPED(pack_square)(n, whole, p, rows, i, left);
    }
}

INLINE void TYPED(pack_block)(const int n, const struct block p)
{
    const int whole = p.rows == n;
    if (p.flags & CONTIGUOUS_ROWS && whole)
        TYPED(pack_runs)(n, 1, p);
    else if (p.flags & CONTIGUOUS_ROWS)
        TYPED(pack_runs)(n, 0, p);
    else {
        if (p.flags & PREFETCHED)
            TYPED(prefetch_rows)(n, p);
        if (whole)
            TYPED(pack_rest)(n, 1, p);
        else
            TYPED(pack_rest)(n, 0, p);
    }
}

void TYPED(contraction_pack_columns)(const struct block *block)
{
    TYPED(pack_block)(COLUMNS, *block);
}

void TYPED(contraction_pack_rows)(const struct block *block)
{
    TYPED(pack_block)(WIDTH, *block);
}

/* A full tile of rows with contiguous vectors, one summed index after the other: neighbouring vectors share cache
 * lines, which would otherwise be fetched once per vector if summed indices are far apart. */
void TYPED(contraction_pack_tile)(const struct block *block)
{
    const struct block p = *block;
    char *to = p.to;
    const char *rows[VECTORS];
    UNROLL for (int r = 0; r < VECTORS; r++)
        rows[r] = p.from + p.row_at[r * WIDTH];
    ROLLED for (int64_t i = 0; i < p.inner; i++, to += VECTORS * BYTES)
        UNROLL for (int r = 0; r < VECTORS; r++)
            store(to + r * BYTES, load(rows[r] + p.inner_at[i]));
}

/* The step TRANSPOSE: rows are packed into the result as if it were a panel. */
void TYPED(contraction_transpose)(const struct job *job, int64_t piece)
{
    const struct step *d = job->step;
    const struct range batch = share(job, piece, OF_BATCH, d->batch), rows = share(job, piece, OF_ROWS, d->rows);
    struct block block = {.inner_at = d->inner_a, .inner_flags = d->row_inner_flags, .inner = d->inner, .step = d->run};
    for (int64_t n = batch.start; n < batch.end; n++)
        for (int64_t i = rows.start; i < rows.end; i += WIDTH) {
            block.from = BASE(job, a) + d->batch_a[n];
            block.row_at = d->row_a + i;
            block.rows = smaller(rows.end - i, WIDTH);
            block.to = BASE(job, c) + d->batch_c[n] + i * ITEM;
            TYPED(contraction_pack_rows)(&block);
        }
}

#undef SIDE
#endif
