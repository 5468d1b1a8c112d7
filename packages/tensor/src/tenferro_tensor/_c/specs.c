/* The specs of raw arrays in main memory: `tenferro_spec` and its cache of recently used specs. */
#include "_c/values.h"

#define CACHE_SIZE 256 /* a power of two */
#define CACHE_MAX_AXES 6 /* of arrays that are kept */
#define SCALAR_CACHE_SIZE 24

typedef struct {
    PyObject *spec; /* NULL if the slot is empty */
    PyObject *dtype;
    int ndim;
    npy_intp extents[CACHE_MAX_AXES];
} CachedSpec;

static CachedSpec cache[CACHE_SIZE];

static struct {
    PyTypeObject *type; /* class of a NumPy scalar; these live as long as the process */
    PyObject *spec;
} scalar_cache[SCALAR_CACHE_SIZE];

/* `Spec(shape, dtype)`, in main memory. */
static PyObject *new_spec(int ndim, const npy_intp *extents, PyObject *dtype)
{
    PyObject *shape = PyTuple_New(ndim);
    for (int i = 0; i < ndim && shape != NULL; i++) {
        PyObject *extent = PyLong_FromSsize_t(extents[i]);
        if (extent == NULL) {
            Py_CLEAR(shape);
        } else {
            PyTuple_SET_ITEM(shape, i, extent);
        }
    }
    PyObject *cls = (PyObject *)tenferro_state.spec, *spec = NULL;
    if (shape != NULL) {
        spec = PyObject_CallFunctionObjArgs(cls, shape, dtype, NULL);
    }
    Py_XDECREF(shape);
    return spec;
}

static PyObject *spec_of_scalar(PyObject *raw)
{
    int i = 0;
    for (; i < SCALAR_CACHE_SIZE && scalar_cache[i].type != NULL; i++) {
        if (scalar_cache[i].type == Py_TYPE(raw)) {
            return Py_NewRef(scalar_cache[i].spec);
        }
    }
    if (!PyArray_IsScalar(raw, Generic)) {
        return PyErr_Format(PyExc_TypeError, "expected a NumPy array, got %R", raw);
    }
    PyObject *dtype = (PyObject *)PyArray_DescrFromScalar(raw), *spec = dtype == NULL ? NULL : new_spec(0, NULL, dtype);
    Py_XDECREF(dtype);
    if (spec != NULL && i < SCALAR_CACHE_SIZE && scalar_cache[i].type == NULL) { /* Python code may have filled the slot meanwhile */
        scalar_cache[i].type = Py_TYPE(raw);
        scalar_cache[i].spec = Py_NewRef(spec);
    }
    return spec;
}

static CachedSpec *slot_of(PyObject *dtype, int ndim, const npy_intp *extents)
{
    size_t h = ((size_t)dtype >> 5) + (size_t)ndim;
    for (int i = 0; i < ndim; i++) {
        h = h * 31 + (size_t)extents[i];
    }
    return &cache[(h ^ (h >> 8)) & (CACHE_SIZE - 1)];
}

static int matches(const CachedSpec *k, PyObject *dtype, int ndim, const npy_intp *extents)
{
    if (k->spec == NULL || k->dtype != dtype || k->ndim != ndim) {
        return 0;
    }
    for (int i = 0; i < ndim; i++) {
        if (k->extents[i] != extents[i]) {
            return 0;
        }
    }
    return 1;
}

PyObject *tenferro_spec(PyObject *raw)
{
    if (!PyArray_CheckExact(raw)) {
        return spec_of_scalar(raw);
    }
    int ndim = PyArray_NDIM((PyArrayObject *)raw);
    const npy_intp *extents = PyArray_DIMS((PyArrayObject *)raw);
    PyObject *dtype = (PyObject *)PyArray_DESCR((PyArrayObject *)raw);
    if (ndim > CACHE_MAX_AXES) {
        return new_spec(ndim, extents, dtype);
    }
    CachedSpec *k = slot_of(dtype, ndim, extents);
    if (matches(k, dtype, ndim, extents)) {
        return Py_NewRef(k->spec);
    }
    PyObject *spec = new_spec(ndim, extents, dtype);
    if (spec != NULL) {
        PyObject *old_spec = k->spec, *old_dtype = k->dtype;
        k->spec = Py_NewRef(spec);
        k->dtype = Py_NewRef(dtype);
        k->ndim = ndim;
        if (ndim > 0) /* an array without axes may have no extents */
            memcpy(k->extents, extents, (size_t)ndim * sizeof *extents);
        Py_XDECREF(old_spec); /* last: may run code */
        Py_XDECREF(old_dtype);
    }
    return spec;
}

PyDoc_STRVAR(forget_doc, "forget_specs()\n--\n\nClear the cache of specs of raw arrays.");

static PyObject *forget_specs(PyObject *module, PyObject *unused)
{
    for (int i = 0; i < CACHE_SIZE; i++) {
        Py_CLEAR(cache[i].dtype);
        Py_CLEAR(cache[i].spec);
    }
    Py_RETURN_NONE;
}

PyDoc_STRVAR(kept_doc, "kept_specs()\n--\n\nThe number of cached specs of raw arrays, and the bound.");

static PyObject *kept_specs(PyObject *module, PyObject *unused)
{
    int n = 0;
    for (int i = 0; i < CACHE_SIZE; i++) {
        n += cache[i].spec != NULL;
    }
    return Py_BuildValue("(ii)", n, CACHE_SIZE);
}

static PyObject *spec_of_raw(PyObject *module, PyObject *raw)
{
    return tenferro_spec(raw);
}

static PyMethodDef functions[] = {
    {"forget_specs", forget_specs, METH_NOARGS, forget_doc},
    {"kept_specs", kept_specs, METH_NOARGS, kept_doc},
    {"spec_of_raw", spec_of_raw, METH_O, "spec_of_raw(raw, /)\n--\n\nThe spec of a NumPy array in main memory."},
    {NULL},
};

int tenferro_add_specs(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
