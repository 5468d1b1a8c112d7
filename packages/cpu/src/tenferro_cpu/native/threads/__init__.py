"""Threads: the choice of BLAS and its thread count, the arbiter of Python threads, the native thread team."""
