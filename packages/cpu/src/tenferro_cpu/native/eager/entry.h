/* Common parts of all entries: C types that are called with arrays, run a kernel, and pass other calls on. */
#ifndef TENFERRO_ENTRY_H
#define TENFERRO_ENTRY_H

#include "kernels/walk.h"
#include "operands.h"

#include <structmember.h>

struct entry {
    PyObject_HEAD
    vectorcallfunc call;
    PyObject *fallback, *large; /* called with the same arguments for everything else, and for larger spaces; mutable */
    PyObject *dtypes, *owner;   /* dtypes of operands and results, a tuple; an object whose memory the entry reads */
    PyArray_Descr **descrs;     /* the items of the tuple */
    int inputs, outputs;
    int64_t most;                 /* elements of the largest space */
    int64_t sizes[MAX_OPERANDS]; /* of elements in bytes */
};

/* Initialise an allocated entry: 0, or -1 with an exception set, for example for unsupported dtypes. */
int tenferro_fill_entry(struct entry *entry, vectorcallfunc call, PyObject *dtypes, int inputs, PyObject *fallback,
                        PyObject *large, PyObject *owner);

int tenferro_traverse_entry(PyObject *o, visitproc visit, void *arg);
int tenferro_clear_entry(PyObject *o);
void tenferro_dealloc_entry(PyObject *o);
extern PyMemberDef tenferro_entry_members[];

/* Call the fallback for operands that it is going to warn about: the warning points at the user's line. */
PyObject *tenferro_pass_on_to_warn(const struct entry *entry, PyObject *const *args, size_t flags);

/* The fields of a type object; `Struct` begins with a struct entry. */
#define ENTRY_TYPE(Struct, make, text)                                                               \
    {                                                                                                \
        PyVarObject_HEAD_INIT(NULL, 0).tp_name = "tenferro_cpu.native._compiled." #Struct,           \
        .tp_doc = text, .tp_basicsize = sizeof(Struct), .tp_new = make,                              \
        .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,            \
        .tp_vectorcall_offset = offsetof(struct entry, call), .tp_call = PyVectorcall_Call,          \
        .tp_dealloc = tenferro_dealloc_entry, .tp_traverse = tenferro_traverse_entry,                \
        .tp_clear = tenferro_clear_entry, .tp_members = tenferro_entry_members                       \
    }

/* Call another object with the same arguments, which have no names. */
static inline PyObject *pass_on(PyObject *other, PyObject *const *args, size_t flags, PyObject *names)
{
    if (other != NULL && names == NULL) {
        Py_INCREF(other); /* it may replace itself in the entry */
        PyObject *result = PyObject_Vectorcall(other, args, flags, NULL);
        Py_DECREF(other);
        return result;
    }
    if (names != NULL)
        PyErr_SetString(PyExc_TypeError, "entries of kernels take no keyword arguments");
    else
        PyErr_SetString(PyExc_ReferenceError, "this entry is being collected as garbage");
    return NULL;
}

#endif
