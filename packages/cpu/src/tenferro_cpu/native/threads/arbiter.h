/* The thread policy: sets the number of threads of every loaded BLAS around calls of this library.
 *
 * The number of threads of a BLAS belongs to the whole process, so it is set only between `enter` and `leave`, and
 * given back to what the program had chosen when the last call is done. While several Python threads are inside, each
 * call gets one thread; a call within a call of the same Python thread keeps the number of the outer one. All of it
 * runs with the interpreter's lock held, so each function is one step for every Python thread. */
#ifndef TENFERRO_ARBITER_H
#define TENFERRO_ARBITER_H

#include <stdint.h>

#define TENFERRO_MOST_LIBRARIES 8

struct tenferro_arbiter {
    int64_t inside; /* calls */
    int64_t scopes; /* `with threads(n)` that are open; callers ask Python for the limit while there are any */
    int64_t owner;  /* the Python thread that is inside; 0: several are, or were since the first came */
    int64_t count;  /* of the libraries */
    struct tenferro_library {
        int (*get_threads)(void);
        void (*set_threads)(int);
        int before;  /* the number to give back */
        int changed; /* whether it is to be given back */
    } libraries[TENFERRO_MOST_LIBRARIES];
};
extern struct tenferro_arbiter tenferro_arbiter;

/* Before a call that pays for `most` threads; `allowed` is the limit of the scope, 0 outside of any. */
void tenferro_blas_enter(int64_t most, int64_t allowed);

/* After it. */
void tenferro_blas_leave(void);

#endif
