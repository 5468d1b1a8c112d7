/* One run of a whole program: its context, which holds the interpreter's lock or not, and its calls of Python. */
#ifndef TENFERRO_WHOLE_RUN_H
#define TENFERRO_WHOLE_RUN_H

#include "operands.h"
#include "codegen/whole/whole.h"

enum {
    MAX_CALL_ARRAYS = 64,   /* operands and results of a statement that needs Python */
    MAX_WHOLE_ARRAYS = 4096 /* inputs, constants and outputs of a program */
};

/* A statement that runs in Python. */
struct python_call {
    PyObject *handler;      /* takes the sizes, operands, then results to write */
    PyObject *dtypes;       /* a tuple of those of both */
    int count, operands;
    unsigned char ranks[MAX_CALL_ARRAYS];
};

struct whole_run {
    struct tenferro_whole context; /* first: functions get its address */
    const struct python_call *calls;
    int64_t call_count;
    PyObject *sizes;             /* a tuple */
    PyThreadState *unlocked;     /* state of this thread while it does not hold the interpreter's lock, otherwise NULL */
    int64_t interval;            /* work between two polls */
    int64_t started, last, seen; /* times in nanoseconds: of the first poll, of the last one, of the last signals */
    int unmasked;                /* whether signals are handled by another thread */
    PyArrayObject *const *owners; /* arrays that hold the memory of the run */
    int64_t owner_count;
};

/* Set up a run; `locked` holds the lock for as long as the run is short, and only with `team` it has several
 * threads. */
void tenferro_begin_run(struct whole_run *run, int locked, int team);

/* Reacquire the lock if the run has released it. */
void tenferro_end_run(struct whole_run *run);

#endif
