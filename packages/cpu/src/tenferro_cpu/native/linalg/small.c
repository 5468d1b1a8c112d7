/* Kernels of small matrices as functions of arrays, and their addresses for generated code. */
#include "linalg/small.h"
#include "operands.h"
#include "threads/team.h"

static const struct small_kernels *kernels[SMALL_TYPES]; /* in the order of `letters`; set when the module is loaded, */
static const struct small_products *products; /* as this one is */

enum shape { NONE, NUMBERS, VALUES, ROWS, LEFT, RIGHT, SAME, SECOND }; /* of one result of an m x n matrix */

/* Results by kernel, in the order of small.h. */
static const struct {
    const char *name;
    enum shape results[3];
    int real; /* bits of the results of real dtype */
    int operands, square;
    int whole; /* bits of the results of int64 */
} kinds[SMALL_KERNELS] = {
    {"det", {NUMBERS}, 0, 1, 1},         {"slogdet", {NUMBERS, NUMBERS}, 2, 1, 1}, {"inv", {SAME}, 0, 1, 1},
    {"cholesky", {SAME}, 0, 1, 1},       {"solve", {SECOND}, 0, 2, 1},             {"solve_triangular", {SECOND}, 0, 2, 1},
    {"qr", {LEFT, RIGHT}, 0, 1, 0},      {"qr_r", {RIGHT}, 0, 1, 0},               {"eigh", {VALUES, SAME}, 1, 1, 1},
    {"eigvalsh", {VALUES}, 1, 1, 1},     {"svd", {LEFT, VALUES, RIGHT}, 2, 1, 0},  {"svdvals", {VALUES}, 1, 1, 0},
    {"exp", {SAME}, 0, 1, 1},            {"exp_term", {SECOND}, 0, 2, 1},          {"lu", {SAME, VALUES, ROWS}, 0, 1, 0, 6},
};

static const char letters[] = "fdFD";

/* The index of a dtype, or -1. */
static int type_of(PyArray_Descr *descr)
{
    switch (descr->type_num) {
    case NPY_FLOAT: return 0;
    case NPY_DOUBLE: return 1;
    case NPY_CFLOAT: return 2;
    case NPY_CDOUBLE: return 3;
    default: return -1;
    }
}

/* One stack of matrices and its results. */
struct job {
    small_kernel *kernel;
    int64_t count, rows, columns, flags;
    char *memory[4];  /* operands, then results */
    int64_t bytes[4]; /* of one matrix each */
    int64_t chunk;    /* matrices of a piece */
    atomic_llong bad;
};

static void run_piece(void *context, int64_t number)
{
    struct job *job = context;
    const int64_t first = number * job->chunk, left = job->count - first;
    const int64_t count = left < job->chunk ? left : job->chunk;
    char *p[4];
    int64_t report = 0;
    for (int i = 0; i < 4; i++)
        p[i] = job->memory[i] == NULL ? NULL : job->memory[i] + first * job->bytes[i];
    job->kernel(&count, &job->rows, &job->columns, &job->flags, p[0], p[1], p[2], p[3], &report);
    if (report != 0)
        atomic_store(&job->bad, 1);
}

/* Threads share large stacks, without the interpreter's lock. A chunk is a multiple of the lanes of a vector. */
static void run_all(struct job *job)
{
    enum { UNLOCKED = 512, PIECES = 16, LEAST = 256 };
    const int64_t n = job->rows * job->columns;
    if (job->count * n < UNLOCKED) {
        job->chunk = job->count;
        run_piece(job, 0);
        return;
    }
    const int64_t allowed = tenferro_team_allowed();
    job->chunk = (job->count / PIECES + LEAST - 1) / LEAST * LEAST;
    job->chunk = job->chunk < LEAST ? LEAST : job->chunk;
    PyThreadState *state = PyEval_SaveThread();
    tenferro_team_run(run_piece, job, (job->count + job->chunk - 1) / job->chunk, allowed);
    PyEval_RestoreThread(state);
}

/* A new array for a result of a kernel; `last` is the last extent of the second operand. */
static PyArrayObject *result_for(PyArrayObject *x, int kind, int number, npy_intp last)
{
    const enum shape shape = kinds[kind].results[number];
    npy_intp extents[NPY_MAXDIMS];
    const int rank = PyArray_NDIM(x);
    const npy_intp m = PyArray_DIM(x, rank - 2), n = PyArray_DIM(x, rank - 1), k = m < n ? m : n;
    int axes = rank - 2;
    for (int d = 0; d < axes; d++)
        extents[d] = PyArray_DIM(x, d);
    if (shape != NUMBERS)
        extents[axes++] = shape == VALUES || shape == RIGHT ? k : m;
    if (shape >= LEFT)
        extents[axes++] = shape == LEFT ? k : shape == SECOND ? last : n;
    int type = PyArray_DESCR(x)->type_num;
    if (kinds[kind].whole >> number & 1)
        type = NPY_INT64;
    else if (kinds[kind].real >> number & 1)
        type = type == NPY_CFLOAT ? NPY_FLOAT : type == NPY_CDOUBLE ? NPY_DOUBLE : type;
    return (PyArrayObject *)PyArray_SimpleNew(axes, extents, type);
}

/* Whether there is a kernel for these operands; equal batch axes are the caller's affair but for what memory needs. */
static int fits(PyArrayObject *const *operands, int kind)
{
    PyArrayObject *x = operands[0];
    const int rank = PyArray_NDIM(x);
    if (type_of(PyArray_DESCR(x)) < 0 || !PyArray_ISNOTSWAPPED(x) || rank < 2 || PyArray_SIZE(x) == 0)
        return 0;
    const npy_intp m = PyArray_DIM(x, rank - 2), n = PyArray_DIM(x, rank - 1);
    if (m > SMALL_MOST || n > SMALL_MOST || (kinds[kind].square && m != n))
        return 0;
    if (kinds[kind].operands == 1)
        return 1;
    PyArrayObject *b = operands[1];
    if (PyArray_NDIM(b) != rank || PyArray_DESCR(b)->type_num != PyArray_DESCR(x)->type_num || !PyArray_ISNOTSWAPPED(b))
        return 0;
    for (int d = 0; d < rank - 1; d++)
        if (PyArray_DIM(b, d) != PyArray_DIM(x, d))
            return 0;
    return PyArray_DIM(b, rank - 1) >= 1 && PyArray_DIM(b, rank - 1) <= SMALL_MOST;
}

static void add_array(struct job *job, int place, PyArrayObject *x)
{
    job->memory[place] = PyArray_BYTES(x);
    job->bytes[place] = PyArray_NBYTES(x) / job->count;
}

/* Run a kernel on operands without gaps: its result, a tuple of them, or None. */
static PyObject *results_of(int kind, PyArrayObject *const *operands, int64_t flags)
{
    PyArrayObject *x = operands[0], *made[3] = {NULL, NULL, NULL};
    const int rank = PyArray_NDIM(x), given = kinds[kind].operands;
    struct job job = {.kernel = kernels[type_of(PyArray_DESCR(x))]->of[kind], .flags = flags};
    job.rows = PyArray_DIM(x, rank - 2);
    job.columns = PyArray_DIM(operands[given - 1], rank - 1);
    job.count = PyArray_SIZE(x) / (job.rows * PyArray_DIM(x, rank - 1));
    for (int i = 0; i < given; i++)
        add_array(&job, i, operands[i]);
    int results = 0, failed = 0;
    for (; results < 3 && kinds[kind].results[results] != NONE && !failed; results++) {
        made[results] = result_for(x, kind, results, job.columns);
        failed = made[results] == NULL;
        if (!failed)
            add_array(&job, given + results, made[results]);
    }
    PyObject *found = NULL;
    if (!failed) {
        run_all(&job);
        if (atomic_load(&job.bad))
            found = Py_NewRef(Py_None);
        else if (results == 1)
            found = Py_NewRef((PyObject *)made[0]);
        else
            found = results == 2 ? PyTuple_Pack(2, made[0], made[1]) : PyTuple_Pack(3, made[0], made[1], made[2]);
    }
    for (int i = 0; i < 3; i++)
        Py_XDECREF(made[i]);
    return found;
}

/* name(x[, b], flags); `self` is the number of the kernel. */
static PyObject *small_call(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    const int kind = (int)PyLong_AsLong(self), given = kinds[kind].operands;
    PyArrayObject *operands[2] = {NULL, NULL};
    if (count != given + 1 || !PyLong_Check(args[given]))
        return PyErr_Format(PyExc_TypeError, "%s takes %d arrays and flags", kinds[kind].name, given);
    for (int i = 0; i < given; i++) {
        if (!PyArray_CheckExact(args[i]))
            Py_RETURN_NONE;
        operands[i] = (PyArrayObject *)args[i];
    }
    if (!fits(operands, kind))
        Py_RETURN_NONE;
    const int64_t flags = PyLong_AsLongLong(args[given]);
    PyObject *found = NULL;
    for (int i = 0; i < given; i++)
        operands[i] = PyArray_GETCONTIGUOUS(operands[i]);
    if (operands[0] != NULL && (given == 1 || operands[1] != NULL) && !PyErr_Occurred())
        found = results_of(kind, operands, flags);
    for (int i = 0; i < given; i++)
        Py_XDECREF(operands[i]);
    return found;
}

static PyMethodDef definitions[SMALL_KERNELS];

/* Functions as small.<name> in the module's dict SMALL, addresses by name and letter of the dtype, as
 * in small.svd.d, in ADDRESSES. */
static int add_kernel(PyObject *module, PyObject *table, int kind)
{
    PyMethodDef *definition = &definitions[kind];
    *definition = (PyMethodDef){kinds[kind].name, (PyCFunction)(void (*)(void))small_call, METH_FASTCALL,
                                "A result or several for stacks of small matrices, or None; see small.h."};
    PyObject *number = PyLong_FromLong(kind), *function = number == NULL ? NULL : PyCFunction_New(definition, number);
    char name[64];
    snprintf(name, sizeof name, "small.%s", kinds[kind].name);
    int failed = function == NULL || PyDict_SetItemString(table, name, function) < 0;
    Py_XDECREF(number);
    Py_XDECREF(function);
    for (int type = 0; type < SMALL_TYPES && !failed; type++) {
        snprintf(name, sizeof name, "small.%s.%c", kinds[kind].name, letters[type]);
        failed = tenferro_offer(module, name, (uintptr_t)kernels[type]->of[kind]) < 0;
    }
    return failed ? -1 : 0;
}

/* Largest extent of matrices in products; BLAS is faster for larger ones. */
enum { PRODUCT_MOST = 4 };

/* small.product.<letter> for generated code: three extents, six distances, two operands, the result, the report. */
#define PRODUCT(letter, type)                                                                           \
    static void product_##letter(const int64_t *count, const int64_t *m, const int64_t *n, const int64_t *k, \
                                 const int64_t *xb, const int64_t *xi, const int64_t *xk, const int64_t *yb, \
                                 const int64_t *yk, const int64_t *yj, const void *x, const void *y, void *to, \
                                 int64_t *report)                                                       \
    {                                                                                                   \
        const struct small_stack stack = {*count, *m, *n, *k, {*xb, *xi, *xk}, {*yb, *yk, *yj}};        \
        *report = *m > PRODUCT_MOST || *n > PRODUCT_MOST || *k > PRODUCT_MOST || *k < 1;                     \
        if (*report == 0)                                                                               \
            products->of[type](&stack, x, y, to);                                                       \
    }

PRODUCT(f, 0)
PRODUCT(d, 1)
PRODUCT(F, 2)
PRODUCT(D, 3)

static int add_products(PyObject *module)
{
    return tenferro_offer(module, "small.product.f", (uintptr_t)product_f) < 0 ||
           tenferro_offer(module, "small.product.d", (uintptr_t)product_d) < 0 ||
           tenferro_offer(module, "small.product.F", (uintptr_t)product_F) < 0 ||
           tenferro_offer(module, "small.product.D", (uintptr_t)product_D) < 0;
}

int tenferro_add_small(PyObject *module)
{
    kernels[0] = TENFERRO_CHOOSE(small_float32);
    kernels[1] = TENFERRO_CHOOSE(small_float64);
    kernels[2] = TENFERRO_CHOOSE(small_complex64);
    kernels[3] = TENFERRO_CHOOSE(small_complex128);
    products = TENFERRO_CHOOSE(small_products);
    PyObject *table = PyDict_New();
    int failed = table == NULL || PyModule_AddObjectRef(module, "SMALL", table) < 0;
    for (int kind = 0; kind < SMALL_KERNELS && !failed; kind++)
        failed = add_kernel(module, table, kind) < 0;
    failed = failed || add_products(module);
    Py_XDECREF(table);
    return failed ? -1 : 0;
}
