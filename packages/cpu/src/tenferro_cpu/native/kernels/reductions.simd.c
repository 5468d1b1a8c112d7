/* Row kernels of eager reductions, for one vector level: sums, products and extremes of contiguous elements.
 *
 * A process that only reduces arrays compiles nothing. */
#include "compiled.h"
#include "inline.h"
#include "kernels/reductions.h"
#include "levels.h"

#include <float.h>
#include <math.h>
#include <string.h>
#if defined(__AVX512BW__)
#include <immintrin.h>
#endif

#if defined(__AVX512F__)
#define VECTOR_BYTES 64
#define INTERLEAVE 4
#elif defined(__AVX2__)
#define VECTOR_BYTES 32
#define INTERLEAVE 2
#elif defined(__aarch64__)
#define VECTOR_BYTES 16
#define INTERLEAVE 4
#else
#define VECTOR_BYTES 16
#define INTERLEAVE 2
#endif

typedef char bytes __attribute__((vector_size(VECTOR_BYTES)));

/* Bytes of the given number of elements, from none to a vector. */
INLINE int64_t bytes_of(int64_t count, int64_t size)
{
    return count <= 0 ? 0 : count * size < VECTOR_BYTES ? count * size : VECTOR_BYTES;
}

#if defined(__AVX512BW__)
INLINE __mmask64 first_bytes(int64_t count)
{
    return _bzhi_u64(~0ull, (unsigned)count);
}

/* The given number of bytes of x, followed by those of another vector. */
INLINE bytes load_bytes(const void *x, const void *idle, int64_t count)
{
    return (bytes)_mm512_mask_loadu_epi8(_mm512_loadu_si512(idle), first_bytes(count), x);
}

INLINE void store_bytes(void *z, bytes x, int64_t count)
{
    _mm512_mask_storeu_epi8(z, first_bytes(count), (__m512i)x);
}
#else
INLINE bytes load_bytes(const void *x, const void *idle, int64_t count)
{
    bytes found;
    memcpy(&found, idle, VECTOR_BYTES);
    if (count > 0)
        memcpy(&found, x, (size_t)count);
    return found;
}

INLINE void store_bytes(void *z, bytes x, int64_t count)
{
    if (count > 0)
        memcpy(z, &x, (size_t)count);
}
#endif

/* As in `_render_reduce.py`. */
enum { GROUP = 8, BLOCK = 64, LEVELS = 48, LINE = 64, COMBINED = 16, GROUPED = 64 };

#define JOIN_(kind, type, f) kind##_##type##_##f
#define JOIN(kind, type, f) JOIN_(kind, type, f)
#define ROW(f) JOIN(KIND, TYPE, f)

#define ADD(x, y, z) for (int p = 0; p < PARTS; p++) (z).part[p] = (x).part[p] + (y).part[p]
#define MULTIPLY(x, y, z) (z).part[0] = (x).part[0] * (y).part[0]
#define MULTIPLY_COMPLEX(x, y, z)                                               \
    (z).part[0] = (x).part[0] * (y).part[0] - (x).part[1] * (y).part[1];        \
    (z).part[1] = (x).part[0] * (y).part[1] + (x).part[1] * (y).part[0]
/* The first where `mask` is set, else the second; NaN wins over numbers. */
#define CHOOSE(mask, x, y, z)                                                   \
    ROW(index) first = (ROW(index))(mask);                                      \
    (z).part[0] = (ROW(vector))(((ROW(index))(x).part[0] & first) | ((ROW(index))(y).part[0] & ~first))
#define LARGER(x, y, z) CHOOSE(((x).part[0] > (y).part[0]) | ((x).part[0] != (x).part[0]), x, y, z)
#define SMALLER(x, y, z) CHOOSE(((x).part[0] < (y).part[0]) | ((x).part[0] != (x).part[0]), x, y, z)

/* Types of numbers: sums and products of all, extremes of those in order. Integers with a sign add and multiply like
 * those without, whose overflow is defined. */

#define TYPE f64
#define T double
#define INDEX int64_t
#define PARTS 1
#define ROUNDS 1
#define LOWEST -INFINITY
#define HIGHEST INFINITY
#include "kernels/rows_of_type.h"

#define TYPE f32
#define T float
#define INDEX int32_t
#define PARTS 1
#define ROUNDS 1
#define LOWEST -INFINITY
#define HIGHEST INFINITY
#include "kernels/rows_of_type.h"

#define TYPE c128
#define T double
#define INDEX int64_t
#define PARTS 2
#define ROUNDS 1
#include "kernels/rows_of_type.h"

#define TYPE c64
#define T float
#define INDEX int32_t
#define PARTS 2
#define ROUNDS 1
#include "kernels/rows_of_type.h"

#define TYPE i64
#define T int64_t
#define INDEX int64_t
#define PARTS 1
#define EXTREMES
#define LOWEST INT64_MIN
#define HIGHEST INT64_MAX
#include "kernels/rows_of_type.h"

#define TYPE i32
#define T int32_t
#define INDEX int32_t
#define PARTS 1
#define EXTREMES
#define LOWEST INT32_MIN
#define HIGHEST INT32_MAX
#include "kernels/rows_of_type.h"

#define TYPE i16
#define T int16_t
#define INDEX int16_t
#define PARTS 1
#define EXTREMES
#define LOWEST INT16_MIN
#define HIGHEST INT16_MAX
#include "kernels/rows_of_type.h"

#define TYPE i8
#define T int8_t
#define INDEX int8_t
#define PARTS 1
#define EXTREMES
#define LOWEST INT8_MIN
#define HIGHEST INT8_MAX
#include "kernels/rows_of_type.h"

#define TYPE u64
#define T uint64_t
#define INDEX int64_t
#define PARTS 1
#define ROUNDS 0
#define LOWEST 0
#define HIGHEST UINT64_MAX
#include "kernels/rows_of_type.h"

#define TYPE u32
#define T uint32_t
#define INDEX int32_t
#define PARTS 1
#define ROUNDS 0
#define LOWEST 0
#define HIGHEST UINT32_MAX
#include "kernels/rows_of_type.h"

#define TYPE u16
#define T uint16_t
#define INDEX int16_t
#define PARTS 1
#define ROUNDS 0
#define LOWEST 0
#define HIGHEST UINT16_MAX
#include "kernels/rows_of_type.h"

#define TYPE u8
#define T uint8_t
#define INDEX int8_t
#define PARTS 1
#define ROUNDS 0
#define LOWEST 0
#define HIGHEST UINT8_MAX
#include "kernels/rows_of_type.h"

#define ENTRY(kind, type, as) {#kind " " #type, kind##_##as##_trailing, kind##_##as##_leading}
#define SUMS(type, as) ENTRY(sum, type, as), ENTRY(prod, type, as)
#define ALL(type, as) SUMS(type, as), ENTRY(max, type, type), ENTRY(min, type, type)
#define INTEGERS(size) ALL(i##size, u##size), ALL(u##size, u##size)

static const struct tenferro_reduction table[] = {
    ALL(f64, f64), ALL(f32, f32), SUMS(c128, c128), SUMS(c64, c64), INTEGERS(64), INTEGERS(32), INTEGERS(16), INTEGERS(8),
    {NULL, NULL, NULL},
};

const struct tenferro_reduction *NAME(tenferro_reductions)(void)
{
    return table;
}
