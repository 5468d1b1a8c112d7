/* Direct forms that are faster than a Python call, most of them views. If one returns None or raises, the function is
   called instead. */
#include "_c/values.h"

#define COPY_MAX_BYTES (1 << 16) /* largest non-contiguous array that NumPy reshapes by a copy */
#define REPEATED_MAX_SIZE 2048   /* most elements of a broadcast that are copied: a view costs more than so few */

static int is_array(PyObject *const *args, Py_ssize_t n, Py_ssize_t due)
{
    return n >= due && PyArray_CheckExact(args[0]);
}

/* Extents given as one tuple or list, or as separate arguments: their number, -1 if they are not plain integers. */
static int extents_of(PyObject *const *args, Py_ssize_t n, npy_intp *extents)
{
    if (n == 1 && (PyTuple_CheckExact(args[0]) || PyList_CheckExact(args[0]))) {
        n = PySequence_Fast_GET_SIZE(args[0]);
        args = PySequence_Fast_ITEMS(args[0]);
    }
    if (n > NPY_MAXDIMS) {
        return -1;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        if (!PyLong_CheckExact(args[i])) {
            return -1;
        }
        extents[i] = PyLong_AsSsize_t(args[i]);
        if (extents[i] == -1 && PyErr_Occurred()) {
            PyErr_Clear();
            return -1;
        }
    }
    return (int)n;
}

PyDoc_STRVAR(reshaped_doc, "reshaped($module, x, /, *shape)\n--\n\nA view in another shape; perhaps a small copy.");

static PyObject *reshaped(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
    npy_intp extents[NPY_MAXDIMS];
    int count, open = 0;
    if (!is_array(args, n, 2) || (count = extents_of(args + 1, n - 1, extents)) < 0) {
        Py_RETURN_NONE;
    }
    PyArrayObject *x = (PyArrayObject *)args[0];
    for (int i = 0; i < count; i++) {
        if (extents[i] < 0 && (extents[i] != -1 || open++)) {
            Py_RETURN_NONE;
        }
    }
    if (!PyArray_IS_C_CONTIGUOUS(x) && PyArray_NBYTES(x) > COPY_MAX_BYTES) {
        Py_RETURN_NONE;
    }
    PyArray_Dims shape = {extents, count};
    return PyArray_Newshape(x, &shape, NPY_CORDER);
}

static PyObject *last_axes_swapped(PyObject *x)
{
    int n = PyArray_NDIM((PyArrayObject *)x);
    npy_intp order[NPY_MAXDIMS];
    for (int i = 0; i < n; i++) {
        order[i] = i;
    }
    order[n - 2] = n - 1;
    order[n - 1] = n - 2;
    PyArray_Dims permutation = {order, n};
    return PyArray_Transpose((PyArrayObject *)x, &permutation);
}

PyDoc_STRVAR(swapped_doc, "swapped($module, x, /)\n--\n\nA view with the last two axes swapped.");

static PyObject *swapped(PyObject *module, PyObject *x)
{
    if (!PyArray_CheckExact(x) || PyArray_NDIM((PyArrayObject *)x) < 2) {
        Py_RETURN_NONE;
    }
    return last_axes_swapped(x);
}

PyDoc_STRVAR(transposed_doc, "transposed($module, x, /)\n--\n\nA view of a matrix with its axes swapped.");

static PyObject *transposed(PyObject *module, PyObject *x)
{
    if (!PyArray_CheckExact(x) || PyArray_NDIM((PyArrayObject *)x) != 2) {
        Py_RETURN_NONE;
    }
    return PyArray_Transpose((PyArrayObject *)x, NULL);
}

PyDoc_STRVAR(broadcasted_doc, "broadcasted($module, x, shape, /)\n--\n\nA read-only view that repeats the elements, or a "
                              "small copy of it.");

static PyObject *broadcasted(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
    npy_intp extents[NPY_MAXDIMS], strides[NPY_MAXDIMS];
    npy_intp size = 1;
    int count, repeats = 0;
    if (n != 2 || !is_array(args, n, 2) || (count = extents_of(args + 1, 1, extents)) < 0) {
        Py_RETURN_NONE;
    }
    PyArrayObject *x = (PyArrayObject *)args[0];
    int ahead = count - PyArray_NDIM(x);
    for (int i = 0; i < count; i++) {
        npy_intp have = i < ahead ? 1 : PyArray_DIM(x, i - ahead);
        if (ahead < 0 || extents[i] < 0 || (have != 1 && have != extents[i])) {
            Py_RETURN_NONE;
        }
        strides[i] = have == 1 ? 0 : PyArray_STRIDE(x, i - ahead);
        size = size > REPEATED_MAX_SIZE && extents[i] ? size : size * extents[i];
        repeats |= have != extents[i];
    }
    if (ahead < 0) {
        Py_RETURN_NONE;
    }
    PyArray_Descr *dtype = (PyArray_Descr *)Py_NewRef(PyArray_DESCR(x));
    PyObject *view = PyArray_NewFromDescr(&PyArray_Type, dtype, count, extents, strides, PyArray_DATA(x), 0, NULL);
    if (view != NULL && PyArray_SetBaseObject((PyArrayObject *)view, Py_NewRef(x)) < 0) {
        Py_CLEAR(view);
    }
    if (view != NULL && repeats && size <= REPEATED_MAX_SIZE) {
        Py_SETREF(view, PyArray_NewCopy((PyArrayObject *)view, NPY_CORDER));
    }
    return view;
}

PyDoc_STRVAR(copied_doc, "copied($module, x, /)\n--\n\nA copy in row-major order.");

static PyObject *copied(PyObject *module, PyObject *x)
{
    if (!PyArray_CheckExact(x)) {
        Py_RETURN_NONE;
    }
    return PyArray_NewCopy((PyArrayObject *)x, NPY_CORDER);
}

PyDoc_STRVAR(counted_doc, "counted($module, x, /)\n--\n\nThe number of elements that are not zero.");

static PyObject *counted(PyObject *module, PyObject *x)
{
    npy_intp n = PyArray_CheckExact(x) ? PyArray_CountNonzero((PyArrayObject *)x) : -1;
    if (n < 0) {
        if (PyErr_Occurred()) {
            return NULL;
        }
        Py_RETURN_NONE;
    }
    PyArray_Descr *dtype = PyArray_DescrFromType(NPY_INT64);
    npy_int64 number = n;
    PyObject *scalar = dtype == NULL ? NULL : PyArray_Scalar(&number, dtype, NULL);
    Py_XDECREF(dtype);
    return scalar;
}

PyDoc_STRVAR(joined_doc, "joined($module, arrays, /, axis=0)\n--\n\nArrays joined along an axis.");

static PyObject *joined(PyObject *module, PyObject *const *args, Py_ssize_t n, PyObject *names)
{
    Py_ssize_t named = names == NULL ? 0 : PyTuple_GET_SIZE(names);
    if (n < 1 || n + named > 2 || (named && PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, 0), "axis"))) {
        Py_RETURN_NONE;
    }
    int axis = 0;
    if (n + named == 2 && args[1] == Py_None) {
        axis = NPY_RAVEL_AXIS;
    } else if (n + named == 2) {
        int far = 1;
        long given = PyLong_CheckExact(args[1]) ? PyLong_AsLongAndOverflow(args[1], &far) : 0;
        if (far || given < -NPY_MAXDIMS || given >= NPY_MAXDIMS) {
            Py_RETURN_NONE;
        }
        axis = (int)given;
    }
    return PyArray_Concatenate(args[0], axis);
}

PyDoc_STRVAR(stacked_doc, "stacked_indices($module, arrays, extents, /)\n--\n\nIndex vectors, counted from 0.");

/* Write one array to its column of the vectors; 0 if an index is out of bounds. */
static int stacked_column(PyArrayObject *indices, npy_intp extent, npy_intp *to, npy_intp step)
{
    const npy_intp *at = PyArray_DATA(indices);
    npy_intp n = PyArray_SIZE(indices);
    for (npy_intp k = 0; k < n; k++, to += step) {
        *to = at[k] + (at[k] < 0 ? extent : 0);
        if (*to < 0 || *to >= extent) {
            return 0;
        }
    }
    return 1;
}

/* Whether all are contiguous arrays of indices of one shape; others must be broadcast first. */
static int are_alike(PyObject *arrays)
{
    PyArrayObject *first = (PyArrayObject *)PyTuple_GET_ITEM(arrays, 0);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(arrays); i++) {
        PyArrayObject *a = (PyArrayObject *)PyTuple_GET_ITEM(arrays, i);
        if (!PyArray_CheckExact(a) || PyArray_TYPE(a) != NPY_INTP || !PyArray_IS_C_CONTIGUOUS(a)
            || PyArray_NDIM(a) >= NPY_MAXDIMS || PyArray_NDIM(a) != PyArray_NDIM(first)
            || !PyArray_CompareLists(PyArray_DIMS(a), PyArray_DIMS(first), PyArray_NDIM(a))) {
            return 0;
        }
    }
    return 1;
}

static PyObject *stacked_indices(PyObject *module, PyObject *args)
{
    PyObject *arrays, *extents;
    if (!PyArg_ParseTuple(args, "O!O!:stacked_indices", &PyTuple_Type, &arrays, &PyTuple_Type, &extents)) {
        return NULL;
    }
    npy_intp count = PyTuple_GET_SIZE(arrays), shape[NPY_MAXDIMS];
    if (!count || count != PyTuple_GET_SIZE(extents) || !are_alike(arrays)) {
        Py_RETURN_NONE;
    }
    PyArrayObject *first = (PyArrayObject *)PyTuple_GET_ITEM(arrays, 0);
    int ndim = PyArray_NDIM(first), inside = 1;
    memcpy(shape, PyArray_DIMS(first), (size_t)ndim * sizeof *shape);
    shape[ndim] = count;
    PyObject *vectors = PyArray_SimpleNew(ndim + 1, shape, NPY_INTP);
    for (npy_intp i = 0; i < count && vectors != NULL && inside; i++) {
        npy_intp extent = PyLong_AsSsize_t(PyTuple_GET_ITEM(extents, i));
        if (extent == -1 && PyErr_Occurred()) {
            Py_CLEAR(vectors);
        } else {
            npy_intp *to = (npy_intp *)PyArray_DATA((PyArrayObject *)vectors) + i;
            inside = stacked_column((PyArrayObject *)PyTuple_GET_ITEM(arrays, i), extent, to, count);
        }
    }
    if (vectors != NULL && !inside) {
        Py_SETREF(vectors, Py_NewRef(Py_None));
    }
    return vectors;
}

static PyMethodDef functions[] = {
    {"stacked_indices", stacked_indices, METH_VARARGS, stacked_doc},
    {"joined", (PyCFunction)(void (*)(void))joined, METH_FASTCALL | METH_KEYWORDS, joined_doc},
    {"reshaped", (PyCFunction)(void (*)(void))reshaped, METH_FASTCALL, reshaped_doc},
    {"swapped", swapped, METH_O, swapped_doc},
    {"transposed", transposed, METH_O, transposed_doc},
    {"broadcasted", (PyCFunction)(void (*)(void))broadcasted, METH_FASTCALL, broadcasted_doc},
    {"copied", copied, METH_O, copied_doc},
    {"counted", counted, METH_O, counted_doc},
    {NULL},
};

int tenferro_add_forms(PyObject *module)
{
    if (PyModule_AddIntConstant(module, "REPEATED_MAX_SIZE", REPEATED_MAX_SIZE) < 0) {
        return -1;
    }
    return PyModule_AddFunctions(module, functions);
}
