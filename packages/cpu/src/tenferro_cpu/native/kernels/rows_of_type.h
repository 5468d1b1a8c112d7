/* The reductions of one type of number; see `rows.h` for T, INDEX, PARTS and ROUNDS. Of types in order LOWEST and
 * HIGHEST are what the largest and the smallest of no numbers are. Types with EXTREMES have nothing else. */

#define APART 0
#ifndef EXTREMES
#define KIND sum
#define NEUTRAL(part) 0
#define COMBINE ADD
#include "kernels/rows.h"
#undef KIND
#undef NEUTRAL
#undef COMBINE

#undef APART
#define APART (PARTS == 2)
#define KIND prod
#define NEUTRAL(part) ((part) == 0)
#if PARTS == 2
#define COMBINE MULTIPLY_COMPLEX
#else
#define COMBINE MULTIPLY
#endif
#include "kernels/rows.h"
#undef KIND
#undef NEUTRAL
#undef COMBINE
#endif
#undef ROUNDS

#ifdef LOWEST
#define ROUNDS 0

#define KIND max
#define NEUTRAL(part) LOWEST
#define COMBINE LARGER
#include "kernels/rows.h"
#undef KIND
#undef NEUTRAL
#undef COMBINE

#define KIND min
#define NEUTRAL(part) HIGHEST
#define COMBINE SMALLER
#include "kernels/rows.h"
#undef KIND
#undef NEUTRAL
#undef COMBINE
#undef ROUNDS
#undef LOWEST
#undef HIGHEST
#undef EXTREMES
#endif

#undef APART
#undef TYPE
#undef T
#undef INDEX
#undef PARTS
