/* Calls of ops, and the descriptors through which Python's operators reach them. */
#include "_c/values.h"

#define STACK_OPERANDS 8 /* largest number of operands kept on the stack */
#define IN_PLACE_MAX_BYTES (1 << 24) /* largest array for which writing in place saves more than several threads do */

static PyObject *generic_name, *operate_name, *augment_name, *bound_name, *evaluate_name;

/* The parts of the key of an entry: the spec of each operand, or the class of a Python scalar. Returns 1, or 0 if an
   operand is of another kind. Borrows references and runs no code. */
static int parts_of(PyObject *const *operands, Py_ssize_t n, PyObject **parts)
{
    for (Py_ssize_t i = 0; i < n; i++) {
        PyTypeObject *type = Py_TYPE(operands[i]);
        if (type == tenferro_state.tensor) {
            parts[i] = ((Value *)operands[i])->spec;
            if (parts[i] == NULL) {
                return 0;
            }
        } else if (IS_SCALAR_TYPE(type)) {
            parts[i] = (PyObject *)type;
        } else {
            return 0;
        }
    }
    return 1;
}

/* Raw arrays, and scalars themselves: new references. Returns their number, less than `n` if an operand is damaged. */
static Py_ssize_t raws_of(PyObject *const *operands, Py_ssize_t n, PyObject **raws)
{
    Py_ssize_t i = 0;
    for (; i < n; i++) {
        PyObject *x = operands[i];
        PyObject *raw = IS_TENSOR(x) ? ((Value *)x)->inside : x;
        if (raw == NULL) {
            break;
        }
        raws[i] = Py_NewRef(raw);
    }
    return i;
}

/* The tensor, or tuple of tensors, for the result of a kernel, whose reference is stolen. */
static PyObject *wrapped(Entry *entry, PyObject *raw)
{
    if (!entry->many) {
        return tenferro_tensor(raw, entry->out);
    }
    Py_ssize_t n = PyTuple_GET_SIZE(entry->out);
    PyObject *made = NULL;
    if (!PyTuple_CheckExact(raw) || PyTuple_GET_SIZE(raw) != n) {
        PyErr_Format(PyExc_TypeError, "a kernel returned %R, expected a tuple of %zd arrays", raw, n);
    } else if ((made = PyTuple_New(n)) != NULL) {
        for (Py_ssize_t i = 0; i < n && made != NULL; i++) {
            PyObject *z = tenferro_tensor(Py_NewRef(PyTuple_GET_ITEM(raw, i)), PyTuple_GET_ITEM(entry->out, i));
            if (z == NULL) {
                Py_CLEAR(made);
            } else {
                PyTuple_SET_ITEM(made, i, z);
            }
        }
    }
    Py_DECREF(raw);
    return made;
}

/* Notify a program's entry of the current exception, which is cleared if the generic path can handle it. */
static void notify_failure(ProgramEntry *p)
{
    PyObject *type, *error, *trace, *answer;
    if (!PyErr_ExceptionMatches(PyExc_Exception)) {
        return;
    }
    PyErr_Fetch(&type, &error, &trace);
    PyErr_NormalizeException(&type, &error, &trace);
    if (trace != NULL) {
        PyException_SetTraceback(error, trace);
        Py_DECREF(trace);
    }
    answer = PyObject_CallOneArg(p->failed, error); /* may replace the traceback */
    PyErr_Clear();
    if (answer == Py_True) {
        Py_DECREF(type);
        Py_DECREF(error);
    } else {
        PyErr_Restore(type, error, PyException_GetTraceback(error));
    }
    Py_XDECREF(answer);
}

/* The result of a program; NULL without an exception if its entry is out of date. `raws[-1]` is writable. */
static PyObject *run_program(ProgramEntry *p, PyObject **raws, Py_ssize_t n)
{
    PyObject *passed[STEP_OPERANDS + 1], *raw;
    if (p->fresh != Py_None) {
        PyObject *answer = PyObject_CallNoArgs(p->fresh);
        int fresh = answer == NULL ? -1 : PyObject_IsTrue(answer);
        Py_XDECREF(answer);
        if (fresh <= 0) {
            return NULL;
        }
    }
    if (p->step == Py_None) {
        raws[-1] = p->values;
        raw = PyObject_Vectorcall(p->entry.run, raws - 1, (size_t)n + 1, NULL);
    } else {
        const unsigned char *order = (const unsigned char *)PyBytes_AS_STRING(p->order);
        Py_ssize_t count = PyBytes_GET_SIZE(p->order);
        for (Py_ssize_t i = 0; i < count; i++) {
            passed[i + 1] = order[i] < n ? raws[order[i]] : PyTuple_GET_ITEM(p->extras, order[i] - n);
        }
        raw = PyObject_Vectorcall(p->step, passed + 1, (size_t)count | PY_VECTORCALL_ARGUMENTS_OFFSET, NULL);
    }
    PyObject *result = NULL;
    if (raw != NULL && p->entry.out != Py_None) {
        return tenferro_tensor(raw, p->entry.out);
    }
    if (raw != NULL) {
        result = PyObject_CallOneArg(p->finish, raw);
        Py_DECREF(raw);
    }
    if (result == NULL) {
        notify_failure(p);
    }
    return result;
}

/* The result of an op whose entry for these operands exists, recorded if some operand is; NULL without an exception to
   use the generic path. `room` has `n` elements for parts, and `n` + 1 for raw operands. */
static PyObject *known(Op *op, PyObject *const *operands, Py_ssize_t n, PyObject **room)
{
    PyObject **raws = room + n + 1, *raw = NULL, *result = NULL;
    if (!UNSCOPED) {
        return NULL;
    }
    if (!parts_of(operands, n, room)) {
        return tenferro_differentiate(op, operands, n);
    }
    Entry *entry = tenferro_entry(op, 0, room, n);
    if (entry == NULL) {
        return NULL;
    }
    /* While a kernel runs without the GIL, another thread may change the contents of a tensor. */
    Py_ssize_t held = raws_of(operands, n, raws);
    if (held == n && Py_IS_TYPE(entry, &ProgramEntry_Type)) {
        result = run_program((ProgramEntry *)entry, raws, n);
    } else if (held == n) {
        raw = PyObject_Vectorcall(entry->run, raws, (size_t)n | PY_VECTORCALL_ARGUMENTS_OFFSET, NULL);
        if (raw != NULL) {
            result = wrapped(entry, raw);
        } else if (PyErr_ExceptionMatches(PyExc_OverflowError)) {
            PyErr_Clear(); /* a number beyond the range of the dtype: the generic path raises the typed error */
        }
    }
    while (held > 0) {
        Py_DECREF(raws[--held]);
    }
    Py_DECREF(entry);
    return result;
}

/* A call with keywords or another number of operands: ``self.bound_call(args, kwargs)``. */
static PyObject *bound_call(PyObject *self, PyObject *args, PyObject *kwargs)
{
    if (((Op *)self)->arity == ANY_ARITY) {
        return PyErr_Format(PyExc_TypeError, "%R takes no keyword arguments", self);
    }
    PyObject *named = kwargs == NULL ? PyDict_New() : Py_NewRef(kwargs);
    PyObject *result = named == NULL ? NULL : PyObject_CallMethodObjArgs(self, bound_name, args, named, NULL);
    Py_XDECREF(named);
    return result;
}

/* Whether all operands are concrete values and Python scalars. */
static int are_concrete(PyObject *const *operands, Py_ssize_t n)
{
    int concrete = 1;
    for (Py_ssize_t i = 0; i < n && concrete; i++) {
        concrete = IS_TENSOR(operands[i]) || IS_SCALAR_TYPE(Py_TYPE(operands[i]));
    }
    return concrete;
}

/* The slow path: `op.evaluate(operands)` or `op.generic(operands)`. */
static PyObject *run_generic(PyObject *op, PyObject *const *operands, Py_ssize_t n)
{
    PyObject *all = PyTuple_New(n);
    if (all == NULL) {
        return NULL;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        PyTuple_SET_ITEM(all, i, Py_NewRef(operands[i]));
    }
    PyObject *result = PyObject_CallMethodOneArg(op, are_concrete(operands, n) ? evaluate_name : generic_name, all);
    Py_DECREF(all);
    return result;
}

static PyObject *called(PyObject *self, PyObject *const *operands, Py_ssize_t n)
{
    PyObject *stack[2 * STACK_OPERANDS + 1], **room = stack, *result;
    if (n > STACK_OPERANDS && (room = PyMem_New(PyObject *, 2 * n + 1)) == NULL) {
        return PyErr_NoMemory();
    }
    result = known((Op *)self, operands, n, room);
    if (room != stack) {
        PyMem_Free(room);
    }
    if (result != NULL || PyErr_Occurred()) {
        return result;
    }
    return run_generic(self, operands, n);
}

PyObject *tenferro_op_call(PyObject *self, PyObject *args, PyObject *kwargs)
{
    Py_ssize_t n = PyTuple_GET_SIZE(args), arity = ((Op *)self)->arity;
    if ((kwargs != NULL && PyDict_GET_SIZE(kwargs)) || (arity != ANY_ARITY && arity != n)) {
        return bound_call(self, args, kwargs);
    }
    return called(self, &PyTuple_GET_ITEM(args, 0), n);
}

PyObject *tenferro_op_vectorcall(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *names)
{
    Py_ssize_t n = PyVectorcall_NARGS(nargsf), arity = ((Op *)self)->arity;
    if ((names == NULL || !PyTuple_GET_SIZE(names)) && (arity == ANY_ARITY || arity == n)) {
        return called(self, args, n);
    }
    PyObject *all = PyTuple_New(n), *kwargs = all == NULL ? NULL : PyDict_New(), *result = NULL;
    for (Py_ssize_t i = 0; i < n && all != NULL; i++) {
        PyTuple_SET_ITEM(all, i, Py_NewRef(args[i]));
    }
    Py_ssize_t named = names == NULL ? 0 : PyTuple_GET_SIZE(names), done = 0;
    while (kwargs != NULL && done < named && PyDict_SetItem(kwargs, PyTuple_GET_ITEM(names, done), args[n + done]) == 0) {
        done++;
    }
    if (kwargs != NULL && done == named) {
        result = bound_call(self, all, kwargs);
    }
    Py_XDECREF(all);
    Py_XDECREF(kwargs);
    return result;
}

static int refuse_keywords(PyObject *self, PyObject *names)
{
    if (names != NULL && PyTuple_GET_SIZE(names)) {
        PyErr_Format(PyExc_TypeError, "%R takes no keyword arguments", self);
        return 1;
    }
    return 0;
}

/* Operators: method descriptors, which Python calls with the operands without binding them. */

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject *op;    /* an OpBase */
    PyObject *name;  /* name of the method; None before it is assigned in a class */
    PyObject *ufunc; /* of an in-place operator: NumPy's function with results of the same bits, or None */
} Operator;

static PyObject *wrong_arguments(PyObject *self, Py_ssize_t due, Py_ssize_t n)
{
    return PyErr_Format(PyExc_TypeError, "the operator %R takes %zd operands, got %zd", ((Operator *)self)->name, due, n);
}

/* `op(*operands)`; the slow path is the method `_operate` of `self`, one of the operands. */
static PyObject *operated(PyObject *self, PyObject *op, PyObject *const *operands)
{
    PyObject *room[5], *result = known((Op *)op, operands, 2, room);
    if (result != NULL || PyErr_Occurred()) {
        return result;
    }
    if (are_concrete(operands, 2)) {
        return run_generic(op, operands, 2);
    }
    return PyObject_CallMethodObjArgs(self, operate_name, op, operands[0], operands[1], NULL);
}

static PyObject *operator_call(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *names)
{
    Py_ssize_t n = PyVectorcall_NARGS(nargsf);
    if (n != 2 || refuse_keywords(self, names)) {
        return n == 2 ? NULL : wrong_arguments(self, 2, n);
    }
    return operated(args[0], ((Operator *)self)->op, args);
}

static PyObject *reflected_call(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *names)
{
    Py_ssize_t n = PyVectorcall_NARGS(nargsf);
    if (n != 2 || refuse_keywords(self, names)) {
        return n == 2 ? NULL : wrong_arguments(self, 2, n);
    }
    PyObject *swapped[2] = {args[1], args[0]};
    return operated(args[0], ((Operator *)self)->op, swapped);
}

static PyObject *unary_call(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *names)
{
    Py_ssize_t n = PyVectorcall_NARGS(nargsf);
    if (n != 1 || refuse_keywords(self, names)) {
        return n == 1 ? NULL : wrong_arguments(self, 1, n);
    }
    return called(((Operator *)self)->op, args, 1);
}

/* `x op= y` by NumPy's function, which writes into the memory of `x`: 1; 0 for the slow path, with nothing changed; -1
   with an exception. */
static int write_result(PyObject *ufunc, PyObject *x, PyObject *y)
{
    if (ufunc == Py_None || !tenferro_is_writable(x)) {
        return 0;
    }
    PyObject *raw = ((Value *)x)->inside, *other = tenferro_host_values((PyArrayObject *)raw, y);
    int type = PyArray_TYPE((PyArrayObject *)raw);
    if (other == NULL || PyArray_NBYTES((PyArrayObject *)raw) > IN_PLACE_MAX_BYTES
        || !(type == NPY_DOUBLE || type == NPY_FLOAT || type == NPY_LONG)) {
        return 0;
    }
    PyObject *room[4] = {NULL, raw, other, raw};
    Py_INCREF(raw);
    Py_INCREF(other);
    PyObject *result = PyObject_Vectorcall(ufunc, room + 1, 3 | PY_VECTORCALL_ARGUMENTS_OFFSET, NULL);
    Py_DECREF(raw);
    Py_DECREF(other);
    Py_XDECREF(result);
    if (result != NULL || !(PyErr_ExceptionMatches(PyExc_TypeError) || PyErr_ExceptionMatches(PyExc_ValueError))) {
        return result == NULL ? -1 : 1;
    }
    PyErr_Clear(); /* of shapes or dtypes, before anything is written: Python raises the typed error */
    return 0;
}

static PyObject *augmented_call(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *names)
{
    Py_ssize_t n = PyVectorcall_NARGS(nargsf);
    if (n != 2 || refuse_keywords(self, names)) {
        return n == 2 ? NULL : wrong_arguments(self, 2, n);
    }
    int done = write_result(((Operator *)self)->ufunc, args[0], args[1]);
    if (done != 0) {
        return done < 0 ? NULL : Py_NewRef(args[0]);
    }
    return PyObject_CallMethodObjArgs(args[0], augment_name, ((Operator *)self)->op, args[1], NULL);
}

static int operator_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(((Operator *)self)->op);
    Py_VISIT(((Operator *)self)->name);
    Py_VISIT(((Operator *)self)->ufunc);
    return 0;
}

static void operator_dealloc(PyObject *self)
{
    PyObject_GC_UnTrack(self);
    Py_XDECREF(((Operator *)self)->op);
    Py_XDECREF(((Operator *)self)->name);
    Py_XDECREF(((Operator *)self)->ufunc);
    Py_TYPE(self)->tp_free(self);
}

static PyObject *operator_get(PyObject *self, PyObject *instance, PyObject *owner)
{
    return instance == NULL || instance == Py_None ? Py_NewRef(self) : PyMethod_New(self, instance);
}

static PyObject *operator_set_name(PyObject *self, PyObject *args)
{
    PyObject *owner, *name;
    if (!PyArg_ParseTuple(args, "OO:__set_name__", &owner, &name)) {
        return NULL;
    }
    Py_XSETREF(((Operator *)self)->name, Py_NewRef(name));
    Py_RETURN_NONE;
}

static PyMethodDef operator_methods[] = {
    {"__set_name__", operator_set_name, METH_VARARGS, NULL},
    {NULL},
};

static PyMemberDef operator_members[] = {
    {"op", T_OBJECT_EX, offsetof(Operator, op), READONLY, "The op that is called with the operands."},
    {"__name__", T_OBJECT_EX, offsetof(Operator, name), READONLY, NULL},
    {NULL},
};

static PyTypeObject Operator_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "tenferro_tensor._accelerated.Operator",
    .tp_doc = "A method that calls an op with its operands.",
    .tp_basicsize = sizeof(Operator),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR
        | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_vectorcall_offset = offsetof(Operator, vectorcall),
    .tp_call = PyVectorcall_Call,
    .tp_descr_get = operator_get,
    .tp_dealloc = operator_dealloc,
    .tp_traverse = operator_traverse,
    .tp_members = operator_members,
    .tp_methods = operator_methods,
};

static PyObject *made(PyObject *op, PyObject *ufunc, vectorcallfunc how)
{
    if (!PyObject_TypeCheck(op, &OpBase_Type)) {
        return PyErr_Format(PyExc_TypeError, "expected an op, got %R", op);
    }
    Operator *o = PyObject_GC_New(Operator, &Operator_Type);
    if (o == NULL) {
        return NULL;
    }
    o->vectorcall = how;
    o->op = Py_NewRef(op);
    o->name = Py_NewRef(Py_None);
    o->ufunc = Py_NewRef(ufunc);
    PyObject_GC_Track(o);
    return (PyObject *)o;
}

static PyObject *operator(PyObject *module, PyObject *op)
{
    return made(op, Py_None, operator_call);
}

static PyObject *reflected(PyObject *module, PyObject *op)
{
    return made(op, Py_None, reflected_call);
}

static PyObject *unary(PyObject *module, PyObject *op)
{
    return made(op, Py_None, unary_call);
}

static PyObject *augmented(PyObject *module, PyObject *args)
{
    PyObject *op, *ufunc = Py_None;
    if (!PyArg_ParseTuple(args, "O|O:augmented", &op, &ufunc)) {
        return NULL;
    }
    return made(op, ufunc, augmented_call);
}

static PyMethodDef functions[] = {
    {"augmented", augmented, METH_VARARGS, "augmented($module, op, ufunc=None, /)\n--\n\nThe method of an in-place operator."},
    {"operator", operator, METH_O, "operator($module, op, /)\n--\n\nThe method ``op(self, other)``."},
    {"reflected", reflected, METH_O, "reflected($module, op, /)\n--\n\nThe method ``op(other, self)``."},
    {"unary", unary, METH_O, "unary($module, op, /)\n--\n\nThe method ``op(self)``."},
    {NULL},
};

int tenferro_add_call(PyObject *module)
{
    generic_name = PyUnicode_InternFromString("generic");
    augment_name = PyUnicode_InternFromString("_augment");
    operate_name = PyUnicode_InternFromString("_operate");
    evaluate_name = PyUnicode_InternFromString("evaluate");
    bound_name = PyUnicode_InternFromString("bound_call");
    if (generic_name == NULL || augment_name == NULL || evaluate_name == NULL || operate_name == NULL || bound_name == NULL
        || PyType_Ready(&Operator_Type) < 0) {
        return -1;
    }
    return PyModule_AddFunctions(module, functions);
}
