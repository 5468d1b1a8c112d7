/* Scopes in which NumPy's arrays come from a pool. */
#ifndef TENFERRO_HANDLERS_H
#define TENFERRO_HANDLERS_H

#include "compiled.h"

/* Put `handler` in force, but where `weak` is a handler only in its place; return the one that was in force, or NULL
 * with an exception set. */
PyObject *tenferro_pool_enter(PyObject *handler, PyObject *weak);

/* Restore the handler `before`, even while an exception is set: 0, or -1 with another exception. */
int tenferro_pool_leave(PyObject *before, int failed);

#endif
