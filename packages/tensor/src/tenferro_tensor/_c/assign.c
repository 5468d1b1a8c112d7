/* The fast path of `x[key] = values`: writes to memory that only a tensor and its views refer to. */
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

PyObject *tenferro_host_values(PyArrayObject *raw, PyObject *values)
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

int tenferro_is_writable(PyObject *self)
{
    Value *x = (Value *)self;
    return IS_TENSOR(self) && UNSCOPED && x->inside != NULL
        && PyArray_CheckExact(x->inside) && on_host(x) && tenferro_may_write(x);
}

/* Whether two arrays are one view, as `x[key]` and the result of an in-place operator on it are. */
static int is_same(PyArrayObject *x, PyArrayObject *y)
{
    int n = PyArray_NDIM(x);
    return PyArray_DATA(x) == PyArray_DATA(y) && n == PyArray_NDIM(y)
        && PyArray_CompareLists(PyArray_DIMS(x), PyArray_DIMS(y), n)
        && PyArray_CompareLists(PyArray_STRIDES(x), PyArray_STRIDES(y), n);
}

/* Write elements; -1 with an exception. */
static int write_elements(PyArrayObject *raw, PyObject *key, PyObject *values)
{
    if (PyArray_CheckExact(values) && tenferro_in_one(values, (PyObject *)raw)) { /* after `x[key] += v` */
        PyObject *view = tenferro_view(raw, key);
        int same = view != NULL && PyArray_CheckExact(view) && is_same((PyArrayObject *)view, (PyArrayObject *)values);
        Py_XDECREF(view);
        PyErr_Clear();
        if (same) {
            return 0;
        }
    }
    return PyObject_SetItem((PyObject *)raw, key, values);
}

/* Write to the memory of a tensor: 1; 0 for the slow path, with nothing changed; -1 with an exception. NumPy validates
   its arguments before it writes. */
static int write_to(PyObject *self, PyObject *key, PyObject *values)
{
    if (!tenferro_is_writable(self)) {
        return 0;
    }
    PyObject *raw = ((Value *)self)->inside;
    PyObject *at = host_key(key), *from = tenferro_host_values((PyArrayObject *)raw, values);
    if (at == NULL || from == NULL) {
        return 0;
    }
    Py_INCREF(raw);
    Py_INCREF(at);
    Py_INCREF(from);
    int done = write_elements((PyArrayObject *)raw, at, from) == 0;
    Py_DECREF(raw);
    Py_DECREF(at);
    Py_DECREF(from);
    if (!done && !PyErr_ExceptionMatches(PyExc_Exception)) {
        return -1;
    }
    PyErr_Clear(); /* Python raises the typed error */
    return done;
}

int tenferro_assign(PyObject *self, PyObject *key, PyObject *values)
{
    if (values == NULL) {
        PyErr_SetString(PyExc_TypeError, "elements of arrays cannot be deleted");
        return -1;
    }
    int done = write_to(self, key, values);
    if (done != 0) {
        return done < 0 ? -1 : 0;
    }
    PyObject *result = PyObject_CallMethodObjArgs(self, assign_name, key, values, NULL);
    Py_XDECREF(result);
    return result == NULL ? -1 : 0;
}

PyDoc_STRVAR(updated_doc, "updated($module, x, key, values, /)\n--\n\nA copy of a concrete tensor with elements replaced, or None.");

static PyObject *updated(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
    Value *x = (Value *)args[0];
    if (n != 3 || !IS_TENSOR(args[0]) || !UNSCOPED || x->inside == NULL || !PyArray_CheckExact(x->inside) || !on_host(x)) {
        Py_RETURN_NONE;
    }
    PyObject *at = host_key(args[1]), *from = tenferro_host_values((PyArrayObject *)x->inside, args[2]);
    PyObject *copy = at == NULL || from == NULL ? NULL : PyArray_NewCopy((PyArrayObject *)x->inside, NPY_KEEPORDER);
    if (copy != NULL && PyObject_SetItem(copy, at, from) == 0) {
        return tenferro_tensor(copy, x->spec);
    }
    Py_XDECREF(copy);
    if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_Exception)) {
        return NULL;
    }
    PyErr_Clear(); /* Python raises the typed error */
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"updated", (PyCFunction)(void (*)(void))updated, METH_FASTCALL, updated_doc},
    {NULL},
};

int tenferro_add_assign(PyObject *module)
{
    assign_name = PyUnicode_InternFromString("_assign");
    return assign_name == NULL ? -1 : PyModule_AddFunctions(module, functions);
}
