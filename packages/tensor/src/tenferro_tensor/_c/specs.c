/* The specs of raw arrays in main memory: `tenferro_spec`, which keeps those used lately. */
#include "_c/values.h"

#define KNOWN 256 /* arrays; a power of two */
#define KNOWN_AXES 6 /* of arrays that are kept */
#define KNOWN_SCALARS 24

typedef struct {
    PyObject *spec; /* NULL where nothing is kept */
    PyObject *dtype;
    int ndim;
    npy_intp extents[KNOWN_AXES];
} Known;

static Known known[KNOWN];

static struct {
    PyTypeObject *type; /* of a NumPy scalar; these types live as long as the process */
    PyObject *spec;
} known_scalars[KNOWN_SCALARS];

/* `Spec(shape, dtype)`, in main memory. */
static PyObject *made(int ndim, const npy_intp *extents, PyObject *dtype)
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
    for (; i < KNOWN_SCALARS && known_scalars[i].type != NULL; i++) {
        if (known_scalars[i].type == Py_TYPE(raw)) {
            return Py_NewRef(known_scalars[i].spec);
        }
    }
    if (!PyArray_IsScalar(raw, Generic)) {
        return PyErr_Format(PyExc_TypeError, "an array of NumPy is due, got %R", raw);
    }
    PyObject *dtype = (PyObject *)PyArray_DescrFromScalar(raw), *spec = dtype == NULL ? NULL : made(0, NULL, dtype);
    Py_XDECREF(dtype);
    if (spec != NULL && i < KNOWN_SCALARS && known_scalars[i].type == NULL) { /* making it may have run other code */
        known_scalars[i].type = Py_TYPE(raw);
        known_scalars[i].spec = Py_NewRef(spec);
    }
    return spec;
}

static Known *place_of(PyObject *dtype, int ndim, const npy_intp *extents)
{
    size_t h = ((size_t)dtype >> 5) + (size_t)ndim;
    for (int i = 0; i < ndim; i++) {
        h = h * 31 + (size_t)extents[i];
    }
    return &known[(h ^ (h >> 8)) & (KNOWN - 1)];
}

static int is_that(const Known *k, PyObject *dtype, int ndim, const npy_intp *extents)
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
    if (ndim > KNOWN_AXES) {
        return made(ndim, extents, dtype);
    }
    Known *k = place_of(dtype, ndim, extents);
    if (is_that(k, dtype, ndim, extents)) {
        return Py_NewRef(k->spec);
    }
    PyObject *spec = made(ndim, extents, dtype);
    if (spec != NULL) {
        PyObject *old_spec = k->spec, *old_dtype = k->dtype;
        k->spec = Py_NewRef(spec);
        k->dtype = Py_NewRef(dtype);
        k->ndim = ndim;
        memcpy(k->extents, extents, (size_t)ndim * sizeof *extents);
        Py_XDECREF(old_spec); /* last: this may run code */
        Py_XDECREF(old_dtype);
    }
    return spec;
}

PyDoc_STRVAR(forget_doc, "forget_specs()\n--\n\nDrop the specs that are kept; they are found again when needed.");

static PyObject *forget_specs(PyObject *module, PyObject *unused)
{
    for (int i = 0; i < KNOWN; i++) {
        Py_CLEAR(known[i].dtype);
        Py_CLEAR(known[i].spec);
    }
    Py_RETURN_NONE;
}

PyDoc_STRVAR(kept_doc, "kept_specs()\n--\n\nThe number of specs that are kept, and the largest number.");

static PyObject *kept_specs(PyObject *module, PyObject *unused)
{
    int n = 0;
    for (int i = 0; i < KNOWN; i++) {
        n += known[i].spec != NULL;
    }
    return Py_BuildValue("(ii)", n, KNOWN);
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
