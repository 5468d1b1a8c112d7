"""Kernels of random numbers."""
