// What CUDA C gives the text of kernels, for a C++ compiler. Work items are fibers of scheduler.cpp.
#include <cmath>
#include <cstdint>
#include <cstring>
using namespace std;

#define __global__
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(N)

struct Index { unsigned x; };
struct Indices { Index thread, block, block_size, grid_size; };
extern Indices emulated_indices;
#define threadIdx emulated_indices.thread
#define blockIdx emulated_indices.block
#define blockDim emulated_indices.block_size
#define gridDim emulated_indices.grid_size

void emulated_barrier(int line);
#define __syncthreads() emulated_barrier(__LINE__)

// Memory of the running group, the same for all of its work items that ask in the same order.
void* emulated_shared(const char* name, size_t bytes);

extern "C" const char* emulated_launch(
    void (*kernel)(void**), void** arguments, int count, unsigned grid, unsigned block, int order, unsigned seed);

template <class To, class From> static To bits_of(From x) { To y; memcpy(&y, &x, sizeof y); return y; }
static float __int_as_float(int x) { return bits_of<float>(x); }
static int __float_as_int(float x) { return bits_of<int>(x); }
static double __longlong_as_double(long long x) { return bits_of<double>(x); }
static long long __double_as_longlong(double x) { return bits_of<long long>(x); }
static int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
