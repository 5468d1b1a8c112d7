/* `Search`: insertion points of values in an ascending vector, as a callable of both. */
#include "kernels/ordering/along.h"
#include "kernels/ordering/search.h"
#include "eager/entry.h"

static const struct search_kernels *kernels; /* set when the module is loaded */

typedef struct {
    struct filter filter;
    int after; /* whether values go after their equals */
} Search;

static PyObject *search(PyArrayObject *sorted, PyArrayObject *values, int after)
{
    enum { UNLOCKED = 1 << 11 };
    const int type = tenferro_key_type(PyArray_DESCR(sorted));
    PyArrayObject *line = PyArray_GETCONTIGUOUS(sorted), *wanted = PyArray_GETCONTIGUOUS(values), *positions = NULL;
    if (line != NULL && wanted != NULL)
        positions = (PyArrayObject *)PyArray_SimpleNew(PyArray_NDIM(values), PyArray_DIMS(values), NPY_INT64);
    if (positions != NULL) {
        PyThreadState *state = PyArray_SIZE(values) > UNLOCKED ? PyEval_SaveThread() : NULL;
        kernels->search[after][type](PyArray_DATA(line), PyArray_SIZE(line), PyArray_DATA(wanted), PyArray_SIZE(wanted),
                                     PyArray_DATA(positions));
        if (state != NULL)
            PyEval_RestoreThread(state);
    }
    Py_XDECREF(line);
    Py_XDECREF(wanted);
    return (PyObject *)positions;
}

static PyObject *search_call(PyObject *callable, PyObject *const *args, size_t flags, PyObject *names)
{
    const Search *self = (Search *)callable;
    int fits = names == NULL && PyVectorcall_NARGS(flags) == 2;
    for (int k = 0; fits && k < 2; k++)
        fits = is_array_of(args[k], self->filter.descr, NPY_ARRAY_ALIGNED);
    if (fits && PyArray_NDIM((PyArrayObject *)args[0]) == 1)
        return search((PyArrayObject *)args[0], (PyArrayObject *)args[1], self->after);
    return pass_on(self->filter.fallback, args, flags, names);
}

static PyObject *search_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"dtype", "after", "fallback", NULL};
    PyArray_Descr *descr;
    int after;
    PyObject *fallback;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O!pO", names, &PyArrayDescr_Type, &descr, &after, &fallback))
        return NULL;
    if (!has_wide_keys(descr))
        return PyErr_Format(PyExc_ValueError, "there is no search of %R", descr);
    Search *self = (Search *)tenferro_new_filter(type, search_call, descr, fallback);
    if (self != NULL)
        self->after = after;
    return (PyObject *)self;
}

static PyTypeObject search_type = FILTER_TYPE(Search, search_new, "Where values belong in an ascending vector.");

int tenferro_add_search(PyObject *module)
{
    kernels = TENFERRO_CHOOSE(search_kernels);
    return PyModule_AddType(module, &search_type);
}
