/* The kernel of small matrices of one dtype: KIND, of ITEM bytes, PARTS numbers of type REAL, letter
 * LETTER. Included by
 * product.simd.c once for each; no guard.
 *
 * Rows of the result are vectors; each collects number times row of the right matrix. Every element is a first product
 * and then fused additions in the order of the terms. Of complex numbers the products with the real and with the
 * imaginary part of the left matrix collect apart and meet at the end: no lane moves inside of the loop. */
#define AT_ONCE (8 / PARTS) /* rows whose sums fit into the registers of any level */
#define OF(name, bytes) GLUE(GLUE(name, KIND), bytes)
#define ON(name, bytes) GLUE(GLUE(name, LETTER), bytes)

#if PARTS == 2
/* (a + bi)(c + di): the sums of (ac, ad) and (bc, bd) make (ac - bd, ad + bc). */
#define MET(bytes, sums) \
    ON(fused, bytes)(__builtin_shufflevector(sums[1], sums[1], ON(SWAPPED, bytes)), signs, sums[0])
#else
#define MET(bytes, sums) sums[0]
#endif

/* For vectors of so many bytes:
 *
 * right: n numbers of row k of the right matrix, whose columns lie `inner` elements apart where it is swapped.
 * rows: some rows of the result in n numbers of each; strides of the left matrix count numbers.
 * stack: all matrices. Sizes that are known when this is compiled make it straight-line code. */
#define SIZED(BYTES) \
    INLINE ON(vec, BYTES) OF(right, BYTES)(const REAL *p, int64_t k, int64_t width, int64_t inner, int n, int swapped) \
    { \
        if (!swapped) \
            return ON(load, BYTES)(p + k * width, n); \
        ON(vec, BYTES) v = {0}; \
        for (int i = 0; i < BYTES / (int)sizeof(REAL); i++) \
            if (i < n) \
                v[i] = p[(i / PARTS * inner + k) * PARTS + i % PARTS]; \
        return v; \
    } \
    INLINE void OF(rows, BYTES)(int rows, int n, int64_t inner, const REAL *left, int64_t left_row, int64_t left_term, \
                                const REAL *right, int64_t width, int swapped, REAL *out) \
    { \
        ON(vec, BYTES) sums[AT_ONCE][PARTS], signs, b = OF(right, BYTES)(right, 0, width, inner, n, swapped); \
        UNROLLED for (int i = 0; i < rows; i++) \
            for (int part = 0; part < PARTS; part++) \
                sums[i][part] = ON(splat, BYTES)(left[i * left_row + part]) * b; \
        for (int64_t k = 1; k < inner; k++) { \
            left += left_term; \
            b = OF(right, BYTES)(right, k, width, inner, n, swapped); \
            UNROLLED for (int i = 0; i < rows; i++) \
                for (int part = 0; part < PARTS; part++) \
                    sums[i][part] = \
                        ON(fused, BYTES)(ON(splat, BYTES)(left[i * left_row + part]), b, sums[i][part]); \
        } \
        for (int i = 0; i < BYTES / (int)sizeof(REAL); i++) \
            signs[i] = i % 2 ? 1 : -1; \
        (void)signs; \
        UNROLLED for (int i = 0; i < rows; i++) ON(store, BYTES)(out + i * width, MET(BYTES, sums[i]), n); \
    } \
    INLINE void OF(stack, BYTES)(int rows, int64_t inner, int64_t columns, int swap_right, int packed, \
                                 const struct product *p, const REAL *left, const REAL *right, REAL *out) \
    { \
        enum { LANES = BYTES / sizeof(REAL) }; \
        const int64_t width = PARTS * columns; \
        const int64_t left_row = PARTS * (p->swap_left ? 1 : inner), left_term = PARTS * (p->swap_left ? rows : 1); \
        REAL turned[PRODUCT_SMALL * PRODUCT_SMALL * PARTS]; \
        for (int64_t matrix = 0; matrix < p->count; matrix++) { \
            const REAL *b = right; \
            if (packed) { \
                b = turned; \
                for (int64_t j = 0; j < columns; j++) \
                    for (int64_t k = 0; k < inner; k++) \
                        for (int part = 0; part < PARTS; part++) \
                            turned[(k * columns + j) * PARTS + part] = right[(j * inner + k) * PARTS + part]; \
            } \
            for (int64_t at = 0; at < width; at += LANES) { \
                const int n = (int)(width - at < LANES ? width - at : LANES); \
                const REAL *columns_at = b + (swap_right ? at * inner : at); \
                OF(rows, BYTES)(rows < AT_ONCE ? rows : AT_ONCE, n, inner, left, left_row, left_term, columns_at, \
                                width, swap_right, out + at); \
                if (rows > AT_ONCE) \
                    OF(rows, BYTES)(rows - AT_ONCE, n, inner, left + AT_ONCE * left_row, left_row, left_term, \
                                    columns_at, width, swap_right, out + AT_ONCE * width + at); \
            } \
            left += PARTS * rows * inner; \
            right += PARTS * inner * columns; \
            out += rows * width; \
        } \
    }

SIZED(16)
#if VECTOR_BYTES >= 32
SIZED(32)
#endif
#if VECTOR_BYTES >= 64
SIZED(64)
#endif

#define SQUARE(N, BYTES) \
    case N: \
        if (p->swap_right) \
            OF(stack, BYTES)(N, N, N, 1, 0, p, left, right, out); \
        else \
            OF(stack, BYTES)(N, N, N, 0, 0, p, left, right, out); \
        return;
#define ROWS(N) \
    case N: OF(stack, VECTOR_BYTES)(N, p->inner, p->columns, 0, p->swap_right != 0, p, left, right, out); return;

static void GLUE(small, KIND)(const struct product *p, const void *left, const void *right, void *out)
{
    if (p->rows == p->inner && p->rows == p->columns) {
        switch (p->rows) {
#if ITEM == 4
            SQUARE(2, 16)
            SQUARE(3, 16)
            SQUARE(4, 16)
#if VECTOR_BYTES >= 32
            SQUARE(8, 32)
#endif
#elif ITEM == 8
            SQUARE(2, 16)
#if VECTOR_BYTES >= 32
            SQUARE(3, 32)
            SQUARE(4, 32)
#endif
#if VECTOR_BYTES >= 64
            SQUARE(8, 64)
#endif
#else
#if VECTOR_BYTES >= 32
            SQUARE(2, 32)
#endif
#if VECTOR_BYTES >= 64
            SQUARE(3, 64)
            SQUARE(4, 64)
            SQUARE(8, 64)
#endif
#endif
        }
    }
    switch (p->rows) {
        ROWS(1)
        ROWS(2)
        ROWS(3)
        ROWS(4)
        ROWS(5)
        ROWS(6)
        ROWS(7)
        ROWS(8)
    }
}

#undef AT_ONCE
#undef OF
#undef ON
#undef MET
#undef SIZED
#undef SQUARE
#undef ROWS
#undef KIND
#undef REAL
#undef LETTER
#undef PARTS
#undef ITEM
