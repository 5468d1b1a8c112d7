/* Recording: an op on recorded values runs on the values inside, and leaves one node. Its Python twin is `record` of
   tenferro_ad, which also records what is left to it here: first uses, values inside of other levels, several outputs,
   and everything while a scope is open. */
#include "_c/values.h"

#define MOST 8 /* operands */

/* The operands of a call, looked at: what each is represented by, what is inside, and who is differentiated. */
typedef struct {
    Py_ssize_t count;
    long mask;                           /* bits of the recorded operands */
    PyObject *level;                     /* of the recorded operands; borrowed, as `parts` */
    PyObject *parts[MOST];               /* specs, or classes of Python scalars */
    PyObject *lower[MOST], *nodes[MOST]; /* values inside, and nodes of the recorded ones or NULL */
    PyObject *raws[MOST + 1];            /* behind a free place: raw arrays, and Python scalars as they are */
} Operands;

static int same_level(PyObject *x, PyObject *y)
{
    return x == y || (PyLong_CheckExact(x) && PyLong_CheckExact(y) && PyObject_RichCompareBool(x, y, Py_EQ) == 1);
}

/* Look at one operand: 1, or 0 where it is for Python to record. Nothing is held, and nothing runs. */
static int look_at(Operands *o, Py_ssize_t i, PyObject *x)
{
    o->nodes[i] = NULL;
    if (IS_SCALAR_TYPE(Py_TYPE(x))) {
        o->parts[i] = (PyObject *)Py_TYPE(x);
        o->lower[i] = o->raws[i + 1] = x;
        return 1;
    }
    if (IS_RECORDED(x)) {
        Recorded *r = (Recorded *)x;
        if (r->level == NULL || r->node == NULL || (o->level != NULL && !same_level(o->level, r->level))) {
            return 0;
        }
        o->level = r->level;
        o->nodes[i] = r->node;
        o->mask |= 1L << i;
        o->parts[i] = r->spec;
        x = r->value;
    } else {
        o->parts[i] = IS_TENSOR(x) ? ((Tensor *)x)->spec : NULL;
    }
    if (o->parts[i] == NULL || x == NULL || !IS_TENSOR(x)) {
        return 0;
    }
    o->lower[i] = x;
    o->raws[i + 1] = ((Tensor *)x)->data;
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
        if (i < o->count && o->nodes[i] == NULL && PyArray_CheckExact(o->raws[i + 1]) && !is_owned(o->raws[i + 1])) {
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
        Py_XINCREF(o->nodes[i]);
    }
}

static void drop(Operands *o)
{
    Py_DECREF(o->level);
    for (Py_ssize_t i = 0; i < o->count; i++) {
        Py_DECREF(o->lower[i]);
        Py_DECREF(o->raws[i + 1]);
        Py_XDECREF(o->nodes[i]);
    }
}

static PyObject *parents_of(Operands *o)
{
    PyObject *parents = PyTuple_New(__builtin_popcountl((unsigned long)o->mask));
    for (Py_ssize_t i = 0, k = 0; parents != NULL && i < o->count; i++) {
        if (o->nodes[i] != NULL) {
            PyTuple_SET_ITEM(parents, k++, Py_NewRef(o->nodes[i]));
        }
    }
    return parents;
}

static PyObject *saved_of(Operands *o, Entry *entry, PyObject *result)
{
    Py_ssize_t n = PyTuple_GET_SIZE(entry->save);
    PyObject *saved = PyTuple_New(n);
    for (Py_ssize_t k = 0; saved != NULL && k < n; k++) {
        Py_ssize_t i = PyLong_AsSsize_t(PyTuple_GET_ITEM(entry->save, k));
        PyTuple_SET_ITEM(saved, k, Py_NewRef(i < o->count ? o->lower[i] : result));
    }
    return saved;
}

/* The recorded value of a result, which is taken over. */
static PyObject *recorded(Operands *o, Entry *entry, PyObject *result)
{
    PyObject *parents = parents_of(o), *saved = parents == NULL ? NULL : saved_of(o, entry, result), *node;
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
    return tenferro_recorded(result, Py_NewRef(entry->out), Py_NewRef(o->level), node);
}

PyObject *tenferro_record(Op *op, PyObject *const *operands, Py_ssize_t n)
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
    if (o.level == NULL) {
        return NULL;
    }
    hold(&o); /* comparing keys and running kernels may run code that drops them */
    PyObject *result = NULL;
    Entry *entry = tenferro_entry(op, o.mask, o.parts, n);
    if (entry != NULL && Py_IS_TYPE(entry, &Entry_Type) && !entry->many && entry->run != Py_None && may_keep(&o, entry)) {
        PyObject *raw = PyObject_Vectorcall(entry->run, o.raws + 1, (size_t)n | PY_VECTORCALL_ARGUMENTS_OFFSET, NULL);
        if (raw != NULL) {
            result = tenferro_tensor(raw, entry->out);
        } else if (PyErr_ExceptionMatches(PyExc_OverflowError)) {
            PyErr_Clear(); /* a number beyond the range of the dtype: Python words the error */
        }
        if (result != NULL && entry->vjp != Py_None) {
            result = recorded(&o, entry, result);
        }
    }
    Py_XDECREF(entry);
    drop(&o);
    return result;
}
