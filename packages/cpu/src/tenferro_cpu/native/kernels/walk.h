/* Walks: a kernel called for every row of an iteration space of any rank, by one thread or by the team. */
#ifndef TENFERRO_WALK_H
#define TENFERRO_WALK_H

#include "compiled.h"

/* A kernel of rows: pointers to the operands, then to the results; elements of a row; strides in bytes along it, or
 * what else the kernel is made for; number of rows that it combines by itself, and strides from one to the next. */
typedef void row_kernel(char **data, int64_t n, const int64_t *strides, int64_t rows, const int64_t *steps);

enum {
    MAX_OPERANDS = 24,         /* operands and results of a call */
    MAX_AXES = 8,              /* axes of a space that is planned in C */
    MAX_RANK = 64,             /* axes of an array */
    UNLOCKED_ELEMENTS = 32768,  /* longer calls release the interpreter's lock */
    SIGNAL_ELEMENTS = 1 << 21,  /* longer runs are cut: signals are handled between the parts. 0.1 s on fresh pages */
    CHUNK_ELEMENTS = 512,       /* rows are cut at multiples of this, where vectors and cache lines begin */
    CHUNKS_PER_THREAD = 4,      /* a thread that is interrupted leaves the rest of its chunks to the others */
    COMBINED_ROWS = 512,        /* rows that are combined one after the other; more make partial results */
};
#define TEAM_MIN_NS 50000.0  /* work in one thread for which the team is called */
#define CHUNK_MIN_NS 4000.0  /* work of the smallest chunk */

/* An iteration space and the layout of its operands. Arrays have an element for each operand; those of the outer
 * axes are consecutive in `steps`. Strides are in bytes. */
struct walk {
    row_kernel *kernel;
    int64_t operands, width, rank, rows; /* `width`: elements of a row; `rank`: outer axes; `rows`: see the kernel */
    char **data;
    int64_t *strides, *row_strides, *extents, *steps;
};

/* Do all of it, with the lock held when it is called and when it returns.
 *
 * `cost` is nanoseconds for an element; `whole` says that rows must not be cut. 0, or -1 with the exception of a signal
 * handler set: then a part of the space is done. */
int tenferro_walk(struct walk *walk, double cost, int whole);

/* Point a walk, but for its kernel, into words: see `words` in _driver.py. 0, or -1 with an exception set. */
int tenferro_walk_of_words(struct walk *walk, int64_t *words, int64_t count);

/* Elements processed before signals are handled. */
int64_t tenferro_signal_elements(void);

/* Handle signals between two parts: 0, or -1 with an exception set. */
int tenferro_handle_signals(void);

static inline int64_t least(int64_t x, int64_t y) { return x < y ? x : y; }
static inline int64_t most(int64_t x, int64_t y) { return x > y ? x : y; }
static inline int64_t quotient_up(int64_t x, int64_t y) { return (x + y - 1) / y; }

/* The machine code at an address that Python gives as a number. */
static inline row_kernel *kernel_at(unsigned long long address) { return (row_kernel *)(uintptr_t)address; }

#endif
