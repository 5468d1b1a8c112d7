/* Vector levels: files named *.simd.c are compiled once for each, with LEVEL defined as its name.
 *
 * NAME(f) is f_v2, f_v3, f_v4 or f_neon in such a file. Elsewhere TENFERRO_CHOOSE(f) is the address of the best
 * form of f that this processor runs, or that the environment variable TENFERRO_CPU_LEVEL allows: generic, avx2 and
 * avx512, as generated code has it, are v2, v3 and v4. */
#ifndef TENFERRO_LEVELS_H
#define TENFERRO_LEVELS_H

#define TENFERRO_JOIN_(f, level) f##_##level
#define TENFERRO_JOIN(f, level) TENFERRO_JOIN_(f, level)
#define NAME(f) TENFERRO_JOIN(f, LEVEL)

enum tenferro_level { TENFERRO_BASE, TENFERRO_V3, TENFERRO_V4 };

/* The level that was chosen when the module was loaded. */
extern enum tenferro_level tenferro_level;

#if defined(__x86_64__)
#define TENFERRO_DECLARE(type, f) extern type f##_v2, f##_v3, f##_v4;
#define TENFERRO_CHOOSE(f) \
    (tenferro_level == TENFERRO_V4 ? &f##_v4 : tenferro_level == TENFERRO_V3 ? &f##_v3 : &f##_v2)
#elif defined(__aarch64__)
#define TENFERRO_DECLARE(type, f) extern type f##_neon;
#define TENFERRO_CHOOSE(f) (&f##_neon)
#else
#define TENFERRO_DECLARE(type, f) extern type f##_generic;
#define TENFERRO_CHOOSE(f) (&f##_generic)
#endif

#endif
