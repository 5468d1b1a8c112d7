/* `WholeFunction`: the machine code of a whole program as a callable of values of its sizes, as a tuple, and arrays.
 *
 * The size-dependent data, extents and the memory of temporaries, are computed in Python once per tuple of sizes:
 * `prepare` returns the words of a binding, to which the sizes are appended, or a callable that serves these sizes
 * instead of the machine code. */
#include "kernels/walk.h"
#include "memory/handlers.h"
#include "memory/pool.h"
#include "codegen/whole/run.h"

#include <structmember.h>

enum {
    COPIED_BYTES = 1 << 15,      /* larger arrays that are not contiguous are copied by a Python function */
    NEAR_BYTES = 2048,           /* maximum bytes of temporaries on the stack */
    LOCKED_BYTES = 1 << 19,      /* runs that touch more memory release the lock from the start */
    MAX_BINDINGS = 256,
    ARENA = 0, TOTAL, LARGEST, TEAM, HEAD /* of a binding: bytes of temporary values, of all memory, of the largest
                                           * block, whether a nest is large enough for the team; then the extents of
                                           * the inputs, those of the outputs, and the sizes */
};

typedef struct {
    PyObject_VAR_HEAD
    vectorcallfunc call;
    tenferro_whole_function *function;
    PyObject *dtypes, *constants, *calls, *prepare, *memory; /* `calls`: the tuple that `python` was read from */
    PyObject *contiguous;                                    /* returns large arrays in contiguous form */
    PyObject *bindings;                                      /* a dict: tuples of sizes to words or callables */
    PyObject *known, *words;                                 /* the sizes of the last call and their binding, or NULL */
    struct python_call *python;
    int64_t call_count;
    int inputs, constant_count, outputs, sizes, bare;
    int64_t extents;                                         /* of all inputs and outputs */
    PyObject *over;          /* 32-bit numbers: of each output 0, or the input that it lies in, counted from 1 */
    unsigned char ranks[];   /* of inputs, then of outputs */
} WholeFunction;

static PyArray_Descr *descr_of(const WholeFunction *self, int k)
{
    return (PyArray_Descr *)PyTuple_GET_ITEM(self->dtypes, k);
}

/* The words computed in Python, followed by the sizes; steals the reference, and returns a new one. */
static PyObject *with_sizes(const WholeFunction *self, PyObject *words, PyObject *sizes)
{
    const int64_t count = HEAD + self->extents;
    if (!PyBytes_Check(words) || PyBytes_GET_SIZE(words) != count * 8) {
        PyErr_SetString(PyExc_TypeError, "a binding is the bytes of 64-bit words");
        Py_DECREF(words);
        return NULL;
    }
    PyObject *all = PyBytes_FromStringAndSize(NULL, (count + self->sizes) * 8);
    int64_t *into = all == NULL ? NULL : (int64_t *)PyBytes_AS_STRING(all);
    if (all != NULL)
        memcpy(into, PyBytes_AS_STRING(words), (size_t)count * 8);
    for (int k = 0; all != NULL && k < self->sizes; k++) {
        into[count + k] = PyLong_AsLongLong(PyTuple_GET_ITEM(sizes, k));
        if (into[count + k] == -1 && PyErr_Occurred())
            Py_CLEAR(all);
    }
    Py_DECREF(words);
    return all;
}

/* The binding that Python computes for sizes; a new reference. */
static PyObject *new_binding(WholeFunction *self, PyObject *sizes)
{
    PyObject *words = PyObject_Call(self->prepare, sizes, NULL);
    if (words != NULL && !PyCallable_Check(words))
        words = with_sizes(self, words, sizes);
    if (words == NULL)
        return NULL;
    if (PyDict_GET_SIZE(self->bindings) >= MAX_BINDINGS)
        PyDict_Clear(self->bindings);
    if (PyDict_SetItem(self->bindings, sizes, words) < 0)
        Py_CLEAR(words);
    return words;
}

/* The binding for sizes; a new reference. */
static PyObject *binding_of(WholeFunction *self, PyObject *sizes)
{
    if (sizes == self->known)
        return Py_NewRef(self->words);
    if (!PyTuple_CheckExact(sizes) || PyTuple_GET_SIZE(sizes) != self->sizes) {
        PyErr_Format(PyExc_TypeError, "the first argument of a whole program is the tuple of its %d sizes", self->sizes);
        return NULL;
    }
    PyObject *words = PyDict_GetItemWithError(self->bindings, sizes);
    if (words == NULL)
        words = PyErr_Occurred() ? NULL : new_binding(self, sizes);
    else
        Py_INCREF(words);
    if (words != NULL) {
        Py_XSETREF(self->known, Py_NewRef(sizes));
        Py_XSETREF(self->words, Py_NewRef(words));
    }
    return words;
}

/* An operand as an array that a program can read, or NULL with an exception set. */
static PyArrayObject *as_operand(const WholeFunction *self, PyObject *o, PyArray_Descr *descr)
{
    if (is_array_of(o, descr, NPY_ARRAY_CARRAY_RO))
        return (PyArrayObject *)Py_NewRef(o);
    const int aligned = is_array_of(o, descr, NPY_ARRAY_ALIGNED);
    if (aligned && PyArray_NBYTES((PyArrayObject *)o) < COPIED_BYTES)
        return (PyArrayObject *)PyArray_NewCopy((PyArrayObject *)o, NPY_CORDER);
    PyObject *found = aligned ? PyObject_CallOneArg(self->contiguous, o) : Py_NewRef(o);
    if (found == NULL)
        return NULL;
    Py_INCREF(descr);
    PyObject *array = PyArray_FromAny(found, descr, 0, 0, NPY_ARRAY_CARRAY_RO | NPY_ARRAY_NOTSWAPPED, NULL);
    Py_DECREF(found);
    return (PyArrayObject *)array;
}

static int refuse_operand(int k, PyArrayObject *array, const int64_t *shape, int rank)
{
    PyObject *wanted = PyTuple_New(rank), *seen = PyObject_GetAttrString((PyObject *)array, "shape");
    for (int d = 0; wanted != NULL && d < rank; d++) {
        PyObject *extent = PyLong_FromLongLong(shape[d]);
        if (extent == NULL)
            Py_CLEAR(wanted);
        else
            PyTuple_SET_ITEM(wanted, d, extent);
    }
    if (wanted != NULL && seen != NULL)
        PyErr_Format(PyExc_ValueError, "operand %d of a program has the shape %R; for these sizes it takes %R", k, seen,
                     wanted);
    Py_XDECREF(wanted);
    Py_XDECREF(seen);
    return -1;
}

/* Find the start addresses of operands: 0, or -1 with an exception set. `held` receives references, even on failure. */
static int take_operands(const WholeFunction *self, PyObject *const *args, const int64_t *shapes, void **pointers,
                         PyArrayObject **held)
{
    for (int k = 0; k < self->inputs; k++) {
        PyArray_Descr *descr = descr_of(self, k);
        const int rank = self->ranks[k];
        if (Py_TYPE(args[k]) == descr->typeobj && PyArray_IsScalar(args[k], Number) && rank == 0) {
            pointers[k] = &((PyDoubleScalarObject *)args[k])->obval;
            continue;
        }
        held[k] = as_operand(self, args[k], descr);
        if (held[k] == NULL)
            return -1;
        if (PyArray_NDIM(held[k]) != rank || !same_extents(PyArray_DIMS(held[k]), (const npy_intp *)shapes, rank))
            return refuse_operand(k, held[k], shapes, rank);
        pointers[k] = PyArray_DATA(held[k]);
        shapes += rank;
    }
    return 0;
}

static void *aligned(char *start)
{
    return start + (-(uintptr_t)start & 63);
}

/* The input whose memory an output reuses, counted from 1, or 0. */
static int64_t input_under(const WholeFunction *self, int k)
{
    return ((const int32_t *)PyBytes_AS_STRING(self->over))[k];
}

/* The array of an output: a new one, or a donated input. A new reference. */
static PyArrayObject *output_array(const WholeFunction *self, int k, const npy_intp *shape, PyArrayObject **held)
{
    const int64_t input = input_under(self, k) - 1;
    if (input < 0)
        return new_array(descr_of(self, self->inputs + k), self->ranks[self->inputs + k], shape);
    if (held[input] == NULL || !PyArray_ISWRITEABLE(held[input])) {
        PyErr_Format(PyExc_ValueError, "operand %d is written over, and cannot be", (int)input);
        return NULL;
    }
    return (PyArrayObject *)Py_NewRef(held[input]);
}

/* Allocate outputs and memory for temporaries, `near` if that suffices: 0, or -1 with an exception set. `made`,
 * after the operands in `held`, receives references, even on failure. */
static int make_memory(const WholeFunction *self, const int64_t *words, void **pointers, PyArrayObject **held,
                       PyArrayObject **made, char *near)
{
    const int64_t *shape = words + HEAD;
    for (int k = 0; k < self->inputs; k++)
        shape += self->ranks[k];
    for (int k = 0; k < self->outputs; k++) {
        const int rank = self->ranks[self->inputs + k];
        made[k] = output_array(self, k, (const npy_intp *)shape, held);
        if (made[k] == NULL)
            return -1;
        pointers[k] = PyArray_DATA(made[k]);
        shape += rank;
    }
    if (words[ARENA] <= NEAR_BYTES && self->call_count == 0) { /* arrays over it might outlive the call */
        pointers[self->outputs] = near;
        return 0;
    }
    const npy_intp bytes = words[ARENA] + 64;
    made[self->outputs] = (PyArrayObject *)PyArray_SimpleNew(1, &bytes, NPY_UINT8);
    if (made[self->outputs] == NULL)
        return -1;
    pointers[self->outputs] = aligned(PyArray_BYTES(made[self->outputs]));
    return 0;
}

/* Like `make_memory`, with large blocks from the pool. */
static int take_memory(const WholeFunction *self, const int64_t *words, void **pointers, PyArrayObject **held,
                       PyArrayObject **made, char *near)
{
    if (self->memory == Py_None || words[LARGEST] < (int64_t)TENFERRO_POOLED_MIN_BYTES)
        return make_memory(self, words, pointers, held, made, near);
    PyObject *before = tenferro_pool_enter(self->memory, PyDataMem_DefaultHandler);
    if (before == NULL)
        return -1;
    const int status = make_memory(self, words, pointers, held, made, near);
    return tenferro_pool_leave(before, status < 0) < 0 ? -1 : status;
}

/* Raise the error of a status that no Python code has explained; checked code leaves a position in the countdown. */
static void raise_status(const WholeFunction *self, PyObject *sizes, int64_t status, int64_t position)
{
    PyObject *failed = PyObject_GetAttrString(self->prepare, "failed");
    PyObject *seen = failed == NULL ? NULL : Py_BuildValue("(LL)", (long long)status, (long long)position);
    PyObject *args = seen == NULL ? NULL : PySequence_Concat(seen, sizes);
    PyObject *none = args == NULL ? NULL : PyObject_Call(failed, args, NULL);
    Py_XDECREF(failed);
    Py_XDECREF(seen);
    Py_XDECREF(args);
    Py_XDECREF(none);
    if (!PyErr_Occurred())
        PyErr_Format(PyExc_RuntimeError, "a compiled program ended with the status %lld", (long long)status);
}

/* Run the machine code: 0, or -1 with an exception set. */
static int run_function(WholeFunction *self, PyObject *sizes, const int64_t *words, void **pointers,
                        PyArrayObject *const *owners, int64_t owner_count)
{
    struct whole_run run = {.calls = self->python, .call_count = self->call_count, .sizes = sizes, .owners = owners,
                            .owner_count = owner_count};
    tenferro_begin_run(&run, words[TOTAL] <= LOCKED_BYTES, words[TEAM] != 0);
    const int64_t status = self->function(pointers, words + HEAD + self->extents, &run.context);
    tenferro_end_run(&run);
    if (status != 0 && !PyErr_Occurred())
        raise_status(self, sizes, status, run.context.countdown);
    return status == 0 ? 0 : -1;
}

/* The outputs; takes over the references. */
static PyObject *outputs_of(const WholeFunction *self, PyArrayObject **made)
{
    if (self->bare)
        return (PyObject *)made[0];
    PyObject *answer = PyTuple_New(self->outputs);
    if (answer == NULL) {
        drop_arrays(made, self->outputs);
        return NULL;
    }
    for (int k = 0; k < self->outputs; k++)
        PyTuple_SET_ITEM(answer, k, (PyObject *)made[k]);
    return answer;
}

static PyObject *call_bound(WholeFunction *self, PyObject *const *args, const int64_t *words)
{
    const int fixed = self->inputs + self->constant_count, count = fixed + self->outputs + 1;
    _Alignas(64) char near[NEAR_BYTES];
    void *pointers[count];
    PyArrayObject *held[count], **made = held + fixed;
    for (int k = 0; k < count; k++)
        held[k] = NULL;
    for (int k = 0; k < self->constant_count; k++) {
        held[self->inputs + k] = (PyArrayObject *)Py_NewRef(PyTuple_GET_ITEM(self->constants, k));
        pointers[self->inputs + k] = PyArray_DATA(held[self->inputs + k]);
    }
    int status = take_operands(self, args + 1, words + HEAD, pointers, held);
    if (status == 0)
        status = take_memory(self, words, pointers + fixed, held, made, near);
    if (status == 0)
        status = run_function(self, args[0], words, pointers, held, count);
    for (int k = 0; k < fixed; k++)
        Py_XDECREF(held[k]);
    Py_XDECREF(made[self->outputs]);
    if (status == 0)
        return outputs_of(self, made);
    for (int k = 0; k < self->outputs; k++)
        Py_XDECREF(made[k]);
    return NULL;
}

static PyObject *whole_call(PyObject *callable, PyObject *const *args, size_t flags, PyObject *names)
{
    WholeFunction *self = (WholeFunction *)callable;
    if (names != NULL || PyVectorcall_NARGS(flags) != 1 + self->inputs) {
        PyErr_Format(PyExc_TypeError, "a whole program takes the tuple of its sizes and %d operands", self->inputs);
        return NULL;
    }
    PyObject *words = binding_of(self, args[0]);
    if (words == NULL)
        return NULL;
    Py_INCREF(self); /* another thread may drop it while this one runs without the lock */
    PyObject *answer = PyBytes_CheckExact(words) ? call_bound(self, args, (const int64_t *)PyBytes_AS_STRING(words))
                                                 : PyObject_Vectorcall(words, args, flags, NULL);
    Py_DECREF(self);
    Py_DECREF(words);
    return answer;
}

static int are_numbers(PyObject *dtypes)
{
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(dtypes); k++) {
        PyObject *dtype = PyTuple_GET_ITEM(dtypes, k);
        if (!PyArray_DescrCheck(dtype) || PyDataType_ISFLEXIBLE((PyArray_Descr *)dtype) ||
            PyDataType_ISOBJECT((PyArray_Descr *)dtype)) {
            PyErr_SetString(PyExc_TypeError, "the dtypes of a whole program are those of numbers");
            return 0;
        }
    }
    return 1;
}

/* Read one statement that runs in Python: 0, or -1 with an exception set. */
static int read_call(struct python_call *call, PyObject *entry)
{
    PyObject *ranks;
    if (!PyTuple_Check(entry)) {
        PyErr_SetString(PyExc_TypeError, "statements for Python are tuples");
        return -1;
    }
    if (!PyArg_ParseTuple(entry, "OO!O!i", &call->handler, &PyTuple_Type, &call->dtypes, &PyBytes_Type, &ranks,
                          &call->operands))
        return -1;
    call->count = (int)PyTuple_GET_SIZE(call->dtypes);
    if (call->count > MAX_CALL_ARRAYS || PyBytes_GET_SIZE(ranks) != call->count || call->operands < 0 ||
        call->operands > call->count) {
        PyErr_Format(PyExc_ValueError, "a statement has up to %d operands and results, each of some dtype and rank",
                     MAX_CALL_ARRAYS);
        return -1;
    }
    memcpy(call->ranks, PyBytes_AS_STRING(ranks), (size_t)call->count);
    for (int k = 0; k < call->count; k++) {
        if (call->ranks[k] > NPY_MAXDIMS) {
            PyErr_Format(PyExc_ValueError, "arrays have up to %d axes", NPY_MAXDIMS);
            return -1;
        }
    }
    return are_numbers(call->dtypes) ? 0 : -1;
}

static int read_calls(WholeFunction *self)
{
    self->call_count = PyTuple_GET_SIZE(self->calls);
    self->python = PyMem_Calloc((size_t)self->call_count + 1, sizeof *self->python);
    if (self->python == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (int64_t k = 0; k < self->call_count; k++)
        if (read_call(&self->python[k], PyTuple_GET_ITEM(self->calls, k)) < 0)
            return -1;
    return 0;
}

static int are_constants(PyObject *constants)
{
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(constants); k++) {
        PyObject *o = PyTuple_GET_ITEM(constants, k);
        if (!PyArray_CheckExact(o) || !PyArray_ISCARRAY_RO((PyArrayObject *)o)) {
            PyErr_SetString(PyExc_TypeError, "the constants of a whole program are contiguous arrays");
            return 0;
        }
    }
    return 1;
}

/* Whether outputs reuse only existing inputs. */
static int are_inputs(const WholeFunction *self)
{
    if (PyBytes_GET_SIZE(self->over) != (Py_ssize_t)sizeof(int32_t) * self->outputs)
        return 0;
    for (int k = 0; k < self->outputs; k++)
        if (input_under(self, k) < 0 || input_under(self, k) > self->inputs)
            return 0;
    return 1;
}

/* Check and count the arguments of a new function: 0, or -1 with an exception set. */
static int count_arrays(WholeFunction *self, PyObject *ranks, int inputs)
{
    const Py_ssize_t every = PyTuple_GET_SIZE(self->dtypes), constants = PyTuple_GET_SIZE(self->constants);
    self->inputs = inputs;
    self->outputs = (int)every - inputs;
    self->constant_count = (int)constants;
    if (inputs < 0 || self->outputs < self->bare || every + constants > MAX_WHOLE_ARRAYS || self->sizes < 0 ||
        self->sizes > MAX_WHOLE_ARRAYS || PyBytes_GET_SIZE(ranks) != every || !are_inputs(self)) {
        PyErr_Format(PyExc_ValueError, "a whole program has up to %d inputs, constants and outputs", MAX_WHOLE_ARRAYS);
        return -1;
    }
    memcpy(self->ranks, PyBytes_AS_STRING(ranks), (size_t)every);
    for (Py_ssize_t k = 0; k < every; k++)
        self->extents += self->ranks[k];
    return are_numbers(self->dtypes) && are_constants(self->constants) ? 0 : -1;
}

static PyObject *whole_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"address", "dtypes", "ranks", "inputs", "sizes", "constants", "calls", "prepare", "memory",
                            "contiguous", "bare", "over", NULL};
    unsigned long long address;
    PyObject *dtypes, *ranks, *constants, *calls, *prepare, *memory, *contiguous, *over;
    int inputs, sizes, bare;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "$KO!O!iiO!O!OOOpS", names, &address, &PyTuple_Type, &dtypes,
                                     &PyBytes_Type, &ranks, &inputs, &sizes, &PyTuple_Type, &constants, &PyTuple_Type,
                                     &calls, &prepare, &memory, &contiguous, &bare, &over))
        return NULL;
    WholeFunction *self = (WholeFunction *)type->tp_alloc(type, PyBytes_GET_SIZE(ranks));
    if (self == NULL)
        return NULL;
    self->call = whole_call;
    self->function = (tenferro_whole_function *)(uintptr_t)address;
    self->sizes = sizes;
    self->bare = bare;
    self->over = Py_NewRef(over);
    self->dtypes = Py_NewRef(dtypes);
    self->constants = Py_NewRef(constants);
    self->calls = Py_NewRef(calls);
    self->prepare = Py_NewRef(prepare);
    self->memory = Py_NewRef(memory);
    self->contiguous = Py_NewRef(contiguous);
    self->bindings = PyDict_New();
    if (self->bindings == NULL || count_arrays(self, ranks, inputs) < 0 || read_calls(self) < 0)
        Py_CLEAR(self);
    return (PyObject *)self;
}

static int whole_traverse(PyObject *o, visitproc visit, void *arg)
{
    WholeFunction *self = (WholeFunction *)o;
    Py_VISIT(self->calls);
    Py_VISIT(self->prepare);
    Py_VISIT(self->contiguous);
    return 0;
}

static void whole_dealloc(PyObject *o)
{
    WholeFunction *self = (WholeFunction *)o;
    PyObject_GC_UnTrack(o);
    Py_XDECREF(self->over);
    Py_XDECREF(self->dtypes);
    Py_XDECREF(self->constants);
    Py_XDECREF(self->calls);
    Py_XDECREF(self->prepare);
    Py_XDECREF(self->memory);
    Py_XDECREF(self->contiguous);
    Py_XDECREF(self->bindings);
    Py_XDECREF(self->known);
    Py_XDECREF(self->words);
    PyMem_Free(self->python);
    Py_TYPE(o)->tp_free(o);
}

static PyMemberDef whole_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(WholeFunction, call), READONLY},
    {"bindings", T_OBJECT, offsetof(WholeFunction, bindings), READONLY, "Words of a run by sizes."},
    {NULL},
};

static PyTypeObject whole_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "tenferro_cpu.native._compiled.WholeFunction",
    .tp_doc = "A whole program as machine code.",
    .tp_basicsize = offsetof(WholeFunction, ranks),
    .tp_itemsize = 1,
    .tp_new = whole_new,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_vectorcall_offset = offsetof(WholeFunction, call),
    .tp_call = PyVectorcall_Call,
    .tp_dealloc = whole_dealloc,
    .tp_traverse = whole_traverse,
    .tp_members = whole_members,
};

int tenferro_add_whole(PyObject *module)
{
    return PyModule_AddType(module, &whole_type);
}
