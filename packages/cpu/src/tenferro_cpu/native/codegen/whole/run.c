/* Polls and calls of a run: see run.h. */
#include "codegen/whole/run.h"
#include "kernels/walk.h"
#include "threads/team.h"

#include <time.h>

enum {
    FIRST_INTERVAL = 1 << 17,    /* of work, which is in nanoseconds, roughly */
    LONGEST_INTERVAL = 1 << 20,
    LOCKED_NS = 20000,           /* longer runs release the lock */
    POLL_NS = 5000000,           /* polls further apart are made more frequent */
    SIGNALS_NS = 20000000,       /* time between two checks for signals, which other threads may have to wait for */
};

static int64_t nanoseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Acquire the lock; returns whether it was not held before. */
static int take_lock(struct whole_run *run)
{
    PyThreadState *state = run->unlocked;
    if (state == NULL)
        return 0;
    PyEval_RestoreThread(state);
    run->unlocked = NULL;
    return 1;
}

static void give_lock(struct whole_run *run)
{
    run->unlocked = PyEval_SaveThread();
}

/* Whether Python handles signals in this thread; 1 if unknown. */
static int handles_signals(void)
{
    PyObject *module = PyImport_ImportModule("threading");
    PyObject *thread = module == NULL ? NULL : PyObject_CallMethod(module, "main_thread", NULL);
    PyObject *ident = thread == NULL ? NULL : PyObject_GetAttrString(thread, "ident");
    const unsigned long number = ident == NULL ? 0 : PyLong_AsUnsignedLongMask(ident);
    Py_XDECREF(module);
    Py_XDECREF(thread);
    Py_XDECREF(ident);
    if (PyErr_Occurred()) {
        PyErr_Clear();
        return 1;
    }
    return number == PyThread_get_thread_ident();
}

/* Handle signals if this thread does so: 0, or -1 with the exception of a handler set. */
static int64_t handle_signals(struct whole_run *run)
{
    const int taken = take_lock(run);
    const int64_t status = tenferro_handle_signals();
    if (status == 0 && run->seen == run->started)
        run->unmasked = !handles_signals();
    if (taken)
        give_lock(run);
    return status;
}

static int64_t poll_run(struct tenferro_whole *context)
{
    struct whole_run *run = (struct whole_run *)context;
    const int64_t now = nanoseconds();
    int64_t status = 0;
    if (run->started == 0)
        run->started = run->last = run->seen = now;
    if (run->unlocked == NULL && now - run->started > LOCKED_NS)
        give_lock(run);
    if (!run->unmasked && now - run->seen > SIGNALS_NS) {
        status = handle_signals(run);
        run->seen = now;
    }
    if (now - run->last > POLL_NS)
        run->interval = most(1, run->interval / 4);
    else
        run->interval = least(LONGEST_INTERVAL, 2 * run->interval);
    run->last = now;
    context->countdown = run->interval;
    return status;
}

/* The array that holds the memory at an address, borrowed, or NULL. */
static PyArrayObject *owner_of(const struct whole_run *run, const char *address)
{
    for (int64_t k = 0; k < run->owner_count; k++) {
        PyArrayObject *array = run->owners[k];
        if (array != NULL && PyArray_BYTES(array) <= address && address < PyArray_BYTES(array) + PyArray_NBYTES(array))
            return array;
    }
    return NULL;
}

/* Memory as an array that keeps its owner; `strides` are in elements. */
static PyObject *view_of(const struct whole_run *run, PyArray_Descr *descr, int rank, const int64_t *shape,
                         const int64_t *strides, void *address, int flags)
{
    npy_intp extents[NPY_MAXDIMS], hops[NPY_MAXDIMS];
    for (int d = 0; d < rank; d++) {
        extents[d] = shape[d];
        hops[d] = strides[d] * PyDataType_ELSIZE(descr);
    }
    Py_INCREF(descr);
    PyObject *view = PyArray_NewFromDescr(&PyArray_Type, descr, rank, extents, hops, address, flags, NULL);
    PyArrayObject *owner = view == NULL ? NULL : owner_of(run, address);
    if (owner != NULL && PyArray_SetBaseObject((PyArrayObject *)view, Py_NewRef(owner)) < 0)
        Py_CLEAR(view);
    return view;
}

static int64_t call_python(struct whole_run *run, const struct python_call *call, void **pointers,
                           const int64_t *extents)
{
    PyObject *passed[1 + MAX_CALL_ARRAYS] = {run->sizes}, **arrays = passed + 1, *answer = NULL;
    int made = 0;
    for (; made < call->count; made++) {
        const int rank = call->ranks[made];
        arrays[made] = view_of(run, (PyArray_Descr *)PyTuple_GET_ITEM(call->dtypes, made), rank, extents,
                               extents + rank, pointers[made], made < call->operands ? 0 : NPY_ARRAY_WRITEABLE);
        if (arrays[made] == NULL)
            break;
        extents += 2 * rank;
    }
    if (made == call->count)
        answer = PyObject_Vectorcall(call->handler, passed, (size_t)made + 1, NULL);
    while (made-- > 0)
        Py_DECREF(arrays[made]);
    Py_XDECREF(answer);
    return answer == NULL ? -1 : 0;
}

static int64_t call_run(struct tenferro_whole *context, int64_t number, void **pointers, const int64_t *extents)
{
    struct whole_run *run = (struct whole_run *)context;
    const int taken = take_lock(run);
    int64_t status = -1;
    if (0 <= number && number < run->call_count)
        status = call_python(run, &run->calls[number], pointers, extents);
    else
        PyErr_Format(PyExc_SystemError, "a program has no statement %lld for Python", (long long)number);
    if (taken)
        give_lock(run);
    return status;
}

void tenferro_begin_run(struct whole_run *run, int locked, int team)
{
    run->context = (struct tenferro_whole){FIRST_INTERVAL, poll_run, call_run, tenferro_team_run,
                                           team ? tenferro_team_allowed() : 1};
    run->interval = FIRST_INTERVAL;
    run->started = run->last = run->seen = 0;
    run->unmasked = 0;
    run->unlocked = NULL;
    if (!locked)
        give_lock(run);
}

void tenferro_end_run(struct whole_run *run)
{
    take_lock(run);
}
