/* Matrix products over tables of offsets: the order of packing and of tiles. */
#ifndef BODY
#define BODY "product.simd.c"
#include "pack.h"
#include "tile.h"
#include "dtypes.h"
#else

extern tile_function *const TYPED(contraction_tiles)[WAYS][VECTORS * COLUMNS];
void TYPED(contraction_pack_columns)(const struct block *block);
void TYPED(contraction_pack_rows)(const struct block *block);
void TYPED(contraction_pack_tile)(const struct block *block);

/* State of one chunk of a product. */
struct TYPED(product) {
    const struct step *d;
    struct range batch, rows, columns;
    tile_function *const *tiles;
    struct tile tile;
    const char *next[2]; /* prefetch position in the next batch, alternating between the operands */
    int64_t stream;
};

INLINE struct TYPED(product) TYPED(begin)(const struct job *job, int64_t piece, int way)
{
    const struct step *d = job->step;
    return (struct TYPED(product)){
        .d = d,
        .batch = share(job, piece, OF_BATCH, d->batch),
        .rows = share(job, piece, OF_ROWS, d->rows),
        .columns = share(job, piece, OF_COLUMNS, d->columns),
        .tiles = TYPED(contraction_tiles)[way],
        .tile = {.far = d->ahead, .next = (const char *)d},
        .next = {(const char *)d, (const char *)d},
        .stream = (uintptr_t)BASE(job, c) % 64 ? 0 : d->stream,
    };
}

/* Make stores past the caches visible to all threads. */
INLINE void TYPED(end)(const struct TYPED(product) *p)
{
    if (p->stream)
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

/* Set the operands and the result of batch `n`; tiles prefetch those of the next batch. */
INLINE void TYPED(begin_batch)(struct TYPED(product) *p, const struct job *job, int64_t n)
{
    const struct step *d = p->d;
    p->tile.a = BASE(job, a) + d->batch_a[n];
    p->tile.b = BASE(job, b) + d->batch_b[n];
    p->tile.c = BASE(job, c) + d->batch_c[n];
    if (d->ahead) {
        const int64_t after = smaller(n + 1, p->batch.end - 1);
        p->next[0] = BASE(job, a) + d->batch_a[after];
        p->next[1] = BASE(job, b) + d->batch_b[after];
    }
}

INLINE int64_t TYPED(vectors_of)(int64_t rows)
{
    return (smaller(rows, ROWS) + WIDTH - 1) / WIDTH;
}

/* Compute the tile at row `i` and column `j`, whose operands are set. Prefetches are spread evenly over the tiles, so
 * that they arrive in time and delay nothing else. */
INLINE void TYPED(do_tile)(struct TYPED(product) *p, int64_t i, int64_t i_end, int64_t j, int64_t j_end, int64_t add)
{
    const struct step *d = p->d;
    struct tile *t = &p->tile;
    const int64_t columns = smaller(j_end - j, COLUMNS);
    t->row_a = d->row_a + i;
    t->row_c = d->row_c + i;
    t->column_b = d->column_b + j;
    t->column_c = d->column_c + j;
    t->rows = smaller(i_end - i, ROWS);
    t->flags = d->tile_flags[i / ROWS] | add;
    if (t->flags == 0)
        t->flags = p->stream;
    if (d->ahead) {
        t->next = p->next[0];
        p->next[0] = p->next[1];
        p->next[1] = t->next + d->ahead * d->inner;
    }
    p->tiles[(TYPED(vectors_of)(t->rows) - 1) * COLUMNS + columns - 1](t);
}

/* Columns `first` below `end`, over `count` summed indices from `inner` on. */
static void TYPED(pack_columns)(const struct step *d, const char *b, char *to, int64_t first, int64_t end,
                                int64_t inner, int64_t count)
{
    for (int64_t j = first; j < end; j += COLUMNS) {
        const int64_t columns = smaller(end - j, COLUMNS);
        const struct block block = {
            .from = b, .row_at = d->column_b + j, .inner_at = d->inner_b + inner,
            .inner_flags = d->column_inner_flags + inner / COLUMNS,
            .flags = d->column_flags[j / COLUMNS] | d->far_columns,
            .rows = columns, .inner = count, .to = to + (j - first) * count * ITEM, .step = columns * ITEM,
        };
        TYPED(contraction_pack_columns)(&block);
    }
}

/* Rows `first` below `end`, in panels as tiles take them. */
static void TYPED(pack_rows)(const struct step *d, const char *a, char *to, int64_t first, int64_t end, int64_t inner,
                             int64_t count)
{
    struct block block = {.from = a, .inner_at = d->inner_a + inner, .inner = count,
                          .inner_flags = d->row_inner_flags + inner / WIDTH};
    for (int64_t i = first; i < end; i += ROWS) {
        char *const panel = to + (i - first) * count * ITEM;
        const uint8_t *flags = d->row_flags + i / WIDTH;
        int contiguous = end - i >= ROWS;
        for (int r = 0; contiguous && r < VECTORS; r++)
            contiguous = flags[r];
        const int64_t vectors = contiguous ? 1 : TYPED(vectors_of)(end - i);
        block.step = vectors * BYTES;
        for (int64_t r = 0; r < vectors; r++) {
            block.row_at = d->row_a + i + r * WIDTH;
            block.flags = flags[r] | d->far_rows;
            block.rows = smaller(end - i - r * WIDTH, WIDTH);
            block.to = panel + r * BYTES;
            (contiguous ? TYPED(contraction_pack_tile) : TYPED(contraction_pack_rows))(&block);
        }
    }
}

/* Both operands are packed, block by block; a panel of columns stays in cache while all rows meet it. */
void TYPED(contraction_gemm)(const struct job *job, int64_t piece)
{
    struct TYPED(product) p = TYPED(begin)(job, piece, PACKED);
    const struct step *d = p.d;
    char *const rows_to = job->scratch, *const columns_to = rows_to + d->row_block * d->inner_block * ITEM;
    const int one_sum = d->inner <= d->inner_block;
    const int keeps_a = one_sum && p.rows.end - p.rows.start <= d->row_block;
    const int keeps_b = one_sum && p.columns.end - p.columns.start <= d->column_block;
    const char *packed_a = NULL, *packed_b = NULL; /* contents of the panels, if everything fits */
    for (int64_t n = p.batch.start; n < p.batch.end; n++) {
        TYPED(begin_batch)(&p, job, n);
        const char *const a = p.tile.a, *const b = p.tile.b;
        const int64_t adding = n % d->sums != 0;
        for (int64_t jc = p.columns.start; jc < p.columns.end; jc += d->column_block) {
            const int64_t j_end = smaller(jc + d->column_block, p.columns.end);
            for (int64_t kc = 0; kc < d->inner; kc += d->inner_block) {
                const int64_t k = smaller(d->inner - kc, d->inner_block), add = adding || kc;
                p.tile.k = k;
                if (!keeps_b || packed_b != b)
                    TYPED(pack_columns)(d, b, columns_to, jc, j_end, kc, k);
                packed_b = b;
                for (int64_t ic = p.rows.start; ic < p.rows.end; ic += d->row_block) {
                    const int64_t i_end = smaller(ic + d->row_block, p.rows.end);
                    if (!keeps_a || packed_a != a)
                        TYPED(pack_rows)(d, a, rows_to, ic, i_end, kc, k);
                    packed_a = a;
                    for (int64_t j = jc; j < j_end; j += COLUMNS) {
                        p.tile.b = columns_to + (j - jc) * k * ITEM;
                        for (int64_t i = ic; i < i_end; i += ROWS) {
                            p.tile.a = rows_to + (i - ic) * k * ITEM;
                            TYPED(do_tile)(&p, i, i_end, j, j_end, add);
                        }
                    }
                }
            }
        }
    }
    TYPED(end)(&p);
}

/* Rows are read in place, a few times all columns at once; columns are packed, or read in place too. */
INLINE void TYPED(product_direct)(const struct job *job, int64_t piece, const int way)
{
    struct TYPED(product) p = TYPED(begin)(job, piece, way);
    const struct step *d = p.d;
    const char *packed = NULL;
    p.tile.k = d->inner;
    p.tile.inner_a = d->inner_a;
    p.tile.inner_b = d->inner_b;
    for (int64_t n = p.batch.start; n < p.batch.end; n++) {
        TYPED(begin_batch)(&p, job, n);
        const char *const b = p.tile.b;
        const int64_t add = n % d->sums != 0;
        if (way == DIRECT_ROWS && packed != b)
            TYPED(pack_columns)(d, b, job->scratch, p.columns.start, p.columns.end, 0, d->inner);
        packed = b;
        for (int64_t first = p.rows.start; first < p.rows.end; first += d->row_block) {
            const int64_t end = smaller(first + d->row_block, p.rows.end);
            for (int64_t j = p.columns.start; j < p.columns.end; j += COLUMNS) {
                if (way == DIRECT_ROWS)
                    p.tile.b = job->scratch + (j - p.columns.start) * d->inner * ITEM;
                for (int64_t i = first; i < end; i += ROWS)
                    TYPED(do_tile)(&p, i, end, j, p.columns.end, add);
            }
        }
    }
    TYPED(end)(&p);
}

void TYPED(contraction_gemm_direct_rows)(const struct job *job, int64_t piece)
{
    TYPED(product_direct)(job, piece, DIRECT_ROWS);
}

void TYPED(contraction_gemm_direct)(const struct job *job, int64_t piece)
{
    TYPED(product_direct)(job, piece, DIRECT);
}
#endif
