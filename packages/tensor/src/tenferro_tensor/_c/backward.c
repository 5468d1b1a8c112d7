/* `backward`: the loop of the backward pass. Its Python twin is in _interpreted.py. */
#include "_c/values.h"

/* The nodes to visit, newest first: a binary heap of owned references. */
typedef struct {
    Node **nodes;
    Py_ssize_t count, room;
} Heap;

static int heap_push(Heap *h, Node *node)
{
    if (h->count == h->room) {
        Py_ssize_t room = h->room ? 2 * h->room : 64;
        Node **grown = PyMem_Realloc(h->nodes, (size_t)room * sizeof *grown);
        if (grown == NULL) {
            PyErr_NoMemory();
            return 0;
        }
        h->nodes = grown;
        h->room = room;
    }
    Py_ssize_t i = h->count++;
    for (; i > 0 && h->nodes[(i - 1) / 2]->seq < node->seq; i = (i - 1) / 2) {
        h->nodes[i] = h->nodes[(i - 1) / 2];
    }
    h->nodes[i] = (Node *)Py_NewRef(node);
    return 1;
}

/* Remove and return the newest node, with its reference. */
static Node *heap_pop(Heap *h)
{
    Node *newest = h->nodes[0], *last = h->nodes[--h->count];
    Py_ssize_t i = 0, child;
    while ((child = 2 * i + 1) < h->count) {
        if (child + 1 < h->count && h->nodes[child + 1]->seq > h->nodes[child]->seq) {
            child++;
        }
        if (h->nodes[child]->seq <= last->seq) {
            break;
        }
        h->nodes[i] = h->nodes[child];
        i = child;
    }
    h->nodes[i] = last;
    return newest;
}

static void heap_free(Heap *h)
{
    while (h->count > 0) {
        Py_DECREF(h->nodes[--h->count]);
    }
    PyMem_Free(h->nodes);
}

static int refuse(PyObject *node)
{
    PyErr_Format(PyExc_TypeError,
                 "the graph contains %R instead of a node with a vjp and a tuple of older parents; nodes belong to the "
                 "library: record the value again, and do not modify them", node);
    return 0;
}

/* Push an inner node; leaves keep their cotangents. */
static int enqueue(Heap *h, PyObject *node)
{
    if (!PyObject_TypeCheck(node, &Node_Type) || ((Node *)node)->vjp == NULL) {
        return refuse(node);
    }
    return ((Node *)node)->vjp == Py_None || heap_push(h, (Node *)node);
}

/* Add a cotangent to that of a parent. */
static int accumulate(Heap *h, PyObject *cotangents, Node *node, PyObject *parent, PyObject *c)
{
    PyObject *have = PyDict_GetItemWithError(cotangents, parent);
    if (have == NULL) {
        if (PyErr_Occurred()) {
            return 0;
        }
        if (!PyObject_TypeCheck(parent, &Node_Type) || ((Node *)parent)->seq >= node->seq) {
            return refuse((PyObject *)node); /* a cycle would never end */
        }
        return PyDict_SetItem(cotangents, parent, c) == 0 && enqueue(h, parent);
    }
    Py_INCREF(have);
    PyObject *sum = PyNumber_Add(have, c);
    Py_DECREF(have);
    int kept = sum != NULL && PyDict_SetItem(cotangents, parent, sum) == 0;
    Py_XDECREF(sum);
    return kept;
}

static int accumulate_all(Heap *h, PyObject *cotangents, Node *node, PyObject *parents, PyObject *found)
{
    Py_ssize_t n = Py_MIN(PyTuple_GET_SIZE(parents), PyTuple_GET_SIZE(found));
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *c = PyTuple_GET_ITEM(found, i);
        if (c != Py_None && !accumulate(h, cotangents, node, PyTuple_GET_ITEM(parents, i), c)) {
            return 0;
        }
    }
    return 1;
}

/* The cotangents of the parents, as a tuple. */
static PyObject *parent_cotangents(PyObject *vjp, PyObject *g, PyObject *saved)
{
    PyObject *args[] = {NULL, g, saved}, *found;
    if (Py_IS_TYPE(vjp, &Steps_Type)) {
        return tenferro_run_steps(vjp, g, saved);
    }
    found = PyObject_Vectorcall(vjp, args + 1, 2 | PY_VECTORCALL_ARGUMENTS_OFFSET, NULL);
    if (found != NULL && !PyTuple_CheckExact(found)) {
        Py_SETREF(found, PySequence_Tuple(found));
    }
    return found;
}

/* Append the failed node, preserving the current exception. */
static void note_failure(PyObject *failed, Node *node)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    if (PyList_Append(failed, (PyObject *)node) < 0) {
        PyErr_Clear();
    }
    PyErr_Restore(type, value, traceback);
}

/* Drop the references of a node. */
static int released(Node *node, PyObject *release)
{
    PyObject *none = PyTuple_New(0);
    if (none == NULL) {
        return 0;
    }
    PyObject *vjp = node->vjp, *parents = node->parents, *saved = node->saved;
    node->vjp = Py_NewRef(release);
    node->parents = none;
    node->saved = Py_NewRef(Py_None);
    Py_XDECREF(vjp);
    Py_XDECREF(parents);
    Py_XDECREF(saved);
    return 1;
}

/* Propagate the cotangent of one node to its parents. */
static int visit(Heap *h, PyObject *cotangents, Node *node, PyObject *failed)
{
    PyObject *g = Py_XNewRef(PyDict_GetItemWithError(cotangents, (PyObject *)node));
    if (g == NULL) {
        return !PyErr_Occurred();
    }
    PyObject *vjp = Py_XNewRef(node->vjp), *parents = Py_XNewRef(node->parents), *saved = Py_XNewRef(node->saved);
    PyObject *found = NULL;
    int done = 0;
    if (vjp == NULL || saved == NULL || parents == NULL || !PyTuple_Check(parents)) {
        refuse((PyObject *)node);
    } else if (PyDict_DelItem(cotangents, (PyObject *)node) == 0) {
        if ((PyObject *)Py_TYPE(g) == tenferro_state.parts) {
            Py_SETREF(g, PyObject_CallMethod(g, "whole", NULL));
        }
        found = g == NULL ? NULL : parent_cotangents(vjp, g, saved);
        if (found == NULL) {
            note_failure(failed, node);
        } else {
            Py_CLEAR(g); /* frees its memory before sums are allocated */
            done = accumulate_all(h, cotangents, node, parents, found);
        }
    }
    Py_XDECREF(found);
    Py_XDECREF(g);
    Py_XDECREF(vjp);
    Py_XDECREF(parents);
    Py_XDECREF(saved);
    return done;
}

PyDoc_STRVAR(backward_doc,
"backward($module, cotangents, release, failed, /)\n--\n\n"
"Replace cotangents of nodes by those of the leaves below them, newest nodes first.");

static PyObject *backward(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
    if (n != 3 || !PyDict_CheckExact(args[0]) || !PyList_CheckExact(args[2])) {
        PyErr_SetString(PyExc_TypeError, "backward(cotangents, release, failed) takes a dict, anything, and a list");
        return NULL;
    }
    PyObject *cotangents = args[0], *release = args[1], *failed = args[2], *node, *g;
    Heap heap = {NULL, 0, 0};
    int good = 1;
    for (Py_ssize_t at = 0; good && PyDict_Next(cotangents, &at, &node, &g);) {
        good = enqueue(&heap, node);
    }
    while (good && heap.count > 0) {
        Node *newest = heap_pop(&heap);
        good = PyErr_CheckSignals() == 0 && visit(&heap, cotangents, newest, failed)
            && (release == Py_None || released(newest, release));
        Py_DECREF(newest);
    }
    heap_free(&heap);
    return good ? Py_NewRef(Py_None) : NULL;
}

static PyMethodDef functions[] = {
    {"backward", (PyCFunction)(void (*)(void))backward, METH_FASTCALL, backward_doc},
    {NULL},
};

int tenferro_add_backward(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
