/* Common parts of all entries: see entry.h. */
#include "eager/entry.h"

PyMemberDef tenferro_entry_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(struct entry, call), READONLY},
    {"fallback", T_OBJECT, offsetof(struct entry, fallback), 0, "Called with the same arguments for all else."},
    {"large", T_OBJECT, offsetof(struct entry, large), 0, "Called for spaces of more than `most` elements."},
    {"dtypes", T_OBJECT, offsetof(struct entry, dtypes), READONLY, "Those of the operands, then of the results."},
    {"owner", T_OBJECT, offsetof(struct entry, owner), READONLY, "An object whose memory the entry reads, or None."},
    {"most", T_LONGLONG, offsetof(struct entry, most), READONLY, "Elements of the largest space."},
    {NULL},
};

int tenferro_fill_entry(struct entry *entry, vectorcallfunc call, PyObject *dtypes, int inputs, PyObject *fallback,
                        PyObject *large, PyObject *owner)
{
    const Py_ssize_t every = PyTuple_Check(dtypes) ? PyTuple_GET_SIZE(dtypes) : 0;
    if (inputs < 1 || every <= inputs || every > MAX_OPERANDS) {
        PyErr_Format(PyExc_ValueError, "an entry has 1 to %d operands and results, at least one of each", MAX_OPERANDS);
        return -1;
    }
    for (int k = 0; k < every; k++) {
        if (!PyArray_DescrCheck(PyTuple_GET_ITEM(dtypes, k))) {
            PyErr_SetString(PyExc_TypeError, "the dtypes of an entry are numpy.dtype objects");
            return -1;
        }
        entry->sizes[k] = PyDataType_ELSIZE((PyArray_Descr *)PyTuple_GET_ITEM(dtypes, k));
    }
    entry->call = call;
    entry->inputs = inputs;
    entry->outputs = (int)every - inputs;
    entry->dtypes = Py_NewRef(dtypes);
    entry->descrs = (PyArray_Descr **)&PyTuple_GET_ITEM(dtypes, 0);
    entry->fallback = Py_NewRef(fallback);
    entry->large = Py_NewRef(large);
    entry->owner = Py_NewRef(owner);
    return 0;
}

PyObject *tenferro_pass_on_to_warn(const struct entry *entry, PyObject *const *args, size_t flags)
{
    const Py_ssize_t count = PyVectorcall_NARGS(flags);
    PyObject *all[MAX_OPERANDS + 1] = {entry->fallback}, *result = NULL;
    if (entry->fallback == NULL || count > MAX_OPERANDS)
        return pass_on(entry->fallback, args, flags, NULL);
    Py_INCREF(all[0]); /* it may replace itself in the entry */
    PyObject *module = PyImport_ImportModule("tenferro_tensor.numpy_warnings");
    PyObject *call = module == NULL ? NULL : PyObject_GetAttrString(module, "at_user_line");
    if (call != NULL) {
        memcpy(all + 1, args, (size_t)count * sizeof *args);
        result = PyObject_Vectorcall(call, all, (size_t)count + 1, NULL);
    }
    Py_XDECREF(module);
    Py_XDECREF(call);
    Py_DECREF(all[0]);
    return result;
}

int tenferro_traverse_entry(PyObject *o, visitproc visit, void *arg)
{
    struct entry *entry = (struct entry *)o;
    Py_VISIT(entry->fallback);
    Py_VISIT(entry->large);
    return 0;
}

int tenferro_clear_entry(PyObject *o)
{
    struct entry *entry = (struct entry *)o;
    Py_CLEAR(entry->fallback);
    Py_CLEAR(entry->large);
    return 0;
}

void tenferro_dealloc_entry(PyObject *o)
{
    struct entry *entry = (struct entry *)o;
    PyObject_GC_UnTrack(o);
    tenferro_clear_entry(o);
    Py_CLEAR(entry->dtypes);
    Py_CLEAR(entry->owner);
    Py_TYPE(o)->tp_free(o);
}
