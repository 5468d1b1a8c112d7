/* Row kernels of eager arithmetic and comparison, for one vector level: of contiguous arrays, and of one with a number.
 *
 * They are bit-equal to kernels compiled for a program: each operation rounds once. The compiler vectorises the
 * loops; a result may overwrite an operand, element for element. Extremes of floating-point numbers are missing: C
 * compilers generate slower code for them. */
#include "compiled.h"
#include "kernels/arithmetic.h"
#include "levels.h"

#include <math.h>

#if defined(__clang__)
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define INDEPENDENT _Pragma("GCC ivdep")
#endif

/* `result` of a and b, or of a alone, for each element. */
#define LOOP(f, T, U, left, right, result)                                      \
    static void f(char **data, int64_t n, const int64_t *strides)               \
    {                                                                           \
        const T *x = (const T *)data[0], *y = (const T *)data[1];               \
        U *z = (U *)data[2];                                                    \
        INDEPENDENT                                                             \
        for (int64_t i = 0; i < n; i++) {                                       \
            T a = x[left], b = y[right];                                        \
            z[i] = (U)(result);                                                 \
        }                                                                       \
    }
#define BINARY(op, type, T, U, result)                                          \
    LOOP(op##_##type##_arrays, T, U, i, i, result)                              \
    LOOP(op##_##type##_number, T, U, i, 0, result)                              \
    LOOP(op##_##type##_reflected, T, U, 0, i, result)
#define UNARY(op, type, T, result)                                              \
    static void op##_##type##_array(char **data, int64_t n, const int64_t *strides) \
    {                                                                           \
        const T *x = (const T *)data[0];                                        \
        T *z = (T *)data[1];                                                    \
        INDEPENDENT                                                             \
        for (int64_t i = 0; i < n; i++) {                                       \
            T a = x[i];                                                         \
            z[i] = (T)(result);                                                 \
        }                                                                       \
    }

/* Integers wrap, so they are added and multiplied without a sign (W). */
#define ALL(type, T, W)                                                         \
    BINARY(add, type, T, T, (W)a + (W)b)                                        \
    BINARY(sub, type, T, T, (W)a - (W)b)                                        \
    BINARY(mul, type, T, T, (W)a * (W)b)                                        \
    BINARY(eq, type, T, uint8_t, a == b)                                        \
    BINARY(ne, type, T, uint8_t, a != b)                                        \
    BINARY(lt, type, T, uint8_t, a < b)                                         \
    BINARY(le, type, T, uint8_t, a <= b)                                        \
    BINARY(gt, type, T, uint8_t, a > b)                                         \
    BINARY(ge, type, T, uint8_t, a >= b)
#define REAL(type, T, absolute, root)                                           \
    ALL(type, T, T)                                                             \
    BINARY(div, type, T, T, a / b)                                              \
    UNARY(neg, type, T, -a)                                                     \
    UNARY(abs, type, T, absolute(a))                                            \
    UNARY(sqrt, type, T, root(a))

#define INTEGER(type, T, W)                                                     \
    ALL(type, T, W)                                                             \
    BINARY(maximum, type, T, T, a > b ? a : b)                                  \
    BINARY(minimum, type, T, T, a < b ? a : b)

REAL(f64, double, fabs, sqrt)
REAL(f32, float, fabsf, sqrtf)
INTEGER(i64, int64_t, uint64_t)
INTEGER(i32, int32_t, uint32_t)
INTEGER(u64, uint64_t, uint64_t)
INTEGER(u32, uint32_t, uint32_t)
INTEGER(i16, int16_t, uint32_t)
INTEGER(u16, uint16_t, uint32_t)
INTEGER(i8, int8_t, uint32_t)
INTEGER(u8, uint8_t, uint32_t)

#define ROW2(op, type) {#op " " #type, op##_##type##_arrays, op##_##type##_number, op##_##type##_reflected}
#define ROW1(op, type) {#op " " #type, op##_##type##_array, NULL, NULL}
#define ROWS(type)                                                              \
    ROW2(add, type), ROW2(sub, type), ROW2(mul, type), ROW2(eq, type), ROW2(ne, type), ROW2(lt, type), ROW2(le, type), ROW2(gt, type), ROW2(ge, type)
#define INTEGER_ROWS(type) ROWS(type), ROW2(maximum, type), ROW2(minimum, type)
#define REAL_ROWS(type) ROWS(type), ROW2(div, type), ROW1(neg, type), ROW1(abs, type), ROW1(sqrt, type)

static const struct tenferro_row table[] = {
    REAL_ROWS(f64), REAL_ROWS(f32), INTEGER_ROWS(i64), INTEGER_ROWS(i32), INTEGER_ROWS(u64), INTEGER_ROWS(u32),
    INTEGER_ROWS(i16), INTEGER_ROWS(u16), INTEGER_ROWS(i8), INTEGER_ROWS(u8),
    {NULL, NULL, NULL, NULL},
};

const struct tenferro_row *NAME(tenferro_rows)(void)
{
    return table;
}
