/* `Along`: a kernel along one axis as a callable of one array; other arguments go to the fallback. */
#include "kernels/ordering/along.h"
#include "eager/entry.h"

typedef PyObject *along_kernel(PyArrayObject *x, int axis, int reversed);

typedef struct {
    struct filter filter;
    along_kernel *kernel;
    int axis, reversed;
    int64_t longest; /* elements of the longest line */
} Along;

static PyObject *along_call(PyObject *callable, PyObject *const *args, size_t flags, PyObject *names)
{
    const Along *self = (Along *)callable;
    if (names == NULL && PyVectorcall_NARGS(flags) == 1 && is_array_of(args[0], self->filter.descr, NPY_ARRAY_ALIGNED)) {
        PyArrayObject *x = (PyArrayObject *)args[0];
        const int fits = self->axis < PyArray_NDIM(x) && PyArray_DIM(x, self->axis) <= self->longest;
        PyObject *made = fits ? self->kernel(x, self->axis, self->reversed) : NULL;
        if (made != NULL || PyErr_Occurred())
            return made;
    }
    return pass_on(self->filter.fallback, args, flags, names);
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
    Along *self = (Along *)tenferro_new_filter(type, along_call, descr, fallback);
    if (self != NULL) {
        self->kernel = kernel;
        self->axis = axis;
        self->reversed = reversed;
        self->longest = longest;
    }
    return (PyObject *)self;
}

PyObject *tenferro_new_filter(PyTypeObject *type, vectorcallfunc call, PyArray_Descr *descr, PyObject *fallback)
{
    struct filter *self = (struct filter *)type->tp_alloc(type, 0);
    if (self != NULL) {
        self->call = call;
        self->descr = (PyArray_Descr *)Py_NewRef((PyObject *)descr);
        self->fallback = Py_NewRef(fallback);
    }
    return (PyObject *)self;
}

int tenferro_traverse_filter(PyObject *o, visitproc visit, void *arg)
{
    Py_VISIT(((struct filter *)o)->fallback);
    return 0;
}

int tenferro_clear_filter(PyObject *o)
{
    Py_CLEAR(((struct filter *)o)->fallback);
    return 0;
}

void tenferro_dealloc_filter(PyObject *o)
{
    PyObject_GC_UnTrack(o);
    tenferro_clear_filter(o);
    Py_CLEAR(((struct filter *)o)->descr);
    Py_TYPE(o)->tp_free(o);
}

PyMemberDef tenferro_filter_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(struct filter, call), READONLY},
    {"fallback", T_OBJECT, offsetof(struct filter, fallback), READONLY, "Called with the same arguments for all else."},
    {NULL},
};

static PyTypeObject along_type = FILTER_TYPE(Along, along_new, "A kernel along one axis of an array.");

int tenferro_add_along(PyObject *module)
{
    tenferro_choose_keys();
    tenferro_choose_extremes();
    tenferro_choose_scans();
    return PyModule_AddType(module, &along_type);
}
