/* The memory pool for Python: pools as NumPy allocation handlers, and calls with a handler in force.
 *
 * A pool is a capsule that holds its handler. An array keeps the capsule, so its block comes back to the pool when the
 * last reference to the array goes, and the pool ends when neither Python nor an array refers to it. */
#include "compiled.h"
#include "memory/handlers.h"
#include "memory/pool.h"

struct owned_pool {
    PyDataMem_Handler handler;
    struct tenferro_pool pool;
};

static const char capsule_name[] = "mem_handler"; /* NumPy asks for it */

static struct owned_pool *owned_by(PyObject *capsule)
{
    return PyCapsule_GetPointer(capsule, capsule_name);
}

static void end_pool(PyObject *capsule)
{
    struct owned_pool *owned = owned_by(capsule);
    tenferro_pool_trim(&owned->pool, 0);
    PyMem_RawFree(owned);
}

static PyObject *pool_new(PyObject *module, PyObject *none)
{
    struct owned_pool *owned = PyMem_RawCalloc(1, sizeof *owned);
    if (owned == NULL)
        return PyErr_NoMemory();
    owned->handler = (PyDataMem_Handler){
        .name = "tenferro",
        .version = 1,
        .allocator = {&owned->pool, tenferro_pool_malloc, tenferro_pool_calloc, tenferro_pool_realloc,
                      tenferro_pool_free},
    };
    PyObject *capsule = PyCapsule_New(owned, capsule_name, end_pool);
    if (capsule == NULL)
        PyMem_RawFree(owned);
    return capsule;
}

/* NumPy's own functions as another handler than the default one, in whose place pools come. */
static PyObject *pool_plain(PyObject *module, PyObject *none)
{
    PyDataMem_Handler *usual = PyCapsule_GetPointer(PyDataMem_DefaultHandler, capsule_name);
    struct owned_pool *owned = usual == NULL ? NULL : PyMem_RawCalloc(1, sizeof *owned);
    if (owned == NULL)
        return usual == NULL ? NULL : PyErr_NoMemory();
    owned->handler = *usual;
    PyObject *capsule = PyCapsule_New(owned, capsule_name, end_pool);
    if (capsule == NULL)
        PyMem_RawFree(owned);
    return capsule;
}

static PyObject *pool_install(PyObject *module, PyObject *handler)
{
    return PyDataMem_SetHandler(handler);
}

static PyObject *pool_bound(PyObject *module, PyObject *args)
{
    PyObject *capsule;
    struct owned_pool *owned;
    unsigned long long limit;
    if (!PyArg_ParseTuple(args, "OK", &capsule, &limit) || (owned = owned_by(capsule)) == NULL)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    tenferro_pool_bound(&owned->pool, limit);
    Py_END_ALLOW_THREADS
    Py_RETURN_NONE;
}

static PyObject *pool_clear(PyObject *module, PyObject *capsule)
{
    struct owned_pool *owned = owned_by(capsule);
    if (owned == NULL)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    tenferro_pool_trim(&owned->pool, 0);
    Py_END_ALLOW_THREADS
    Py_RETURN_NONE;
}

static PyObject *pool_stats(PyObject *module, PyObject *capsule)
{
    struct owned_pool *owned = owned_by(capsule);
    if (owned == NULL)
        return NULL;
    struct tenferro_pool_stats s = tenferro_pool_stats(&owned->pool);
    return Py_BuildValue("{sKsKsKsKsKsKsK}", "limit", (unsigned long long)s.limit, "cached",
                         (unsigned long long)s.cached, "live", (unsigned long long)s.live, "peak",
                         (unsigned long long)s.peak, "hits", (unsigned long long)s.hits, "misses",
                         (unsigned long long)s.misses, "returned", (unsigned long long)s.returned);
}

int tenferro_pool_leave(PyObject *before, int failed)
{
    PyObject *type = NULL, *value = NULL, *trace = NULL;
    if (failed)
        PyErr_Fetch(&type, &value, &trace);
    PyObject *ours = PyDataMem_SetHandler(before);
    if (ours == NULL) { /* memory is short; a handler that stays in force would serve all other code */
        PyErr_Clear();
        ours = PyDataMem_SetHandler(before);
    }
    Py_DECREF(before);
    if (ours != NULL && failed)
        PyErr_Restore(type, value, trace);
    else if (ours == NULL) {
        Py_XDECREF(type);
        Py_XDECREF(value);
        Py_XDECREF(trace);
    }
    Py_XDECREF(ours);
    return ours == NULL ? -1 : 0;
}

PyObject *tenferro_pool_enter(PyObject *handler, PyObject *weak)
{
    PyObject *before = PyDataMem_GetHandler();
    if (before == NULL || (weak != Py_None && before != weak))
        return before;
    PyObject *old = PyDataMem_SetHandler(handler);
    if (old == NULL) { /* memory is short, and the handler may be in force all the same */
        tenferro_pool_leave(before, 1);
        return NULL;
    }
    Py_DECREF(old);
    return before;
}

/* The tuple `self` holds the handler, the callable, and the handler that gives way or None. */
static PyObject *scoped(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    PyObject *before = tenferro_pool_enter(PyTuple_GET_ITEM(self, 0), PyTuple_GET_ITEM(self, 2));
    if (before == NULL)
        return NULL;
    PyObject *result = PyObject_Vectorcall(PyTuple_GET_ITEM(self, 1), args, count, NULL);
    if (tenferro_pool_leave(before, result == NULL) < 0)
        Py_CLEAR(result);
    return result;
}

static PyMethodDef scoped_definition = {
    "scoped", (PyCFunction)(void (*)(void))scoped, METH_FASTCALL, "A call whose arrays are taken from a pool.",
};

static PyObject *pool_scoped(PyObject *module, PyObject *args)
{
    PyObject *capsule, *call;
    int gives_way;
    if (!PyArg_ParseTuple(args, "OOp", &capsule, &call, &gives_way) || owned_by(capsule) == NULL)
        return NULL;
    PyObject *self = PyTuple_Pack(3, capsule, call, gives_way ? PyDataMem_DefaultHandler : Py_None);
    PyObject *made = self == NULL ? NULL : PyCFunction_NewEx(&scoped_definition, self, NULL);
    Py_XDECREF(self);
    return made;
}

static PyMethodDef functions[] = {
    {"pool_new", pool_new, METH_NOARGS, "A pool that keeps nothing yet, as the capsule of a NumPy allocation handler."},
    {"pool_plain", pool_plain, METH_NOARGS, "NumPy's own allocator as a capsule that no pool takes the place of."},
    {"pool_install", pool_install, METH_O, "Put the handler of a capsule in force in this context; the one before."},
    {"pool_bound", pool_bound, METH_VARARGS, "pool_bound(pool, limit): change the bytes that may be kept unused."},
    {"pool_clear", pool_clear, METH_O, "Give the unused blocks of a pool back to the system."},
    {"pool_stats", pool_stats, METH_O, "The numbers of `struct tenferro_pool_stats`."},
    {"pool_scoped", pool_scoped, METH_VARARGS,
     "pool_scoped(pool, call, gives_way): `call` with NumPy's arrays taken from the pool; positional arguments only."},
    {NULL},
};

int tenferro_add_pool(PyObject *module)
{
    static int prepared;
    if (!prepared && tenferro_pool_prepare() != 0) {
        PyErr_NoMemory();
        return -1;
    }
    prepared = 1;
    if (PyModule_AddIntConstant(module, "POOLED_MIN_BYTES", TENFERRO_POOLED_MIN_BYTES) < 0)
        return -1;
    return PyModule_AddFunctions(module, functions);
}
