/* Shared declarations of the extension module tenferro_cpu.native._compiled. */
#ifndef TENFERRO_COMPILED_H
#define TENFERRO_COMPILED_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define PY_ARRAY_UNIQUE_SYMBOL tenferro_compiled_numpy
#ifndef TENFERRO_MODULE
#define NO_IMPORT_ARRAY
#endif
#include <numpy/arrayobject.h>

#include <stddef.h>
#include <stdint.h>

/* Each folder adds its types and functions to the module: 0, or -1 with an exception set. */
int tenferro_add_levels(PyObject *module);
int tenferro_add_copy(PyObject *module);
int tenferro_add_product(PyObject *module);
int tenferro_add_team(PyObject *module);
int tenferro_add_arbiter(PyObject *module);
int tenferro_add_pool(PyObject *module);
int tenferro_add_rows(PyObject *module);
int tenferro_add_walks(PyObject *module);
int tenferro_add_planned(PyObject *module);
int tenferro_add_fused(PyObject *module);
int tenferro_add_strided(PyObject *module);
int tenferro_add_elementwise(PyObject *module);
int tenferro_add_contraction(PyObject *module);
int tenferro_add_whole(PyObject *module);
int tenferro_add_along(PyObject *module);
int tenferro_add_search(PyObject *module);
int tenferro_add_small(PyObject *module);
int tenferro_add_draw(PyObject *module);

/* Publish an address for generated machine code, in the module's dict ADDRESSES: 0, or -1. */
int tenferro_offer(PyObject *module, const char *name, uintptr_t address);

#endif
