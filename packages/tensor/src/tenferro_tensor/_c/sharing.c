/* The objects that show one memory: a concrete tensor and the views made from it. They form a ring, so that a write
   knows whether anybody else holds the memory, and a copy takes all of them along. For values of other kinds, the ring
   holds a base and the views that are derived from it: see tenferro_tensor._views. */
#include "_c/values.h"

void tenferro_leave(Value *x)
{
    if (x->next == NULL) {
        return;
    }
    if (x->next == x->prev) { /* the other one stays alone */
        x->next->next = x->next->prev = NULL;
    } else {
        x->next->prev = x->prev;
        x->prev->next = x->next;
    }
    x->next = x->prev = NULL;
}

void tenferro_join(Value *z, Value *x)
{
    Value *after = x->next == NULL ? x : x->next;
    z->prev = x;
    z->next = after;
    after->prev = z;
    x->next = z;
}

/* The array whose memory a raw array shows: its base, or itself. NumPy keeps chains of views at one link. */
static PyArrayObject *owner_of(PyObject *raw)
{
    PyObject *base = PyArray_BASE((PyArrayObject *)raw);
    return (PyArrayObject *)(base != NULL && PyArray_CheckExact(base) ? base : raw);
}

int tenferro_in_one(PyObject *z, PyObject *x)
{
    return PyArray_CheckExact(z) && PyArray_CheckExact(x) && owner_of(z) == owner_of(x);
}

/* Whether the objects of a ring are the only holders of their memory. */
static int is_sole(Value *x, PyArrayObject *owner)
{
    Py_ssize_t due = 0;
    Value *v = x;
    do {
        PyObject *raw = v->inside;
        if (raw == NULL || !PyArray_CheckExact(raw) || owner_of(raw) != owner
            || (raw != (PyObject *)owner && Py_REFCNT(raw) != 1)) {
            return 0;
        }
        due++;
        v = v->next;
    } while (v != NULL && v != x);
    return Py_REFCNT(owner) == due;
}

/* Whether memory is the library's own, or was handed out for writing. */
static int is_ours(PyArrayObject *owner)
{
    PyObject *base = PyArray_BASE(owner);
    return PyArray_CHKFLAGS(owner, NPY_ARRAY_OWNDATA)
        || (base != NULL && PyMemoryView_Check(base) && !PyMemoryView_GET_BUFFER(base)->readonly
            && PyMemoryView_GET_BASE(base) != NULL && PyArray_CheckExact(PyMemoryView_GET_BASE(base)));
}

int tenferro_may_write(Value *x)
{
    PyObject *raw = x->inside;
    PyArrayObject *owner = owner_of(raw);
    return PyArray_CHKFLAGS((PyArrayObject *)raw, NPY_ARRAY_WRITEABLE) && is_ours(owner) && is_sole(x, owner);
}

static PyArrayObject *raw_of(PyObject *x)
{
    PyObject *raw = PyObject_TypeCheck(x, &ValueBase_Type) ? ((Value *)x)->inside : NULL;
    if (raw == NULL || !PyArray_CheckExact(raw)) {
        PyErr_Format(PyExc_TypeError, "expected a tensor with a NumPy array, got %R", Py_TYPE(x));
        return NULL;
    }
    return (PyArrayObject *)raw;
}

/* An array like `raw` at other memory, which `owner` keeps alive. */
static PyObject *placed(PyArrayObject *raw, PyArrayObject *owner, char *data)
{
    PyArray_Descr *dtype = (PyArray_Descr *)Py_NewRef(PyArray_DESCR(raw));
    PyObject *view = PyArray_NewFromDescr(&PyArray_Type, dtype, PyArray_NDIM(raw), PyArray_DIMS(raw),
                                          PyArray_STRIDES(raw), data, NPY_ARRAY_WRITEABLE, NULL);
    if (view != NULL && PyArray_SetBaseObject((PyArrayObject *)view, Py_NewRef(owner)) < 0) {
        Py_CLEAR(view);
    }
    return view;
}

/* The lowest and the end of the highest address of an array with elements. */
static void bounds(PyArrayObject *x, char **low, char **high)
{
    *low = *high = PyArray_BYTES(x);
    for (int i = 0; i < PyArray_NDIM(x); i++) {
        npy_intp reach = (PyArray_DIM(x, i) - 1) * PyArray_STRIDE(x, i);
        *(reach < 0 ? low : high) += reach;
    }
    *high += PyArray_ITEMSIZE(x);
}

PyDoc_STRVAR(kin_doc, "kin($module, x, /)\n--\n\nThe objects that show the memory or the base of `x`, which comes first.");

static PyObject *kin(PyObject *module, PyObject *x)
{
    PyObject *all = PyList_New(0);
    if (all == NULL || !PyObject_TypeCheck(x, &ValueBase_Type)) {
        return all;
    }
    Value *v = (Value *)x;
    do {
        if (PyList_Append(all, (PyObject *)v) < 0) {
            Py_DECREF(all);
            return NULL;
        }
        v = v->next;
    } while (v != NULL && v != (Value *)x);
    return all;
}

PyDoc_STRVAR(link_doc, "link($module, z, x, /)\n--\n\nPut `z` among the objects that show the memory or the base of `x`.");

static PyObject *link_values(PyObject *module, PyObject *args)
{
    PyObject *z, *x;
    if (!PyArg_ParseTuple(args, "O!O!:link", &ValueBase_Type, &z, &ValueBase_Type, &x)) {
        return NULL;
    }
    if (z != x) {
        tenferro_leave((Value *)z);
        tenferro_join((Value *)z, (Value *)x);
    }
    Py_RETURN_NONE;
}

PyDoc_STRVAR(unlink_doc, "unlink($module, x, /)\n--\n\nMake `x` a value of its own.");

static PyObject *unlink_value(PyObject *module, PyObject *x)
{
    if (PyObject_TypeCheck(x, &ValueBase_Type)) {
        tenferro_leave((Value *)x);
        Py_CLEAR(((Value *)x)->view);
    }
    Py_RETURN_NONE;
}

PyDoc_STRVAR(in_one_doc, "in_one($module, z, x, /)\n--\n\nWhether two raw arrays lie in the memory of one array.");

static PyObject *in_one(PyObject *module, PyObject *args)
{
    PyObject *z, *x;
    if (!PyArg_ParseTuple(args, "OO:in_one", &z, &x)) {
        return NULL;
    }
    return PyBool_FromLong(tenferro_in_one(z, x));
}

PyDoc_STRVAR(sole_doc, "sole($module, x, /)\n--\n\nWhether a tensor and its views are the only holders of their memory.");

static PyObject *sole(PyObject *module, PyObject *x)
{
    PyArrayObject *raw = raw_of(x);
    if (raw == NULL) {
        return NULL;
    }
    PyArrayObject *owner = owner_of((PyObject *)raw);
    return PyBool_FromLong(is_ours(owner) && is_sole((Value *)x, owner));
}

PyDoc_STRVAR(placed_doc, "placed($module, raw, owner, /)\n--\n\nAn array like `raw`, at its address; `owner` keeps the memory.");

static PyObject *placed_on(PyObject *module, PyObject *args)
{
    PyObject *raw, *owner;
    if (!PyArg_ParseTuple(args, "O!O!:placed", &PyArray_Type, &raw, &PyArray_Type, &owner)) {
        return NULL;
    }
    return placed((PyArrayObject *)raw, (PyArrayObject *)owner, PyArray_BYTES((PyArrayObject *)raw));
}

/* Move the raw array of an object to the copy of its memory; -1 with an exception. */
static int move(Value *v, PyArrayObject *block, npy_intp shift)
{
    PyObject *raw = v->inside, *moved = placed((PyArrayObject *)raw, block, PyArray_BYTES((PyArrayObject *)raw) + shift);
    if (moved == NULL) {
        return -1;
    }
    v->inside = moved;
    Py_DECREF(raw);
    return 0;
}

#define ALIGNMENT 64

PyDoc_STRVAR(separate_doc, "separate($module, x, /)\n--\n\nGive a tensor and its views memory of their own: a copy.");

static PyObject *separate(PyObject *module, PyObject *x)
{
    PyArrayObject *raw = raw_of(x), *owner;
    Value *v = (Value *)x;
    char *low, *high;
    if (raw == NULL) {
        return NULL;
    }
    if (v->next == NULL || PyArray_SIZE(owner = owner_of((PyObject *)raw)) == 0) {
        PyObject *copy = PyArray_NewCopy(raw, NPY_KEEPORDER);
        if (copy == NULL) {
            return NULL;
        }
        v->inside = copy;
        Py_DECREF(raw);
        Py_RETURN_NONE;
    }
    bounds(owner, &low, &high);
    npy_intp skew = (npy_intp)((npy_uintp)low % ALIGNMENT), length = (high - low) + skew + ALIGNMENT;
    PyArrayObject *block = (PyArrayObject *)PyArray_SimpleNew(1, &length, NPY_UBYTE);
    if (block == NULL) {
        return NULL;
    }
    char *start = PyArray_BYTES(block);
    start += (ALIGNMENT - (npy_uintp)start % ALIGNMENT) % ALIGNMENT + skew;
    memcpy(start, low, (size_t)(high - low));
    Py_INCREF(owner); /* the members hold it, and move */
    int failed = 0;
    do {
        if (v->inside != NULL && tenferro_in_one(v->inside, (PyObject *)owner)) {
            failed = move(v, block, start - low) < 0;
        }
        v = v->next;
    } while (v != NULL && v != (Value *)x && !failed);
    Py_DECREF(owner);
    Py_DECREF(block);
    if (failed) {
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"in_one", in_one, METH_VARARGS, in_one_doc},
    {"kin", kin, METH_O, kin_doc},
    {"link", link_values, METH_VARARGS, link_doc},
    {"placed", placed_on, METH_VARARGS, placed_doc},
    {"separate", separate, METH_O, separate_doc},
    {"sole", sole, METH_O, sole_doc},
    {"unlink", unlink_value, METH_O, unlink_doc},
    {NULL},
};

int tenferro_add_sharing(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
