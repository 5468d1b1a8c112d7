/* `ElementwiseEntry`: a kernel of one or two operands as a callable of arrays, at a tenth of a ufunc's cost.
 *
 * C-contiguous arrays of one shape go to the kernel, and so does one array with a number; everything else is passed on
 * to the fallback as it came. The kernel is machine code of rows, or the inner loop of a NumPy ufunc. */
#include "eager/entry.h"
#include "status.h"
#include "threads/team.h"

#include <numpy/ufuncobject.h>

/* Machine code for one combination of operands. */
struct form {
    row_kernel *usual, *streaming; /* `streaming` writes past the caches, to results aligned to 64 bytes; may be NULL */
};

/* Bit k of a combination: operand k is a number. */
enum { ARRAYS = 0, NUMBER_ARRAY = 1, ARRAY_NUMBER = 2, FORMS = 3 };

typedef struct {
    struct entry entry; /* the owner is the ufunc of `loop`, or None; the operands have one dtype */
    struct form forms[FORMS];
    PyUFuncGenericFunction loop;
    void *loop_data;
    int inputs;
    int64_t in_size, out_size;
    struct number number;
    unsigned watch; /* floating-point status bits that call for the fallback */
    int scan;       /* size of a number of the result, where it must be finite; or 0 */
    int64_t shared; /* minimum elements for which the team is called */
} ElementwiseEntry;

/* One run of a kernel, whose chunks threads take. */
struct job {
    const ElementwiseEntry *self;
    row_kernel *kernel;
    char **data;      /* operands, then the result */
    int numbers;      /* the combination */
    int64_t n, length; /* elements, in total and per chunk */
    int warned;       /* whether NumPy would warn; shared by the threads */
};

static inline void call_kernel(const struct job *job, char **data, int64_t n)
{
    const ElementwiseEntry *self = job->self;
    if (self->loop == NULL) {
        job->kernel(data, n, NULL, 1, NULL);
        return;
    }
    const npy_intp count = n;
    npy_intp steps[3] = {job->numbers & 1 ? 0 : self->in_size, job->numbers & 2 ? 0 : self->in_size};
    steps[self->inputs] = self->out_size;
    self->loop(data, &count, steps, self->loop_data);
}

/* Run the kernel once; returns whether NumPy would warn. */
static inline int run_watched(const struct job *job, char **data, int64_t n)
{
    const ElementwiseEntry *self = job->self;
    if (!self->watch) {
        call_kernel(job, data, n);
    } else {
        if (status_read() & self->watch)
            status_clear();
        call_kernel(job, data, n);
        if (status_read() & self->watch)
            return 1;
    }
    return self->scan && TENFERRO_CHOOSE(tenferro_scan)(data[self->inputs], n * self->out_size, self->scan);
}

static void shifted(const struct job *job, char **into, int64_t start)
{
    const ElementwiseEntry *self = job->self;
    for (int k = 0; k < self->inputs; k++)
        into[k] = job->data[k] + (job->numbers >> k & 1 ? 0 : start * self->in_size);
    into[self->inputs] = job->data[self->inputs] + start * self->out_size;
}

/* The status belongs to a thread, so every chunk reports its own. */
static void run_chunk(void *context, int64_t k)
{
    struct job *job = context;
    char *data[3];
    shifted(job, data, k * job->length);
    if (run_watched(job, data, least(job->length, job->n - k * job->length)))
        __atomic_store_n(&job->warned, 1, __ATOMIC_RELAXED);
}

/* Without the lock, in parts between which signals are handled: 0, or -1 with an exception set. */
static int run_long(struct job *whole)
{
    const int64_t elements = tenferro_signal_elements();
    for (int64_t start = 0; start < whole->n && !whole->warned; start += elements) {
        char *data[3];
        struct job job = *whole;
        shifted(whole, data, start);
        job.data = data;
        job.n = least(elements, whole->n - start);
        const int64_t threads = job.n >= job.self->shared ? tenferro_team_allowed() : 1;
        job.length = threads <= 1 ? job.n
                                  : (job.n / (threads * CHUNKS_PER_THREAD) / CHUNK_ELEMENTS + 1) * CHUNK_ELEMENTS;
        Py_BEGIN_ALLOW_THREADS
        tenferro_team_run(run_chunk, &job, quotient_up(job.n, job.length), threads);
        Py_END_ALLOW_THREADS
        whole->warned = job.warned;
        if (tenferro_handle_signals() < 0)
            return -1;
    }
    return 0;
}

/* The array given for the result, if it fits and shares no memory with an operand; otherwise NULL. */
static PyArrayObject *taken_result(const struct job *job, PyObject *given, PyArrayObject *like)
{
    const ElementwiseEntry *self = job->self;
    if (!is_array_of(given, self->entry.descrs[self->inputs], NPY_ARRAY_CARRAY) || !same_shape((PyArrayObject *)given, like))
        return NULL;
    const char *start = PyArray_BYTES((PyArrayObject *)given);
    for (int k = 0; k < self->inputs; k++) {
        const int64_t bytes = (job->numbers >> k & 1 ? 1 : job->n) * self->in_size;
        if (start < job->data[k] + bytes && job->data[k] < start + job->n * self->out_size)
            return NULL;
    }
    return (PyArrayObject *)Py_NewRef(given);
}

static PyObject *elementwise_call(PyObject *callable, PyObject *const *args, size_t flags, PyObject *names)
{
    ElementwiseEntry *self = (ElementwiseEntry *)callable;
    const Py_ssize_t given = PyVectorcall_NARGS(flags) - self->inputs; /* arrays for the result */
    PyArrayObject *like = NULL, *result;
    struct slot slot;
    char *data[3];
    struct job job = {self, NULL, data, 0, 0, 0, 0};
    if (names != NULL || (given != 0 && given != 1))
        goto refused;
    for (int k = 0; k < self->inputs; k++) {
        PyArrayObject *x = (PyArrayObject *)args[k];
        if (is_array_of(args[k], self->entry.descrs[k], NPY_ARRAY_CARRAY_RO) && PyArray_NDIM(x) > 0) {
            data[k] = PyArray_BYTES(x);
            if (like != NULL && !same_shape(x, like))
                goto refused;
            like = x;
        } else {
            data[k] = job.numbers ? NULL : read_number(args[k], &self->number, &slot);
            if (data[k] == NULL)
                goto refused;
            job.numbers |= 1 << k;
        }
    }
    const struct form *form = &self->forms[job.numbers];
    if (like == NULL || (form->usual == NULL && self->loop == NULL))
        goto refused;
    job.n = product(PyArray_DIMS(like), PyArray_NDIM(like));
    if (job.n > self->entry.most)
        return pass_on(self->entry.large, args, flags, names);
    result = given ? taken_result(&job, args[self->inputs], like)
                   : new_array(self->entry.descrs[self->inputs], PyArray_NDIM(like), PyArray_DIMS(like));
    if (result == NULL && given)
        goto refused;
    if (result == NULL)
        return NULL;
    data[self->inputs] = PyArray_BYTES(result);
    job.kernel = form->streaming != NULL && (uintptr_t)PyArray_DATA(result) % 64 == 0 ? form->streaming : form->usual;
    if (job.n <= UNLOCKED_ELEMENTS && job.n <= tenferro_signal_elements()) {
        job.warned = run_watched(&job, data, job.n);
    } else if (run_long(&job) < 0) {
        Py_DECREF(result);
        return NULL;
    }
    if (!job.warned)
        return (PyObject *)result;
    Py_DECREF(result);
    return tenferro_pass_on_to_warn(&self->entry, args, flags);
refused:
    return pass_on(self->entry.fallback, args, flags, names);
}

/* Take the inner loop of a ufunc for these dtypes: 0, or -1 with an exception set. */
static int take_loop(ElementwiseEntry *self, PyObject *o)
{
    PyUFuncObject *ufunc = (PyUFuncObject *)o;
    if (!PyObject_TypeCheck(o, &PyUFunc_Type)) {
        PyErr_SetString(PyExc_TypeError, "the loop of an entry is that of a numpy.ufunc");
        return -1;
    }
    const int fits = ufunc->nin == self->inputs && ufunc->nout == 1 && !ufunc->core_enabled;
    for (int i = 0; fits && i < ufunc->ntypes; i++) {
        const char *types = ufunc->types + (ptrdiff_t)i * ufunc->nargs;
        int same = ufunc->functions[i] != NULL && types[self->inputs] == self->entry.descrs[self->inputs]->type_num;
        for (int k = 0; k < self->inputs; k++)
            same &= types[k] == self->entry.descrs[k]->type_num;
        if (same) {
            self->loop = ufunc->functions[i];
            self->loop_data = ufunc->data == NULL ? NULL : ufunc->data[i];
            return 0;
        }
    }
    PyErr_SetString(PyExc_TypeError, "the ufunc has no loop for these dtypes");
    return -1;
}

static PyObject *elementwise_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"kernel", "dtypes", "fallback", "large", "array_number", "number_array", "streaming",
                            "watch", "scan", "most", "shared", "loop", NULL};
    unsigned long long usual[FORMS] = {0}, streaming[FORMS] = {0};
    PyObject *dtypes, *fallback, *large, *loop = Py_None;
    int watch = 0, scan = 0;
    ElementwiseEntry *self = (ElementwiseEntry *)type->tp_alloc(type, 0);
    if (self == NULL)
        return NULL;
    self->entry.most = self->shared = INT64_MAX;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "KO!OO|$KK(KKK)piLLO", names, &usual[ARRAYS], &PyTuple_Type,
                                     &dtypes, &fallback, &large, &usual[ARRAY_NUMBER], &usual[NUMBER_ARRAY],
                                     &streaming[ARRAYS], &streaming[ARRAY_NUMBER], &streaming[NUMBER_ARRAY], &watch,
                                     &scan, &self->entry.most, &self->shared, &loop) ||
        tenferro_fill_entry(&self->entry, elementwise_call, dtypes, (int)PyTuple_GET_SIZE(dtypes) - 1, fallback, large,
                            loop) < 0) {
        Py_DECREF(self);
        return NULL;
    }
    const int inputs = self->inputs = self->entry.inputs;
    for (int form = 0; form < FORMS; form++)
        self->forms[form] = (struct form){kernel_at(usual[form]), kernel_at(streaming[form])};
    self->in_size = self->entry.sizes[0];
    self->out_size = self->entry.sizes[inputs];
    self->number = number_of(self->entry.descrs[0]);
    self->watch = watch ? STATUS_WATCHED | (loop == Py_None ? 0 : STATUS_UNDERFLOW) : 0;
    self->scan = scan;
    if (inputs > 2 || self->entry.descrs[0] != self->entry.descrs[inputs - 1]) {
        PyErr_SetString(PyExc_ValueError, "an element-wise entry has one or two operands, of one dtype");
        Py_CLEAR(self);
    } else if (loop != Py_None && take_loop(self, loop) < 0) {
        Py_CLEAR(self);
    }
    return (PyObject *)self;
}

static PyTypeObject elementwise_type =
    ENTRY_TYPE(ElementwiseEntry, elementwise_new, "A kernel of one or two operands of one dtype.");

int tenferro_add_elementwise(PyObject *module)
{
    import_umath1(-1);
    return PyModule_AddType(module, &elementwise_type);
}
