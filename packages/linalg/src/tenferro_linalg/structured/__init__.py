"""Structured matrices: banded, Toeplitz and circulant equations, and constructors."""
