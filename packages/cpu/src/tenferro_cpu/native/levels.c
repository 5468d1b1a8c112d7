/* The vector level of this process. */
#include "compiled.h"
#include "processor.h"

#include <stdlib.h>
#include <string.h>

enum tenferro_level tenferro_level = TENFERRO_BASE;

/* The best level that was compiled and is at most `limit`, or -1. */
static int compiled_level(int limit)
{
    while (limit >= 0 && !(TENFERRO_BUILT >> limit & 1))
        limit--;
    return limit;
}

/* The level, lowered if the environment requests it; a name that is unknown or too high has no effect. */
int tenferro_add_levels(PyObject *module)
{
    const char *asked = getenv("TENFERRO_CPU_LEVEL");
    const int best = (int)best_level();
    int limit = best;
    for (int level = 0; asked != NULL && level < best; level++)
        if (strcmp(asked, level_names[level]) == 0)
            limit = level;
    const int found = compiled_level(limit), names = (int)(sizeof level_names / sizeof *level_names);
    if (found < 0) {
        PyErr_Format(PyExc_ImportError,
                     "the C extension of tenferro-cpu was compiled for %s only, and %s %s; build it with "
                     "TENFERRO_BUILD_LEVELS=all in the environment",
                     level_names[compiled_level(names - 1)],
                     limit < best ? "TENFERRO_CPU_LEVEL is" : "this processor has", level_names[limit]);
        return -1;
    }
    tenferro_level = (enum tenferro_level)found;
    return PyModule_AddStringConstant(module, "LEVEL", level_names[found]);
}
