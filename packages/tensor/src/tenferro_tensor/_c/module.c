/* The module tenferro_tensor._accelerated: the compiled twin of the call path: running and recording operations. */
#define TENFERRO_MODULE
#include "_c/accelerated.h"

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "tenferro_tensor._accelerated",
    .m_doc = "The compiled twin of the call path: running and recording operations.",
    .m_size = -1,
};

static int (*const parts[])(PyObject *) = {
    tenferro_add_assign,
    tenferro_add_sharing,
    tenferro_add_values,
    tenferro_add_state,
    tenferro_add_ops,
    tenferro_add_call,
    tenferro_add_specs,
    tenferro_add_direct,
    tenferro_add_forms,
    tenferro_add_steps,
    tenferro_add_backward,
};

PyMODINIT_FUNC PyInit__accelerated(void)
{
    import_array();
    PyObject *module = PyModule_Create(&definition);
    if (module == NULL) {
        return NULL;
    }
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (parts[i](module) < 0) {
            Py_DECREF(module);
            return NULL;
        }
    }
    return module;
}
