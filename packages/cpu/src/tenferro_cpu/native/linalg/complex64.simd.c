/* Kernels of small.h for complex64. */
#define REAL float
#define REAL_BYTES 4
#define PARTS 2
#include "linalg/kernels.h"

const struct small_kernels NAME(small_complex64) = {KERNELS};
