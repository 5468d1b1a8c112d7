/* `Copy`: one planned copy between two layouts, called with a target and a source array.
 *
 * Python plans (`_copy_plan.py`); here the plan is run, in chunks by the thread team where it is large. The caller has
 * compared both arrays with the layouts that the plan was made for. */
#include "compiled.h"
#include "copying/copy.h"
#include "threads/team.h"

#include <string.h>
#include <structmember.h>

enum cut { WHOLE, CUT_REPEAT, CUT_OUTER, CUT_ROWS, CUT_COLUMNS, CUT_RUN };

/* Part of a group of rows and columns that one kernel moves. */
struct part {
    copy_kernel *kernel;
    int64_t row_at, column_at;
};

enum { MAX_PARTS = 4 };

struct job {
    struct copy loops;
    struct part parts[MAX_PARTS];
    int64_t count; /* parts; several alternate tile by tile */
    /* For the team: chunk `n` begins at step n * length of one of the loops. */
    int64_t cut, chunks, length, cut_source, cut_target;
};

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    struct job job, streamed; /* the latter with stores past the caches, for aligned targets */
    int64_t nbytes;
    int64_t unlocked; /* bytes above which a copy runs without the interpreter's lock */
    int64_t *tables;
} Copy;

static void run_parts(const struct job *job, const char *source, char *target)
{
    struct copy tile = job->loops;
    const struct copy *p = &job->loops;
    tile.repeat = tile.outer = 1;
    for (int64_t r = 0; r < p->repeat; r++)
        for (int64_t o = 0; o < p->outer; o++) {
            tile.outer_source = p->outer_source + o;
            tile.outer_target = p->outer_target + o;
            for (int64_t i = 0; i < p->rows; i += p->row_tile)
                for (int64_t j = 0; j < p->columns; j += p->column_tile) {
                    tile.rows = p->row_tile < p->rows - i ? p->row_tile : p->rows - i;
                    tile.columns = p->column_tile < p->columns - j ? p->column_tile : p->columns - j;
                    tile.row_source = p->row_source + i;
                    tile.row_target = p->row_target + i;
                    tile.column_source = p->column_source + j;
                    tile.column_target = p->column_target + j;
                    for (int64_t k = 0; k < job->count; k++) {
                        tile.row_at = job->parts[k].row_at;
                        tile.column_at = job->parts[k].column_at;
                        job->parts[k].kernel(&tile, source + r * p->repeat_source, target + r * p->repeat_target);
                    }
                }
        }
}

static void run(const struct job *job, const char *source, char *target)
{
    if (job->count == 1)
        job->parts[0].kernel(&job->loops, source, target);
    else
        run_parts(job, source, target);
}

struct call {
    const struct job *job;
    const char *source;
    char *target;
};

static void run_chunk(void *context, int64_t number)
{
    const struct call *call = context;
    struct job job = *call->job;
    const int64_t from = number * job.length;
    int64_t *const counts[] = {
        [CUT_REPEAT] = &job.loops.repeat,   [CUT_OUTER] = &job.loops.outer, [CUT_ROWS] = &job.loops.rows,
        [CUT_COLUMNS] = &job.loops.columns, [CUT_RUN] = &job.loops.run,
    };
    int64_t *count = counts[job.cut];
    *count = number + 1 == job.chunks ? *count - from : job.length;
    if (job.cut == CUT_OUTER) {
        job.loops.outer_source += from;
        job.loops.outer_target += from;
    } else if (job.cut == CUT_ROWS) {
        job.loops.row_source += from;
        job.loops.row_target += from;
    } else if (job.cut == CUT_COLUMNS && !job.cut_source) {
        job.loops.column_source += from;
        job.loops.column_target += from;
    }
    run(&job, call->source + from * job.cut_source, call->target + from * job.cut_target);
}

static PyObject *copy_call(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *names)
{
    const Copy *copy = (const Copy *)self;
    if (PyVectorcall_NARGS(nargsf) != 2 || names != NULL || !PyArray_Check(args[0]) || !PyArray_Check(args[1])) {
        PyErr_SetString(PyExc_TypeError, "a copy is called with two arrays: target and source");
        return NULL;
    }
    char *target = PyArray_BYTES((PyArrayObject *)args[0]);
    const char *source = PyArray_BYTES((PyArrayObject *)args[1]);
    const struct job *job = (uintptr_t)target % 64 == 0 ? &copy->streamed : &copy->job;
    if (copy->nbytes <= copy->unlocked) {
        run(job, source, target);
    } else {
        struct call call = {job, source, target};
        const int64_t threads = job->chunks > 1 ? tenferro_team_allowed() : 1;
        Py_BEGIN_ALLOW_THREADS
        if (threads > 1)
            tenferro_team_run(run_chunk, &call, job->chunks, threads);
        else
            run(job, source, target);
        Py_END_ALLOW_THREADS
    }
    return Py_NewRef(args[0]);
}

/* The kernels of a level, by its vector size; NULL if this processor does not support it. */
static const struct copy_kernels *kernels_of(int64_t vector_bytes)
{
    const struct copy_kernels *best = TENFERRO_CHOOSE(copy_kernels), *all[] = TENFERRO_EACH(copy_kernels);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i] != NULL && all[i]->vector_bytes == vector_bytes && vector_bytes <= best->vector_bytes)
            return all[i];
    return NULL;
}

/* The logarithm of a power of two, -1 for other numbers. */
static int logarithm(int64_t n)
{
    return n > 0 && (n & (n - 1)) == 0 ? __builtin_ctzll((uint64_t)n) : -1;
}

static copy_kernel *kernel_of(const struct copy_kernels *have, int kind, int64_t item, int64_t rows, int64_t columns)
{
    const int size = logarithm(item);
    if (size < 0)
        return NULL;
    if (kind == 'r')
        return size < COPY_RUNS ? have->run[size] : NULL;
    if (size >= COPY_ITEMS)
        return NULL;
    if (kind == 't')
        return rows < 0 || rows > COPY_WIDTH || columns < 0 || columns > COPY_WIDTH ? NULL
                                                                                    : have->tile[size][rows][columns];
    return rows < 0 || rows > COPY_STREAMS ? NULL
           : kind == 'i'                   ? have->interleave[size][rows]
                                           : have->deinterleave[size][rows];
}

/* Read the parts (rows, columns, row_at, column_at); 0, or -1 with an exception. */
static int read_parts(struct job *job, PyObject *parts, int kind, int64_t item, int64_t vector_bytes)
{
    const struct copy_kernels *have = kernels_of(vector_bytes);
    job->count = PyTuple_GET_SIZE(parts);
    if (have == NULL || job->count < 1 || job->count > MAX_PARTS) {
        PyErr_Format(PyExc_ValueError, "there is no kernel of %lld parts for vectors of %lld bytes",
                     (long long)job->count, (long long)vector_bytes);
        return -1;
    }
    for (int64_t k = 0; k < job->count; k++) {
        long long rows, columns, row_at, column_at;
        PyObject *part = PyTuple_GET_ITEM(parts, k);
        if (!PyTuple_Check(part)) {
            PyErr_SetString(PyExc_TypeError, "a part is a tuple");
            return -1;
        }
        if (!PyArg_ParseTuple(part, "LLLL", &rows, &columns, &row_at, &column_at))
            return -1;
        copy_kernel *kernel = kernel_of(have, kind, item, rows, columns);
        if (kernel == NULL) {
            PyErr_Format(PyExc_ValueError, "there is no kernel %c for %lld x %lld elements of %lld bytes", kind, rows,
                         columns, (long long)item);
            return -1;
        }
        job->parts[k] = (struct part){kernel, row_at, column_at};
    }
    return 0;
}

/* Copy the six tables of offsets into one block; 0, or -1 with an exception. */
static int read_tables(Copy *copy, PyObject *tables)
{
    struct copy *p = &copy->job.loops;
    const int64_t **const places[] = {&p->outer_source, &p->outer_target,  &p->row_source,
                                      &p->row_target,   &p->column_source, &p->column_target};
    const int64_t *const counts[] = {&p->outer, &p->outer, &p->rows, &p->rows, &p->columns, &p->columns};
    enum { TABLES = sizeof places / sizeof *places };
    if (PyTuple_GET_SIZE(tables) != TABLES) {
        PyErr_SetString(PyExc_ValueError, "a copy has six tables of offsets");
        return -1;
    }
    Py_ssize_t total = 0;
    for (int i = 0; i < TABLES; i++) {
        PyObject *table = PyTuple_GET_ITEM(tables, i);
        if (!PyBytes_Check(table)) {
            PyErr_SetString(PyExc_TypeError, "tables of offsets are bytes");
            return -1;
        }
        total += PyBytes_GET_SIZE(table);
    }
    copy->tables = PyMem_Malloc((size_t)total);
    if (copy->tables == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    int64_t *at = copy->tables;
    for (int i = 0; i < TABLES; i++) {
        PyObject *table = PyTuple_GET_ITEM(tables, i);
        const Py_ssize_t size = PyBytes_GET_SIZE(table);
        if (size != 0 && size != 8 * *counts[i]) {
            PyErr_SetString(PyExc_ValueError, "a table of offsets has one number for each step of its loop");
            return -1;
        }
        memcpy(at, PyBytes_AS_STRING(table), (size_t)size);
        *places[i] = at;
        at += size / 8;
    }
    return 0;
}

static void copy_dealloc(PyObject *self)
{
    PyMem_Free(((Copy *)self)->tables);
    Py_TYPE(self)->tp_free(self);
}

static PyObject *copy_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"kind",       "item",     "vector_bytes", "parts",      "tables", "repeat", "counts",
                            "steps",      "tiles",    "near_tiles",   "cut",        "nbytes", "run",    "streams",
                            "unlocked",   NULL};
    PyObject *parts, *tables;
    int kind, streams;
    long long item, vector_bytes, repeat[3], counts[3], steps[2], tiles[2], near[2], cut[5], nbytes, bytes_of_run,
        unlocked;
    if (!PyArg_ParseTupleAndKeywords(
            args, kwargs, "CLLO!O!(LLL)(LLL)(LL)(LL)(LL)(LLLLL)LLpL:Copy", names, &kind, &item, &vector_bytes,
            &PyTuple_Type, &parts, &PyTuple_Type, &tables, &repeat[0], &repeat[1], &repeat[2], &counts[0], &counts[1],
            &counts[2], &steps[0], &steps[1], &tiles[0], &tiles[1], &near[0], &near[1], &cut[0], &cut[1], &cut[2],
            &cut[3], &cut[4], &nbytes, &bytes_of_run, &streams, &unlocked))
        return NULL;
    if (cut[0] < WHOLE || cut[0] > CUT_RUN || cut[1] < 1) {
        PyErr_SetString(PyExc_ValueError, "one of five loops is cut into at least one chunk");
        return NULL;
    }
    Copy *copy = (Copy *)type->tp_alloc(type, 0);
    if (copy == NULL)
        return NULL;
    copy->vectorcall = copy_call;
    copy->nbytes = nbytes;
    copy->unlocked = unlocked;
    copy->job.loops = (struct copy){
        .repeat = repeat[0], .repeat_source = repeat[1], .repeat_target = repeat[2], .outer = counts[0],
        .rows = counts[1], .columns = counts[2], .row_step = steps[0], .column_step = steps[1], .row_tile = near[0],
        .column_tile = near[1], .run = bytes_of_run,
    };
    copy->job.cut = cut[0];
    copy->job.chunks = cut[1];
    copy->job.length = cut[2];
    copy->job.cut_source = cut[3];
    copy->job.cut_target = cut[4];
    if (read_parts(&copy->job, parts, kind, item, vector_bytes) < 0 || read_tables(copy, tables) < 0) {
        Py_DECREF(copy);
        return NULL;
    }
    copy->job.loops.row_at = copy->job.parts[0].row_at;
    copy->job.loops.column_at = copy->job.parts[0].column_at;
    copy->streamed = copy->job;
    if (streams) {
        copy->streamed.loops.stream = 1;
        copy->streamed.loops.row_tile = tiles[0];
        copy->streamed.loops.column_tile = tiles[1];
    }
    return (PyObject *)copy;
}

static PyMemberDef copy_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Copy, vectorcall), READONLY, NULL},
    {NULL},
};

static PyTypeObject copy_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "tenferro_cpu.native._compiled.Copy",
    .tp_doc = "A planned copy between two layouts: copy(target, source) returns the target.",
    .tp_basicsize = sizeof(Copy),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_IMMUTABLETYPE,
    .tp_new = copy_new,
    .tp_dealloc = copy_dealloc,
    .tp_call = PyVectorcall_Call,
    .tp_vectorcall_offset = offsetof(Copy, vectorcall),
};

int tenferro_add_copy(PyObject *module)
{
    if (PyModule_AddType(module, &copy_type) < 0)
        return -1;
    return PyModule_AddIntConstant(module, "VECTOR_BYTES", TENFERRO_CHOOSE(copy_kernels)->vector_bytes);
}
