/* Kernels of fill.h for one vector level. The compiler vectorises the loops over blocks, which stay in the cache.
 *
 * The formulas are those of `tenferro_runtime.random._stream`, operation by operation, so that programs are bit-equal;
 * only exponents are extracted from the bits of a number, where programs scale it step by step. */
#include "kernels/random/fill.h"
#include "kernels/random/tables.h"
#include "inline.h"

#include <math.h>
#include <string.h>

enum { BLOCK = 256, GROUP = 32 }; /* numbers at a time; numbers that share one test for tails */

INLINE uint32_t rotated(uint32_t x, int turn)
{
    return x << turn | x >> (32 - turn);
}

/* The rounds of Threefry-2x32 on a block x, y under keys k0, k1 and their parity k2. */
#define ROUND(turn) x += y, y = rotated(y, turn) ^ x
#define ROUNDS_A ROUND(13), ROUND(15), ROUND(26), ROUND(6)
#define ROUNDS_B ROUND(17), ROUND(29), ROUND(16), ROUND(24)
#define ALL_ROUNDS                                                             \
    ROUNDS_A, x += k1, y += k2 + 1;                                            \
    ROUNDS_B, x += k2, y += k0 + 2;                                            \
    ROUNDS_A, x += k0, y += k1 + 3;                                            \
    ROUNDS_B, x += k1, y += k2 + 4;                                            \
    ROUNDS_A, x += k2, y += k0 + 5

/* Threefry-2x32 with 20 rounds, of `count` counters from `start` on. */
INLINE void words(uint64_t key, uint64_t start, const uint32_t count, uint32_t *restrict upper, uint32_t *restrict lower)
{
    const uint32_t k0 = (uint32_t)(key >> 32), k1 = (uint32_t)key, k2 = k0 ^ k1 ^ 0x1BD11BDA;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t low = (uint32_t)start + i;
        uint32_t x = (uint32_t)(start >> 32) + (low < i) + k0, y = low + k1;
        ALL_ROUNDS;
        upper[i] = x;
        lower[i] = y;
    }
}

/* The same counter under many keys. */
static void keyed_words(const uint64_t *restrict keys, int count, uint32_t high, uint32_t low, uint32_t *restrict upper,
                        uint32_t *restrict lower)
{
    for (int i = 0; i < count; i++) {
        const uint32_t k0 = (uint32_t)(keys[i] >> 32), k1 = (uint32_t)keys[i], k2 = k0 ^ k1 ^ 0x1BD11BDA;
        uint32_t x = high + k0, y = low + k1;
        ALL_ROUNDS;
        upper[i] = x;
        lower[i] = y;
    }
}

INLINE double f64_of_bits(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

INLINE uint64_t bits_of_f64(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

INLINE float f32_of_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

INLINE uint32_t bits_of_f32(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* Numbers in [0, 1) from words: bits below a leading one. */
INLINE double f64_of_words(uint32_t upper, uint32_t lower)
{
    return f64_of_bits(0x3ff0000000000000 | ((uint64_t)upper << 32 | lower) >> 12) - 1.0;
}

INLINE float f32_of_words(uint32_t upper, uint32_t lower)
{
    return f32_of_bits(0x3f800000 | (upper ^ lower) >> 9) - 1.0f;
}

/* p = m 2**-e with m in [1/2, 1) as bits, and e as a number: a small integer is the end of one with a leading bit. */
INLINE double split_f64(double p, double *e)
{
    const uint64_t bits = bits_of_f64(p);
    *e = f64_of_bits(0x4330000000000000 | (2047 - (bits >> 52))) - 4503599627371521.0;
    return f64_of_bits((bits & 0x000fffffffffffff) | 0x3fe0000000000000);
}

INLINE float split_f32(float p, float *e)
{
    const uint32_t bits = bits_of_f32(p);
    *e = f32_of_bits(0x4b000000 | (255 - (bits >> 23))) - 8388737.0f;
    return f32_of_bits((bits & 0x007fffff) | 0x3f000000);
}

/* Sums of the even or the odd terms of a polynomial; the tables have no fewer terms than the calls below count. */
#define HORNER(T)                                                              \
    INLINE T horner_##T(T x, const T *c, const int last, const int step)       \
    {                                                                          \
        T total = c[last];                                                     \
        for (int k = last - step; k >= 0; k -= step)                           \
            total = x * total + c[k];                                          \
        return total;                                                          \
    }                                                                          \
    INLINE T polynomial_##T(T x, const T *c, const int terms)                  \
    {                                                                          \
        const T square = x * x;                                                \
        const int even = (terms - 1) / 2 * 2, odd = (terms - 2) / 2 * 2;       \
        return horner_##T(square, c, even, 2) + x * horner_##T(square, c + 1, odd, 2); \
    }
HORNER(double)
HORNER(float)

#define COUNT(table) ((int)(sizeof table / sizeof *table))

#define LOGARITHM(T, type, table, half_root, high, low)                        \
    INLINE T minus_log_##T(T p)                                                \
    {                                                                          \
        T e;                                                                   \
        T m = split_##type(p, &e);                                             \
        const int small = m < half_root;                                       \
        m = small ? m + m : m;                                                 \
        e = small ? e + 1 : e;                                                 \
        const T s = (m - 1) / (m + 1), square = s * s;                         \
        return e * high + (e * low - s * (square * horner_##T(square, table, COUNT(table) - 1, 1) + 2)); \
    }
LOGARITHM(double, f64, log64, 0.7071067811865476, 0.6931471803691238, 1.9082149292705877e-10)
LOGARITHM(float, f32, log32, 0.70710678f, 0.693145751953125f, 1.4286068e-06f)

/* `name` with blocks of one of two lengths. */
#define IN_BLOCKS(name)                                                        \
    static void name(uint64_t key, uint64_t start, int64_t n, void *out)       \
    {                                                                          \
        if (n <= GROUP)                                                        \
            name##_by(GROUP, key, start, n, out);                              \
        else                                                                   \
            name##_by(BLOCK, key, start, n, out);                              \
    }

/* `number`, an expression of the words `x` and `y`, for each position. */
#define FILL(name, T, number)                                                  \
    INLINE void name##_by(const int count, uint64_t key, uint64_t start, int64_t n, T *z) \
    {                                                                          \
        uint32_t upper[BLOCK], lower[BLOCK];                                   \
        for (int64_t done = 0; done < n; done += count) {                      \
            T block[BLOCK];                                                    \
            words(key, start + (uint64_t)done, (uint32_t)count, upper, lower); \
            for (int i = 0; i < count; i++) {                                  \
                const uint32_t x = upper[i], y = lower[i];                     \
                block[i] = (T)(number);                                        \
            }                                                                  \
            memcpy(z + done, block, (size_t)(n - done < count ? n - done : count) * sizeof(T)); \
        }                                                                      \
    }                                                                          \
    IN_BLOCKS(name)
FILL(bits64, uint64_t, (uint64_t)x << 32 | y)
FILL(bits32, uint32_t, x ^ y)
FILL(bits16, uint16_t, x ^ y)
FILL(bits8, uint8_t, x ^ y)
FILL(uniform64, double, f64_of_words(x, y))
FILL(uniform32, float, f32_of_words(x, y))
FILL(exponential64, double, minus_log_double(1.0 - f64_of_words(x, y)))
FILL(exponential32, float, minus_log_float(1.0f - f32_of_words(x, y)))

/* sqrt(2) erfinv(u) of u in (-1, 1), in the centre and in the tail of w = -log(1 - u^2). */
#define ERFINV(T, root, centre, a, b, tail, c, d)                              \
    INLINE T centre_##T(T u, T w)                                              \
    {                                                                          \
        return u * polynomial_##T(w * a + b, centre, COUNT(centre));           \
    }                                                                          \
    INLINE T tail_##T(T u, T w)                                                \
    {                                                                          \
        const T reciprocal = 1 / root(w);                                      \
        return u * (polynomial_##T(reciprocal * c + d, tail, COUNT(tail)) / reciprocal); \
    }
ERFINV(double, sqrt, centre64, 0.32, -1.0, tail64, 8.551136363636363, -2.4204545454545454)
ERFINV(float, sqrtf, centre32, 0.4f, -1.0f, tail32, 10.141289f, -3.5353222f)

/* Normal numbers from words: centres of whole blocks, then the few tails. */
#define NORMAL(name, T, of_words, least, split)                                \
    INLINE void name##_of(const int count, const uint32_t *upper, const uint32_t *lower, T *block) \
    {                                                                          \
        T w[BLOCK];                                                            \
        for (int i = 0; i < count; i++) {                                      \
            const T u = of_words(upper[i], lower[i]) * 2 + least;              \
            w[i] = minus_log_##T((1 - u) * (1 + u));                           \
            block[i] = centre_##T(u, w[i]);                                    \
        }                                                                      \
        for (int from = 0; from < count; from += GROUP) {                      \
            int any = 0;                                                       \
            for (int i = from; i < from + GROUP; i++)                          \
                any |= w[i] >= split;                                          \
            for (int i = from; any && i < from + GROUP; i++)                   \
                if (w[i] >= split)                                             \
                    block[i] = tail_##T(of_words(upper[i], lower[i]) * 2 + least, w[i]); \
        }                                                                      \
    }                                                                          \
    INLINE void name##_by(const int count, uint64_t key, uint64_t start, int64_t n, T *z) \
    {                                                                          \
        uint32_t upper[BLOCK], lower[BLOCK];                                   \
        for (int64_t done = 0; done < n; done += count) {                      \
            T block[BLOCK];                                                    \
            words(key, start + (uint64_t)done, (uint32_t)count, upper, lower); \
            name##_of(count, upper, lower, block);                             \
            memcpy(z + done, block, (size_t)(n - done < count ? n - done : count) * sizeof(T)); \
        }                                                                      \
    }                                                                          \
    IN_BLOCKS(name)
NORMAL(normal64, double, f64_of_words, -0.99999999999999988897769753748, 6.25)
NORMAL(normal32, float, f32_of_words, -0.999999940395355224609375f, 5.0f)

/* Logarithms of gamma numbers by G. Marsaglia, W. W. Tsang, A simple method for generating gamma variables, 2000. Each
 * number has a stream of its own, whose key is its word of the stream of `key`, and two words of it for each attempt.
 * Numbers that are refused are brought together and tried again. */
struct refused {
    uint64_t keys[BLOCK];
    double d[BLOCK], c[BLOCK];
    int place[BLOCK];
};

/* One attempt for `count` numbers: writes the accepted ones, keeps the others and returns their number. */
static int attempt(struct refused *todo, int count, uint32_t number, double *results)
{
    uint32_t upper[BLOCK] = {0}, lower[BLOCK] = {0};
    double x[BLOCK], u[BLOCK], v[BLOCK], log_v[BLOCK], log_d[BLOCK];
    keyed_words(todo->keys, count, 0, 2 * number, upper, lower);
    normal64_of(BLOCK, upper, lower, x);
    keyed_words(todo->keys, count, 0, 2 * number + 1, upper, lower);
    for (int i = 0; i < count; i++) {
        const double root = x[i] * todo->c[i] + 1.0;
        u[i] = minus_log_double(1.0 - f64_of_words(upper[i], lower[i]));
        v[i] = root * root * root;
        log_v[i] = root > 0.0 ? minus_log_double(root) * -3.0 : -INFINITY;
        log_d[i] = minus_log_double(todo->d[i]);
    }
    int rest = 0;
    for (int i = 0; i < count; i++) {
        const double bound = x[i] * x[i] * 0.5 + todo->d[i] - todo->d[i] * v[i] + todo->d[i] * log_v[i];
        results[todo->place[i]] = log_v[i] - log_d[i];
        if (-u[i] >= bound) {
            todo->keys[rest] = todo->keys[i];
            todo->d[rest] = todo->d[i];
            todo->c[rest] = todo->c[i];
            todo->place[rest++] = todo->place[i];
        }
    }
    return rest;
}

static void log_gamma(uint64_t key, uint64_t start, int64_t n, const double *shapes, double *out)
{
    enum { ATTEMPTS = 1 << 16 };
    for (int64_t done = 0; done < n; done += BLOCK) {
        const int count = n - done < BLOCK ? (int)(n - done) : BLOCK;
        uint32_t upper[BLOCK], lower[BLOCK];
        double results[BLOCK];
        struct refused todo;
        words(key, start + (uint64_t)done, BLOCK, upper, lower);
        for (int i = 0; i < count; i++) {
            const double a = shapes[done + i], d = (a < 1.0 ? a + 1.0 : a) - 1.0 / 3.0;
            todo.keys[i] = (uint64_t)upper[i] << 32 | lower[i];
            todo.d[i] = d;
            todo.c[i] = 1.0 / sqrt(d * 9.0);
            todo.place[i] = i;
        }
        uint64_t keys[BLOCK];
        memcpy(keys, todo.keys, sizeof keys);
        int rest = count;
        for (uint32_t number = 0; rest > 0 && number < ATTEMPTS; number++)
            rest = attempt(&todo, rest, number, results);
        keyed_words(keys, count, 1, 0, upper, lower);
        for (int i = 0; i < count; i++) {
            const double a = shapes[done + i], boost = minus_log_double(1.0 - f64_of_words(upper[i], lower[i])) / a;
            results[i] = a < 1.0 ? results[i] - boost : results[i];
            results[i] = a == INFINITY ? a : a > 0.0 ? results[i] : a == 0.0 ? -INFINITY : NAN;
        }
        memcpy(out + done, results, (size_t)count * sizeof *out);
    }
}

const struct random_kernels NAME(random_kernels) = {
    bits64, bits32, bits16, bits8, uniform64, uniform32, normal64, normal32, exponential64, exponential32,
    log_gamma,
};
