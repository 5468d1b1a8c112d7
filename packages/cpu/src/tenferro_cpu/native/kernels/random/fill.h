/* Fills memory with random numbers, for one vector level. */
#ifndef TENFERRO_RANDOM_FILL_H
#define TENFERRO_RANDOM_FILL_H

#include "levels.h"

#include <stdint.h>

/* Write `n` numbers of the stream of `key`, starting at position `start`. */
typedef void random_fill(uint64_t key, uint64_t start, int64_t n, void *out);

/* The same for a distribution with a separate shape parameter for each number. */
typedef void random_fill_shaped(uint64_t key, uint64_t start, int64_t n, const double *shapes, double *out);

struct random_kernels {
    random_fill *bits64, *bits32, *bits16, *bits8;
    random_fill *uniform64, *uniform32, *normal64, *normal32, *exponential64, *exponential32;
    random_fill_shaped *log_gamma;
};

TENFERRO_DECLARE(const struct random_kernels, random_kernels)

#endif
