/* Kernels of extremes.h for one vector level; the compiler vectorises the loops over lanes. */
#include "kernels/ordering/extremes.h"
#include "kernels/ordering/float_keys.h"

enum { BLOCK = 4096, SHORT = 512, FEW = 16, COLUMNS = 128, LOOK = 32, WIDTH = 64, NARROW = 16 };

/* The position of the first element that equals `best`, from `start` on; there is one. I is as wide as T. */
#define SEARCH(name, T, I)                                                                              \
    INLINE int64_t name##_search(const T *x, int64_t start, int64_t n, T best)                          \
    {                                                                                                   \
        for (; start + LOOK <= n; start += LOOK) {                                                      \
            I first = LOOK;                                                                             \
            for (int l = 0; l < LOOK; l++) {                                                            \
                const I here = x[start + l] == best ? (I)l : LOOK;                                      \
                first = here < first ? here : first;                                                    \
            }                                                                                           \
            if (first < LOOK)                                                                           \
                return start + first;                                                                   \
        }                                                                                               \
        while (x[start] != best)                                                                        \
            start++;                                                                                    \
        return start;                                                                                   \
    }

#define HALVE(half, beyond)                                                                             \
    for (int l = 0; 2 * half <= width && l < half; l++)                                                 \
        lanes[l] = lanes[l + half] beyond lanes[l] ? lanes[l + half] : lanes[l];

/* The extreme of some neighbours and `best`; `odd` is set if one of them is NaN. */
#define OF_BLOCK(name, T, I, beyond)                                                                    \
    INLINE T name##_of_block(const T *x, int64_t n, T best, int *odd, const int width)                  \
    {                                                                                                   \
        T lanes[WIDTH];                                                                                 \
        I unequal[WIDTH], some = 0;                                                                     \
        int64_t i = 0;                                                                                  \
        for (int l = 0; l < width; l++) {                                                               \
            lanes[l] = best;                                                                            \
            unequal[l] = 0;                                                                             \
        }                                                                                               \
        for (; i + width <= n; i += width)                                                              \
            for (int l = 0; l < width; l++) {                                                           \
                lanes[l] = x[i + l] beyond lanes[l] ? x[i + l] : lanes[l];                              \
                unequal[l] |= -(I)(x[i + l] != x[i + l]);                                               \
            }                                                                                           \
        for (; i < n; i++) {                                                                            \
            best = x[i] beyond best ? x[i] : best;                                                      \
            some |= x[i] != x[i];                                                                       \
        }                                                                                               \
        for (int l = 0; l < width; l++)                                                                 \
            some |= unequal[l];                                                                         \
        *odd = some != 0;                                                                               \
        HALVE(32, beyond) HALVE(16, beyond) HALVE(8, beyond) HALVE(4, beyond) HALVE(2, beyond)          \
        HALVE(1, beyond)                                                                                \
        return lanes[0] beyond best ? lanes[0] : best;                                                  \
    }

/* The first block that contains the extreme is searched again for its position. */
#define BLOCKWISE(name, T, I, beyond)                                                                   \
    SEARCH(name, T, I)                                                                                  \
    OF_BLOCK(name, T, I, beyond)                                                                        \
    INLINE int64_t name##_of_blocks(const T *x, int64_t n, const int width)                             \
    {                                                                                                   \
        T best = x[0];                                                                                  \
        int64_t start = 0;                                                                              \
        for (int64_t i = 0; i < n; i += BLOCK) {                                                        \
            int odd = 0;                                                                                \
            const T found = name##_of_block(x + i, n - i < BLOCK ? n - i : BLOCK, best, &odd, width);   \
            for (int64_t j = i; odd; j++)                                                               \
                if (x[j] != x[j])                                                                       \
                    return j;                                                                           \
            if (found beyond best) {                                                                    \
                best = found;                                                                           \
                start = i;                                                                              \
            }                                                                                           \
        }                                                                                               \
        return name##_search(x, start, n, best);                                                        \
    }

/* The same of a few elements, which stops at NaN. */
#define OF_FEW(name, T, beyond)                                                                         \
    INLINE int64_t name##_of_few(const T *x, int64_t n)                                                 \
    {                                                                                                   \
        int64_t at = 0;                                                                                 \
        T best = x[0];                                                                                  \
        for (int64_t i = 0; i < n; i++) {                                                               \
            if (x[i] != x[i])                                                                           \
                return i;                                                                               \
            at = x[i] beyond best ? i : at;                                                             \
            best = x[i] beyond best ? x[i] : best;                                                      \
        }                                                                                               \
        return at;                                                                                      \
    }

#define INTEGERS(name, T, I, beyond)                                                                    \
    OF_FEW(name, T, beyond)                                                                             \
    BLOCKWISE(name, T, I, beyond)                                                                       \
    static int64_t name(const void *x, int64_t n)                                                       \
    {                                                                                                   \
        if (n < FEW)                                                                                    \
            return name##_of_few(x, n);                                                                 \
        return n < SHORT ? name##_of_blocks(x, n, NARROW) : name##_of_blocks(x, n, WIDTH);              \
    }

/* Keys have no NaN, and the largest of their reversed order is that of the smallest number. */
#define FLOATS(name, type, largest_key, T, I, flip, beyond)                                             \
    OF_FEW(name, T, beyond)                                                                             \
    BLOCKWISE(name, T, I, beyond)                                                                       \
    static int64_t name(const void *data, int64_t n)                                                    \
    {                                                                                                   \
        const T *x = data;                                                                              \
        I keys[SHORT];                                                                                  \
        if (n < FEW)                                                                                    \
            return name##_of_few(x, n);                                                                 \
        if (n >= SHORT)                                                                                 \
            return name##_of_blocks(x, n, WIDTH);                                                       \
        for (int64_t i = 0; i < n; i++)                                                                 \
            keys[i] = key_##type(x[i], flip);                                                           \
        return largest_key(keys, n);                                                                    \
    }

INTEGERS(largest_i64, int64_t, int64_t, >)
INTEGERS(smallest_i64, int64_t, int64_t, <)
INTEGERS(largest_i32, int32_t, int32_t, >)
INTEGERS(smallest_i32, int32_t, int32_t, <)
INTEGERS(largest_u64, uint64_t, int64_t, >)
INTEGERS(smallest_u64, uint64_t, int64_t, <)
INTEGERS(largest_u32, uint32_t, int32_t, >)
INTEGERS(smallest_u32, uint32_t, int32_t, <)
FLOATS(largest_f64, f64, largest_i64, double, int64_t, 0, >)
FLOATS(smallest_f64, f64, largest_i64, double, int64_t, -1, <)
FLOATS(largest_f32, f32, largest_i32, float, int32_t, 0, >)
FLOATS(smallest_f32, f32, largest_i32, float, int32_t, -1, <)

#define ACROSS(name, T, beyond)                                                                         \
    static void name(const void *data, int64_t rows, int64_t stride, int64_t columns, int64_t *positions) \
    {                                                                                                   \
        for (int64_t from = 0; from < columns; from += COLUMNS) {                                       \
            const int64_t n = columns - from < COLUMNS ? columns - from : COLUMNS;                      \
            const T *x = (const T *)data + from;                                                        \
            int64_t *restrict at = positions + from;                                                    \
            T best[COLUMNS];                                                                            \
            for (int64_t j = 0; j < n; j++) {                                                           \
                best[j] = x[j];                                                                         \
                at[j] = 0;                                                                              \
            }                                                                                           \
            for (int64_t i = 1; i < rows; i++) {                                                        \
                const T *restrict row = x + i * stride;                                                 \
                for (int64_t j = 0; j < n; j++) {                                                       \
                    const int better = (row[j] beyond best[j]) | ((row[j] != row[j]) & (best[j] == best[j])); \
                    best[j] = better ? row[j] : best[j];                                                \
                    at[j] = better ? i : at[j];                                                         \
                }                                                                                       \
            }                                                                                           \
        }                                                                                               \
    }

#define BOTH_ACROSS(type, T)                                                                            \
    ACROSS(largest_across_##type, T, >)                                                                 \
    ACROSS(smallest_across_##type, T, <)
BOTH_ACROSS(f64, double)
BOTH_ACROSS(f32, float)
BOTH_ACROSS(i64, int64_t)
BOTH_ACROSS(i32, int32_t)
BOTH_ACROSS(u64, uint64_t)
BOTH_ACROSS(u32, uint32_t)

#define OF_TYPES(f) {f##_f64, f##_f32, f##_i64, f##_i32, f##_u64, f##_u32}

const struct extreme_kernels NAME(extreme_kernels) = {
    .along = {OF_TYPES(largest), OF_TYPES(smallest)},
    .across = {OF_TYPES(largest_across), OF_TYPES(smallest_across)},
};
