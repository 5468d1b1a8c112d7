/* Kernels of search.h for one vector level. Several searches run at once to hide the latency of their reads. */
#include "kernels/ordering/search.h"
#include "inline.h"

enum { SIDE_BY_SIDE = 32 };

/* NaN comes last. `before`, an expression of x and y, tells whether y belongs after the sorted element x. */
#define SEARCH(name, T, before)                                                                         \
    INLINE void name##_some(const T *sorted, int64_t n, const T *values, int64_t *positions, const int count)\
    {                                                                                                   \
        int64_t base[SIDE_BY_SIDE] = {0};                                                               \
        for (int64_t rest = n; rest > 1; rest -= rest / 2) {                                            \
            const int64_t half = rest / 2;                                                              \
            const T *middle = sorted + half - 1;                                                        \
            for (int l = 0; l < count; l++) {                                                           \
                const T x = middle[base[l]], y = values[l];                                             \
                base[l] += -(int64_t)(before) & half;                                                   \
            }                                                                                           \
        }                                                                                               \
        for (int l = 0; l < count; l++) {                                                               \
            const T x = sorted[base[l]], y = values[l];                                                 \
            positions[l] = base[l] + (int64_t)(before);                                                 \
        }                                                                                               \
    }                                                                                                   \
    static void name(const void *data, int64_t n, const void *wanted, int64_t count, int64_t *positions)\
    {                                                                                                   \
        const T *sorted = data, *values = wanted;                                                       \
        int64_t i = 0;                                                                                  \
        for (; i + SIDE_BY_SIDE <= count && n > 0; i += SIDE_BY_SIDE)                                   \
            name##_some(sorted, n, values + i, positions + i, SIDE_BY_SIDE);                            \
        for (; i < count && n > 0; i++)                                                                 \
            name##_some(sorted, n, values + i, positions + i, 1);                                       \
        for (; i < count; i++)                                                                          \
            positions[i] = 0;                                                                           \
    }

#define FLOAT(type, T)                                                                                  \
    SEARCH(left_##type, T, ((x < y) | ((y != y) & (x == x))))                                           \
    SEARCH(right_##type, T, ((x <= y) | (y != y)))
#define INTEGER(type, T)                                                                                \
    SEARCH(left_##type, T, (x < y))                                                                     \
    SEARCH(right_##type, T, (x <= y))
FLOAT(f64, double)
FLOAT(f32, float)
INTEGER(i64, int64_t)
INTEGER(i32, int32_t)
INTEGER(u64, uint64_t)
INTEGER(u32, uint32_t)

#define OF_TYPES(f) {f##_f64, f##_f32, f##_i64, f##_i32, f##_u64, f##_u32}

const struct search_kernels NAME(search_kernels) = {.search = {OF_TYPES(left), OF_TYPES(right)}};
