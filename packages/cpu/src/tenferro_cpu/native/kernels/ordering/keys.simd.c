/* Keys and words of keys.h for one vector level; the compiler vectorises the loops. */
#include "kernels/ordering/keys.h"
#include "kernels/ordering/float_keys.h"

#if defined(__clang__)
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define INDEPENDENT _Pragma("GCC ivdep")
#endif

INLINE int64_t key_i64(int64_t x, int64_t flip) { return x ^ flip; }
INLINE int64_t key_i32(int32_t x, int64_t flip) { return x ^ flip; }
INLINE int64_t key_u64(uint64_t x, int64_t flip) { return (int64_t)(x ^ UINT64_C(1) << 63) ^ flip; }
INLINE int64_t key_u32(uint32_t x, int64_t flip) { return (int32_t)(x ^ UINT32_C(1) << 31) ^ flip; }
INLINE int64_t key_i16(int16_t x, int64_t flip) { return x ^ flip; }
INLINE int64_t key_i8(int8_t x, int64_t flip) { return x ^ flip; }
INLINE int64_t key_u16(uint16_t x, int64_t flip) { return x ^ flip; }
INLINE int64_t key_u8(uint8_t x, int64_t flip) { return x ^ flip; }

#define KEYS(type, T)                                                                                   \
    static void keys_##type(const char *x, int64_t n, int64_t stride, int64_t flip, int64_t *keys)      \
    {                                                                                                   \
        if (stride == sizeof(T))                                                                        \
            for (int64_t i = 0; i < n; i++)                                                             \
                keys[i] = key_##type(((const T *)x)[i], flip);                                          \
        else                                                                                            \
            for (int64_t i = 0; i < n; i++)                                                             \
                keys[i] = key_##type(*(const T *)(x + i * stride), flip);                               \
    }
KEYS(f64, double)
KEYS(f32, float)
KEYS(i64, int64_t)
KEYS(i32, int32_t)
KEYS(u64, uint64_t)
KEYS(u32, uint32_t)
KEYS(i16, int16_t)
KEYS(i8, int8_t)
KEYS(u16, uint16_t)
KEYS(u8, uint8_t)

static void widen(const int64_t *keys, int64_t n, struct key_range *range)
{
    int64_t low = range->low, high = range->high;
    uint64_t differing = 0;
    for (int64_t i = 0; i < n; i++) {
        low = keys[i] < low ? keys[i] : low;
        high = keys[i] > high ? keys[i] : high;
        differing |= (uint64_t)(keys[i] ^ keys[0]);
    }
    if (range->low <= range->high) /* not the first keys */
        differing |= (uint64_t)(keys[0] ^ range->low);
    *range = (struct key_range){low, high, range->differing | differing};
}

static void pack(const int64_t *keys, int64_t n, int64_t first, const struct packing *packing, uint64_t *words)
{
    const uint64_t low = (uint64_t)packing->low;
    const int drop = packing->drop, bits = packing->position_bits;
    for (int64_t i = 0; i < n; i++)
        words[i] = ((uint64_t)keys[i] - low) >> drop << bits | (uint64_t)(first + i);
}

enum { LOOK = 64 };

static int64_t next_tie(const uint64_t *words, int64_t from, int64_t n, int position_bits)
{
    const uint64_t other_key = UINT64_C(1) << position_bits;
    int64_t i = from;
    for (; i + LOOK < n; i += LOOK) {
        int found = 0;
        for (int64_t j = i; j < i + LOOK; j++)
            found |= (words[j] ^ words[j + 1]) < other_key;
        if (found)
            break;
    }
    while (i + 1 < n && (words[i] ^ words[i + 1]) >= other_key)
        i++;
    return i;
}

static void positions(const uint64_t *words, int64_t n, int position_bits, char *positions, int64_t stride)
{
    const uint64_t mask = (UINT64_C(1) << position_bits) - 1;
    if (stride == sizeof(int64_t))
        INDEPENDENT /* they may overwrite the words */
        for (int64_t i = 0; i < n; i++)
            ((int64_t *)positions)[i] = (int64_t)(words[i] & mask);
    else
        for (int64_t i = 0; i < n; i++)
            *(int64_t *)(positions + i * stride) = (int64_t)(words[i] & mask);
}

const struct key_kernels NAME(key_kernels) = {
    .keys = {keys_f64, keys_f32, keys_i64, keys_i32, keys_u64, keys_u32, keys_i16, keys_i8, keys_u16, keys_u8},
    .widen = widen,
    .pack = pack,
    .next_tie = next_tie,
    .positions = positions,
};
