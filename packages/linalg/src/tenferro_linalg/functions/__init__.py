"""Analytic functions of matrices: the exponential and its relatives.

In reading order: `_chains` (the algebra whose blocks are derivatives), `_terms` (the primitive and its rules), the
kernels, and the public functions by kind.
"""
