/* Numbers of one dtype, one in each lane of vectors. Every file with a dtype defines REAL, REAL_BYTES and PARTS, and
 * includes this; `elem` is a number of the dtype, `vec` a real one, `mask` has all bits or none.
 *
 * Arithmetic is inlined everywhere. Helpers of several operations are plain functions: kernels for two, three and four
 * rows are flat, so that their constants unroll loops and matrices stay in registers; kernels for any number of rows
 * share what they call, which makes them shorter and no slower. */

#include "inline.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#if defined(__AVX512F__)
#define BYTES 64
#define INTRINSIC(f) TENFERRO_JOIN(_mm512_##f, SUFFIX)
#elif defined(__AVX2__)
#define BYTES 32
#define INTRINSIC(f) TENFERRO_JOIN(_mm256_##f, SUFFIX)
#else
#define BYTES 16
#define INTRINSIC(f) TENFERRO_JOIN(_mm_##f, SUFFIX)
#endif
#define LANES (BYTES / REAL_BYTES)
#if LANES == 2
#define IN_LANES(f) {f(0), f(1)}
#elif LANES == 4
#define IN_LANES(f) {f(0), f(1), f(2), f(3)}
#elif LANES == 8
#define IN_LANES(f) {f(0), f(1), f(2), f(3), f(4), f(5), f(6), f(7)}
#else
#define IN_LANES(f) \
    {f(0), f(1), f(2), f(3), f(4), f(5), f(6), f(7), f(8), f(9), f(10), f(11), f(12), f(13), f(14), f(15)}
#endif

#if defined(__SANITIZE_ADDRESS__) /* a tenth of the time to compile */
#define HELPER static __attribute__((unused))
#define FLAT
#elif defined(__clang__) /* which flattens calls of the function itself and none of those inside */
#define HELPER INLINE
#define FLAT __attribute__((noinline))
#else
#define HELPER static __attribute__((unused))
#define FLAT __attribute__((noinline, flatten))
#endif
#define SHARED static __attribute__((noinline, unused))

/* Size of an array of elements of n x n matrices. */
#define SQUARE(n) (SMALL_MOST * SMALL_MOST)

#if REAL_BYTES == 4
#define SUFFIX ps
#define BITS int32_t
#define EXPONENT 0x7f800000
#define TWICE_BIAS (254 << 23)
#define LEAST_NORMAL 0x1p-126f
#define GREATEST_POWER 0x1p126f
#define GREATEST 0x1.fffffep127f
#define EPSILON 0x1p-23f
#define LOGARITHM logf
#define FUSED_ONCE __builtin_fmaf
#else
#define SUFFIX pd
#define BITS int64_t
#define EXPONENT 0x7ff0000000000000
#define TWICE_BIAS (2046LL << 52)
#define LEAST_NORMAL 0x1p-1022
#define GREATEST_POWER 0x1p1022
#define GREATEST 0x1.fffffffffffffp1023
#define EPSILON 0x1p-52
#define LOGARITHM log
#define FUSED_ONCE __builtin_fma
#endif
#if defined(__FMA__)
#define FUSED(x, y, z) FUSED_ONCE(x, y, z)
#else
#define FUSED(x, y, z) ((x) * (y) + (z))
#endif

typedef REAL vec __attribute__((vector_size(BYTES)));
typedef BITS mask __attribute__((vector_size(BYTES)));

INLINE vec splat(REAL y)
{
#if defined(__x86_64__)
    return INTRINSIC(set1)(y);
#else
    vec x;
    for (int l = 0; l < LANES; l++)
        x[l] = y;
    return x;
#endif
}

INLINE int any_lane(mask m)
{
#if defined(__AVX512F__) && REAL_BYTES == 4
    return _mm512_movepi32_mask((__m512i)m) != 0;
#elif defined(__AVX512F__)
    return _mm512_movepi64_mask((__m512i)m) != 0;
#elif defined(__x86_64__)
    return INTRINSIC(movemask)((vec)m) != 0;
#else
    BITS any = 0;
    for (int l = 0; l < LANES; l++)
        any |= m[l];
    return any != 0;
#endif
}

INLINE vec choose(mask m, vec x, vec y)
{
    return (vec)(((mask)x & m) | ((mask)y & ~m));
}

INLINE vec absolute(vec x)
{
    return (vec)((mask)x & ~(mask)splat((REAL)-0.0));
}

INLINE vec larger_of(vec x, vec y)
{
    return choose(x > y, x, y);
}

INLINE vec smaller_of(vec x, vec y)
{
    return choose(x < y, x, y);
}

INLINE vec root(vec x)
{
#if defined(__x86_64__)
    return INTRINSIC(sqrt)(x);
#else
    for (int l = 0; l < LANES; l++)
        x[l] = sizeof(REAL) == 4 ? (REAL)__builtin_sqrtf((float)x[l]) : (REAL)__builtin_sqrt((double)x[l]);
    return x;
#endif
}

/* x y + z, rounded once where the level has an instruction for it. */
INLINE vec fused(vec x, vec y, vec z)
{
#if defined(__FMA__)
    return INTRINSIC(fmadd)(x, y, z);
#else
    return x * y + z;
#endif
}

/* The absolute value of x with the sign of y. */
INLINE vec with_sign(vec x, vec y)
{
    const mask sign = (mask)splat((REAL)-0.0);
    return (vec)(((mask)x & ~sign) | ((mask)y & sign));
}

/* A power of 2, at most |x|, whose inverse is in range, so that products with either are exact. */
INLINE vec power_below(vec x)
{
    const vec inside = smaller_of(larger_of(x, splat(LEAST_NORMAL)), splat(GREATEST_POWER));
    return (vec)((mask)inside & EXPONENT);
}

/* 1 / x for a result of `power_below`. */
INLINE vec inverse_power(vec x)
{
    return (vec)(TWICE_BIAS - (mask)x);
}

/* Where x is not finite. */
INLINE mask unbounded(vec x)
{
    return ~(absolute(x) <= splat(GREATEST));
}

#if PARTS == 2
typedef struct {
    vec re, im;
} elem;
#define IMAGINARY(statement) statement
#define IMAGINARY_PART(x) , x
#else
typedef struct {
    vec re;
} elem;
#define IMAGINARY(statement)
#define IMAGINARY_PART(x)
#endif

INLINE elem number(REAL x)
{
    elem y;
    y.re = splat(x);
    IMAGINARY(y.im = splat(0);)
    return y;
}

INLINE elem real_part(vec x)
{
    elem y;
    y.re = x;
    IMAGINARY(y.im = splat(0);)
    return y;
}

INLINE elem conjugate(elem x)
{
    IMAGINARY(x.im = -x.im;)
    return x;
}

INLINE elem plus(elem x, elem y)
{
    x.re += y.re;
    IMAGINARY(x.im += y.im;)
    return x;
}

INLINE elem minus(elem x, elem y)
{
    x.re -= y.re;
    IMAGINARY(x.im -= y.im;)
    return x;
}

INLINE elem scaled(elem x, vec y)
{
    x.re *= y;
    IMAGINARY(x.im *= y;)
    return x;
}

/* z + x y */
INLINE elem added(elem z, elem x, elem y)
{
    z.re = fused(x.re, y.re, z.re);
    IMAGINARY(z.re = fused(-x.im, y.im, z.re);)
    IMAGINARY(z.im = fused(x.re, y.im, fused(x.im, y.re, z.im));)
    return z;
}

/* z - x y, each product and difference rounded: a multiple of a row cancels it exactly, so that exactly singular
 * matrices are seen to be singular. */
INLINE elem subtracted(elem z, elem x, elem y)
{
#if PARTS == 2
    z.re -= x.re * y.re - x.im * y.im;
    z.im -= x.re * y.im + x.im * y.re;
#else
    z.re -= x.re * y.re;
#endif
    return z;
}

INLINE elem times(elem x, elem y)
{
    elem z;
#if PARTS == 2
    z.re = fused(-x.im, y.im, x.re * y.re);
    z.im = fused(x.re, y.im, x.im * y.re);
#else
    z.re = x.re * y.re;
#endif
    return z;
}

/* z + |x|^2 */
INLINE vec square(vec z, elem x)
{
    z = fused(x.re, x.re, z);
    IMAGINARY(z = fused(x.im, x.im, z);)
    return z;
}

INLINE elem either(mask m, elem x, elem y)
{
    x.re = choose(m, x.re, y.re);
    IMAGINARY(x.im = choose(m, x.im, y.im);)
    return x;
}

/* |re| + |im|, by which LAPACK chooses pivots. */
INLINE vec size_of(elem x)
{
    vec y = absolute(x.re);
    IMAGINARY(y += absolute(x.im);)
    return y;
}

INLINE mask is_zero(elem x)
{
    mask m = x.re == splat(0);
    IMAGINARY(m &= x.im == splat(0);)
    return m;
}

/* x / y; for complex numbers by Smith's method, which avoids intermediate overflow. */
INLINE elem quotient(elem x, elem y)
{
#if PARTS == 2
    const mask wide = absolute(y.re) >= absolute(y.im);
    const vec large = choose(wide, y.re, y.im), small = choose(wide, y.im, y.re), ratio = small / large;
    const vec below = large + small * ratio;
    const vec a = choose(wide, x.re, x.im), b = choose(wide, x.im, x.re);
    const vec re = (a + b * ratio) / below, im = (b - a * ratio) / below;
    x.re = re;
    x.im = choose(wide, im, -im);
#else
    x.re /= y.re;
#endif
    return x;
}

/* One element of each of the next LANES matrices of a stack, `step` numbers apart. Written out: gcc sends what loops
 * set through memory. */
INLINE elem gather(const REAL *from, int64_t step)
{
#define REAL_IN(l) from[l * step]
#define IMAGINARY_IN(l) from[l * step + 1]
    elem x;
    x.re = (vec)IN_LANES(REAL_IN);
    IMAGINARY(x.im = (vec)IN_LANES(IMAGINARY_IN);)
    return x;
}

/* The n elements of each of fewer matrices; the lanes without one have the first. */
SHARED void gather_few(elem *to, const REAL *from, int64_t left, int n)
{
    for (int k = 0; k < n; k++) {
        to[k].re = splat(from[k * PARTS]);
        IMAGINARY(to[k].im = splat(from[k * PARTS + 1]);)
    }
    for (int l = 1; l < left; l++)
        for (int k = 0; k < n; k++) {
            ((REAL *)&to[k].re)[l] = from[(l * n + k) * PARTS];
            IMAGINARY(((REAL *)&to[k].im)[l] = from[(l * n + k) * PARTS + 1];)
        }
}

/* Gather the next matrices of n elements into lanes; an array whose address is passed on would not be kept in
 * registers. */
#define GATHER(to, from, left, n)                                                                       \
    do {                                                                                                \
        if ((left) >= LANES) {                                                                          \
            for (int k_ = 0; k_ < (n); k_++)                                                            \
                (to)[k_] = gather((from) + k_ * PARTS, (n) * PARTS);                                    \
        } else {                                                                                        \
            elem few_[SQUARE(0)];                                                                       \
            gather_few(few_, from, left, n);                                                            \
            for (int k_ = 0; k_ < (n); k_++)                                                            \
                (to)[k_] = few_[k_];                                                                    \
        }                                                                                               \
    } while (0)

INLINE void put(REAL *to, const elem *x, int lane)
{
    to[0] = ((const REAL *)&x->re)[lane];
    IMAGINARY(to[1] = ((const REAL *)&x->im)[lane];)
}

/* Write matrices of n elements back. */
HELPER void scatter(REAL *to, const elem *x, int64_t left, int n)
{
    const int lanes = left < LANES ? (int)left : LANES;
    for (int k = 0; k < n; k++)
        for (int l = 0; l < lanes; l++)
            put(to + (l * n + k) * PARTS, &x[k], l);
}
