/* Vectors of one dtype at one vector level: loads, stores, masks, products. Included by dtypes.h for each dtype.
 *
 * Names of types and functions stand for those of the dtype, as in TYPED(load). Memory may be aligned in any way.
 * Vectors are GNU C's; instructions that it has no notation for are intrinsics of x86, with loops elsewhere. */

#ifndef TENFERRO_CONTRACTION_VECTORS_H
#define TENFERRO_CONTRACTION_VECTORS_H

#include "inline.h"

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#if defined(__AVX512F__)
#define LEVEL_NAME "avx512"
#define BYTES 64
#define REGISTERS 32
#define INTRINSIC(f) TENFERRO_JOIN(_mm512_##f, SUFFIX)
#elif defined(__AVX2__)
#define LEVEL_NAME "avx2"
#define BYTES 32
#define REGISTERS 16
#define INTRINSIC(f) TENFERRO_JOIN(_mm256_##f, SUFFIX)
#elif defined(__aarch64__)
#define LEVEL_NAME "neon"
#define BYTES 16
#define REGISTERS 32
#else
#define LEVEL_NAME "generic"
#define BYTES 16
#define REGISTERS 16
#define INTRINSIC(f) TENFERRO_JOIN(_mm_##f, SUFFIX)
#endif
/* Whether one instruction loads or stores some lanes of a vector. */
#define MASKS (BYTES > 16)
/* Columns of a full tile. */
#define COLUMNS (REGISTERS >= 32 ? 8 : 4)

#if defined(__clang__)
#define ALONE __attribute__((noinline))
#define UNROLL _Pragma("clang loop unroll(full)")
#define ROLLED _Pragma("clang loop unroll(disable) vectorize(disable)")
#else
#define ALONE __attribute__((noinline, noclone)) /* one copy of the function, called */
#define UNROLL _Pragma("GCC unroll 16")
#define ROLLED _Pragma("GCC unroll 1")
#endif

/* A barrier for the compiler's scheduler, which would otherwise need more registers than exist. */
#define SETTLE __asm__ volatile("")
/* Force the compiler to compute `p` once, here; recomputing it at each use takes more registers. */
#define KEEP(p) __asm__("" : "+r"(p))
/* The same for a vector: nothing derived from `x` is computed before this. */
#if defined(__x86_64__)
#define KEEP_VECTOR(x) __asm__ volatile("" : "+v"(x))
#elif defined(__aarch64__)
#define KEEP_VECTOR(x) __asm__ volatile("" : "+w"(x))
#else
#define KEEP_VECTOR(x) ((void)(x))
#endif

/* Comma-separated f(0), f(1), ... for all lanes: the indices of a shuffle. */
#define LIST_2(f) f(0), f(1)
#define LIST_4(f) LIST_2(f), f(2), f(3)
#define LIST_8(f) LIST_4(f), f(4), f(5), f(6), f(7)
#define LIST_16(f) LIST_8(f), f(8), f(9), f(10), f(11), f(12), f(13), f(14), f(15)
#if defined(__AVX512F__)
#define LIST_OF_4 LIST_16
#define LIST_OF_8 LIST_8
#define HALF_LIST_OF_4 LIST_8
#elif defined(__AVX2__)
#define LIST_OF_4 LIST_8
#define LIST_OF_8 LIST_4
#define HALF_LIST_OF_4 LIST_4
#else
#define LIST_OF_4 LIST_4
#define LIST_OF_8 LIST_2
#endif
#define SHUFFLE(x, y, f) __builtin_shufflevector(x, y, TENFERRO_JOIN(LIST_OF, REAL_BYTES)(f))

#define LANES (BYTES / REAL_BYTES) /* numbers of a vector */
#define WIDTH (LANES / PARTS) /* elements of a vector */
#define ITEM (PARTS * REAL_BYTES) /* bytes of an element */
/* Vectors of rows of a full tile: all sums, and the rows that they grow by, stay in registers. Those of complex rows
 * are held twice, and with them the signs that turn one into the other. */
#define VECTORS (REGISTERS >= 32 || PARTS == 1 ? 3 : 2)
#define ROWS (VECTORS * WIDTH)
/* Rows and columns of a full strip: its sums, a vector of each row and one of a column stay in registers. A complex
 * sum along the sum takes two vectors, a complex row of the batch is held twice. */
#define DOT_ROWS (REGISTERS >= 32 ? 4 : PARTS == 2 ? 2 : 3)
#define DOT_COLUMNS (REGISTERS >= 32 ? (PARTS == 2 ? 2 : 4) : PARTS == 2 ? 2 : 3)
#define LANES_ROWS (REGISTERS >= 32 ? 4 : 3)
#define LANES_COLUMNS (REGISTERS >= 32 ? 4 : PARTS == 2 ? 2 : 3)

#define vec TYPED(vec)
#define loose_vec TYPED(loose_vec)
#define real TYPED(real)
#define mask TYPED(mask)
#define load TYPED(load)
#define store TYPED(store)
#define first_lanes TYPED(first_lanes)
#define masked_load TYPED(masked_load)
#define masked_store TYPED(masked_store)
#define stream_store TYPED(stream_store)
#define all_lanes TYPED(all_lanes)
#define fused TYPED(fused)
#define times_i TYPED(times_i)
#define spread TYPED(spread)
#endif

#undef SUFFIX
#if REAL_BYTES == 4
#define SUFFIX ps
#else
#define SUFFIX pd
#endif

typedef REAL vec __attribute__((vector_size(BYTES)));
typedef REAL loose_vec __attribute__((vector_size(BYTES), aligned(1), may_alias));
typedef REAL real __attribute__((aligned(1), may_alias));

INLINE vec load(const char *p)
{
    return *(const loose_vec *)p;
}

INLINE void store(char *p, vec x)
{
    *(loose_vec *)p = x;
}

/* Masks: the first `n` lanes, at most all. */
#if defined(__AVX512F__)
typedef uint16_t mask;

INLINE mask first_lanes(int64_t n)
{
    return (mask)(n < LANES ? (1u << (n < 0 ? 0 : n)) - 1 : (1u << LANES) - 1);
}

INLINE vec masked_load(const char *p, mask lanes)
{
    return INTRINSIC(maskz_loadu)(lanes, p);
}

INLINE void masked_store(char *p, vec x, mask lanes)
{
    INTRINSIC(mask_storeu)(p, lanes, x);
}
#elif defined(__AVX2__)
typedef __m256i mask;

INLINE mask first_lanes(int64_t n)
{
    const int count = (int)(n < LANES ? n : LANES);
#if REAL_BYTES == 4
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(count), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
#else
    return _mm256_cmpgt_epi64(_mm256_set1_epi64x(count), _mm256_setr_epi64x(0, 1, 2, 3));
#endif
}

INLINE vec masked_load(const char *p, mask lanes)
{
    return INTRINSIC(maskload)((const REAL *)p, lanes);
}

INLINE void masked_store(char *p, vec x, mask lanes)
{
    INTRINSIC(maskstore)((REAL *)p, lanes, x);
}
#else
typedef int64_t mask;

INLINE mask first_lanes(int64_t n)
{
    return n;
}

INLINE vec masked_load(const char *p, mask lanes)
{
    vec x = {0};
    for (int l = 0; l < LANES; l++)
        if (l < lanes)
            x[l] = ((const real *)p)[l];
    return x;
}

INLINE void masked_store(char *p, vec x, mask lanes)
{
    for (int l = 0; l < LANES; l++)
        if (l < lanes)
            ((real *)p)[l] = x[l];
}
#endif

/* Past the caches, to a place aligned to vectors. */
INLINE void stream_store(char *p, vec x)
{
#if defined(__x86_64__)
    INTRINSIC(stream)((REAL *)p, x);
#elif defined(__clang__)
    __builtin_nontemporal_store(x, (vec *)p);
#else
    *(vec *)p = x;
#endif
}

INLINE vec all_lanes(REAL y)
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

/* x y + z, rounded once where the level has an instruction for it. */
INLINE vec fused(vec x, vec y, vec z)
{
#if defined(__FMA__)
    return INTRINSIC(fmadd)(x, y, z);
#elif defined(__aarch64__) && REAL_BYTES == 4
    return vfmaq_f32(z, x, y);
#elif defined(__aarch64__)
    return vfmaq_f64(z, x, y);
#else
    return x * y + z;
#endif
}

#if PARTS == 2
/* Complex numbers times the imaginary unit: parts exchanged, the new real ones negated. */
INLINE vec times_i(vec x)
{
#define EXCHANGED(l) ((l) ^ 1)
#if REAL_BYTES == 4
    typedef int32_t bits __attribute__((vector_size(BYTES)));
#define SIGN(l) ((l) % 2 ? 0 : INT32_MIN)
#else
    typedef int64_t bits __attribute__((vector_size(BYTES)));
#define SIGN(l) ((l) % 2 ? 0 : INT64_MIN)
#endif
    return (vec)((bits)SHUFFLE(x, x, EXCHANGED) ^ (bits){TENFERRO_JOIN(LIST_OF, REAL_BYTES)(SIGN)});
#undef SIGN
#undef EXCHANGED
}
#else
INLINE vec times_i(vec x)
{
    return x;
}
#endif

/* The real parts of a vector, each in both places of its element, or the imaginary ones (part 1). */
INLINE vec spread(vec y, int part)
{
#define REAL_PART(l) ((l) & ~(PARTS - 1))
#define IMAGINARY_PART(l) ((l) | (PARTS - 1))
    return PARTS == 1 ? y : part ? SHUFFLE(y, y, IMAGINARY_PART) : SHUFFLE(y, y, REAL_PART);
#undef REAL_PART
#undef IMAGINARY_PART
}
