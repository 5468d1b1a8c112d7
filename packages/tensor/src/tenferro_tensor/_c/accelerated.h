/* What the files of the extension module tenferro_tensor._accelerated share. */
#ifndef TENFERRO_ACCELERATED_H
#define TENFERRO_ACCELERATED_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>

#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define PY_ARRAY_UNIQUE_SYMBOL tenferro_accelerated_numpy
#ifndef TENFERRO_MODULE
#define NO_IMPORT_ARRAY
#endif
#include <numpy/arrayobject.h>

/* Each file adds its types and functions to the module: 0, or -1 with an exception set. */
int tenferro_add_assign(PyObject *module);
int tenferro_add_sharing(PyObject *module);
int tenferro_add_values(PyObject *module);
int tenferro_add_state(PyObject *module);
int tenferro_add_ops(PyObject *module);
int tenferro_add_call(PyObject *module);
int tenferro_add_specs(PyObject *module);
int tenferro_add_direct(PyObject *module);
int tenferro_add_forms(PyObject *module);
int tenferro_add_steps(PyObject *module);
int tenferro_add_backward(PyObject *module);

#endif
