/* `Laid`: a reduction planned for operands of known shapes and strides, as a callable that makes the results and runs. */
#include "kernels/walk.h"
#include "operands.h"

#include <structmember.h>

enum { MOST_WORDS = 256 }; /* the words are copied to the stack in every call */

typedef struct {
    PyObject_HEAD
    vectorcallfunc call;
    PyObject *fallback, *dtypes; /* called for everything else; a tuple of the dtypes of operands and results */
    row_kernel *kernel;
    int inputs, outputs, rank;
    npy_intp shape[MOST_RANK]; /* of the results */
    int64_t *words, count;     /* of the walk, but for the pointers */
} Laid;

static PyObject *laid_call(PyObject *callable, PyObject *const *args, size_t flags, PyObject *names)
{
    Laid *self = (Laid *)callable;
    PyArray_Descr *const *descrs = (PyArray_Descr **)&PyTuple_GET_ITEM(self->dtypes, 0);
    PyArrayObject *made[MOST_OPERANDS];
    int64_t words[MOST_WORDS];
    struct walk walk;
    int fits = names == NULL && PyVectorcall_NARGS(flags) == self->inputs;
    for (int k = 0; fits && k < self->inputs; k++)
        fits = is_array_of(args[k], descrs[k], NPY_ARRAY_ALIGNED);
    if (!fits)
        return pass_on(self->fallback, args, flags, names);
    if (new_arrays(made, self->outputs, descrs + self->inputs, self->rank, self->shape) < 0)
        return NULL;
    memcpy(words, self->words, (size_t)self->count * sizeof *words);
    int status = tenferro_walk_of_words(&walk, words, self->count);
    for (int k = 0; k < self->inputs; k++)
        walk.data[k] = PyArray_BYTES((PyArrayObject *)args[k]);
    for (int k = 0; k < self->outputs; k++)
        walk.data[self->inputs + k] = PyArray_BYTES(made[k]);
    walk.kernel = self->kernel;
    if (status < 0 || tenferro_walk(&walk, 0.0, 1) < 0) {
        drop_arrays(made, self->outputs);
        return NULL;
    }
    return given_results(made, self->outputs);
}

static int laid_traverse(PyObject *o, visitproc visit, void *arg)
{
    Laid *self = (Laid *)o;
    Py_VISIT(self->fallback);
    Py_VISIT(self->dtypes);
    return 0;
}

static int laid_clear(PyObject *o)
{
    Laid *self = (Laid *)o;
    Py_CLEAR(self->fallback);
    return 0; /* the dtypes stay: they lead nowhere */
}

static void laid_dealloc(PyObject *o)
{
    Laid *self = (Laid *)o;
    PyObject_GC_UnTrack(o);
    laid_clear(o);
    Py_CLEAR(self->dtypes);
    PyMem_Free(self->words);
    Py_TYPE(o)->tp_free(o);
}

static PyObject *laid_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"kernel", "words", "dtypes", "inputs", "shape", "fallback", NULL};
    unsigned long long kernel;
    PyObject *sequence, *dtypes, *fallback;
    PyArray_Dims shape = {NULL, 0};
    struct walk walk;
    int inputs;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "KOO!iO&O", names, &kernel, &sequence, &PyTuple_Type, &dtypes,
                                     &inputs, PyArray_IntpConverter, &shape, &fallback))
        return NULL;
    Laid *self = (Laid *)type->tp_alloc(type, 0);
    const int every = (int)PyTuple_GET_SIZE(dtypes);
    int good = self != NULL;
    if (good) {
        self->call = laid_call;
        self->kernel = kernel_at(kernel);
        self->inputs = inputs;
        self->outputs = every - inputs;
        self->rank = shape.len;
        memcpy(self->shape, shape.ptr, (size_t)shape.len * sizeof *shape.ptr);
        self->fallback = Py_NewRef(fallback);
        self->dtypes = Py_NewRef(dtypes);
        self->words = tenferro_words_of(sequence, &self->count);
        good = self->words != NULL && tenferro_walk_of_words(&walk, self->words, self->count) == 0;
        if (good && (inputs < 1 || every <= inputs || every > MOST_OPERANDS || self->count > MOST_WORDS ||
                     walk.operands != every)) {
            PyErr_SetString(PyExc_ValueError, "these words are not for such operands");
            good = 0;
        }
    }
    for (int k = 0; good && k < every; k++) {
        good = PyArray_DescrCheck(PyTuple_GET_ITEM(dtypes, k));
        if (!good)
            PyErr_SetString(PyExc_TypeError, "dtypes are numpy.dtype objects");
    }
    PyDimMem_FREE(shape.ptr);
    if (!good)
        Py_CLEAR(self);
    return (PyObject *)self;
}

static PyMemberDef laid_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Laid, call), READONLY},
    {"fallback", T_OBJECT, offsetof(Laid, fallback), READONLY, "Called with the same operands for everything else."},
    {"dtypes", T_OBJECT, offsetof(Laid, dtypes), READONLY, "Dtypes of the operands, then of the results."},
    {NULL},
};

static PyTypeObject laid_type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "tenferro_cpu.native._compiled.Laid",
    .tp_doc = "A reduction planned for operands of known shapes and strides.",
    .tp_basicsize = sizeof(Laid),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_vectorcall_offset = offsetof(Laid, call),
    .tp_call = PyVectorcall_Call,
    .tp_new = laid_new,
    .tp_dealloc = laid_dealloc,
    .tp_traverse = laid_traverse,
    .tp_clear = laid_clear,
    .tp_members = laid_members,
};

int tenferro_add_laid(PyObject *module)
{
    return PyModule_AddType(module, &laid_type);
}
