"""The memory pool of large arrays."""
