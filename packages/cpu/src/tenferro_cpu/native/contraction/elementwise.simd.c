/* Steps without a matrix product: products of runs and of single elements, zeros. */
#ifndef BODY
#define BODY "elementwise.simd.c"
#include "tuning.h"
#include "dtypes.h"
#else

/* One vector of a run: x times y, or times a number whose parts are repeated (scaling). */
INLINE vec TYPED(times)(vec x, const vec factors[PARTS], const vec *total)
{
    const vec result = total ? fused(x, factors[0], *total) : x * factors[0];
    return PARTS == 1 ? result : fused(times_i(x), factors[PARTS - 1], result);
}

struct TYPED(places) {
    const char *a, *b;
    char *c;
};

enum { TYPED(NEAR), TYPED(ADD), TYPED(PAST) }; /* how results are stored: plain, accumulated, or past the caches */

/* The vector `at` bytes from the start of the run, `lanes` of it unless `whole`. */
INLINE void TYPED(run_vector)(struct TYPED(places) p, int64_t at, const int scaling, const vec number[PARTS],
                              const int how, const int whole, mask lanes)
{
    vec factors[PARTS], total, result;
    const vec x = whole ? load(p.a + at) : masked_load(p.a + at, lanes);
    if (!scaling) {
        const vec y = whole ? load(p.b + at) : masked_load(p.b + at, lanes);
        UNROLL for (int part = 0; part < PARTS; part++)
            factors[part] = spread(y, part);
    }
    if (how == TYPED(ADD))
        total = whole ? load(p.c + at) : masked_load(p.c + at, lanes);
    result = TYPED(times)(x, scaling ? number : factors, how == TYPED(ADD) ? &total : NULL);
    if (!whole)
        masked_store(p.c + at, result, lanes);
    else if (how == TYPED(PAST))
        stream_store(p.c + at, result);
    else
        store(p.c + at, result);
}

INLINE void TYPED(run)(struct TYPED(places) p, int64_t run, const int scaling, const vec number[PARTS], const int how)
{
    const int64_t whole = run / WIDTH * BYTES, rest = run % WIDTH;
    const mask lanes = first_lanes(rest * PARTS);
    ROLLED for (int64_t at = 0; at < whole; at += BYTES)
        TYPED(run_vector)(p, at, scaling, number, how, 1, lanes);
    if (rest)
        TYPED(run_vector)(p, whole, scaling, number, how, 0, lanes);
}

/* One run past the caches: whole cache lines, and the partial ones before and after them. */
INLINE void TYPED(run_past)(struct TYPED(places) p, int64_t run, const int scaling, const vec number[PARTS])
{
    const int64_t head = smaller((int64_t)(-(uintptr_t)p.c % CACHE_LINE / ITEM), run);
    ROLLED for (int64_t first = 0; first < head; first += WIDTH)
        TYPED(run_vector)(p, first * ITEM, scaling, number, TYPED(NEAR), 0, first_lanes((head - first) * PARTS));
    p.a += head * ITEM;
    p.b += head * ITEM;
    p.c += head * ITEM;
    TYPED(run)(p, run - head, scaling, number, TYPED(PAST));
}

/* Runs of the result; several of a batch may accumulate. */
INLINE void TYPED(runs)(const struct job *job, int64_t piece, const int scaling)
{
    const struct step *d = job->step;
    const struct range batch = share(job, piece, OF_BATCH, d->batch);
    const int past = d->stream && (uintptr_t)BASE(job, c) % ITEM == 0;
    for (int64_t n = batch.start; n < batch.end; n++) {
        const struct TYPED(places) at = {BASE(job, a) + d->batch_a[n], BASE(job, b) + d->batch_b[n],
                                         BASE(job, c) + d->batch_c[n]};
        const int adding = n % d->sums != 0;
        for (int64_t m = 0; m < d->rows; m++) {
            const struct TYPED(places) p = {at.a + d->row_a[m], at.b + d->row_b[m], at.c + d->row_c[m]};
            vec number[PARTS];
            UNROLL for (int part = 0; part < PARTS; part++)
                number[part] = scaling ? all_lanes(((const real *)p.b)[part]) : all_lanes(0);
            if (adding)
                TYPED(run)(p, d->run, scaling, number, TYPED(ADD));
            else if (past)
                TYPED(run_past)(p, d->run, scaling, number);
            else
                TYPED(run)(p, d->run, scaling, number, TYPED(NEAR));
        }
    }
    if (past)
        __atomic_thread_fence(__ATOMIC_SEQ_CST); /* make the stores visible to all threads */
}

void TYPED(contraction_elementwise)(const struct job *job, int64_t piece)
{
    TYPED(runs)(job, piece, 0);
}

void TYPED(contraction_scaling)(const struct job *job, int64_t piece)
{
    TYPED(runs)(job, piece, 1);
}

/* Single elements, each addressed by its offsets. */
void TYPED(contraction_gather)(const struct job *job, int64_t piece)
{
    const struct step *d = job->step;
    const struct range batch = share(job, piece, OF_BATCH, d->batch);
    const int64_t inner = d->inner, *const inner_a = d->inner_a, *const inner_b = d->inner_b;
    const int64_t *const inner_c = d->inner_c;
    for (int64_t n = batch.start; n < batch.end; n++) {
        const int adding = n % d->sums != 0;
        for (int64_t m = 0; m < d->rows; m++) {
            const char *a = BASE(job, a) + d->batch_a[n] + d->row_a[m];
            const char *b = BASE(job, b) + d->batch_b[n] + d->row_b[m];
            char *c = BASE(job, c) + d->batch_c[n] + d->row_c[m];
            KEEP(a);
            KEEP(b);
            KEEP(c);
            ROLLED for (int64_t i = 0; i < inner; i++) {
                const real *x = (const real *)(a + inner_a[i]), *y = (const real *)(b + inner_b[i]);
                real *z = (real *)(c + inner_c[i]);
                REAL found[2] = {x[0] * y[0], 0};
                if (PARTS == 2) {
                    found[0] = x[0] * y[0] + -x[PARTS - 1] * y[PARTS - 1];
                    found[1] = x[PARTS - 1] * y[0] + x[0] * y[PARTS - 1];
                }
                for (int part = 0; part < PARTS; part++)
                    z[part] = adding ? found[part] + z[part] : found[part];
            }
        }
    }
}

/* Zeros at every offset of the batch and the rows. */
void TYPED(contraction_fill)(const struct job *job, int64_t piece)
{
    const struct step *d = job->step;
    const struct range batch = share(job, piece, OF_BATCH, d->batch);
    for (int64_t n = batch.start; n < batch.end; n++)
        for (int64_t m = 0; m < d->rows; m++)
            for (int part = 0; part < PARTS; part++)
                ((real *)(BASE(job, c) + d->batch_c[n] + d->row_c[m]))[part] = 0;
}
#endif
