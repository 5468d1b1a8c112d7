/* The interface of functions compiled from whole programs. */
#ifndef TENFERRO_WHOLE_H
#define TENFERRO_WHOLE_H

#include <stdint.h>

/* The context of a function. The function subtracts its work from `countdown`, at least at the ends of iterations that
 * may be many, and calls `poll` when it is used up. `call` runs statement `number` of those that need Python: addresses
 * of the first elements of operands, then of results; for each its extents, then its strides in elements. If either
 * returns anything but zero, the function returns that at once. */
struct tenferro_whole {
    int64_t countdown;
    int64_t (*poll)(struct tenferro_whole *);
    int64_t (*call)(struct tenferro_whole *, int64_t number, void **pointers, const int64_t *extents);
    /* piece(arguments, number) for all numbers below `count`, in any order, on at most `most` threads; needed where
     * `threads` is more than 1. */
    void (*parallel_for)(void (*piece)(void *, int64_t), void *arguments, int64_t count, int64_t most);
    int64_t threads;
};

/* `pointers`: inputs, constants, outputs, then one block for temporary values, aligned to 64 bytes. */
typedef int64_t tenferro_whole_function(void **pointers, const int64_t *sizes, struct tenferro_whole *context);

#endif
