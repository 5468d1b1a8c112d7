/* Packing of operands into panels: what product.simd.c asks pack.simd.c to do. */
#ifndef TENFERRO_CONTRACTION_PACK_H
#define TENFERRO_CONTRACTION_PACK_H

#include <stdint.h>

/* A block of rows: as many as a vector has elements (or of columns: as a tile has). */
struct block {
    const char *from; /* where offsets begin */
    const int64_t *row_at, *inner_at; /* offsets of rows and summed indices */
    const uint8_t *inner_flags; /* which blocks of summed indices are contiguous */
    int64_t flags;
    int64_t rows, inner; /* rows that there are, at most a block; summed indices */
    char *to;
    int64_t step; /* bytes from one summed index to the next in the panel */
};

#endif
