/* Vector levels: files named *.simd.c are compiled once for each, with LEVEL defined as its name.
 *
 * NAME(f) is f_v2, f_v3, f_v4 or f_neon in such a file. Elsewhere TENFERRO_CHOOSE(f) is the address of the best
 * compiled form of f that this processor runs, or that the environment variable TENFERRO_CPU_LEVEL allows: generic,
 * avx2 and avx512, as generated code has it, are v2, v3 and v4. The bits of TENFERRO_BUILT say which are compiled:
 * all in a wheel for others, only that of this processor where it is built for use. TENFERRO_EACH(f) lists all forms
 * by level, with NULL for those that are not compiled. */
#ifndef TENFERRO_LEVELS_H
#define TENFERRO_LEVELS_H

#include <stddef.h>

#ifndef TENFERRO_BUILT
#define TENFERRO_BUILT 7
#endif

#define TENFERRO_JOIN_(f, level) f##_##level
#define TENFERRO_JOIN(f, level) TENFERRO_JOIN_(f, level)
#define NAME(f) TENFERRO_JOIN(f, LEVEL)

enum tenferro_level { TENFERRO_BASE, TENFERRO_V3, TENFERRO_V4 };

/* The level that was chosen when the module was loaded. */
extern enum tenferro_level tenferro_level;

#if defined(__x86_64__)
#define TENFERRO_DECLARE(type, f) extern type f##_v2, f##_v3, f##_v4;
#if TENFERRO_BUILT & 4
#define TENFERRO_V4_OF(f) &f##_v4
#else
#define TENFERRO_V4_OF(f) (__typeof__(&f##_v4))NULL
#endif
#if TENFERRO_BUILT & 2
#define TENFERRO_V3_OF(f) &f##_v3
#else
#define TENFERRO_V3_OF(f) (__typeof__(&f##_v3))NULL
#endif
#if TENFERRO_BUILT & 1
#define TENFERRO_V2_OF(f) &f##_v2
#else
#define TENFERRO_V2_OF(f) (__typeof__(&f##_v2))NULL
#endif
#define TENFERRO_CHOOSE(f)                              \
    (tenferro_level == TENFERRO_V4   ? TENFERRO_V4_OF(f) \
     : tenferro_level == TENFERRO_V3 ? TENFERRO_V3_OF(f) \
                                     : TENFERRO_V2_OF(f))
#define TENFERRO_EACH(f) {TENFERRO_V2_OF(f), TENFERRO_V3_OF(f), TENFERRO_V4_OF(f)}
#elif defined(__aarch64__)
#define TENFERRO_DECLARE(type, f) extern type f##_neon;
#define TENFERRO_CHOOSE(f) (&f##_neon)
#define TENFERRO_EACH(f) {&f##_neon}
#else
#define TENFERRO_DECLARE(type, f) extern type f##_generic;
#define TENFERRO_CHOOSE(f) (&f##_generic)
#define TENFERRO_EACH(f) {&f##_generic}
#endif

#endif
