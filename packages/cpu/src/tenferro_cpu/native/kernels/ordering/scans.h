/* Cumulative sums and products, for one vector level. */
#ifndef TENFERRO_SCANS_H
#define TENFERRO_SCANS_H

#include "kernels/ordering/keys.h"

enum scan_kind { SCAN_SUM, SCAN_PRODUCT, SCAN_KINDS };

struct scan_kernels {
    /* Scan `n` elements `stride` bytes apart, the first ones first; results are `step` elements apart, 1 or -1. */
    void (*along[SCAN_KINDS][WIDE_TYPES])(const char *x, int64_t n, int64_t stride, void *z, int64_t step);
    /* Combine the elements of two rows, which is one step of scans across rows. */
    void (*across[SCAN_KINDS][WIDE_TYPES])(const void *x, const void *before, void *z, int64_t n);
};

TENFERRO_DECLARE(const struct scan_kernels, scan_kernels)

#endif
