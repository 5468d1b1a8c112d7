/* The state of the process that every call reads: one object, `state`. */
#include "_c/values.h"

static PyMemberDef state_members[] = {
    {"open_scopes", T_PYSSIZET, offsetof(State, open_scopes), 0,
     "Number of scopes, in any thread, that select a device or record decisions."},
    {"recording_scopes", T_PYSSIZET, offsetof(State, recording_scopes), 0,
     "Number of scopes, in any thread, that affect recording."},
    {"host", T_OBJECT, offsetof(State, host), 0, "The place main memory, without a compute device."},
    {"record", T_OBJECT, offsetof(State, record), 0, "record(level, op, operands), the slow path in Python."},
    {"parts", T_OBJECT, offsetof(State, parts), 0, "The class of cotangents in parts, with a method whole()."},
    {NULL},
};

static PyObject *get_class(PyObject *self, void *offset)
{
    PyObject *found = *(PyObject **)((char *)self + (size_t)offset);
    return Py_NewRef(found == NULL ? Py_None : found);
}

static int set_class(PyObject *self, PyObject *value, size_t offset, PyTypeObject *base)
{
    /* C code creates instances: a subclass must not add fields. */
    PyTypeObject *type = (PyTypeObject *)value;
    if (value == NULL || !PyType_Check(value) || !PyType_IsSubtype(type, base)
        || type->tp_basicsize != base->tp_basicsize) {
        PyErr_Format(PyExc_TypeError, "expected a class that adds no fields to %s, got %R", base->tp_name, value);
        return -1;
    }
    PyObject **slot = (PyObject **)((char *)self + offset);
    Py_XSETREF(*slot, Py_NewRef(value));
    return 0;
}

static int set_tensor(PyObject *self, PyObject *value, void *offset)
{
    if (set_class(self, value, (size_t)offset, &TensorBase_Type) < 0) {
        return -1;
    }
    ((PyTypeObject *)value)->tp_dealloc = tenferro_dealloc_tensor; /* instead of the generic one of Python classes */
    return 0;
}

static int set_dual(PyObject *self, PyObject *value, void *offset)
{
    return set_class(self, value, (size_t)offset, &DualBase_Type);
}

static int set_recorded(PyObject *self, PyObject *value, void *offset)
{
    return set_class(self, value, (size_t)offset, &RecordedBase_Type);
}

/* The class of specs is written in Python, with slots; C code reads one of them on every call. */
static int set_spec(PyObject *self, PyObject *value, void *offset)
{
    PyObject *slot = value == NULL ? NULL : PyObject_GetAttrString(value, "place");
    if (slot == NULL || !PyType_Check(value) || !Py_IS_TYPE(slot, &PyMemberDescr_Type)) {
        Py_XDECREF(slot);
        PyErr_Clear();
        PyErr_Format(PyExc_TypeError, "expected a class with a slot `place`, got %R", value);
        return -1;
    }
    ((State *)self)->place_offset = ((PyMemberDescrObject *)slot)->d_member->offset;
    Py_DECREF(slot);
    Py_XSETREF(((State *)self)->spec, (PyTypeObject *)Py_NewRef(value));
    return 0;
}

static PyGetSetDef state_classes[] = {
    {"spec", get_class, set_spec, "The class of specs.", (void *)offsetof(State, spec)},
    {"tensor", get_class, set_tensor, "The class of concrete tensors.", (void *)offsetof(State, tensor)},
    {"dual", get_class, set_dual, "The class of values with tangents.", (void *)offsetof(State, dual)},
    {"recorded", get_class, set_recorded, "The class of recorded values.", (void *)offsetof(State, recorded)},
    {NULL},
};

static PyTypeObject State_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "tenferro_tensor._accelerated.State",
    .tp_doc = "State that every call reads.",
    .tp_basicsize = sizeof(State),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_members = state_members,
    .tp_getset = state_classes,
};

State tenferro_state = {PyObject_HEAD_INIT(&State_Type)};

int tenferro_add_state(PyObject *module)
{
    return PyType_Ready(&State_Type) < 0 ? -1 : PyModule_AddObjectRef(module, "state", (PyObject *)&tenferro_state);
}
