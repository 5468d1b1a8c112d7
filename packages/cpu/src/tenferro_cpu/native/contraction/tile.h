/* The tiles of matrix products: the interface of tile.simd.c for product.simd.c. */
#ifndef TENFERRO_CONTRACTION_TILE_H
#define TENFERRO_CONTRACTION_TILE_H

#include <stdint.h>

/* Where rows and columns come from: both from packed panels, rows or both directly from memory. */
enum { PACKED, DIRECT_ROWS, DIRECT, WAYS };

struct tile {
    int64_t k; /* summed indices, at least one */
    const char *a; /* the panel of rows; or the base address, and the offsets of rows and summed indices */
    const int64_t *row_a, *inner_a;
    const char *b; /* the same of columns */
    const int64_t *column_b, *inner_b;
    char *c; /* base address of the result's offsets */
    const int64_t *row_c, *column_c;
    int64_t rows; /* valid rows and columns; the last vector may be partial */
    int64_t flags;
    const char *next; /* start of the prefetched memory, */
    int64_t far; /* and its bytes per summed index */
};

typedef void tile_function(const struct tile *tile);

#endif
