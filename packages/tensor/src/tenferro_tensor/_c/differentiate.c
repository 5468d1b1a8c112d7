/* Ops on differentiated values. With recorded operands, an op runs on the inner values and records one node; with dual
   ones, tangents are propagated along with the values. The Python twins in tenferro_ad are also the slow path, for first
   uses, inner values of other levels, several outputs, and open scopes. */
#include "_c/values.h"

#define MAX_OPERANDS 8

/* The analysed operands of a call. */
typedef struct {
    Py_ssize_t count;
    long mask;                        /* bit mask of the differentiated operands */
    PyTypeObject *type;               /* their common class; borrowed, as `level` and `parts` */
    PyObject *level;                  /* their common level */
    PyObject *parts[MAX_OPERANDS];    /* specs, or classes of Python scalars */
    PyObject *lower[MAX_OPERANDS];    /* inner values */
    PyObject *links[MAX_OPERANDS];    /* nodes or tangents, NULL for other operands */
    PyObject *raws[MAX_OPERANDS + 1]; /* after a free element: raw arrays, and Python scalars themselves */
} Operands;

static int same_level(PyObject *x, PyObject *y)
{
    return x == y || (PyLong_CheckExact(x) && PyLong_CheckExact(y) && PyObject_RichCompareBool(x, y, Py_EQ) == 1);
}

/* Analyse one operand: 1, or 0 for the slow path. Borrows references and runs no code. */
static int add_operand(Operands *o, Py_ssize_t i, PyObject *x)
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

/* Whether the library owns the memory of a raw array; see tenferro_tensor.ownership. */
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

/* Whether a node may save its residuals without a copy; Python copies memory that others may write to. */
static int may_save(Operands *o, Entry *entry)
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
        /* A constant may be assigned to later: save its present value. */
        x = i < o->count && o->links[i] == NULL && IS_TENSOR(x) ? tenferro_alias(x) : Py_NewRef(x);
        if (x == NULL) {
            Py_CLEAR(saved);
        } else {
            PyTuple_SET_ITEM(saved, k, x);
        }
    }
    return saved;
}

/* The recorded value for a result, whose reference is stolen. */
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
    PyObject *raw = may_save(o, entry) ? PyObject_Vectorcall(entry->run, o->raws + 1, nargsf, NULL) : NULL;
    if (raw != NULL) {
        result = tenferro_tensor(raw, entry->out);
    } else if (PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_OverflowError)) {
        PyErr_Clear(); /* a number beyond the range of the dtype: Python raises the typed error */
    }
    return result != NULL && entry->vjp != Py_None ? recorded(o, entry, result) : result;
}

/* The dual value for the value and tangent that the derivative of an op with one output returned. */
static PyObject *dual(Operands *o, PyObject *both)
{
    if (!PyTuple_CheckExact(both) || PyTuple_GET_SIZE(both) != 2) {
        return PyErr_Format(PyExc_TypeError, "expected a value and its tangent, got %R", both);
    }
    PyObject *value = PyTuple_GET_ITEM(both, 0), *tangent = PyTuple_GET_ITEM(both, 1);
    if (tangent == Py_None) {
        return Py_NewRef(value);
    }
    PyObject *spec = IS_TENSOR(value) ? ((Value *)value)->spec : NULL;
    if (spec == NULL) {
        return PyErr_Format(PyExc_TypeError, "expected a concrete value, got %R", value);
    }
    return tenferro_differentiated(o->type, Py_NewRef(value), Py_NewRef(spec), Py_NewRef(o->level),
                                   Py_NewRef(tangent));
}

static PyObject *jvp(Operands *o, Entry *entry)
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

/* Whether all tangents are concrete, hence the resulting one. */
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
    if (n > MAX_OPERANDS || !UNSCOPED || tenferro_state.recording_scopes != 0) {
        return NULL;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        if (!add_operand(&o, i, operands[i])) {
            return NULL;
        }
    }
    int forward = o.type == tenferro_state.dual;
    if (o.type == NULL || (forward && !concrete_tangents(&o))) {
        return NULL;
    }
    hold(&o); /* comparing keys and running kernels may run code that drops the operands */
    PyObject *result = NULL;
    Entry *entry = tenferro_entry(op, forward ? ~o.mask : o.mask, o.parts, n);
    if (entry != NULL && Py_IS_TYPE(entry, &Entry_Type) && !entry->many) {
        if (forward) {
            result = Py_IS_TYPE(entry->run, &Steps_Type) ? jvp(&o, entry) : NULL;
        } else {
            result = entry->run == Py_None ? NULL : record(&o, entry);
        }
    }
    Py_XDECREF(entry);
    drop(&o);
    return result;
}
