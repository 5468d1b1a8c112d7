/* Linked into an instrumented extension: allocations that fail when they are told to, what is still allocated, and
 * planted errors, which show that a sanitizer reports them. Needs -Wl,--wrap for the functions below. */
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/types.h>

#define PUBLIC __attribute__((visibility("default"), used))

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void __real_free(void *p);
void *__real_mmap(void *at, size_t size, int protection, int flags, int file, off_t offset);
int __real_munmap(void *p, size_t size);

static long first, last, asked; /* the numbers of the allocations that fail, and of the latest one */
static long blocks, mapped;     /* allocated now, in blocks and in bytes */

static int fails(void)
{
    asked++;
    return first > 0 && asked >= first && asked <= last;
}

/* Let the allocations from number `from` to `to` fail, counted from now on; 0 for none. */
PUBLIC void faults_set(long from, long to)
{
    first = from;
    last = to;
    asked = 0;
}

PUBLIC long faults_asked(void)
{
    return asked;
}

PUBLIC long faults_blocks(void)
{
    return blocks;
}

PUBLIC long faults_mapped(void)
{
    return mapped;
}

void *__wrap_malloc(size_t size)
{
    void *p = fails() ? NULL : __real_malloc(size);
    blocks += p != NULL;
    return p;
}

void *__wrap_calloc(size_t count, size_t size)
{
    void *p = fails() ? NULL : __real_calloc(count, size);
    blocks += p != NULL;
    return p;
}

void __wrap_free(void *p)
{
    blocks -= p != NULL;
    __real_free(p);
}

void *__wrap_mmap(void *at, size_t size, int protection, int flags, int file, off_t offset)
{
    void *p = fails() ? MAP_FAILED : __real_mmap(at, size, protection, flags, file, offset);
    mapped += p == MAP_FAILED ? 0 : (long)size;
    return p;
}

int __wrap_munmap(void *p, size_t size)
{
    mapped -= (long)size;
    return __real_munmap(p, size);
}

/* Write behind a block. */
PUBLIC void plant_overflow(long by)
{
    volatile char *p = __real_malloc(64);
    p[63 + by] = 1;
    __real_free((void *)p);
}

/* Add 1 to a number. */
PUBLIC int plant_wrapped(int n)
{
    return n + 1;
}
