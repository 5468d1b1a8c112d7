/* The thread team: workers that run machine code beside the calling thread, without the interpreter's lock.
 *
 * One job runs at a time; a second one, from within the first or from another thread, runs in its caller. A caller
 * therefore never waits for others, and any C code may share its work. Chunks run in any order: if results depend on
 * how work is cut (sums), the cut must depend on shapes alone, never on the number of threads. */
#ifndef TENFERRO_TEAM_H
#define TENFERRO_TEAM_H

#include <stdatomic.h>
#include <stdint.h>

typedef void tenferro_chunk(void *context, int64_t number);

/* Call piece(context, number) for every number below `count`, on at most `most` threads, including the caller's. */
void tenferro_team_run(tenferro_chunk *piece, void *context, int64_t count, int64_t most);

/* Maximum threads for a job of this Python thread; requires the interpreter's lock. */
int64_t tenferro_team_allowed(void);

/* State of the team; words written by different threads are on different cache lines. */
struct tenferro_team {
    _Alignas(64) atomic_llong busy; /* 1 while a job is posted */
    atomic_llong callers;           /* threads inside tenferro_team_run, each occupying a core */
    atomic_llong cores;
    atomic_llong allowed;            /* maximum threads of a job outside any `with threads(n)` */
    atomic_llong started;            /* workers that were started */
    _Alignas(64) atomic_llong epoch; /* counts jobs; workers wait for it to change */
    _Alignas(64) atomic_llong gate;  /* free seats (upper half), workers inside (lower half) */
    _Alignas(64) atomic_llong next;  /* the next piece */
    _Alignas(64) tenferro_chunk *piece;
    void *context;
    int64_t count;
    _Alignas(64) atomic_llong sleeping; /* workers that wait for a signal, or are about to */
    atomic_llong running;               /* workers that have not ended */
    atomic_llong stop;                  /* 1: workers end, and every job runs in its caller */
    atomic_llong jobs;                  /* jobs that workers were asked to join */
    atomic_llong rest;                  /* jobs that will run in their callers, because a worker got no core */
};
extern struct tenferro_team tenferro_team;

/* Reinitialise mutex and condition in the child of a fork. */
void tenferro_team_prepare(void);

/* Wake every worker, so that it sees `stop`. */
void tenferro_team_wake_all(void);

#endif
