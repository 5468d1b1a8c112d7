/* `FusedEntry`: a fused or reducing kernel as a callable of operands in simple layouts, rows of contiguous elements.
 *
 * After the operands one array for each result may be given, or something else for none: it is written to where it
 * fits. An operand may be written over where it lies exactly as a result does, because all operands of an element are
 * read before its results are written. */
#include "eager/entry.h"
#include "status.h"
#include "threads/team.h"

enum { FEW_ROWS = 16 }; /* that are reduced one by one however short they are */

typedef struct {
    struct entry entry;
    row_kernel *kernel, *rest;  /* `rest` combines the partial results of chunks of rows */
    int trailing, reduced, combined; /* as in `Rows` in Python */
    int scan;                   /* size of a number of the only result, where it must be finite; or 0 */
    int64_t shortest, longest;  /* bounds of the row; `longest` is of the number of rows where they are combined */
    int64_t widest;             /* bound of the row where rows are combined */
    int64_t paired, few;        /* rows of up to `paired` elements are taken in spaces of up to `few` */
    int64_t shared;             /* minimum elements for which the team is called */
} FusedEntry;

/* One call: `many` rows of `width` elements; start addresses of operands, and their strides between rows and between
 * elements. */
struct call {
    const FusedEntry *self;
    int operands, lead, length; /* axes that count the rows, and axes of a row */
    int64_t width, many, total;
    const npy_intp *shape;
    char *data[MAX_OPERANDS];
    int64_t steps[MAX_OPERANDS], units[MAX_OPERANDS];
    PyArrayObject *made[MAX_OPERANDS];
};

/* A part of a call, cut into chunks for the team: of rows, or of the elements of the only row. */
struct part {
    const struct call *call;
    char *data[MAX_OPERANDS];
    int64_t width, many, length;
    int by_rows;
};

static void shifted(const struct call *c, char **into, char *const *from, int64_t rows, int64_t elements)
{
    for (int k = 0; k < c->operands; k++)
        into[k] = from[k] + rows * c->steps[k] + elements * c->units[k];
}

static void do_rows(const struct call *c, char **data, int64_t width, int64_t many)
{
    for (int64_t row = 0; row < many; row++) {
        if (row > 0)
            shifted(c, data, data, 1, 0);
        c->self->kernel(data, width, NULL, 1, NULL);
    }
}

static void do_chunk(void *context, int64_t k)
{
    const struct part *p = context;
    const int64_t start = k * p->length, count = least(p->length, (p->by_rows ? p->many : p->width) - start);
    char *data[MAX_OPERANDS];
    shifted(p->call, data, p->data, p->by_rows ? start : 0, p->by_rows ? 0 : start);
    do_rows(p->call, data, p->by_rows ? p->width : count, p->by_rows ? count : 1);
}

static void do_part(const struct call *c, int64_t row, int64_t many, int64_t column, int64_t width)
{
    struct part p = {c, {0}, width, many, 0, c->self->reduced || many > 1};
    shifted(c, p.data, c->data, row, column);
    if (many * width <= UNLOCKED_ELEMENTS) {
        do_rows(c, p.data, width, many);
        return;
    }
    const int64_t threads = many * width >= c->self->shared ? tenferro_team_allowed() : 1;
    const int64_t total = p.by_rows ? many : width, unit = p.by_rows ? 1 : CHUNK_ELEMENTS;
    p.length = threads <= 1 ? total : (total / (threads * CHUNKS_PER_THREAD) / unit + 1) * unit;
    Py_BEGIN_ALLOW_THREADS
    tenferro_team_run(do_chunk, &p, quotient_up(total, p.length), threads);
    Py_END_ALLOW_THREADS
}

/* All rows, in parts between which signals are handled: 0, or -1 with an exception set. */
static int run_rows(struct call *c)
{
    const int64_t elements = tenferro_signal_elements();
    if (c->total <= UNLOCKED_ELEMENTS && c->total <= elements) {
        do_rows(c, c->data, c->width, c->width == 0 ? 0 : c->many);
        return 0;
    }
    const int64_t rows = most(1, elements / c->width), columns = c->self->reduced ? c->width : least(c->width, elements);
    for (int64_t row = 0; row < c->many; row += rows) {
        for (int64_t column = 0; column < c->width; column += columns) {
            do_part(c, row, least(rows, c->many - row), column, least(columns, c->width - column));
            if (tenferro_handle_signals() < 0)
                return -1;
        }
    }
    return 0;
}

/* Rows that are combined element by element: the team takes chunks of rows, and blocks of columns of each. The order of
 * combination depends only on the number of rows, and so does every bit. */
struct grid {
    const struct call *call;
    int64_t blocks, block;     /* of columns */
    char *into[MAX_OPERANDS]; /* output of the chunks, one row after the other */
};

static void combine_block(void *context, int64_t k)
{
    const struct grid *g = context;
    const struct call *c = g->call;
    const int inputs = c->self->entry.inputs;
    const int64_t chunk = k / g->blocks, row = chunk * COMBINED_ROWS, column = k % g->blocks * g->block;
    char *data[MAX_OPERANDS];
    shifted(c, data, c->data, row, column);
    for (int r = inputs; r < c->operands; r++)
        data[r] = g->into[r - inputs] + (chunk * c->width + column) * c->units[r];
    c->self->kernel(data, least(g->block, c->width - column), NULL, least(COMBINED_ROWS, c->many - row), c->steps);
}

/* Compute the partial results of chunks, then combine them. */
static void combine_all(struct grid *g, PyArrayObject **spare, int64_t chunks, int64_t threads)
{
    const struct call *c = g->call;
    const int inputs = c->self->entry.inputs, outputs = c->self->entry.outputs;
    char *partial[2 * MAX_OPERANDS];
    int64_t steps[2 * MAX_OPERANDS];
    for (int k = 0; k < outputs; k++) {
        partial[outputs + k] = c->data[inputs + k];
        g->into[k] = partial[k] = chunks > 1 ? PyArray_BYTES(spare[k]) : c->data[inputs + k];
        steps[k] = steps[outputs + k] = c->units[inputs + k] * c->width;
    }
    const int64_t blocks = threads > 1 ? quotient_up(threads * CHUNKS_PER_THREAD, chunks) : 1;
    g->block = quotient_up(quotient_up(c->width, blocks), CHUNK_ELEMENTS) * CHUNK_ELEMENTS;
    g->blocks = quotient_up(c->width, g->block);
    tenferro_team_run(combine_block, g, g->blocks * chunks, threads);
    if (chunks > 1)
        c->self->rest(partial, c->width, NULL, chunks, steps);
}

static int run_combined(struct call *c)
{
    const FusedEntry *self = c->self;
    if (c->total <= UNLOCKED_ELEMENTS && c->many <= COMBINED_ROWS) {
        self->kernel(c->data, c->width, NULL, c->many, c->steps);
        return 0;
    }
    if (c->width == 0)
        return 0;
    const int64_t chunks = quotient_up(c->many, COMBINED_ROWS);
    const npy_intp cells = chunks * c->width;
    PyArrayObject *spare[MAX_OPERANDS];
    struct grid grid = {.call = c};
    if (chunks > 1 && new_arrays(spare, self->entry.outputs, self->entry.descrs + self->entry.inputs, 1, &cells) < 0)
        return -1;
    const int64_t threads = c->total >= self->shared ? tenferro_team_allowed() : 1;
    Py_BEGIN_ALLOW_THREADS
    combine_all(&grid, spare, chunks, threads);
    Py_END_ALLOW_THREADS
    if (chunks > 1)
        drop_arrays(spare, self->entry.outputs);
    return 0;
}

/* Measure the space: 1 for this entry, 0 for the fallback, -1 for `large`. */
static int measure(struct call *c, PyArrayObject *whole)
{
    const FusedEntry *self = c->self;
    const int rank = PyArray_NDIM(whole);
    c->shape = PyArray_DIMS(whole);
    c->length = self->trailing == 0 ? rank : self->trailing;
    c->lead = rank - c->length;
    if (c->lead < 0)
        return 0;
    c->many = product(c->shape, c->lead);
    c->width = product(c->shape + c->lead, c->length);
    c->total = c->many * c->width;
    if (c->total > self->entry.most)
        return -1;
    if (self->combined) {
        /* Many rows of less than half a vector are read along their columns, by the fallback. */
        if (c->many < 1 || c->many > self->longest || (c->width < 4 && c->total > UNLOCKED_ELEMENTS))
            return 0;
    } else if (c->width > self->longest || c->width < (c->many <= FEW_ROWS ? least(self->shortest, 1) : self->shortest)) {
        return 0;
    }
    return c->width <= self->widest && (c->width > self->paired || c->total <= self->few);
}

/* Check one operand; record its start address, and its strides between rows and between elements. */
static int take_operand(struct call *c, int k, PyObject *o)
{
    const FusedEntry *self = c->self;
    if (!is_array_of(o, self->entry.descrs[k], NPY_ARRAY_CARRAY_RO))
        return 0;
    PyArrayObject *x = (PyArrayObject *)o;
    c->units[k] = self->entry.sizes[k];
    c->steps[k] = self->entry.sizes[k] * c->width;
    c->data[k] = PyArray_BYTES(x);
    return PyArray_NDIM(x) == c->lead + c->length && same_extents(PyArray_DIMS(x), c->shape, c->lead + c->length);
}

/* Whether an operand overlaps a result other than element for element. */
static int clashes(const struct call *c, int k, const char *start, int64_t bytes)
{
    const int64_t own = c->self->entry.sizes[k] * c->total;
    const int apart = c->data[k] + own <= start || start + bytes <= c->data[k];
    return !apart && !(c->data[k] == start && own == bytes);
}

/* Find the arrays to write, the given ones if they fit: 0, or -1 with an exception set. */
static int take_results(struct call *c, PyObject *const *given)
{
    const FusedEntry *self = c->self;
    const npy_intp *shape = c->shape + (self->combined ? c->lead : 0);
    const int rank = self->combined ? c->length : self->reduced ? c->lead : c->lead + c->length;
    for (int r = 0; r < self->entry.outputs; r++) {
        const int at = self->entry.inputs + r;
        PyArray_Descr *descr = self->entry.descrs[at];
        const int64_t size = self->entry.sizes[at], bytes = size * product(shape, rank);
        PyArrayObject *y = NULL;
        if (given != NULL && is_array_of(given[r], descr, NPY_ARRAY_CARRAY)) {
            y = (PyArrayObject *)given[r];
            int fits = PyArray_NDIM(y) == rank && same_extents(PyArray_DIMS(y), shape, rank);
            for (int k = 0; fits && k < self->entry.inputs; k++)
                fits = !clashes(c, k, PyArray_BYTES(y), bytes);
            y = fits ? (PyArrayObject *)Py_NewRef(y) : NULL;
        }
        c->made[r] = y != NULL ? y : new_array(descr, rank, shape);
        if (c->made[r] == NULL) {
            drop_arrays(c->made, r);
            return -1;
        }
        c->data[at] = PyArray_BYTES(c->made[r]);
        c->units[at] = size;
        c->steps[at] = self->reduced ? size : size * c->width;
    }
    return 0;
}

static PyObject *fused_call(PyObject *callable, PyObject *const *args, size_t flags, PyObject *names)
{
    FusedEntry *self = (FusedEntry *)callable;
    const Py_ssize_t count = PyVectorcall_NARGS(flags);
    const int spare = count == self->entry.inputs + self->entry.outputs;
    if (names != NULL || (count != self->entry.inputs && !spare) || !PyArray_CheckExact(args[0]))
        return pass_on(self->entry.fallback, args, flags, names);
    struct call c;
    c.self = self;
    c.operands = self->entry.inputs + self->entry.outputs;
    const int fits = measure(&c, (PyArrayObject *)args[0]);
    if (fits <= 0)
        return pass_on(fits < 0 ? self->entry.large : self->entry.fallback, args, flags, names);
    for (int k = 0; k < self->entry.inputs; k++)
        if (!take_operand(&c, k, args[k]))
            return pass_on(self->entry.fallback, args, flags, names);
    if (take_results(&c, spare ? args + self->entry.inputs : NULL) < 0)
        return NULL;
    if ((self->combined ? run_combined(&c) : run_rows(&c)) < 0) {
        drop_arrays(c.made, self->entry.outputs);
        return NULL;
    }
    if (self->scan && TENFERRO_CHOOSE(tenferro_scan)(PyArray_DATA(c.made[0]), PyArray_NBYTES(c.made[0]), self->scan)) {
        drop_arrays(c.made, self->entry.outputs);
        return tenferro_pass_on_to_warn(&self->entry, args, flags);
    }
    return given_results(c.made, self->entry.outputs);
}

static PyObject *fused_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"kernel", "dtypes", "inputs", "fallback", "large", "trailing", "reduced",
                            "combined", "most", "shortest", "longest", "widest", "paired", "few", "shared", "scan",
                            "rest", NULL};
    unsigned long long kernel, rest;
    PyObject *dtypes, *fallback, *large;
    int inputs;
    FusedEntry *self = (FusedEntry *)type->tp_alloc(type, 0);
    if (self == NULL ||
        !PyArg_ParseTupleAndKeywords(args, keywords, "$KOiOOippLLLLLLLiK", names, &kernel, &dtypes, &inputs, &fallback,
                                     &large, &self->trailing, &self->reduced, &self->combined,
                                     &self->entry.most, &self->shortest, &self->longest,
                                     &self->widest, &self->paired, &self->few, &self->shared, &self->scan, &rest) ||
        tenferro_fill_entry(&self->entry, fused_call, dtypes, inputs, fallback, large, Py_None) < 0) {
        Py_XDECREF(self);
        return NULL;
    }
    self->kernel = kernel_at(kernel);
    self->rest = kernel_at(rest);
    if (self->combined && !rest)
        self->longest = least(self->longest, COMBINED_ROWS);
    return (PyObject *)self;
}

static PyTypeObject fused_type = ENTRY_TYPE(FusedEntry, fused_new, "A fused or reducing kernel of rows.");

int tenferro_add_fused(PyObject *module)
{
    return PyModule_AddType(module, &fused_type);
}
