/* `Along`: a kernel along one axis as a callable of one array, which passes on what the kernel does not take. */
#include "ordering/along.h"
#include "entries/entry.h"

#include <structmember.h>

typedef PyObject *along_kernel(PyArrayObject *x, int axis, int reversed);

typedef struct {
    PyObject_HEAD
    vectorcallfunc call;
    PyObject *fallback; /* called with the same arguments for everything else */
    along_kernel *kernel;
    PyArray_Descr *descr;
    int axis, reversed;
    int64_t longest; /* elements of the longest line */
} Along;

static PyObject *along_call(PyObject *callable, PyObject *const *args, size_t flags, PyObject *names)
{
    const Along *self = (Along *)callable;
    if (names == NULL && PyVectorcall_NARGS(flags) == 1 && is_array_of(args[0], self->descr, NPY_ARRAY_ALIGNED)) {
        PyArrayObject *x = (PyArrayObject *)args[0];
        const int fits = self->axis < PyArray_NDIM(x) && PyArray_DIM(x, self->axis) <= self->longest;
        PyObject *made = fits ? self->kernel(x, self->axis, self->reversed) : NULL;
        if (made != NULL || PyErr_Occurred())
            return made;
    }
    return pass_on(self->fallback, args, flags, names);
}

static const struct {
    const char *name;
    along_kernel *kernel;
    int narrow; /* whether it takes types without wide keys */
} kernels[] = {
    {"sort", tenferro_sort, 1},
    {"argsort", tenferro_argsort, 1},
    {"argmax", tenferro_argmax, 0},
    {"cumsum", tenferro_cumsum, 0},
    {"cumprod", tenferro_cumprod, 0},
};

static along_kernel *kernel_named(const char *name, PyArray_Descr *descr)
{
    const int keys = tenferro_key_type(descr) >= 0, wide = has_wide_keys(descr);
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
        if (strcmp(name, kernels[i].name) == 0)
            return wide || (keys && kernels[i].narrow) ? kernels[i].kernel : NULL;
    return NULL;
}

static PyObject *along_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"kernel", "dtype", "axis", "reversed", "longest", "fallback", NULL};
    const char *name;
    PyArray_Descr *descr;
    int axis, reversed;
    long long longest;
    PyObject *fallback;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "sO!ipLO", names, &name, &PyArrayDescr_Type, &descr, &axis,
                                     &reversed, &longest, &fallback))
        return NULL;
    along_kernel *kernel = kernel_named(name, descr);
    if (kernel == NULL || axis < 0)
        return PyErr_Format(PyExc_ValueError, "there is no kernel %s of %R along axis %d", name, descr, axis);
    Along *self = (Along *)type->tp_alloc(type, 0);
    if (self != NULL) {
        self->call = along_call;
        self->kernel = kernel;
        self->axis = axis;
        self->reversed = reversed;
        self->longest = longest;
        self->descr = (PyArray_Descr *)Py_NewRef((PyObject *)descr);
        self->fallback = Py_NewRef(fallback);
    }
    return (PyObject *)self;
}

static int along_traverse(PyObject *o, visitproc visit, void *arg)
{
    Py_VISIT(((Along *)o)->fallback);
    return 0;
}

static int along_clear(PyObject *o)
{
    Py_CLEAR(((Along *)o)->fallback);
    return 0;
}

static void along_dealloc(PyObject *o)
{
    PyObject_GC_UnTrack(o);
    along_clear(o);
    Py_CLEAR(((Along *)o)->descr);
    Py_TYPE(o)->tp_free(o);
}

static PyMemberDef along_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Along, call), READONLY},
    {"fallback", T_OBJECT, offsetof(Along, fallback), READONLY, "Called with the same arguments for all else."},
    {NULL},
};

static PyTypeObject along_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "tenferro_cpu.native._compiled.Along",
    .tp_doc = "A kernel along one axis of an array.",
    .tp_basicsize = sizeof(Along),
    .tp_new = along_new,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_vectorcall_offset = offsetof(Along, call),
    .tp_call = PyVectorcall_Call,
    .tp_dealloc = along_dealloc,
    .tp_traverse = along_traverse,
    .tp_clear = along_clear,
    .tp_members = along_members,
};

int tenferro_add_along(PyObject *module)
{
    tenferro_choose_keys();
    tenferro_choose_extremes();
    tenferro_choose_scans();
    return PyModule_AddType(module, &along_type);
}
