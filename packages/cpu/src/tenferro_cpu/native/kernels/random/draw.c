/* `Draw`: random numbers of one distribution, as a callable of keys, positions, and a shape or shape parameters. */
#include "kernels/random/fill.h"
#include "threads/team.h"
#include "compiled.h"

#include <string.h>
#include <structmember.h>

enum { UNLOCKED = 1 << 11, PIECE = 1 << 15 }; /* numbers above which the lock is released; numbers per chunk */

static const struct random_kernels *kernels; /* set when the module is loaded */

typedef struct {
    PyObject_HEAD
    vectorcallfunc call;
    random_fill *fill;
    random_fill_shaped *shaped; /* instead of it, with shape parameters as the last argument */
    PyObject *shape;            /* or None: the last argument */
    int type, itemsize;
} Draw;

/* Numbers of several streams, one stream after the other in memory. */
struct job {
    random_fill *fill;
    random_fill_shaped *shaped;
    const uint64_t *keys, *starts;
    const double *shapes;
    int64_t each, total; /* numbers of a stream, and of all */
    char *out;
    int itemsize;
};

static void run_piece(void *context, int64_t number)
{
    const struct job *job = context;
    const int64_t end = (number + 1) * PIECE < job->total ? (number + 1) * PIECE : job->total;
    for (int64_t at = number * PIECE; at < end;) {
        const int64_t stream = at / job->each, within = at % job->each;
        const int64_t n = job->each - within < end - at ? job->each - within : end - at;
        const uint64_t key = job->keys[stream], start = job->starts[stream] + (uint64_t)within;
        char *out = job->out + at * job->itemsize;
        if (job->shaped != NULL)
            job->shaped(key, start, n, job->shapes + at, (double *)out);
        else
            job->fill(key, start, n, out);
        at += n;
    }
}

/* The extents of the result: those of the keys and those of the shape; their number, or -1. */
static int extents(PyArrayObject *keys, PyObject *shape, npy_intp *dims)
{
    const int lead = PyArray_NDIM(keys);
    if (!PyTuple_Check(shape) || lead + PyTuple_GET_SIZE(shape) > NPY_MAXDIMS) {
        PyErr_SetString(PyExc_ValueError, "a shape is a tuple of few extents");
        return -1;
    }
    if (lead > 0)  /* one key without axes has no array of extents */
        memcpy(dims, PyArray_DIMS(keys), (size_t)lead * sizeof *dims);
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(shape); k++) {
        dims[lead + k] = PyLong_AsSsize_t(PyTuple_GET_ITEM(shape, k));
        if (dims[lead + k] < 0) {
            if (!PyErr_Occurred())
                PyErr_SetString(PyExc_ValueError, "an extent is negative");
            return -1;
        }
    }
    return lead + (int)PyTuple_GET_SIZE(shape);
}

static void run(struct job *job)
{
    const int64_t pieces = (job->total + PIECE - 1) / PIECE, most = tenferro_team_allowed();
    PyThreadState *state = job->total > UNLOCKED ? PyEval_SaveThread() : NULL;
    if (pieces > 1)
        tenferro_team_run(run_piece, job, pieces, most);
    else
        run_piece(job, 0);
    if (state != NULL)
        PyEval_RestoreThread(state);
}

/* Numbers for `last`, a shape or an array of shape parameters. */
static PyArrayObject *drawn(const Draw *self, PyArrayObject *keys, PyArrayObject *starts, PyObject *last)
{
    npy_intp dims[NPY_MAXDIMS];
    PyArrayObject *shapes = NULL, *out = NULL;
    if (self->shaped != NULL) {
        shapes = (PyArrayObject *)PyArray_FROMANY(last, NPY_DOUBLE, 0, 0, NPY_ARRAY_CARRAY_RO);
        if (shapes != NULL)
            out = (PyArrayObject *)PyArray_SimpleNew(PyArray_NDIM(shapes), PyArray_DIMS(shapes), self->type);
    } else {
        const int rank = extents(keys, last, dims);
        if (rank >= 0)
            out = (PyArrayObject *)PyArray_SimpleNew(rank, dims, self->type);
    }
    const int64_t total = out == NULL ? 0 : PyArray_SIZE(out), streams = PyArray_SIZE(keys);
    if (total != 0 && (streams == 0 || total % streams != 0)) {
        PyErr_SetString(PyExc_ValueError, "the shape parameters do not begin with the axes of the keys");
        Py_CLEAR(out);
    } else if (total != 0) {
        struct job job = {.fill = self->fill, .shaped = self->shaped, .keys = PyArray_DATA(keys),
                          .starts = PyArray_DATA(starts), .shapes = shapes == NULL ? NULL : PyArray_DATA(shapes),
                          .each = total / streams, .total = total, .out = PyArray_DATA(out),
                          .itemsize = self->itemsize};
        run(&job);
    }
    Py_XDECREF(shapes);
    return out;
}

static PyObject *draw_call(PyObject *callable, PyObject *const *args, size_t flags, PyObject *names)
{
    const Draw *self = (const Draw *)callable;
    const Py_ssize_t count = PyVectorcall_NARGS(flags), wanted = self->shape == Py_None ? 3 : 2;
    if (names != NULL || count != wanted)
        return PyErr_Format(PyExc_TypeError, "Draw takes %zd arguments, got %zd", wanted, count);
    PyArrayObject *keys = (PyArrayObject *)PyArray_FROMANY(args[0], NPY_UINT64, 0, 0, NPY_ARRAY_CARRAY_RO);
    PyArrayObject *starts = (PyArrayObject *)PyArray_FROMANY(args[1], NPY_UINT64, 0, 0, NPY_ARRAY_CARRAY_RO);
    PyArrayObject *out = NULL;
    if (keys != NULL && starts != NULL && PyArray_SIZE(keys) != PyArray_SIZE(starts))
        PyErr_SetString(PyExc_ValueError, "there is one position for each key");
    else if (keys != NULL && starts != NULL)
        out = drawn(self, keys, starts, wanted == 3 ? args[2] : self->shape);
    Py_XDECREF(keys);
    Py_XDECREF(starts);
    return (PyObject *)out;
}

/* The kernel of a distribution and a dtype, or NULL. */
static random_fill *kernel_named(const char *name, int type)
{
    const struct {
        const char *name;
        int type;
        random_fill *fill;
    } table[] = {
        {"bits", NPY_UINT64, kernels->bits64},           {"bits", NPY_UINT32, kernels->bits32},
        {"bits", NPY_UINT16, kernels->bits16},           {"bits", NPY_UINT8, kernels->bits8},
        {"uniform", NPY_DOUBLE, kernels->uniform64},     {"uniform", NPY_FLOAT, kernels->uniform32},
        {"normal", NPY_DOUBLE, kernels->normal64},       {"normal", NPY_FLOAT, kernels->normal32},
        {"exponential", NPY_DOUBLE, kernels->exponential64}, {"exponential", NPY_FLOAT, kernels->exponential32},
    };
    for (size_t k = 0; k < sizeof table / sizeof *table; k++)
        if (strcmp(table[k].name, name) == 0 && table[k].type == type)
            return table[k].fill;
    return NULL;
}

static PyObject *draw_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"name", "dtype", "shape", NULL};
    const char *name;
    PyArray_Descr *descr;
    PyObject *shape;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "sO!O", names, &name, &PyArrayDescr_Type, &descr, &shape))
        return NULL;
    random_fill *fill = kernel_named(name, descr->type_num);
    random_fill_shaped *shaped = strcmp(name, "loggamma") == 0 && descr->type_num == NPY_DOUBLE ? kernels->log_gamma : NULL;
    if ((fill == NULL && shaped == NULL) || (shaped != NULL && shape != Py_None))
        return PyErr_Format(PyExc_ValueError, "there is no kernel %s of %R", name, descr);
    Draw *self = (Draw *)type->tp_alloc(type, 0);
    if (self != NULL) {
        self->call = draw_call;
        self->fill = fill;
        self->shaped = shaped;
        self->shape = Py_NewRef(shape);
        self->type = descr->type_num;
        self->itemsize = (int)PyDataType_ELSIZE(descr);
    }
    return (PyObject *)self;
}

static void draw_dealloc(PyObject *o)
{
    Py_XDECREF(((Draw *)o)->shape);
    Py_TYPE(o)->tp_free(o);
}

static PyTypeObject draw_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "tenferro_cpu.native._compiled.Draw",
    .tp_doc = "Random numbers of one distribution.",
    .tp_basicsize = sizeof(Draw),
    .tp_new = draw_new,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_vectorcall_offset = offsetof(Draw, call),
    .tp_call = PyVectorcall_Call,
    .tp_dealloc = draw_dealloc,
};

int tenferro_add_draw(PyObject *module)
{
    kernels = TENFERRO_CHOOSE(random_kernels);
    return PyModule_AddType(module, &draw_type);
}
