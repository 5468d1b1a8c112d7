/* Cases in which NumPy would warn: the floating-point status of the calling thread, and results that are not finite.
 *
 * An entry that detects one drops its result and passes the call to NumPy, so that the warning, or the error under
 * numpy.errstate, is NumPy's own; a warning is attributed to the user's line. */
#ifndef TENFERRO_STATUS_H
#define TENFERRO_STATUS_H

#include "levels.h"

#include <stdint.h>

#if defined(__x86_64__)
#include <immintrin.h>
/* Bits for an invalid operation, a division by zero and an overflow; then that for an underflow. */
enum { STATUS_WATCHED = 0x0D, STATUS_UNDERFLOW = 0x10 };
static inline unsigned status_read(void) { return _mm_getcsr(); }
static inline void status_clear(void) { _mm_setcsr(_mm_getcsr() & ~0x3Fu); }
#elif defined(__aarch64__)
enum { STATUS_WATCHED = 0x07, STATUS_UNDERFLOW = 0x08 };
static inline unsigned status_read(void)
{
    uint64_t seen;
    __asm__ volatile("mrs %0, fpsr" : "=r"(seen)::"memory");
    return (unsigned)seen;
}
static inline void status_clear(void)
{
    const uint64_t clean = status_read() & ~0x9Fu;
    __asm__ volatile("msr fpsr, %0" ::"r"(clean) : "memory");
}
#else
#include <fenv.h>
enum { STATUS_WATCHED = FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW, STATUS_UNDERFLOW = FE_UNDERFLOW };
static inline unsigned status_read(void) { return (unsigned)fetestexcept(FE_ALL_EXCEPT); }
static inline void status_clear(void) { feclearexcept(FE_ALL_EXCEPT); }
#endif

/* Whether some floating-point number of `size` bytes, 4 or 8, is infinite or NaN; no number of 0 bytes is. */
typedef int scan_function(const void *data, int64_t bytes, int size);
TENFERRO_DECLARE(scan_function, tenferro_scan)

#endif
