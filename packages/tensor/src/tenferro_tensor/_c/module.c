/* The module tenferro_tensor._accelerated: the compiled twin of the functions that run and record operations. */
#define TENFERRO_MODULE
#include "_c/accelerated.h"

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "tenferro_tensor._accelerated",
    .m_doc = "The compiled twin of the functions that run and record operations.",
    .m_size = -1,
};

PyMODINIT_FUNC PyInit__accelerated(void)
{
    import_array();
    return PyModule_Create(&definition);
}
