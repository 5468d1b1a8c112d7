/* The engines of this vector level, one for each dtype. */
#ifndef BODY
#define BODY "engine.simd.c"
#define STRINGIFIED(x) #x
#define STRING(x) STRINGIFIED(x)
#include "dtypes.h"

extern const struct engines NAME(contraction_engines);
const struct engines NAME(contraction_engines) = {{
    &NAME(contraction_engine_f), &NAME(contraction_engine_F), &NAME(contraction_engine_d), &NAME(contraction_engine_D),
}};
#else

step_function TYPED(contraction_gemm), TYPED(contraction_gemm_direct_rows), TYPED(contraction_gemm_direct),
    TYPED(contraction_elementwise), TYPED(contraction_scaling), TYPED(contraction_gather), TYPED(contraction_dot),
    TYPED(contraction_lanes), TYPED(contraction_transpose), TYPED(contraction_fill);

static const REAL TYPED(one)[PARTS] = {1};

static const struct engine TYPED(contraction_engine) = {
    .dtype = STRING(CHAR)[0],
    .level = LEVEL_NAME,
    .item = ITEM,
    .width = WIDTH,
    .vectors = VECTORS,
    .columns = COLUMNS,
    .dot_rows = DOT_ROWS,
    .dot_columns = DOT_COLUMNS,
    .lanes_rows = LANES_ROWS,
    .lanes_columns = LANES_COLUMNS,
    .masks = MASKS,
    .one = TYPED(one),
    .steps = {
        [GEMM] = TYPED(contraction_gemm),
        [GEMM_DIRECT_ROWS] = TYPED(contraction_gemm_direct_rows),
        [GEMM_DIRECT] = TYPED(contraction_gemm_direct),
        [ELEMENTWISE] = TYPED(contraction_elementwise),
        [SCALING] = TYPED(contraction_scaling),
        [GATHER] = TYPED(contraction_gather),
        [DOT] = TYPED(contraction_dot),
        [LANES_OF_BATCH] = TYPED(contraction_lanes),
        [TRANSPOSE] = TYPED(contraction_transpose),
        [FILL] = TYPED(contraction_fill),
        [BLOCKS] = contraction_blocks,
    },
};
#endif
