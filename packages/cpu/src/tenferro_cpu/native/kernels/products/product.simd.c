/* Products of stacks of small matrices. */
#include "kernels/products/product.h"
#include "inline.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#if defined(__AVX512VL__)
#define VECTOR_BYTES 64
#elif defined(__AVX2__)
#define VECTOR_BYTES 32
#else
#define VECTOR_BYTES 16
#endif

#define UNROLLED _Pragma("GCC unroll 8")
#define GLUE_(a, b) a##_##b
#define GLUE(a, b) GLUE_(a, b)

/* Vectors of so many bytes: a number in all lanes; x * y + z, rounded once; the first n numbers of a row. AVX-512 loads
 * and stores part of a vector by one instruction. */
#define PORTABLE(LETTER, REAL, BYTES) \
    typedef REAL vec_##LETTER##_##BYTES __attribute__((vector_size(BYTES), aligned(sizeof(REAL)), may_alias)); \
    INLINE vec_##LETTER##_##BYTES load_##LETTER##_##BYTES(const REAL *p, int n) \
    { \
        if (n >= BYTES / (int)sizeof(REAL)) \
            return *(const vec_##LETTER##_##BYTES *)p; \
        PART_LOADED(LETTER, REAL, BYTES) \
        vec_##LETTER##_##BYTES v = {0}; \
        for (int i = 0; i < BYTES / (int)sizeof(REAL); i++) \
            if (i < n) \
                v[i] = p[i]; \
        return v; \
    } \
    INLINE void store_##LETTER##_##BYTES(REAL *p, vec_##LETTER##_##BYTES v, int n) \
    { \
        if (n >= BYTES / (int)sizeof(REAL)) { \
            *(vec_##LETTER##_##BYTES *)p = v; \
            return; \
        } \
        PART_STORED(LETTER, REAL, BYTES) \
        for (int i = 0; i < BYTES / (int)sizeof(REAL); i++) \
            if (i < n) \
                p[i] = v[i]; \
    }
#define PLAIN(LETTER, REAL, BYTES, FMA) \
    PORTABLE(LETTER, REAL, BYTES) \
    INLINE vec_##LETTER##_##BYTES splat_##LETTER##_##BYTES(REAL x) \
    { \
        vec_##LETTER##_##BYTES v; \
        for (int i = 0; i < BYTES / (int)sizeof(REAL); i++) \
            v[i] = x; \
        return v; \
    } \
    INLINE vec_##LETTER##_##BYTES fused_##LETTER##_##BYTES(vec_##LETTER##_##BYTES x, vec_##LETTER##_##BYTES y, \
                                                           vec_##LETTER##_##BYTES z) \
    { \
        for (int i = 0; i < BYTES / (int)sizeof(REAL); i++) \
            z[i] = FMA(x[i], y[i], z[i]); \
        return z; \
    }
#define INTEL(LETTER, REAL, BYTES, TYPE, PREFIX, SUFFIX) \
    PORTABLE(LETTER, REAL, BYTES) \
    INLINE vec_##LETTER##_##BYTES splat_##LETTER##_##BYTES(REAL x) \
    { \
        return (vec_##LETTER##_##BYTES)PREFIX##_set1_##SUFFIX(x); \
    } \
    INLINE vec_##LETTER##_##BYTES fused_##LETTER##_##BYTES(vec_##LETTER##_##BYTES x, vec_##LETTER##_##BYTES y, \
                                                           vec_##LETTER##_##BYTES z) \
    { \
        return (vec_##LETTER##_##BYTES)PREFIX##_fmadd_##SUFFIX((TYPE)x, (TYPE)y, (TYPE)z); \
    }
#if VECTOR_BYTES == 64
#define PART_LOADED(LETTER, REAL, BYTES) return (vec_##LETTER##_##BYTES)MASKED_LOAD_##LETTER##_##BYTES(n, p);
#define PART_STORED(LETTER, REAL, BYTES) \
    MASKED_STORE_##LETTER##_##BYTES(n, p, v); \
    return;
#define MASKED_LOAD_f_16(n, p) _mm_maskz_loadu_ps((__mmask8)((1u << n) - 1), p)
#define MASKED_LOAD_f_32(n, p) _mm256_maskz_loadu_ps((__mmask8)((1u << n) - 1), p)
#define MASKED_LOAD_f_64(n, p) _mm512_maskz_loadu_ps((__mmask16)((1u << n) - 1), p)
#define MASKED_LOAD_d_16(n, p) _mm_maskz_loadu_pd((__mmask8)((1u << n) - 1), p)
#define MASKED_LOAD_d_32(n, p) _mm256_maskz_loadu_pd((__mmask8)((1u << n) - 1), p)
#define MASKED_LOAD_d_64(n, p) _mm512_maskz_loadu_pd((__mmask8)((1u << n) - 1), p)
#define MASKED_STORE_f_16(n, p, v) _mm_mask_storeu_ps(p, (__mmask8)((1u << n) - 1), (__m128)v)
#define MASKED_STORE_f_32(n, p, v) _mm256_mask_storeu_ps(p, (__mmask8)((1u << n) - 1), (__m256)v)
#define MASKED_STORE_f_64(n, p, v) _mm512_mask_storeu_ps(p, (__mmask16)((1u << n) - 1), (__m512)v)
#define MASKED_STORE_d_16(n, p, v) _mm_mask_storeu_pd(p, (__mmask8)((1u << n) - 1), (__m128d)v)
#define MASKED_STORE_d_32(n, p, v) _mm256_mask_storeu_pd(p, (__mmask8)((1u << n) - 1), (__m256d)v)
#define MASKED_STORE_d_64(n, p, v) _mm512_mask_storeu_pd(p, (__mmask8)((1u << n) - 1), (__m512d)v)
#else
#define PART_LOADED(LETTER, REAL, BYTES)
#define PART_STORED(LETTER, REAL, BYTES)
#endif

#if VECTOR_BYTES == 16
PLAIN(f, float, 16, __builtin_fmaf)
PLAIN(d, double, 16, __builtin_fma)
#else
INTEL(f, float, 16, __m128, _mm, ps)
INTEL(d, double, 16, __m128d, _mm, pd)
INTEL(f, float, 32, __m256, _mm256, ps)
INTEL(d, double, 32, __m256d, _mm256, pd)
#endif
#if VECTOR_BYTES == 64
INTEL(f, float, 64, __m512, _mm512, ps)
INTEL(d, double, 64, __m512d, _mm512, pd)
#endif

/* Exchange neighbours. */
#define SWAPPED2 1, 0
#define SWAPPED4 SWAPPED2, 3, 2
#define SWAPPED8 SWAPPED4, 5, 4, 7, 6
#define SWAPPED16 SWAPPED8, 9, 8, 11, 10, 13, 12, 15, 14
#define SWAPPED_f_16 SWAPPED4
#define SWAPPED_f_32 SWAPPED8
#define SWAPPED_f_64 SWAPPED16
#define SWAPPED_d_16 SWAPPED2
#define SWAPPED_d_32 SWAPPED4
#define SWAPPED_d_64 SWAPPED8

#define KIND f32
#define ITEM 4
#define REAL float
#define LETTER f
#define PARTS 1
#include "kernels/products/product_small.h"

#define KIND f64
#define ITEM 8
#define REAL double
#define LETTER d
#define PARTS 1
#include "kernels/products/product_small.h"

#define KIND c64
#define ITEM 8
#define REAL float
#define LETTER f
#define PARTS 2
#include "kernels/products/product_small.h"

#define KIND c128
#define ITEM 16
#define REAL double
#define LETTER d
#define PARTS 2
#include "kernels/products/product_small.h"

const struct product_kernels NAME(product_kernels) = {{small_f32, small_f64, small_c64, small_c128}};
