/* Row kernels of reductions, compiled ahead of time. */
#ifndef TENFERRO_REDUCTIONS_H
#define TENFERRO_REDUCTIONS_H

#include "levels.h"

#include <stdint.h>

/* Over the trailing axis n elements become one; over the leading axis m rows, so many bytes apart, become one of n. */
typedef void tenferro_reducing(char **data, int64_t n, const int64_t *strides, int64_t m, const int64_t *rows);

struct tenferro_reduction {
    const char *name; /* as in "sum f64" */
    tenferro_reducing *trailing, *leading;
};

/* All of them; the last has no name. */
typedef const struct tenferro_reduction *tenferro_reduction_table(void);
TENFERRO_DECLARE(tenferro_reduction_table, tenferro_reductions)

#endif
