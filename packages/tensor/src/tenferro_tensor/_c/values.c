/* The types of values: concrete tensors, recorded values, and their nodes. */
#include "_c/values.h"

static PyMemberDef value_members[] = {
    {"_inside", T_OBJECT_EX, offsetof(Value, inside), READONLY, "The first field of any kind of value."},
    {"_link", T_OBJECT, offsetof(Value, link), READONLY, "The second field; None if the kind has none."},
    {"spec", T_OBJECT_EX, offsetof(Value, spec), 0, "Shape, dtype and place."},
    {"_view", T_OBJECT, offsetof(Value, view), 0, "The base and the steps to this view of it; None for others."},
    {NULL},
};

static int value_traverse(PyObject *self, visitproc visit, void *arg)
{
    Value *x = (Value *)self;
    Py_VISIT(x->inside);
    Py_VISIT(x->spec);
    Py_VISIT(x->level);
    Py_VISIT(x->link);
    Py_VISIT(x->view);
    return 0;
}

static int value_clear(PyObject *self)
{
    Value *x = (Value *)self;
    Py_CLEAR(x->inside);
    Py_CLEAR(x->spec);
    Py_CLEAR(x->level);
    Py_CLEAR(x->link);
    Py_CLEAR(x->view);
    return 0;
}

static void value_dealloc(PyObject *self)
{
    PyObject_GC_UnTrack(self);
    tenferro_leave((Value *)self); /* first: the rest may run code */
    Py_TRASHCAN_BEGIN(self, value_dealloc)
    if (((Value *)self)->weak != NULL) {
        PyObject_ClearWeakRefs(self);
    }
    value_clear(self);
    Py_TYPE(self)->tp_free(self);
    Py_TRASHCAN_END
}

PyObject *tenferro_alias(PyObject *value)
{
    Value *x = (Value *)value, *z = (Value *)Py_TYPE(value)->tp_alloc(Py_TYPE(value), 0);
    if (z != NULL) {
        z->inside = Py_XNewRef(x->inside);
        z->spec = Py_XNewRef(x->spec);
        z->level = Py_XNewRef(x->level);
        z->link = Py_XNewRef(x->link);
    }
    return (PyObject *)z;
}

PyDoc_STRVAR(alias_doc, "_alias($self, /)\n--\n\nAnother object for the same value: assigning to one does not affect the other.");

static PyObject *value_alias(PyObject *self, PyObject *unused)
{
    return tenferro_alias(self);
}

PyDoc_STRVAR(stand_for_doc, "_stand_for($self, other, /)\n--\n\nMake this object represent another value.");

static PyObject *value_stand_for(PyObject *self, PyObject *other)
{
    if (!PyObject_TypeCheck(other, &ValueBase_Type)) {
        return PyErr_Format(PyExc_TypeError, "expected a value, got %R", other);
    }
    PyTypeObject *before = Py_TYPE(self), *after = Py_TYPE(other);
    if (after->tp_basicsize != sizeof(Value) || before->tp_basicsize != sizeof(Value)) {
        return PyErr_Format(PyExc_TypeError, "%R and %R have different layouts", before, after);
    }
    if (before != after) { /* assigning `__class__` would fail: their tp_dealloc differ */
        Py_INCREF(after);
        Py_SET_TYPE(self, after);
        Py_DECREF(before);
        if (!PyObject_GC_IsTracked(self)) {
            PyObject_GC_Track(self);
        }
    }
    Value *x = (Value *)self, *y = (Value *)other;
    PyObject *old[] = {x->inside, x->spec, x->level, x->link};
    x->inside = Py_XNewRef(y->inside);
    x->spec = Py_XNewRef(y->spec);
    x->level = Py_XNewRef(y->level);
    x->link = Py_XNewRef(y->link);
    for (size_t i = 0; i < sizeof old / sizeof *old; i++) {
        Py_XDECREF(old[i]); /* last: may run code */
    }
    Py_RETURN_NONE;
}

static PyMethodDef value_methods[] = {
    {"_alias", value_alias, METH_NOARGS, alias_doc},
    {"_stand_for", value_stand_for, METH_O, stand_for_doc},
    {NULL},
};

static PyMappingMethods value_mapping = {.mp_ass_subscript = tenferro_assign};

PyTypeObject ValueBase_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "tenferro_tensor._accelerated.ValueBase",
    .tp_doc = "The fields of a value of any kind.",
    .tp_basicsize = sizeof(Value),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .tp_dealloc = value_dealloc,
    .tp_traverse = value_traverse,
    .tp_clear = value_clear,
    .tp_weaklistoffset = offsetof(Value, weak),
    .tp_members = value_members,
    .tp_as_mapping = &value_mapping,
    .tp_methods = value_methods,
};

/* A kind of value: names of the fields. */
#define KIND_OF_VALUE(name, doc, members, mapping) \
    { \
        PyVarObject_HEAD_INIT(NULL, 0) \
        .tp_name = "tenferro_tensor._accelerated." name, \
        .tp_doc = doc, \
        .tp_basicsize = sizeof(Value), \
        .tp_base = &ValueBase_Type, \
        .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, \
        .tp_dealloc = value_dealloc, \
        .tp_traverse = value_traverse, \
        .tp_clear = value_clear, \
        .tp_weaklistoffset = offsetof(Value, weak), \
        .tp_members = members, \
        .tp_as_mapping = mapping, \
    }

#define LEVEL {"level", T_OBJECT_EX, offsetof(Value, level), 0, "The level of differentiation."}
#define VALUE {"value", T_OBJECT_EX, offsetof(Value, inside), 0, "The inner value, of a lower level."}

static PyMappingMethods tensor_mapping = {.mp_subscript = tenferro_subscript, .mp_ass_subscript = tenferro_assign};

static PyMemberDef tensor_members[] = {
    {"_data", T_OBJECT_EX, offsetof(Value, inside), 0, "The raw array of the backend."},
    {NULL},
};

static PyMemberDef recorded_members[] = {
    VALUE, LEVEL,
    {"node", T_OBJECT_EX, offsetof(Value, link), 0, "The node of the operation that created it."},
    {NULL},
};

static PyMemberDef dual_members[] = {
    VALUE, LEVEL,
    {"tangent", T_OBJECT_EX, offsetof(Value, link), 0, "The tangent, of the same spec."},
    {NULL},
};

static PyMemberDef lanes_members[] = {VALUE, LEVEL, {NULL}};

static PyMemberDef series_members[] = {
    VALUE, LEVEL,
    {"expansion", T_OBJECT_EX, offsetof(Value, link), 0, "The coefficients, and facts about all of them."},
    {NULL},
};

static PyMemberDef traced_members[] = {
    LEVEL,
    {"home", T_OBJECT_EX, offsetof(Value, inside), 0, "The trace that records the program."},
    {"id", T_OBJECT_EX, offsetof(Value, link), 0, "The variable of the program."},
    {NULL},
};

PyTypeObject TensorBase_Type = KIND_OF_VALUE("TensorBase", "The fields of a concrete tensor.", tensor_members,
                                              &tensor_mapping);
PyTypeObject RecordedBase_Type =
    KIND_OF_VALUE("RecordedBase", "The fields of a value that reverse mode records.", recorded_members, &value_mapping);
PyTypeObject DualBase_Type = KIND_OF_VALUE("DualBase", "The fields of a value with a tangent.", dual_members, &value_mapping);
static PyTypeObject LanesBase_Type = KIND_OF_VALUE("LanesBase", "The fields of the lanes of a batch.", lanes_members, &value_mapping);
static PyTypeObject SeriesBase_Type = KIND_OF_VALUE("SeriesBase", "The fields of a power series.", series_members, &value_mapping);
static PyTypeObject TracedBase_Type =
    KIND_OF_VALUE("TracedBase", "The fields of a variable of a program.", traced_members, &value_mapping);

#define MAX_SPARE 64

static Value *spare[MAX_SPARE]; /* free list of tensors, with empty fields */
static int spares;

void tenferro_dealloc_tensor(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    Value *x = (Value *)self;
    PyObject_GC_UnTrack(self);
    tenferro_leave(x); /* first: the rest may run code */
    if (x->weak != NULL) {
        PyObject_ClearWeakRefs(self);
    }
    value_clear(self);
    if (type == tenferro_state.tensor && spares < MAX_SPARE) {
        spare[spares++] = x;
    } else {
        type->tp_free(self);
    }
    Py_DECREF(type);
}

PyObject *tenferro_tensor(PyObject *data, PyObject *spec)
{
    PyTypeObject *type = tenferro_state.tensor;
    Value *x;
    Py_INCREF(spec); /* before allocating, which may run code */
    if (spares > 0) {
        x = (Value *)PyObject_Init((PyObject *)spare[--spares], type); /* untracked: arrays do not refer to tensors */
    } else if ((x = (Value *)type->tp_alloc(type, 0)) == NULL) {
        Py_DECREF(data);
        Py_DECREF(spec);
        return NULL;
    }
    x->inside = data;
    x->spec = spec;
    return (PyObject *)x;
}

PyObject *tenferro_differentiated(PyTypeObject *type, PyObject *value, PyObject *spec, PyObject *level, PyObject *link)
{
    Value *x = (Value *)type->tp_alloc(type, 0);
    if (x == NULL) {
        Py_DECREF(value);
        Py_DECREF(spec);
        Py_DECREF(level);
        Py_DECREF(link);
        return NULL;
    }
    x->inside = value;
    x->spec = spec;
    x->level = level;
    x->link = link;
    return (PyObject *)x;
}

static PyMemberDef node_members[] = {
    {"seq", T_LONGLONG, offsetof(Node, seq), 0, "Position in the order of recording; every parent has a smaller one."},
    {"vjp", T_OBJECT_EX, offsetof(Node, vjp), 0, "Maps a cotangent to those of the parents."},
    {"parents", T_OBJECT_EX, offsetof(Node, parents), 0, "Nodes of the differentiated operands."},
    {"saved", T_OBJECT_EX, offsetof(Node, saved), 0, "Residuals: operands and outputs that `vjp` needs."},
    {NULL},
};

static long long recorded_nodes;

static PyObject *node_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"vjp", "parents", "saved", NULL};
    PyObject *vjp, *parents, *saved;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO!O:Node", names, &vjp, &PyTuple_Type, &parents, &saved)) {
        return NULL;
    }
    Node *n = (Node *)type->tp_alloc(type, 0);
    if (n != NULL) {
        n->seq = recorded_nodes++;
        n->vjp = Py_NewRef(vjp);
        n->parents = Py_NewRef(parents);
        n->saved = Py_NewRef(saved);
    }
    return (PyObject *)n;
}

static int node_traverse(PyObject *self, visitproc visit, void *arg)
{
    Node *n = (Node *)self;
    Py_VISIT(n->vjp);
    Py_VISIT(n->parents);
    Py_VISIT(n->saved);
    return 0;
}

static int node_clear(PyObject *self)
{
    Node *n = (Node *)self;
    Py_CLEAR(n->vjp);
    Py_CLEAR(n->parents);
    Py_CLEAR(n->saved);
    return 0;
}

static void node_dealloc(PyObject *self)
{
    PyObject_GC_UnTrack(self);
    Py_TRASHCAN_BEGIN(self, node_dealloc) /* graphs can be as deep as programs are long */
    node_clear(self);
    Py_TYPE(self)->tp_free(self);
    Py_TRASHCAN_END
}

PyTypeObject Node_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "tenferro_tensor._accelerated.Node",
    .tp_doc = "Node(vjp, parents, saved)\n--\n\nThe record of one operation in reverse mode.",
    .tp_basicsize = sizeof(Node),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .tp_new = node_new,
    .tp_dealloc = node_dealloc,
    .tp_traverse = node_traverse,
    .tp_clear = node_clear,
    .tp_members = node_members,
};

PyObject *tenferro_node(PyObject *vjp, PyObject *parents, PyObject *saved)
{
    Node *n = (Node *)Node_Type.tp_alloc(&Node_Type, 0);
    if (n == NULL) {
        Py_DECREF(vjp);
        Py_DECREF(parents);
        Py_DECREF(saved);
        return NULL;
    }
    n->seq = recorded_nodes++;
    n->vjp = vjp;
    n->parents = parents;
    n->saved = saved;
    return (PyObject *)n;
}

int tenferro_add_values(PyObject *module)
{
    PyTypeObject *types[] = {&ValueBase_Type,  &TensorBase_Type, &RecordedBase_Type, &DualBase_Type,
                             &LanesBase_Type,  &SeriesBase_Type, &TracedBase_Type,   &Node_Type};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        if (types[i]->tp_new == NULL) { /* `object.__new__` creates them, as their Python twins */
            types[i]->tp_new = PyBaseObject_Type.tp_new;
        }
        if (PyModule_AddType(module, types[i]) < 0) {
            return -1;
        }
    }
    return 0;
}
