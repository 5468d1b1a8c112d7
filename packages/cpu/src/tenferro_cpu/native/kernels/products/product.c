/* `Product`: the callable that multiplies two arrays which are laid out as stacks of matrices.
 *
 * It takes arrays of exactly one dtype and of known numbers of axes, of known shapes or of any: small matrices are
 * multiplied by kernels of this folder, larger ones by the chosen BLAS. All other arguments are handed to the fallback.
 */
#include "kernels/products/product.h"
#include "operands.h"
#include "threads/arbiter.h"

#include <string.h>
#include <structmember.h>

enum { MAX_AXES = 8 }; /* of an operand or of the result */

/* Work is counted in multiplications and additions. */
struct measured {
    struct product product;
    npy_intp shape[2 * MAX_AXES]; /* of the result */
    int axes, small;
    int64_t work, threads;
};

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject *fallback;
    PyArray_Descr *descr;
    enum product_kind kind;
    int left_axes, right_axes;
    int stack;                 /* leading axes of both operands that are not summed */
    int contracted;            /* axes that are summed: the last of the left operand, the first of the right one */
    int swap_left, swap_right; /* the first after the stack; the last ones */
    int open;                  /* any sizes; further arguments may follow then, for the fallback */
    npy_intp left_shape[MAX_AXES], right_shape[MAX_AXES];
    struct measured measured; /* of these shapes, where only they are taken */
    product_kernel *multiply_small;
    void *gemm;                /* Fortran's xGEMM, or NULL */
    int64_t integer_bytes;     /* of its integers */
    int64_t most_work;         /* maximum work of one matrix for which BLAS takes stacks and transposed right matrices */
    int64_t one_thread;        /* maximum work of one matrix for which BLAS itself uses one thread */
    int64_t per_thread;        /* work that pays for one more thread */
    int64_t unlocked;          /* work of the stack above which the interpreter's lock is released */
} Product;

/* The product of extents, which go to `shape` as well. */
static int64_t copied(const npy_intp *extents, int count, npy_intp **shape)
{
    int64_t total = 1;
    for (int i = 0; i < count; i++) {
        total *= extents[i];
        *(*shape)++ = extents[i];
    }
    return total;
}

/* The product of extents that both have, else 0. */
static int64_t common(const npy_intp *xs, const npy_intp *ys, int count)
{
    int64_t total = 1;
    for (int i = 0; i < count; i++) {
        if (xs[i] != ys[i])
            return 0;
        total *= xs[i];
    }
    return total;
}

/* Measure the sizes; returns whether there is a kernel for them. */
static int measure(const Product *self, const npy_intp *xs, const npy_intp *ys, struct measured *m)
{
    const int stack = self->stack, summed = self->contracted;
    const int x_free = self->left_axes - stack - summed, y_free = self->right_axes - stack - summed;
    const npy_intp *x_summed = xs + stack + (self->swap_left ? 0 : x_free);
    const npy_intp *y_summed = ys + stack + (self->swap_right ? y_free : 0);
    npy_intp *shape = m->shape;
    struct product *p = &m->product;
    copied(xs, stack, &shape);
    p->count = common(xs, ys, stack);
    p->inner = common(x_summed, y_summed, summed);
    p->rows = copied(xs + stack + (self->swap_left ? summed : 0), x_free, &shape);
    p->columns = copied(ys + stack + (self->swap_right ? 0 : summed), y_free, &shape);
    p->swap_left = self->swap_left;
    p->swap_right = self->swap_right;
    m->axes = stack + x_free + y_free;
    m->work = p->rows * p->columns * p->inner;
    m->small = p->rows <= PRODUCT_SMALL && p->columns <= PRODUCT_SMALL && p->inner <= PRODUCT_SMALL;
    m->threads = m->work <= self->one_thread ? 0 : m->work < self->per_thread ? 1 : m->work / self->per_thread;
    if (m->work <= 0 || p->count <= 0)
        return 0;
    if (m->small)
        return 1;
    if (self->gemm == NULL || p->rows == 1 || p->columns == 1)
        return 0;
    if (self->integer_bytes == 4 && (p->rows | p->columns | p->inner) > INT32_MAX)
        return 0;
    return m->work <= self->most_work || (p->count == 1 && !p->swap_right);
}

/* The flags of an operand, or 0 if kernels do not support it. */
static int operand_flags(const Product *self, PyObject *o, int axes)
{
    if (!is_array_of(o, self->descr, NPY_ARRAY_ALIGNED) || PyArray_NDIM((PyArrayObject *)o) != axes)
        return 0;
    return PyArray_FLAGS((PyArrayObject *)o) & (NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_F_CONTIGUOUS);
}

typedef void gemm32(const char *, const char *, const int32_t *, const int32_t *, const int32_t *, const void *,
                    const void *, const int32_t *, const void *, const int32_t *, const void *, void *,
                    const int32_t *);
typedef void gemm64(const char *, const char *, const int64_t *, const int64_t *, const int64_t *, const void *,
                    const void *, const int64_t *, const void *, const int64_t *, const void *, void *,
                    const int64_t *);

/* Fortran is column-major: a row-major result is its transpose, out' = right' left', and row-major operands already are
 * transposes. */
static void multiply_large(const Product *self, const struct product *p, const char *left, const char *right, char *out)
{
    static const float ones_f[2] = {1, 0}, zeros_f[2];
    static const double ones_d[2] = {1, 0}, zeros_d[2];
    const int wide = self->kind == PRODUCT_F64 || self->kind == PRODUCT_C128;
    const void *one = wide ? (const void *)ones_d : ones_f, *zero = wide ? (const void *)zeros_d : zeros_f;
    const int64_t item = PyDataType_ELSIZE(self->descr);
    const int64_t lda = p->swap_left ? p->rows : p->inner, ldb = p->swap_right ? p->inner : p->columns;
    const char *left_letter = p->swap_left ? "T" : "N", *right_letter = p->swap_right ? "T" : "N";
    const int32_t m = (int32_t)p->rows, n = (int32_t)p->columns, k = (int32_t)p->inner;
    const int32_t lda32 = (int32_t)lda, ldb32 = (int32_t)ldb;
    for (int64_t i = 0; i < p->count; i++) {
        if (self->integer_bytes == 8)
            ((gemm64 *)self->gemm)(right_letter, left_letter, &p->columns, &p->rows, &p->inner, one, right, &ldb, left,
                                   &lda, zero, out, &p->columns);
        else
            ((gemm32 *)self->gemm)(right_letter, left_letter, &n, &m, &k, one, right, &ldb32, left, &lda32, zero, out,
                                   &n);
        left += p->rows * p->inner * item;
        right += p->inner * p->columns * item;
        out += p->rows * p->columns * item;
    }
}

static PyObject *product_call(PyObject *o, PyObject *const *args, size_t nargsf, PyObject *names)
{
    const Product *self = (const Product *)o;
    const Py_ssize_t nargs = PyVectorcall_NARGS(nargsf);
    struct measured own;
    const struct measured *m = &self->measured;
    if (names != NULL || nargs < 2 || (nargs > 2 && !self->open))
        goto fallback;
    const int x_flags = operand_flags(self, args[0], self->left_axes);
    const int y_flags = operand_flags(self, args[1], self->right_axes);
    if (!x_flags || !y_flags)
        goto fallback;
    PyArrayObject *x = (PyArrayObject *)args[0], *y = (PyArrayObject *)args[1];
    if (self->open) {
        m = &own;
        if (!measure(self, PyArray_DIMS(x), PyArray_DIMS(y), &own))
            goto fallback;
    } else if (!same_extents(PyArray_DIMS(x), self->left_shape, self->left_axes) ||
               !same_extents(PyArray_DIMS(y), self->right_shape, self->right_axes)) {
        goto fallback;
    }
    /* BLAS reads single matrices in the order of Fortran in place; both flags mean a row or a column. */
    const int both_ways = !m->small && self->left_axes == 2 && self->right_axes == 2;
    if (!both_ways && !(x_flags & y_flags & NPY_ARRAY_C_CONTIGUOUS))
        goto fallback;
    /* NumPy does half the work for a matrix times its own transpose. */
    if (!m->small && m->product.count == 1 && PyArray_DATA(x) == PyArray_DATA(y))
        goto fallback;
    const int shared = !m->small && m->threads;
    if (shared && tenferro_arbiter.scopes)
        goto fallback; /* it reads the limit of the scope */
    PyArrayObject *out = new_array(self->descr, m->axes, m->shape);
    if (out == NULL)
        return NULL;
    if (shared)
        tenferro_blas_enter(m->threads, 0);
    PyThreadState *state = m->work * m->product.count > self->unlocked ? PyEval_SaveThread() : NULL;
    const void *left = PyArray_DATA(x), *right = PyArray_DATA(y);
    if (m->small) {
        self->multiply_small(&m->product, left, right, PyArray_DATA(out));
    } else {
        struct product product = m->product;
        product.swap_left ^= x_flags == NPY_ARRAY_F_CONTIGUOUS;
        product.swap_right ^= y_flags == NPY_ARRAY_F_CONTIGUOUS;
        multiply_large(self, &product, left, right, PyArray_DATA(out));
    }
    if (state != NULL)
        PyEval_RestoreThread(state);
    if (shared)
        tenferro_blas_leave();
    return m->axes ? (PyObject *)out : PyArray_Return(out);
fallback:
    return PyObject_Vectorcall(self->fallback, args, nargsf, names);
}

static int product_traverse(PyObject *o, visitproc visit, void *arg)
{
    Py_VISIT(((Product *)o)->fallback);
    return 0;
}

static int product_clear(PyObject *o)
{
    PyObject *fallback = ((Product *)o)->fallback;
    ((Product *)o)->fallback = Py_NewRef(Py_None); /* a running call still needs an object */
    Py_XDECREF(fallback);
    return 0;
}

static void product_dealloc(PyObject *o)
{
    PyObject_GC_UnTrack(o);
    Py_XDECREF(((Product *)o)->fallback);
    Py_XDECREF(((Product *)o)->descr);
    Py_TYPE(o)->tp_free(o);
}

static int kind_of(PyArray_Descr *descr)
{
    if (!PyArray_ISNBO(descr->byteorder))
        return -1;
    switch (descr->type_num) {
    case NPY_FLOAT: return PRODUCT_F32;
    case NPY_DOUBLE: return PRODUCT_F64;
    case NPY_CFLOAT: return PRODUCT_C64;
    case NPY_CDOUBLE: return PRODUCT_C128;
    default: return -1;
    }
}

static PyObject *product_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"fallback", "dtype",         "axes",      "stack",      "contracted", "swap",     "shapes",
                            "gemm",     "integer_bytes", "most_work", "one_thread", "per_thread", "unlocked", NULL};
    PyObject *fallback;
    PyArray_Descr *descr;
    PyObject *shapes;
    int left, right, stack, contracted, swap_left, swap_right;
    unsigned long long gemm;
    long long integer_bytes, most_work, one_thread, per_thread, unlocked;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO!(ii)ii(pp)SKLLLLL:Product", names, &fallback, &PyArrayDescr_Type,
                                     &descr, &left, &right, &stack, &contracted, &swap_left, &swap_right, &shapes, &gemm,
                                     &integer_bytes, &most_work, &one_thread, &per_thread, &unlocked))
        return NULL;
    const int kind = kind_of(descr), free_axes = left + right - 2 * (stack + contracted);
    if (kind < 0 || stack < 0 || contracted < 1 || stack + contracted > left || stack + contracted > right ||
        left > MAX_AXES || right > MAX_AXES || stack + free_axes > MAX_AXES || per_thread < 1 ||
        (PyBytes_GET_SIZE(shapes) && PyBytes_GET_SIZE(shapes) != (Py_ssize_t)sizeof(npy_intp) * (left + right))) {
        PyErr_SetString(PyExc_ValueError, "there is no such product");
        return NULL;
    }
    Product *self = (Product *)type->tp_alloc(type, 0);
    if (self == NULL)
        return NULL;
    self->vectorcall = product_call;
    self->fallback = Py_NewRef(fallback);
    self->descr = (PyArray_Descr *)Py_NewRef(descr);
    self->kind = (enum product_kind)kind;
    self->left_axes = left;
    self->right_axes = right;
    self->stack = stack;
    self->contracted = contracted;
    self->swap_left = swap_left;
    self->swap_right = swap_right;
    self->multiply_small = TENFERRO_CHOOSE(product_kernels)->small[kind];
    self->gemm = (void *)(uintptr_t)gemm;
    self->integer_bytes = integer_bytes;
    self->most_work = most_work;
    self->one_thread = one_thread;
    self->per_thread = per_thread;
    self->unlocked = unlocked;
    self->open = PyBytes_GET_SIZE(shapes) == 0;
    if (!self->open) {
        const npy_intp *extents = (const npy_intp *)PyBytes_AS_STRING(shapes);
        memcpy(self->left_shape, extents, sizeof *extents * (size_t)left);
        memcpy(self->right_shape, extents + left, sizeof *extents * (size_t)right);
        if (!measure(self, self->left_shape, self->right_shape, &self->measured)) {
            PyErr_SetString(PyExc_ValueError, "there is no kernel for these shapes");
            Py_DECREF(self);
            return NULL;
        }
    }
    return (PyObject *)self;
}

static PyMemberDef product_members[] = {
    {"fallback", T_OBJECT_EX, offsetof(Product, fallback), READONLY, "What takes all other operands."},
    {NULL},
};

static PyTypeObject product_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "tenferro_cpu.native._compiled.Product",
    .tp_doc = "Multiplies two arrays that are laid out as stacks of matrices.",
    .tp_basicsize = sizeof(Product),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_IMMUTABLETYPE,
    .tp_new = product_new,
    .tp_dealloc = product_dealloc,
    .tp_traverse = product_traverse,
    .tp_clear = product_clear,
    .tp_members = product_members,
    .tp_call = PyVectorcall_Call,
    .tp_vectorcall_offset = offsetof(Product, vectorcall),
};

int tenferro_add_product(PyObject *module)
{
    return PyModule_AddType(module, &product_type);
}
