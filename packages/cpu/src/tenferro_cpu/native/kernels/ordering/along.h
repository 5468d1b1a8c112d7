/* Kernels that run along one axis of an array, and their common parts. */
#ifndef TENFERRO_ALONG_H
#define TENFERRO_ALONG_H

#include "operands.h"
#include "kernels/ordering/keys.h"

#include <structmember.h>

/* Each makes a new array, or NULL: with an exception set, or without one where it leaves the operand to NumPy. The
 * operand is an aligned array of a type that the kernel takes, and the axis counts from 0. */

/* Positions that sort lines; for types that have keys. */
PyObject *tenferro_argsort(PyArrayObject *x, int axis, int reversed);
/* Sorted lines, in descending order where `reversed`; for real numbers. */
PyObject *tenferro_sort(PyArrayObject *x, int axis, int reversed);
/* The same of lines of up to `SHORT_LINE` elements, which are sorted by insertion; for types with wide keys. */
enum { SHORT_LINE = 24 };
PyObject *tenferro_sort_short(PyArrayObject *x, int axis, int reversed);
/* Positions of the first largest or, where `reversed`, smallest elements, of lines that are not empty; for types
 * with wide keys. */
PyObject *tenferro_argmax(PyArrayObject *x, int axis, int reversed);

/* Cumulative sums and products, from the end where `reversed`; for types with wide keys. */
PyObject *tenferro_cumsum(PyArrayObject *x, int axis, int reversed);
PyObject *tenferro_cumprod(PyArrayObject *x, int axis, int reversed);

/* The type of keys of a dtype, or -1. */
int tenferro_key_type(PyArray_Descr *descr);

static inline int has_wide_keys(PyArray_Descr *descr)
{
    const int type = tenferro_key_type(descr);
    return type >= 0 && type < WIDE_TYPES;
}

void tenferro_choose_keys(void);
void tenferro_choose_extremes(void);
void tenferro_choose_scans(void);

/* Common part of callables with a fallback. */
struct filter {
    PyObject_HEAD
    vectorcallfunc call;
    PyObject *fallback; /* called with the same arguments for everything else */
    PyArray_Descr *descr;
};

PyObject *tenferro_new_filter(PyTypeObject *type, vectorcallfunc call, PyArray_Descr *descr, PyObject *fallback);
int tenferro_traverse_filter(PyObject *o, visitproc visit, void *arg);
int tenferro_clear_filter(PyObject *o);
void tenferro_dealloc_filter(PyObject *o);
extern PyMemberDef tenferro_filter_members[];

/* The fields of a type object; `Struct` begins with a struct filter. */
#define FILTER_TYPE(Struct, make, text)                                                              \
    {                                                                                                \
        PyVarObject_HEAD_INIT(NULL, 0).tp_name = "tenferro_cpu.native._compiled." #Struct,           \
        .tp_doc = text, .tp_basicsize = sizeof(Struct), .tp_new = make,                              \
        .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,            \
        .tp_vectorcall_offset = offsetof(struct filter, call), .tp_call = PyVectorcall_Call,         \
        .tp_dealloc = tenferro_dealloc_filter, .tp_traverse = tenferro_traverse_filter,              \
        .tp_clear = tenferro_clear_filter, .tp_members = tenferro_filter_members                     \
    }

/* The lines of an array along an axis, in row-major order of the other axes. */
struct lines {
    int rank; /* of the other axes */
    int64_t count, length;
    npy_intp extents[NPY_MAXDIMS], index[NPY_MAXDIMS];
};

/* The lines of an array of at least one axis. */
static inline struct lines lines_along(PyArrayObject *x, int axis)
{
    struct lines lines = {.count = 1, .length = PyArray_DIM(x, axis)};
    for (int d = 0; d < PyArray_NDIM(x); d++)
        if (d != axis) {
            lines.extents[lines.rank] = PyArray_DIM(x, d);
            lines.index[lines.rank++] = 0;
            lines.count *= PyArray_DIM(x, d);
        }
    return lines;
}

/* Step to the next line: move the starts of two arrays, whose strides along the other axes are given. */
static inline void next_line(struct lines *lines, const npy_intp *left, char **x, const npy_intp *right, char **y)
{
    for (int d = lines->rank; d-- > 0;) {
        *x += left[d];
        *y += right[d];
        if (++lines->index[d] < lines->extents[d])
            return;
        *x -= left[d] * lines->extents[d];
        *y -= right[d] * lines->extents[d];
        lines->index[d] = 0;
    }
}

/* The strides of an array along all axes but one. */
static inline void other_strides(PyArrayObject *x, int axis, npy_intp *strides)
{
    for (int d = 0; d < PyArray_NDIM(x); d++)
        if (d != axis)
            *strides++ = PyArray_STRIDE(x, d);
}

#endif
