/* Cumulative sums and products along an axis, element by element like NumPy's, including its warnings. */
#include "kernels/ordering/along.h"
#include "kernels/ordering/scans.h"
#include "status.h"

static const struct scan_kernels *kernels; /* set when the module is loaded */

void tenferro_choose_scans(void)
{
    kernels = TENFERRO_CHOOSE(scan_kernels);
}

static void scan_lines(PyArrayObject *x, PyArrayObject *z, int axis, int reversed, int kind, int type)
{
    struct lines lines = lines_along(x, axis);
    npy_intp source[NPY_MAXDIMS], target[NPY_MAXDIMS];
    const int64_t n = lines.length, stride = PyArray_STRIDE(x, axis), size = PyArray_ITEMSIZE(x);
    char *line = PyArray_BYTES(x), *made = PyArray_BYTES(z);
    other_strides(x, axis, source);
    other_strides(z, axis, target);
    for (int64_t k = 0; k < lines.count; k++, next_line(&lines, source, &line, target, &made))
        if (reversed)
            kernels->along[kind][type](line + (n - 1) * stride, n, -stride, made + (n - 1) * size, -1);
        else
            kernels->along[kind][type](line, n, stride, made, 1);
}

/* Scan the rows of an array without gaps, which consist of the axes after `axis`. */
static void scan_rows(PyArrayObject *x, PyArrayObject *z, int axis, int reversed, int kind, int type)
{
    const int rank = PyArray_NDIM(x);
    const int64_t outer = product(PyArray_DIMS(x), axis), n = PyArray_DIM(x, axis);
    const int64_t width = product(PyArray_DIMS(x) + axis + 1, rank - axis - 1), bytes = width * PyArray_ITEMSIZE(x);
    const int64_t step = reversed ? -bytes : bytes;
    for (int64_t k = 0; k < outer; k++) {
        const int64_t first = (k * n + (reversed ? n - 1 : 0)) * bytes;
        const char *row = PyArray_BYTES(x) + first;
        char *made = PyArray_BYTES(z) + first;
        memcpy(made, row, (size_t)bytes);
        for (int64_t i = 1; i < n; i++)
            kernels->across[kind][type](row + i * step, made + (i - 1) * step, made + i * step, width);
    }
}

/* Returns NULL without an exception if numbers overflowed or became NaN, which NumPy warns about. */
static PyObject *scan(PyArrayObject *x, int axis, int reversed, int kind)
{
    enum { UNLOCKED = 1 << 15 };
    const int rows = axis < PyArray_NDIM(x) - 1, type = tenferro_key_type(PyArray_DESCR(x));
    PyArrayObject *whole = rows ? PyArray_GETCONTIGUOUS(x) : (PyArrayObject *)Py_NewRef((PyObject *)x);
    PyArrayObject *z = whole == NULL ? NULL : new_array(PyArray_DESCR(x), PyArray_NDIM(x), PyArray_DIMS(x));
    if (z != NULL && PyArray_SIZE(x) > 0) {
        PyThreadState *state = PyArray_SIZE(x) > UNLOCKED ? PyEval_SaveThread() : NULL;
        status_clear();
        (rows ? scan_rows : scan_lines)(whole, z, axis, reversed, kind, type);
        const int odd = (status_read() & STATUS_WATCHED) != 0;
        if (state != NULL)
            PyEval_RestoreThread(state);
        if (odd)
            Py_CLEAR(z);
    }
    Py_XDECREF(whole);
    return (PyObject *)z;
}

PyObject *tenferro_cumsum(PyArrayObject *x, int axis, int reversed)
{
    return scan(x, axis, reversed, SCAN_SUM);
}

PyObject *tenferro_cumprod(PyArrayObject *x, int axis, int reversed)
{
    return scan(x, axis, reversed, SCAN_PRODUCT);
}
