/* The types of values: concrete tensors, recorded values, and their nodes. */
#include "_c/values.h"

static PyMemberDef tensor_members[] = {
    {"_data", T_OBJECT_EX, offsetof(Tensor, data), 0, "The raw array of the backend."},
    {"spec", T_OBJECT_EX, offsetof(Tensor, spec), 0, "Shape, dtype and place."},
    {NULL},
};

static int tensor_traverse(PyObject *self, visitproc visit, void *arg)
{
    Tensor *x = (Tensor *)self;
    Py_VISIT(x->data);
    Py_VISIT(x->spec);
    return 0;
}

static int tensor_clear(PyObject *self)
{
    Tensor *x = (Tensor *)self;
    Py_CLEAR(x->data);
    Py_CLEAR(x->spec);
    return 0;
}

static void tensor_dealloc(PyObject *self)
{
    PyObject_GC_UnTrack(self);
    if (((Tensor *)self)->weak != NULL) {
        PyObject_ClearWeakRefs(self);
    }
    tensor_clear(self);
    Py_TYPE(self)->tp_free(self);
}

static PyMappingMethods tensor_mapping = {.mp_subscript = tenferro_subscript};

PyTypeObject TensorBase_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_as_mapping = &tensor_mapping,
    .tp_name = "tenferro_tensor._accelerated.TensorBase",
    .tp_doc = "The fields of a concrete tensor.",
    .tp_basicsize = sizeof(Tensor),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .tp_dealloc = tensor_dealloc,
    .tp_traverse = tensor_traverse,
    .tp_clear = tensor_clear,
    .tp_weaklistoffset = offsetof(Tensor, weak),
    .tp_members = tensor_members,
};

PyObject *tenferro_tensor(PyObject *data, PyObject *spec)
{
    PyTypeObject *type = tenferro_state.tensor;
    Py_INCREF(spec); /* first: allocation may run code */
    Tensor *x = (Tensor *)type->tp_alloc(type, 0);
    if (x == NULL) {
        Py_DECREF(data);
        Py_DECREF(spec);
        return NULL;
    }
    x->data = data;
    x->spec = spec;
    return (PyObject *)x;
}

#define MEMBERS_OF_DIFFERENTIATED \
    {"value", T_OBJECT_EX, offsetof(Differentiated, value), 0, "The value inside, of a lower level."}, \
    {"spec", T_OBJECT_EX, offsetof(Differentiated, spec), 0, "Shape, dtype and place."}, \
    {"level", T_OBJECT_EX, offsetof(Differentiated, level), 0, "The level of differentiation that it belongs to."}

static PyMemberDef recorded_members[] = {
    MEMBERS_OF_DIFFERENTIATED,
    {"node", T_OBJECT_EX, offsetof(Differentiated, link), 0, "The record of the operation that made it."},
    {NULL},
};

static PyMemberDef dual_members[] = {
    MEMBERS_OF_DIFFERENTIATED,
    {"tangent", T_OBJECT_EX, offsetof(Differentiated, link), 0, "The tangent, of the same spec."},
    {NULL},
};

static int differentiated_traverse(PyObject *self, visitproc visit, void *arg)
{
    Differentiated *x = (Differentiated *)self;
    Py_VISIT(x->value);
    Py_VISIT(x->spec);
    Py_VISIT(x->level);
    Py_VISIT(x->link);
    return 0;
}

static int differentiated_clear(PyObject *self)
{
    Differentiated *x = (Differentiated *)self;
    Py_CLEAR(x->value);
    Py_CLEAR(x->spec);
    Py_CLEAR(x->level);
    Py_CLEAR(x->link);
    return 0;
}

static void differentiated_dealloc(PyObject *self)
{
    PyObject_GC_UnTrack(self);
    Py_TRASHCAN_BEGIN(self, differentiated_dealloc)
    if (((Differentiated *)self)->weak != NULL) {
        PyObject_ClearWeakRefs(self);
    }
    differentiated_clear(self);
    Py_TYPE(self)->tp_free(self);
    Py_TRASHCAN_END
}

PyTypeObject RecordedBase_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "tenferro_tensor._accelerated.RecordedBase",
    .tp_doc = "The fields of a value that reverse mode records.",
    .tp_basicsize = sizeof(Differentiated),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .tp_dealloc = differentiated_dealloc,
    .tp_traverse = differentiated_traverse,
    .tp_clear = differentiated_clear,
    .tp_weaklistoffset = offsetof(Differentiated, weak),
    .tp_members = recorded_members,
};

PyTypeObject DualBase_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "tenferro_tensor._accelerated.DualBase",
    .tp_doc = "The fields of a value with a tangent, of forward mode.",
    .tp_basicsize = sizeof(Differentiated),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .tp_dealloc = differentiated_dealloc,
    .tp_traverse = differentiated_traverse,
    .tp_clear = differentiated_clear,
    .tp_weaklistoffset = offsetof(Differentiated, weak),
    .tp_members = dual_members,
};

PyObject *tenferro_differentiated(PyTypeObject *type, PyObject *value, PyObject *spec, PyObject *level, PyObject *link)
{
    Differentiated *x = (Differentiated *)type->tp_alloc(type, 0);
    if (x == NULL) {
        Py_DECREF(value);
        Py_DECREF(spec);
        Py_DECREF(level);
        Py_DECREF(link);
        return NULL;
    }
    x->value = value;
    x->spec = spec;
    x->level = level;
    x->link = link;
    return (PyObject *)x;
}

static PyMemberDef node_members[] = {
    {"seq", T_LONGLONG, offsetof(Node, seq), 0, "Place in the order of recording; every parent has a smaller one."},
    {"vjp", T_OBJECT_EX, offsetof(Node, vjp), 0, "Carries a cotangent to the parents."},
    {"parents", T_OBJECT_EX, offsetof(Node, parents), 0, "Nodes of the operands that are differentiated."},
    {"saved", T_OBJECT_EX, offsetof(Node, saved), 0, "What `vjp` needs of operands and outputs."},
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
    Py_TRASHCAN_BEGIN(self, node_dealloc) /* graphs are as deep as programs are long */
    node_clear(self);
    Py_TYPE(self)->tp_free(self);
    Py_TRASHCAN_END
}

PyTypeObject Node_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "tenferro_tensor._accelerated.Node",
    .tp_doc = "Node(vjp, parents, saved)\n--\n\nWhat reverse mode remembers of one operation.",
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
    PyTypeObject *types[] = {&TensorBase_Type, &RecordedBase_Type, &DualBase_Type, &Node_Type};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        if (types[i]->tp_new == NULL) { /* `object.__new__` makes them, as it makes their twins */
            types[i]->tp_new = PyBaseObject_Type.tp_new;
        }
        if (PyModule_AddType(module, types[i]) < 0) {
            return -1;
        }
    }
    return 0;
}
