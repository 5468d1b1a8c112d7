/* `StridedEntry`: an element-wise kernel as a callable of operands of any strides, planned anew in every call.
 *
 * It plans what `Elementwise` plans in Python for a layout: extents and strides of the iteration space, with contiguous axes
 * merged; the axis that is best as the row; and the machine code for the access pattern along it. Nothing is cached per
 * size, so a new shape costs as much as a known one. */
#include "eager/entry.h"
#include "status.h"

/* Access of an operand along a row: two bits per operand and result in the key of a variant. */
enum access { ACCESS_UNIT, ACCESS_FIXED, ACCESS_STRIDED };

typedef struct {
    struct entry entry;      /* the owner is an array of pairs, a key and machine code, up to one without code */
    const int64_t *variants; /* those; Python adds to them */
    unsigned watch; /* floating-point status bits that call for the fallback */
    int scan;       /* size of a number of the result, where it must be finite; or 0 */
    double cost;
    struct number numbers[MAX_OPERANDS];
} StridedEntry;

struct plan {
    const StridedEntry *self;
    int rank, every;
    int64_t total;
    npy_intp shape[MAX_AXES];
    PyArrayObject *arrays[MAX_OPERANDS]; /* NULL for numbers */
    struct slot slots[MAX_OPERANDS];
    char *data[MAX_OPERANDS];
    int count; /* of merged axes; the last of the space is the first here */
    int64_t extents[MAX_AXES], steps[MAX_AXES + 1][MAX_OPERANDS];
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
    if (!is_array_of(o, self->entry.descrs[k], NPY_ARRAY_ALIGNED) || rank > MAX_AXES)
        return 0;
    p->arrays[k] = x;
    p->data[k] = PyArray_BYTES(x);
    p->rank = rank > p->rank ? rank : p->rank;
    return 1;
}

/* The extent of an axis of the space, and the strides of the operands along it; -1 where they do not broadcast. */
static int64_t take_axis(const struct plan *p, int axis, int64_t *steps)
{
    int64_t extent = 1;
    for (int k = 0; k < p->self->entry.inputs; k++) {
        const int own = p->arrays[k] == NULL ? -1 : axis - (p->rank - PyArray_NDIM(p->arrays[k]));
        const int64_t n = own < 0 ? 1 : PyArray_DIM(p->arrays[k], own);
        steps[k] = n == 1 ? 0 : PyArray_STRIDE(p->arrays[k], own);
        if (n != 1 && extent != 1 && n != extent)
            return -1;
        extent = n != 1 ? n : extent;
    }
    return extent;
}

/* Whether an axis with these strides continues the last merged axis. */
static int meets(const struct plan *p, const int64_t *steps)
{
    if (p->count == 0)
        return 0;
    for (int k = 0; k < p->every; k++)
        if (p->steps[p->count - 1][k] * p->extents[p->count - 1] != steps[k])
            return 0;
    return 1;
}

/* The broadcast space of the operands, from its last axis; contiguous axes are merged. Returns 1, or 0 if the
 * operands do not broadcast, or to too many elements. */
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
        for (int k = p->self->entry.inputs; k < p->every; k++)
            steps[k] = p->total * p->self->entry.sizes[k];
        if (__builtin_mul_overflow(p->total, extent, &p->total))
            return 0;
        if (meets(p, steps))
            p->extents[p->count - 1] *= extent;
        else
            p->extents[p->count++] = extent;
    }
    if (p->count == 0) {
        p->extents[p->count++] = 1;
        for (int k = 0; k < p->every; k++)
            p->steps[0][k] = p->self->entry.sizes[k];
    }
    return 1;
}

/* The axis that is the best row, as `Elementwise` chooses it: its length, a quarter of it for each operand that must be
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
            const enum access access = step == p->self->entry.sizes[k] ? ACCESS_UNIT
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

/* The machine code for a row, or NULL. Rows step by whole elements: complex numbers in records may not. */
static row_kernel *variant(const struct plan *p, int64_t key, const int64_t *steps)
{
    const int64_t *pair = p->self->variants;
    while (pair[1] != 0 && pair[0] != key)
        pair += 2;
    for (int k = 0; k < p->every; k++)
        if (steps[k] & (p->self->entry.sizes[k] - 1))
            return NULL;
    return kernel_at((unsigned long long)pair[1]);
}

/* Run the kernel over the space, with the row `best`: 0, or -1 with an exception set. */
static int run(struct plan *p, row_kernel *kernel, int best)
{
    int64_t extents[MAX_AXES], steps[MAX_AXES * MAX_OPERANDS];
    struct walk walk = {kernel, p->every, p->extents[best], 0, 1, p->data, p->steps[best], NULL, extents, steps};
    for (int axis = p->count - 1; axis >= 0; axis--) {
        if (axis == best)
            continue;
        memcpy(steps + walk.rank * p->every, p->steps[axis], (size_t)p->every * sizeof *steps);
        extents[walk.rank++] = p->extents[axis];
    }
    /* The status is per thread, so the team is not used if it matters. */
    const double cost = p->self->watch || p->self->scan ? 0.0 : p->self->cost;
    return tenferro_walk(&walk, cost, 0);
}

static PyObject *strided_call(PyObject *callable, PyObject *const *args, size_t flags, PyObject *names)
{
    StridedEntry *self = (StridedEntry *)callable;
    struct plan p;
    PyArrayObject *made[MAX_OPERANDS];
    row_kernel *kernel = NULL;
    int64_t key = 0;
    int best = 0;
    p.self = self;
    p.every = self->entry.inputs + self->entry.outputs;
    p.rank = 0;
    if (names != NULL || PyVectorcall_NARGS(flags) != self->entry.inputs)
        return pass_on(self->entry.fallback, args, flags, names);
    for (int k = 0; k < self->entry.inputs; k++)
        if (!take_operand(&p, k, args[k]))
            return pass_on(self->entry.fallback, args, flags, names);
    if (p.rank == 0 || !plan_axes(&p)) /* without axes NumPy gives scalars */
        return pass_on(self->entry.fallback, args, flags, names);
    if (p.total > self->entry.most)
        return pass_on(self->entry.large, args, flags, names);
    if (p.total > 0) {
        best = best_row(&p, &key);
        kernel = variant(&p, key, p.steps[best]);
        if (kernel == NULL)
            return pass_on(self->entry.fallback, args, flags, names);
    }
    if (new_arrays(made, self->entry.outputs, self->entry.descrs + self->entry.inputs, p.rank, p.shape) < 0)
        return NULL;
    if (p.total > 0) {
        for (int k = 0; k < self->entry.outputs; k++)
            p.data[self->entry.inputs + k] = PyArray_BYTES(made[k]);
        if (self->watch)
            status_clear();
        if (run(&p, kernel, best) < 0) {
            drop_arrays(made, self->entry.outputs);
            return NULL;
        }
        if ((self->watch && status_read() & self->watch) ||
            (self->scan &&
             TENFERRO_CHOOSE(tenferro_scan)(PyArray_DATA(made[0]), PyArray_NBYTES(made[0]), self->scan))) {
            drop_arrays(made, self->entry.outputs);
            return tenferro_pass_on_to_warn(&self->entry, args, flags);
        }
    }
    return given_results(made, self->entry.outputs);
}

static PyObject *strided_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"variants", "dtypes", "fallback", "large", "most", "cost", "watch", "scan", NULL};
    PyObject *variants, *dtypes, *fallback, *large;
    int watch;
    StridedEntry *self = (StridedEntry *)type->tp_alloc(type, 0);
    if (self == NULL ||
        !PyArg_ParseTupleAndKeywords(args, keywords, "$O!O!OOLdpi", names, &PyArray_Type, &variants, &PyTuple_Type,
                                     &dtypes, &fallback, &large, &self->entry.most, &self->cost, &watch, &self->scan) ||
        tenferro_fill_entry(&self->entry, strided_call, dtypes, (int)PyTuple_GET_SIZE(dtypes) - 1, fallback, large,
                            variants) < 0) {
        Py_XDECREF(self);
        return NULL;
    }
    self->variants = PyArray_DATA((PyArrayObject *)variants);
    self->watch = watch ? STATUS_WATCHED : 0;
    for (int k = 0; k < self->entry.inputs; k++)
        self->numbers[k] = number_of(self->entry.descrs[k]);
    return (PyObject *)self;
}

static PyTypeObject strided_type =
    ENTRY_TYPE(StridedEntry, strided_new, "An element-wise kernel of operands of any strides.");

int tenferro_add_strided(PyObject *module)
{
    return PyModule_AddType(module, &strided_type);
}
