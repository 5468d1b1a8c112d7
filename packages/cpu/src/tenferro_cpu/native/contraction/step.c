/* Runs the steps of a plan in order, each shared by the thread team if its work pays for that. */
#include "step.h"

#include <string.h>

#include "levels.h"
#include "threads/team.h"

TENFERRO_DECLARE(const struct engines, contraction_engines)

const struct engine *contraction_engine(char dtype, const char *level)
{
    static const struct engines *const tables[] = TENFERRO_EACH(contraction_engines);
    for (int number = (int)tenferro_level; number >= 0; number--)
        for (int n = 0; tables[number] != NULL && n < DTYPES; n++) {
            const struct engine *found = tables[number]->of[n];
            if (found->dtype == dtype && (level == NULL || strcmp(found->level, level) == 0))
                return found;
        }
    return NULL;
}

/* One chunk of a step in one thread, with its own part of the scratch memory. */
static void do_piece(void *context, int64_t piece)
{
    struct job job = *(const struct job *)context;
    job.scratch += piece * job.step->scratch;
    job.engine->steps[job.step->kernel](&job, piece);
}

void contraction_run(const struct engine *engine, const struct step *steps, int64_t count, char *const *bases,
                     char *scratch, int64_t threads)
{
    struct job job = {.engine = engine, .bases = bases, .scratch = scratch};
    for (job.step = steps; job.step < steps + count; job.step++) {
        job.pieces = smaller(job.step->pieces, threads);
        if (job.pieces > 1) {
            tenferro_team_run(do_piece, &job, job.pieces, job.pieces);
        } else {
            job.pieces = 1;
            engine->steps[job.step->kernel](&job, 0);
        }
    }
}

/* The step BLOCKS: separate steps for each block along the rows, whose base pointers are both operands, the result,
 * the memory of copies, and the number one. A last block that would be partial begins earlier: its overlap with the
 * previous one is computed twice, by the same chunk. */
void contraction_blocks(const struct job *job, int64_t piece)
{
    const struct step *d = job->step;
    const struct range batch = share(job, piece, OF_BATCH, d->batch);
    struct range rows = share(job, piece, OF_ROWS, d->rows);
    if (piece + 1 == job->pieces)
        rows.end = d->rows;
    for (int64_t n = batch.start; n < batch.end; n++)
        for (int64_t i = rows.start; i < rows.end; i += d->row_block) {
            const int64_t start = smaller(i, d->rows - d->row_block);
            char *const bases[] = {
                BASE(job, a) + d->batch_a[n] + d->row_a[start],
                BASE(job, b) + d->batch_b[n] + d->row_b[start],
                BASE(job, c) + d->batch_c[n] + d->row_c[start],
                job->scratch,
                (char *)job->engine->one,
            };
            contraction_run(job->engine, d->records, d->parts, bases, job->scratch + d->room, 1);
        }
}
