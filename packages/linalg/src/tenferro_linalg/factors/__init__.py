"""Factorisations and least squares: LU, LDL, pivoted QR, polar, and the fundamental subspaces of a matrix."""
