/* Kernels of small.h for complex128. */
#define REAL double
#define REAL_BYTES 8
#define PARTS 2
#include "linalg/kernels.h"

const struct small_kernels NAME(small_complex128) = {KERNELS};
