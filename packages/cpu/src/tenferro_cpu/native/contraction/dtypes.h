/* Includes the file BODY once for each dtype: a function is written once, and TYPED(f) is its name for the dtype and
 * the vector level. CHAR is NumPy's letter; an element consists of PARTS numbers of type REAL. */
#include "levels.h"
#include "step.h"

#define TYPED(f) TENFERRO_JOIN(TENFERRO_JOIN(f, CHAR), LEVEL)

#define CHAR f
#define REAL float
#define REAL_BYTES 4
#define PARTS 1
#include "vectors.h"
#include BODY
#undef CHAR
#undef PARTS

#define CHAR F
#define PARTS 2
#include "vectors.h"
#include BODY
#undef CHAR
#undef REAL
#undef REAL_BYTES
#undef PARTS

#define CHAR d
#define REAL double
#define REAL_BYTES 8
#define PARTS 1
#include "vectors.h"
#include BODY
#undef CHAR
#undef PARTS

#define CHAR D
#define PARTS 2
#include "vectors.h"
#include BODY
