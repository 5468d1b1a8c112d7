"""Machine code: capabilities of the processor, compilation of LLVM text, and the cache on disk."""
