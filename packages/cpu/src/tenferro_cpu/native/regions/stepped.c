/* A kernel that carries out any fused region step by step: for one block of elements after the other it calls one row
 * kernel for each step; the values between them lie in scratch memory that stays in the cache.
 *
 * It is called as a kernel of rows, but for the context in place of strides: the words that `_stepped.py` writes. */
#include "kernels/walk.h"

/* Where a value lies: an operand by its number; bytes of scratch before it, for each element of a block; an address. */
enum place_kind { PLACE_OPERAND, PLACE_SCRATCH, PLACE_CONSTANT };

struct place {
    int64_t kind, where, hop; /* `hop`: bytes from one element to the next */
};

struct step {
    int64_t kernel, places[4]; /* of the operands, then of the result; those it has not are some place */
};

struct program {
    int64_t steps, places, scratch, block; /* `scratch`: bytes for each element of a block; `block`: elements */
    struct place table[];                  /* the steps follow the places */
};

static void stepped(char **data, int64_t n, const int64_t *context, int64_t rows, const int64_t *unused)
{
    const struct program *program = (const struct program *)context;
    const struct step *steps = (const struct step *)(program->table + program->places);
    const int64_t block = least((n + 63) & -64, program->block);
    char area[program->scratch * block + 64], *now[program->places];
    char *scratch = area + (-(uintptr_t)area & 63);
    for (int64_t k = 0; k < program->places; k++) {
        const struct place *place = &program->table[k];
        now[k] = place->kind == PLACE_OPERAND   ? data[place->where]
                 : place->kind == PLACE_SCRATCH ? scratch + place->where * block
                                                : (char *)(uintptr_t)place->where;
    }
    for (int64_t start = 0; start < n; start += block) {
        const int64_t length = least(n - start, block);
        for (int64_t k = 0; k < program->steps; k++) {
            char *passed[4];
            for (int slot = 0; slot < 4; slot++)
                passed[slot] = now[steps[k].places[slot]];
            kernel_at((unsigned long long)steps[k].kernel)(passed, length, NULL, 1, NULL);
        }
        for (int64_t k = 0; k < program->places; k++)
            now[k] += program->table[k].hop * block;
    }
}

int tenferro_add_stepped(PyObject *module)
{
    return tenferro_offer(module, "tenferro_stepped", (uintptr_t)stepped);
}
