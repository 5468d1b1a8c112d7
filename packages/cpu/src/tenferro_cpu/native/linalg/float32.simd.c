/* Kernels of small.h for float32. */
#define REAL float
#define REAL_BYTES 4
#define PARTS 1
#include "linalg/kernels.h"

const struct small_kernels NAME(small_float32) = {KERNELS};
