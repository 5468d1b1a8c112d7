/* Functions that templates consist of: inlined into every caller, so that what they are given as constants unrolls and
 * selects. Under a sanitizer they are ordinary ones, which compile in a fraction of the time. */
#ifndef TENFERRO_INLINE_H
#define TENFERRO_INLINE_H

#if defined(__SANITIZE_ADDRESS__)
#define INLINE static inline __attribute__((unused))
#else
#define INLINE static inline __attribute__((always_inline, unused))
#endif

#endif
