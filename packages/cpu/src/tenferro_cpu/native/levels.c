/* The vector level of this process. */
#include "compiled.h"
#include "levels.h"

#include <stdlib.h>
#include <string.h>

enum tenferro_level tenferro_level = TENFERRO_BASE;

#if defined(__x86_64__)
static const char *const level_names[] = {"v2", "v3", "v4"};

static enum tenferro_level best_level(void)
{
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") || !__builtin_cpu_supports("bmi2"))
        return TENFERRO_BASE;
    if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") ||
        !__builtin_cpu_supports("avx512cd") || !__builtin_cpu_supports("avx512dq") ||
        !__builtin_cpu_supports("avx512vl"))
        return TENFERRO_V3;
    return TENFERRO_V4;
}
#else
#if defined(__aarch64__)
static const char *const level_names[] = {"neon"};
#else
static const char *const level_names[] = {"generic"};
#endif

static enum tenferro_level best_level(void)
{
    return TENFERRO_BASE;
}
#endif

/* The level, lowered where the environment asks for it; a name that is unknown or too high changes nothing. */
int tenferro_add_levels(PyObject *module)
{
    const char *asked = getenv("TENFERRO_VECTOR_LEVEL");
    tenferro_level = best_level();
    for (int level = 0; asked != NULL && level < (int)tenferro_level; level++)
        if (strcmp(asked, level_names[level]) == 0)
            tenferro_level = (enum tenferro_level)level;
    return PyModule_AddStringConstant(module, "LEVEL", level_names[tenferro_level]);
}
