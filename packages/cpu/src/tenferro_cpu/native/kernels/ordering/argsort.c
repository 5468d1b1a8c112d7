/* Positions that sort lines of an array; equal elements keep their order, and NaN is last in both orders.
 *
 * Each element becomes a word of its key and its position, and NumPy sorts the words: numbers without equals, for
 * which it has vector code that a sort of positions cannot have, and whose order is stable because positions are
 * part of them. Where keys and positions take more than 64 bits, the lowest bits of the keys are cut off, and
 * neighbours that are equal in the rest are put in order afterwards. */
#include "kernels/ordering/along.h"
#include "kernels/ordering/keys.h"

enum {
    SHORT = SHORT_LINE,
    CHUNK = 512,         /* keys computed at a time */
    UNLOCKED = 1 << 14,  /* elements above which the interpreter's lock is released */
};

static const struct key_kernels *kernels; /* set when the module is loaded */

void tenferro_choose_keys(void)
{
    kernels = TENFERRO_CHOOSE(key_kernels);
}

int tenferro_key_type(PyArray_Descr *descr)
{
    const int number = descr->type_num, is_signed = PyTypeNum_ISSIGNED(number);
    if (number == NPY_DOUBLE || number == NPY_FLOAT)
        return number == NPY_DOUBLE ? KEY_F64 : KEY_F32;
    if (number != NPY_BOOL && !PyTypeNum_ISINTEGER(number))
        return -1;
    switch (PyDataType_ELSIZE(descr)) {
    case 8: return is_signed ? KEY_I64 : KEY_U64;
    case 4: return is_signed ? KEY_I32 : KEY_U32;
    case 2: return is_signed ? KEY_I16 : KEY_U16;
    default: return is_signed ? KEY_I8 : KEY_U8;
    }
}

struct job {
    PyArrayObject *x, *positions;
    int axis, type;
    int64_t flip, stride, target_stride;
    npy_intp source[NPY_MAXDIMS], target[NPY_MAXDIMS]; /* strides along the other axes */
    struct packing packing;
};

static void make_keys(const struct job *job, const char *line, int64_t n, int64_t *keys)
{
    kernels->keys[job->type](line, n, job->stride, job->flip, keys);
}

/* Insertion sort of positions by their keys. */
static void insert(int64_t *keys, int64_t *positions, int64_t n)
{
    for (int64_t i = 1; i < n; i++) {
        const int64_t key = keys[i], position = positions[i];
        int64_t j = i;
        for (; j > 0 && keys[j - 1] > key; j--) {
            keys[j] = keys[j - 1];
            positions[j] = positions[j - 1];
        }
        keys[j] = key;
        positions[j] = position;
    }
}

static void sort_short_lines(const struct job *job)
{
    struct lines lines = lines_along(job->x, job->axis);
    char *line = PyArray_BYTES(job->x), *target = PyArray_BYTES(job->positions);
    int64_t keys[SHORT], positions[SHORT];
    for (int64_t k = 0; k < lines.count; k++, next_line(&lines, job->source, &line, job->target, &target)) {
        make_keys(job, line, lines.length, keys);
        for (int64_t i = 0; i < lines.length; i++)
            positions[i] = i;
        insert(keys, positions, lines.length);
        for (int64_t i = 0; i < lines.length; i++)
            *(int64_t *)(target + i * job->target_stride) = positions[i];
    }
}

static int bits_of(uint64_t number)
{
    return number == 0 ? 0 : 64 - __builtin_clzll(number);
}

/* How words hold the keys of all lines. */
static void choose_packing(struct job *job)
{
    struct lines lines = lines_along(job->x, job->axis);
    struct packing *packing = &job->packing;
    const int room = 64 - (packing->position_bits = bits_of((uint64_t)lines.length - 1));
    packing->exact = 1;
    packing->drop = 0;
    if (job->type != KEY_F64 && job->type != KEY_I64 && job->type != KEY_U64) {
        packing->low = INT32_MIN; /* keys have at most 32 bits */
        return;
    }
    struct key_range range = {INT64_MAX, INT64_MIN, 0};
    int64_t keys[CHUNK];
    char *line = PyArray_BYTES(job->x), *target = line;
    for (int64_t k = 0; k < lines.count; k++, next_line(&lines, job->source, &line, job->source, &target))
        for (int64_t i = 0; i < lines.length; i += CHUNK) {
            const int64_t n = lines.length - i < CHUNK ? lines.length - i : CHUNK;
            make_keys(job, line + i * job->stride, n, keys);
            kernels->widen(keys, n, &range);
        }
    packing->low = range.low;
    const int width = bits_of((uint64_t)range.high - (uint64_t)range.low);
    packing->drop = range.differing == 0 ? 0 : __builtin_ctzll(range.differing);
    packing->exact = width - packing->drop <= room;
    if (!packing->exact)
        packing->drop = width - room;
}

static void pack_lines(const struct job *job, uint64_t *words)
{
    struct lines lines = lines_along(job->x, job->axis);
    int64_t keys[CHUNK];
    char *line = PyArray_BYTES(job->x), *target = line;
    for (int64_t k = 0; k < lines.count; k++, next_line(&lines, job->source, &line, job->source, &target))
        for (int64_t i = 0; i < lines.length; i += CHUNK) {
            const int64_t n = lines.length - i < CHUNK ? lines.length - i : CHUNK;
            make_keys(job, line + i * job->stride, n, keys);
            kernels->pack(keys, n, i, &job->packing, words);
            words += n;
        }
}

/* Sort distinct words, as rows of a matrix: 0, or -1 with an exception set. */
static int sort_words(uint64_t *words, npy_intp rows, npy_intp length)
{
    npy_intp shape[2] = {rows, length};
    PyObject *all = PyArray_New(&PyArray_Type, 2, shape, NPY_UINT64, NULL, words, 0, NPY_ARRAY_CARRAY, NULL);
    int status = all == NULL ? -1 : PyArray_Sort((PyArrayObject *)all, 1, NPY_QUICKSORT);
    Py_XDECREF(all);
    return status;
}

/* Sort words with equal truncated keys by their full keys: 0, or -1 with an exception set. */
static int sort_ties(const struct job *job, const char *line, uint64_t *words, int64_t n)
{
    const struct packing *packing = &job->packing;
    const uint64_t mask = (UINT64_C(1) << packing->position_bits) - 1, same = words[0] & ~mask;
    int64_t few_keys[SHORT], few_positions[SHORT], previous = INT64_MIN;
    int ordered = 1;
    for (int64_t i = 0; i < n; i++) {
        int64_t key;
        make_keys(job, line + (int64_t)(words[i] & mask) * job->stride, 1, &key);
        ordered &= key >= previous;
        previous = key;
        if (n <= SHORT) {
            few_keys[i] = key;
            few_positions[i] = (int64_t)(words[i] & mask);
        }
    }
    if (ordered)
        return 0;
    if (n <= SHORT) {
        insert(few_keys, few_positions, n);
        for (int64_t i = 0; i < n; i++)
            words[i] = same | (uint64_t)few_positions[i];
        return 0;
    }
    /* The truncated bits are at most as many as those of a position, so both fit in a word. */
    const uint64_t cut = (UINT64_C(1) << packing->drop) - 1;
    for (int64_t i = 0; i < n; i++) {
        int64_t key;
        make_keys(job, line + (int64_t)(words[i] & mask) * job->stride, 1, &key);
        words[i] = (((uint64_t)key - (uint64_t)packing->low) & cut) << packing->position_bits | (words[i] & mask);
    }
    if (sort_words(words, 1, n) < 0)
        return -1;
    for (int64_t i = 0; i < n; i++)
        words[i] = same | (words[i] & mask);
    return 0;
}

/* Resolve ties left by the packing, and extract the positions: 0, or -1 with an exception set. */
static int finish_lines(const struct job *job, uint64_t *words)
{
    struct lines lines = lines_along(job->x, job->axis);
    char *line = PyArray_BYTES(job->x), *target = PyArray_BYTES(job->positions);
    const int64_t n = lines.length;
    const int bits = job->packing.position_bits;
    for (int64_t k = 0; k < lines.count; k++, next_line(&lines, job->source, &line, job->target, &target)) {
        for (int64_t from = 0; !job->packing.exact && (from = kernels->next_tie(words, from, n, bits)) < n - 1;) {
            int64_t end = from + 2;
            while (end < n && (words[end] ^ words[from]) >> bits == 0)
                end++;
            if (sort_ties(job, line, words + from, end - from) < 0)
                return -1;
            from = end - 1;
        }
        kernels->positions(words, n, bits, target, job->target_stride);
        words += n;
    }
    return 0;
}

static int sort_long_lines(struct job *job)
{
    const int in_place = job->axis == PyArray_NDIM(job->x) - 1;
    npy_intp size = PyArray_SIZE(job->x);
    PyArrayObject *room = in_place ? job->positions : (PyArrayObject *)PyArray_SimpleNew(1, &size, NPY_UINT64);
    if (room == NULL)
        return -1;
    uint64_t *words = PyArray_DATA(room);
    const npy_intp length = PyArray_DIM(job->x, job->axis);
    PyThreadState *state = size > UNLOCKED ? PyEval_SaveThread() : NULL;
    choose_packing(job);
    pack_lines(job, words);
    if (state != NULL)
        PyEval_RestoreThread(state);
    int status = sort_words(words, size / length, length);
    if (status == 0)
        status = finish_lines(job, words);
    if (!in_place)
        Py_DECREF(room);
    return status;
}

/* The elements of short lines in the order of their keys. */
static void take_short_lines(const struct job *job, PyArrayObject *sorted)
{
    struct lines lines = lines_along(job->x, job->axis);
    char *line = PyArray_BYTES(job->x), *target = PyArray_BYTES(sorted);
    const int64_t step = PyArray_STRIDE(sorted, job->axis);
    const int wide = PyArray_ITEMSIZE(sorted) == 8;
    int64_t keys[SHORT], positions[SHORT];
    for (int64_t k = 0; k < lines.count; k++, next_line(&lines, job->source, &line, job->target, &target)) {
        make_keys(job, line, lines.length, keys);
        for (int64_t i = 0; i < lines.length; i++)
            positions[i] = i;
        insert(keys, positions, lines.length);
        for (int64_t i = 0; i < lines.length; i++)
            if (wide)
                *(int64_t *)(target + i * step) = *(const int64_t *)(line + positions[i] * job->stride);
            else
                *(int32_t *)(target + i * step) = *(const int32_t *)(line + positions[i] * job->stride);
    }
}

PyObject *tenferro_sort_short(PyArrayObject *x, int axis, int reversed)
{
    struct job job = {.x = x, .axis = axis, .type = tenferro_key_type(PyArray_DESCR(x)), .flip = -(int64_t)reversed};
    PyArrayObject *sorted = new_array(PyArray_DESCR(x), PyArray_NDIM(x), PyArray_DIMS(x));
    if (sorted != NULL && PyArray_SIZE(x) > 0) {
        job.stride = PyArray_STRIDE(x, axis);
        other_strides(x, axis, job.source);
        other_strides(sorted, axis, job.target);
        take_short_lines(&job, sorted);
    }
    return (PyObject *)sorted;
}

PyObject *tenferro_argsort(PyArrayObject *x, int axis, int reversed)
{
    struct job job = {.x = x, .axis = axis, .type = tenferro_key_type(PyArray_DESCR(x)), .flip = -(int64_t)reversed};
    job.positions = (PyArrayObject *)PyArray_SimpleNew(PyArray_NDIM(x), PyArray_DIMS(x), NPY_INT64);
    if (job.positions == NULL)
        return NULL;
    job.stride = PyArray_STRIDE(x, axis);
    job.target_stride = PyArray_STRIDE(job.positions, axis);
    other_strides(x, axis, job.source);
    other_strides(job.positions, axis, job.target);
    if (PyArray_SIZE(x) == 0)
        return (PyObject *)job.positions;
    if (PyArray_DIM(x, axis) <= SHORT)
        sort_short_lines(&job);
    else if (sort_long_lines(&job) < 0)
        Py_CLEAR(job.positions);
    return (PyObject *)job.positions;
}
