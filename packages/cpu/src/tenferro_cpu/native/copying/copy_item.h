/* The kernels for elements of ITEM bytes, each of PER lanes of type LANE; a vector has at most WIDTH elements.
 * Included by copy.simd.c once for each size; no guard. */

#define VEC(elements) GLUE3(vec, ITEM, elements)
#define FUNCTION(name, elements) GLUE3(name, ITEM, elements)

/* In round `bit` of a transposition, vectors whose numbers differ in that bit exchange elements. */
#define FROM(k, first, unused) ((first) + (k))
#define ROUND(elements, bit) \
    UNROLLED for (int i = 0; i < count; i++) \
        if (!(i & (bit))) { \
            if ((elements) * ITEM >= 16) { \
                exchange(&v[i], &v[i + (bit)], (elements) * ITEM, (bit) * ITEM); \
            } else { \
                const VEC(elements) a = v[i], b = v[i + (bit)]; \
                v[i] = __builtin_shufflevector(a, b, LIST(elements)(LOW, (elements) * PER, (bit) * PER)); \
                v[i + (bit)] = __builtin_shufflevector(a, b, LIST(elements)(HIGH, (elements) * PER, (bit) * PER)); \
            } \
        }

/* Squares as wide as a vector use instructions that need no index: within units of 16 bytes, which hold SQUARE
 * elements, halves of two vectors are interleaved; then vectors exchange units. The first leaves column `k` of a
 * square at the number with reversed bits, REVERSE(k). */
#define PAIRS(elements, bit, unit, combine) \
    if ((elements) > (bit)) \
        UNROLLED for (int i = 0; i < (elements); i++) \
            if (!(i & (bit))) \
                combine(&v[i], &v[i + (bit)], (elements) * ITEM, unit);
#define SQUARES(elements) \
    if (ZIPS(elements) && count == (elements)) { \
        SQUARE_ROUND(elements, 1) SQUARE_ROUND(elements, 2) SQUARE_ROUND(elements, 4) SQUARE_ROUND(elements, 8) \
        return; \
    }
#define SQUARE_ROUND(elements, bit) \
    if (SQUARE > (bit)) { \
        PAIRS(elements, bit, (bit) * ITEM, zip) \
    } else { \
        PAIRS(elements, bit, 16, unzip) \
    }
#define ZIPS(elements) (ITEM <= 16 && (elements) * ITEM >= 16)
#if ITEM <= 16
#define SQUARE (16 / ITEM)
#else
#define SQUARE 1
#endif
#if SQUARE == 16
#define REVERSE(k) (((k) & 1) << 3 | ((k) & 2) << 1 | ((k) & 4) >> 1 | ((k) & 8) >> 3)
#elif SQUARE == 8
#define REVERSE(k) (((k) & 8) | ((k) & 1) << 2 | ((k) & 2) | ((k) & 4) >> 2)
#elif SQUARE == 4
#define REVERSE(k) (((k) & 12) | ((k) & 1) << 1 | ((k) & 2) >> 1)
#else
#define REVERSE(k) (k)
#endif
#define COLUMN(elements, count, k) (ZIPS(elements) && (count) == (elements) ? REVERSE(k) : (k))

/* Loads and stores of vectors, in parts that lie apart or only of their first elements, and the transposition of
 * `count` vectors: `count` is a power of two, and squares of so many elements along the vectors are transposed, each by
 * itself. HALF is half of ELEMENTS. */
#define VECTORS(ELEMENTS, HALF) \
    typedef VECTOR(LANE, ITEM * ELEMENTS) VEC(ELEMENTS); \
    INLINE VEC(ELEMENTS) FUNCTION(load, ELEMENTS)(const char *const *parts, int count) \
    { \
        if (count == 1) \
            return *(const VEC(ELEMENTS) *)parts[0]; \
        const VEC(HALF) a = FUNCTION(load, HALF)(parts, count / 2); \
        const VEC(HALF) b = FUNCTION(load, HALF)(parts + count / 2, count / 2); \
        JOINED(ELEMENTS, HALF) \
    } \
    INLINE void FUNCTION(store, ELEMENTS)(VEC(ELEMENTS) v, char *const *parts, int count) \
    { \
        if (count == 1) { \
            *(VEC(ELEMENTS) *)parts[0] = v; \
            return; \
        } \
        HALVES(ELEMENTS, HALF) \
        FUNCTION(store, HALF)(a, parts, count / 2); \
        FUNCTION(store, HALF)(b, parts + count / 2, count / 2); \
    } \
    INLINE VEC(ELEMENTS) FUNCTION(load_some, ELEMENTS)(const char *p, int n) \
    { \
        const char *const parts[] = {p}; \
        if (n >= ELEMENTS) \
            return FUNCTION(load, ELEMENTS)(parts, 1); \
        if (MASKS && ELEMENTS * ITEM >= 16) { \
            VEC(ELEMENTS) v; \
            load_masked(&v, p, ELEMENTS * ITEM, sizeof(LANE), n * PER); \
            return v; \
        } \
        VEC(HALF) a = {0}, b = {0}; \
        if (n > 0) \
            a = FUNCTION(load_some, HALF)(p, n); \
        if (n > HALF) \
            b = FUNCTION(load_some, HALF)(p + HALF * ITEM, n - HALF); \
        JOINED(ELEMENTS, HALF) \
    } \
    INLINE void FUNCTION(store_some, ELEMENTS)(VEC(ELEMENTS) v, char *p, int n) \
    { \
        char *const parts[] = {p}; \
        if (n >= ELEMENTS) { \
            FUNCTION(store, ELEMENTS)(v, parts, 1); \
            return; \
        } \
        HALVES(ELEMENTS, HALF) \
        if (n > 0) \
            FUNCTION(store_some, HALF)(a, p, n); \
        if (n > HALF) \
            FUNCTION(store_some, HALF)(b, p + HALF * ITEM, n - HALF); \
    } \
    INLINE void FUNCTION(transpose, ELEMENTS)(VEC(ELEMENTS) *v, int count) \
    { \
        SQUARES(ELEMENTS) \
        ROUNDS(ELEMENTS) \
    }

#define ROUND_FOR(elements, bit) \
    if (count > (bit)) \
        ROUND(elements, bit)

#if PER == 1
typedef LANE VEC(1) __attribute__((aligned(1), may_alias));
#else
typedef VECTOR(LANE, ITEM) VEC(1);
#endif
INLINE VEC(1) FUNCTION(load, 1)(const char *const *parts, int count)
{
    return *(const VEC(1) *)parts[0];
}
INLINE void FUNCTION(store, 1)(VEC(1) v, char *const *parts, int count)
{
    *(VEC(1) *)parts[0] = v;
}
INLINE VEC(1) FUNCTION(load_some, 1)(const char *p, int n)
{
    return *(const VEC(1) *)p;
}
INLINE void FUNCTION(store_some, 1)(VEC(1) v, char *p, int n)
{
    *(VEC(1) *)p = v;
}
INLINE void FUNCTION(transpose, 1)(VEC(1) *v, int count) {}

#if PER == 1
#define JOINED(ELEMENTS, HALF) return (VEC(ELEMENTS)){a, b};
#define HALVES(ELEMENTS, HALF) const VEC(HALF) a = v[0], b = v[1];
#define ROUNDS(ELEMENTS) ROUND_FOR(ELEMENTS, 1)
VECTORS(2, 1)
#undef JOINED
#undef HALVES
#undef ROUNDS
#endif
#define JOINED(ELEMENTS, HALF) \
    return __builtin_shufflevector(a, b, LIST(ELEMENTS)(FROM, 0, 0));
#define HALVES(ELEMENTS, HALF) \
    const VEC(HALF) a = __builtin_shufflevector(v, v, LIST(HALF)(FROM, 0, 0)); \
    const VEC(HALF) b = __builtin_shufflevector(v, v, LIST(HALF)(FROM, (HALF) * PER, 0));
#if PER != 1
#define ROUNDS(ELEMENTS) ROUND_FOR(ELEMENTS, 1)
VECTORS(2, 1)
#undef ROUNDS
#endif
#if WIDTH >= 4
#define ROUNDS(ELEMENTS) ROUND_FOR(ELEMENTS, 1) ROUND_FOR(ELEMENTS, 2)
VECTORS(4, 2)
#undef ROUNDS
#endif
#if WIDTH >= 8
#define ROUNDS(ELEMENTS) ROUND_FOR(ELEMENTS, 1) ROUND_FOR(ELEMENTS, 2) ROUND_FOR(ELEMENTS, 4)
VECTORS(8, 4)
#undef ROUNDS
#endif
#if WIDTH >= 16
#define ROUNDS(ELEMENTS) \
    ROUND_FOR(ELEMENTS, 1) ROUND_FOR(ELEMENTS, 2) ROUND_FOR(ELEMENTS, 4) ROUND_FOR(ELEMENTS, 8)
VECTORS(16, 8)
#undef ROUNDS
#endif

#if WIDTH == 16
#define TILES TILES16
#elif WIDTH == 8
#define TILES TILES8
#elif WIDTH == 4
#define TILES TILES4
#else
#define TILES TILES2
#endif

/* Where a block begins: the last whole vector ends with its axis; smaller groups divide their axis. */
#define FIRST(count, at, axis) ((count) == WIDTH ? least(at, axis##s - axis##_step) : (at) + axis##_at)

/* One block of R rows by C columns; E is the larger of both.
 *
 * Rows of at least as many columns are loaded as one vector each, and what becomes of them is stored in parts. Shorter
 * rows are loaded into common vectors, so that whole columns are stored. */
#define TILE(R, C, E) \
    INLINE void GLUE3(block_##R, C, ITEM)(const struct copy *p, const char *source, char *target, int64_t row, \
                                          int64_t row_end, int64_t column, int64_t column_end) \
    { \
        enum { COUNT = R < C ? R : C, PARTS = E / COUNT }; \
        for (int64_t i = row; i < row_end; i += p->row_step) { \
            const int64_t first = FIRST(R, i, p->row); \
            const char *from[R]; \
            UNROLLED for (int k = 0; k < R; k++) from[k] = source + p->row_source[first + k]; \
            char *to = target + p->row_target[first]; \
            UNROLLED_SMALL(E) for (int64_t j = column; j < column_end; j += p->column_step) { \
                const int64_t at = FIRST(C, j, p->column); \
                const int64_t here = p->column_source[at], *there = p->column_target + at; \
                VEC(E) v[COUNT]; \
                UNROLLED for (int k = 0; k < COUNT; k++) \
                { \
                    const char *parts[PARTS]; \
                    UNROLLED for (int q = 0; q < PARTS; q++) parts[q] = from[R < C ? k : q * C + k] + here; \
                    v[k] = FUNCTION(load, E)(parts, R < C ? 1 : PARTS); \
                } \
                FUNCTION(transpose, E)(v, COUNT); \
                if (R * ITEM == VECTOR_BYTES && p->stream) { \
                    UNROLLED for (int k = 0; k < COUNT; k++) stream_vector(to + there[k], &v[COLUMN(E, COUNT, k)]); \
                    continue; \
                } \
                UNROLLED for (int k = 0; k < COUNT; k++) \
                { \
                    char *parts[PARTS]; \
                    UNROLLED for (int q = 0; q < PARTS; q++) parts[q] = to + there[R < C ? q * R + k : k]; \
                    FUNCTION(store, E)(v[COLUMN(E, COUNT, k)], parts, R < C ? PARTS : 1); \
                } \
            } \
        } \
    } \
    static void GLUE3(GLUE2(tile, ITEM), R, C)(const struct copy *p, const char *source, char *target) \
    { \
        each_tile(p, source, target, GLUE3(block_##R, C, ITEM)); \
    }

/* A block with a side that is not a power of two: E is the next power, and rows and columns beyond are skipped. */
#define ODD(R, C, E) \
    INLINE void GLUE3(block_##R, C, ITEM)(const struct copy *p, const char *source, char *target, int64_t row, \
                                          int64_t row_end, int64_t column, int64_t column_end) \
    { \
        for (int64_t i = row; i < row_end; i += p->row_step) { \
            const int64_t first = FIRST(R, i, p->row); \
            const char *from[R]; \
            UNROLLED for (int k = 0; k < R; k++) from[k] = source + p->row_source[first + k]; \
            char *to = target + p->row_target[first]; \
            for (int64_t j = column; j < column_end; j += p->column_step) { \
                const int64_t at = FIRST(C, j, p->column); \
                const int64_t here = p->column_source[at], *there = p->column_target + at; \
                VEC(E) v[E] = {0}; \
                UNROLLED for (int k = 0; k < R; k++) v[k] = FUNCTION(load_some, E)(from[k] + here, C); \
                FUNCTION(transpose, E)(v, E); \
                UNROLLED for (int k = 0; k < C; k++) FUNCTION(store_some, E)(v[COLUMN(E, E, k)], to + there[k], R); \
            } \
        } \
    } \
    static void GLUE3(GLUE2(tile, ITEM), R, C)(const struct copy *p, const char *source, char *target) \
    { \
        each_tile(p, source, target, GLUE3(block_##R, C, ITEM)); \
    }

TILES(TILE, ODD)

/* Interleaves: element `i` of output `k` is that number of INTERLEAVED or DEINTERLEAVED in all vectors one after the
 * other, and lane `l` of it the enumerator PICK(l, k). Constants that the preprocessor wrote out for every lane and fold
 * would be most of this file's text. */
#define INTERLEAVED(i, k) ((((k) * WIDTH + (i)) % COUNT) * WIDTH + ((k) * WIDTH + (i)) / COUNT)
#define DEINTERLEAVED(i, k) ((i) * COUNT + (k))
#define PICK(l, k) pick_##k##_##l
#define PICKED(l, k, element) PICK(l, k) = element((l) / PER, k) * PER + (l) % PER
#define PICKS_2(element) LIST(WIDTH)(PICKED, 0, element), LIST(WIDTH)(PICKED, 1, element)
#define PICKS_3(element) PICKS_2(element), LIST(WIDTH)(PICKED, 2, element)
#define PICKS_4(element) PICKS_3(element), LIST(WIDTH)(PICKED, 3, element)
#define PICKS_5(element) PICKS_4(element), LIST(WIDTH)(PICKED, 4, element)
#define PICKS_6(element) PICKS_5(element), LIST(WIDTH)(PICKED, 5, element)
#define PICKS_7(element) PICKS_6(element), LIST(WIDTH)(PICKED, 6, element)
#define PICKS_(count, element) enum { ALL = WIDTH * PER, PICKS_##count(element) };
#define PICKS(count, element) PICKS_(count, element)

/* Vectors are folded in one by one: a lane is chosen among those folded before and of vector `n`, -1 comes later. */
#define TAKEN(l, k, n) \
    PICK(l, k) >= ((n) + 1) * ALL ? -1 : PICK(l, k) >= (n) * ALL || (n) == 1 ? PICK(l, k) - ((n) - 1) * ALL : (l)
#define FOLD(k, n) x = __builtin_shufflevector(n == 1 ? v[0] : x, v[n], LIST(WIDTH)(TAKEN, k, n));
#define FOLDS_2(k) FOLD(k, 1)
#define FOLDS_3(k) FOLDS_2(k) FOLD(k, 2)
#define FOLDS_4(k) FOLDS_3(k) FOLD(k, 3)
#define FOLDS_5(k) FOLDS_4(k) FOLD(k, 4)
#define FOLDS_6(k) FOLDS_5(k) FOLD(k, 5)
#define FOLDS_7(k) FOLDS_6(k) FOLD(k, 6)
#define FOLDS_(count, k) FOLDS_##count(k)
#define FOLDS(count, k) FOLDS_(count, k)
#define OUTPUT(k) \
    { \
        VEC(WIDTH) x; \
        FOLDS(COUNT, k) \
        out[k] = x; \
    }
#define OUTPUTS_2 OUTPUT(0) OUTPUT(1)
#define OUTPUTS_3 OUTPUTS_2 OUTPUT(2)
#define OUTPUTS_4 OUTPUTS_3 OUTPUT(3)
#define OUTPUTS_5 OUTPUTS_4 OUTPUT(4)
#define OUTPUTS_6 OUTPUTS_5 OUTPUT(5)
#define OUTPUTS_7 OUTPUTS_6 OUTPUT(6)
#define OUTPUTS_(count) OUTPUTS_##count
#define OUTPUTS(count) OUTPUTS_(count)

#if WIDTH >= 4
#define COUNT 2
#include "copying/copy_narrow.h"
#define COUNT 3
#include "copying/copy_narrow.h"
#endif
#if WIDTH > 4
#define COUNT 4
#include "copying/copy_narrow.h"
#define COUNT 5
#include "copying/copy_narrow.h"
#define COUNT 6
#include "copying/copy_narrow.h"
#define COUNT 7
#include "copying/copy_narrow.h"
#endif

#undef VEC
#undef FUNCTION
#undef FROM
#undef ROUND
#undef PAIRS
#undef SQUARE_ROUND
#undef SQUARES
#undef ZIPS
#undef SQUARE
#undef REVERSE
#undef COLUMN
#undef VECTORS
#undef ROUND_FOR
#undef JOINED
#undef HALVES
#undef TILE
#undef ODD
#undef FIRST
#undef TILES
#undef INTERLEAVED
#undef DEINTERLEAVED
#undef PICK
#undef PICKED
#undef PICKS_2
#undef PICKS_3
#undef PICKS_4
#undef PICKS_5
#undef PICKS_6
#undef PICKS_7
#undef PICKS_
#undef PICKS
#undef TAKEN
#undef FOLD
#undef FOLDS_2
#undef FOLDS_3
#undef FOLDS_4
#undef FOLDS_5
#undef FOLDS_6
#undef FOLDS_7
#undef FOLDS_
#undef FOLDS
#undef OUTPUT
#undef OUTPUTS_2
#undef OUTPUTS_3
#undef OUTPUTS_4
#undef OUTPUTS_5
#undef OUTPUTS_6
#undef OUTPUTS_7
#undef OUTPUTS_
#undef OUTPUTS
#undef ITEM
#undef LANE
#undef PER
#undef WIDTH
