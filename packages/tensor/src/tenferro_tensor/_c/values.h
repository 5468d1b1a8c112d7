/* Objects that C code reads, and the state of the process: documented here, in _accelerated.pyi, and in Python as
   their twins in _interpreted.py. A field may be NULL where the text says so; all others are never NULL. */
#ifndef TENFERRO_VALUES_H
#define TENFERRO_VALUES_H

#include "_c/accelerated.h"

/* A value of any kind. All kinds are laid out alike, so that an object can go over from one to another when its elements
   are assigned to: see `stand_for`. `Tensor` derives from TensorBase, and has neither level nor link; `EagerTensor`
   from RecordedBase, `Dual` from DualBase. A field is NULL while the value is being made, where its kind has none, and
   where somebody deleted it. */
typedef struct {
    PyObject_HEAD
    PyObject *inside; /* the raw array of a tensor; of others the value inside, of a lower level */
    PyObject *spec;   /* its Spec */
    PyObject *level;  /* an int: the level of differentiation */
    PyObject *link;   /* the Node that recorded it; of a dual value the tangent */
    PyObject *weak;
    char lent; /* whether a caller passed the object to a function that cannot change it for him */
} Value;

/* What reverse mode remembers of one operation. Objects are NULL once the collector or somebody cleared them. */
typedef struct {
    PyObject_HEAD
    long long seq;     /* place in the order of recording, drawn when the node is made */
    PyObject *vjp;     /* vjp(g, saved): one cotangent, or None, for each parent; None where differentiation starts */
    PyObject *parents; /* tuple of the nodes of the differentiated operands */
    PyObject *saved;   /* what `vjp` needs of operands and outputs: a tuple, or None */
} Node;

/* How to run one op on operands of given specs. Immutable: another way replaces it by another entry. */
typedef struct {
    PyObject_HEAD
    PyObject *key;  /* tuple: see `OpBase.entries` */
    PyObject *run;  /* kernel on raw arrays and Python scalars */
    PyObject *out;  /* Spec of the result, or a tuple of them */
    char many;      /* whether `out` is a tuple, and `run` returns one */
    PyObject *save; /* tuple of the positions, among operands and then outputs, of what a node saves; () unrecorded */
    PyObject *vjp;  /* `vjp` of the nodes; None where nothing is recorded */
} Entry;

/* How to run a program on tensors of given specs: an entry whose `run` takes `values` before the raw arrays, and whose
   `out` is None where `finish` makes the result. Of two ways to run, `step` is the shorter one. */
typedef struct {
    Entry entry;
    PyObject *values; /* what the program needs of the sizes */
    PyObject *finish; /* finish(raw): the result of the raw outputs */
    PyObject *fresh;  /* fresh(): whether the entry is still right; None where it always is */
    PyObject *failed; /* failed(error): told the error that the program raised */
    PyObject *step;   /* kernel of the only step of the program, or None */
    PyObject *order;  /* bytes: for each operand of `step` its position among the raw arrays and `extras` */
    PyObject *extras; /* tuple of the constants and numbers that `step` takes */
} ProgramEntry;

#define STEP_OPERANDS 16

#define RECENT 8 /* a power of two */

/* An op, which is called with operands; `Op` derives from it. */
typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject *entries;     /* dict of entries by key; NULL once the collector cleared it */
    Py_ssize_t arity;      /* operands by position that have entries; calls in another form go to `bound_call`; ANY */
    Py_ssize_t bound;      /* most entries; the table starts anew when it is full */
    Entry *recent[RECENT]; /* entries used lately, by the identities in their keys; each NULL or one of `entries` */
} Op;

#define ANY (-1) /* of operands, none by keyword */

/* What is read on every call. */
typedef struct {
    PyObject_HEAD
    Py_ssize_t open_scopes;      /* scopes open in any thread that select a device, or that are told of decisions */
    Py_ssize_t recording_scopes; /* scopes open in any thread in which recording has to ask more */
    PyTypeObject *tensor;        /* the class of concrete tensors; NULL before it is defined */
    PyTypeObject *recorded;      /* the class of recorded values; NULL before it is defined */
    PyTypeObject *dual;          /* the class of values with tangents; NULL before it is defined */
    PyObject *record;            /* record(level, op, operands), for what is left to Python; NULL before it is set */
    PyTypeObject *spec;          /* the class of specs; NULL before it is defined */
    Py_ssize_t place_offset;     /* of the slot `place` in a spec */
    PyObject *host;              /* the place main memory, without a compute device; NULL before it is set */
} State;

extern PyTypeObject ValueBase_Type, TensorBase_Type, RecordedBase_Type, DualBase_Type, Node_Type, Steps_Type;
extern PyTypeObject Entry_Type, ProgramEntry_Type, OpBase_Type;
extern State tenferro_state;

/* Whether nothing is asked of concrete operations but to be done. */
#define UNSCOPED (tenferro_state.open_scopes == 0)
#define IS_TENSOR(o) Py_IS_TYPE(o, tenferro_state.tensor)
#define ON_HOST(s) (Py_IS_TYPE(s, tenferro_state.spec) \
                    && *(PyObject **)((char *)(s) + tenferro_state.place_offset) == tenferro_state.host)
#define IS_SCALAR_TYPE(t) ((t) == &PyFloat_Type || (t) == &PyLong_Type || (t) == &PyComplex_Type || (t) == &PyBool_Type)

/* How objects of the class of concrete tensors are deallocated: their memory is kept for the next ones. */
void tenferro_dealloc_tensor(PyObject *self);

/* A concrete tensor of raw data, a reference that is taken over, and a spec. */
PyObject *tenferro_tensor(PyObject *data, PyObject *spec);

/* ``self[key] = values``, also of values that are no tensors. */
int tenferro_assign(PyObject *self, PyObject *key, PyObject *values);

/* Another object that stands for what a value stands for. */
PyObject *tenferro_alias(PyObject *value);

/* A node at the next place in the order; takes the references over, also where it fails. */
PyObject *tenferro_node(PyObject *vjp, PyObject *parents, PyObject *saved);

/* A recorded value, or one with a tangent; takes the references over, also where it fails. */
PyObject *tenferro_differentiated(PyTypeObject *type, PyObject *value, PyObject *spec, PyObject *level, PyObject *link);

/* The entry of an op for `n` operands that are represented by `parts` (specs, or classes of Python scalars), those of
   `mask` differentiated: a new reference, or NULL without an exception where there is none. */
Entry *tenferro_entry(Op *op, long mask, PyObject *const *parts, Py_ssize_t n);

#define DIRECT_MAX_BYTES (1 << 18) /* of arrays for which NumPy's function is the shortest way */

/* The spec of a NumPy array or scalar in main memory: a new reference. */
PyObject *tenferro_spec(PyObject *raw);

/* Whether a part of a key is an integer, a slice of integers, None or an ellipsis. */
int tenferro_is_basic(PyObject *part);

/* `x[key]` for a key of such parts; NULL where it is not, or does not fit; without an exception, unless memory lacks. */
PyObject *tenferro_view(PyArrayObject *x, PyObject *key);

/* `x[key]` of a concrete tensor. */
PyObject *tenferro_subscript(PyObject *self, PyObject *key);

/* How an op is called. */
PyObject *tenferro_op_call(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *tenferro_op_vectorcall(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *names);

/* The result of an op on operands of which some are recorded, or have tangents, all others being concrete or Python's
   scalars: NULL without an exception where it is for Python to find. */
PyObject *tenferro_differentiate(Op *op, PyObject *const *operands, Py_ssize_t n);

/* Runs `Steps`: cotangents of the operands of an op, from that of the output, or a list of them, and saved values. */
PyObject *tenferro_run_steps(PyObject *steps, PyObject *given, PyObject *saved);

#endif
