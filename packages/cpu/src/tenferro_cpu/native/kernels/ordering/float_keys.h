/* Floating-point numbers as integers of the same order. */
#ifndef TENFERRO_FLOAT_KEYS_H
#define TENFERRO_FLOAT_KEYS_H

#include "inline.h"

#include <stdint.h>
#include <string.h>

/* The bits of positive numbers have the order of the numbers, those of negative ones the reverse order. Adding 0.0 maps
 * -0.0 to 0.0. */
#define FLOAT_KEY(type, T, I, not_a_number)                                                             \
    INLINE I key_##type(T x, int64_t flip)                                                        \
    {                                                                                                   \
        const T sum = x + (T)0.0;                                                                       \
        I bits;                                                                                         \
        memcpy(&bits, &sum, sizeof bits);                                                               \
        bits ^= (I)((bits >> (8 * sizeof(I) - 1)) & (I)(UINT64_MAX >> (65 - 8 * sizeof(I))));           \
        return x != x ? (I)(not_a_number) : (I)(bits ^ (I)flip);                                           \
    }
FLOAT_KEY(f64, double, int64_t, INT64_C(0x7FF8000000000000))
FLOAT_KEY(f32, float, int32_t, INT32_C(0x7FC00000))

#endif
