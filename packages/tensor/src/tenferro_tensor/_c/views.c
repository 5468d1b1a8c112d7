/* `x[key]` for keys of integers, slices, None and an ellipsis: a view of a NumPy array, or one element. */
#include "_c/values.h"

typedef struct {
    PyArrayObject *x;
    int from; /* number of axes of `x` processed */
    int to;   /* number of axes of the view */
    char *data;
    npy_intp extents[NPY_MAXDIMS], strides[NPY_MAXDIMS];
} View;

static int is_bound(PyObject *x)
{
    return x == Py_None || PyLong_CheckExact(x);
}

static int is_slice(PyObject *x)
{
    PySliceObject *s = (PySliceObject *)x;
    return PySlice_Check(x) && is_bound(s->start) && is_bound(s->stop) && is_bound(s->step);
}

int tenferro_is_basic(PyObject *x)
{
    return PyLong_CheckExact(x) || is_slice(x) || x == Py_None || x == Py_Ellipsis;
}

static int add_integer(View *v, PyObject *part)
{
    npy_intp extent = PyArray_DIM(v->x, v->from), i = PyLong_AsSsize_t(part);
    if (i == -1 && PyErr_Occurred()) {
        return 0;
    }
    i += i < 0 ? extent : 0;
    v->data += i * PyArray_STRIDE(v->x, v->from);
    v->from++;
    return 0 <= i && i < extent;
}

static int add_slice(View *v, PyObject *part)
{
    Py_ssize_t start, stop, step;
    npy_intp stride = PyArray_STRIDE(v->x, v->from);
    if (PySlice_Unpack(part, &start, &stop, &step) < 0) {
        return 0;
    }
    npy_intp count = PySlice_AdjustIndices(PyArray_DIM(v->x, v->from), &start, &stop, step);
    if (count <= 0) {
        count = start = 0;
        step = 1;
    }
    v->data += start * stride;
    v->extents[v->to] = count;
    v->strides[v->to] = stride * step;
    v->from++;
    v->to++;
    return 1;
}

static void add_whole(View *v, int until)
{
    for (; v->from < until; v->from++, v->to++) {
        v->extents[v->to] = PyArray_DIM(v->x, v->from);
        v->strides[v->to] = PyArray_STRIDE(v->x, v->from);
    }
}

/* Process one part of a key, whose later parts index `rest` axes; 0 if it is invalid, perhaps with an exception set. */
static int add_part(View *v, PyObject *part, int rest)
{
    int n = PyArray_NDIM(v->x);
    if (v->to + n - v->from >= NPY_MAXDIMS) {
        return 0;
    }
    if (PyLong_CheckExact(part)) {
        return v->from < n && add_integer(v, part);
    }
    if (part == Py_None) {
        v->extents[v->to] = 1;
        v->strides[v->to++] = 0;
        return 1;
    }
    if (part == Py_Ellipsis) {
        add_whole(v, n - rest);
        return v->from >= n - rest;
    }
    return is_slice(part) && v->from < n && add_slice(v, part);
}

/* Process the parts of a key in order; 0 as for `add_part`. */
static int add_parts(View *v, PyObject *key)
{
    Py_ssize_t count = PyTuple_GET_SIZE(key);
    int rest = 0, dots = 0;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *part = PyTuple_GET_ITEM(key, i);
        dots += part == Py_Ellipsis;
        rest += part != Py_Ellipsis && part != Py_None;
    }
    if (dots > 1 || rest > PyArray_NDIM(v->x)) {
        return 0;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *part = PyTuple_GET_ITEM(key, i);
        rest -= part != Py_Ellipsis && part != Py_None;
        if (!add_part(v, part, rest)) {
            return 0;
        }
    }
    return 1;
}

PyObject *tenferro_view(PyArrayObject *x, PyObject *key)
{
    View v;
    v.x = x;
    v.from = v.to = 0;
    v.data = PyArray_BYTES(x);
    if (!(PyTuple_CheckExact(key) ? add_parts(&v, key) : add_part(&v, key, 0))) {
        PyErr_Clear(); /* the function raises the typed error */
        return NULL;
    }
    add_whole(&v, PyArray_NDIM(x));
    if (v.to == 0) {
        return PyArray_Scalar(v.data, PyArray_DESCR(x), (PyObject *)x);
    }
    if (v.to == 1 && v.extents[0] == 1 && v.strides[0] < 0) {
        return NULL; /* kernels round a single element with a negative stride differently; the function avoids it */
    }
    PyArray_Descr *dtype = (PyArray_Descr *)Py_NewRef(PyArray_DESCR(x));
    PyObject *view = PyArray_NewFromDescr(&PyArray_Type, dtype, v.to, v.extents, v.strides, v.data,
                                          PyArray_FLAGS(x) & NPY_ARRAY_WRITEABLE, NULL);
    if (view != NULL && PyArray_SetBaseObject((PyArrayObject *)view, Py_NewRef(x)) < 0) {
        Py_CLEAR(view);
    }
    return view;
}
