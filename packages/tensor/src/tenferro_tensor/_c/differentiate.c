/* An op on values that a derivative passes through. Recorded ones: it runs on the values inside, and leaves one node;
   dual ones: it runs on the values inside, and tangents go with it. The Python twins are `record` and `push` of
   tenferro_ad, which also do what is left to them here: first uses, values inside of other levels, several outputs, and
   everything while a scope is open. */
#include "_c/values.h"

#define MOST 8 /* operands */

/* The operands of a call, looked at: what each is represented by, what is inside, and who is differentiated. */
typedef struct {
    Py_ssize_t count;
    long mask;                           /* bits of the differentiated operands */
    PyTypeObject *type;                  /* of all these; borrowed, as `level` and `parts` */
    PyObject *level;                     /* of all these */
    PyObject *parts[MOST];               /* specs, or classes of Python scalars */
    PyObject *lower[MOST], *links[MOST]; /* values inside, and nodes or tangents, NULL where there are none */
    PyObject *raws[MOST + 1];            /* behind a free place: raw arrays, and Python scalars as they are */
} Operands;

static int same_level(PyObject *x, PyObject *y)
{
    return x == y || (PyLong_CheckExact(x) && PyLong_CheckExact(y) && PyObject_RichCompareBool(x, y, Py_EQ) == 1);
}

/* Look at one operand: 1, or 0 where it is for Python. Nothing is held, and nothing runs. */
static int look_at(Operands *o, Py_ssize_t i, PyObject *x)
{
    o->links[i] = NULL;
    if (IS_SCALAR_TYPE(Py_TYPE(x))) {
        o->parts[i] = (PyObject *)Py_TYPE(x);
        o->lower[i] = o->raws[i + 1] = x;
        return 1;
    }
    if (Py_IS_TYPE(x, tenferro_state.recorded) || Py_IS_TYPE(x, tenferro_state.dual)) {
        Value *d = (Value *)x;
        if (d->level == NULL || d->link == NULL
            || (o->level != NULL && !(Py_IS_TYPE(x, o->type) && same_level(o->level, d->level)))) {
            return 0;
        }
        o->type = Py_TYPE(x);
        o->level = d->level;
        o->links[i] = d->link;
        o->mask |= 1L << i;
        o->parts[i] = d->spec;
        x = d->inside;
    } else {
        o->parts[i] = IS_TENSOR(x) ? ((Value *)x)->spec : NULL;
    }
    if (o->parts[i] == NULL || x == NULL || !IS_TENSOR(x)) {
        return 0;
    }
    o->lower[i] = x;
    o->raws[i + 1] = ((Value *)x)->inside;
    return o->raws[i + 1] != NULL;
}

/* Whether nobody outside can write to the memory of a raw array; see tenferro_tensor.ownership. */
static int is_owned(PyObject *raw)
{
    while (raw != NULL && PyArray_CheckExact(raw)) {
        raw = PyArray_BASE((PyArrayObject *)raw);
        if (raw == NULL) {
            return 1;
        }
    }
    return 0;
}

/* Whether a node may keep what an entry saves as it is; Python copies what others may write to. */
static int may_keep(Operands *o, Entry *entry)
{
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(entry->save); k++) {
        Py_ssize_t i = PyLong_AsSsize_t(PyTuple_GET_ITEM(entry->save, k));
        if (i < 0 || i > o->count) {
            PyErr_Clear();
            return 0;
        }
        if (i < o->count && o->links[i] == NULL && PyArray_CheckExact(o->raws[i + 1]) && !is_owned(o->raws[i + 1])) {
            return 0;
        }
    }
    return 1;
}

static void hold(Operands *o)
{
    Py_INCREF(o->level);
    for (Py_ssize_t i = 0; i < o->count; i++) {
        Py_INCREF(o->lower[i]);
        Py_INCREF(o->raws[i + 1]);
        Py_XINCREF(o->links[i]);
    }
}

static void drop(Operands *o)
{
    Py_DECREF(o->level);
    for (Py_ssize_t i = 0; i < o->count; i++) {
        Py_DECREF(o->lower[i]);
        Py_DECREF(o->raws[i + 1]);
        Py_XDECREF(o->links[i]);
    }
}

/* Nodes or tangents of the differentiated operands, in order. */
static PyObject *links_of(Operands *o)
{
    PyObject *links = PyTuple_New(__builtin_popcountl((unsigned long)o->mask));
    for (Py_ssize_t i = 0, k = 0; links != NULL && i < o->count; i++) {
        if (o->links[i] != NULL) {
            PyTuple_SET_ITEM(links, k++, Py_NewRef(o->links[i]));
        }
    }
    return links;
}

static PyObject *saved_of(Operands *o, Entry *entry, PyObject *result)
{
    Py_ssize_t n = PyTuple_GET_SIZE(entry->save);
    PyObject *saved = PyTuple_New(n);
    for (Py_ssize_t k = 0; saved != NULL && k < n; k++) {
        Py_ssize_t i = PyLong_AsSsize_t(PyTuple_GET_ITEM(entry->save, k));
        PyObject *x = i < o->count ? o->lower[i] : result;
        /* Somebody may assign to a constant later: the node keeps what it stands for now. */
        x = i < o->count && o->links[i] == NULL && IS_TENSOR(x) ? tenferro_alias(x) : Py_NewRef(x);
        if (x == NULL) {
            Py_CLEAR(saved);
        } else {
            PyTuple_SET_ITEM(saved, k, x);
        }
    }
    return saved;
}

/* The recorded value of a result, which is taken over. */
static PyObject *recorded(Operands *o, Entry *entry, PyObject *result)
{
    PyObject *parents = links_of(o), *saved = parents == NULL ? NULL : saved_of(o, entry, result), *node;
    if (saved == NULL) {
        Py_XDECREF(parents);
        Py_DECREF(result);
        return NULL;
    }
    node = tenferro_node(Py_NewRef(entry->vjp), parents, saved);
    if (node == NULL) {
        Py_DECREF(result);
        return NULL;
    }
    return tenferro_differentiated(o->type, result, Py_NewRef(entry->out), Py_NewRef(o->level), node);
}

static PyObject *record(Operands *o, Entry *entry)
{
    PyObject *result = NULL;
    size_t nargsf = (size_t)o->count | PY_VECTORCALL_ARGUMENTS_OFFSET;
    PyObject *raw = may_keep(o, entry) ? PyObject_Vectorcall(entry->run, o->raws + 1, nargsf, NULL) : NULL;
    if (raw != NULL) {
        result = tenferro_tensor(raw, entry->out);
    } else if (PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_OverflowError)) {
        PyErr_Clear(); /* a number beyond the range of the dtype: Python words the error */
    }
    return result != NULL && entry->vjp != Py_None ? recorded(o, entry, result) : result;
}

/* The value and the tangent that the derivative of an op of one output returned. */
static PyObject *dual(Operands *o, PyObject *both)
{
    if (!PyTuple_CheckExact(both) || PyTuple_GET_SIZE(both) != 2) {
        return PyErr_Format(PyExc_TypeError, "a value and its tangent are due, got %R", both);
    }
    PyObject *value = PyTuple_GET_ITEM(both, 0), *tangent = PyTuple_GET_ITEM(both, 1);
    if (tangent == Py_None) {
        return Py_NewRef(value);
    }
    PyObject *spec = IS_TENSOR(value) ? ((Value *)value)->spec : NULL;
    if (spec == NULL) {
        return PyErr_Format(PyExc_TypeError, "a concrete value is due, got %R", value);
    }
    return tenferro_differentiated(o->type, Py_NewRef(value), Py_NewRef(spec), Py_NewRef(o->level),
                                   Py_NewRef(tangent));
}

static PyObject *push(Operands *o, Entry *entry)
{
    PyObject *tangents = links_of(o), *values = PyList_New(o->count), *both = NULL, *result = NULL;
    for (Py_ssize_t i = 0; values != NULL && i < o->count; i++) {
        PyList_SET_ITEM(values, i, Py_NewRef(o->lower[i]));
    }
    if (tangents != NULL && values != NULL) {
        both = tenferro_run_steps(entry->run, values, tangents);
    }
    if (both != NULL) {
        result = dual(o, both);
    }
    Py_XDECREF(tangents);
    Py_XDECREF(values);
    Py_XDECREF(both);
    return result;
}

/* Whether tangents are concrete, and so what they lead to. */
static int concrete_tangents(Operands *o)
{
    for (Py_ssize_t i = 0; i < o->count; i++) {
        if (o->links[i] != NULL && !IS_TENSOR(o->links[i])) {
            return 0;
        }
    }
    return 1;
}

PyObject *tenferro_differentiate(Op *op, PyObject *const *operands, Py_ssize_t n)
{
    Operands o = {.count = n};
    if (n > MOST || !UNSCOPED || tenferro_state.recording_scopes != 0) {
        return NULL;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        if (!look_at(&o, i, operands[i])) {
            return NULL;
        }
    }
    int forward = o.type == tenferro_state.dual;
    if (o.type == NULL || (forward && !concrete_tangents(&o))) {
        return NULL;
    }
    hold(&o); /* comparing keys and running kernels may run code that drops them */
    PyObject *result = NULL;
    Entry *entry = tenferro_entry(op, forward ? ~o.mask : o.mask, o.parts, n);
    if (entry != NULL && Py_IS_TYPE(entry, &Entry_Type) && !entry->many) {
        if (forward) {
            result = Py_IS_TYPE(entry->run, &Steps_Type) ? push(&o, entry) : NULL;
        } else {
            result = entry->run == Py_None ? NULL : record(&o, entry);
        }
    }
    Py_XDECREF(entry);
    drop(&o);
    return result;
}
