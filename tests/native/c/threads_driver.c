/* Pool and team without Python, for ThreadSanitizer: threads that allocate from one pool, free what another one took,
 * and post jobs to the team. */
#include "memory/pool.h"
#include "threads/team.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define THREADS 4
#define ROUNDS 150
#define PIECES 37

static struct tenferro_pool pool;
static void *_Atomic exchanged[8]; /* blocks on the way from one thread to another */
static atomic_long helped; /* pieces that ran in workers */
static _Thread_local int owner;

/* Count a piece in plain words, which only the team orders; sleep, so that a worker gets one. */
static void add_one(void *context, int64_t number)
{
    ((long *)context)[number]++;
    if (!owner)
        helped++;
    if (number == 0)
        usleep(200);
}

static int share_work(void)
{
    long counts[PIECES] = {0};
    owner = 1;
    for (int round = 0; round < ROUNDS; round++) {
        tenferro_team.rest = 0; /* also on a busy machine */
        tenferro_team_run(add_one, counts, PIECES, 3);
    }
    for (int i = 0; i < PIECES; i++)
        if (counts[i] != ROUNDS)
            return 1;
    return 0;
}

static int trade_blocks(unsigned seed)
{
    for (int round = 0; round < 4 * ROUNDS; round++) {
        size_t size = (size_t)(rand_r(&seed) % 900 + 1) << 10;
        char *block = round % 5 ? tenferro_pool_malloc(&pool, size) : tenferro_pool_calloc(&pool, size, 1);
        if (block == NULL || (round % 5 == 0 && block[size - 1] != 0))
            return 1;
        block[0] = block[size - 1] = (char)seed;
        block = atomic_exchange(&exchanged[rand_r(&seed) % 8], block);
        if (round % 7 == 0 && block != NULL)
            block = tenferro_pool_realloc(&pool, block, size * 2);
        tenferro_pool_free(&pool, block, 0);
        if (round % 100 == 0)
            tenferro_pool_bound(&pool, (uint64_t)(seed % 8) << 20);
    }
    return 0;
}

static void *work(void *number)
{
    return (void *)(intptr_t)(share_work() + 2 * trade_blocks(*(unsigned *)number + 1));
}

int main(void)
{
    pthread_t threads[THREADS];
    unsigned numbers[THREADS];
    tenferro_team.cores = tenferro_team.allowed = 2 * THREADS; /* more than callers, so that workers take part */
    intptr_t failed = tenferro_pool_prepare() != 0;
    for (int i = 0; i < THREADS; i++) {
        numbers[i] = (unsigned)i;
        failed |= pthread_create(&threads[i], NULL, work, &numbers[i]) != 0;
    }
    for (int i = 0; i < THREADS; i++) {
        void *result = NULL;
        pthread_join(threads[i], &result);
        failed |= (intptr_t)result;
    }
    for (int i = 0; i < 8; i++)
        tenferro_pool_free(&pool, exchanged[i], 0);
    tenferro_pool_bound(&pool, 0);
    struct tenferro_pool_stats stats = tenferro_pool_stats(&pool);
    failed |= stats.live != 0 || stats.cached != 0;
    printf("%ld pieces in workers, %llu blocks used again\n", (long)helped, (unsigned long long)stats.hits);
    tenferro_team.stop = 1;
    tenferro_team_wake_all();
    return (int)failed;
}
