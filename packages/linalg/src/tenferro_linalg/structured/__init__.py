"""Matrices with structure: banded, Toeplitz and circulant equations, and the matrices themselves."""
