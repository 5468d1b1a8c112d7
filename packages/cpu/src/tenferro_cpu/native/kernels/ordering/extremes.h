/* Positions of extremes, for one vector level. */
#ifndef TENFERRO_EXTREMES_H
#define TENFERRO_EXTREMES_H

#include "kernels/ordering/keys.h"

struct extreme_kernels {
    /* The position of the first largest of `n` neighbours, at least one; NaN counts as largest. Then the smallest. */
    int64_t (*along[2][WIDE_TYPES])(const void *x, int64_t n);
    /* The same for each of `columns` columns of so many rows, whose length is `stride` elements. */
    void (*across[2][WIDE_TYPES])(const void *x, int64_t rows, int64_t stride, int64_t columns, int64_t *positions);
};

TENFERRO_DECLARE(const struct extreme_kernels, extreme_kernels)

#endif
