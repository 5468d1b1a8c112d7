/* Packing of operands into panels: the interface of pack.simd.c for product.simd.c. */
#ifndef TENFERRO_CONTRACTION_PACK_H
#define TENFERRO_CONTRACTION_PACK_H

#include <stdint.h>

/* A block of rows: as many as a vector has elements (or of columns: as a tile has). */
struct block {
    const char *from; /* base address of the offsets */
    const int64_t *row_at, *inner_at; /* offsets of rows and summed indices */
    const uint8_t *inner_flags; /* which blocks of summed indices are contiguous */
    int64_t flags;
    int64_t rows, inner; /* number of rows, at most a block; number of summed indices */
    char *to;
    int64_t step; /* bytes between summed indices in the panel */
};

#endif
