/* The thread policy: sets the number of threads of every loaded BLAS around calls of this library.
 *
 * The thread count of a BLAS is global to the process, so it is set only between `enter` and `leave`, and restored
 * to the program's choice when the last call is done. While several Python threads are inside, each call gets one
 * thread; a call within a call of the same Python thread keeps the count of the outer one. Everything runs with the
 * interpreter's lock held, so each function is atomic for Python threads. */
#ifndef TENFERRO_ARBITER_H
#define TENFERRO_ARBITER_H

#include <stdint.h>

#define TENFERRO_MAX_LIBRARIES 8

struct tenferro_arbiter {
    int64_t inside; /* calls */
    int64_t scopes; /* open `with threads(n)` scopes; callers read the limit from Python while there are any */
    int64_t owner;  /* the Python thread inside; 0 if several are, or have been since the first entered */
    int64_t count;  /* of the libraries */
    struct tenferro_library {
        int (*get_threads)(void);
        void (*set_threads)(int);
        int before;  /* the count to restore */
        int changed; /* whether it must be restored */
    } libraries[TENFERRO_MAX_LIBRARIES];
};
extern struct tenferro_arbiter tenferro_arbiter;

/* Begin a call that pays for `most` threads; `allowed` is the limit of the scope, 0 outside any. */
void tenferro_blas_enter(int64_t most, int64_t allowed);

/* End it. */
void tenferro_blas_leave(void);

#endif
