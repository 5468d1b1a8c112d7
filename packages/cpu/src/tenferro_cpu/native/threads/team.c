/* The thread team: who posts a job, who joins in, and how both know that it is over.
 *
 * The owner of a job writes it down, opens the gate and takes pieces itself. A worker may read the job only between
 * taking a seat and giving it back, and the owner returns only when no seat is left and nobody is inside: a worker that
 * wakes up late meets a closed gate, or the next job, never a half of each. Pieces are handed out by one counter.
 *
 * Memory order: the owner writes the job and then the gate (release), a worker takes its seat (acquire) and then reads
 * the job; a worker gives its seat back (release) when its pieces are done, and the owner goes on when it has seen the
 * empty gate (acquire). Every change of the gate in between is a read-modify-write, so the release sequence holds, and
 * whoever sees the last change sees what came before each of them. A worker that goes to sleep counts itself and then
 * looks at the epoch; the owner changes the epoch and then looks for sleepers: all four are sequentially consistent,
 * or both might miss the other. */
#include "threads/team.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>

#define SEAT (1LL << 32)

/* Spins of a worker that waits for the next job before it sleeps: some tens of microseconds. */
#define WORKER_SPINS 1000

/* Spins of an owner that waits for the last workers before it yields its core. */
#define OWNER_SPINS 4000

/* Jobs that run in their callers after an owner did most of a job itself: the other cores are busy. */
#define JOBS_ALONE 32

struct tenferro_team tenferro_team;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;

static inline long long load(atomic_llong *word)
{
    return atomic_load_explicit(word, memory_order_relaxed);
}

static inline void store(atomic_llong *word, long long value)
{
    atomic_store_explicit(word, value, memory_order_relaxed);
}

static inline int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* One spin. On AArch64 `yield` takes no time, and the spins would end too soon. */
static inline void pause_briefly(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb");
#endif
}

void tenferro_team_prepare(void)
{
    pthread_mutex_init(&mutex, NULL);
    pthread_cond_init(&condition, NULL);
}

void tenferro_team_wake_all(void)
{
    atomic_fetch_add(&tenferro_team.epoch, 1);
    pthread_mutex_lock(&mutex);
    pthread_cond_broadcast(&condition);
    pthread_mutex_unlock(&mutex);
}

/* Run chunks until none is left; returns their number. */
static int64_t take_pieces(void)
{
    struct tenferro_team *t = &tenferro_team;
    tenferro_chunk *piece = t->piece;
    void *context = t->context;
    int64_t count = t->count, done = 0, number;
    while ((number = atomic_fetch_add_explicit(&t->next, 1, memory_order_relaxed)) < count) {
        piece(context, number);
        done++;
    }
    return done;
}

static void sleep_until_changed(long long seen)
{
    pthread_mutex_lock(&mutex);
    atomic_fetch_add(&tenferro_team.sleeping, 1);
    while (atomic_load(&tenferro_team.epoch) == seen)
        pthread_cond_wait(&condition, &mutex);
    atomic_fetch_sub(&tenferro_team.sleeping, 1);
    pthread_mutex_unlock(&mutex);
}

/* Take a seat in the open job, if one is left. */
static int take_seat(void)
{
    long long gate = load(&tenferro_team.gate);
    while (gate >= SEAT)
        if (atomic_compare_exchange_weak_explicit(&tenferro_team.gate, &gate, gate - SEAT + 1, memory_order_acquire,
                                                  memory_order_relaxed))
            return 1;
    return 0;
}

static void *work(void *argument)
{
    struct tenferro_team *t = &tenferro_team;
    long long seen = (long long)(intptr_t)argument;
    for (;;) {
        int turns = 0;
        while (atomic_load_explicit(&t->epoch, memory_order_acquire) == seen) {
            pause_briefly();
            if (++turns > WORKER_SPINS) {
                sleep_until_changed(seen);
                break;
            }
        }
        seen = atomic_load_explicit(&t->epoch, memory_order_acquire);
        if (atomic_load_explicit(&t->stop, memory_order_acquire))
            break;
        if (take_seat()) {
            take_pieces();
            atomic_fetch_sub_explicit(&t->gate, 1, memory_order_release);
        }
    }
    atomic_fetch_sub(&t->running, 1);
    return NULL;
}

/* Start workers until there are `want`; signals stay with the program's threads. */
static void make_workers(int64_t want)
{
    struct tenferro_team *t = &tenferro_team;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    for (int64_t have = load(&t->started); have < want; have++) {
        pthread_t thread;
        atomic_fetch_add(&t->running, 1);
        if (pthread_create(&thread, NULL, work, (void *)(intptr_t)load(&t->epoch)) != 0) {
            atomic_fetch_sub(&t->running, 1);
            break;
        }
        pthread_detach(thread);
        store(&t->started, have + 1);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void wake_sleepers(int64_t count)
{
    pthread_mutex_lock(&mutex);
    while (count-- > 0)
        pthread_cond_signal(&condition);
    pthread_mutex_unlock(&mutex);
}

/* Post the caller's job, take part in it, and wait for its end. */
static void lead(int64_t seats)
{
    struct tenferro_team *t = &tenferro_team;
    int64_t count = t->count;
    store(&t->next, 0);
    store(&t->jobs, load(&t->jobs) + 1);
    atomic_store_explicit(&t->gate, seats * SEAT, memory_order_release);
    atomic_fetch_add(&t->epoch, 1);
    int64_t asleep = atomic_load(&t->sleeping);
    if (asleep > 0)
        wake_sleepers(least(asleep, seats));
    int64_t own = take_pieces();
    atomic_fetch_and_explicit(&t->gate, SEAT - 1, memory_order_acq_rel); /* close the remaining seats */
    for (int turns = 0; atomic_load_explicit(&t->gate, memory_order_acquire) != 0;) {
        pause_briefly();
        if (++turns < OWNER_SPINS)
            continue;
        turns = 0;
        sched_yield();
        if (4 * own > 3 * count)
            store(&t->rest, JOBS_ALONE);
    }
}

/* Share a job, or return 0 if it must run in its caller. */
static int shared(tenferro_chunk *piece, void *context, int64_t count, int64_t helpers)
{
    struct tenferro_team *t = &tenferro_team;
    if (load(&t->rest) > 0) {
        atomic_fetch_sub_explicit(&t->rest, 1, memory_order_relaxed);
        return 0;
    }
    long long idle = 0;
    int64_t seats = 0;
    if (!atomic_compare_exchange_strong_explicit(&t->busy, &idle, 1, memory_order_acquire, memory_order_relaxed))
        return 0;
    if (!atomic_load_explicit(&t->stop, memory_order_acquire)) {
        if (load(&t->started) < helpers)
            make_workers(helpers);
        seats = least(helpers, load(&t->started));
    }
    if (seats > 0) {
        t->piece = piece;
        t->context = context;
        t->count = count;
        lead(seats);
    }
    atomic_store_explicit(&t->busy, 0, memory_order_release);
    return seats > 0;
}

void tenferro_team_run(tenferro_chunk *piece, void *context, int64_t count, int64_t most)
{
    struct tenferro_team *t = &tenferro_team;
    int64_t others = atomic_fetch_add(&t->callers, 1);
    int64_t helpers = least(least(load(&t->cores) - others, most), count) - 1;
    if (helpers <= 0 || !shared(piece, context, count, helpers))
        for (int64_t number = 0; number < count; number++)
            piece(context, number);
    atomic_fetch_sub(&t->callers, 1);
}
