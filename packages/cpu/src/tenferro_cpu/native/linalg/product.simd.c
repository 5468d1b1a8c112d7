/* Products of stacks of small matrices for one vector level; the compiler vectorises the loops over columns. */
#include "linalg/small.h"
#include "inline.h"

#include <stddef.h>
#include <string.h>

/* Rows of `columns` elements of a matrix, copied unless they are contiguous. */
#define IN_ROWS(T, name)                                                                                            \
    INLINE const T *name##_in_rows(const T *x, int64_t down, int64_t across, const int rows, const int columns, T *to) \
    {                                                                                                               \
        if (across == 1 && down == columns)                                                                         \
            return x;                                                                                               \
        for (int i = 0; i < rows; i++)                                                                              \
            for (int j = 0; j < columns; j++)                                                                       \
                to[i * columns + j] = x[i * down + j * across];                                                     \
        return to;                                                                                                  \
    }

#define ONE_PRODUCT(T, name)                                                                                        \
    INLINE void name##_one(const T *x, const T *y, T *to, const int m, const int n, const int k)                    \
    {                                                                                                               \
        for (int i = 0; i < m; i++) {                                                                               \
            T sums[SMALL_MOST];                                                                                     \
            for (int j = 0; j < n; j++)                                                                             \
                sums[j] = x[i * k] * y[j];                                                                          \
            for (int h = 1; h < k; h++)                                                                             \
                for (int j = 0; j < n; j++)                                                                         \
                    sums[j] += x[i * k + h] * y[h * n + j];                                                         \
            for (int j = 0; j < n; j++)                                                                             \
                to[i * n + j] = sums[j];                                                                            \
        }                                                                                                           \
    }

#define ALL_PRODUCTS(T, name)                                                                                       \
    INLINE void name##_all(const struct small_stack *s, const T *x, const T *y, T *to, const int m, const int n,    \
                           const int k)                                                                             \
    {                                                                                                               \
        T left[SMALL_MOST * SMALL_MOST], right[SMALL_MOST * SMALL_MOST];                                            \
        for (int64_t b = 0; b < s->count; b++, x += s->x[0], y += s->y[0], to += m * n)                             \
            name##_one(name##_in_rows(x, s->x[1], s->x[2], m, k, left),                                             \
                       name##_in_rows(y, s->y[1], s->y[2], k, n, right), to, m, n, k);                              \
    }

#define PRODUCTS(T, name)                                                                                           \
    IN_ROWS(T, name)                                                                                                \
    ONE_PRODUCT(T, name)                                                                                            \
    ALL_PRODUCTS(T, name)                                                                                           \
    static void NAME(name)(const struct small_stack *s, const void *x, const void *y, void *to)                     \
    {                                                                                                               \
        const int m = (int)s->m, n = (int)s->n, k = (int)s->k, square = m == n && n == k;                           \
        if (square && m == 2)                                                                                       \
            name##_all(s, x, y, to, 2, 2, 2);                                                                       \
        else if (square && m == 3)                                                                                  \
            name##_all(s, x, y, to, 3, 3, 3);                                                                       \
        else if (square && m == 4)                                                                                  \
            name##_all(s, x, y, to, 4, 4, 4);                                                                       \
        else                                                                                                        \
            name##_all(s, x, y, to, m, n, k);                                                                       \
    }

PRODUCTS(float, product_f)
PRODUCTS(double, product_d)
PRODUCTS(_Complex float, product_F)
PRODUCTS(_Complex double, product_D)

const struct small_products NAME(small_products) = {
    {NAME(product_f), NAME(product_d), NAME(product_F), NAME(product_D)},
};
