/* The search for results that are not finite. */
#include "status.h"

/* Adding one to the exponent carries into the sign only for infinities and NaN. */
#define SCAN(word, exponent, one)                                             \
    static inline int scan_##word(const word *numbers, int64_t count)         \
    {                                                                         \
        word odd = 0;                                                         \
        int64_t i = 0;                                                        \
        for (; i + 128 <= count; i += 128)                                    \
            for (int j = 0; j < 128; j++)                                     \
                odd |= (numbers[i + j] & (exponent)) + (one);                 \
        for (; i < count; i++)                                                \
            odd |= (numbers[i] & (exponent)) + (one);                         \
        return odd >> (8 * sizeof(word) - 1) != 0;                            \
    }
SCAN(uint64_t, UINT64_C(0x7FF0000000000000), UINT64_C(1) << 52)
SCAN(uint32_t, UINT32_C(0x7F800000), UINT32_C(1) << 23)

int NAME(tenferro_scan)(const void *data, int64_t bytes, int size)
{
    if (size == 8)
        return scan_uint64_t(data, bytes / 8);
    return size == 4 && scan_uint32_t(data, bytes / 4);
}
