/* `Entry`, how to run one op on operands of given specs, and `OpBase`, which finds the entry of a call. */
#include "_c/values.h"

static PyMemberDef entry_members[] = {
    {"key", T_OBJECT_EX, offsetof(Entry, key), READONLY, "The key in `OpBase.entries`."},
    {"run", T_OBJECT_EX, offsetof(Entry, run), READONLY, "The kernel on raw arrays and Python scalars."},
    {"out", T_OBJECT_EX, offsetof(Entry, out), READONLY, "Spec of the result, or a tuple of them."},
    {"many", T_BOOL, offsetof(Entry, many), READONLY, "Whether `out` is a tuple, and `run` returns one."},
    {"save", T_OBJECT_EX, offsetof(Entry, save), READONLY, "Indices of the residuals of a node."},
    {"vjp", T_OBJECT_EX, offsetof(Entry, vjp), READONLY, "`vjp` of the nodes, or None."},
    {NULL},
};

static PyObject *entry_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"key", "run", "out", "save", "vjp", NULL};
    PyObject *key, *run, *out, *save = NULL, *vjp = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!OO|O!O:Entry", names, &PyTuple_Type, &key, &run, &out,
                                     &PyTuple_Type, &save, &vjp)) {
        return NULL;
    }
    save = save == NULL ? PyTuple_New(0) : Py_NewRef(save);
    if (save == NULL) {
        return NULL;
    }
    Entry *e = (Entry *)type->tp_alloc(type, 0);
    if (e == NULL) {
        Py_DECREF(save);
        return NULL;
    }
    e->key = Py_NewRef(key);
    e->run = Py_NewRef(run);
    e->out = Py_NewRef(out);
    e->many = PyTuple_CheckExact(out);
    e->save = save;
    e->vjp = Py_NewRef(vjp);
    return (PyObject *)e;
}

/* No tp_clear, as for tuples: cycles are broken elsewhere, and fields of an entry are never NULL. */
static int entry_traverse(PyObject *self, visitproc visit, void *arg)
{
    Entry *e = (Entry *)self;
    Py_VISIT(e->key);
    Py_VISIT(e->run);
    Py_VISIT(e->out);
    Py_VISIT(e->save);
    Py_VISIT(e->vjp);
    return 0;
}

static void entry_dealloc(PyObject *self)
{
    Entry *e = (Entry *)self;
    PyObject_GC_UnTrack(self); /* no effect if `program_dealloc` already did */
    Py_XDECREF(e->key);
    Py_XDECREF(e->run);
    Py_XDECREF(e->out);
    Py_XDECREF(e->save);
    Py_XDECREF(e->vjp);
    Py_TYPE(self)->tp_free(self);
}

PyTypeObject Entry_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "tenferro_tensor._accelerated.Entry",
    .tp_doc = "Entry(key, run, out, save=(), vjp=None)\n--\n\nHow to run one op on operands of given specs.",
    .tp_basicsize = sizeof(Entry),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_new = entry_new,
    .tp_dealloc = entry_dealloc,
    .tp_traverse = entry_traverse,
    .tp_members = entry_members,
};

static PyMemberDef program_members[] = {
    {"values", T_OBJECT_EX, offsetof(ProgramEntry, values), READONLY, "Values of the symbolic sizes that the program needs."},
    {"finish", T_OBJECT_EX, offsetof(ProgramEntry, finish), READONLY, "Creates the result from the raw outputs."},
    {"fresh", T_OBJECT_EX, offsetof(ProgramEntry, fresh), READONLY, "Tells whether the entry is up to date, or None."},
    {"failed", T_OBJECT_EX, offsetof(ProgramEntry, failed), READONLY, "Notified of an error of the program."},
    {"step", T_OBJECT_EX, offsetof(ProgramEntry, step), READONLY, "Kernel of the only equation, or None."},
    {"order", T_OBJECT_EX, offsetof(ProgramEntry, order), READONLY, "Indices of the operands of `step`."},
    {"extras", T_OBJECT_EX, offsetof(ProgramEntry, extras), READONLY, "Constants and numbers that `step` takes."},
    {NULL},
};

static int require_order(PyObject *key, PyObject *order, PyObject *extras)
{
    Py_ssize_t known = PyTuple_GET_SIZE(key) - 1 + PyTuple_GET_SIZE(extras), n = PyBytes_GET_SIZE(order);
    int fits = n <= STEP_OPERANDS;
    for (Py_ssize_t i = 0; i < n && fits; i++) {
        fits = (unsigned char)PyBytes_AS_STRING(order)[i] < known;
    }
    if (!fits) {
        PyErr_Format(PyExc_ValueError, "the order %R does not match %zd operands and extras", order, known);
    }
    return fits ? 0 : -1;
}

static PyObject *program_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"key", "run", "out", "values", "finish", "fresh", "failed", "step", "order", "extras", NULL};
    PyObject *key, *run, *out, *values, *finish, *fresh, *failed, *step, *order, *extras;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!OOOOOOOO!O!:ProgramEntry", names, &PyTuple_Type, &key, &run, &out,
                                     &values, &finish, &fresh, &failed, &step, &PyBytes_Type, &order, &PyTuple_Type,
                                     &extras)
        || require_order(key, order, extras) < 0) {
        return NULL;
    }
    PyObject *save = PyTuple_New(0);
    ProgramEntry *p = save == NULL ? NULL : (ProgramEntry *)type->tp_alloc(type, 0);
    if (p == NULL) {
        Py_XDECREF(save);
        return NULL;
    }
    p->entry = (Entry){.ob_base = p->entry.ob_base, .key = Py_NewRef(key), .run = Py_NewRef(run), .out = Py_NewRef(out),
                       .save = save, .vjp = Py_NewRef(Py_None)};
    p->values = Py_NewRef(values);
    p->finish = Py_NewRef(finish);
    p->fresh = Py_NewRef(fresh);
    p->failed = Py_NewRef(failed);
    p->step = Py_NewRef(step);
    p->order = Py_NewRef(order);
    p->extras = Py_NewRef(extras);
    return (PyObject *)p;
}

static int program_traverse(PyObject *self, visitproc visit, void *arg)
{
    ProgramEntry *p = (ProgramEntry *)self;
    Py_VISIT(p->values);
    Py_VISIT(p->finish);
    Py_VISIT(p->fresh);
    Py_VISIT(p->failed);
    Py_VISIT(p->step);
    Py_VISIT(p->extras);
    return entry_traverse(self, visit, arg);
}

static void program_dealloc(PyObject *self)
{
    ProgramEntry *p = (ProgramEntry *)self;
    PyObject_GC_UnTrack(self);
    Py_XDECREF(p->values);
    Py_XDECREF(p->finish);
    Py_XDECREF(p->fresh);
    Py_XDECREF(p->failed);
    Py_XDECREF(p->step);
    Py_XDECREF(p->order);
    Py_XDECREF(p->extras);
    entry_dealloc(self);
}

PyTypeObject ProgramEntry_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "tenferro_tensor._accelerated.ProgramEntry",
    .tp_doc = "How to run a program on tensors of given specs.",
    .tp_basicsize = sizeof(ProgramEntry),
    .tp_base = &Entry_Type,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_new = program_new,
    .tp_dealloc = program_dealloc,
    .tp_traverse = program_traverse,
    .tp_members = program_members,
};

static int is_entry(PyObject *o)
{
    return Py_IS_TYPE(o, &Entry_Type) || Py_IS_TYPE(o, &ProgramEntry_Type);
}

#define ENTRIES_MAX 512 /* of an op; other tables have their own bounds */

/* Index in `recent`: a hash of the addresses of all parts and of the mask. */
static inline size_t slot_of(long mask, PyObject *const *parts, Py_ssize_t n)
{
    size_t h = (size_t)mask;
    for (Py_ssize_t i = 0; i < n; i++) {
        h = h * 3 + ((size_t)parts[i] >> 4) + ((size_t)parts[i] >> 8);
    }
    return h & (RECENT - 1);
}

static int same_key(Entry *e, long mask, PyObject *const *parts, Py_ssize_t n)
{
    if (PyTuple_GET_SIZE(e->key) != n + 1) {
        return 0;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        if (PyTuple_GET_ITEM(e->key, i + 1) != parts[i]) {
            return 0;
        }
    }
    PyObject *first = PyTuple_GET_ITEM(e->key, 0);
    return PyLong_CheckExact(first) && PyLong_AsLong(first) == mask;
}

/* The entry in the table, or NULL without an exception; comparing keys may run Python code. */
static Entry *looked_up(Op *op, long mask, PyObject *const *parts, Py_ssize_t n)
{
    PyObject *entries = Py_XNewRef(op->entries), *found = NULL;
    for (Py_ssize_t i = 0; i < n; i++) {
        Py_INCREF(parts[i]); /* before allocating, which may run code that drops them */
    }
    PyObject *first = PyLong_FromLong(mask), *key = first == NULL ? NULL : PyTuple_New(n + 1);
    if (key == NULL) {
        for (Py_ssize_t i = 0; i < n; i++) {
            Py_DECREF(parts[i]);
        }
        Py_XDECREF(first);
    } else {
        PyTuple_SET_ITEM(key, 0, first);
        for (Py_ssize_t i = 0; i < n; i++) {
            PyTuple_SET_ITEM(key, i + 1, parts[i]);
        }
        if (entries != NULL) {
            found = Py_XNewRef(PyDict_GetItemWithError(entries, key));
        }
        Py_DECREF(key);
    }
    Py_XDECREF(entries);
    PyErr_Clear(); /* the generic path raises the same error */
    if (found != NULL && !is_entry(found)) {
        Py_CLEAR(found);
    }
    return (Entry *)found;
}

Entry *tenferro_entry(Op *op, long mask, PyObject *const *parts, Py_ssize_t n)
{
    Entry **slot = &op->recent[slot_of(mask, parts, n)], *e = *slot;
    if (e != NULL && same_key(e, mask, parts, n)) {
        return (Entry *)Py_NewRef(e);
    }
    e = looked_up(op, mask, parts, n);
    if (e != NULL && same_key(e, mask, parts, n)) {
        Py_XSETREF(*slot, (Entry *)Py_NewRef(e));
    }
    return e;
}

static PyObject *op_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    Op *op = (Op *)type->tp_alloc(type, 0);
    if (op != NULL) {
        op->vectorcall = tenferro_op_vectorcall;
        op->arity = ANY_ARITY;
        op->bound = ENTRIES_MAX;
        op->entries = PyDict_New();
        if (op->entries == NULL) {
            Py_CLEAR(op);
        }
    }
    return (PyObject *)op;
}

static void forget_recent(Op *op)
{
    for (int i = 0; i < RECENT; i++) {
        Py_CLEAR(op->recent[i]);
    }
}

static int op_traverse(PyObject *self, visitproc visit, void *arg)
{
    Op *op = (Op *)self;
    Py_VISIT(op->entries);
    for (int i = 0; i < RECENT; i++) {
        Py_VISIT(op->recent[i]);
    }
    return 0;
}

static int op_clear(PyObject *self)
{
    Op *op = (Op *)self;
    Py_CLEAR(op->entries);
    forget_recent(op);
    return 0;
}

static void op_dealloc(PyObject *self)
{
    PyObject_GC_UnTrack(self);
    op_clear(self);
    Py_TYPE(self)->tp_free(self);
}

PyDoc_STRVAR(forget_doc, "forget($self, /)\n--\n\nRemove all entries; they are recreated when needed.");

static PyObject *op_forget(PyObject *self, PyObject *unused)
{
    Op *op = (Op *)self;
    PyObject *entries = Py_XNewRef(op->entries);
    forget_recent(op);
    if (entries != NULL) {
        PyDict_Clear(entries);
        Py_DECREF(entries);
    }
    Py_RETURN_NONE;
}

PyDoc_STRVAR(remember_doc, "remember($self, entry, /)\n--\n\nStore an entry, replacing any other of its key.");

static PyObject *op_remember(PyObject *self, PyObject *entry)
{
    Op *op = (Op *)self;
    if (!is_entry(entry)) {
        return PyErr_Format(PyExc_TypeError, "expected an Entry, got %R", entry);
    }
    forget_recent(op); /* one of them may be the replaced entry */
    PyObject *entries = Py_XNewRef(op->entries);
    if (entries == NULL) {
        return Py_NewRef(entry);
    }
    if (PyDict_GET_SIZE(entries) >= op->bound) {
        PyDict_Clear(entries);
    }
    int failed = PyDict_SetItem(entries, ((Entry *)entry)->key, entry);
    Py_DECREF(entries);
    return failed ? NULL : Py_NewRef(entry);
}

static PyMemberDef op_members[] = {
    {"entries", T_OBJECT_EX, offsetof(Op, entries), READONLY, "Entries by key; changed by `remember` and `forget`."},
    {"arity", T_PYSSIZET, offsetof(Op, arity), 0, "Number of positional operands; -1 for any number."},
    {"bound", T_PYSSIZET, offsetof(Op, bound), 0, "Largest number of entries; the table is cleared when it is full."},
    {NULL},
};

static PyMethodDef op_methods[] = {
    {"forget", op_forget, METH_NOARGS, forget_doc},
    {"remember", op_remember, METH_O, remember_doc},
    {NULL},
};

PyTypeObject OpBase_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "tenferro_tensor._accelerated.OpBase",
    .tp_doc = "An op, which is called with operands.",
    .tp_basicsize = sizeof(Op),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_vectorcall_offset = offsetof(Op, vectorcall),
    .tp_call = tenferro_op_call,
    .tp_new = op_new,
    .tp_dealloc = op_dealloc,
    .tp_traverse = op_traverse,
    .tp_clear = op_clear,
    .tp_members = op_members,
    .tp_methods = op_methods,
};

int tenferro_add_ops(PyObject *module)
{
    if (PyModule_AddType(module, &Entry_Type) < 0 || PyModule_AddType(module, &ProgramEntry_Type) < 0
        || PyModule_AddType(module, &OpBase_Type) < 0) {
        return -1;
    }
    return PyModule_AddObjectRef(module, "ProgramsBase", (PyObject *)&OpBase_Type); /* two classes in Python */
}
