/* The memory pool; `pool.h` has its interface.
 *
 * Blocks of TENFERRO_POOLED_MIN_BYTES and more are kept when they are freed, in one list per size class and in one list
 * by age. A header of 64 bytes in front of the data knows where the block began, so `free` trusts no size that it is
 * passed. All pools share one lock: it is held for a few changes of links, never while the system allocates. */
#if defined(__linux__) && !defined(_GNU_SOURCE)
#define _GNU_SOURCE
#endif
#include "memory/pool.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#ifdef __linux__
#include <sys/mman.h>
#endif

#define ALIGNMENT ((size_t)64)
#define PAGE ((size_t)4096)
#define HUGE_PAGE ((size_t)2 << 20)
#define MAX_BYTES ((size_t)1 << 47)

/* Arrays start at different offsets in a page, so that equal indices of several arrays do not share a cache set. The
 * offsets are 512 bytes apart, and differ by 240 bytes from those of NumPy's large arrays: a load whose address within
 * the page is slightly behind that of a store waits for it (4K aliasing). */
#define COLOURS 8
#define COLOUR_BYTES 512
#define FIRST_COLOUR 192

/* The first word of a header; any other value means a foreign block. */
enum mark {
    PLAIN = 0x74656E66, /* from the C library */
    TAKEN,              /* of the pool, in use */
    KEPT,               /* of the pool, in its lists */
};

enum list { BY_CLASS, BY_AGE };

struct tenferro_block {
    uint64_t mark;
    void *base;    /* what the system returned */
    size_t bytes;  /* of the whole block */
    size_t number; /* number of the size class; for a plain block, bytes of its data */
    struct {
        struct tenferro_block *newer, *older;
    } links[2];
};
typedef struct tenferro_block block;

_Static_assert(sizeof(block) <= ALIGNMENT, "the header fits before the data");

static atomic_int taken; /* a spin lock: it is held for less time than a mutex takes */

static void lock(void)
{
    while (atomic_exchange_explicit(&taken, 1, memory_order_acquire))
        sched_yield();
}

static void unlock(void)
{
    atomic_store_explicit(&taken, 0, memory_order_release);
}

int tenferro_pool_prepare(void)
{
    return pthread_atfork(lock, unlock, unlock);
}

static inline size_t round_up(size_t n, size_t unit)
{
    return (n + unit - 1) & ~(unit - 1);
}

static inline block *header_of(void *data)
{
    return (block *)((char *)data - ALIGNMENT);
}

static inline void *data_of(block *b)
{
    return (char *)b + ALIGNMENT;
}

#ifdef __linux__
/* Bytes that are mapped for a block: whole pages, also where these are larger than PAGE. */
static inline size_t mapped_bytes(size_t bytes)
{
    return round_up(bytes, (size_t)64 << 10);
}

/* Whether blocks of this size are mapped, hence zero when new. */
static inline int is_mapped(size_t bytes)
{
    return bytes >= HUGE_PAGE;
}

/* Map a block that starts at a huge page, and ask for huge pages. */
static void *map(size_t bytes)
{
    char *start = mmap(NULL, bytes + HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED)
        return NULL;
    size_t before = round_up((uintptr_t)start, HUGE_PAGE) - (uintptr_t)start;
    char *base = start + before;
    if (before != 0)
        munmap(start, before);
    munmap(base + bytes, HUGE_PAGE - before);
    madvise(base, bytes & ~(HUGE_PAGE - 1), MADV_HUGEPAGE);
    return base;
}

static void *take(size_t bytes)
{
    return is_mapped(bytes) ? map(mapped_bytes(bytes)) : malloc(bytes);
}

static void give(void *base, size_t bytes)
{
    if (is_mapped(bytes))
        munmap(base, mapped_bytes(bytes));
    else
        free(base);
}
#else
static inline int is_mapped(size_t bytes)
{
    return 0;
}

static void *take(size_t bytes)
{
    return malloc(bytes);
}

static void give(void *base, size_t bytes)
{
    free(base);
}
#endif

/* Put a block at the head of a list. */
static void link_block(block *b, enum list list, block **head)
{
    b->links[list].newer = NULL;
    b->links[list].older = *head;
    if (*head != NULL)
        (*head)->links[list].newer = b;
    *head = b;
}

static void unlink_block(block *b, enum list list, block **head)
{
    block *newer = b->links[list].newer, *older = b->links[list].older;
    if (newer == NULL)
        *head = older;
    else
        newer->links[list].older = older;
    if (older != NULL)
        older->links[list].newer = newer;
}

/* Add a block that was in use to both lists. */
static void keep_block(struct tenferro_pool *p, block *b)
{
    b->mark = KEPT;
    p->stats.live -= b->bytes;
    p->stats.cached += b->bytes;
    link_block(b, BY_CLASS, &p->classes[b->number]);
    link_block(b, BY_AGE, &p->newest);
    if (p->oldest == NULL)
        p->oldest = b;
}

/* Remove a block from both lists. */
static void take_out(struct tenferro_pool *p, block *b)
{
    unlink_block(b, BY_CLASS, &p->classes[b->number]);
    if (p->oldest == b)
        p->oldest = b->links[BY_AGE].newer;
    unlink_block(b, BY_AGE, &p->newest);
    p->stats.cached -= b->bytes;
}

/* Count a block as used, and release the lock. */
static void *hand_out(struct tenferro_pool *p, block *b)
{
    b->mark = TAKEN;
    p->stats.live += b->bytes;
    if (p->stats.live + p->stats.cached > p->stats.peak)
        p->stats.peak = p->stats.live + p->stats.cached;
    unlock();
    return data_of(b);
}

/* A block of the C library, its data aligned; zeroed where `zero` is set. */
static void *plain(size_t size, int zero)
{
    size_t bytes = size + 2 * ALIGNMENT;
    void *base = bytes < size ? NULL : zero ? calloc(bytes, 1) : malloc(bytes);
    if (base == NULL)
        return NULL;
    block *b = (block *)round_up((uintptr_t)base, ALIGNMENT);
    b->mark = PLAIN;
    b->base = base;
    b->number = size;
    return data_of(b);
}

/* A new block, or NULL. */
static block *fresh_block(struct tenferro_pool *p, size_t bytes, size_t number, uint64_t colour)
{
    char *base = take(bytes);
    if (base == NULL) {
        tenferro_pool_trim(p, 0);
        base = take(bytes);
    }
    if (base == NULL)
        return NULL;
    uintptr_t page = round_up((uintptr_t)base, PAGE);
    block *b = (block *)(page + FIRST_COLOUR + colour % COLOURS * COLOUR_BYTES);
    b->base = base;
    b->bytes = bytes;
    b->number = number;
    return b;
}

/* A block of the pool, reused or new; `clean` is set if it is known to be zero. */
static void *pooled(struct tenferro_pool *p, size_t size, int *clean)
{
    *clean = 0;
    if (size > MAX_BYTES)
        return NULL;
    /* Eight classes per octave: a class is the octave and the three bits below the leading one. */
    size_t below = size - 1;
    int octave = 63 - __builtin_clzll(below), shift = octave - 3;
    size_t eighth = below >> shift, number = (size_t)(octave - 16) * 8 + eighth - 8;
    lock();
    block *b = p->classes[number];
    if (b != NULL) {
        take_out(p, b);
        p->stats.hits++;
        return hand_out(p, b);
    }
    p->stats.misses++;
    uint64_t colour = p->fresh++;
    unlock();
    /* Two extra pages: for alignment to a page, and for the colour and the header. */
    size_t bytes = round_up((eighth + 1) << shift, PAGE) + 2 * PAGE;
    b = fresh_block(p, bytes, number, colour);
    if (b == NULL)
        return NULL;
    *clean = is_mapped(bytes);
    lock();
    return hand_out(p, b);
}

void *tenferro_pool_malloc(void *pool, size_t size)
{
    int clean;
    return size < TENFERRO_POOLED_MIN_BYTES ? plain(size, 0) : pooled(pool, size, &clean);
}

void *tenferro_pool_calloc(void *pool, size_t count, size_t item)
{
    size_t size;
    int clean;
    if (__builtin_mul_overflow(count, item, &size))
        return NULL;
    if (size < TENFERRO_POOLED_MIN_BYTES)
        return plain(size, 1);
    void *data = pooled(pool, size, &clean);
    return data == NULL || clean ? data : memset(data, 0, size);
}

void tenferro_pool_free(void *pool, void *data, size_t size)
{
    struct tenferro_pool *p = pool;
    block *b = data == NULL ? NULL : header_of(data);
    if (b != NULL && b->mark == PLAIN) {
        b->mark = 0;
        free(b->base);
    } else if (b != NULL && b->mark == TAKEN) {
        lock();
        keep_block(p, b);
        uint64_t limit = p->stats.limit;
        int over = p->stats.cached > limit;
        unlock();
        if (over)
            tenferro_pool_trim(p, limit);
    }
}

void *tenferro_pool_realloc(void *pool, void *data, size_t size)
{
    if (data == NULL)
        return tenferro_pool_malloc(pool, size);
    block *b = header_of(data);
    size_t room = b->mark == PLAIN ? b->number : (size_t)((char *)b->base + b->bytes - (char *)data);
    if (size <= room && size >= room / 2)
        return data;
    void *moved = tenferro_pool_malloc(pool, size);
    if (moved == NULL)
        return NULL;
    memcpy(moved, data, size < room ? size : room);
    tenferro_pool_free(pool, data, 0);
    return moved;
}

void tenferro_pool_trim(struct tenferro_pool *p, uint64_t keep)
{
    for (;;) {
        lock();
        block *b = p->stats.cached > keep ? p->oldest : NULL;
        if (b != NULL) {
            take_out(p, b);
            p->stats.returned++;
        }
        unlock();
        if (b == NULL)
            return;
        give(b->base, b->bytes);
    }
}

void tenferro_pool_bound(struct tenferro_pool *p, uint64_t limit)
{
    lock();
    p->stats.limit = limit;
    unlock();
    tenferro_pool_trim(p, limit);
}

struct tenferro_pool_stats tenferro_pool_stats(struct tenferro_pool *p)
{
    lock();
    struct tenferro_pool_stats stats = p->stats;
    unlock();
    return stats;
}
