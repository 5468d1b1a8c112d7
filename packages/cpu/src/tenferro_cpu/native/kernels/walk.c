/* The loop over rows; if the work pays for it one axis is cut, and the thread team takes the chunks. */
#include "kernels/walk.h"
#include "threads/team.h"

#include <string.h>

/* A cut of one axis, the row for axis -1, into chunks of a length. */
struct cut {
    const struct walk *walk;
    int64_t axis, length, count;
};

static int64_t signal_elements = SIGNAL_ELEMENTS, parts;

int64_t tenferro_signal_elements(void) { return signal_elements; }

int tenferro_handle_signals(void)
{
    parts++;
    return PyErr_CheckSignals();
}

static int64_t *strides_of(const struct walk *w, int64_t axis)
{
    return axis < 0 ? w->strides : w->steps + axis * w->operands;
}

static int64_t *extent_of(struct walk *w, int64_t axis) { return axis < 0 ? &w->width : &w->extents[axis]; }

static void move(const struct walk *w, char **data, int64_t axis, int64_t count)
{
    const int64_t *strides = strides_of(w, axis);
    for (int64_t k = 0; k < w->operands; k++)
        data[k] += count * strides[k];
}

/* Call the kernel for `count` elements of an axis from `start` on, and all of the others. */
static void walk_rows(const struct walk *w, int64_t axis, int64_t start, int64_t count)
{
    char *data[w->operands];
    int64_t index[MAX_RANK];
    const int64_t width = axis < 0 ? count : w->width, last = w->rank - 1;
    const int64_t rows = last < 0 ? 1 : last == axis ? count : w->extents[last];
    const int64_t *strides = strides_of(w, axis);
    for (int64_t k = 0; k < w->operands; k++)
        data[k] = w->data[k] + start * strides[k];
    for (int64_t d = 0; d < last; d++)
        index[d] = 0;
    for (;;) {
        for (int64_t row = 0; row < rows; row++) {
            if (row > 0)
                move(w, data, last, 1);
            w->kernel(data, width, w->strides, w->rows, w->row_strides);
        }
        if (last <= 0)
            return;
        int64_t d = last;
        move(w, data, d, 1 - rows);
        while (--d >= 0) {
            const int64_t extent = d == axis ? count : w->extents[d];
            if (++index[d] < extent)
                break;
            index[d] = 0;
            move(w, data, d, 1 - extent);
        }
        if (d < 0)
            return;
        move(w, data, d, 1);
    }
}

static void walk_chunk(void *context, int64_t k)
{
    const struct cut *cut = context;
    const int64_t extent = cut->axis < 0 ? cut->walk->width : cut->walk->extents[cut->axis], start = k * cut->length;
    walk_rows(cut->walk, cut->axis, start, least(cut->length, extent - start));
}

/* The cut into most chunks, but not more than `limit`. */
static struct cut best_cut(struct walk *w, int whole, int64_t limit)
{
    struct cut best = {w, -1, w->width, 1};
    for (int64_t axis = -1; axis < w->rank; axis++) {
        const int64_t extent = *extent_of(w, axis);
        const int64_t unit = axis >= 0 ? 1 : whole ? most(extent, 1) : CHUNK_ELEMENTS;
        const int64_t length = most(quotient_up(extent, limit * unit), 1) * unit, count = quotient_up(extent, length);
        if (count > best.count)
            best = (struct cut){w, axis, length, count};
    }
    return best;
}

static int64_t elements_of(const struct walk *w)
{
    int64_t made = w->width * w->rows;
    for (int64_t d = 0; d < w->rank; d++)
        made *= w->extents[d];
    return made;
}

static int walk_in_parts(struct walk *w, double cost, int whole, const struct cut *cut)
{
    char *data[w->operands], **all = w->data;
    int64_t *extent = extent_of(w, cut->axis), total = *extent, status = 0;
    const int64_t *strides = strides_of(w, cut->axis);
    w->data = data;
    for (int64_t start = 0; start < total && status == 0; start += cut->length) {
        for (int64_t k = 0; k < w->operands; k++)
            data[k] = all[k] + start * strides[k];
        *extent = least(cut->length, total - start);
        status = tenferro_walk(w, cost, whole);
    }
    w->data = all;
    *extent = total;
    return (int)status;
}

int tenferro_walk(struct walk *w, double cost, int whole)
{
    const int64_t elements = elements_of(w);
    if (elements <= UNLOCKED_ELEMENTS && elements <= signal_elements) {
        walk_rows(w, -1, 0, w->width);
        return 0;
    }
    if (elements > signal_elements) {
        const struct cut cut = best_cut(w, whole, quotient_up(elements, signal_elements));
        if (cut.count > 1)
            return walk_in_parts(w, cost, whole, &cut);
    }
    const double work = cost * (double)elements;
    const int64_t threads = work > TEAM_MIN_NS ? tenferro_team_allowed() : 1;
    struct cut cut = {w, -1, w->width, 1};
    if (threads > 1)
        cut = best_cut(w, whole, most(1, least(CHUNKS_PER_THREAD * threads, (int64_t)(work / CHUNK_MIN_NS))));
    Py_BEGIN_ALLOW_THREADS
    tenferro_team_run(walk_chunk, &cut, cut.count, threads);
    Py_END_ALLOW_THREADS
    return tenferro_handle_signals();
}

int tenferro_walk_of_words(struct walk *w, int64_t *words, int64_t count)
{
    const int64_t none[4] = {0}, *head = count < 4 ? none : words;
    *w = (struct walk){NULL, head[0], head[1], head[2], head[3], NULL, NULL, NULL, NULL, NULL};
    int good = 0 < w->operands && w->operands <= count && 0 <= w->rank && w->rank <= MAX_RANK && w->width >= 0 &&
               w->rows >= 0 && count == 4 + 3 * w->operands + w->rank * (w->operands + 1);
    if (good) {
        w->data = (char **)(words + 4);
        w->strides = words + 4 + w->operands;
        w->row_strides = w->strides + w->operands;
        w->extents = w->row_strides + w->operands;
        w->steps = w->extents + w->rank;
        for (int64_t d = 0; d < w->rank; d++)
            good &= w->extents[d] > 0;
    }
    if (!good)
        PyErr_SetString(PyExc_ValueError, "these are not the words of a walk");
    return good ? 0 : -1;
}

static PyObject *drive(PyObject *module, PyObject *args)
{
    unsigned long long kernel;
    Py_buffer words;
    double cost;
    int whole;
    struct walk walk;
    if (!PyArg_ParseTuple(args, "Kw*dp", &kernel, &words, &cost, &whole))
        return NULL;
    int status = tenferro_walk_of_words(&walk, words.buf, words.len / 8);
    if (status == 0) {
        walk.kernel = kernel_at(kernel);
        status = tenferro_walk(&walk, cost, whole);
    }
    PyBuffer_Release(&words);
    return status < 0 ? NULL : Py_NewRef(Py_None);
}

static PyObject *signal_parts(PyObject *module, PyObject *args)
{
    long long elements = 0;
    if (!PyArg_ParseTuple(args, "|L", &elements))
        return NULL;
    if (elements > 0)
        signal_elements = elements;
    return Py_BuildValue("LL", (long long)signal_elements, (long long)parts);
}

static PyMethodDef methods[] = {
    {"drive", drive, METH_VARARGS, "Walk over rows."},
    {"signal_parts", signal_parts, METH_VARARGS, "Elements between two looks at signals, and the looks so far."},
    {NULL},
};

int tenferro_add_walks(PyObject *module)
{
    if (PyModule_AddIntMacro(module, MAX_OPERANDS) < 0 || PyModule_AddIntMacro(module, MAX_AXES) < 0 ||
        PyModule_AddIntMacro(module, COMBINED_ROWS) < 0)
        return -1;
    return PyModule_AddFunctions(module, methods);
}
