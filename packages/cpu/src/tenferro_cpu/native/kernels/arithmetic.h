/* Row kernels of arithmetic and comparison, compiled ahead of time. */
#ifndef TENFERRO_ARITHMETIC_H
#define TENFERRO_ARITHMETIC_H

#include "levels.h"

#include <stdint.h>

/* n elements; data holds the operands, then the result. No stride is read. */
typedef void tenferro_elementwise_row(char **data, int64_t n, const int64_t *strides);

struct tenferro_row {
    const char *name; /* as in "add f64" */
    tenferro_elementwise_row *arrays, *number, *reflected; /* of arrays; an array and a number; a number and an array */
};

/* All of them; the last has no name. */
typedef const struct tenferro_row *tenferro_row_table(void);
TENFERRO_DECLARE(tenferro_row_table, tenferro_rows)

#endif
