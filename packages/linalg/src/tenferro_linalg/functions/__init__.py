"""Analytic functions of matrices: the exponential and its kin.

In reading order: `_chains` for the algebra in which derivatives are blocks, `_terms` for the primitive and its rules,
then the kernels, and the public functions by kind.
"""
