/* One kind of reduction of one type: rows to elements (trailing), and rows combined element by element (leading).
 *
 * A template: a file that includes it defines
 *   ROW(f)          the name of a function f of this instance
 *   T, INDEX        the type of a number, and the integer of its size
 *   PARTS           numbers in an element: 2 for complex ones, else 1
 *   APART           whether real and imaginary parts lie in vectors of their own while they are combined
 *   ROUNDS          whether combining rounds, so that chains of it must be short
 *   NEUTRAL(part)   the number that changes nothing
 *   COMBINE(x, y)   a struct ROW(state) made of two
 *
 * Sums are cascades: groups of GROUP rounded additions, blocks of BLOCK elements in each lane of INTERLEAVE vectors,
 * then blocks combined like the digits of a counter. The order of operations depends on shapes alone, and is the one of
 * reducing kernels that are compiled for a program (`_render_reduce.py`): both give the same bits. */

#define LANES ((int64_t)(VECTOR_BYTES / sizeof(T)))
#define STEP (LANES * INTERLEAVE)

typedef T ROW(vector) __attribute__((vector_size(VECTOR_BYTES)));
typedef INDEX ROW(index) __attribute__((vector_size(VECTOR_BYTES)));

typedef struct {
    ROW(vector) part[PARTS];
} ROW(state);

INLINE ROW(vector) ROW(shuffled)(ROW(vector) x, ROW(vector) y, ROW(index) from)
{
#if defined(__clang__)
    ROW(vector) z;
    for (int64_t k = 0; k < LANES; k++)
        z[k] = from[k] < LANES ? x[from[k]] : y[from[k] - LANES];
    return z;
#else
    return __builtin_shuffle(x, y, from);
#endif
}

INLINE ROW(state) ROW(neutral)(void)
{
    ROW(state) s;
    for (int p = 0; p < PARTS; p++)
        for (int64_t k = 0; k < LANES; k++)
            s.part[p][k] = NEUTRAL(APART ? p : 0);
    return s;
}

INLINE ROW(state) ROW(combine)(ROW(state) x, ROW(state) y)
{
    ROW(state) z;
    COMBINE(x, y, z);
    return z;
}

INLINE ROW(index) ROW(even)(int64_t first)
{
    ROW(index) from;
    for (int64_t k = 0; k < LANES; k++)
        from[k] = (INDEX)(2 * k + first);
    return from;
}

INLINE ROW(index) ROW(zipped)(int64_t first)
{
    ROW(index) from;
    for (int64_t k = 0; k < LANES; k++)
        from[k] = (INDEX)(first + k / 2 + (k % 2) * LANES);
    return from;
}

/* Elements side by side to real and imaginary parts, and back. */
INLINE ROW(state) ROW(apart)(ROW(state) s)
{
    ROW(state) z;
    z.part[0] = ROW(shuffled)(s.part[0], s.part[PARTS - 1], ROW(even)(0));
    z.part[PARTS - 1] = ROW(shuffled)(s.part[0], s.part[PARTS - 1], ROW(even)(1));
    return z;
}

INLINE ROW(state) ROW(joined)(ROW(state) s)
{
    ROW(state) z;
    z.part[0] = ROW(shuffled)(s.part[0], s.part[PARTS - 1], ROW(zipped)(0));
    z.part[PARTS - 1] = ROW(shuffled)(s.part[0], s.part[PARTS - 1], ROW(zipped)(LANES / 2));
    return z;
}

/* Whole vectors of elements from x on. */
INLINE ROW(state) ROW(load)(const T *x)
{
    ROW(state) s;
    if (PARTS == 1) {
        memcpy(&s.part[0], x, VECTOR_BYTES);
        return s;
    }
    ROW(vector) low, high;
    memcpy(&low, x, VECTOR_BYTES);
    memcpy(&high, x + LANES, VECTOR_BYTES);
    s.part[0] = low;
    s.part[PARTS - 1] = high;
    return APART ? ROW(apart)(s) : s;
}

INLINE void ROW(store)(T *z, ROW(state) s)
{
    if (PARTS == 1) {
        memcpy(z, &s.part[0], VECTOR_BYTES);
        return;
    }
    if (APART)
        s = ROW(joined)(s);
    memcpy(z, &s.part[0], VECTOR_BYTES);
    memcpy(z + LANES, &s.part[PARTS - 1], VECTOR_BYTES);
}

/* Fewer elements than lanes; the other lanes are neutral. */
INLINE ROW(state) ROW(load_few)(const T *x, int64_t count)
{
    T idle[VECTOR_BYTES / sizeof(T) * PARTS];
    for (int64_t k = 0; k < LANES * PARTS; k++)
        idle[k] = NEUTRAL(k % PARTS);
    ROW(state) s;
    for (int p = 0; p < PARTS; p++)
        s.part[p] = (ROW(vector))load_bytes(x + p * LANES, idle + p * LANES, bytes_of(count * PARTS - p * LANES, sizeof(T)));
    return APART ? ROW(apart)(s) : s;
}

INLINE void ROW(store_few)(T *z, ROW(state) s, int64_t count)
{
    if (APART)
        s = ROW(joined)(s);
    for (int p = 0; p < PARTS; p++)
        store_bytes(z + p * LANES, (bytes)s.part[p], bytes_of(count * PARTS - p * LANES, sizeof(T)));
}

/* The lanes combined pairwise into the first. */
INLINE ROW(state) ROW(folded)(ROW(state) s)
{
    for (int64_t width = LANES / 2; width > 0; width /= 2) {
        ROW(state) other;
        ROW(index) from;
        for (int64_t k = 0; k < LANES; k++)
            from[k] = (INDEX)(k < width ? k + width : k);
        for (int p = 0; p < PARTS; p++)
            other.part[p] = ROW(shuffled)(s.part[p], s.part[p], from);
        s = ROW(combine)(s, other);
    }
    return s;
}

/* Combine `count` positions x, x + by, ... (bytes) in `many` adjacent vectors; in groups if combining rounds. `few` is
 * the number of elements if there are fewer than lanes, otherwise 0. Prefetches `ahead` bytes further, unless 0. */
INLINE void ROW(summed)(const char *x, int64_t by, int64_t count, int many, int64_t few, int64_t ahead,
                        ROW(state) *total)
{
    int64_t group = ROUNDS ? GROUP : count;
    for (int u = 0; u < many; u++)
        total[u] = ROW(neutral)();
    for (int64_t first = 0; first < count; first += group) {
        int64_t last = first + group < count ? first + group : count;
        ROW(state) sum[INTERLEAVE];
        for (int u = 0; u < many; u++)
            sum[u] = ROW(neutral)();
        for (int64_t i = first; i < last; i++) {
            for (int64_t line = 0; ahead && line < STEP * PARTS * (int64_t)sizeof(T); line += LINE)
                __builtin_prefetch(x + i * by + ahead + line);
            for (int u = 0; u < many; u++)
                sum[u] = ROW(combine)(sum[u], few ? ROW(load_few)((const T *)(x + i * by), few)
                                                  : ROW(load)((const T *)(x + i * by) + u * LANES * PARTS));
        }
        for (int u = 0; u < many; u++)
            total[u] = ROW(combine)(total[u], sum[u]);
    }
}

/* One row of n elements becomes one element. */
static void ROW(trailing)(char **data, int64_t n, const int64_t *strides, int64_t m, const int64_t *rows)
{
    const T *x = (const T *)data[0];
    int64_t blocks = n / (BLOCK * STEP), main = n & -STEP;
    ROW(state) level[LEVELS], total = ROW(neutral)();
    for (int64_t number = 0; number <= blocks; number++) {
        int64_t start = number * BLOCK * STEP, end = number < blocks ? start + BLOCK * STEP : main;
        total = ROW(neutral)();
        if (start < end) {
            ROW(state) sum[INTERLEAVE];
            ROW(summed)((const char *)(x + start * PARTS), STEP * PARTS * (int64_t)sizeof(T), (end - start) / STEP,
                        INTERLEAVE, 0, 0, sum);
            for (int width = INTERLEAVE / 2; width > 0; width /= 2)
                for (int u = 0; u < width; u++)
                    sum[u] = ROW(combine)(sum[2 * u], sum[2 * u + 1]);
            total = sum[0];
        }
        if (number < blocks) {
            int k = 0;
            for (int64_t digits = number; digits & 1; digits >>= 1)
                total = ROW(combine)(level[k++], total);
            level[k] = total;
        }
    }
    for (int64_t i = main; i < n; i += LANES)
        total = ROW(combine)(total, n - i < LANES ? ROW(load_few)(x + i * PARTS, n - i) : ROW(load)(x + i * PARTS));
    for (int k = 0; blocks >> k; k++)
        if (blocks >> k & 1)
            total = ROW(combine)(level[k], total);
    total = ROW(folded)(PARTS == 2 && !APART ? ROW(apart)(total) : total);
    for (int p = 0; p < PARTS; p++)
        ((T *)data[1])[p] = total.part[p][0];
}

/* m rows of n elements become one; a few at a time, so that they stream. */
static void ROW(leading)(char **data, int64_t n, const int64_t *strides, int64_t m, const int64_t *rows)
{
    int64_t size = PARTS * (int64_t)sizeof(T), main = n & -STEP, band = ROUNDS ? GROUPED : COMBINED;
    for (int64_t first = 0; first < m; first += band) {
        int64_t count = m - first < band ? m - first : band;
        const char *x = data[0] + first * rows[0];
        ROW(state) sum[INTERLEAVE];
        for (int64_t i = 0; i < main; i += STEP) {
            T *z = (T *)(data[1] + i * size);
            /* The same columns of the next rows, a pattern that no hardware prefetcher detects. */
            ROW(summed)(x + i * size, rows[0], count, INTERLEAVE, 0, COMBINED * rows[0], sum);
            for (int u = 0; u < INTERLEAVE; u++)
                ROW(store)(z + u * LANES * PARTS,
                           first ? ROW(combine)(ROW(load)(z + u * LANES * PARTS), sum[u]) : sum[u]);
        }
        for (int64_t i = main; i < n; i += LANES) {
            T *z = (T *)(data[1] + i * size);
            if (n - i >= LANES) {
                ROW(summed)(x + i * size, rows[0], count, 1, 0, 0, sum);
                ROW(store)(z, first ? ROW(combine)(ROW(load)(z), sum[0]) : sum[0]);
                continue;
            }
            ROW(summed)(x + i * size, rows[0], count, 1, n - i, 0, sum);
            ROW(store_few)(z, first ? ROW(combine)(ROW(load_few)(z, n - i), sum[0]) : sum[0], n - i);
        }
    }
}

#undef LANES
#undef STEP
