/* The table of reducing row kernels of this process, as addresses for Python. */
#include "compiled.h"
#include "kernels/reductions.h"

int tenferro_add_reductions(PyObject *module)
{
    PyObject *table = PyDict_New();
    if (table == NULL)
        return -1;
    for (const struct tenferro_reduction *each = TENFERRO_CHOOSE(tenferro_reductions)(); each->name; each++) {
        PyObject *pair = Py_BuildValue("(KK)", (unsigned long long)(uintptr_t)each->trailing,
                                       (unsigned long long)(uintptr_t)each->leading);
        if (pair == NULL || PyDict_SetItemString(table, each->name, pair) < 0) {
            Py_XDECREF(pair);
            Py_DECREF(table);
            return -1;
        }
        Py_DECREF(pair);
    }
    int status = PyModule_AddObjectRef(module, "REDUCTIONS", table);
    Py_DECREF(table);
    return status;
}
