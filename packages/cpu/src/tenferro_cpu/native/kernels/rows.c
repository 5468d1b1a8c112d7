/* The tables of row kernels of this process, as addresses for Python. */
#include "compiled.h"
#include "kernels/arithmetic.h"
#include "kernels/reductions.h"

/* Puts the addresses under a name; 0 where there is no kernel. */
static int put(PyObject *table, const char *name, PyObject *addresses)
{
    int status = addresses == NULL ? -1 : PyDict_SetItemString(table, name, addresses);
    Py_XDECREF(addresses);
    return status;
}

#define ADDRESS(f) ((unsigned long long)(uintptr_t)(f))

static PyObject *arithmetic(void)
{
    PyObject *table = PyDict_New();
    for (const struct tenferro_row *row = TENFERRO_CHOOSE(tenferro_rows)(); table != NULL && row->name; row++)
        if (put(table, row->name,
                Py_BuildValue("(KKK)", ADDRESS(row->arrays), ADDRESS(row->number), ADDRESS(row->reflected))) < 0)
            Py_CLEAR(table);
    return table;
}

static PyObject *reductions(void)
{
    PyObject *table = PyDict_New();
    for (const struct tenferro_reduction *row = TENFERRO_CHOOSE(tenferro_reductions)(); table != NULL && row->name; row++)
        if (put(table, row->name, Py_BuildValue("(KK)", ADDRESS(row->trailing), ADDRESS(row->leading))) < 0)
            Py_CLEAR(table);
    return table;
}

int tenferro_add_rows(PyObject *module)
{
    PyObject *rows = arithmetic(), *reducing = reductions();
    int status = rows == NULL || reducing == NULL ? -1 : PyModule_AddObjectRef(module, "ROWS", rows);
    if (status == 0)
        status = PyModule_AddObjectRef(module, "REDUCTIONS", reducing);
    Py_XDECREF(rows);
    Py_XDECREF(reducing);
    return status;
}
