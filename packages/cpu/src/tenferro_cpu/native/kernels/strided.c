/* `StridedEntry`: an element-wise kernel as a callable of operands of any strides, planned anew in every call.
 *
 * What `Fused` plans in Python for a layout: extents and strides of the iteration space, axes merged where one goes on
 * where the other ends, the axis that is read best as the row, and machine code for how the operands lie along it.
 * Nothing depends on sizes, so that a new shape costs what a known one does. */
#include "kernels/walk.h"
#include "operands.h"
#include "status.h"

#include <structmember.h>

/* How an operand lies along a row: two bits of the key of a variant for each operand and result. */
enum access { ACCESS_UNIT, ACCESS_FIXED, ACCESS_STRIDED };

enum { NO_AXIS = 255 };

typedef struct {
    PyObject_HEAD
    vectorcallfunc call;
    PyObject *fallback, *large;
    PyArrayObject *variants; /* pairs of a key and machine code, up to one without code; Python adds to them */
    int inputs, outputs;
    int rank;                /* axes of the space, or 0: those of the largest operand, whose last ones are the others' */
    unsigned watch;          /* bits of the floating-point status that are left to the fallback */
    int scan;                /* size of a number of the only result, where it must be finite; or 0 */
    int64_t most;            /* larger spaces go to `large` */
    double cost;
    PyArray_Descr *descrs[MOST_OPERANDS];
    int64_t sizes[MOST_OPERANDS]; /* of an element in bytes */
    struct number numbers[MOST_OPERANDS];
    uint8_t ranks[MOST_OPERANDS], axes[MOST_OPERANDS][MOST_AXES]; /* the operand's own axis for each of the space */
} StridedEntry;

struct plan {
    const StridedEntry *self;
    int rank, every;
    int64_t total;
    npy_intp shape[MOST_AXES];
    PyArrayObject *arrays[MOST_OPERANDS]; /* NULL for numbers */
    struct slot slots[MOST_OPERANDS];
    char *data[MOST_OPERANDS];
    int count; /* of merged axes; the last of the space is the first here */
    int64_t extents[MOST_AXES], steps[MOST_AXES + 1][MOST_OPERANDS];
};

static int take_operand(struct plan *p, int k, PyObject *o)
{
    const StridedEntry *self = p->self;
    p->arrays[k] = NULL;
    if (!PyArray_CheckExact(o)) {
        p->data[k] = read_number(o, &self->numbers[k], &p->slots[k]);
        return p->data[k] != NULL;
    }
    PyArrayObject *x = (PyArrayObject *)o;
    const int rank = PyArray_NDIM(x);
    if (!is_array_of(o, self->descrs[k], NPY_ARRAY_ALIGNED) || rank > MOST_AXES ||
        (self->rank != 0 && rank != self->ranks[k]))
        return 0;
    p->arrays[k] = x;
    p->data[k] = PyArray_BYTES(x);
    p->rank = rank > p->rank ? rank : p->rank;
    return 1;
}

/* The operand's own axis for an axis of the space, or -1. */
static int own_axis(const struct plan *p, int k, int axis)
{
    if (p->arrays[k] == NULL)
        return -1;
    const int rank = PyArray_NDIM(p->arrays[k]);
    const int own = p->self->rank == 0 ? axis - (p->rank - rank) : p->self->axes[k][axis];
    return own < rank ? own : -1;
}

/* The extent of an axis of the space, and the strides of the operands along it; -1 where they do not broadcast. */
static int64_t take_axis(const struct plan *p, int axis, int64_t *steps)
{
    int64_t extent = 1;
    for (int k = 0; k < p->self->inputs; k++) {
        const int own = own_axis(p, k, axis);
        const int64_t n = own < 0 ? 1 : PyArray_DIM(p->arrays[k], own);
        steps[k] = n == 1 ? 0 : PyArray_STRIDE(p->arrays[k], own);
        if (n != 1 && extent != 1 && n != extent)
            return -1;
        extent = n != 1 ? n : extent;
    }
    return extent;
}

/* Whether the last merged axis goes on along an axis of these strides. */
static int meets(const struct plan *p, const int64_t *steps)
{
    if (p->count == 0)
        return 0;
    for (int k = 0; k < p->every; k++)
        if (p->steps[p->count - 1][k] * p->extents[p->count - 1] != steps[k])
            return 0;
    return 1;
}

/* The space that the operands broadcast to, from its last axis on; an axis that goes on where the one before it ends is
 * merged with that. 1, or 0 where they do not broadcast. */
static int plan_axes(struct plan *p)
{
    p->total = 1;
    p->count = 0;
    for (int axis = p->rank - 1; axis >= 0; axis--) {
        int64_t *steps = p->steps[p->count];
        const int64_t extent = take_axis(p, axis, steps);
        if (extent < 0)
            return 0;
        p->shape[axis] = extent;
        if (extent == 1)
            continue;
        for (int k = p->self->inputs; k < p->every; k++)
            steps[k] = p->total * p->self->sizes[k];
        p->total *= extent;
        if (meets(p, steps))
            p->extents[p->count - 1] *= extent;
        else
            p->extents[p->count++] = extent;
    }
    if (p->count == 0) {
        p->extents[p->count++] = 1;
        for (int k = 0; k < p->every; k++)
            p->steps[0][k] = p->self->sizes[k];
    }
    return 1;
}

/* The axis that is the best row, as `Fused` chooses it: its length, a quarter of it for each operand that must be
 * gathered. The key of the variant for it goes to `key`. */
static int best_row(const struct plan *p, int64_t *key)
{
    int best = 0;
    int64_t merit = -1;
    for (int axis = 0; axis < p->count; axis++) {
        int64_t own = 0;
        int unstrided = 0;
        for (int k = 0; k < p->every; k++) {
            const int64_t step = p->steps[axis][k];
            const enum access access = step == p->self->sizes[k] ? ACCESS_UNIT
                                       : step == 0               ? ACCESS_FIXED
                                                                 : ACCESS_STRIDED;
            own = own << 2 | access;
            unstrided += access != ACCESS_STRIDED;
        }
        const int64_t found = least(p->extents[axis], 64) << 2 * unstrided;
        if (found > merit) {
            merit = found;
            best = axis;
            *key = own;
        }
    }
    return best;
}

static row_kernel *variant(const StridedEntry *self, int64_t key)
{
    const int64_t *pair = PyArray_DATA(self->variants);
    while (pair[1] != 0 && pair[0] != key)
        pair += 2;
    return kernel_at((unsigned long long)pair[1]);
}

/* Run the kernel over the space, with the row `best`: 0, or -1 with an exception set. */
static int run(struct plan *p, row_kernel *kernel, int best)
{
    int64_t extents[MOST_AXES], steps[MOST_AXES * MOST_OPERANDS];
    struct walk walk = {kernel, p->every, p->extents[best], 0, 1, p->data, p->steps[best], NULL, extents, steps};
    for (int axis = p->count - 1; axis >= 0; axis--) {
        if (axis == best)
            continue;
        memcpy(steps + walk.rank * p->every, p->steps[axis], (size_t)p->every * sizeof *steps);
        extents[walk.rank++] = p->extents[axis];
    }
    /* The status belongs to a thread, so no team takes part where it counts. */
    const double cost = p->self->watch || p->self->scan ? 0.0 : p->self->cost;
    return tenferro_walk(&walk, cost, 0);
}

static PyObject *strided_call(PyObject *callable, PyObject *const *args, size_t flags, PyObject *names)
{
    StridedEntry *self = (StridedEntry *)callable;
    struct plan p;
    PyArrayObject *made[MOST_OPERANDS];
    row_kernel *kernel = NULL;
    int64_t key = 0;
    int best = 0;
    p.self = self;
    p.every = self->inputs + self->outputs;
    p.rank = self->rank;
    if (names != NULL || PyVectorcall_NARGS(flags) != self->inputs)
        return pass_on(self->fallback, args, flags, names);
    for (int k = 0; k < self->inputs; k++)
        if (!take_operand(&p, k, args[k]))
            return pass_on(self->fallback, args, flags, names);
    if (p.rank == 0 || !plan_axes(&p)) /* without axes NumPy gives scalars */
        return pass_on(self->fallback, args, flags, names);
    if (p.total > self->most)
        return pass_on(self->large, args, flags, names);
    if (p.total > 0) {
        best = best_row(&p, &key);
        kernel = variant(self, key);
        if (kernel == NULL)
            return pass_on(self->fallback, args, flags, names);
    }
    if (new_arrays(made, self->outputs, self->descrs + self->inputs, p.rank, p.shape) < 0)
        return NULL;
    if (p.total > 0) {
        for (int k = 0; k < self->outputs; k++)
            p.data[self->inputs + k] = PyArray_BYTES(made[k]);
        if (self->watch)
            status_clear();
        if (run(&p, kernel, best) < 0) {
            drop_arrays(made, self->outputs);
            return NULL;
        }
        if ((self->watch && status_read() & self->watch) ||
            (self->scan &&
             TENFERRO_CHOOSE(tenferro_scan)(PyArray_DATA(made[0]), PyArray_NBYTES(made[0]), self->scan))) {
            drop_arrays(made, self->outputs);
            return pass_on(self->fallback, args, flags, names);
        }
    }
    return given_results(made, self->outputs);
}

static int strided_traverse(PyObject *o, visitproc visit, void *arg)
{
    StridedEntry *self = (StridedEntry *)o;
    Py_VISIT(self->fallback);
    Py_VISIT(self->large);
    return 0;
}

static int strided_clear(PyObject *o)
{
    StridedEntry *self = (StridedEntry *)o;
    Py_CLEAR(self->fallback);
    Py_CLEAR(self->large);
    return 0;
}

static void strided_dealloc(PyObject *o)
{
    StridedEntry *self = (StridedEntry *)o;
    PyObject_GC_UnTrack(o);
    strided_clear(o);
    Py_CLEAR(self->variants);
    for (int k = 0; k < self->inputs + self->outputs; k++)
        Py_CLEAR(self->descrs[k]);
    Py_TYPE(o)->tp_free(o);
}

/* The dtype of each operand and result; axes of the space that the operands' own axes are, where they are given. */
static int strided_operands(StridedEntry *self, PyObject *dtypes, int inputs, PyObject *axes)
{
    const Py_ssize_t every = PyTuple_GET_SIZE(dtypes);
    if (every > MOST_OPERANDS || inputs < 1 || inputs >= every || self->rank < 0 || self->rank > MOST_AXES ||
        (self->rank != 0) != (axes != Py_None) ||
        (axes != Py_None && (!PyTuple_Check(axes) || PyTuple_GET_SIZE(axes) != inputs))) {
        PyErr_SetString(PyExc_ValueError, "the operands of a strided entry do not fit together");
        return -1;
    }
    memset(self->axes, NO_AXIS, sizeof self->axes);
    for (int k = 0; k < every; k++) {
        if (!PyArray_DescrCheck(PyTuple_GET_ITEM(dtypes, k))) {
            PyErr_SetString(PyExc_TypeError, "dtypes are numpy.dtype objects");
            return -1;
        }
        self->descrs[k] = (PyArray_Descr *)Py_NewRef(PyTuple_GET_ITEM(dtypes, k));
        self->sizes[k] = PyDataType_ELSIZE(self->descrs[k]);
        self->inputs += k < inputs;
        self->outputs += k >= inputs;
        if (k >= inputs)
            continue;
        PyObject *own = axes == Py_None ? NULL : PyTuple_GET_ITEM(axes, k);
        const Py_ssize_t count = own == NULL ? 0 : PyTuple_Check(own) ? PyTuple_GET_SIZE(own) : MOST_AXES + 1;
        for (Py_ssize_t i = 0; i < count; i++) {
            const long axis = count > MOST_AXES ? -1 : PyLong_AsLong(PyTuple_GET_ITEM(own, i));
            if (axis < 0 || axis >= self->rank) {
                if (!PyErr_Occurred())
                    PyErr_SetString(PyExc_ValueError, "an operand has no such axis of the space");
                return -1;
            }
            self->axes[k][axis] = (uint8_t)i;
        }
        self->ranks[k] = (uint8_t)count;
        if (count == 0)
            self->numbers[k] = number_of(self->descrs[k]);
        if (axes != Py_None)
            self->numbers[k].kind = NUMBER_NONE; /* numbers of regions are NumPy's */
    }
    return 0;
}

static PyObject *strided_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"variants", "dtypes", "inputs", "fallback", "large", "axes", "rank",
                            "most", "cost", "watch", "scan", NULL};
    PyObject *variants, *dtypes, *fallback, *large, *axes;
    long long most;
    int inputs, rank, watch, scan;
    double cost;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "$O!O!iOOOiLdpi", names, &PyArray_Type, &variants, &PyTuple_Type,
                                     &dtypes, &inputs, &fallback, &large, &axes, &rank, &most, &cost, &watch, &scan))
        return NULL;
    StridedEntry *self = (StridedEntry *)type->tp_alloc(type, 0);
    if (self == NULL)
        return NULL;
    self->call = strided_call;
    self->rank = rank;
    self->most = most;
    self->cost = cost;
    self->watch = watch ? STATUS_WATCHED : 0;
    self->scan = scan;
    self->fallback = Py_NewRef(fallback);
    self->large = Py_NewRef(large);
    self->variants = (PyArrayObject *)Py_NewRef(variants);
    if (strided_operands(self, dtypes, inputs, axes) < 0)
        Py_CLEAR(self);
    return (PyObject *)self;
}

static PyMemberDef strided_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(StridedEntry, call), READONLY},
    {"fallback", T_OBJECT, offsetof(StridedEntry, fallback), READONLY, "Called with the same arguments for all else."},
    {"large", T_OBJECT, offsetof(StridedEntry, large), READONLY, "Called for spaces of more than `most` elements."},
    {"most", T_LONGLONG, offsetof(StridedEntry, most), READONLY, "Elements of the largest space."},
    {NULL},
};

static PyTypeObject strided_type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "tenferro_cpu.native._compiled.StridedEntry",
    .tp_doc = "An element-wise kernel as a callable of operands of any strides.",
    .tp_basicsize = sizeof(StridedEntry),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_vectorcall_offset = offsetof(StridedEntry, call),
    .tp_call = PyVectorcall_Call,
    .tp_new = strided_new,
    .tp_dealloc = strided_dealloc,
    .tp_traverse = strided_traverse,
    .tp_clear = strided_clear,
    .tp_members = strided_members,
};

int tenferro_add_strided(PyObject *module)
{
    return PyModule_AddType(module, &strided_type);
}
