/* Sorted lines: NumPy's sort of a copy; for descending order its lines are reversed, except the NaNs at their ends. */
#include "kernels/ordering/along.h"

#define REVERSE(T)                                   \
    for (; first < last; first++, last--) {          \
        const T x = ((T *)line)[first];              \
        ((T *)line)[first] = ((T *)line)[last];      \
        ((T *)line)[last] = x;                       \
    }

static void reverse(char *line, int64_t n, int64_t size)
{
    int64_t first = 0, last = n - 1;
    switch (size) {
    case 1: REVERSE(int8_t) break;
    case 2: REVERSE(int16_t) break;
    case 4: REVERSE(int32_t) break;
    default: REVERSE(int64_t)
    }
}

/* The numbers before the NaNs at the end of a sorted line. */
static int64_t numbers_of(const char *line, int64_t n, int type)
{
    if (type == NPY_DOUBLE)
        while (n > 0 && ((const double *)line)[n - 1] != ((const double *)line)[n - 1])
            n--;
    if (type == NPY_FLOAT)
        while (n > 0 && ((const float *)line)[n - 1] != ((const float *)line)[n - 1])
            n--;
    return n;
}

PyObject *tenferro_sort(PyArrayObject *x, int axis, int reversed)
{
    if (PyArray_DIM(x, axis) <= SHORT_LINE && has_wide_keys(PyArray_DESCR(x)))
        return tenferro_sort_short(x, axis, reversed);
    PyArrayObject *sorted = (PyArrayObject *)PyArray_NewCopy(x, NPY_CORDER);
    if (sorted != NULL && PyArray_Sort(sorted, axis, NPY_QUICKSORT) < 0)
        Py_CLEAR(sorted);
    const int64_t n = PyArray_DIM(x, axis), size = PyArray_ITEMSIZE(x), total = PyArray_SIZE(x);
    if (sorted == NULL || !reversed || total == 0)
        return (PyObject *)sorted;
    char *line = PyArray_BYTES(sorted);
    for (int64_t i = 0; i < total; i += n, line += n * size)
        reverse(line, numbers_of(line, n, PyArray_DESCR(x)->type_num), size);
    return (PyObject *)sorted;
}
