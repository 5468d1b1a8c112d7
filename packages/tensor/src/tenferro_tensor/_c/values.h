/* The objects that C code reads, and the state of the process; see also _accelerated.pyi and the Python twins in
   _interpreted.py. A field may be NULL only where its comment says so. */
#ifndef TENFERRO_VALUES_H
#define TENFERRO_VALUES_H

#include "_c/accelerated.h"

/* A value of any kind. All kinds have one layout, so that an object can change its kind when its elements are assigned
   to: see `stand_for`. `Tensor` derives from TensorBase, and has neither level nor link; `EagerTensor` from
   RecordedBase, `Dual` from DualBase. A field is NULL during construction, if its kind does not use it, or if it was
   deleted. */
typedef struct Value {
    PyObject_HEAD
    PyObject *inside; /* the raw array of a tensor; for other kinds the inner value, of a lower level */
    PyObject *spec;   /* its Spec */
    PyObject *level;  /* an int: the level of differentiation */
    PyObject *link;   /* the Node that recorded it; for a dual value the tangent */
    PyObject *weak;
    PyObject *view;            /* (base, steps) if it is derived again when its base changes; NULL for others */
    struct Value *next, *prev; /* ring of a base and its views; NULL for an object that is alone */
} Value;

/* The record of one operation in reverse mode. Objects are NULL once the garbage collector or user code cleared them. */
typedef struct {
    PyObject_HEAD
    long long seq;     /* position in the order of recording, assigned on creation */
    PyObject *vjp;     /* vjp(g, saved): one cotangent, or None, for each parent; None at a leaf */
    PyObject *parents; /* tuple of the nodes of the differentiated operands */
    PyObject *saved;   /* residuals, operands and outputs that `vjp` needs: a tuple, or None */
} Node;

/* How to run one op on operands of given specs; immutable, and replaced by another entry of its key. */
typedef struct {
    PyObject_HEAD
    PyObject *key;  /* tuple: see `OpBase.entries` */
    PyObject *run;  /* kernel on raw arrays and Python scalars */
    PyObject *out;  /* Spec of the result, or a tuple of them */
    char many;      /* whether `out` is a tuple, and `run` returns one */
    PyObject *save; /* tuple of the indices, among operands and then outputs, of the residuals of a node */
    PyObject *vjp;  /* `vjp` of the nodes; None if nothing is recorded */
} Entry;

/* How to run a program on tensors of given specs: an entry whose `run` takes `values` before the raw arrays, and whose
   `out` is None if `finish` creates the result. `step` is a fast path. */
typedef struct {
    Entry entry;
    PyObject *values; /* values of the symbolic sizes that the program needs */
    PyObject *finish; /* finish(raw): the result for the raw outputs */
    PyObject *fresh;  /* fresh(): whether the entry is up to date; None if it always is */
    PyObject *failed; /* failed(error): notified of an error of the program */
    PyObject *step;   /* kernel of the only equation of the program, or None */
    PyObject *order;  /* bytes: for each operand of `step` its index among the raw arrays followed by `extras` */
    PyObject *extras; /* tuple of the constants and numbers that `step` takes */
} ProgramEntry;

#define STEP_OPERANDS 16

#define RECENT 8 /* a power of two */

/* An op, which is called with operands; `Op` derives from it. */
typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject *entries;     /* dict of entries by key; NULL once the collector cleared it */
    Py_ssize_t arity;      /* number of positional operands, or ANY_ARITY; other calls go to `bound_call` */
    Py_ssize_t bound;      /* largest number of entries; the table is cleared when it is full */
    Entry *recent[RECENT]; /* recently used entries, by a hash of their keys; each NULL or one of `entries` */
} Op;

#define ANY_ARITY (-1) /* any number of positional operands, no keywords */

/* State that every call reads. */
typedef struct {
    PyObject_HEAD
    Py_ssize_t open_scopes;      /* number of scopes, in any thread, that select a device or record decisions */
    Py_ssize_t recording_scopes; /* number of scopes, in any thread, that affect recording */
    PyTypeObject *tensor;        /* the class of concrete tensors; NULL before it is defined */
    PyTypeObject *recorded;      /* the class of recorded values; NULL before it is defined */
    PyTypeObject *dual;          /* the class of values with tangents; NULL before it is defined */
    PyObject *record;            /* record(level, op, operands), the slow path in Python; NULL before it is set */
    PyObject *parts;             /* the class of cotangents in parts; NULL before it is defined */
    PyTypeObject *spec;          /* the class of specs; NULL before it is defined */
    Py_ssize_t place_offset;     /* of the slot `place` in a spec */
    PyObject *host;              /* the place main memory, without a compute device; NULL before it is set */
} State;

extern PyTypeObject ValueBase_Type, TensorBase_Type, RecordedBase_Type, DualBase_Type, Node_Type, Steps_Type;
extern PyTypeObject Entry_Type, ProgramEntry_Type, OpBase_Type;
extern State tenferro_state;

/* Whether no scope affects concrete operations. */
#define UNSCOPED (tenferro_state.open_scopes == 0)
#define IS_TENSOR(o) Py_IS_TYPE(o, tenferro_state.tensor)
#define ON_HOST(s) (Py_IS_TYPE(s, tenferro_state.spec) \
                    && *(PyObject **)((char *)(s) + tenferro_state.place_offset) == tenferro_state.host)
#define IS_SCALAR_TYPE(t) ((t) == &PyFloat_Type || (t) == &PyLong_Type || (t) == &PyComplex_Type || (t) == &PyBool_Type)

/* Deallocates concrete tensors; their memory is reused for later ones. */
void tenferro_dealloc_tensor(PyObject *self);

/* A concrete tensor of raw data, whose reference is stolen, and a spec. */
PyObject *tenferro_tensor(PyObject *data, PyObject *spec);

/* Put `z`, which is alone, into the ring of `x`; take an object out of its ring. */
void tenferro_join(Value *z, Value *x);
void tenferro_leave(Value *x);

/* Whether two raw arrays lie in the memory of one array. */
int tenferro_in_one(PyObject *z, PyObject *x);

/* Whether a concrete tensor and the views of its ring are the only holders of their memory, and may write to it. */
int tenferro_may_write(Value *x);

/* Whether the memory of an object may be written to by NumPy, without a scope, a transform or another holder. */
int tenferro_is_writable(PyObject *self);

/* Values that a raw array accepts without conversion, borrowed; NULL for others. */
PyObject *tenferro_host_values(PyArrayObject *raw, PyObject *values);

/* ``self[key] = values``, for values of every kind. */
int tenferro_assign(PyObject *self, PyObject *key, PyObject *values);

/* Another object for the same value. */
PyObject *tenferro_alias(PyObject *value);

/* A node with the next sequence number; steals the references, even on failure. */
PyObject *tenferro_node(PyObject *vjp, PyObject *parents, PyObject *saved);

/* A recorded or dual value; steals the references, even on failure. */
PyObject *tenferro_differentiated(PyTypeObject *type, PyObject *value, PyObject *spec, PyObject *level, PyObject *link);

/* The entry of an op for `n` operands, represented by `parts` (specs, or classes of Python scalars), of which those in
   `mask` are differentiated: a new reference, or NULL without an exception if there is none. */
Entry *tenferro_entry(Op *op, long mask, PyObject *const *parts, Py_ssize_t n);

#define DIRECT_MAX_BYTES (1 << 18) /* largest array for which NumPy's function is fastest */

/* The spec of a NumPy array or scalar in main memory: a new reference. */
PyObject *tenferro_spec(PyObject *raw);

/* Whether a part of a key is an integer, a slice of integers, None or an ellipsis. */
int tenferro_is_basic(PyObject *part);

/* `x[key]` for a key of such parts; NULL for other or invalid keys, with an exception only if out of memory. */
PyObject *tenferro_view(PyArrayObject *x, PyObject *key);

/* `x[key]` of a concrete tensor. */
PyObject *tenferro_subscript(PyObject *self, PyObject *key);

/* The tp_call and vectorcall of ops. */
PyObject *tenferro_op_call(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *tenferro_op_vectorcall(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *names);

/* The result of an op on operands of which some are recorded or dual, the others concrete or Python scalars; NULL
   without an exception to leave the call to Python. */
PyObject *tenferro_differentiate(Op *op, PyObject *const *operands, Py_ssize_t n);

/* Runs `Steps`: cotangents of the operands of an op, from that of the output (or a list of them) and residuals. */
PyObject *tenferro_run_steps(PyObject *steps, PyObject *given, PyObject *saved);

#endif
