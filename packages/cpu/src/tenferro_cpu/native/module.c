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
};

PyMODINIT_FUNC PyInit__compiled(void)
{
    import_array();
    PyObject *module = PyModule_Create(&definition);
    for (size_t i = 0; module != NULL && i < sizeof parts / sizeof *parts; i++)
        if (parts[i](module) < 0)
            Py_CLEAR(module);
    return module;
}
