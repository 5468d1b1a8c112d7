/* The thread team for Python: its counters, jobs of pieces in machine code, the limit of the calling Python thread. */
#include "compiled.h"
#include "threads/team.h"

#include <string.h>

static PyObject *limit_variable; /* the ContextVar of `with threads(n)` */

int64_t tenferro_team_allowed(void)
{
    PyObject *limit = NULL;
    long long allowed = 0;
    if (PyContextVar_Get(limit_variable, NULL, &limit) == 0 && limit != NULL)
        allowed = PyLong_AsLongLong(limit);
    Py_XDECREF(limit);
    if (allowed > 0)
        return allowed;
    PyErr_Clear();
    return tenferro_team.allowed;
}

static const struct counter {
    const char *name;
    atomic_llong *word;
} counters[] = {
    {"busy", &tenferro_team.busy},         {"callers", &tenferro_team.callers}, {"cores", &tenferro_team.cores},
    {"allowed", &tenferro_team.allowed},   {"started", &tenferro_team.started}, {"gate", &tenferro_team.gate},
    {"sleeping", &tenferro_team.sleeping}, {"running", &tenferro_team.running}, {"stop", &tenferro_team.stop},
    {"jobs", &tenferro_team.jobs},         {"rest", &tenferro_team.rest},
};

static atomic_llong *counter_named(const char *name)
{
    for (size_t i = 0; i < sizeof counters / sizeof *counters; i++)
        if (strcmp(counters[i].name, name) == 0)
            return counters[i].word;
    PyErr_Format(PyExc_KeyError, "the thread team has no counter '%s'", name);
    return NULL;
}

static PyObject *team_get(PyObject *module, PyObject *args)
{
    const char *name;
    atomic_llong *word;
    if (!PyArg_ParseTuple(args, "s", &name) || (word = counter_named(name)) == NULL)
        return NULL;
    return PyLong_FromLongLong(*word);
}

static PyObject *team_set(PyObject *module, PyObject *args)
{
    const char *name;
    long long value;
    atomic_llong *word;
    if (!PyArg_ParseTuple(args, "sL", &name, &value) || (word = counter_named(name)) == NULL)
        return NULL;
    *word = value;
    Py_RETURN_NONE;
}

static PyObject *team_run(PyObject *module, PyObject *args)
{
    unsigned long long piece, context;
    long long count, most;
    if (!PyArg_ParseTuple(args, "KKLL", &piece, &context, &count, &most))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    tenferro_team_run((tenferro_chunk *)(uintptr_t)piece, (void *)(uintptr_t)context, count, most);
    Py_END_ALLOW_THREADS
    Py_RETURN_NONE;
}

static PyObject *team_prepare(PyObject *module, PyObject *none)
{
    tenferro_team_prepare();
    Py_RETURN_NONE;
}

static PyObject *team_wake_all(PyObject *module, PyObject *none)
{
    tenferro_team_wake_all();
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"team_get", team_get, METH_VARARGS, "team_get(name): a counter of `struct tenferro_team`."},
    {"team_set", team_set, METH_VARARGS, "team_set(name, value): set a counter."},
    {"team_run", team_run, METH_VARARGS, "team_run(piece, context, count, most): a job; both first are addresses."},
    {"team_prepare", team_prepare, METH_NOARGS, "Make the locks anew, in the child of a fork."},
    {"team_wake_all", team_wake_all, METH_NOARGS, "Wake every worker, so that it sees the counter `stop`."},
    {NULL},
};

int tenferro_add_team(PyObject *module)
{
    PyObject *zero = PyLong_FromLong(0);
    if (zero == NULL)
        return -1;
    Py_XSETREF(limit_variable, PyContextVar_New("tenferro_cpu_threads", zero));
    Py_DECREF(zero);
    if (limit_variable == NULL || PyModule_AddObjectRef(module, "LIMIT", limit_variable) < 0)
        return -1;
    if (tenferro_offer(module, "tenferro_parallel_for", (uintptr_t)tenferro_team_run) < 0 ||
        tenferro_offer(module, "tenferro_allowed", (uintptr_t)tenferro_team_allowed) < 0)
        return -1;
    return PyModule_AddFunctions(module, functions);
}
