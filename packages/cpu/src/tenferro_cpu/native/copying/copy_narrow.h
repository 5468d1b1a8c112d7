/* Interleaves of COUNT rows of ITEM bytes an element, fewer than a vector has elements. Included by copy_item.h. */

/* Few long rows become the elements of short neighbouring groups. */
INLINE void GLUE3(interleave_all, ITEM, COUNT)(const struct copy *p, const char *source, char *target)
{
    PICKS(COUNT, INTERLEAVED)
    for (int64_t column = 0; column < p->columns; column += WIDTH) {
        const int64_t j = least(column, p->columns - WIDTH) * ITEM;
        VEC(WIDTH) v[7] = {0}, out[7];
        UNROLLED for (int k = 0; k < COUNT; k++) v[k] = *(const VEC(WIDTH) *)(source + p->row_source[k] + j);
        OUTPUTS(COUNT)
        char *to = target + j * COUNT;
        if (WIDTH * ITEM == VECTOR_BYTES && p->stream) {
            UNROLLED for (int k = 0; k < COUNT; k++) stream_vector(to + k * WIDTH * ITEM, &out[k]);
        } else {
            UNROLLED for (int k = 0; k < COUNT; k++) *(VEC(WIDTH) *)(to + k * WIDTH * ITEM) = out[k];
        }
    }
}

/* Elements of short neighbouring groups become few long rows. */
INLINE void GLUE3(deinterleave_all, ITEM, COUNT)(const struct copy *p, const char *source, char *target)
{
    PICKS(COUNT, DEINTERLEAVED)
    for (int64_t column = 0; column < p->columns; column += WIDTH) {
        const int64_t j = least(column, p->columns - WIDTH) * ITEM;
        VEC(WIDTH) v[7] = {0}, out[7];
        UNROLLED for (int k = 0; k < COUNT; k++)
            v[k] = *(const VEC(WIDTH) *)(source + j * COUNT + k * WIDTH * ITEM);
        OUTPUTS(COUNT)
        if (WIDTH * ITEM == VECTOR_BYTES && p->stream) {
            UNROLLED for (int k = 0; k < COUNT; k++) stream_vector(target + p->row_target[k] + j, &out[k]);
        } else {
            UNROLLED for (int k = 0; k < COUNT; k++) *(VEC(WIDTH) *)(target + p->row_target[k] + j) = out[k];
        }
    }
}

static void GLUE3(interleave, ITEM, COUNT)(const struct copy *p, const char *source, char *target)
{
    each_outer(p, source, target, GLUE3(interleave_all, ITEM, COUNT));
}

static void GLUE3(deinterleave, ITEM, COUNT)(const struct copy *p, const char *source, char *target)
{
    each_outer(p, source, target, GLUE3(deinterleave_all, ITEM, COUNT));
}
#undef COUNT
