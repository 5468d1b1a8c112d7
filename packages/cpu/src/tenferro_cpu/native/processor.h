/* The vector level of the processor; the build asks it too, and compiles this level where it needs no other. */
#ifndef TENFERRO_PROCESSOR_H
#define TENFERRO_PROCESSOR_H

#include "levels.h"

#if defined(__x86_64__)
#include <cpuid.h>

static const char *const level_names[] = {"generic", "avx2", "avx512"};

/* Registers that the operating system saves, by the bits of XCR0. */
static inline unsigned saved_registers(void)
{
    unsigned low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}

/* Not __builtin_cpu_supports: the runtime libraries of some compilers answer no to everything. */
static inline enum tenferro_level best_level(void)
{
    enum { FMA = 1 << 12, OSXSAVE = 1 << 27, AVX = 1 << 28 };                /* leaf 1, ecx */
    enum { BMI1 = 1 << 3, AVX2 = 1 << 5, BMI2 = 1 << 8 };                    /* leaf 7, ebx */
    const unsigned v4 = 1u << 16 | 1u << 17 | 1u << 28 | 1u << 30 | 1u << 31; /* AVX-512 F, DQ, CD, BW, VL */
    unsigned a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || (c & (FMA | OSXSAVE | AVX)) != (FMA | OSXSAVE | AVX))
        return TENFERRO_BASE;
    unsigned saved = saved_registers();
    if ((saved & 0x06) != 0x06 || !__get_cpuid_count(7, 0, &a, &b, &c, &d))
        return TENFERRO_BASE;
    if ((b & (BMI1 | AVX2 | BMI2)) != (BMI1 | AVX2 | BMI2))
        return TENFERRO_BASE;
    return (saved & 0xe6) == 0xe6 && (b & v4) == v4 ? TENFERRO_V4 : TENFERRO_V3;
}
#else
#if defined(__aarch64__)
static const char *const level_names[] = {"neon"};
#else
static const char *const level_names[] = {"generic"};
#endif

static inline enum tenferro_level best_level(void)
{
    return TENFERRO_BASE;
}
#endif

#endif
