/* The copy kernels: blocks transposed in registers, narrow interleaves, and runs of bytes. */
#include "copying/copy.h"
#include "inline.h"

#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-version-loops-for-strides") /* groups are longer than one element */
#endif

#if defined(__AVX512F__)
#define VECTOR_BYTES 64
#elif defined(__AVX2__)
#define VECTOR_BYTES 32
#else
#define VECTOR_BYTES 16
#endif

#define UNROLLED _Pragma("GCC unroll 16")
#define UNROLLED_SMALL(n) UNROLLED_SMALL_##n
#define UNROLLED_SMALL_1 _Pragma("GCC unroll 8")
#define UNROLLED_SMALL_2 _Pragma("GCC unroll 8")
#define UNROLLED_SMALL_4 _Pragma("GCC unroll 2")
#define UNROLLED_SMALL_8
#define UNROLLED_SMALL_16
#define VECTOR(lane, bytes) lane __attribute__((vector_size(bytes), aligned(1), may_alias))

INLINE int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

#define LIST2(F, x, y) F(0, x, y), F(1, x, y)
#define LIST4(F, x, y) LIST2(F, x, y), F(2, x, y), F(3, x, y)
#define LIST8(F, x, y) LIST4(F, x, y), F(4, x, y), F(5, x, y), F(6, x, y), F(7, x, y)
#define LIST16(F, x, y) \
    LIST8(F, x, y), F(8, x, y), F(9, x, y), F(10, x, y), F(11, x, y), F(12, x, y), F(13, x, y), F(14, x, y), F(15, x, y)

/* Two vectors of so many bytes are combined as units of so many bytes. GCC only finds the instructions for wide units
 * if lanes are as wide, so the vectors are taken for such ones. */
#define COMBINED(size, lane, lanes, first, second, argument) \
    { \
        VECTOR(lane, size) a, b, c, d; \
        memcpy(&a, x, size); \
        memcpy(&b, y, size); \
        c = __builtin_shufflevector(a, b, LIST##lanes(first, lanes, argument)); \
        d = __builtin_shufflevector(a, b, LIST##lanes(second, lanes, argument)); \
        memcpy(x, &c, size); \
        memcpy(y, &d, size); \
        return; \
    }

/* Exchange units whose indices differ in one bit: a0 a1 a2 a3, b0 b1 b2 b3 become a0 b0 a2 b2, a1 b1 a3 b3. */
#define LOW(k, lanes, bit) ((k) & (bit) ? (lanes) + (k) - (bit) : (k))
#define HIGH(k, lanes, bit) ((k) & (bit) ? (lanes) + (k) : (k) + (bit))
INLINE void exchange(void *x, void *y, int bytes, int unit)
{
    if (bytes == 16 && unit == 1) COMBINED(16, uint8_t, 16, LOW, HIGH, 1)
    if (bytes == 16 && unit == 2) COMBINED(16, uint16_t, 8, LOW, HIGH, 1)
    if (bytes == 16 && unit == 4) COMBINED(16, uint32_t, 4, LOW, HIGH, 1)
    if (bytes == 16 && unit == 8) COMBINED(16, uint64_t, 2, LOW, HIGH, 1)
    if (bytes == 32 && unit == 2) COMBINED(32, uint16_t, 16, LOW, HIGH, 1)
    if (bytes == 32 && unit == 4) COMBINED(32, uint32_t, 8, LOW, HIGH, 1)
    if (bytes == 32 && unit == 8) COMBINED(32, uint64_t, 4, LOW, HIGH, 1)
    if (bytes == 32 && unit == 16) COMBINED(32, uint64_t, 4, LOW, HIGH, 2)
    if (bytes == 64 && unit == 4) COMBINED(64, uint32_t, 16, LOW, HIGH, 1)
    if (bytes == 64 && unit == 8) COMBINED(64, uint64_t, 8, LOW, HIGH, 1)
    if (bytes == 64 && unit == 16) COMBINED(64, uint64_t, 8, LOW, HIGH, 2)
    if (bytes == 64 && unit == 32) COMBINED(64, uint64_t, 8, LOW, HIGH, 4)
}

/* Halves of each 16 bytes are interleaved: a0 a1 a2 a3, b0 b1 b2 b3 become a0 b0 a1 b1, a2 b2 a3 b3. */
#define ZIP_LOW(k, lanes, group) ZIPPED(k, lanes, group, 0)
#define ZIP_HIGH(k, lanes, group) ZIPPED(k, lanes, group, (group) / 2)
#define ZIPPED(k, lanes, group, half) ((k) / (group) * (group) + (half) + (k) % (group) / 2 + ((k) % 2 ? (lanes) : 0))
INLINE void zip(void *x, void *y, int bytes, int unit)
{
    if (bytes == 16 && unit == 1) COMBINED(16, uint8_t, 16, ZIP_LOW, ZIP_HIGH, 16)
    if (bytes == 16 && unit == 2) COMBINED(16, uint16_t, 8, ZIP_LOW, ZIP_HIGH, 8)
    if (bytes == 16 && unit == 4) COMBINED(16, uint32_t, 4, ZIP_LOW, ZIP_HIGH, 4)
    if (bytes == 16 && unit == 8) COMBINED(16, uint64_t, 2, ZIP_LOW, ZIP_HIGH, 2)
    if (bytes == 32 && unit == 2) COMBINED(32, uint16_t, 16, ZIP_LOW, ZIP_HIGH, 8)
    if (bytes == 32 && unit == 4) COMBINED(32, uint32_t, 8, ZIP_LOW, ZIP_HIGH, 4)
    if (bytes == 32 && unit == 8) COMBINED(32, uint64_t, 4, ZIP_LOW, ZIP_HIGH, 2)
    if (bytes == 64 && unit == 4) COMBINED(64, uint32_t, 16, ZIP_LOW, ZIP_HIGH, 4)
    if (bytes == 64 && unit == 8) COMBINED(64, uint64_t, 8, ZIP_LOW, ZIP_HIGH, 2)
}

/* Even and odd units of 16 bytes: a0 a1 a2 a3, b0 b1 b2 b3 become a0 a2 b0 b2, a1 a3 b1 b3. */
#define EVEN(k, lanes, unused) ((k) / 2 * 4 + (k) % 2)
#define ODD_UNIT(k, lanes, unused) ((k) / 2 * 4 + (k) % 2 + 2)
INLINE void unzip(void *x, void *y, int bytes, int unit)
{
    if (bytes == 32) COMBINED(32, uint64_t, 4, EVEN, ODD_UNIT, 0)
    if (bytes == 64) COMBINED(64, uint64_t, 8, EVEN, ODD_UNIT, 0)
}

/* A whole vector, past the caches; other sizes are never streamed. */
INLINE void stream_vector(char *p, const void *value)
{
#if defined(__AVX512F__)
    _mm512_stream_si512((void *)p, _mm512_loadu_si512(value));
#elif defined(__AVX2__)
    _mm256_stream_si256((__m256i *)p, _mm256_loadu_si256(value));
#else
    memcpy(p, value, VECTOR_BYTES);
#endif
}

#if defined(__AVX512VL__) && defined(__AVX512BW__)
#define MASKS (ITEM <= 4)
#define MASKED(bits) \
    if (sizeof_lane * 8 == bits) { \
        if (bytes == 64) { \
            const __m512i v = _mm512_maskz_loadu_epi##bits((1ull << lanes) - 1, p); \
            memcpy(value, &v, 64); \
        } else if (bytes == 32) { \
            const __m256i v = _mm256_maskz_loadu_epi##bits((1u << lanes) - 1, p); \
            memcpy(value, &v, 32); \
        } else { \
            const __m128i v = _mm_maskz_loadu_epi##bits((1u << lanes) - 1, p); \
            memcpy(value, &v, 16); \
        } \
    }
#define MASKED_STORE(bits) \
    if (sizeof_lane * 8 == bits) { \
        if (bytes == 64) \
            _mm512_mask_storeu_epi##bits(p, (1ull << lanes) - 1, _mm512_loadu_si512(value)); \
        else if (bytes == 32) \
            _mm256_mask_storeu_epi##bits(p, (1u << lanes) - 1, _mm256_loadu_si256(value)); \
        else \
            _mm_mask_storeu_epi##bits(p, (1u << lanes) - 1, _mm_loadu_si128(value)); \
    }
/* The first lanes of a vector of so many bytes; the others are zero. */
INLINE void load_masked(void *value, const char *p, int bytes, int sizeof_lane, int lanes)
{
    MASKED(8) MASKED(16) MASKED(32) MASKED(64)
}
INLINE void store_masked(const void *value, char *p, int bytes, int sizeof_lane, int lanes)
{
    MASKED_STORE(8) MASKED_STORE(16) MASKED_STORE(32) MASKED_STORE(64)
}
#else
#define MASKS 0
INLINE void load_masked(void *value, const char *p, int bytes, int sizeof_lane, int lanes) {}
INLINE void store_masked(const void *value, char *p, int bytes, int sizeof_lane, int lanes) {}
#endif

typedef void outer_body(const struct copy *p, const char *source, char *target);
typedef void tile_body(const struct copy *p, const char *source, char *target, int64_t row, int64_t row_end,
                       int64_t column, int64_t column_end);

/* Calls the body for every combination of the outer axes. */
INLINE void each_outer(const struct copy *plan, const char *source, char *target, outer_body *body)
{
    const struct copy p = *plan; /* a local copy stays in registers across stores */
    for (int64_t r = 0; r < p.repeat; r++)
        for (int64_t o = 0; o < p.outer; o++)
            body(&p, source + r * p.repeat_source + p.outer_source[o],
                 target + r * p.repeat_target + p.outer_target[o]);
    if (p.stream) /* later ordinary stores must not overtake the streamed ones */
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

/* The same for every tile of rows and columns, each of which fits the caches. */
INLINE void each_tile(const struct copy *plan, const char *source, char *target, tile_body *body)
{
    const struct copy p = *plan;
    for (int64_t r = 0; r < p.repeat; r++)
        for (int64_t o = 0; o < p.outer; o++) {
            const char *from = source + r * p.repeat_source + p.outer_source[o];
            char *to = target + r * p.repeat_target + p.outer_target[o];
            for (int64_t i = 0; i < p.rows; i += p.row_tile)
                for (int64_t j = 0; j < p.columns; j += p.column_tile)
                    body(&p, from, to, i, least(i + p.row_tile, p.rows), j, least(j + p.column_tile, p.columns));
        }
    if (p.stream)
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

/* Lanes of so many elements of `PER` lanes. */
#define LIST_1_2 LIST2
#define LIST_1_4 LIST4
#define LIST_1_8 LIST8
#define LIST_1_16 LIST16
#define LIST_2_1 LIST2
#define LIST_2_2 LIST4
#define LIST_2_4 LIST8
#define LIST_4_1 LIST4
#define LIST_4_2 LIST8
#define GLUE2_(a, b) a##_##b
#define GLUE2(a, b) GLUE2_(a, b)
#define GLUE3(a, b, c) GLUE2(GLUE2(a, b), c)
#define LIST(elements) GLUE3(LIST, PER, elements)

/* The blocks of a width, as T(rows, columns, vector) for powers of two and O(rows, columns, vector) for others, which
 * are below 8: kernels for sides of 9 to 15 would be a third of this file, and two blocks do as well on the whole. */
#define TILES2(T, O) T(1, 1, 1) T(1, 2, 2) T(2, 1, 2) T(2, 2, 2)
#define TILES4(T, O) \
    TILES2(T, O) T(1, 4, 4) T(2, 4, 4) T(4, 1, 4) T(4, 2, 4) T(4, 4, 4) O(3, 3, 4) O(3, 4, 4) O(4, 3, 4)
#define LONG8(O, n) O(n, n, 8) O(n, 8, 8) O(8, n, 8)
#define TILES8(T, O) \
    TILES2(T, O) T(1, 4, 4) T(2, 4, 4) T(4, 1, 4) T(4, 2, 4) T(4, 4, 4) \
    T(1, 8, 8) T(2, 8, 8) T(4, 8, 8) T(8, 1, 8) T(8, 2, 8) T(8, 4, 8) T(8, 8, 8) \
    O(3, 3, 4) O(3, 8, 8) O(8, 3, 8) LONG8(O, 5) LONG8(O, 6) LONG8(O, 7)
#define SHORT16(O, n) O(n, 16, 16) O(16, n, 16)
#define TILES16(T, O) \
    TILES2(T, O) T(1, 4, 4) T(2, 4, 4) T(4, 1, 4) T(4, 2, 4) T(4, 4, 4) \
    T(1, 8, 8) T(2, 8, 8) T(4, 8, 8) T(8, 1, 8) T(8, 2, 8) T(8, 4, 8) T(8, 8, 8) \
    T(1, 16, 16) T(2, 16, 16) T(4, 16, 16) T(8, 16, 16) \
    T(16, 1, 16) T(16, 2, 16) T(16, 4, 16) T(16, 8, 16) T(16, 16, 16) \
    O(3, 3, 4) O(5, 5, 8) O(6, 6, 8) O(7, 7, 8) SHORT16(O, 3) SHORT16(O, 5) SHORT16(O, 6) SHORT16(O, 7)

#define ITEM 1
#define LANE uint8_t
#define PER 1
#define WIDTH 16
#include "copying/copy_item.h"

#define ITEM 2
#define LANE uint16_t
#define PER 1
#if VECTOR_BYTES >= 32
#define WIDTH 16
#else
#define WIDTH 8
#endif
#include "copying/copy_item.h"

#define ITEM 4
#define LANE uint32_t
#define PER 1
#if VECTOR_BYTES == 64
#define WIDTH 16
#elif VECTOR_BYTES == 32
#define WIDTH 8
#else
#define WIDTH 4
#endif
#include "copying/copy_item.h"

#define ITEM 8
#define LANE uint64_t
#define PER 1
#if VECTOR_BYTES == 64
#define WIDTH 8
#elif VECTOR_BYTES == 32
#define WIDTH 4
#else
#define WIDTH 2
#endif
#include "copying/copy_item.h"

#if VECTOR_BYTES >= 32
#define ITEM 16
#define LANE uint64_t
#define PER 2
#if VECTOR_BYTES == 64
#define WIDTH 4
#else
#define WIDTH 2
#endif
#include "copying/copy_item.h"
#endif

#if VECTOR_BYTES == 64
#define ITEM 32
#define LANE uint64_t
#define PER 4
#define WIDTH 2
#include "copying/copy_item.h"
#endif

/* Runs of at least one vector; the last vector of a run ends where the run ends. */
#define RUN(SIZE) \
    INLINE void runs_##SIZE(const struct copy *p, const char *source, char *target, int64_t row, int64_t row_end, \
                            int64_t column, int64_t column_end) \
    { \
        typedef VECTOR(uint8_t, SIZE) vector; \
        const int64_t last = p->run - SIZE; \
        for (int64_t i = row; i < row_end; i++) { \
            const char *of_row = source + p->row_source[i]; \
            char *to_row = target + p->row_target[i]; \
            for (int64_t j = column; j < column_end; j++) { \
                const char *of = of_row + p->column_source[j]; \
                char *to = to_row + p->column_target[j]; \
                if (SIZE == VECTOR_BYTES && p->stream) { \
                    for (int64_t k = 0; k <= last; k += SIZE) \
                        stream_vector(to + k, of + k); \
                    continue; \
                } \
                for (int64_t k = 0; k < last; k += SIZE) \
                    *(vector *)(to + k) = *(const vector *)(of + k); \
                *(vector *)(to + last) = *(const vector *)(of + last); \
            } \
        } \
    } \
    static void run_##SIZE(const struct copy *p, const char *source, char *target) \
    { \
        each_tile(p, source, target, runs_##SIZE); \
    }

RUN(1)
RUN(2)
RUN(4)
RUN(8)
RUN(16)
#if VECTOR_BYTES >= 32
RUN(32)
#endif
#if VECTOR_BYTES == 64
RUN(64)
#endif

#define ENTRY(item, R, C) [R][C] = tile_##item##_##R##_##C,
#define ENTRY1(R, C, E) ENTRY(1, R, C)
#define ENTRY2(R, C, E) ENTRY(2, R, C)
#define ENTRY4(R, C, E) ENTRY(4, R, C)
#define ENTRY8(R, C, E) ENTRY(8, R, C)
#define ENTRY16(R, C, E) ENTRY(16, R, C)
#define ENTRY32(R, C, E) ENTRY(32, R, C)
#define NARROW(kind, item) \
    {[2] = kind##_##item##_2, kind##_##item##_3, kind##_##item##_4, kind##_##item##_5, kind##_##item##_6, \
     kind##_##item##_7}
/* Narrow copies of fewer rows than there are elements in a vector. */
#define NARROW4(kind, item) {[2] = kind##_##item##_2, kind##_##item##_3}

const struct copy_kernels NAME(copy_kernels) = {
    .vector_bytes = VECTOR_BYTES,
#if VECTOR_BYTES == 64
    .tile = {{TILES16(ENTRY1, ENTRY1)}, {TILES16(ENTRY2, ENTRY2)}, {TILES16(ENTRY4, ENTRY4)}, {TILES8(ENTRY8, ENTRY8)}, {TILES4(ENTRY16, ENTRY16)}, {TILES2(ENTRY32, ENTRY32)}},
    .interleave = {NARROW(interleave, 1), NARROW(interleave, 2), NARROW(interleave, 4), NARROW(interleave, 8),
                   NARROW4(interleave, 16)},
    .deinterleave = {NARROW(deinterleave, 1), NARROW(deinterleave, 2), NARROW(deinterleave, 4),
                     NARROW(deinterleave, 8), NARROW4(deinterleave, 16)},
    .run = {run_1, run_2, run_4, run_8, run_16, run_32, run_64},
#elif VECTOR_BYTES == 32
    .tile = {{TILES16(ENTRY1, ENTRY1)}, {TILES16(ENTRY2, ENTRY2)}, {TILES8(ENTRY4, ENTRY4)}, {TILES4(ENTRY8, ENTRY8)}, {TILES2(ENTRY16, ENTRY16)}},
    .interleave = {NARROW(interleave, 1), NARROW(interleave, 2), NARROW(interleave, 4), NARROW4(interleave, 8)},
    .deinterleave = {NARROW(deinterleave, 1), NARROW(deinterleave, 2), NARROW(deinterleave, 4),
                     NARROW4(deinterleave, 8)},
    .run = {run_1, run_2, run_4, run_8, run_16, run_32},
#else
    .tile = {{TILES16(ENTRY1, ENTRY1)}, {TILES8(ENTRY2, ENTRY2)}, {TILES4(ENTRY4, ENTRY4)}, {TILES2(ENTRY8, ENTRY8)}},
    .interleave = {NARROW(interleave, 1), NARROW(interleave, 2), NARROW4(interleave, 4)},
    .deinterleave = {NARROW(deinterleave, 1), NARROW(deinterleave, 2), NARROW4(deinterleave, 4)},
    .run = {run_1, run_2, run_4, run_8, run_16},
#endif
};
