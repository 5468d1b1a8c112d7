/* The program that fills tables: one `struct table` after the other, as _tables.py writes them. */
#ifndef TENFERRO_CONTRACTION_TABLES_H
#define TENFERRO_CONTRACTION_TABLES_H

#include <stdint.h>

enum { TABLE_OFFSETS, TABLE_FLAGS, TABLE_TILES };

struct table {
    int64_t kind, words; /* of this entry of the program */
    int64_t to; /* byte offset in the memory of the tables */
    union {
        struct offsets {
            int64_t count;
            struct axis {
                int64_t size, stride;
            } axes[]; /* the innermost first */
        } offsets;
        struct flags {
            int64_t of; /* byte offset of the table of offsets */
            int64_t count; /* its length */
            int64_t width, step; /* offsets per block; distance of consecutive offsets of a contiguous block */
            int64_t vectors; /* blocks of one tile */
        } flags;
    };
};

void contraction_fill_tables(const int64_t *program, int64_t tables, char *room);

#endif
