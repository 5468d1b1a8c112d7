/* Elements as signed 64-bit keys of the same order, and words that hold a key and a position. */
#ifndef TENFERRO_KEYS_H
#define TENFERRO_KEYS_H

#include "levels.h"

#include <stdint.h>

/* The types with keys, wide ones first. All NaNs share one key, above those of all numbers; both zeros share one. */
enum key_type {
    KEY_F64, KEY_F32, KEY_I64, KEY_I32, KEY_U64, KEY_U32, WIDE_TYPES,
    KEY_I16 = WIDE_TYPES, KEY_I8, KEY_U16, KEY_U8, KEY_TYPES
};

/* The range of keys, and the bits in which they differ from the first of them. */
struct key_range {
    int64_t low, high;
    uint64_t differing;
};

/* A word is ``(key - low) >> drop << position_bits | position``: words without equals, in the order of keys. Where
 * ``drop`` cuts off bits that differ, words whose keys are neighbours may be in the wrong order. */
struct packing {
    int64_t low;
    int drop, position_bits, exact;
};

struct key_kernels {
    /* Keys of `n` elements `stride` bytes apart; `flip` of all ones reverses their order, but NaN stays last. */
    void (*keys[KEY_TYPES])(const char *x, int64_t n, int64_t stride, int64_t flip, int64_t *keys);
    /* Widen a range by some keys. */
    void (*widen)(const int64_t *keys, int64_t n, struct key_range *range);
    /* The words of keys whose positions begin with `first`. */
    void (*pack)(const int64_t *keys, int64_t n, int64_t first, const struct packing *packing, uint64_t *words);
    /* The first position from `from` on at which a sorted word has the key of the next one; `n` - 1 if there is none. */
    int64_t (*next_tie)(const uint64_t *words, int64_t from, int64_t n, int position_bits);
    /* Write the positions in sorted words, `stride` bytes apart. */
    void (*positions)(const uint64_t *words, int64_t n, int position_bits, char *positions, int64_t stride);
};

TENFERRO_DECLARE(const struct key_kernels, key_kernels)

#endif
