/* Contractions for Python: plans as callables on arrays, the entry of small ones, and the filling of tables. */
#include "compiled.h"

#include <structmember.h>

#include "contraction/step.h"
#include "contraction/tables.h"
#include "threads/team.h"

enum {
    SMALL_BYTES = 16 << 10, /* maximum bytes of intermediate values and packed panels that the entry keeps on the stack */
    SMALL_OPERANDS = 6,
    FEW_ARRAYS = 32, /* maximum arrays whose addresses are kept on the stack */
};

/* Steps whose places are numbers of arrays. Calls pass the operands, the arena, the result and values that are kept;
 * one call may pass through the plan while another thread lets it go, so calls hold it. */
struct plan {
    PyObject_HEAD
    vectorcallfunc call;
    const struct engine *engine;
    Py_buffer records;
    PyObject *keeps; /* owner of the tables that records point to */
    PyArray_Descr *descr;
    Py_ssize_t operands, arrays; /* number of operands, and of arrays in a call */
    Py_ssize_t arena_bytes, scratch_at; /* bytes of the arena before the packed panels */
    char small; /* whether the entry may run it */
    int shared; /* whether some step pays for several threads */
    int releases; /* whether the work justifies releasing the interpreter's lock */
    int64_t *layout; /* for each operand its axes, extents and strides; for the result its axes and extents */
};

static PyTypeObject plan_type;

static void run_plan(const struct plan *plan, char *const *bases, char *scratch, int64_t threads)
{
    const int64_t steps = plan->records.len / (Py_ssize_t)sizeof(struct step);
    contraction_run(plan->engine, plan->records.buf, steps, bases, scratch, threads);
}

/* plan(*arrays): returns the array after the arena, the result. */
static PyObject *plan_call(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    struct plan *plan = (struct plan *)self;
    char *few[FEW_ARRAYS + 1], **bases = few;
    PyObject *result = NULL;
    if (PyVectorcall_NARGS(nargsf) != plan->arrays || kwnames != NULL)
        return PyErr_Format(PyExc_TypeError, "this plan is called with %zd arrays", plan->arrays);
    if (plan->arrays > FEW_ARRAYS && (bases = PyMem_New(char *, plan->arrays + 1)) == NULL)
        return PyErr_NoMemory();
    for (Py_ssize_t n = 0; n < plan->arrays; n++) {
        if (!PyArray_Check(args[n])) {
            PyErr_Format(PyExc_TypeError, "a plan is called with arrays, argument %zd is %R", n, Py_TYPE(args[n]));
            goto done;
        }
        bases[n] = PyArray_BYTES((PyArrayObject *)args[n]);
    }
    bases[plan->arrays] = (char *)plan->engine->one;
    const int64_t threads = plan->shared ? tenferro_team_allowed() : 1;
    char *scratch = bases[plan->operands] + plan->scratch_at;
    if (plan->releases) {
        Py_BEGIN_ALLOW_THREADS
        run_plan(plan, bases, scratch, threads);
        Py_END_ALLOW_THREADS
    } else {
        run_plan(plan, bases, scratch, threads);
    }
    result = Py_NewRef(args[plan->operands + 1]);
done:
    if (bases != few)
        PyMem_Free(bases);
    return result;
}

static void plan_dealloc(PyObject *self)
{
    struct plan *plan = (struct plan *)self;
    if (plan->records.obj != NULL)
        PyBuffer_Release(&plan->records);
    Py_XDECREF(plan->keeps);
    Py_XDECREF(plan->descr);
    PyMem_Free(plan->layout);
    Py_TYPE(self)->tp_free(self);
}

/* A copy of a sequence that describes the arrays: `[axes, *extents, *strides]` each, `[axes, *extents]` for the
 * result. */
static int64_t *copied_layout(PyObject *given, Py_ssize_t operands)
{
    Py_buffer view;
    int64_t *made = NULL;
    if (PyObject_GetBuffer(given, &view, PyBUF_SIMPLE) < 0)
        return NULL;
    const Py_ssize_t count = view.len / (Py_ssize_t)sizeof(int64_t);
    const int64_t *words = view.buf;
    Py_ssize_t at = 0;
    for (Py_ssize_t n = 0; n <= operands && at < count; n++) {
        if (words[at] < 0 || words[at] > NPY_MAXDIMS)
            at = count;
        at += 1 + words[at] * (n < operands ? 2 : 1);
    }
    if (at != count)
        PyErr_SetString(PyExc_ValueError, "the layout does not fit the number of operands");
    else if ((made = PyMem_Malloc(view.len)) == NULL)
        PyErr_NoMemory();
    else
        memcpy(made, words, view.len);
    PyBuffer_Release(&view);
    return made;
}

static PyObject *plan_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"dtype", "level", "records", "keeps", "arrays", "arena", "scratch",
                            "shared", "releases", "operands", "layout", NULL};
    PyArray_Descr *descr;
    PyObject *records, *keeps, *layout;
    const char *level;
    Py_ssize_t arrays, arena, scratch, operands;
    int shared, releases;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!zOOnnnppnO:ContractionPlan", names, &PyArrayDescr_Type, &descr,
                                     &level, &records, &keeps, &arrays, &arena, &scratch, &shared, &releases,
                                     &operands, &layout))
        return NULL;
    const struct engine *engine = contraction_engine(descr->type, level);
    if (engine == NULL || operands < 0 || arrays < operands + 2) {
        PyErr_SetString(PyExc_ValueError, "there is no code for this dtype and level, or arrays are missing");
        return NULL;
    }
    struct plan *plan = (struct plan *)type->tp_alloc(type, 0);
    if (plan == NULL)
        return NULL;
    plan->call = plan_call;
    plan->engine = engine;
    plan->keeps = Py_NewRef(keeps);
    plan->descr = (PyArray_Descr *)Py_NewRef(descr);
    plan->operands = operands;
    plan->arrays = arrays;
    plan->arena_bytes = arena;
    plan->scratch_at = scratch;
    plan->shared = shared;
    plan->releases = releases;
    plan->small = operands <= SMALL_OPERANDS && arrays == operands + 2 && arena <= SMALL_BYTES && !shared;
    if (PyObject_GetBuffer(records, &plan->records, PyBUF_SIMPLE) < 0 ||
        (plan->layout = copied_layout(layout, operands)) == NULL)
        Py_CLEAR(plan);
    return (PyObject *)plan;
}

static PyMemberDef plan_members[] = {
    {"small", T_BOOL, offsetof(struct plan, small), READONLY, "Whether `contraction_entry` may run it."},
    {NULL},
};

static PyTypeObject plan_type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "tenferro_cpu.native._compiled.ContractionPlan",
    .tp_doc = "The steps of contractions, called with the arrays that they read and write.",
    .tp_basicsize = sizeof(struct plan),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_vectorcall_offset = offsetof(struct plan, call),
    .tp_call = PyVectorcall_Call,
    .tp_members = plan_members,
    .tp_new = plan_new,
    .tp_dealloc = plan_dealloc,
};

/* Whether these are the plan's operands: exact arrays of the dtype with the same extents and strides. The extents of
 * the result follow in the layout. */
static const int64_t *fits(const struct plan *plan, PyObject *const *args, Py_ssize_t count)
{
    const int64_t *layout = plan->layout;
    if (count != plan->operands || !plan->small)
        return NULL;
    for (Py_ssize_t n = 0; n < count; n++) {
        if (!PyArray_CheckExact(args[n]))
            return NULL;
        PyArrayObject *x = (PyArrayObject *)args[n];
        const int64_t axes = *layout++;
        if (PyArray_DESCR(x) != plan->descr || PyArray_NDIM(x) != axes)
            return NULL;
        for (int64_t k = 0; k < axes; k++)
            if (PyArray_DIM(x, k) != layout[k] || PyArray_STRIDE(x, k) != layout[axes + k])
                return NULL;
        layout += 2 * axes;
    }
    return layout;
}

/* A call of a small plan: the result is a new array, intermediate values are on the stack. */
static PyObject *call_small(struct plan *plan, PyObject *const *args, const int64_t *result_layout)
{
    _Alignas(64) char arena[SMALL_BYTES];
    char *bases[SMALL_OPERANDS + 3];
    npy_intp extents[NPY_MAXDIMS];
    for (int64_t k = 0; k < result_layout[0]; k++)
        extents[k] = (npy_intp)result_layout[1 + k];
    Py_INCREF(plan->descr);
    PyObject *result = PyArray_NewFromDescr(&PyArray_Type, plan->descr, (int)result_layout[0], extents, NULL, NULL, 0,
                                            NULL);
    if (result == NULL)
        return NULL;
    for (Py_ssize_t n = 0; n < plan->operands; n++)
        bases[n] = PyArray_BYTES((PyArrayObject *)args[n]);
    bases[plan->operands] = arena;
    bases[plan->operands + 1] = PyArray_BYTES((PyArrayObject *)result);
    bases[plan->operands + 2] = (char *)plan->engine->one;
    run_plan(plan, bases, arena + plan->scratch_at, 1);
    return result;
}

/* The entry of small contractions: runs calls that fit the plan in `cell`, and passes all others to the kernel. */
static PyObject *enter(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    PyObject *kernel = PyTuple_GET_ITEM(self, 0), *cell = PyTuple_GET_ITEM(self, 1);
    PyObject *plan = PyList_GET_SIZE(cell) ? PyList_GET_ITEM(cell, 0) : Py_None;
    if (Py_IS_TYPE(plan, &plan_type)) {
        const int64_t *result_layout = fits((struct plan *)plan, args, count);
        if (result_layout != NULL) {
            Py_INCREF(plan);
            PyObject *result = call_small((struct plan *)plan, args, result_layout);
            Py_DECREF(plan);
            return result;
        }
    }
    return PyObject_Vectorcall(kernel, args, (size_t)count, NULL);
}

static PyMethodDef enter_definition = {
    "contract", (PyCFunction)(void (*)(void))enter, METH_FASTCALL, "A contraction of arrays."};

static PyObject *contraction_entry(PyObject *module, PyObject *args)
{
    PyObject *kernel, *cell;
    if (!PyArg_ParseTuple(args, "OO!", &kernel, &PyList_Type, &cell))
        return NULL;
    return PyCFunction_New(&enter_definition, args);
}

static PyObject *contraction_sizes(PyObject *module, PyObject *args)
{
    int dtype;
    const char *level = NULL;
    if (!PyArg_ParseTuple(args, "C|z", &dtype, &level))
        return NULL;
    const struct engine *e = contraction_engine((char)dtype, level);
    if (e == NULL)
        Py_RETURN_NONE;
    return Py_BuildValue("{sssLsLsLsLs(LL)s(LL)sL}", "level", e->level, "item", e->item, "width", e->width, "vectors",
                         e->vectors, "columns", e->columns, "dot", e->dot_rows, e->dot_columns, "lanes",
                         e->lanes_rows, e->lanes_columns, "masks", e->masks);
}

static PyObject *fill_tables(PyObject *module, PyObject *args)
{
    Py_buffer program, room;
    Py_ssize_t count;
    if (!PyArg_ParseTuple(args, "y*nw*", &program, &count, &room))
        return NULL;
    contraction_fill_tables(program.buf, count, room.buf);
    PyBuffer_Release(&program);
    PyBuffer_Release(&room);
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"contraction_entry", contraction_entry, METH_VARARGS,
     "contraction_entry(kernel, cell): the kernel, but for calls that the small plan in the list `cell` fits."},
    {"contraction_sizes", contraction_sizes, METH_VARARGS,
     "contraction_sizes(dtype, level=None): what the code is made for; None where this processor has no such level."},
    {"contraction_fill_tables", fill_tables, METH_VARARGS,
     "contraction_fill_tables(program, count, room): fill tables of offsets and flags."},
    {NULL},
};

int tenferro_add_contraction(PyObject *module)
{
    if (PyModule_AddType(module, &plan_type) < 0 ||
        PyModule_AddIntConstant(module, "CONTRACTION_WORDS", sizeof(struct step) / 8) < 0)
        return -1;
    return PyModule_AddFunctions(module, functions);
}
