/* `DirectFunction`: a public function, perhaps with a direct form for concrete arrays in main memory; and `x[key]`,
   which has one.

   The form takes NumPy arrays in place of tensors. If it raises or returns None, the function is called instead. */
#include "_c/values.h"

#define MAX_ARGUMENTS 12
#define ANY_SIZE ((Py_ssize_t)1 << 62)
#define MAX_DEPTH 3 /* nesting depth of lists and tuples in arguments */

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject *function; /* the function on values of every kind */
    PyObject *form;     /* the same on raw arrays; or the op of all the function does; or None */
    PyObject *refused;  /* refused(function, error, keywords): the error to raise instead */
    Py_ssize_t most;    /* bytes of the largest array that the form accepts */
    Py_ssize_t arity;   /* number of operands of an op, else -1 */
    char views;         /* whether results may be views of the first argument */
    PyObject *dict;
    PyObject *weak;
} Direct;

/* The raw array of a tensor in main memory without its own compute device: a borrowed reference; NULL for others. */
static PyObject *host_raw(PyObject *x, Py_ssize_t most)
{
    PyObject *raw = ((Value *)x)->inside, *spec = ((Value *)x)->spec;
    if (raw == NULL || spec == NULL || !ON_HOST(spec)) {
        return NULL;
    }
    if (PyArray_CheckExact(raw)) {
        return most >= ANY_SIZE || PyArray_NBYTES((PyArrayObject *)raw) <= most ? raw : NULL;
    }
    return PyArray_IsScalar(raw, Generic) ? raw : NULL;
}

static int is_plain(PyObject *x)
{
    return x == Py_None || IS_SCALAR_TYPE(Py_TYPE(x)) || PyUnicode_CheckExact(x) || PyArray_DescrCheck(x);
}

static PyObject *lowered(PyObject *x, Py_ssize_t most, int *tensors, int depth);

/* A list or tuple: itself if it contains no tensor, else a tuple of raw arrays; NULL if it also contains numbers, which
   would be weakly typed. */
static PyObject *lowered_items(PyObject *items, Py_ssize_t most, int *tensors, int depth)
{
    Py_ssize_t n = PySequence_Fast_GET_SIZE(items);
    int before = *tensors, found = 0;
    PyObject *all = PyTuple_New(n);
    for (Py_ssize_t i = 0; i < n && all != NULL; i++) {
        PyObject *x = i < PySequence_Fast_GET_SIZE(items) ? PySequence_Fast_GET_ITEM(items, i) : NULL;
        PyObject *raw = x == NULL ? NULL : lowered(x, most, &found, depth + 1);
        if (raw == NULL || found != (found ? i + 1 : 0)) {
            Py_XDECREF(raw);
            Py_CLEAR(all);
        } else {
            PyTuple_SET_ITEM(all, i, raw);
        }
    }
    if (all == NULL) {
        PyErr_Clear();
        return NULL;
    }
    *tensors = before + found;
    if (found == 0) {
        Py_SETREF(all, Py_NewRef(items));
    }
    return all;
}

/* The raw form of an argument: a new reference, or NULL without an exception to call the function. */
static PyObject *lowered(PyObject *x, Py_ssize_t most, int *tensors, int depth)
{
    if (IS_TENSOR(x)) {
        PyObject *raw = host_raw(x, most);
        *tensors += 1;
        return Py_XNewRef(raw);
    }
    if (is_plain(x)) {
        return Py_NewRef(x);
    }
    if (depth < MAX_DEPTH && (PyTuple_CheckExact(x) || PyList_CheckExact(x))) {
        return lowered_items(x, most, tensors, depth);
    }
    return NULL;
}

static PyObject *raised(PyObject *raw);

/* The tuple or list of tensors for one of results, of the same class. */
static PyObject *raised_items(PyObject *items)
{
    Py_ssize_t n = PySequence_Fast_GET_SIZE(items);
    int listed = PyList_CheckExact(items);
    PyObject *all = listed ? PyList_New(n) : PyTuple_New(n);
    for (Py_ssize_t i = 0; i < n && all != NULL; i++) {
        PyObject *x = raised(Py_NewRef(PySequence_Fast_GET_ITEM(items, i)));
        if (x == NULL) {
            Py_CLEAR(all);
        } else if (listed) {
            PyList_SET_ITEM(all, i, x);
        } else {
            PyTuple_SET_ITEM(all, i, x);
        }
    }
    if (all != NULL && !listed && !PyTuple_CheckExact(items)) { /* a named tuple */
        Py_SETREF(all, PyObject_CallObject((PyObject *)Py_TYPE(items), all));
    }
    return all;
}

/* The tensors for raw results, whose references are stolen. */
static PyObject *raised(PyObject *raw)
{
    PyObject *spec, *result = NULL;
    if (PyTuple_Check(raw) || PyList_CheckExact(raw)) {
        result = raised_items(raw);
        Py_DECREF(raw);
        return result;
    }
    if ((spec = tenferro_spec(raw)) == NULL) {
        Py_DECREF(raw);
        return NULL;
    }
    result = tenferro_tensor(raw, spec);
    Py_DECREF(spec);
    return result;
}

/* Link a tensor, or those in a tuple or list, to the tensor whose memory they show. */
static void linked(PyObject *found, PyObject *x)
{
    if (PyTuple_Check(found) || PyList_CheckExact(found)) {
        for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(found); i++) {
            linked(PySequence_Fast_GET_ITEM(found, i), x);
        }
        return;
    }
    Value *z = (Value *)found;
    if (IS_TENSOR(found) && z->next == NULL && IS_TENSOR(x) && tenferro_in_one(z->inside, ((Value *)x)->inside)
        && PyArray_NDIM((PyArrayObject *)z->inside) > 0) { /* results without axes are values */
        tenferro_join(z, (Value *)x);
    }
}

/* Whether to return: there is a result, or an error that must propagate; other errors are cleared. */
static int decided(PyObject *result)
{
    if (result != NULL || !PyErr_ExceptionMatches(PyExc_Exception) || PyErr_ExceptionMatches(PyExc_MemoryError)) {
        return 1;
    }
    PyErr_Clear();
    return 0;
}

/* The result of the form; NULL without an exception to call the function. */
static PyObject *directly(Direct *d, PyObject *const *args, Py_ssize_t n, Py_ssize_t all, PyObject *names)
{
    PyObject *room[MAX_ARGUMENTS + 1], **raws = room + 1, *result = NULL;
    Py_ssize_t count = 0;
    int tensors = 0;
    while (count < all && (raws[count] = lowered(args[count], d->most, &tensors, 0)) != NULL) {
        count++;
    }
    if (count == all && tensors) {
        result = PyObject_Vectorcall(d->form, raws, (size_t)n | PY_VECTORCALL_ARGUMENTS_OFFSET, names);
        if (result == Py_None) {
            Py_CLEAR(result);
        } else {
            result = result == NULL ? NULL : raised(result);
            if (decided(result) && result != NULL && d->views) {
                linked(result, args[0]);
            }
        }
    }
    while (count > 0) {
        Py_DECREF(raws[--count]);
    }
    return result;
}

/* Replace the error of the function by the one that users see, which may be the same with a shorter traceback. */
static void refuse(Direct *d, PyObject *names)
{
    PyObject *type, *error, *trace;
    if (!PyErr_ExceptionMatches(PyExc_Exception)) {
        return;
    }
    PyErr_Fetch(&type, &error, &trace);
    PyErr_NormalizeException(&type, &error, &trace);
    if (trace != NULL) {
        PyException_SetTraceback(error, trace);
        Py_DECREF(trace);
    }
    names = names == NULL ? Py_None : names;
    PyObject *better = PyObject_CallFunctionObjArgs(d->refused, d->function, error, names, NULL);
    if (better != NULL) {
        PyErr_Restore(Py_NewRef(Py_TYPE(better)), better, PyException_GetTraceback(better));
    }
    Py_DECREF(type);
    Py_DECREF(error);
}

static PyObject *direct_call(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *names)
{
    Direct *d = (Direct *)self;
    Py_ssize_t n = PyVectorcall_NARGS(nargsf), all = n + (names == NULL ? 0 : PyTuple_GET_SIZE(names));
    PyObject *result;
    if (d->arity == all && names == NULL) {
        return PyObject_Vectorcall(d->form, args, nargsf, NULL);
    }
    if (d->arity < 0 && d->form != Py_None && UNSCOPED && all <= MAX_ARGUMENTS) {
        result = directly(d, args, n, all, names);
        if (result != NULL || PyErr_Occurred()) {
            return result;
        }
    }
    if ((result = PyObject_Vectorcall(d->function, args, nargsf, names)) == NULL) {
        refuse(d, names);
    }
    return result;
}

static PyObject *direct_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"function", "form", "refused", "most", "views", "arity", NULL};
    PyObject *function, *form, *refused;
    Py_ssize_t most = 0, arity = -1;
    int views = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOO|npn:DirectFunction", names, &function, &form, &refused, &most,
                                     &views, &arity)) {
        return NULL;
    }
    Direct *d = (Direct *)type->tp_alloc(type, 0);
    if (d != NULL) {
        d->vectorcall = direct_call;
        d->function = Py_NewRef(function);
        d->form = Py_NewRef(form);
        d->refused = Py_NewRef(refused);
        d->most = most;
        d->arity = arity;
        d->views = (char)views;
    }
    return (PyObject *)d;
}

static int direct_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(((Direct *)self)->function);
    Py_VISIT(((Direct *)self)->form);
    Py_VISIT(((Direct *)self)->refused);
    Py_VISIT(((Direct *)self)->dict);
    return 0;
}

/* tp_clear leaves the fields that calls read; cycles through a function are broken at its module. */
static int direct_clear(PyObject *self)
{
    Py_CLEAR(((Direct *)self)->dict);
    return 0;
}

static void direct_dealloc(PyObject *self)
{
    Direct *d = (Direct *)self;
    PyObject_GC_UnTrack(self);
    if (d->weak != NULL) {
        PyObject_ClearWeakRefs(self);
    }
    Py_CLEAR(d->dict);
    Py_XDECREF(d->function);
    Py_XDECREF(d->form);
    Py_XDECREF(d->refused);
    Py_TYPE(self)->tp_free(self);
}

static PyObject *direct_get(PyObject *self, PyObject *instance, PyObject *owner)
{
    return instance == NULL || instance == Py_None ? Py_NewRef(self) : PyMethod_New(self, instance);
}

/* Pickled by name, as functions are. */
static PyObject *direct_reduce(PyObject *self, PyObject *unused)
{
    return PyObject_GetAttrString(self, "__qualname__");
}

static PyObject *direct_repr(PyObject *self)
{
    return PyObject_Repr(((Direct *)self)->function);
}

static PyMethodDef direct_methods[] = {
    {"__reduce__", direct_reduce, METH_NOARGS, NULL},
    {NULL},
};

static PyMemberDef direct_members[] = {
    {"function", T_OBJECT_EX, offsetof(Direct, function), READONLY, "The function on values of every kind."},
    {"form", T_OBJECT_EX, offsetof(Direct, form), READONLY, "The same on raw arrays in main memory, an op, or None."},
    {"views", T_BOOL, offsetof(Direct, views), READONLY, "Whether results may be views of the first argument."},
    {"most", T_PYSSIZET, offsetof(Direct, most), READONLY, "Bytes of the largest array that the form accepts."},
    {"arity", T_PYSSIZET, offsetof(Direct, arity), READONLY, "Number of operands if the form is an op, else -1."},
    {NULL},
};

static PyGetSetDef direct_getset[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, NULL, NULL},
    {NULL},
};

static PyTypeObject Direct_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "tenferro_tensor._accelerated.DirectFunction",
    .tp_doc = "DirectFunction(function, form, refused, most=0, views=False, arity=-1)\n--\n\nA public function.",
    .tp_basicsize = sizeof(Direct),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR,
    .tp_vectorcall_offset = offsetof(Direct, vectorcall),
    .tp_dictoffset = offsetof(Direct, dict),
    .tp_weaklistoffset = offsetof(Direct, weak),
    .tp_call = PyVectorcall_Call,
    .tp_new = direct_new,
    .tp_repr = direct_repr,
    .tp_descr_get = direct_get,
    .tp_dealloc = direct_dealloc,
    .tp_traverse = direct_traverse,
    .tp_clear = direct_clear,
    .tp_members = direct_members,
    .tp_methods = direct_methods,
    .tp_getset = direct_getset,
};

/* Index keys. */

static PyObject *item_name;

#define MAX_LIST_SIZE 64 /* largest list of indices that is handled here */

static int is_index_list(PyObject *x)
{
    if (!PyList_CheckExact(x) || PyList_GET_SIZE(x) > MAX_LIST_SIZE) {
        return 0;
    }
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(x); i++) {
        if (!PyLong_CheckExact(PyList_GET_ITEM(x, i))) {
            return 0;
        }
    }
    return 1;
}

/* The raw form of a part of a key: a borrowed reference; NULL for the slow path. */
static PyObject *lowered_part(PyObject *x)
{
    if (tenferro_is_basic(x)) {
        return x;
    }
    return IS_TENSOR(x) ? host_raw(x, ANY_SIZE) : is_index_list(x) ? x : NULL;
}

/* The raw form of a key: a new reference; NULL without an exception for the slow path, and for keys without arrays,
   for which `tenferro_view` has failed. */
static PyObject *lowered_key(PyObject *key)
{
    if (!PyTuple_CheckExact(key)) {
        return tenferro_is_basic(key) ? NULL : Py_XNewRef(lowered_part(key));
    }
    Py_ssize_t n = PyTuple_GET_SIZE(key), basic = 0;
    PyObject *all = PyTuple_New(n);
    for (Py_ssize_t i = 0; i < n && all != NULL; i++) {
        PyObject *part = lowered_part(PyTuple_GET_ITEM(key, i));
        if (part == NULL) {
            Py_CLEAR(all);
        } else {
            basic += part == PyTuple_GET_ITEM(key, i) && !PyList_CheckExact(part);
            PyTuple_SET_ITEM(all, i, Py_NewRef(part));
        }
    }
    if (all == NULL) {
        PyErr_Clear();
    } else if (basic == n) {
        Py_CLEAR(all);
    }
    return all;
}

#define TAKE_MIN_SIZE 1000 /* smallest vector of indices for which NumPy's take is faster than indexing */
#define INNER_TAKE_MAX_BYTES (1 << 16) /* largest array for which take along an inner axis is faster than indexing */

static PyObject *empty(PyArrayObject *x, int ndim, npy_intp *extents)
{
    PyArray_Descr *dtype = (PyArray_Descr *)Py_NewRef(PyArray_DESCR(x));
    return PyArray_NewFromDescr(&PyArray_Type, dtype, ndim, extents, NULL, NULL, 0, NULL);
}

static inline void copy_item(char *to, const char *from, npy_intp size)
{
    switch (size) { /* constant sizes compile to a load and a store */
    case 8: memcpy(to, from, 8); break;
    case 4: memcpy(to, from, 4); break;
    case 1: *to = *from; break;
    default: memcpy(to, from, (size_t)size);
    }
}

/* The elements of a vector at contiguous indices; NULL without an exception if an index is out of bounds. */
static PyObject *small_take(PyArrayObject *x, PyArrayObject *indices)
{
    npy_intp n = PyArray_SIZE(indices), extent = PyArray_DIM(x, 0), stride = PyArray_STRIDE(x, 0);
    npy_intp size = PyArray_ITEMSIZE(x);
    const npy_intp *at = PyArray_DATA(indices);
    PyObject *found = empty(x, PyArray_NDIM(indices), PyArray_DIMS(indices));
    char *to = found == NULL ? NULL : PyArray_BYTES((PyArrayObject *)found);
    for (npy_intp k = 0; k < n && to != NULL; k++, to += size) {
        npy_intp i = at[k] + (at[k] < 0 ? extent : 0);
        if (i < 0 || i >= extent) {
            Py_DECREF(found);
            return NULL;
        }
        copy_item(to, PyArray_BYTES(x) + i * stride, size);
    }
    return found;
}

/* The elements at the true positions of a mask; both are contiguous, or vectors. */
static PyObject *small_compress(PyArrayObject *x, PyArrayObject *mask)
{
    npy_intp n = PyArray_SIZE(mask), count = 0, size = PyArray_ITEMSIZE(x);
    npy_intp stride = PyArray_NDIM(x) == 1 ? PyArray_STRIDE(x, 0) : size;
    const npy_bool *kept = PyArray_DATA(mask);
    for (npy_intp i = 0; i < n; i++) {
        count += kept[i] != 0;
    }
    PyObject *found = empty(x, 1, &count);
    char *to = found == NULL ? NULL : PyArray_BYTES((PyArrayObject *)found), *from = PyArray_BYTES(x);
    for (npy_intp i = 0; i < n && to != NULL; i++, from += stride) {
        if (kept[i]) {
            copy_item(to, from, size);
            to += size;
        }
    }
    return found;
}

/* The elements at the true positions of a mask for all axes; NULL without an exception to use NumPy's indexing. */
static PyObject *compressed(PyArrayObject *x, PyArrayObject *mask)
{
    int n = PyArray_NDIM(x);
    if (n != PyArray_NDIM(mask) || !PyArray_IS_C_CONTIGUOUS(mask) || !(n == 1 || PyArray_IS_C_CONTIGUOUS(x))
        || !PyArray_CompareLists(PyArray_DIMS(x), PyArray_DIMS(mask), n)) {
        return NULL;
    }
    if (PyArray_SIZE(mask) < TAKE_MIN_SIZE) {
        return small_compress(x, mask);
    }
    PyObject *row = PyArray_Ravel(x, NPY_CORDER), *flat = row == NULL ? NULL : PyArray_Ravel(mask, NPY_CORDER);
    PyObject *found = flat == NULL ? NULL : PyArray_Compress((PyArrayObject *)row, flat, 0, NULL);
    Py_XDECREF(row);
    Py_XDECREF(flat);
    return found;
}

static int is_whole(PyObject *x)
{
    PySliceObject *s = (PySliceObject *)x;
    return x == Py_Ellipsis
        || (PySlice_Check(x) && s->start == Py_None && s->stop == Py_None && s->step == Py_None);
}

static int are_indices(PyObject *x)
{
    PyArrayObject *a = (PyArrayObject *)x;
    return PyArray_CheckExact(x) && PyArray_NDIM(a) > 0 && PyArray_TYPE(a) == NPY_INTP;
}

/* `x[key]` by the fastest function of NumPy. */
static PyObject *picked(PyArrayObject *x, PyObject *key)
{
    PyObject *found = NULL;
    if (PyArray_CheckExact(key) && PyArray_TYPE((PyArrayObject *)key) == NPY_BOOL) {
        found = compressed(x, (PyArrayObject *)key);
    } else if (are_indices(key)) {
        if (PyArray_NDIM(x) > 1 || PyArray_SIZE((PyArrayObject *)key) >= TAKE_MIN_SIZE) {
            found = PyArray_TakeFrom(x, key, 0, NULL, NPY_RAISE);
        } else if (PyArray_NDIM(x) == 1 && PyArray_IS_C_CONTIGUOUS((PyArrayObject *)key)) {
            found = small_take(x, (PyArrayObject *)key);
        }
    } else if (PyTuple_CheckExact(key) && PyTuple_GET_SIZE(key) == 2 && PyArray_NDIM(x) == 2
               && is_whole(PyTuple_GET_ITEM(key, 0)) && are_indices(PyTuple_GET_ITEM(key, 1))
               && PyArray_NBYTES(x) <= INNER_TAKE_MAX_BYTES) {
        found = PyArray_TakeFrom(x, PyTuple_GET_ITEM(key, 1), 1, NULL, NPY_RAISE);
    }
    return found != NULL || PyErr_Occurred() ? found : PyObject_GetItem((PyObject *)x, key);
}

/* A part of a basic key, with a 0-d integer tensor as the integer: a new reference; NULL for others. */
static PyObject *basic_part(PyObject *part)
{
    if (tenferro_is_basic(part)) {
        return Py_NewRef(part);
    }
    PyObject *i = IS_TENSOR(part) ? host_raw(part, ANY_SIZE) : NULL;
    if (i != NULL && Py_IS_TYPE(i, &PyIntpArrType_Type)) {
        npy_intp value;
        PyArray_ScalarAsCtype(i, &value);
        return PyLong_FromSsize_t(value);
    }
    int is_integer = i != NULL && (PyArray_IsScalar(i, Integer)
                                   || (PyArray_CheckExact(i) && PyArray_NDIM((PyArrayObject *)i) == 0
                                       && PyArray_ISINTEGER((PyArrayObject *)i)));
    return is_integer ? PyNumber_Index(i) : NULL;
}

/* `x[key]` for a key in which 0-d integer tensors take the place of integers: a view; NULL as for `tenferro_view`. */
static PyObject *element(PyArrayObject *x, PyObject *key)
{
    PyObject *plain = NULL, *found = NULL;
    if (!PyTuple_CheckExact(key)) {
        plain = IS_TENSOR(key) ? basic_part(key) : NULL;
    } else {
        Py_ssize_t n = PyTuple_GET_SIZE(key);
        plain = PyTuple_New(n);
        for (Py_ssize_t i = 0; i < n && plain != NULL; i++) {
            PyObject *part = basic_part(PyTuple_GET_ITEM(key, i));
            if (part == NULL) {
                Py_CLEAR(plain);
            } else {
                PyTuple_SET_ITEM(plain, i, part);
            }
        }
    }
    if (plain != NULL) {
        found = tenferro_view(x, plain);
        Py_DECREF(plain);
    }
    if (found == NULL) {
        PyErr_Clear(); /* the function raises the typed error */
    }
    return found;
}

/* `x[key]` for keys that contain arrays or lists; NULL without an exception for the slow path. */
static PyObject *gathered(PyArrayObject *x, PyObject *key)
{
    PyObject *found = element(x, key), *raw_key = found == NULL ? lowered_key(key) : NULL;
    if (raw_key != NULL) {
        found = picked(x, raw_key);
        Py_DECREF(raw_key);
    }
    if (found == NULL && PyErr_Occurred()) {
        decided(NULL);
    }
    return found;
}

PyObject *tenferro_subscript(PyObject *self, PyObject *key)
{
    Value *x = (Value *)self;
    PyObject *raw = x->inside;
    if (UNSCOPED && IS_TENSOR(self) && raw != NULL && x->spec != NULL && ON_HOST(x->spec) && PyArray_CheckExact(raw)) {
        PyObject *result;
        Py_INCREF(raw);
        if ((result = tenferro_view((PyArrayObject *)raw, key)) == NULL && !PyErr_Occurred()) {
            result = gathered((PyArrayObject *)raw, key);
        }
        Py_DECREF(raw);
        if (result != NULL || PyErr_Occurred()) {
            result = result == NULL ? NULL : raised(result);
            if (result != NULL) {
                linked(result, self);
            }
            return result;
        }
    }
    return PyObject_CallMethodOneArg(self, item_name, key);
}

int tenferro_add_direct(PyObject *module)
{
    item_name = PyUnicode_InternFromString("_item");
    if (item_name == NULL || PyModule_AddType(module, &Direct_Type) < 0) {
        return -1;
    }
    return PyModule_AddIntConstant(module, "DIRECT_MAX_BYTES", DIRECT_MAX_BYTES);
}
