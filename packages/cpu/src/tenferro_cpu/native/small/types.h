/* The kernels of one dtype; see lanes.h. */
#include "small/lanes.h"

#include "small/equations.h"
#include "small/exponential.h"
#include "small/reflections.h"
#include "small/rotations.h"

#define ARGUMENTS                                                                                       \
    const int64_t *count, const int64_t *rows, const int64_t *columns, const int64_t *flags, const void *p0, void *p1, \
        void *p2, void *p3, int64_t *report

/* Call for each block of matrices, until one reports an exceptional case. */
#define BLOCKS(...)                                                                                     \
    for (int64_t at = 0; at < *count && !bad; at += LANES) {                                            \
        const int64_t left = *count - at;                                                               \
        bad = __VA_ARGS__;                                                                              \
    }

/* The same with N for the number of rows, a compile-time constant if it is small. */
#define SIZED(...)                                                                                      \
    switch (*rows) {                                                                                    \
    case 2: {                                                                                           \
        enum { N = 2 };                                                                                 \
        BLOCKS(__VA_ARGS__)                                                                             \
        break;                                                                                          \
    }                                                                                                   \
    case 3: {                                                                                           \
        enum { N = 3 };                                                                                 \
        BLOCKS(__VA_ARGS__)                                                                             \
        break;                                                                                          \
    }                                                                                                   \
    case 4: {                                                                                           \
        enum { N = 4 };                                                                                 \
        BLOCKS(__VA_ARGS__)                                                                             \
        break;                                                                                          \
    }                                                                                                   \
    default: {                                                                                          \
        const int N = (int)*rows;                                                                       \
        BLOCKS(__VA_ARGS__)                                                                             \
    }                                                                                                   \
    }

/* Numbers of the matrix `at`, of `n` elements, or of `n` real numbers. */
#define AT(p, n) ((p) + at * (n) * PARTS)
#define REAL_AT(p, n) ((p) + at * (n))

/* A kernel: handles small matrices; all others are reported as exceptional. */
#define KERNEL(name, ...)                                                                               \
    static void TYPED(name##_kernel)(ARGUMENTS)                                                         \
    {                                                                                                   \
        const REAL *x = p0;                                                                             \
        REAL *y = p1, *z = p2, *t = p3;                                                                 \
        const int M = (int)*columns, F = (int)*flags;                                                   \
        int bad = *rows < 1 || *rows > SMALL_MOST || *columns < 1 || *columns > SMALL_MOST;             \
        (void)y, (void)z, (void)t, (void)M, (void)F;                                                    \
        if (!bad)                                                                                       \
            __VA_ARGS__                                                                                 \
        *report = bad;                                                                                  \
    }

KERNEL(det, SIZED(TYPED(det)(AT(x, N * N), AT(y, 1), left, N)))
KERNEL(slogdet, SIZED(TYPED(slogdet)(AT(x, N * N), AT(y, 1), REAL_AT(z, 1), left, N)))
KERNEL(inv, SIZED(TYPED(inv)(AT(x, N * N), AT(y, N * N), left, N)))
KERNEL(cholesky, SIZED(TYPED(cholesky)(AT(x, N * N), AT(y, N * N), left, N)))
KERNEL(solve, SIZED(TYPED(solve)(AT(x, N * N), AT((const REAL *)y, N * M), AT(z, N * M), left, N, M, F)))
KERNEL(triangular, SIZED(TYPED(triangular)(AT(x, N * N), AT((const REAL *)y, N * M), AT(z, N * M), left, N, M, F)))
KERNEL(exp, SIZED(TYPED(exponential)(AT(x, N * N), NULL, AT(y, N * N), left, N)))
KERNEL(exp_term, SIZED(M != N || TYPED(exponential)(AT(x, N * N), AT((const REAL *)y, N * N), AT(z, N * N), left, N)))
KERNEL(eigh, SIZED(TYPED(eigh)(AT(x, N * N), REAL_AT(y, N), AT(z, N * N), left, N, F)))
KERNEL(eigvalsh, SIZED(TYPED(eigh)(AT(x, N * N), REAL_AT(y, N), NULL, left, N, 0)))
#define RANK(n, m) ((n) < (m) ? (n) : (m))
#define OBLONG(alike, other)                                                                           \
    {                                                                                                   \
        if (*rows == *columns)                                                                          \
            SIZED(alike)                                                                                \
        else {                                                                                          \
            const int N = (int)*rows;                                                                   \
            BLOCKS(other)                                                                               \
        }                                                                                               \
    }
#define LU(m)                                                                                           \
    TYPED(factor)(AT(x, N * (m)), AT(y, N * (m)), REAL_AT((int64_t *)p2, RANK(N, m)), REAL_AT((int64_t *)p3, N), left, \
                  N, m)
#define QR(m) TYPED(qr)(AT(x, N * (m)), AT(y, N * RANK(N, m)), AT(z, RANK(N, m) * (m)), left, N, m, 1)
#define QR_R(m) TYPED(qr)(AT(x, N * (m)), NULL, AT(y, RANK(N, m) * (m)), left, N, m, 0)
#define SVD(m)                                                                                          \
    TYPED(svd)(AT(x, N * (m)), AT(y, N * RANK(N, m)), REAL_AT(z, RANK(N, m)), AT(t, RANK(N, m) * (m)), left, N, m, F)
#define SVDVALS(m) TYPED(svd)(AT(x, N * (m)), NULL, REAL_AT(y, RANK(N, m)), NULL, left, N, m, 0)
KERNEL(lu, OBLONG(LU(N), LU(M)))
KERNEL(qr, OBLONG(QR(N), QR(M)))
KERNEL(qr_r, OBLONG(QR_R(N), QR_R(M)))
KERNEL(svd, OBLONG(SVD(N), SVD(M)))
KERNEL(svdvals, OBLONG(SVDVALS(N), SVDVALS(M)))

#undef ARGUMENTS
#undef BLOCKS
#undef SIZED
#undef AT
#undef REAL_AT
#undef KERNEL
#undef RANK
#undef OBLONG
#undef LU
#undef QR
#undef QR_R
#undef SVD
#undef SVDVALS
