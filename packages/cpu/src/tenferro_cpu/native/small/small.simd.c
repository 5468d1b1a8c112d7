/* Kernels of small.h for one vector level: everything is included once for each dtype. */
#include "small/small.h"

#include <math.h>
#include <stddef.h>

#define CHAR f
#define REAL float
#define REAL_BYTES 4
#define PARTS 1
#include "small/types.h"
#undef CHAR
#undef PARTS

#define CHAR F
#define PARTS 2
#include "small/types.h"
#undef CHAR
#undef REAL
#undef REAL_BYTES
#undef PARTS

#define CHAR d
#define REAL double
#define REAL_BYTES 8
#define PARTS 1
#include "small/types.h"
#undef CHAR
#undef PARTS

#define CHAR D
#define PARTS 2
#include "small/types.h"
#undef CHAR

#define OF_TYPE(kernel, letter) TENFERRO_JOIN(TENFERRO_JOIN(kernel##_kernel, letter), LEVEL)
#define ROW(kernel) {OF_TYPE(kernel, f), OF_TYPE(kernel, d), OF_TYPE(kernel, F), OF_TYPE(kernel, D)}

const struct small_kernels NAME(small_kernels) = {{
    ROW(det), ROW(slogdet), ROW(inv), ROW(cholesky), ROW(solve), ROW(triangular), ROW(qr), ROW(qr_r), ROW(eigh),
    ROW(eigvalsh), ROW(svd), ROW(svdvals), ROW(exp), ROW(exp_term),
    ROW(lu),
}};
