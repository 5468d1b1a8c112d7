/* Functions with which entries read arrays and numbers, and allocate results. */
#ifndef TENFERRO_OPERANDS_H
#define TENFERRO_OPERANDS_H

#include "compiled.h"

#include <math.h>
#include <numpy/arrayscalars.h>
#include <string.h>

_Static_assert(NPY_BYTE_ORDER == NPY_LITTLE_ENDIAN, "integers of any size are read from the start of a slot");

/* Types that Python's numbers are converted to. */
enum number_kind { NUMBER_NONE, NUMBER_FLOAT64, NUMBER_FLOAT32, NUMBER_COMPLEX128, NUMBER_COMPLEX64, NUMBER_INTEGER };

/* The numbers accepted in place of an array of some dtype. */
struct number {
    PyTypeObject *scalar; /* NumPy's scalar class for the dtype, whose objects are read in place; borrowed from the dtype */
    enum number_kind kind;
    int64_t low, high; /* the range of an integer dtype, as far as it is one of int64_t */
};

struct slot {
    _Alignas(16) char bytes[16];
};

static inline struct number number_of(PyArray_Descr *descr)
{
    struct number found = {NULL, NUMBER_NONE, 0, 0};
    switch (descr->type_num) {
    case NPY_DOUBLE: found.kind = NUMBER_FLOAT64; break;
    case NPY_FLOAT: found.kind = NUMBER_FLOAT32; break;
    case NPY_CDOUBLE: found.kind = NUMBER_COMPLEX128; break;
    case NPY_CFLOAT: found.kind = NUMBER_COMPLEX64; break;
    default:
        if (!PyTypeNum_ISINTEGER(descr->type_num))
            return found;
        found.kind = NUMBER_INTEGER;
        found.high = INT64_MAX;
        if (PyTypeNum_ISSIGNED(descr->type_num)) {
            found.high >>= 64 - 8 * PyDataType_ELSIZE(descr);
            found.low = -found.high - 1;
        } else if (PyDataType_ELSIZE(descr) < 8) {
            found.high >>= 63 - 8 * PyDataType_ELSIZE(descr);
        }
    }
    found.scalar = descr->typeobj;
    return found;
}

/* A number as one element: in the object itself, or written to the slot; NULL if the dtype cannot represent it exactly,
 * or if NumPy would warn. */
static inline char *read_number(PyObject *o, const struct number *number, struct slot *slot)
{
    double real;
    if (Py_TYPE(o) == number->scalar)
        return (char *)&((PyDoubleScalarObject *)o)->obval;
    if (PyFloat_CheckExact(o)) {
        real = PyFloat_AS_DOUBLE(o);
    } else if (PyLong_CheckExact(o)) {
        int overflow;
        const long long integer = PyLong_AsLongLongAndOverflow(o, &overflow);
        if (overflow)
            return NULL;
        if (number->kind == NUMBER_INTEGER) {
            memcpy(slot->bytes, &integer, sizeof integer);
            return number->low <= integer && integer <= number->high ? slot->bytes : NULL;
        }
        if (integer <= -(1LL << 52) || integer >= 1LL << 52)
            return NULL;
        real = (double)integer;
    } else {
        return PyComplex_CheckExact(o) && number->kind == NUMBER_COMPLEX128 ? (char *)&((PyComplexObject *)o)->cval
                                                                             : NULL;
    }
    const double wide[2] = {real, 0.0};
    const float narrow[2] = {(float)real, 0.0f};
    switch (number->kind) {
    case NUMBER_FLOAT64:
    case NUMBER_COMPLEX128: memcpy(slot->bytes, wide, sizeof wide); return slot->bytes;
    case NUMBER_FLOAT32:
    case NUMBER_COMPLEX64:
        memcpy(slot->bytes, narrow, sizeof narrow);
        return fabs((double)narrow[0] - real) == INFINITY ? NULL : slot->bytes; /* NumPy warns */
    default: return NULL;
    }
}

/* Whether an object is an array of exactly this dtype, not of a subclass, with all of the flags. */
static inline int is_array_of(PyObject *o, PyArray_Descr *descr, int flags)
{
    return PyArray_CheckExact(o) && PyArray_DESCR((PyArrayObject *)o) == descr &&
           (PyArray_FLAGS((PyArrayObject *)o) & flags) == flags;
}

static inline int same_extents(const npy_intp *x, const npy_intp *y, int64_t count)
{
    for (int64_t d = 0; d < count; d++)
        if (x[d] != y[d])
            return 0;
    return 1;
}

static inline int same_shape(PyArrayObject *x, PyArrayObject *y)
{
    return PyArray_NDIM(x) == PyArray_NDIM(y) && same_extents(PyArray_DIMS(x), PyArray_DIMS(y), PyArray_NDIM(x));
}

static inline int64_t product(const npy_intp *extents, int64_t count)
{
    int64_t made = 1;
    for (int64_t d = 0; d < count; d++)
        made *= extents[d];
    return made;
}

static inline PyArrayObject *new_array(PyArray_Descr *descr, int rank, const npy_intp *shape)
{
    Py_INCREF(descr);
    return (PyArrayObject *)PyArray_NewFromDescr(&PyArray_Type, descr, rank, shape, NULL, NULL, 0, NULL);
}

/* Make `count` contiguous arrays of one shape: 0, or -1 with an exception set and none left. */
static inline int new_arrays(PyArrayObject **made, int count, PyArray_Descr *const *descrs, int rank,
                             const npy_intp *shape)
{
    for (int k = 0; k < count; k++) {
        made[k] = new_array(descrs[k], rank, shape);
        if (made[k] == NULL) {
            while (k-- > 0)
                Py_DECREF(made[k]);
            return -1;
        }
    }
    return 0;
}

static inline void drop_arrays(PyArrayObject **made, int count)
{
    for (int k = 0; k < count; k++)
        Py_DECREF(made[k]);
}

/* One result, or a tuple of several; steals the references, even on failure. */
static inline PyObject *given_results(PyArrayObject **made, int count)
{
    if (count == 1)
        return (PyObject *)made[0];
    PyObject *answer = PyTuple_New(count);
    if (answer == NULL) {
        drop_arrays(made, count);
        return NULL;
    }
    for (int k = 0; k < count; k++)
        PyTuple_SET_ITEM(answer, k, (PyObject *)made[k]);
    return answer;
}

#endif
