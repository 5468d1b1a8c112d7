// Runs a launch with its work items as fibers, and finds races between them.
//
// Kernels are compiled with -fsanitize=thread, so that the compiler calls a function of this file before every access to
// memory; the runtime library of that sanitizer is not linked. In random order an item may lose the processor at any
// access, to any item of the groups that are resident; in the other orders, only at barriers.
//
// Two accesses to a byte are a race if one of them writes, two items make them, and no barrier is between: there is none
// between items of different groups. This does not depend on the order in which the items happened to run.

#include "kernel.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <ucontext.h>
#include <unordered_map>
#include <vector>

Indices emulated_indices;

namespace {

typedef uintptr_t Address;

const unsigned RESIDENT = 5;       // groups that run at a time in random order
const size_t STACK = 1 << 16;      // bytes
const size_t SHARED = 48 << 10;    // bytes of shared memory of a group at most
const size_t GAP = 64;             // bytes around its arrays
const size_t ROOM = SHARED + (4 << 10);
const unsigned MANY = ~0u;

enum Order { FORWARDS, BACKWARDS, RANDOM };

struct Array { std::string name; size_t start, bytes; };

struct Group {
    unsigned index, live = 0, waiting = 0;
    int line = 0;                  // of the barrier that items wait at
    unsigned interval = 0;         // barriers that have been passed
    uint64_t stamp = 0;            // of records of its shared memory
    std::vector<Array> arrays;
    std::vector<char> shared;
};

struct Item {
    ucontext_t context;
    char* stack = nullptr;
    Group* group;
    unsigned index;
    size_t arrays;                 // that it asked for
    bool done;
};

// The last accesses to a byte. Items are numbers in the launch plus 1.
struct Byte {
    uint64_t stamp;
    unsigned writer, written;      // item, interval
    unsigned reader, read, group;  // item or MANY, interval; group or MANY
};

struct Launch {
    void (*kernel)(void**);
    void** arguments;
    int count;
    unsigned grid, block;
    Order order;
    unsigned random;
    std::vector<Item*> runnable;   // from the back
    uint64_t stamp;
    std::string report;
};

const size_t PAGE = 1024;
std::unordered_map<Address, std::unique_ptr<Byte[]>> pages;
std::vector<std::unique_ptr<Item>> spare;
uint64_t stamps = 0;
ucontext_t scheduler;
Item* running = nullptr;
Launch* launch = nullptr;

unsigned random_below(unsigned n) {
    unsigned& x = launch->random;
    x ^= x << 13; x ^= x >> 17; x ^= x << 5;
    return x % n;
}

std::string named(unsigned number) {
    const unsigned item = (number - 1) % launch->block, group = (number - 1) / launch->block;
    return "work item " + std::to_string(item) + " of group " + std::to_string(group);
}

std::string place(Address at) {
    const Address base = (Address)running->group->shared.data();
    if (at - base < ROOM)
        for (const Array& a : running->group->arrays)
            if (at - base - a.start < a.bytes) return a.name + " + " + std::to_string(at - base - a.start) + " bytes";
    int found = -1;
    Address nearest = 0;
    for (int k = 0; k < launch->count; ++k) {
        const Address start = (Address)launch->arguments[k];
        if (start <= at && start > nearest) { nearest = start; found = k; }
    }
    if (found < 0) return "memory of no argument";
    return "argument " + std::to_string(found) + " + " + std::to_string(at - nearest) + " bytes";
}

void report(const std::string& text) {
    if (launch->report.empty()) launch->report = text;
}

void race(unsigned me, const char* does, Address at, const std::string& other) {
    report(named(me) + " " + does + " " + place(at) + ", which " + other + " without a barrier between");
}

Byte& byte_at(Address at) {
    static Address last = 0;
    static Byte* bytes = nullptr;
    if (!bytes || at / PAGE != last || pages.empty()) {
        last = at / PAGE;
        std::unique_ptr<Byte[]>& page = pages[last];
        if (!page) page.reset(new Byte[PAGE]());
        bytes = page.get();
    }
    return bytes[at % PAGE];
}

// One access of the running item to one byte.
void check(Address at, bool writes, uint64_t stamp, bool shared) {
    Byte& byte = byte_at(at);
    if (byte.stamp != stamp) byte = Byte{stamp, 0, 0, 0, 0, 0};
    const unsigned group = running->group->index, interval = running->group->interval;
    const unsigned me = 1 + group * launch->block + running->index;
    const char* does = writes ? "writes" : "reads";
    if (byte.writer && byte.writer != me &&
        ((byte.writer - 1) / launch->block != group || byte.written == interval))
        race(me, does, at, named(byte.writer) + " writes");
    if (!writes) {
        if (shared && !byte.writer) report(named(me) + " reads " + place(at) + ", which nothing has written");
        const bool mine = byte.reader && byte.group == group && byte.read == interval;
        const bool others = byte.reader && byte.group != group;
        byte.reader = mine && byte.reader != me ? MANY : me;
        byte.read = interval;
        byte.group = others ? MANY : group;
        return;
    }
    if (byte.reader && (byte.group != group || (byte.read == interval && byte.reader != me)))
        race(me, does, at, byte.reader == MANY || byte.group == MANY ? "others read" : named(byte.reader) + " reads");
    byte.writer = me;
    byte.written = interval;
}

void leave() { swapcontext(&running->context, &scheduler); }

void access(Address at, size_t size, bool writes) {
    if (!running || at - (Address)running->stack < STACK || at - (Address)&emulated_indices < sizeof emulated_indices)
        return;
    if (launch->order == RANDOM && random_below(4) == 0) {
        launch->runnable.push_back(running);
        leave();
    }
    Group& group = *running->group;
    const Address offset = at - (Address)group.shared.data();
    const bool shared = offset < ROOM;
    if (shared) {
        bool inside = false;
        for (const Array& a : group.arrays) inside |= offset - a.start < a.bytes && offset + size <= a.start + a.bytes;
        if (!inside) return report("an access beyond the arrays in shared memory");
    }
    for (size_t k = 0; k < size; ++k) check(at + k, writes, shared ? group.stamp : launch->stamp, shared);
}

void fiber() {
    launch->kernel(launch->arguments);
    running->done = true;
    leave();
}

std::unique_ptr<Item> item_of(Group* group, unsigned index) {
    std::unique_ptr<Item> item;
    if (spare.empty()) {
        item.reset(new Item);
        item->stack = (char*)malloc(STACK);
    } else {
        item = std::move(spare.back());
        spare.pop_back();
    }
    item->group = group; item->index = index; item->arrays = 0; item->done = false;
    getcontext(&item->context);
    item->context.uc_stack.ss_sp = item->stack;
    item->context.uc_stack.ss_size = STACK;
    item->context.uc_link = nullptr;
    makecontext(&item->context, fiber, 0);
    return item;
}

// Items are taken from the back.
void make_runnable(std::vector<std::unique_ptr<Item>>& items) {
    for (size_t k = 0; k < items.size(); ++k) {
        Item* item = items[launch->order == BACKWARDS ? k : items.size() - 1 - k].get();
        if (!item->done) launch->runnable.push_back(item);
    }
}

typedef std::vector<std::unique_ptr<Item>> Items;

void run_all(std::vector<unsigned> groups) {
    std::vector<std::pair<std::unique_ptr<Group>, Items>> resident;
    const size_t most = launch->order == RANDOM ? RESIDENT : 1;
    while (!groups.empty() || !resident.empty()) {
        while (!groups.empty() && resident.size() < most) {
            std::unique_ptr<Group> group(new Group);
            group->index = groups.back(); groups.pop_back();
            group->live = launch->block;
            group->stamp = ++stamps;
            Items items;
            for (unsigned k = 0; k < launch->block; ++k) items.push_back(item_of(group.get(), k));
            make_runnable(items);
            resident.emplace_back(std::move(group), std::move(items));
        }
        std::vector<Item*>& runnable = launch->runnable;
        if (launch->order == RANDOM) std::swap(runnable[random_below(runnable.size())], runnable.back());
        running = runnable.back(); runnable.pop_back();
        Group& group = *running->group;
        emulated_indices = {{running->index}, {group.index}, {launch->block}, {launch->grid}};
        swapcontext(&scheduler, &running->context);
        const bool done = running->done;
        running = nullptr;
        group.live -= done;
        if (group.waiting == 0 && group.live) continue;
        if (group.waiting != group.live) continue;
        size_t k = 0;
        while (resident[k].first.get() != &group) ++k;
        if (group.live) {
            if (group.live < launch->block)
                report("a barrier in line " + std::to_string(group.line) + " that some work items do not reach");
            group.waiting = 0;
            ++group.interval;
            make_runnable(resident[k].second);
        } else {
            for (std::unique_ptr<Item>& item : resident[k].second) spare.push_back(std::move(item));
            resident.erase(resident.begin() + k);
        }
    }
}

}  // namespace

void emulated_barrier(int line) {
    Group& group = *running->group;
    if (group.waiting && group.line != line)
        report("work items of a group wait at barriers in lines " + std::to_string(group.line) + " and " +
               std::to_string(line));
    group.line = line;
    ++group.waiting;
    leave();
}

void* emulated_shared(const char* name, size_t bytes) {
    Group& group = *running->group;
    if (running->arrays == group.arrays.size()) {
        size_t start = GAP;
        if (!group.arrays.empty()) start = (group.arrays.back().start + group.arrays.back().bytes + GAP + 15) / 16 * 16;
        if (group.shared.empty()) group.shared.assign(ROOM, (char)0xa5);
        size_t total = bytes;
        for (const Array& a : group.arrays) total += a.bytes;
        if (total > SHARED || start + bytes + GAP > ROOM) {
            fprintf(stderr, "%zu bytes of shared memory in a group\n", total);
            abort();
        }
        group.arrays.push_back({name, start, bytes});
    }
    return group.shared.data() + group.arrays[running->arrays++].start;
}

extern "C" const char* emulated_launch(
    void (*kernel)(void**), void** arguments, int count, unsigned grid, unsigned block, int order, unsigned seed) {
    static std::string last;
    Launch now = {kernel, arguments, count, grid, block, (Order)order, seed | 1, {}, ++stamps, ""};
    launch = &now;
    std::vector<unsigned> groups(grid);
    for (unsigned k = 0; k < grid; ++k) groups[k] = now.order == BACKWARDS ? k : grid - 1 - k;
    if (now.order == RANDOM)
        for (unsigned k = grid; k > 1; --k) std::swap(groups[k - 1], groups[random_below(k)]);
    run_all(std::move(groups));
    launch = nullptr;
    if (pages.size() > 4096) pages.clear();
    last = now.report;
    return last.empty() ? nullptr : last.c_str();
}

#define READS(SUFFIX, SIZE)                                                                     \
    extern "C" void __tsan_read##SUFFIX(void* at) { access((Address)at, SIZE, false); }          \
    extern "C" void __tsan_write##SUFFIX(void* at) { access((Address)at, SIZE, true); }          \
    extern "C" void __tsan_unaligned_read##SUFFIX(void* at) { access((Address)at, SIZE, false); } \
    extern "C" void __tsan_unaligned_write##SUFFIX(void* at) { access((Address)at, SIZE, true); }
READS(1, 1) READS(2, 2) READS(4, 4) READS(8, 8) READS(16, 16)
extern "C" void __tsan_read_range(void* at, size_t size) { access((Address)at, size, false); }
extern "C" void __tsan_write_range(void* at, size_t size) { access((Address)at, size, true); }
extern "C" void __tsan_func_entry(void*) {}
extern "C" void __tsan_func_exit() {}
extern "C" void __tsan_init() {}
