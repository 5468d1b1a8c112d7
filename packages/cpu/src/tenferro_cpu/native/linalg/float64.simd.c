/* Kernels of small.h for float64. */
#define REAL double
#define REAL_BYTES 8
#define PARTS 1
#include "linalg/kernels.h"

const struct small_kernels NAME(small_float64) = {KERNELS};
