/* The tiles of matrix products: what product.simd.c asks tile.simd.c to do. */
#ifndef TENFERRO_CONTRACTION_TILE_H
#define TENFERRO_CONTRACTION_TILE_H

#include <stdint.h>

/* Where rows and columns come from: both from packed panels, rows or both directly from memory. */
enum { PACKED, DIRECT_ROWS, DIRECT, WAYS };

struct tile {
    int64_t k; /* summed indices, at least one */
    const char *a; /* the panel of rows; or where offsets begin, and the offsets of rows and summed indices */
    const int64_t *row_a, *inner_a;
    const char *b; /* the same of columns */
    const int64_t *column_b, *inner_b;
    char *c; /* where offsets of the result begin */
    const int64_t *row_c, *column_c;
    int64_t rows; /* that count; the last vector may hold fewer than it has room for */
    int64_t flags;
    const char *next; /* what is prefetched from here, */
    int64_t far; /* so many bytes for each summed index */
};

typedef void tile_function(const struct tile *tile);

#endif
