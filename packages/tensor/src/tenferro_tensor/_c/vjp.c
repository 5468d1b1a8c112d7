/* `Steps`: the derivative of one op as calls over numbered registers. Registers hold the inputs, then constants, then
   the result of each call. Its Python twin is in _interpreted_backward.py. */
#include "_c/values.h"

/* One call: `function` of the registers at operands[first], ..., operands[first + count - 1]. */
typedef struct {
    PyObject *function; /* borrowed from `calls` */
    Py_ssize_t first, count;
} Call;

/* One output: ZERO, FORWARDED (an input itself), or COMPUTED (a register with a spec). */
typedef enum { ZERO, FORWARDED, COMPUTED } OutputKind;
typedef struct {
    OutputKind kind;
    Py_ssize_t place; /* index of the input or register */
    PyObject *spec;   /* borrowed from `outputs`; NULL except for COMPUTED */
} Output;

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject *op;        /* for error texts */
    PyObject *inputs;    /* tuple: None for a concrete tensor, `object` for any number, else the exact number */
    PyObject *constants; /* tuple */
    PyObject *calls;     /* tuple of (function, tuple of registers) */
    PyObject *outputs;   /* tuple of None, (input, None) and (register, spec) */
    PyObject *otherwise; /* called like `Steps`, if an input differs or a scope is open */
    Py_ssize_t registers, widest; /* the number of registers, and the largest number of operands of a call */
    Call *call;                   /* decoded `calls` and `outputs` */
    Py_ssize_t *operands;
    Output *output;
} Steps;

#define STACK_OBJECTS 40 /* largest number of objects that a run keeps on the stack */

static int index_within(PyObject *number, Py_ssize_t bound, Py_ssize_t *found)
{
    *found = PyLong_Check(number) ? PyLong_AsSsize_t(number) : -1;
    if (!PyErr_Occurred() && *found >= 0 && *found < bound) {
        return 1;
    }
    if (!PyErr_Occurred()) {
        PyErr_Format(PyExc_ValueError, "expected the number of a register, less than %zd, got %R", bound, number);
    }
    return 0;
}

static int read_calls(Steps *s)
{
    Py_ssize_t n = PyTuple_GET_SIZE(s->calls), all = 0, first = s->registers;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *call = PyTuple_GET_ITEM(s->calls, i), *operands = NULL;
        if (PyTuple_CheckExact(call) && PyTuple_GET_SIZE(call) == 2) {
            operands = PyTuple_GET_ITEM(call, 1);
        }
        if (operands == NULL || !PyTuple_CheckExact(operands)) {
            PyErr_SetString(PyExc_TypeError, "a call is a function with a tuple of registers");
            return 0;
        }
        all += PyTuple_GET_SIZE(operands);
    }
    s->call = PyMem_New(Call, n);
    s->operands = PyMem_New(Py_ssize_t, all);
    if (s->call == NULL || s->operands == NULL) {
        PyErr_NoMemory();
        return 0;
    }
    Py_ssize_t at = 0;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *call = PyTuple_GET_ITEM(s->calls, i), *operands = PyTuple_GET_ITEM(call, 1);
        Py_ssize_t count = PyTuple_GET_SIZE(operands);
        s->call[i] = (Call){PyTuple_GET_ITEM(call, 0), at, count};
        s->widest = Py_MAX(s->widest, count);
        for (Py_ssize_t k = 0; k < count; k++) {
            if (!index_within(PyTuple_GET_ITEM(operands, k), first + i, &s->operands[at++])) {
                return 0;
            }
        }
    }
    s->registers += n;
    return 1;
}

static int read_outputs(Steps *s)
{
    Py_ssize_t n = PyTuple_GET_SIZE(s->outputs);
    s->output = PyMem_New(Output, n);
    if (s->output == NULL) {
        PyErr_NoMemory();
        return 0;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *output = PyTuple_GET_ITEM(s->outputs, i);
        s->output[i] = (Output){ZERO, 0, NULL};
        if (output == Py_None) {
            continue;
        }
        if (!PyTuple_CheckExact(output) || PyTuple_GET_SIZE(output) != 2) {
            PyErr_SetString(PyExc_TypeError, "an output is None or a pair of a register and a spec");
            return 0;
        }
        PyObject *spec = PyTuple_GET_ITEM(output, 1);
        int made = spec != Py_None;
        s->output[i].kind = made ? COMPUTED : FORWARDED;
        s->output[i].spec = made ? spec : NULL;
        Py_ssize_t bound = made ? s->registers : PyTuple_GET_SIZE(s->inputs);
        if (!index_within(PyTuple_GET_ITEM(output, 0), bound, &s->output[i].place)) {
            return 0;
        }
    }
    return 1;
}

static PyObject *steps_vectorcall(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *names);

static PyObject *steps_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"op", "inputs", "constants", "calls", "outputs", "otherwise", NULL};
    PyObject *op, *inputs, *constants, *calls, *outputs, *otherwise;
    PyTypeObject *t = &PyTuple_Type;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO!O!O!O!O:Steps", names, &op, t, &inputs, t, &constants, t,
                                     &calls, t, &outputs, &otherwise)) {
        return NULL;
    }
    Steps *s = (Steps *)type->tp_alloc(type, 0);
    if (s == NULL) {
        return NULL;
    }
    s->vectorcall = steps_vectorcall;
    s->op = Py_NewRef(op);
    s->inputs = Py_NewRef(inputs);
    s->constants = Py_NewRef(constants);
    s->calls = Py_NewRef(calls);
    s->outputs = Py_NewRef(outputs);
    s->otherwise = Py_NewRef(otherwise);
    s->registers = PyTuple_GET_SIZE(inputs) + PyTuple_GET_SIZE(constants);
    if (!read_calls(s) || !read_outputs(s)) {
        Py_CLEAR(s);
    }
    return (PyObject *)s;
}

static PyObject *wrong_number(Steps *s, Py_ssize_t got)
{
    Py_ssize_t due = PyTuple_GET_SIZE(s->inputs);
    return PyErr_Format(PyExc_ValueError, "the derivative of %R has %zd inputs, got %zd", s->op, due, got);
}

/* Collect the inputs in `objects`: the items of `given` except None, then those of `saved`. Returns their number, or a
   number too large if there are too many. */
static Py_ssize_t inputs_of(Steps *s, PyObject *given, PyObject *saved, PyObject **objects)
{
    Py_ssize_t n = 0, most = PyTuple_GET_SIZE(s->inputs);
    PyObject *parts[2] = {given, saved};
    for (int p = 0; p < 2; p++) {
        if (p == 0 && !PyList_Check(given)) {
            if (most == 0) {
                return 1;
            }
            objects[n++] = Py_NewRef(given);
            continue;
        }
        for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(parts[p]); i++) {
            PyObject *x = PySequence_Fast_GET_ITEM(parts[p], i);
            if (p == 0 && x == Py_None) {
                continue;
            }
            if (n == most) {
                return n + 1;
            }
            objects[n++] = Py_NewRef(x);
        }
    }
    return n;
}

/* Whether a value is the expected number, with the same class and bits. */
static int is_number(PyObject *x, PyObject *due)
{
    if (x == due || !Py_IS_TYPE(x, Py_TYPE(due))) {
        return x == due;
    }
    if (PyFloat_CheckExact(x)) {
        double a = PyFloat_AS_DOUBLE(x), b = PyFloat_AS_DOUBLE(due);
        return memcmp(&a, &b, sizeof a) == 0;
    }
    return PyLong_CheckExact(x) && PyObject_RichCompareBool(x, due, Py_EQ) == 1;
}

/* Fill the registers of the inputs: 1, or 0 if one differs from the expected one. */
static int raw_inputs(Steps *s, PyObject **objects, PyObject **registers)
{
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(s->inputs); i++) {
        PyObject *due = PyTuple_GET_ITEM(s->inputs, i), *x = objects[i];
        if (due == Py_None) {
            x = IS_TENSOR(x) ? ((Value *)x)->inside : NULL;
        } else if (due != (PyObject *)&PyBaseObject_Type && !is_number(x, due)) {
            x = NULL;
        }
        if (x == NULL) {
            return 0;
        }
        registers[i] = Py_NewRef(x);
    }
    return 1;
}

static int run_calls(Steps *s, PyObject **registers, PyObject **arguments)
{
    Py_ssize_t at = PyTuple_GET_SIZE(s->inputs), n = PyTuple_GET_SIZE(s->constants);
    for (Py_ssize_t i = 0; i < n; i++) {
        registers[at++] = Py_NewRef(PyTuple_GET_ITEM(s->constants, i));
    }
    n = PyTuple_GET_SIZE(s->calls);
    for (Py_ssize_t i = 0; i < n; i++) {
        Call *call = &s->call[i];
        for (Py_ssize_t k = 0; k < call->count; k++) {
            arguments[k + 1] = registers[s->operands[call->first + k]];
        }
        size_t nargsf = (size_t)call->count | PY_VECTORCALL_ARGUMENTS_OFFSET;
        registers[at] = PyObject_Vectorcall(call->function, arguments + 1, nargsf, NULL);
        if (registers[at++] == NULL) {
            return 0;
        }
    }
    return 1;
}

static PyObject *wrapped_outputs(Steps *s, PyObject **objects, PyObject **registers)
{
    Py_ssize_t n = PyTuple_GET_SIZE(s->outputs);
    PyObject *result = PyTuple_New(n);
    for (Py_ssize_t i = 0; i < n && result != NULL; i++) {
        Output *o = &s->output[i];
        PyObject *z = o->kind == COMPUTED ? tenferro_tensor(Py_NewRef(registers[o->place]), o->spec)
                                          : Py_NewRef(o->kind == FORWARDED ? objects[o->place] : Py_None);
        if (z == NULL) {
            Py_CLEAR(result);
        } else {
            PyTuple_SET_ITEM(result, i, z);
        }
    }
    return result;
}

/* `room` has elements for the inputs, the registers and the arguments of a call, all NULL. */
static PyObject *run_in(Steps *s, PyObject *given, PyObject *saved, PyObject **room)
{
    Py_ssize_t count = PyTuple_GET_SIZE(s->inputs), n = inputs_of(s, given, saved, room);
    PyObject **objects = room, **registers = room + count, *result = NULL;
    if (n != count) {
        result = wrong_number(s, n);
    } else if (!raw_inputs(s, objects, registers)) {
        result = PyObject_CallFunctionObjArgs(s->otherwise, given, saved, NULL);
    } else if (run_calls(s, registers, registers + s->registers)) {
        result = wrapped_outputs(s, objects, registers);
    }
    for (Py_ssize_t i = 0; i < count + s->registers; i++) {
        Py_XDECREF(room[i]);
    }
    return result;
}

PyObject *tenferro_run_steps(PyObject *self, PyObject *given, PyObject *saved)
{
    Steps *s = (Steps *)self;
    if (!UNSCOPED || tenferro_state.tensor == NULL || !(PyTuple_Check(saved) || PyList_Check(saved))) {
        return PyObject_CallFunctionObjArgs(s->otherwise, given, saved, NULL);
    }
    Py_ssize_t size = PyTuple_GET_SIZE(s->inputs) + s->registers + s->widest + 1;
    PyObject *stack[STACK_OBJECTS], **room = stack;
    if (size > STACK_OBJECTS && (room = PyMem_New(PyObject *, size)) == NULL) {
        return PyErr_NoMemory();
    }
    memset(room, 0, (size_t)size * sizeof *room);
    Py_INCREF(s);
    PyObject *result = run_in(s, given, saved, room);
    Py_DECREF(s);
    if (room != stack) {
        PyMem_Free(room);
    }
    return result;
}

static PyObject *steps_vectorcall(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *names)
{
    if (PyVectorcall_NARGS(nargsf) != 2 || (names != NULL && PyTuple_GET_SIZE(names))) {
        PyErr_SetString(PyExc_TypeError, "Steps are called as steps(given, saved)");
        return NULL;
    }
    return tenferro_run_steps(self, args[0], args[1]);
}

/* No tp_clear, as for tuples: cycles are broken elsewhere, and fields are never NULL. */
static int steps_traverse(PyObject *self, visitproc visit, void *arg)
{
    Steps *s = (Steps *)self;
    Py_VISIT(s->op);
    Py_VISIT(s->inputs);
    Py_VISIT(s->constants);
    Py_VISIT(s->calls);
    Py_VISIT(s->outputs);
    Py_VISIT(s->otherwise);
    return 0;
}

static void steps_dealloc(PyObject *self)
{
    Steps *s = (Steps *)self;
    PyObject_GC_UnTrack(self);
    PyMem_Free(s->call);
    PyMem_Free(s->operands);
    PyMem_Free(s->output);
    Py_XDECREF(s->op);
    Py_XDECREF(s->inputs);
    Py_XDECREF(s->constants);
    Py_XDECREF(s->calls);
    Py_XDECREF(s->outputs);
    Py_XDECREF(s->otherwise);
    Py_TYPE(self)->tp_free(self);
}

static PyMemberDef steps_members[] = {
    {"op", T_OBJECT_EX, offsetof(Steps, op), READONLY, "The op, for error texts."},
    {"inputs", T_OBJECT_EX, offsetof(Steps, inputs), READONLY, "The expected inputs."},
    {"constants", T_OBJECT_EX, offsetof(Steps, constants), READONLY, "The values of the registers after the inputs."},
    {"calls", T_OBJECT_EX, offsetof(Steps, calls), READONLY, "Functions, with the registers of their operands."},
    {"outputs", T_OBJECT_EX, offsetof(Steps, outputs), READONLY, "The returned registers."},
    {"otherwise", T_OBJECT_EX, offsetof(Steps, otherwise), READONLY, "Called instead if an input differs."},
    {NULL},
};

PyTypeObject Steps_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "tenferro_tensor._accelerated.Steps",
    .tp_doc = "Steps(op, inputs, constants, calls, outputs, otherwise)\n--\n\nA derivative as calls over registers.",
    .tp_basicsize = sizeof(Steps),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_vectorcall_offset = offsetof(Steps, vectorcall),
    .tp_call = PyVectorcall_Call,
    .tp_new = steps_new,
    .tp_dealloc = steps_dealloc,
    .tp_traverse = steps_traverse,
    .tp_members = steps_members,
};

int tenferro_add_steps(PyObject *module)
{
    return PyModule_AddType(module, &Steps_Type);
}
