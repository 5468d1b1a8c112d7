/* Products of stacks of matrices that are laid out row after row, or as their transposes. */
#ifndef TENFERRO_PRODUCT_H
#define TENFERRO_PRODUCT_H

#include "levels.h"

#include <stdint.h>

enum { PRODUCT_SMALL = 8 }; /* maximum rows, columns and terms of a small matrix */

struct product {
    int64_t count, rows, inner, columns;
    int64_t swap_left, swap_right; /* whether each matrix of an operand is stored as its transpose */
};

typedef void product_kernel(const struct product *p, const void *left, const void *right, void *out);

enum product_kind { PRODUCT_F32, PRODUCT_F64, PRODUCT_C64, PRODUCT_C128, PRODUCT_KINDS };

struct product_kernels {
    product_kernel *small[PRODUCT_KINDS];
};

TENFERRO_DECLARE(const struct product_kernels, product_kernels)

#endif
