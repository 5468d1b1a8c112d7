/* The module tenferro_cpu.native._compiled: fixed machine code of the CPU backend. */
#define TENFERRO_MODULE
#include "compiled.h"

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "tenferro_cpu.native._compiled",
    .m_doc = "Fixed machine code of the CPU backend.",
    .m_size = -1,
};

static int (*const parts[])(PyObject *) = {
    tenferro_add_levels,
    tenferro_add_copy,
    tenferro_add_product,
    tenferro_add_team,
    tenferro_add_arbiter,
    tenferro_add_pool,
    tenferro_add_rows,
    tenferro_add_walks,
    tenferro_add_planned,
    tenferro_add_fused,
    tenferro_add_strided,
    tenferro_add_elementwise,
    tenferro_add_contraction,
    tenferro_add_whole,
    tenferro_add_along,
    tenferro_add_search,
    tenferro_add_small,
    tenferro_add_draw,
};

int tenferro_offer(PyObject *module, const char *name, uintptr_t address)
{
    PyObject *table = PyObject_GetAttrString(module, "ADDRESSES"), *number = PyLong_FromUnsignedLongLong(address);
    int failed = table == NULL || number == NULL || PyDict_SetItemString(table, name, number) < 0;
    Py_XDECREF(table);
    Py_XDECREF(number);
    return failed ? -1 : 0;
}

PyMODINIT_FUNC PyInit__compiled(void)
{
    import_array();
    PyObject *module = PyModule_Create(&definition), *table = PyDict_New();
    if (module != NULL && (table == NULL || PyModule_AddObjectRef(module, "ADDRESSES", table) < 0))
        Py_CLEAR(module);
    Py_XDECREF(table);
    for (size_t i = 0; module != NULL && i < sizeof parts / sizeof *parts; i++)
        if (parts[i](module) < 0)
            Py_CLEAR(module);
    return module;
}
