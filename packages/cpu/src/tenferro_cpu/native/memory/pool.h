/* The memory pool: keeps freed large blocks, because fresh pages cost more than the work on them. The functions are
 * those of a NumPy allocation handler (NEP 49) and are thread-safe. */
#ifndef TENFERRO_POOL_H
#define TENFERRO_POOL_H

#include <stddef.h>
#include <stdint.h>

/* Smaller blocks come from the C library, equally aligned, which is faster for them than any list. */
#define TENFERRO_POOLED_MIN_BYTES ((size_t)128 << 10)

/* Size classes, eight per octave, from TENFERRO_POOLED_MIN_BYTES to 2**47 bytes. */
#define TENFERRO_POOL_CLASSES 248

struct tenferro_block;

struct tenferro_pool_stats {
    uint64_t limit;    /* maximum unused bytes to keep */
    uint64_t cached;   /* unused bytes kept now */
    uint64_t live;     /* bytes of blocks in use */
    uint64_t peak;     /* maximum of both together */
    uint64_t hits;     /* large allocations that found a kept block */
    uint64_t misses;   /* large allocations that found none */
    uint64_t returned; /* blocks returned to the system */
};

/* All zero at first. */
struct tenferro_pool {
    struct tenferro_pool_stats stats;
    struct tenferro_block *newest, *oldest; /* of the blocks that are kept */
    struct tenferro_block *classes[TENFERRO_POOL_CLASSES];
    uint64_t fresh; /* counts new blocks, which start at different offsets in a page */
};

void *tenferro_pool_malloc(void *pool, size_t size);
void *tenferro_pool_calloc(void *pool, size_t count, size_t item);
void *tenferro_pool_realloc(void *pool, void *data, size_t size);
void tenferro_pool_free(void *pool, void *data, size_t size);

/* Return the blocks unused for longest to the system while more than `keep` bytes are kept. */
void tenferro_pool_trim(struct tenferro_pool *pool, uint64_t keep);

/* Change the maximum number of unused bytes. */
void tenferro_pool_bound(struct tenferro_pool *pool, uint64_t limit);

struct tenferro_pool_stats tenferro_pool_stats(struct tenferro_pool *pool);

/* From now on a fork waits until no thread is changing a pool: 0, or an error number. */
int tenferro_pool_prepare(void);

#endif
