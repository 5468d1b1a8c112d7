/* The kernels of one dtype; see lanes.h. */
#include "linalg/small.h"

#include <math.h>
#include <stddef.h>

#include "linalg/lanes.h"

#include "linalg/equations.h"
#include "linalg/exponential.h"
#include "linalg/reflections.h"
#include "linalg/rotations.h"

#define ARGUMENTS                                                                                       \
    const int64_t *count, const int64_t *rows, const int64_t *columns, const int64_t *flags, const void *p0, void *p1, \
        void *p2, void *p3, int64_t *report

/* A kernel for N rows: calls for each block of matrices, until one reports an exceptional case. */
#define SIZED(name, how, n, size, call)                                                                 \
    static how int name##_##n(ARGUMENTS)                                                         \
    {                                                                                                   \
        const REAL *x = p0;                                                                             \
        REAL *y = p1, *z = p2, *t = p3;                                                                 \
        const int N = (int)(size), M = (int)*columns, F = (int)*flags;                                  \
        int bad = 0;                                                                                    \
        (void)y, (void)z, (void)t, (void)M, (void)F, (void)rows, (void)report;                          \
        for (int64_t at = 0; at < *count && !bad; at += LANES) {                                        \
            const int64_t left = *count - at;                                                           \
            bad = call;                                                                                 \
        }                                                                                               \
        return bad;                                                                                     \
    }

/* A kernel: handles small matrices; all others are reported as exceptional. */
#define CASE(name, n) name##_##n(count, rows, columns, flags, p0, p1, p2, p3, report)
#define DISPATCH(name, cases)                                                                           \
    static void name##_kernel(ARGUMENTS)                                                         \
    {                                                                                                   \
        int bad = *rows < 1 || *rows > SMALL_MOST || *columns < 1 || *columns > SMALL_MOST;             \
        if (!bad)                                                                                       \
            bad = cases;                                                                                \
        *report = bad;                                                                                  \
    }

/* The number of rows is a compile-time constant if it is small and `alike`. */
#define KERNEL_IF(name, alike, sized, other)                                                             \
    SIZED(name, FLAT, 2, 2, sized)                                                                      \
    SIZED(name, FLAT, 3, 3, sized)                                                                      \
    SIZED(name, FLAT, 4, 4, sized)                                                                      \
    SIZED(name, , any, *rows, other)                                                                     \
    DISPATCH(name, !(alike)     ? CASE(name, any)                                                       \
                   : *rows == 2 ? CASE(name, 2)                                                         \
                   : *rows == 3 ? CASE(name, 3)                                                         \
                   : *rows == 4 ? CASE(name, 4)                                                         \
                                : CASE(name, any))
#define KERNEL(name, call) KERNEL_IF(name, 1, call, call)
#define OBLONG(name, call) KERNEL_IF(name, *rows == *columns, call(N), call(M))

/* Exponentials choose a size in their parts; only two by two matrices stay in registers from one to the next. */
#define EXPONENTIAL(name, call)                                                                         \
    SIZED(name, FLAT, 2, 2, call)                                                                       \
    SIZED(name, , any, *rows, call)                                                                     \
    DISPATCH(name, *rows == 2 ? CASE(name, 2) : CASE(name, any))

/* Numbers of the matrix `at`, of `n` elements, or of `n` real numbers. */
#define AT(p, n) ((p) + at * (n) * PARTS)
#define REAL_AT(p, n) ((p) + at * (n))

KERNEL(det, det(AT(x, N * N), AT(y, 1), left, N))
KERNEL(slogdet, slogdet(AT(x, N * N), AT(y, 1), REAL_AT(z, 1), left, N))
KERNEL(inv, inv(AT(x, N * N), AT(y, N * N), left, N))
KERNEL(cholesky, cholesky(AT(x, N * N), AT(y, N * N), left, N))
KERNEL(solve, solve(AT(x, N * N), AT((const REAL *)y, N * M), AT(z, N * M), left, N, M, F))
KERNEL(triangular, triangular(AT(x, N * N), AT((const REAL *)y, N * M), AT(z, N * M), left, N, M, F))
EXPONENTIAL(exp, exponential(AT(x, N * N), NULL, AT(y, N * N), left, N))
EXPONENTIAL(exp_term, M != N || exponential(AT(x, N * N), AT((const REAL *)y, N * N), AT(z, N * N), left, N))
KERNEL(eigh, eigh(AT(x, N * N), REAL_AT(y, N), AT(z, N * N), left, N))
KERNEL(eigvalsh, eigh(AT(x, N * N), REAL_AT(y, N), NULL, left, N))
#define RANK(n, m) ((n) < (m) ? (n) : (m))
#define LU(m)                                                                                           \
    factor(AT(x, N * (m)), AT(y, N * (m)), REAL_AT((int64_t *)p2, RANK(N, m)), REAL_AT((int64_t *)p3, N), left, \
                  N, m)
#define QR(m) qr(AT(x, N * (m)), AT(y, N * RANK(N, m)), AT(z, RANK(N, m) * (m)), left, N, m, 1)
#define QR_R(m) qr(AT(x, N * (m)), NULL, AT(y, RANK(N, m) * (m)), left, N, m, 0)
#define SVD(m)                                                                                          \
    svd(AT(x, N * (m)), AT(y, N * RANK(N, m)), REAL_AT(z, RANK(N, m)), AT(t, RANK(N, m) * (m)), left, N, m)
#define SVDVALS(m) svd(AT(x, N * (m)), NULL, REAL_AT(y, RANK(N, m)), NULL, left, N, m)
OBLONG(lu, LU)
OBLONG(qr, QR)
OBLONG(qr_r, QR_R)
OBLONG(svd, SVD)
OBLONG(svdvals, SVDVALS)


#define KERNELS                                                                                         \
    {                                                                                                   \
        det_kernel, slogdet_kernel, inv_kernel, cholesky_kernel, solve_kernel, triangular_kernel, qr_kernel, \
            qr_r_kernel, eigh_kernel, eigvalsh_kernel, svd_kernel, svdvals_kernel, exp_kernel, exp_term_kernel, \
            lu_kernel,                                                                                  \
    }
