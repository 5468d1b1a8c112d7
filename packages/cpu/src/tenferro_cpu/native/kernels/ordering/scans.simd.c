/* Kernels of scans.h for one vector level. Elements are combined one after the other, as NumPy does, so bits are its. */
#include "kernels/ordering/scans.h"

/* Integers wrap, so they are combined without a sign (W). */
#define SCAN(name, T, W, op)                                                                            \
    static void name##_along(const char *x, int64_t n, int64_t stride, void *results, int64_t step)     \
    {                                                                                                   \
        T *z = results, total = *(const T *)x;                                                          \
        *z = total;                                                                                     \
        for (int64_t i = 1; i < n; i++) {                                                               \
            total = (T)((W)total op (W)*(const T *)(x + i * stride));                                   \
            z[i * step] = total;                                                                        \
        }                                                                                               \
    }                                                                                                   \
    static void name##_across(const void *row, const void *before, void *results, int64_t n)            \
    {                                                                                                   \
        const T *x = row, *y = before;                                                                  \
        T *restrict z = results;                                                                        \
        for (int64_t i = 0; i < n; i++)                                                                 \
            z[i] = (T)((W)y[i] op (W)x[i]);                                                             \
    }
#define BOTH(type, T, W)                                                                                \
    SCAN(sum_##type, T, W, +)                                                                           \
    SCAN(product_##type, T, W, *)
BOTH(f64, double, double)
BOTH(f32, float, float)
BOTH(i64, int64_t, uint64_t)
BOTH(i32, int32_t, uint32_t)
BOTH(u64, uint64_t, uint64_t)
BOTH(u32, uint32_t, uint32_t)

#define OF_TYPES(kind, f) {kind##_f64_##f, kind##_f32_##f, kind##_i64_##f, kind##_i32_##f, kind##_u64_##f, kind##_u32_##f}

const struct scan_kernels NAME(scan_kernels) = {
    .along = {OF_TYPES(sum, along), OF_TYPES(product, along)},
    .across = {OF_TYPES(sum, across), OF_TYPES(product, across)},
};
