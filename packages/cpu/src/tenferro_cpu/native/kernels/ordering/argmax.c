/* Positions of extremes along an axis. NumPy's own copies operands that are not writable, and transposes others. */
#include "kernels/ordering/along.h"
#include "kernels/ordering/extremes.h"

static const struct extreme_kernels *kernels; /* set when the module is loaded */

void tenferro_choose_extremes(void)
{
    kernels = TENFERRO_CHOOSE(extreme_kernels);
}

/* The positions in a contiguous array, whose lines are processed `inner` at a time. */
static void locate(PyArrayObject *x, int type, int reversed, int64_t outer, int64_t length, int64_t inner, int64_t *positions)
{
    const char *data = PyArray_BYTES(x);
    const int64_t step = length * inner * PyArray_ITEMSIZE(x);
    for (int64_t k = 0; k < outer; k++, data += step, positions += inner)
        if (inner == 1)
            *positions = kernels->along[reversed][type](data, length);
        else
            kernels->across[reversed][type](data, length, inner, inner, positions);
}

PyObject *tenferro_argmax(PyArrayObject *x, int axis, int reversed)
{
    enum { UNLOCKED = 1 << 15 };
    if (PyArray_DIM(x, axis) == 0) {
        PyErr_SetString(PyExc_ValueError, "there are no elements to choose from");
        return NULL;
    }
    PyArrayObject *whole = PyArray_GETCONTIGUOUS(x), *positions = NULL;
    npy_intp shape[NPY_MAXDIMS];
    int rank = 0;
    for (int d = 0; d < PyArray_NDIM(x); d++)
        if (d != axis)
            shape[rank++] = PyArray_DIM(x, d);
    if (whole != NULL)
        positions = (PyArrayObject *)PyArray_SimpleNew(rank, shape, NPY_INT64);
    if (positions != NULL) {
        const int64_t outer = product(shape, axis), inner = product(shape + axis, rank - axis);
        PyThreadState *state = PyArray_SIZE(x) > UNLOCKED ? PyEval_SaveThread() : NULL;
        locate(whole, tenferro_key_type(PyArray_DESCR(x)), reversed, outer, PyArray_DIM(x, axis), inner,
               PyArray_DATA(positions));
        if (state != NULL)
            PyEval_RestoreThread(state);
    }
    Py_XDECREF(whole);
    return (PyObject *)positions;
}
