/* Decompositions and equations of stacks of matrices of at most 8 rows and columns, one matrix in each lane of vectors.
 *
 * Every kernel reads and writes stacks without gaps, matrices in rows. It reports 0, or 1 where something is out of the
 * ordinary: another size, entries that are not finite, a zero pivot, a matrix that is not positive definite, values
 * that are equal where `flags` say that they must not be. Whatever was written is worth nothing then, and slower code
 * for any matrix finds out what to say. */
#ifndef TENFERRO_SMALL_H
#define TENFERRO_SMALL_H

#include "levels.h"

#include <stdint.h>

enum { SMALL_MOST = 8, SMALL_KERNELS = 15, SMALL_TYPES = 4 };

/* Flags of `solve` and `solve_triangular`. */
enum { SMALL_ADJOINT = 1, SMALL_LOWER = 2, SMALL_UNIT = 4 };

/* In Fortran's convention, for generated code: numbers by their addresses.
 *
 * rows, columns: of each matrix; the columns of right sides where there are such.
 * p: for det x, det; slogdet x, sign, logarithm; inv x, inverse; cholesky x, L; solve and solve_triangular a, b, x;
 *    qr x, Q, R; qr_r x, R; eigh x, w, V; eigvalsh x, w; svd x, U, S, Vh; svdvals x, S; exp x,
 *    exponential; exp_term x, e, its derivative in the direction e; lu x, packed factors, exchanges, order of the rows
 *    (both int64). */
typedef void small_kernel(const int64_t *count, const int64_t *rows, const int64_t *columns, const int64_t *flags,
                          const void *p0, void *p1, void *p2, void *p3, int64_t *report);

/* Those of one dtype in the order of the list above. */
struct small_kernels {
    small_kernel *of[SMALL_KERNELS];
};

TENFERRO_DECLARE(const struct small_kernels, small_float32)
TENFERRO_DECLARE(const struct small_kernels, small_float64)
TENFERRO_DECLARE(const struct small_kernels, small_complex64)
TENFERRO_DECLARE(const struct small_kernels, small_complex128)

/* Products of m x k by k x n matrices, and distances from matrix to matrix, from row to row and from column to column,
 * in elements; results lie in rows without gaps. */
struct small_stack {
    int64_t count, m, n, k, x[3], y[3];
};

struct small_products {
    void (*of[SMALL_TYPES])(const struct small_stack *stack, const void *x, const void *y, void *to);
};

TENFERRO_DECLARE(const struct small_products, small_products)

#endif
