/* Fills the tables of byte offsets and flags that step records point to, from a short program (_tables.py). */
#include "tables.h"

#include <string.h>

#include "step.h"

/* All combinations: each axis, from the innermost outward, repeats the offsets so far, shifted by its stride. */
static void fill_offsets(const struct offsets *given, int64_t *to)
{
    int64_t size = 1;
    to[0] = 0;
    for (const struct axis *axis = given->axes; axis < given->axes + given->count; axis++) {
        for (int64_t i = 1; i < axis->size; i++)
            for (int64_t j = 0; j < size; j++)
                to[i * size + j] = to[j] + i * axis->stride;
        size *= axis->size;
    }
}

/* Whether offsets first, first + 1, ... below end are `step` apart. */
static int contiguous(const int64_t *offsets, int64_t first, int64_t end, int64_t step)
{
    for (int64_t i = first + 1; i < end; i++)
        if (offsets[i] - offsets[i - 1] != step)
            return 0;
    return 1;
}

/* Whether each block is contiguous; the last may be shorter. */
static void fill_flags(const struct flags *given, const int64_t *offsets, uint8_t *to)
{
    for (int64_t first = 0; first < given->count; first += given->width)
        *to++ = (uint8_t)contiguous(offsets, first, smaller(first + given->width, given->count), given->step);
}

/* How each tile of rows is stored: 0 for whole contiguous vectors, otherwise which of its vectors are contiguous. */
static void fill_tiles(const struct flags *given, const int64_t *offsets, uint8_t *to)
{
    const int64_t width = given->width, rows = width * given->vectors;
    for (int64_t tile = 0; tile < given->count; tile += rows) {
        int bits = 0;
        for (int64_t r = 0; r < given->vectors; r++) {
            const int64_t first = tile + r * width;
            bits |= contiguous(offsets, first, smaller(first + width, given->count), given->step) << r;
        }
        const int ragged = given->count % width && tile + rows >= given->count;
        *to++ = ragged || bits != (1 << given->vectors) - 1 ? (uint8_t)(SCATTER | bits * CONTIGUOUS) : 0;
    }
}

void contraction_fill_tables(const int64_t *program, int64_t tables, char *room)
{
    for (; tables > 0; tables--) {
        const struct table *table = (const struct table *)program;
        char *to = room + table->to;
        program += table->words;
        if (table->kind == TABLE_OFFSETS)
            fill_offsets(&table->offsets, (int64_t *)to);
        else if (table->kind == TABLE_FLAGS)
            fill_flags(&table->flags, (const int64_t *)(room + table->flags.of), (uint8_t *)to);
        else
            fill_tiles(&table->flags, (const int64_t *)(room + table->flags.of), (uint8_t *)to);
    }
}
