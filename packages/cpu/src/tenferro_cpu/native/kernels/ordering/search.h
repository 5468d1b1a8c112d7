/* Binary search of many values at once, for one vector level. */
#ifndef TENFERRO_SEARCH_H
#define TENFERRO_SEARCH_H

#include "kernels/ordering/keys.h"

struct search_kernels {
    /* Insertion point of each of `count` contiguous values in `n` ascending ones: before its equals, or after them. */
    void (*search[2][WIDE_TYPES])(const void *sorted, int64_t n, const void *values, int64_t count, int64_t *positions);
};

TENFERRO_DECLARE(const struct search_kernels, search_kernels)

#endif
