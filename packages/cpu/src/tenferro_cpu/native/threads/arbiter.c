/* The thread policy of BLAS libraries; `arbiter.h` states its laws, the Python class `Arbiter` is equivalent. */
#include "threads/arbiter.h"
#include "compiled.h"

struct tenferro_arbiter tenferro_arbiter;

static void set_threads(struct tenferro_library *library, int count)
{
    int now = library->get_threads();
    if (count == now)
        return;
    if (!library->changed) {
        library->before = now;
        library->changed = 1;
    }
    library->set_threads(count);
}

void tenferro_blas_enter(int64_t most, int64_t allowed)
{
    struct tenferro_arbiter *a = &tenferro_arbiter;
    int64_t me = (int64_t)PyThread_get_thread_ident();
    int first = a->inside++ == 0;
    if (!first && (a->owner == me || a->owner == 0))
        return;
    a->owner = first ? me : 0;
    for (int64_t i = 0; i < a->count; i++) {
        int64_t limit = allowed ? allowed : a->libraries[i].get_threads();
        set_threads(&a->libraries[i], !first ? 1 : (int)(most < limit ? most : limit));
    }
}

static void give_back(void)
{
    for (int64_t i = 0; i < tenferro_arbiter.count; i++) {
        struct tenferro_library *library = &tenferro_arbiter.libraries[i];
        if (library->changed) {
            library->changed = 0;
            library->set_threads(library->before);
        }
    }
}

void tenferro_blas_leave(void)
{
    if (tenferro_arbiter.inside > 0 && --tenferro_arbiter.inside == 0) /* a fork may have reset the count */
        give_back();
}

static PyObject *blas_enter(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    if (count != 2) {
        PyErr_SetString(PyExc_TypeError, "blas_enter takes the threads that pay, and the limit or 0");
        return NULL;
    }
    long long most = PyLong_AsLongLong(args[0]), allowed = PyLong_AsLongLong(args[1]);
    if ((most == -1 || allowed == -1) && PyErr_Occurred())
        return NULL;
    tenferro_blas_enter(most, allowed);
    Py_RETURN_NONE;
}

static PyObject *blas_leave(PyObject *module, PyObject *none)
{
    tenferro_blas_leave();
    Py_RETURN_NONE;
}

/* Register a library; False if there is no room for it. */
static PyObject *blas_add(PyObject *module, PyObject *args)
{
    struct tenferro_arbiter *a = &tenferro_arbiter;
    unsigned long long getter, setter;
    if (!PyArg_ParseTuple(args, "KK", &getter, &setter))
        return NULL;
    if (a->count == TENFERRO_MAX_LIBRARIES)
        Py_RETURN_FALSE;
    struct tenferro_library *library = &a->libraries[a->count];
    library->get_threads = (int (*)(void))(uintptr_t)getter;
    library->set_threads = (void (*)(int))(uintptr_t)setter;
    a->count++;
    Py_RETURN_TRUE;
}

static PyObject *blas_scopes(PyObject *module, PyObject *change)
{
    long long n = PyLong_AsLongLong(change);
    if (n == -1 && PyErr_Occurred())
        return NULL;
    tenferro_arbiter.scopes += n;
    Py_RETURN_NONE;
}

/* In the child of a fork: calls of the parent's other threads never end here. */
static PyObject *blas_after_fork(PyObject *module, PyObject *none)
{
    tenferro_arbiter.inside = 0;
    give_back();
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"blas_enter", (PyCFunction)(void (*)(void))blas_enter, METH_FASTCALL, "blas_enter(most, allowed): before a call."},
    {"blas_leave", blas_leave, METH_NOARGS, "After a call."},
    {"blas_add", blas_add, METH_VARARGS, "blas_add(getter, setter): addresses of a library; False if there are many."},
    {"blas_scopes", blas_scopes, METH_O, "blas_scopes(change): scopes of `threads` open or close."},
    {"blas_after_fork", blas_after_fork, METH_NOARGS, "In the child of a fork: nobody is inside."},
    {NULL},
};

int tenferro_add_arbiter(PyObject *module)
{
    if (tenferro_offer(module, "tenferro_blas_state", (uintptr_t)&tenferro_arbiter) < 0 ||
        tenferro_offer(module, "tenferro_blas_enter", (uintptr_t)tenferro_blas_enter) < 0 ||
        tenferro_offer(module, "tenferro_blas_leave", (uintptr_t)tenferro_blas_leave) < 0)
        return -1;
    return PyModule_AddFunctions(module, functions);
}
