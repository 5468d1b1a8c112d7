"""Machine code: what the processor can do, text to code, and the cache on disk."""
