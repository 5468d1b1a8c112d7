/* `PlannedReduction`: a reduction planned for operands of known shapes and strides, as a callable that allocates
 * results and runs. */
#include "eager/entry.h"

enum { MAX_WORDS = 256 }; /* the words are copied to the stack in every call */

typedef struct {
    struct entry entry; /* the owner holds the words of the walk as bytes, except the pointers */
    row_kernel *kernel;
    int rank, words;
    npy_intp shape[MAX_RANK]; /* of the results */
} PlannedReduction;

static PyObject *planned_call(PyObject *callable, PyObject *const *args, size_t flags, PyObject *names)
{
    const PlannedReduction *self = (PlannedReduction *)callable;
    const struct entry *e = &self->entry;
    PyArrayObject *made[MAX_OPERANDS];
    int64_t words[MAX_WORDS];
    struct walk walk;
    int fits = names == NULL && PyVectorcall_NARGS(flags) == e->inputs;
    for (int k = 0; fits && k < e->inputs; k++)
        fits = is_array_of(args[k], e->descrs[k], NPY_ARRAY_ALIGNED);
    if (!fits)
        return pass_on(e->fallback, args, flags, names);
    if (new_arrays(made, e->outputs, e->descrs + e->inputs, self->rank, self->shape) < 0)
        return NULL;
    memcpy(words, PyBytes_AS_STRING(e->owner), (size_t)self->words * sizeof *words);
    int status = tenferro_walk_of_words(&walk, words, self->words);
    for (int k = 0; k < e->inputs; k++)
        walk.data[k] = PyArray_BYTES((PyArrayObject *)args[k]);
    for (int k = 0; k < e->outputs; k++)
        walk.data[e->inputs + k] = PyArray_BYTES(made[k]);
    walk.kernel = self->kernel;
    if (status < 0 || tenferro_walk(&walk, 0.0, 1) < 0) {
        drop_arrays(made, e->outputs);
        return NULL;
    }
    return given_results(made, e->outputs);
}

/* Whether the words are those of a walk of these operands. */
static int take_words(PlannedReduction *self, PyObject *bytes)
{
    int64_t words[MAX_WORDS];
    struct walk walk = {.operands = 0};
    const Py_ssize_t size = PyBytes_GET_SIZE(bytes);
    self->words = (int)least(size / 8, MAX_WORDS);
    memcpy(words, PyBytes_AS_STRING(bytes), (size_t)self->words * sizeof *words);
    if (size <= (Py_ssize_t)sizeof words && tenferro_walk_of_words(&walk, words, self->words) < 0)
        return -1;
    if (walk.operands == self->entry.inputs + self->entry.outputs)
        return 0;
    PyErr_SetString(PyExc_ValueError, "these words are not for such operands");
    return -1;
}

static PyObject *planned_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"kernel", "words", "dtypes", "inputs", "shape", "fallback", NULL};
    unsigned long long kernel;
    PyObject *words, *dtypes, *fallback;
    PyArray_Dims shape = {NULL, 0};
    int inputs;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "KSOiO&O", names, &kernel, &words, &dtypes, &inputs,
                                     PyArray_IntpConverter, &shape, &fallback))
        return NULL;
    PlannedReduction *self = (PlannedReduction *)type->tp_alloc(type, 0);
    if (self != NULL) {
        self->kernel = kernel_at(kernel);
        self->rank = shape.len;
        for (int d = 0; d < shape.len; d++)
            self->shape[d] = shape.ptr[d];
        if (tenferro_fill_entry(&self->entry, planned_call, dtypes, inputs, fallback, fallback, words) < 0 ||
            take_words(self, words) < 0)
            Py_CLEAR(self);
    }
    PyDimMem_FREE(shape.ptr);
    return (PyObject *)self;
}

static PyTypeObject planned_type = ENTRY_TYPE(
    PlannedReduction, planned_new, "A reduction planned for one layout of its operands.");

int tenferro_add_planned(PyObject *module)
{
    return PyModule_AddType(module, &planned_type);
}
