/* The fast path of `x[key] = values`: writes to the memory of a tensor that nothing else refers to. */
#include "_c/values.h"

static PyObject *assign_name;

/* Whether all parts of a key are integers, slices, None and Ellipsis. */
static int is_basic(PyObject *key)
{
    if (!PyTuple_CheckExact(key)) {
        return tenferro_is_basic(key);
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(key); i++) {
        if (!tenferro_is_basic(PyTuple_GET_ITEM(key, i))) {
            return 0;
        }
    }
    return 1;
}

static int on_host(Value *x)
{
    return x->spec != NULL && ON_HOST(x->spec);
}

/* The raw form of a key, borrowed; NULL for the slow path in Python. */
static PyObject *host_key(PyObject *key)
{
    if (is_basic(key)) {
        return key;
    }
    if (IS_TENSOR(key) && on_host((Value *)key)) {
        key = ((Value *)key)->inside;
    }
    if (key == NULL || !PyArray_CheckExact(key)) {
        return NULL;
    }
    PyArrayObject *indices = (PyArrayObject *)key;
    return PyArray_ISBOOL(indices) || PyArray_ISINTEGER(indices) ? key : NULL;
}

/* Values that an array accepts without conversion, borrowed; NULL for the slow path in Python. */
static PyObject *host_values(PyArrayObject *raw, PyObject *values)
{
    int type = PyArray_TYPE(raw), is_complex = type == NPY_CDOUBLE || type == NPY_CFLOAT;
    int inexact = is_complex || type == NPY_DOUBLE || type == NPY_FLOAT;
    if (PyFloat_CheckExact(values)) {
        return inexact ? values : NULL;
    }
    if (PyLong_CheckExact(values)) {
        return type != NPY_BOOL ? values : NULL;
    }
    if (PyBool_Check(values)) {
        return values;
    }
    if (PyComplex_CheckExact(values)) {
        return is_complex ? values : NULL;
    }
    if (IS_TENSOR(values)) {
        values = on_host((Value *)values) ? ((Value *)values)->inside : NULL;
    }
    if (values == NULL) {
        return NULL;
    }
    if (PyArray_CheckExact(values)) {
        return PyArray_TYPE((PyArrayObject *)values) == type ? values : NULL;
    }
    return Py_IS_TYPE(values, PyArray_DESCR(raw)->typeobj) ? values : NULL;
}

/* Write to the memory of a tensor: 1; 0 for the slow path, with nothing changed; -1 with an exception. NumPy validates
   its arguments before it writes. */
static int write_to(PyObject *self, PyObject *key, PyObject *values)
{
    Value *x = (Value *)self;
    PyObject *raw = x->inside;
    if (!IS_TENSOR(self) || !UNSCOPED || x->lent || raw == NULL || !PyArray_CheckExact(raw) || Py_REFCNT(raw) != 1
        || !on_host(x)) {
        return 0;
    }
    int flags = PyArray_FLAGS((PyArrayObject *)raw);
    PyObject *at = host_key(key), *from = host_values((PyArrayObject *)raw, values);
    if (at == NULL || from == NULL || !(flags & NPY_ARRAY_OWNDATA) || !(flags & NPY_ARRAY_WRITEABLE)) {
        return 0;
    }
    Py_INCREF(raw);
    Py_INCREF(at);
    Py_INCREF(from);
    int done = PyObject_SetItem(raw, at, from) == 0;
    Py_DECREF(raw);
    Py_DECREF(at);
    Py_DECREF(from);
    if (!done && !PyErr_ExceptionMatches(PyExc_Exception)) {
        return -1;
    }
    PyErr_Clear(); /* Python raises the typed error */
    return done;
}

/* Whether an object is a temporary, referenced by the caller's stack only, so that an assignment to it is lost. */
static int is_lost(PyObject *self)
{
#if PY_VERSION_HEX >= 0x030E0000
    return PyUnstable_Object_IsUniqueReferencedTemporary(self);
#else
    return Py_REFCNT(self) == 1;
#endif
}

int tenferro_assign(PyObject *self, PyObject *key, PyObject *values)
{
    if (values == NULL) {
        PyErr_SetString(PyExc_TypeError, "elements of arrays cannot be deleted");
        return -1;
    }
    int lost = is_lost(self), done = lost ? 0 : write_to(self, key, values);
    if (done != 0) {
        return done < 0 ? -1 : 0;
    }
    PyObject *result = PyObject_CallMethodObjArgs(self, assign_name, key, values, lost ? Py_True : Py_False, NULL);
    Py_XDECREF(result);
    return result == NULL ? -1 : 0;
}

int tenferro_add_assign(PyObject *module)
{
    assign_name = PyUnicode_InternFromString("_assign");
    return assign_name == NULL ? -1 : 0;
}
