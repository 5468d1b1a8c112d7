"""Factorisations and least squares: LU, LDL, pivoted QR, polar, and the spaces of a matrix."""
