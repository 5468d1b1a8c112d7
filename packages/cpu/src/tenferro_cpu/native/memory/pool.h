/* The memory pool: large blocks are kept when they are freed, because fresh pages cost more than what is done with
 * them. The functions are those of a NumPy allocation handler (NEP 49); threads may call them at once. */
#ifndef TENFERRO_POOL_H
#define TENFERRO_POOL_H

#include <stddef.h>
#include <stdint.h>

/* Smaller blocks come from the C library, aligned as well; it is faster there than any list. */
#define TENFERRO_POOLED_MIN_BYTES ((size_t)128 << 10)

/* Size classes, eight per octave, from TENFERRO_POOLED_MIN_BYTES to 2**47 bytes. */
#define TENFERRO_POOL_CLASSES 248

struct tenferro_block;

struct tenferro_pool_stats {
    uint64_t limit;    /* bytes that may be kept while nothing uses them */
    uint64_t cached;   /* bytes that are kept now */
    uint64_t live;     /* bytes of blocks in use */
    uint64_t peak;     /* the most bytes of both together */
    uint64_t hits;     /* large allocations that found a kept block */
    uint64_t misses;   /* large allocations that did not */
    uint64_t returned; /* blocks that went back to the system */
};

/* All zero at first. */
struct tenferro_pool {
    struct tenferro_pool_stats stats;
    struct tenferro_block *newest, *oldest; /* of the blocks that are kept */
    struct tenferro_block *classes[TENFERRO_POOL_CLASSES];
    uint64_t fresh; /* counts new blocks, which start at different places of a page */
};

void *tenferro_pool_malloc(void *pool, size_t size);
void *tenferro_pool_calloc(void *pool, size_t count, size_t item);
void *tenferro_pool_realloc(void *pool, void *data, size_t size);
void tenferro_pool_free(void *pool, void *data, size_t size);

/* Give the blocks that were unused for longest back to the system while more than `keep` bytes are kept. */
void tenferro_pool_trim(struct tenferro_pool *pool, uint64_t keep);

/* Change the number of bytes that may be kept. */
void tenferro_pool_bound(struct tenferro_pool *pool, uint64_t limit);

struct tenferro_pool_stats tenferro_pool_stats(struct tenferro_pool *pool);

/* From now on a fork waits until no thread is changing a pool: 0, or an error number. */
int tenferro_pool_prepare(void);

#endif
